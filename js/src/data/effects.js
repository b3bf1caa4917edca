// Effect sizes of two sets of rows in a column, from 0 (equal) to 1 (disjoint), comparable between kinds of columns.
//
// Numbers: Cliff's delta, the probability that a value of A exceeds one of B minus that of the opposite; -1 to 1.
// Categories: the total variation distance, half the sum of the differences of shares. For two categories both agree.
// A row in both sets counts in both; missing values count in none. The score of an effect is −log10 p (tests.js),
// NaN if the sets share rows.
import { countScore, rankScore } from "./tests.js";

const EDGES = 1024;
const IN_A = 1;
const IN_B = 2;

/** A byte per row: bit 1 for rows of A, bit 2 for rows of B; b null: all rows that are not in A. */
export function membership(a, b, n) {
  const marks = new Uint8Array(n);
  if (b === null) marks.fill(IN_B);
  for (const row of a) marks[row] = b === null ? IN_A : IN_A | marks[row];
  if (b !== null) for (const row of b) marks[row] |= IN_B;
  return marks;
}

/** Sorted distinct values of a sample; a column with fewer distinct values is ranked exactly. */
function edgesOf(sample) {
  const sorted = Float64Array.from(sample).sort();
  return sorted.filter((value, i) => i === 0 || value !== sorted[i - 1]);
}

/** Bin of a value among the edges: 2i + 1 at edge i, 2i below it. */
function placeOf(edges, value) {
  let [low, high] = [0, edges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] < value) low = middle + 1;
    else high = middle;
  }
  return edges[low] === value ? 2 * low + 1 : 2 * low;
}

function tally(edges) {
  const sides = [0, 1].map(() => ({ counts: new Float64Array(2 * edges.length + 1), n: 0, sum: 0, above: 0 }));
  return {
    add(marks, value, times = 1) {
      const place = placeOf(edges, value);
      sides.forEach((side, i) => {
        if (!(marks & (1 << i))) return;
        side.counts[place] += times;
        side.n += times;
        side.sum += times * value;
        if (value > 0) side.above += times;
      });
    },
    sides,
    /** Cliff's delta, and its score. */
    compare() {
      const [a, b] = sides;
      if (a.n === 0 || b.n === 0) return { effect: 0, score: 0 };
      let [below, wins] = [0, 0];
      let belowA = 0;
      for (let i = 0; i < a.counts.length; i++) {
        wins += a.counts[i] * below - b.counts[i] * belowA;
        below += b.counts[i];
        belowA += a.counts[i];
      }
      return { effect: wins / (a.n * b.n), score: rankScore(wins, [a.n, b.n], a.counts.map((k, i) => k + b.counts[i])) };
    },
  };
}

const meanOf = ({ sum, n }) => (n > 0 ? sum / n : NaN);
const shareOf = ({ above, n }) => (n > 0 ? above / n : NaN);

function numberEffect({ values }, marks) {
  const stride = Math.max(1, Math.floor(values.length / (4 * EDGES)));
  const sample = [];
  for (let row = 0; row < values.length; row += stride) if (Number.isFinite(values[row])) sample.push(values[row]);
  const sums = tally(edgesOf(sample));
  for (let row = 0; row < values.length; row++) {
    if (marks[row] !== 0 && values[row] === values[row]) sums.add(marks[row], values[row]);
  }
  const [a, b] = sums.sides.map(meanOf);
  return { kind: "number", ...sums.compare(), a, b };
}

function categoryEffect({ codes, labels }, marks) {
  const counts = [0, 1].map(() => new Float64Array(labels.length + 1));
  for (let row = 0; row < codes.length; row++) {
    if (marks[row] & IN_A) counts[0][codes[row]]++;
    if (marks[row] & IN_B) counts[1][codes[row]]++;
  }
  const totals = counts.map((one) => one.reduce((sum, k) => sum + k, 0) - one[0]);
  let [distance, most, code] = [0, -1, 0];
  for (let k = 1; k <= labels.length; k++) {
    const gap = Math.abs((counts[0][k] / totals[0] || 0) - (counts[1][k] / totals[1] || 0));
    distance += gap / 2;
    if (gap > most) [most, code] = [gap, k];
  }
  const [a, b] = counts.map((one, i) => one[code] / totals[i] || 0);
  const effect = Math.min(totals[0], totals[1]) > 0 ? distance : 0;
  const score = countScore(...counts.map((one) => one.subarray(1)));
  return { kind: "category", effect, score, a, b, label: code > 0 ? labels[code - 1] : "" };
}

/** { kind, effect, score, a, b, label }: a and b are means, or shares of the category that differs most. */
export function effectOf(column, marks) {
  return column.kind === "category" ? categoryEffect(column, marks) : numberEffect(column, marks);
}

/** The same for a gene, from its nonzero entries, and the share of each set above 0. */
export function geneEffect(genes, gene, marks, sizes) {
  const sample = [0];
  genes.visit(gene, (row, value) => {
    if (marks[row] !== 0 && sample.length < EDGES) sample.push(value);
  });
  const sums = tally(edgesOf(sample));
  const entries = [0, 0];
  genes.visit(gene, (row, value) => {
    const mark = marks[row];
    if (mark === 0) return;
    sums.add(mark, value);
    if (mark & IN_A) entries[0]++;
    if (mark & IN_B) entries[1]++;
  });
  sums.add(IN_A, 0, sizes[0] - entries[0]);
  sums.add(IN_B, 0, sizes[1] - entries[1]);
  const [a, b] = sums.sides.map(meanOf);
  const [shareA, shareB] = sums.sides.map(shareOf);
  return { kind: "gene", ...sums.compare(), a, b, shareA, shareB };
}

export function sizesOf(marks) {
  let [a, b] = [0, 0];
  for (let row = 0; row < marks.length; row++) {
    a += marks[row] & 1;
    b += marks[row] >> 1;
  }
  return [a, b];
}
