// Which panes are on the stage, and where.

/** Panes for a state and a stage of width x height CSS pixels; side by side, or stacked if tall. */
export function panes(state, width, height) {
  const globe = { name: "globe", unfold: state.unfold };
  const map = { name: "map", unfold: 1 };
  const shown = { globe: [globe], both: [globe, map], map: [map] }[state.layout];
  const stacked = height > width;
  return shown.map((pane, i) => {
    const share = shown.length;
    const rect = stacked
      ? { x: 0, y: (i * height) / share, width, height: height / share }
      : { x: (i * width) / share, y: 0, width: width / share, height };
    const [zoom, x, y] = state[pane.name];
    return { ...pane, rect, zoom, x, y, projection: state.projection };
  });
}
