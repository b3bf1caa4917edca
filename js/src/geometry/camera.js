// Position of a pane's plane on the screen. A pane is
//   { name, inset, rect: {x, y, width, height}, rotation, unfold, projection, half, zoom, x, y }
// in CSS pixels from the stage's top left; (x, y) is the place of the plane at the pane's middle, and
// half, of a planar embedding only, are half its width and height.
import { FLAT, FLAT_INDEX, PROJECTIONS } from "./projections.js";
import { toMatrix } from "./rotation.js";

const ZOOM_LIMITS = [0.5, 400];
const MARGIN = 0.92;

/** Half extents of the plane at a stage of unfolding: how far the equator and the poles reach. */
export function extents({ unfold, projection, half }) {
  if (projection === FLAT) return half;
  const { halfWidth, halfHeight } = PROJECTIONS[projection];
  const k = 1 - unfold;
  const across = k < 1e-4 ? Math.PI : k > 0.5 ? 1 / k : Math.sin(k * Math.PI) / k;
  return [across * (k + (unfold * halfWidth) / Math.PI), 1 + (halfHeight - 1) * unfold * unfold];
}

/** Pixels per unit of the plane. */
export function pixelsPerUnit(pane) {
  const [halfWidth, halfHeight] = extents(pane);
  const { width, height } = pane.rect;
  return pane.zoom * MARGIN * Math.min(width / (2 * halfWidth), height / (2 * halfHeight));
}

export function toScreen(pane, x, y) {
  const { rect } = pane;
  const scale = pixelsPerUnit(pane);
  return [
    rect.x + rect.width / 2 + (x - pane.x) * scale,
    rect.y + rect.height / 2 - (y - pane.y) * scale,
  ];
}

export function toPlane(pane, sx, sy) {
  const { rect } = pane;
  const scale = pixelsPerUnit(pane);
  return [
    pane.x + (sx - rect.x - rect.width / 2) / scale,
    pane.y - (sy - rect.y - rect.height / 2) / scale,
  ];
}

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/** [zoom, x, y] kept so that some of the sphere or map always stays on the pane. */
export function keepInView(pane, [zoom, x, y]) {
  const [halfWidth, halfHeight] = extents(pane);
  return [clamp(zoom, ...ZOOM_LIMITS), clamp(x, -halfWidth, halfWidth), clamp(y, -halfHeight, halfHeight)];
}

/** [zoom, x, y] after zooming by a factor with the place at (sx, sy) staying where it is. */
export function zoomAbout(pane, factor, sx, sy) {
  const zoom = clamp(pane.zoom * factor, ...ZOOM_LIMITS);
  const [px, py] = toPlane(pane, sx, sy);
  const shrink = pane.zoom / zoom;
  return keepInView(pane, [zoom, px + (pane.x - px) * shrink, py + (pane.y - py) * shrink]);
}

/** Arguments of setPlace (gl.js) for a pane. */
export function placement(pane) {
  const scale = 2 * pixelsPerUnit(pane);
  return {
    scale: [scale / pane.rect.width, scale / pane.rect.height],
    pan: [pane.x, pane.y],
    unfold: pane.unfold,
    projectionIndex: pane.projection === FLAT ? FLAT_INDEX : PROJECTIONS[pane.projection].index,
    rotation: toMatrix(pane.rotation),
  };
}
