// Filters by column: a set of categories (0 is "missing"), or a range of numbers.
//   { kind: "set", codes }                  rows of these categories
//   { kind: "range", low, high, missing }   numbers from low up to high, high left out unless it is infinite,
//                                           and the missing if so
// A column without a filter is not in the map. Filters are never changed, only replaced.

export const NO_FILTERS = Object.freeze(new Map());

/** The filters with that of one column replaced, or removed if null. */
export function withFilter(filters, column, filter) {
  const next = new Map(filters);
  if (filter === null) next.delete(column);
  else next.set(column, filter);
  return next.size === 0 ? NO_FILTERS : next;
}

/** Hide or show a category, among all codes that occur; null if all are shown. */
export function toggled(filter, code, all) {
  const codes = new Set(filter?.codes ?? all);
  if (!codes.delete(code)) codes.add(code);
  return codes.size === all.length ? null : { kind: "set", codes };
}

/** Show only one category, or all if it was the only one. */
export function isolated(filter, code) {
  const alone = filter?.codes.size === 1 && filter.codes.has(code);
  return alone ? null : { kind: "set", codes: new Set([code]) };
}

/** Numbers from low to high; null for all. */
export function ranged(low, high, missing) {
  return low === -Infinity && high === Infinity && missing ? null : { kind: "range", low, high, missing };
}

export const holds = (filter, code) => !filter || filter.codes.has(code);

/** A byte per row: 1 if it passes the filter of a column. */
export function passing(column, filter, n) {
  const pass = new Uint8Array(n);
  if (filter.kind === "set") {
    const lets = new Uint8Array(column.labels.length + 1);
    for (const code of filter.codes) lets[code] = 1;
    const { codes } = column;
    for (let row = 0; row < n; row++) pass[row] = lets[codes[row]];
    return pass;
  }
  const { low, high } = filter;
  const missing = filter.missing ? 1 : 0;
  const open = high === Infinity;
  const { values } = column;
  for (let row = 0; row < n; row++) {
    const value = values[row];
    pass[row] = value !== value ? missing : value >= low && (open || value < high) ? 1 : 0;
  }
  return pass;
}
