// Sets of rows that a reader keeps, in order: [{ name, selection }], names unique.
import { fromRows } from "./selection.js";

/** "A", "B", ... "Z", "A2", ...: the first that no set has. */
export function freeName(sets) {
  const taken = new Set(sets.map(({ name }) => name));
  for (let k = 0; ; k++) {
    const name = String.fromCharCode(65 + (k % 26)) + (k < 26 ? "" : String(Math.floor(k / 26) + 1));
    if (!taken.has(name)) return name;
  }
}

export const kept = (sets, selection) => [...sets, { name: freeName(sets), selection }];

export const dropped = (sets, name) => sets.filter((set) => set.name !== name);

/** With another name, unless that is empty or another set's. */
export function renamed(sets, from, to) {
  const name = to.trim();
  if (name === "" || sets.some((set) => set.name === name)) return sets;
  return sets.map((set) => (set.name === from ? { ...set, name } : set));
}

/** Sets from { name: rows }, as Python and links hold them, and back. */
export const fromNamedRows = (named, n) => Object.entries(named).map(([name, rows]) => ({ name, selection: fromRows(rows, n) }));
export const toNamedRows = (sets) => Object.fromEntries(sets.map(({ name, selection }) => [name, selection.rows]));
