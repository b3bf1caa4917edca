// Rows inside a closed line drawn on a pane.
import { createProjector } from "./picking.js";

/** Even-odd rule; polygon is a list of [x, y]. */
export function inside(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [xi, yi] = polygon[i];
    const [xj, yj] = polygon[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}

/** A byte per row: 1 for visible points within the line. */
export function rowsInside(polygon, pane, { positions, shown }) {
  const xs = polygon.map(([x]) => x);
  const ys = polygon.map(([, y]) => y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const project = createProjector(pane, positions);
  const mask = new Uint8Array(shown.length);
  for (let row = 0; row < shown.length; row++) {
    if (!shown[row]) continue;
    const at = project(row);
    if (at === null || at[0] < left || at[0] > right || at[1] < top || at[1] > bottom) continue;
    if (inside(polygon, at[0], at[1])) mask[row] = 1;
  }
  return mask;
}
