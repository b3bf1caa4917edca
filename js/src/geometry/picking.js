// The point under the pointer.
import { pixelsPerUnit, toPlane, toScreen } from "./camera.js";
import { FLAT, place, unplace } from "./projections.js";
import { apply, inverse, toMatrix } from "./rotation.js";

/** Function that projects a row onto a pane: [x, y] in pixels, or null on the far side or outside the map. */
export function createProjector(pane, positions) {
  const m = toMatrix(pane.rotation);
  const out = [0, 0, 0, 0];
  return (row) => {
    const x = positions[3 * row];
    const y = positions[3 * row + 1];
    const z = positions[3 * row + 2];
    place(
      out,
      m[0] * x + m[1] * y + m[2] * z,
      m[3] * x + m[4] * y + m[5] * z,
      m[6] * x + m[7] * y + m[8] * z,
      pane.unfold,
      pane.projection,
    );
    if (out[2] < 0 || (out[3] === 1 && pane.unfold === 1)) return null;
    return toScreen(pane, out[0], out[1]);
  };
}

/** Largest angle that a disc of pixels around (sx, sy) spans on the sphere, and its centre. */
function cap(pane, sx, sy, radius) {
  const at = (dx, dy) => unplace(...toPlane(pane, sx + dx, sy + dy), pane.unfold, pane.projection);
  const middle = at(0, 0) ?? nearestOnGlobe(pane, sx, sy, radius);
  if (middle === null) return null;
  let angle = radius / pixelsPerUnit(pane);
  for (let k = 0; k < 8; k++) {
    const rim = at(radius * Math.cos((k * Math.PI) / 4), radius * Math.sin((k * Math.PI) / 4));
    if (rim === null) continue;
    const cos = middle[0] * rim[0] + middle[1] * rim[1] + middle[2] * rim[2];
    angle = Math.max(angle, Math.acos(Math.max(-1, Math.min(1, cos))));
  }
  return { middle, angle: 1.1 * angle };
}

function nearestOnGlobe(pane, sx, sy, radius) {
  const [x, y] = toPlane(pane, sx, sy);
  const r = Math.hypot(x, y);
  const reach = radius / pixelsPerUnit(pane);
  return pane.unfold === 0 && r <= 1 + reach ? [0, x / r, y / r] : null;
}

/** The row of the shown point nearest to (sx, sy) within radius pixels, or -1. */
export function pick(pane, sx, sy, radius, { positions, shown, index }) {
  const project = createProjector(pane, positions);
  let best = -1;
  let bestDistance = radius;
  const visit = (row) => {
    if (!shown[row]) return;
    const at = project(row);
    if (at === null) return;
    const distance = Math.hypot(at[0] - sx, at[1] - sy);
    if (distance < bestDistance) [best, bestDistance] = [row, distance];
  };
  if (pane.projection === FLAT) {
    index().near(toPlane(pane, sx, sy), radius / pixelsPerUnit(pane), visit);
  } else if (pane.unfold === 0 || pane.unfold === 1) {
    const region = cap(pane, sx, sy, radius);
    if (region) index().near(apply(inverse(pane.rotation), region.middle), region.angle, visit);
  } else {
    // Between globe and map, the projection has no inverse.
    for (let row = 0; row < shown.length; row++) visit(row);
  }
  return best;
}
