// Search: labels that contain a text, numbers and dates equal to it, and the row with this number.
import { count, date, number } from "../ui/format.js";
import { findGenes } from "./genes.js";

const DAY = 86400000;
const MOST_GENES = 20; // in the list

function inLabels(column, needle) {
  const matches = [];
  column.labels.forEach((label, i) => {
    const text = label.toLowerCase();
    const at = text.indexOf(needle);
    if (at >= 0) matches.push({ column, code: i + 1, label, source: column.name, at, exact: text === needle });
  });
  return matches;
}

function rowsWhere({ values }, wanted) {
  const rows = [];
  for (let row = 0; row < values.length; row++) if (wanted(values[row])) rows.push(row);
  return rows;
}

function inNumbers(column, value) {
  const { values } = column;
  const near = values instanceof Float32Array ? Math.fround(value) : value;
  const rows = rowsWhere(column, (one) => one === near);
  return rows.length === 0 ? [] : [{ rows, label: number(value, 12), source: column.name, at: 0, exact: true }];
}

function inDates(column, day) {
  const rows = rowsWhere(column, (one) => one >= day && one < day + DAY);
  return rows.length === 0 ? [] : [{ rows, label: date(day), source: column.name, at: 0, exact: true }];
}

function rowOf(value, n) {
  if (!Number.isInteger(value) || value < 0 || value >= n) return [];
  return [{ rows: [value], label: `Row ${count(value)}`, source: "", at: 0, exact: false }];
}

/** Matches { label, source, exact, and rows, or column and code, or gene }: exact ones first, then those that begin with the text. */
export function find({ columns, genes, n }, text) {
  const needle = text.trim().toLowerCase();
  if (needle === "") return [];
  const value = Number(needle.replace("−", "-"));
  const day = /^\d{4}-\d\d-\d\d$/.test(needle) ? Date.parse(needle) : NaN;
  const matches = columns.flatMap((column) => {
    if (column.kind === "category") return inLabels(column, needle);
    if (column.kind === "number") return Number.isFinite(value) ? inNumbers(column, value) : [];
    return Number.isNaN(day) ? [] : inDates(column, day);
  });
  const named = findGenes(genes, text, MOST_GENES).map(({ gene, name, exact, rank: at }) => ({ gene, label: name, source: "gene", at, exact }));
  const rank = ({ exact, at }) => (exact ? 0 : at === 0 ? 1 : 2);
  return [...matches, ...rowOf(value, n), ...named].sort((a, b) => rank(a) - rank(b));
}

/** Matches that Enter selects: exact ones if there are any, else all. */
export function meant(matches) {
  const exact = matches.filter((match) => match.exact);
  return exact.length > 0 ? exact : matches;
}

/** A byte per row: 1 for rows of any of the matches. */
export function rowsOf(matches, n) {
  const mask = new Uint8Array(n);
  const byColumn = new Map();
  for (const { column, code, rows } of matches.filter(({ gene }) => gene === undefined)) {
    if (rows) {
      for (const row of rows) mask[row] = 1;
      continue;
    }
    if (!byColumn.has(column)) byColumn.set(column, new Uint8Array(column.labels.length + 1));
    byColumn.get(column)[code] = 1;
  }
  for (const [{ codes }, wanted] of byColumn) {
    for (let row = 0; row < n; row++) mask[row] |= wanted[codes[row]];
  }
  return mask;
}
