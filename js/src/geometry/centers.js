// Where to write a category's name: the middle of its densest part on the sphere.

const SAMPLE = 1500;
const STEPS = 6;
const WINDOW = Math.cos(0.45); // radians about the current guess

function mean(rows, positions, about) {
  let [x, y, z] = [0, 0, 0];
  for (const row of rows) {
    const [px, py, pz] = [positions[3 * row], positions[3 * row + 1], positions[3 * row + 2]];
    if (about && px * about[0] + py * about[1] + pz * about[2] < WINDOW) continue;
    x += px;
    y += py;
    z += pz;
  }
  const length = Math.hypot(x, y, z);
  return length > 1e-9 ? [x / length, y / length, z / length] : null;
}

function densest(rows, positions) {
  const first = 3 * rows[0];
  let center = mean(rows, positions) ?? [positions[first], positions[first + 1], positions[first + 2]];
  for (let step = 0; step < STEPS; step++) center = mean(rows, positions, center) ?? center;
  return center;
}

/** The direction at the middle of some rows. */
export function centerOf(rows, positions) {
  const stride = Math.max(1, Math.floor(rows.length / SAMPLE));
  return densest(rows.filter((_, i) => i % stride === 0), positions);
}

/** A unit vector for each category that has points: [{ code, at }], largest first. */
export function categoryCenters({ codes, counts }, positions, order) {
  const samples = Array.from(counts, () => []);
  for (const row of order) {
    const sample = samples[codes[row]];
    if (sample.length < SAMPLE) sample.push(row);
  }
  return samples
    .map((rows, code) => ({ code, rows }))
    .filter(({ code, rows }) => code > 0 && rows.length > 0)
    .map(({ code, rows }) => ({ code, at: densest(rows, positions) }))
    .sort((a, b) => counts[b.code] - counts[a.code]);
}
