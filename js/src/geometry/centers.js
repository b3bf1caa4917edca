// Positions for the name of a category: centres of its dense regions, the densest first.

const SAMPLE = 1500;
const STARTS = 30;
const STEPS = 6;
const MAX_REACH = { sphere: 0.44, plane: 0.2 }; // maximum radius of a dense region, as a straight line, ...
const REACH_PER_SPREAD = 0.5; // ... also relative to the spread of all points, so that small maps have several regions
const MAX_CENTERS = 4;
const MIN_SHARE = 0.12; // minimum fraction of the class in a further region

function mean(rows, positions, round, about, reach) {
  let [x, y, z, count] = [0, 0, 0, 0];
  for (const row of rows) {
    const [px, py, pz] = [positions[3 * row], positions[3 * row + 1], positions[3 * row + 2]];
    if (about && (px - about[0]) ** 2 + (py - about[1]) ** 2 + (pz - about[2]) ** 2 > reach * reach) continue;
    x += px;
    y += py;
    z += pz;
    count++;
  }
  const length = round ? Math.hypot(x, y, z) : count;
  return length > 1e-9 ? [x / length, y / length, z / length] : null;
}

/** Radius of a dense region. */
function regionReach({ kind, positions }) {
  const stride = Math.max(1, Math.floor(positions.length / 3 / SAMPLE));
  const rows = Array.from({ length: Math.floor(positions.length / 3 / stride) }, (_, i) => i * stride);
  const center = mean(rows, positions, false);
  const spread = center ? reachOf(rows, center, positions, Infinity) : 0;
  return Math.min(MAX_REACH[kind], Math.max(REACH_PER_SPREAD * spread, 0.01));
}

/** Number of rows within reach of a position. */
function countWithin(rows, positions, [x, y, z], reach) {
  let count = 0;
  for (const row of rows) {
    if ((positions[3 * row] - x) ** 2 + (positions[3 * row + 1] - y) ** 2 + (positions[3 * row + 2] - z) ** 2 <= reach * reach) count++;
  }
  return count;
}

/** Mean shift from the densest of some starts. */
function densest(rows, { kind, positions }, reach) {
  const round = kind === "sphere";
  const stride = Math.max(1, Math.floor(rows.length / STARTS));
  const starts = rows.filter((_, i) => i % stride === 0).map((row) => [positions[3 * row], positions[3 * row + 1], positions[3 * row + 2]]);
  let best = { center: null, near: -1 };
  for (const center of [mean(rows, positions, round), ...starts]) {
    const near = center ? countWithin(rows, positions, center, reach) : -1;
    if (near > best.near) best = { center, near };
  }
  let { center } = best;
  for (let step = 0; step < STEPS; step++) center = mean(rows, positions, round, center, reach) ?? center;
  return center;
}

/** Centre of some rows of an embedding. */
export function centerOf(rows, embedding) {
  const stride = Math.max(1, Math.floor(rows.length / SAMPLE));
  return densest(rows.filter((_, i) => i % stride === 0), embedding, regionReach(embedding));
}

/** Root mean square distance of rows from a position. */
function reachOf(rows, [x, y, z], positions, within) {
  let [sum, count] = [0, 0];
  for (const row of rows) {
    const square = (positions[3 * row] - x) ** 2 + (positions[3 * row + 1] - y) ** 2 + (positions[3 * row + 2] - z) ** 2;
    if (square > within * within) continue;
    sum += square;
    count++;
  }
  return Math.sqrt(sum / Math.max(1, count));
}

/** Centres of the dense regions of some rows: [{ at, reach }]. */
function denseCenters(rows, embedding, reach) {
  const { positions } = embedding;
  const centers = [];
  let rest = rows;
  while (rest.length > 0 && centers.length < MAX_CENTERS) {
    const at = densest(rest, embedding, reach);
    const outside = rest.filter((row) =>
      (positions[3 * row] - at[0]) ** 2 + (positions[3 * row + 1] - at[1]) ** 2 + (positions[3 * row + 2] - at[2]) ** 2 > reach * reach,
    );
    const share = (rest.length - outside.length) / rows.length;
    if (centers.length > 0 && share < MIN_SHARE) break;
    centers.push({ at, reach: reachOf(rest, at, positions, reach) });
    if (outside.length === rest.length) break;
    rest = outside;
  }
  return centers;
}

/**
 * Positions of names: [{ code, at, reach, home }], the first positions of all classes, largest class first, then others.
 * home: null, or the first position of the class for further ones.
 */
export function classNames({ codes, counts }, embedding, order) {
  const samples = Array.from(counts, () => []);
  for (const row of order) {
    const sample = samples[codes[row]];
    if (sample.length < SAMPLE) sample.push(row);
  }
  const reach = regionReach(embedding);
  const classes = samples
    .map((rows, code) => ({ code, rows }))
    .filter(({ code, rows }) => code > 0 && rows.length > 0)
    .sort((a, b) => counts[b.code] - counts[a.code])
    .map(({ code, rows }) => ({ code, centers: denseCenters(rows, embedding, reach) }));
  const first = classes.map(({ code, centers: [center] }) => ({ code, ...center, home: null }));
  const further = classes.flatMap(({ code, centers: [home, ...others] }) => others.map((center) => ({ code, ...center, home: home.at })));
  return [...first, ...further];
}
