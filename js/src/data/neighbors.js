// Nearest neighbours in the data (mercat/viewer/_neighbors.py), and which of them each embedding tears away.

/** Neighbours of point i are rows[starts[i]] to rows[starts[i + 1] - 1]; torn: a bit for each, by embedding. */
export function createNeighbors({ starts, rows, torn }) {
  return {
    /** [{ row, torn }] of a point in an embedding. */
    of(row, embedding) {
      const found = [];
      for (let k = starts[row]; k < starts[row + 1]; k++) {
        found.push({ row: rows[k], torn: ((torn[embedding][k >> 3] >> (k & 7)) & 1) === 1 });
      }
      return found;
    },
  };
}
