// Combination of filters: which rows pass all of them, and, for the chart of a column, which pass those of all other
// columns. After a change of one filter, only its column is evaluated.
import { passing } from "./filter.js";

export function createCrossfilter(n, readColumn) {
  const parts = new Map(); // column: { filter, column, pass }
  const fails = new Uint16Array(n); // how many filters each row fails
  const shown = new Uint8Array(n).fill(1);

  function drop(index) {
    const { pass } = parts.get(index);
    for (let row = 0; row < n; row++) fails[row] -= pass[row] ^ 1;
    parts.delete(index);
  }

  function add(index, column, filter) {
    const pass = passing(column, filter, n);
    for (let row = 0; row < n; row++) fails[row] += pass[row] ^ 1;
    parts.set(index, { filter, column, pass });
  }

  return {
    shown, // a byte per row, updated in place
    /** Set the filters; returns the number of rows that pass. */
    update(filters) {
      for (const [index, part] of [...parts]) {
        if (filters.get(index) !== part.filter || readColumn(index) !== part.column) drop(index);
      }
      for (const [index, filter] of filters) {
        if (!parts.has(index)) add(index, readColumn(index), filter);
      }
      let count = 0;
      for (let row = 0; row < n; row++) count += shown[row] = fails[row] === 0 ? 1 : 0;
      return count;
    },
    /** Number of rows in each bin of a column among those that pass the other columns' filters, and a mask if given. */
    counts(index, { of, size }, mask) {
      const out = new Uint32Array(size);
      const own = parts.get(index)?.pass ?? null;
      for (let row = 0; row < n; row++) {
        if (mask && !mask[row]) continue;
        if (fails[row] === (own ? 1 - own[row] : 0)) out[of[row]]++;
      }
      return out;
    },
  };
}
