// Tests of the difference between two sets, as −log10 p, which does not underflow.
//
// Numbers: the Mann-Whitney U test with ties, by its normal approximation. Categories: the chi-squared test of
// homogeneity. Both assume that rows were not selected by these values.

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

function logGamma(a) {
  const t = a + 6.5;
  const sum = LANCZOS.reduce((total, c, i) => total + (i === 0 ? c : c / (a - 1 + i)), 0);
  return 0.5 * Math.log(2 * Math.PI) + (a - 0.5) * Math.log(t) - t + Math.log(sum);
}

/** The logarithm of the regularised upper incomplete gamma function Q(a, x). */
export function logUpperGamma(a, x) {
  if (!(x > 0)) return 0;
  const front = a * Math.log(x) - x - logGamma(a);
  if (x < a + 1) {
    let [term, sum] = [1 / a, 1 / a];
    for (let k = 1; k < 1000 && term > 1e-16 * sum; k++) sum += term *= x / (a + k);
    return Math.log1p(-Math.min(1, Math.exp(front) * sum));
  }
  let b = x + 1 - a;
  let [c, d] = [1e300, 1 / b];
  let fraction = d;
  for (let k = 1; k < 10000; k++) {
    const an = -k * (k - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    fraction *= c * d;
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return front + Math.log(fraction);
}

const toScore = (logarithm) => Math.max(0, -logarithm / Math.LN10);

/** Score of a rank sum: wins is the number of pairs won by A minus those won by B, ties are the numbers of equal values. */
export function rankScore(wins, [a, b], ties) {
  const n = a + b;
  let tied = 0;
  for (const t of ties) tied += t * (t * t - 1);
  const variance = ((a * b) / 12) * (n + 1 - tied / (n * (n - 1)));
  return variance > 0 ? toScore(logUpperGamma(0.5, (wins * wins) / 8 / variance)) : 0;
}

/** Score of counts of categories in two sets. */
export function countScore(first, second) {
  const total = (counts) => counts.reduce((sum, k) => sum + k, 0);
  const [a, b] = [total(first), total(second)];
  if (a === 0 || b === 0) return 0;
  let [square, kinds] = [0, 0];
  first.forEach((k, i) => {
    const both = k + second[i];
    if (both === 0) return;
    kinds++;
    square += ((k * b - second[i] * a) ** 2) / (a * b * both);
  });
  return kinds > 1 ? toScore(logUpperGamma((kinds - 1) / 2, square / 2)) : 0;
}

/** Scores of many tests after the Benjamini-Hochberg correction. */
export function adjusted(scores) {
  const order = [...scores.keys()].sort((i, j) => scores[j] - scores[i]);
  const out = new Float64Array(scores.length);
  let least = 0; // makes the corrected scores monotonic
  for (let k = order.length - 1; k >= 0; k--) {
    least = Math.max(least, scores[order[k]] - Math.log10(order.length / (k + 1)));
    out[order[k]] = least;
  }
  return out;
}

/** Text of a score: 0.03, 2e−15. */
export function probability(score) {
  if (!(score > 0)) return "1";
  if (score < 3) return String(Number((10 ** -score).toPrecision(2)));
  const exponent = Math.ceil(score);
  const digit = Math.round(10 ** (exponent - score));
  return digit === 10 ? `1e−${exponent - 1}` : `${digit}e−${exponent}`;
}
