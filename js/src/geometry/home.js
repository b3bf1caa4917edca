// The initial view. mercat/viewer/_home.py fits it to the data: for the sphere
// { rotation: [longitude, latitude, roll], globe: [zoom, x, y], map: { mercator: [zoom, x, y], ... } },
// for a planar embedding { half: [width, height] }, which contains all points.

const WHOLE = [1, 0, 0];
const WORLD = { rotation: [0, 0, 0], globe: WHOLE, map: { mercator: WHOLE, equal_earth: WHOLE } };

/** Home of an embedding on the sphere; if there is none, the whole world. */
export function sphereHome({ embeddings }) {
  return embeddings.find(({ kind }) => kind === "sphere")?.home ?? WORLD;
}

export const FLAT_HOME = WHOLE;

const close = (a, b) => a.every((x, i) => Math.abs(x - b[i]) < 1e-4 * Math.max(1, Math.abs(b[i])));

/** Whether a view (view.js) is the home of an embedding on the sphere. */
export function isHome({ rotation, globe, map }, home, projection) {
  return close(globe, home.globe) && close(map, home.map[projection]) && close(rotation, home.rotation);
}

/** [zoom, x, y] between those of the globe and the map while it unfolds. */
export function between(globe, map, unfold) {
  const mix = (a, b) => a + (b - a) * unfold;
  return [globe[0] * (map[0] / globe[0]) ** unfold, mix(globe[1], map[1]), mix(globe[2], map[2])];
}

/** Largest zoom at which a pane shows all data. */
export function homeZoom({ kind, home }, { name, projection, unfold }) {
  if (kind === "plane") return 1;
  const map = home.map[projection];
  return name === "map" ? map[0] : between(home.globe, map, unfold)[0];
}
