// Points in the plane in square cells, to find those near a position.

export function createPlaneIndex(positions) {
  const n = positions.length / 3;
  const side = Math.max(1, Math.min(1000, Math.round(Math.sqrt(n / 8))));
  const cellOf = (value) => Math.max(0, Math.min(side - 1, Math.floor(((value + 1) / 2) * side)));

  const cells = new Uint32Array(n);
  const starts = new Uint32Array(side * side + 1);
  for (let i = 0; i < n; i++) {
    cells[i] = cellOf(positions[3 * i + 1]) * side + cellOf(positions[3 * i]);
    starts[cells[i] + 1]++;
  }
  for (let c = 0; c < side * side; c++) starts[c + 1] += starts[c];
  const rows = new Uint32Array(n);
  const next = starts.slice(0, -1);
  for (let i = 0; i < n; i++) rows[next[cells[i]]++] = i;

  /** Call visit(row) for every point within a distance of a place, and for some just outside. */
  function near([x, y], distance, visit) {
    for (let j = cellOf(y - distance); j <= cellOf(y + distance); j++) {
      for (let i = cellOf(x - distance); i <= cellOf(x + distance); i++) {
        for (let k = starts[j * side + i]; k < starts[j * side + i + 1]; k++) visit(rows[k]);
      }
    }
  }

  return { near };
}
