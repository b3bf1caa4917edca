// Format numbers, dates and values.

export const MISSING = "missing";

const whole = new Intl.NumberFormat("en");
const DAY = 86400000;

export const count = (n) => whole.format(n);

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export const percent = (share) => {
  const value = 100 * share;
  return `${value > 0 && value < 0.95 ? "<1" : Math.round(value)} %`;
};

/** A number to some significant digits, without trailing zeros. */
export function number(value, digits = 6) {
  if (Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value).replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace(/^-/, "−");
}

/** Milliseconds since 1970 as a date of the form 2024-05-31, with the time unless it is a whole day. */
export function date(value, withTime = value % DAY !== 0) {
  if (Number.isNaN(value)) return MISSING;
  const when = new Date(value);
  if (Number.isNaN(when.getTime())) return "out of range";
  const text = when.toISOString();
  const day = text.slice(0, text.indexOf("T"));
  if (!withTime) return day;
  return `${day} ${text.slice(text.indexOf("T") + 1).replace(/(:00)?\.000Z$|Z$/, "")}`;
}

/** Formatter for the ends and edges of a column's scale. */
export function formatter(column) {
  if (column.kind !== "date") return (value) => number(value, 3);
  const long = column.values.some((value) => value % DAY !== 0);
  return (value) => date(long ? Math.round(value / 1000) * 1000 : value, long);
}

/** The text of one field of one row. */
export function field(column, row) {
  if (column.kind === "category") {
    const code = column.codes[row];
    return code === 0 ? MISSING : column.labels[code - 1];
  }
  if (column.kind === "date") return date(column.values[row]);
  // A 32-bit float has seven digits; 64-bit floats are shortened.
  return number(column.values[row], column.values instanceof Float64Array ? 12 : 6);
}
