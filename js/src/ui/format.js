// Numbers and values as a reader sees them.

export const MISSING = "missing";

const whole = new Intl.NumberFormat("en");

export const count = (n) => whole.format(n);

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A number to some significant digits, without trailing zeros. */
export function number(value, digits = 6) {
  if (Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value).replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace(/^-/, "−");
}

/** The text of one field of one row. */
export function field(column, row) {
  if (column.kind === "category") {
    const code = column.codes[row];
    return code === 0 ? MISSING : column.labels[code - 1];
  }
  // A 32-bit float holds seven digits, a 64-bit one more than anyone reads.
  return number(column.values[row], column.values instanceof Float64Array ? 12 : 6);
}
