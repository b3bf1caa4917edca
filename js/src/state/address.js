// Encode the state as text for the address, and decode it. The text is untrusted: every part is checked, and invalid
// parts are ignored.
import { PROJECTIONS } from "../geometry/projections.js";
import { fromRows } from "./selection.js";
import { fromView, toView } from "./view.js";

const VERSION = 1;
const MOST_ROWS = 4000; // of a selection or a set in a link
const SWITCHES = ["names", "graticule", "seeThrough", "inset", "contours", "lines"];
const LAYOUTS = ["map", "globe"];

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value) => (Array.isArray(value) ? value : []);
const entries = (value) => (isObject(value) ? Object.entries(value) : []);

/** JSON as URL-safe base64. */
function toText(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromText(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (letter) => letter.charCodeAt(0))));
}

/** Sorted rows as differences, which have few digits. */
const toGaps = (rows) => Array.from(rows, (row, i) => (i === 0 ? row : row - rows[i - 1]));

function fromGaps(gaps, n) {
  const rows = [];
  let row = 0;
  for (const gap of list(gaps).slice(0, MOST_ROWS)) {
    if (!Number.isInteger(gap) || gap < 0) break;
    row += gap;
    if (row >= n) break;
    rows.push(row);
  }
  return rows;
}

const nameOf = (dataset, index) => dataset.column(index)?.name ?? null;

/** Index of a column or gene by name, or -1. */
function indexOf({ columns, genes }, name) {
  const column = columns.findIndex((one) => one.name === name);
  if (column >= 0 || !genes) return column;
  const gene = genes.names.indexOf(name);
  return gene < 0 ? -1 : columns.length + gene;
}

function writeFilter(column, filter) {
  if (filter.kind === "set") return { in: [...filter.codes].map((code) => (code === 0 ? null : column.labels[code - 1])) };
  const end = (value) => (Number.isFinite(value) ? value : null);
  return { from: end(filter.low), to: end(filter.high), missing: filter.missing };
}

function readFilter(column, given) {
  if (!isObject(given)) return null;
  if (column.kind === "category") {
    const codes = list(given.in).slice(0, column.labels.length + 1).map((label) => (label === null ? 0 : column.labels.indexOf(label) + 1));
    const known = codes.filter((code, i) => code > 0 || given.in[i] === null);
    return known.length > 0 ? { kind: "set", codes: new Set(known) } : null;
  }
  const end = (value, open) => (Number.isFinite(value) ? value : open);
  const [low, high] = [end(given.from, -Infinity), end(given.to, Infinity)];
  if (low > high) return null;
  const missing = given.missing !== false;
  return low === -Infinity && high === Infinity && missing ? null : { kind: "range", low, high, missing };
}

/** { text, left }: the state as text, and the number of selected points if there are too many to include. */
export function writeAddress(state, dataset, columnOf) {
  const { selection, sets } = state;
  const fits = selection.rows.length <= MOST_ROWS;
  const value = {
    version: VERSION,
    view: toView(state),
    layout: state.layout,
    projection: state.projection,
    embedding: dataset.embeddings[state.embedding].name,
    color: nameOf(dataset, state.colorBy),
    scales: [...state.scales].map((index) => nameOf(dataset, index)),
    genes: state.genes.map((index) => nameOf(dataset, index)),
    filters: Object.fromEntries([...state.filters].map(([index, filter]) => [nameOf(dataset, index), writeFilter(columnOf(index), filter)])),
    selection: fits ? toGaps(selection.rows) : [],
    sets: Object.fromEntries(sets.filter((set) => set.selection.rows.length <= MOST_ROWS).map((set) => [set.name, toGaps(set.selection.rows)])),
    pins: state.pins,
    size: state.size,
    on: SWITCHES.filter((key) => state[key]),
  };
  return { text: toText(value), left: fits ? 0 : selection.rows.length };
}

const isTriple = (value) => Array.isArray(value) && value.length === 3 && value.every((x) => Number.isFinite(x) && Math.abs(x) < 1e6);

function readView(view, state) {
  if (!isObject(view)) return {};
  const now = toView(state);
  const good = (key) => isTriple(view[key]) && (key === "rotation" || (view[key][0] >= 0.5 && view[key][0] <= 400));
  return fromView(Object.fromEntries(Object.keys(now).map((key) => [key, good(key) ? view[key] : now[key]])));
}

function readFilters(given, dataset, columnOf, scales) {
  const filters = new Map();
  for (const [name, filter] of entries(given)) {
    const index = indexOf(dataset, name);
    const read = index < 0 ? null : readFilter(columnOf(index, scales), filter);
    if (read) filters.set(index, read);
  }
  return filters;
}

/** Changes of the state encoded in a text; null if it is invalid. columnOf(index, scales): see columns.js. */
export function readAddress(text, dataset, state, columnOf) {
  let value;
  try {
    value = fromText(text);
  } catch {
    return null;
  }
  if (!isObject(value) || value.version !== VERSION) return null;
  const { n, embeddings, columns } = dataset;
  const indices = (names) => [...new Set(list(names).map((name) => indexOf(dataset, name)).filter((index) => index >= 0))];
  const colors = indices([value.color]).filter((index) => dataset.column(index).role !== "id");
  const scales = new Set(indices(value.scales).filter((index) => index < columns.length && columns[index].classes));
  const embedding = embeddings.findIndex(({ name }) => name === value.embedding);
  const rows = fromGaps(value.selection, n);
  return {
    ...readView(value.view, state),
    ...(LAYOUTS.includes(value.layout) ? { layout: value.layout, unfold: 0 } : {}),
    ...(Object.hasOwn(PROJECTIONS, value.projection) ? { projection: value.projection } : {}),
    ...(embedding >= 0 ? { embedding } : {}),
    colorBy: value.color === null ? -1 : colors[0] ?? state.colorBy,
    scales,
    genes: indices(value.genes).filter((index) => index >= columns.length).slice(0, 50),
    filters: readFilters(value.filters, dataset, columnOf, scales),
    selection: fromRows(rows, n),
    sets: entries(value.sets).slice(0, 50).map(([name, gaps]) => ({ name: name.slice(0, 60), selection: fromRows(fromGaps(gaps, n), n) })),
    pins: [...new Set(list(value.pins).filter((row) => Number.isInteger(row) && row >= 0 && row < n))].slice(0, 100),
    size: Number.isFinite(value.size) ? Math.max(0.25, Math.min(4, value.size)) : state.size,
    ...(Array.isArray(value.on) ? Object.fromEntries(SWITCHES.map((key) => [key, value.on.includes(key)])) : {}),
  };
}
