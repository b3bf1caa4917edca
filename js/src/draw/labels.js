// Names on a pane: as many as fit, the most important first. Names with a level are shown only at zooms near enough to
// the region that they name, but not inside it.
import { pixelsPerUnit, toScreen } from "../geometry/camera.js";
import { place } from "../geometry/projections.js";
import { apply } from "../geometry/rotation.js";
import { FONT } from "./theme.js";

const LINE = 15; // pixels
const MAX_LETTERS = 22; // per line, of at most two lines
const SIZES = [14, 12, 11]; // pixels, by level
const MIN_PIXELS = 24; // minimum reach of a region named at a finer level, in pixels
const MAX_FRACTION = 0.9; // maximum reach of a region named at a coarser level, relative to the shorter side of the pane
const MIN_DISTANCE = 230; // minimum distance between two names of one class, in pixels

function cut(text, letters) {
  return text.length <= letters ? text : `${text.slice(0, letters - 1).trimEnd()}…`;
}

/** A name in one or two lines. */
export function wrapped(text) {
  if (text.length <= MAX_LETTERS) return [text];
  const space = text.lastIndexOf(" ", MAX_LETTERS);
  const first = space > 5 ? text.slice(0, space) : text.slice(0, MAX_LETTERS);
  return [first, cut(text.slice(first.length).trim(), MAX_LETTERS)];
}

function locate(pane, at) {
  const out = place([], ...apply(pane.rotation, at), pane.unfold, pane.projection);
  if (out[2] < (pane.unfold < 0.5 ? 0.15 : 0) || (out[3] && pane.unfold > 0.5)) return null;
  const [x, y] = toScreen(pane, out[0], out[1]);
  const { rect } = pane;
  const within = x > rect.x && x < rect.x + rect.width && y > rect.y && y < rect.y + rect.height;
  return within ? [x, y] : null;
}

const clamp = (value, low, high) => (low > high ? (low + high) / 2 : Math.max(low, Math.min(high, value)));

/** Whether a name of a level is shown at this zoom; names without a level are shown at all zooms. */
export function suits({ level, reach }, pane, finest) {
  if (level === undefined) return true;
  const pixels = reach * pixelsPerUnit(pane);
  const { width, height } = pane.rect;
  return (level === 0 || pixels >= MIN_PIXELS) && (level === finest || pixels <= MAX_FRACTION * Math.min(width, height));
}

/** Write names ({ at, home, text, level, reach }); returns { written, left }: their texts, and the number without room. */
export function writeNames(context, pane, names, { ink, halo }, busy) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  const { rect } = pane;
  const taken = [...busy];
  const finest = names.reduce((most, { level }) => Math.max(most, level ?? 0), 0);
  const written = [];
  let left = 0;
  for (const name of names) {
    const { at, home, text, level } = name;
    const spot = suits(name, pane, finest) ? locate(pane, at) : null;
    if (spot === null) continue;
    context.font = `600 ${SIZES[level ?? 1] ?? SIZES.at(-1)}px ${FONT}`;
    const other = home && locate(pane, home);
    if (other && Math.hypot(spot[0] - other[0], spot[1] - other[1]) < MIN_DISTANCE) continue;
    const lines = wrapped(text);
    const half = Math.max(...lines.map((line) => context.measureText(line).width)) / 2 + 5;
    const tall = (lines.length * LINE) / 2 + 2;
    const x = clamp(spot[0], rect.x + half, rect.x + rect.width - half);
    const y = clamp(spot[1], rect.y + tall, rect.y + rect.height - tall);
    const box = [x - half, y - tall, x + half, y + tall];
    if (taken.some((one) => box[0] < one[2] && box[2] > one[0] && box[1] < one[3] && box[3] > one[1])) {
      if (home === null) left++;
      continue;
    }
    taken.push(box);
    written.push(text);
    lines.forEach((line, i) => {
      const down = y + (i - (lines.length - 1) / 2) * LINE;
      const room = rect.width - 6; // a name wider than the pane is drawn narrower
      context.lineWidth = 3.5;
      context.strokeStyle = halo;
      context.strokeText(line, x, down, room);
      context.fillStyle = ink;
      context.fillText(line, x, down, room);
    });
  }
  return { written, left };
}
