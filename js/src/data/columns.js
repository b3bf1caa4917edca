// Interpretation of columns: numbers as categories or as a scale, and bins for charts.
import { MISSING, number } from "../ui/format.js";

const BINS = 40;
const MOST_STEPS = 60; // numbers that lie on no more equal steps than this, as whole ones and shares do, get a bin each

/** Category column for a column of few integers, or null. */
export function asCategories(column) {
  if (column.kind === "category") return column;
  if (!column.classes) return null;
  const code = new Map(column.classes.map((value, i) => [value, i + 1]));
  const codes = Uint8Array.from(column.values, (value) => code.get(value) ?? 0);
  return { ...column, kind: "category", codes, labels: column.classes.map((value) => number(value)) };
}

/** Smallest and largest value, ends of the central 96 % if there are outliers, and number of missing values. */
export function spread(values) {
  const stride = Math.max(1, Math.floor(values.length / 20000));
  const sample = [];
  let [min, max, missing] = [Infinity, -Infinity, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value !== value) missing++;
    else if (value - value === 0) {
      if (value < min) min = value;
      if (value > max) max = value;
      if (i % stride === 0) sample.push(value);
    }
  }
  if (min > max) return { min: 0, max: 0, low: 0, high: 0, missing };
  sample.sort((a, b) => a - b);
  const at = (q) => sample[Math.round(q * (sample.length - 1))] ?? min;
  const [low, high] = [at(0.02), at(0.98)];
  const skewed = high > low && max - min > 2 * (high - low);
  return skewed ? { min, max, low, high, missing } : { min, max, low: min, high: max, missing };
}

/** Counts of each code; 0 is "missing". */
export function countCodes({ codes, labels }) {
  const counts = new Uint32Array(labels.length + 1);
  for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
  return counts;
}

/** Codes that occur, in the order of the labels, missing values last. */
export function occurring(counts) {
  const codes = Array.from(counts.keys()).filter((code) => code > 0 && counts[code] > 0);
  return counts[0] > 0 ? [...codes, 0] : codes;
}

/** Step of a grid from the lowest value on that contains all numbers from low to high; null if there is none. */
function stepOf(values, low, high) {
  const seen = new Set();
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value >= low && value <= high) seen.add(value);
    if (seen.size > MOST_STEPS) return null;
  }
  if (seen.size < 2) return 1;
  const sorted = [...seen].sort((a, b) => a - b);
  const step = sorted.slice(1).reduce((least, value, i) => Math.min(least, value - sorted[i]), Infinity);
  if ((high - low) / step > MOST_STEPS - 0.5) return null;
  const even = sorted.every((value) => Math.abs((value - low) / step - Math.round((value - low) / step)) < 0.01);
  return even ? step : null;
}

function numberBins({ kind, values }) {
  const range = spread(values);
  const { low, high } = range;
  const step = kind === "date" ? null : stepOf(values, low, high);
  const bars = step !== null ? Math.round((high - low) / step) + 1 : high > low ? BINS : 1;
  const start = step !== null ? low - step / 2 : low;
  const width = step ?? ((high - low) / bars || 1);
  const of = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value !== value) continue;
    const bin = Math.floor((value - start) / width);
    of[i] = 1 + (bin < 0 ? 0 : bin >= bars ? bars - 1 : bin);
  }
  return { of, size: bars + 1, bars, start, width, range };
}

/** Bin 0 is "missing"; bin k of numbers starts at start + (k - 1) width; the outer bins include values beyond. */
export function binsOf(column) {
  const bins = column.kind === "category" ? { of: column.codes, size: column.labels.length + 1 } : numberBins(column);
  const all = new Uint32Array(bins.size);
  for (let i = 0; i < bins.of.length; i++) all[bins.of[i]]++;
  return { ...bins, all };
}

export const labelOf = (column, code) => (code === 0 ? MISSING : column.labels[code - 1]);

/** All columns of a dataset: get(index, scales) as interpreted, bins(index, scales) for charts. */
export function createColumns({ columns, column: columnAt }) {
  const made = new Map();
  const cached = (key, make) => {
    if (!made.has(key)) made.set(key, make());
    return made.get(key);
  };
  function get(index, scales) {
    const column = columnAt(index);
    if (!column || column.kind !== "number" || !column.classes || scales.has(index)) return column;
    return cached(`as categories ${index}`, () => asCategories(column));
  }
  return {
    count: columns.length,
    get,
    bins(index, scales) {
      const column = get(index, scales);
      return cached(`bins ${index} ${column.kind}`, () => binsOf(column));
    },
    /** Whether the user can choose between categories and a scale. */
    hasChoice: (index) => columnAt(index).kind === "number" && Boolean(columnAt(index).classes),
  };
}
