// Four bytes a point for the graphics card: colour, and how strongly it shows.
import { colorIndex } from "./scheme.js";

export const DIM = 64;
export const NORMAL = 192;
export const STRONG = 255;

function colorOf(scheme) {
  if (scheme.kind === "plain") return () => scheme.color;
  if (scheme.kind === "category") return (row) => scheme.colors[scheme.codes[row]];
  return (row) => {
    const value = scheme.values[row];
    return Number.isNaN(value) ? scheme.missingColor : scheme.colors[colorIndex(scheme, value)];
  };
}

/**
 * Bytes in drawing order, zeros for what is not shown. shown: a byte a row; selected: the same, or null when nothing is;
 * spotlight: a category code that the reader points at in the legend, or null.
 */
export function paint(order, scheme, shown, selected, spotlight) {
  const bytes = new Uint8Array(4 * order.length);
  const color = colorOf(scheme);
  const codes = scheme.kind === "category" && spotlight !== null ? scheme.codes : null;
  for (let k = 0; k < order.length; k++) {
    const row = order[k];
    if (!shown[row]) continue;
    const [red, green, blue] = color(row);
    bytes[4 * k] = red;
    bytes[4 * k + 1] = green;
    bytes[4 * k + 2] = blue;
    if (codes) bytes[4 * k + 3] = codes[row] === spotlight ? STRONG : DIM;
    else if (selected) bytes[4 * k + 3] = selected[row] ? STRONG : DIM;
    else bytes[4 * k + 3] = NORMAL;
  }
  return bytes;
}
