// Panes on the stage: a large view, and over it the other one as an inset.
import { between } from "./home.js";
import { FLAT } from "./projections.js";

const IDENTITY = [0, 0, 0, 1];
export const MARGIN = 12; // pixels between the inset and the edge of the stage

/** The side of the inset, which is a square. */
export function insetSide(width, height) {
  return Math.round(Math.max(96, Math.min(250, 0.3 * Math.min(width, height), 0.36 * width)));
}

/** Rectangle of an inset with a position in fractions of the free space. */
export function insetRect([across, down], width, height) {
  const side = insetSide(width, height);
  const at = (part, room) => MARGIN + part * Math.max(0, room - side - 2 * MARGIN);
  return { x: at(across, width), y: at(down, height), width: side, height: side };
}

/** Position in fractions of the free space of an inset with its corner at (x, y). */
export function insetPlace(x, y, width, height) {
  const side = insetSide(width, height);
  const part = (value, room) => Math.max(0, Math.min(1, (value - MARGIN) / Math.max(1, room - side - 2 * MARGIN)));
  return [part(x, width), part(y, height)];
}

function globePane(state) {
  const [zoom, x, y] = between(state.globe, state.map, state.unfold);
  return { name: "globe", unfold: state.unfold, rotation: state.rotation, projection: state.projection, zoom, x, y };
}

function mapPane(state) {
  const [zoom, x, y] = state.map;
  return { name: "map", unfold: 1, rotation: state.rotation, projection: state.projection, zoom, x, y };
}

function planePane(state, { home }) {
  const [zoom, x, y] = state.flat;
  return { name: "map", unfold: 1, rotation: IDENTITY, projection: FLAT, half: home.half, zoom, x, y };
}

/** Panes of an embedding for a state and a stage of width x height CSS pixels, the large one first. */
export function panes(state, embedding, width, height) {
  const whole = { x: 0, y: 0, width, height };
  if (embedding.kind === "plane") return [{ ...planePane(state, embedding), inset: false, rect: whole }];
  const [large, small] = state.layout === "globe"
    ? [globePane(state), mapPane(state)]
    : [mapPane(state), globePane({ ...state, unfold: 0 })];
  const main = { ...large, inset: false, rect: whole };
  if (!state.inset) return [main];
  // The whole globe or map, whatever the zoom of the large view.
  const overview = { zoom: 1, x: 0, y: 0, inset: true, rect: insetRect(state.insetAt, width, height) };
  return [main, { ...small, ...overview }];
}

/** Topmost pane at a position, or null. */
export function paneAt(list, [x, y]) {
  const holds = ({ rect }) => x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
  return list.findLast(holds) ?? null;
}

/** The key of the state that holds a pane's [zoom, x, y]. */
export const cameraKey = ({ name, projection }) => (projection === FLAT ? "flat" : name);
