// Four bytes per point for the GPU: colour and opacity.
import { colorIndex } from "./scheme.js";

export const DIM = 64;
export const NORMAL = 192;
export const STRONG = 255;

// Little-endian, as on all platforms with browsers: red is the first byte.
const packed = ([red, green, blue]) => red | (green << 8) | (blue << 16);

/** A function from a row to its colour, in the lower three bytes. */
function colorOf(scheme) {
  if (scheme.kind === "plain") {
    const color = packed(scheme.color);
    return () => color;
  }
  const table = Int32Array.from(scheme.colors, packed);
  if (scheme.kind === "category") {
    const { codes } = scheme;
    return (row) => table[codes[row]];
  }
  const missing = packed(scheme.missingColor);
  const { values } = scheme;
  return (row) => {
    const value = values[row];
    return value !== value ? missing : table[colorIndex(scheme, value)];
  };
}

/**
 * Bytes in drawing order, zeros for hidden points. shown: a byte per row; selected: the same, or null for no selection;
 * spotlight: code of the hovered category, or null.
 */
export function paint(order, scheme, shown, selected, spotlight) {
  const out = new Int32Array(order.length);
  const color = colorOf(scheme);
  const codes = scheme.kind === "category" && spotlight !== null ? scheme.codes : null;
  for (let k = 0; k < order.length; k++) {
    const row = order[k];
    if (!shown[row]) continue;
    let strength = NORMAL;
    if (codes) strength = codes[row] === spotlight ? STRONG : DIM;
    else if (selected) strength = selected[row] ? STRONG : DIM;
    out[k] = color(row) | (strength << 24);
  }
  return new Uint8Array(out.buffer);
}
