// Named sets of rows, in order: [{ name, selection }], with unique names.
import { fromRows } from "./selection.js";

/** The first unused name of "A", "B", ... "Z", "A2", ... */
export function freeName(sets) {
  const taken = new Set(sets.map(({ name }) => name));
  for (let k = 0; ; k++) {
    const name = String.fromCharCode(65 + (k % 26)) + (k < 26 ? "" : String(Math.floor(k / 26) + 1));
    if (!taken.has(name)) return name;
  }
}

export const kept = (sets, selection) => [...sets, { name: freeName(sets), selection }];

export const dropped = (sets, name) => sets.filter((set) => set.name !== name);

/** Rename a set, unless the name is empty or in use. */
export function renamed(sets, from, to) {
  const name = to.trim();
  if (name === "" || sets.some((set) => set.name === name)) return sets;
  return sets.map((set) => (set.name === from ? { ...set, name } : set));
}

/** Convert sets from and to { name: rows }, as in Python and links. */
export const fromNamedRows = (named, n) => Object.entries(named).map(([name, rows]) => ({ name, selection: fromRows(rows, n) }));
export const toNamedRows = (sets) => Object.fromEntries(sets.map(({ name, selection }) => [name, selection.rows]));
