// Colours of a column: categories, a scale of numbers or dates, or a single colour.
import { countCodes, spread } from "../data/columns.js";
import { MISSING, formatter } from "../ui/format.js";
import { PLAIN_COLOR, ramp } from "./color.js";

const STEPS = 256;

function categoryScheme(column, theme) {
  const { codes, labels } = column;
  const [missing, ...colors] = column.colors[theme];
  return {
    kind: "category",
    name: column.name,
    codes,
    labels: [MISSING, ...labels],
    counts: countCodes(column),
    colors: [missing, ...labels.map((_, i) => colors[i % colors.length])], // many come again
  };
}

const DOUBTFUL = new Set(["loss", "torn"]); // a small value is a place to trust: the bright end

function numberScheme(column, theme) {
  const doubt = DOUBTFUL.has(column.role);
  const colors = Array.from({ length: STEPS }, (_, i) =>
    doubt ? ramp("cividis", 1 - i / (STEPS - 1), theme) : ramp("viridis", i / (STEPS - 1), theme),
  );
  return {
    kind: "number",
    name: column.name,
    role: column.role,
    values: column.values,
    format: formatter(column),
    missingColor: column.colors[theme][0],
    colors,
    ...spread(column.values),
  };
}

/** Scheme of a column as interpreted by columns.js; without a column, a single colour. */
export function createScheme(column, theme) {
  if (!column) return { kind: "plain", color: PLAIN_COLOR[theme] };
  return column.kind === "category" ? categoryScheme(column, theme) : numberScheme(column, theme);
}

export function colorIndex(scheme, value) {
  const t = scheme.high > scheme.low ? (value - scheme.low) / (scheme.high - scheme.low) : 0.5;
  return Math.max(0, Math.min(STEPS - 1, Math.round(t * (STEPS - 1))));
}
