// Which panes are on the stage, and where.
import { PROJECTIONS } from "./projections.js";

/** A wide map gets more of the stage's width than the globe, though less than would make them equal in height. */
function shares(shown, stacked, projection) {
  if (stacked || shown.length === 1) return shown.map(() => 1 / shown.length);
  const { halfWidth, halfHeight } = PROJECTIONS[projection];
  const map = Math.sqrt(halfWidth / halfHeight);
  return [1 / (1 + map), map / (1 + map)];
}

/** Panes for a state and a stage of width x height CSS pixels; side by side, or stacked if tall. */
export function panes(state, width, height) {
  const globe = { name: "globe", unfold: state.unfold };
  const map = { name: "map", unfold: 1 };
  const shown = { globe: [globe], both: [globe, map], map: [map] }[state.layout];
  const stacked = height > width;
  const parts = shares(shown, stacked, state.projection);
  let start = 0;
  return shown.map((pane, i) => {
    const part = parts[i];
    const rect = stacked
      ? { x: 0, y: start * height, width, height: part * height }
      : { x: start * width, y: 0, width: part * width, height };
    start += part;
    const [zoom, x, y] = state[pane.name];
    return { ...pane, rect, zoom, x, y, projection: state.projection };
  });
}
