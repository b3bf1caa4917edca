// Points on the sphere in cells of equal area, to find those near a position.

const TAU = 2 * Math.PI;

export function createSphereIndex(positions) {
  const n = positions.length / 3;
  const bands = Math.max(1, Math.min(700, Math.round(Math.sqrt(n / 8))));
  const sectors = 2 * bands;
  const bandOf = (z) => Math.max(0, Math.min(bands - 1, Math.floor(((z + 1) / 2) * bands)));
  const sectorOf = (longitude) => Math.min(sectors - 1, Math.floor(((longitude + Math.PI) / TAU) * sectors));

  const cells = new Uint32Array(n);
  const starts = new Uint32Array(bands * sectors + 1);
  for (let i = 0; i < n; i++) {
    const longitude = Math.atan2(positions[3 * i + 1], positions[3 * i]);
    cells[i] = bandOf(positions[3 * i + 2]) * sectors + sectorOf(longitude);
    starts[cells[i] + 1]++;
  }
  for (let c = 0; c < bands * sectors; c++) starts[c + 1] += starts[c];
  const rows = new Uint32Array(n);
  const next = starts.slice(0, -1);
  for (let i = 0; i < n; i++) rows[next[cells[i]]++] = i;

  /** Call visit(row) for every point within an angle of a unit vector, and for some just outside. */
  function near([x, y, z], angle, visit) {
    const latitude = Math.asin(Math.max(-1, Math.min(1, z)));
    const low = Math.max(-Math.PI / 2, latitude - angle);
    const high = Math.min(Math.PI / 2, latitude + angle);
    const holdsPole = high >= Math.PI / 2 || low <= -Math.PI / 2;
    const spread = holdsPole ? Math.PI : Math.asin(Math.min(1, Math.sin(angle) / Math.cos(latitude)));
    const first = Math.floor(((Math.atan2(y, x) - spread + Math.PI) / TAU) * sectors);
    const across = spread >= Math.PI ? sectors : Math.min(sectors, Math.ceil((2 * spread * sectors) / TAU) + 1);
    for (let band = bandOf(Math.sin(low)); band <= bandOf(Math.sin(high)); band++) {
      for (let s = 0; s < across; s++) {
        const cell = band * sectors + ((((first + s) % sectors) + sectors) % sectors);
        for (let k = starts[cell]; k < starts[cell + 1]; k++) visit(rows[k]);
      }
    }
  }

  return { near };
}
