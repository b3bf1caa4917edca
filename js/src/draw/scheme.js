// How one column colours the points: a category scheme or a number scheme; a plain one without a column.
import { PLAIN_COLOR, ramp } from "./color.js";
import { MISSING, number } from "../ui/format.js";

const STEPS = 256;

/** The category column that a column of few whole numbers can also be read as, or null. */
export function asCategories(column) {
  if (column.kind === "category") return column;
  if (column.classes === null) return null;
  const code = new Map(column.classes.map((value, i) => [value, i + 1]));
  const codes = Uint8Array.from(column.values, (value) => code.get(value) ?? 0);
  return { ...column, kind: "category", codes, labels: column.classes.map((value) => number(value)) };
}

function categoryScheme(column, theme) {
  const { codes, labels } = column;
  const [missing, ...colors] = column.colors[theme];
  const counts = new Uint32Array(labels.length + 1);
  for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
  return {
    kind: "category",
    name: column.name,
    codes,
    labels: [MISSING, ...labels],
    counts,
    colors: [missing, ...labels.map((_, i) => colors[i % colors.length])], // many come again
  };
}

/** The range of the colours: all values, or the middle 96 % when outliers would flatten the rest. */
function colorRange(values) {
  const stride = Math.max(1, Math.floor(values.length / 20000));
  const sample = [];
  let [min, max, missing] = [Infinity, -Infinity, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (Number.isNaN(value)) missing++;
    else if (Number.isFinite(value)) {
      min = Math.min(min, value);
      max = Math.max(max, value);
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

function numberScheme(column, theme) {
  const range = colorRange(column.values);
  const loss = column.role === "loss";
  // A small loss is a place to trust: the bright end.
  const colors = Array.from({ length: STEPS }, (_, i) =>
    loss ? ramp("cividis", 1 - i / (STEPS - 1), theme) : ramp("viridis", i / (STEPS - 1), theme),
  );
  return {
    kind: "number",
    name: column.name,
    role: column.role,
    values: column.values,
    missingColor: column.colors[theme][0],
    colors,
    ...range,
  };
}

/** The scheme of a column; asScale reads a column of few whole numbers as a scale all the same. */
export function createScheme(column, theme, asScale = false) {
  if (!column) return { kind: "plain", color: PLAIN_COLOR[theme] };
  const categories = asScale && column.kind === "number" ? null : asCategories(column);
  return categories ? categoryScheme(categories, theme) : numberScheme(column, theme);
}

export function colorIndex(scheme, value) {
  const t = scheme.high > scheme.low ? (value - scheme.low) / (scheme.high - scheme.low) : 0.5;
  return Math.max(0, Math.min(STEPS - 1, Math.round(t * (STEPS - 1))));
}
