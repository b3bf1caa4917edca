// The view to open with and to go back to. Python (mercat/viewer/_home.py) finds what fits the data:
// { rotation: [longitude, latitude, roll], globe: [zoom, x, y], map: { mercator: [zoom, x, y], ... } }.

/** [zoom, x, y] of the globe's pane at a stage of unfolding, on the way from the globe to the map. */
export function globeHome({ globe, map }, projection, unfold) {
  const end = map[projection];
  const mix = (a, b) => a + (b - a) * unfold;
  return [globe[0] * (end[0] / globe[0]) ** unfold, mix(globe[1], end[1]), mix(globe[2], end[2])];
}

/** The zoom at which a pane shows the data as large as they fit. */
export function homeZoom(home, { name, projection, unfold }) {
  return name === "map" ? home.map[projection][0] : globeHome(home, projection, unfold)[0];
}

/** [zoom, x, y] as far from one home as it was from another. */
export function rebase([zoom, x, y], from, to) {
  return [(zoom * to[0]) / from[0], x + to[1] - from[1], y + to[2] - from[2]];
}
