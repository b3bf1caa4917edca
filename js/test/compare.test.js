import assert from "node:assert/strict";
import { test } from "node:test";
import { effectOf, geneEffect, membership, sizesOf } from "../src/data/effects.js";
import { createGenes, findGenes } from "../src/data/genes.js";
import { adjusted, probability } from "../src/data/tests.js";
import { toTable } from "../src/panels/compare.js";
import { outstanding, positionsOf } from "../src/panels/volcano.js";
import { dropped, freeName, fromNamedRows, kept, renamed, toNamedRows } from "../src/state/sets.js";
import { fromRows } from "../src/state/selection.js";

const near = (a, b, tolerance = 1e-12) => assert.ok(Math.abs(a - b) < tolerance, `${a} is not ${b}`);

/** Cliff's delta by its definition. */
function plainDelta(values, marks) {
  const of = (bit) => values.filter((x, i) => marks[i] & bit && !Number.isNaN(x));
  const [a, b] = [of(1), of(2)];
  let wins = 0;
  a.forEach((x) => b.forEach((y) => (wins += Math.sign(x - y))));
  return wins / (a.length * b.length);
}

test("rows are of A, of B, of both or of neither; without B, of the rest", () => {
  assert.deepEqual([...membership([1, 2], [2, 3], 5)], [0, 1, 3, 2, 0]);
  const marks = membership([1, 2], null, 5);
  assert.deepEqual([...marks], [2, 1, 1, 2, 2]);
  assert.deepEqual(sizesOf(marks), [2, 3]);
});

test("the effect of numbers is Cliff's delta, ties and missing values and all", () => {
  const values = Float64Array.from({ length: 300 }, (_, i) => (i % 17 === 0 ? NaN : Math.round(8 * Math.sin(i * i)) + (i > 200 ? 2 : 0)));
  const rows = [...Array(120).keys()].map((i) => 300 - 1 - 2 * i);
  for (const marks of [membership(rows, null, 300), membership(rows, [...Array(60).keys()], 300)]) {
    const { effect, a } = effectOf({ kind: "number", values }, marks);
    near(effect, plainDelta(values, marks));
    const known = rows.filter((row) => !Number.isNaN(values[row])).map((row) => values[row]);
    near(a, known.reduce((x, y) => x + y) / known.length, 1e-9);
  }
  assert.equal(effectOf({ kind: "number", values: Float32Array.of(5, 1, 2) }, membership([0], null, 3)).effect, 1);
  assert.equal(effectOf({ kind: "number", values: Float32Array.of(NaN, 1, 2) }, membership([0], null, 3)).effect, 0);
});

test("of many different numbers the effect is right to a thousandth", () => {
  const n = 30000;
  const values = Float64Array.from({ length: n }, (_, i) => Math.exp(3 * Math.sin(i * 1.7) + Math.sin(i * 0.001)));
  const rows = [...Array(n).keys()].filter((i) => Math.sin(i * 0.001) > 0.2 && i % 40 === 0);
  const marks = membership(rows, [...Array(n).keys()].filter((i) => i % 40 === 7), n);
  near(effectOf({ kind: "number", values }, marks).effect, plainDelta(values, marks), 1e-3);
});

test("the effect of categories is half the sum of differences of shares, of known values", () => {
  const codes = Uint8Array.of(1, 1, 2, 3, 0, 1, 2, 2, 3, 0);
  const { effect, a, b, label } = effectOf({ kind: "category", codes, labels: ["x", "y", "z"] }, membership([0, 1, 2, 3, 4], null, 10));
  near(effect, (Math.abs(2 / 4 - 1 / 4) + Math.abs(1 / 4 - 2 / 4)) / 2);
  assert.deepEqual([a, b, label], [0.5, 0.25, "x"]);
  const two = { kind: "category", codes: Uint8Array.of(1, 2, 2, 1), labels: ["f", "t"] };
  const marks = membership([1, 2], null, 4);
  near(effectOf(two, marks).effect, effectOf({ kind: "number", values: two.codes }, marks).effect); // both scales agree
});

const dense = [[0, 3, 0, 1], [5, 0, 0, 2], [0, 0, 0, 0], [1, -1, 0, 2], [0, 3, 0, 2]];
const genes = createGenes({
  names: ["Ins1", "Gcg", "ins2", "constructor"],
  starts: Uint32Array.of(0, 2, 5, 5, 9), gaps: Uint8Array.of(2, 2, 1, 3, 1, 1, 1, 2, 1), values: Float32Array.of(5, 1, 3, -1, 3, 1, 2, 2, 2),
}, 5);

test("a gene's column is that of the matrix, and its effect that of the column", () => {
  const marks = membership([1, 3], null, 5);
  genes.names.forEach((_, gene) => {
    const column = genes.column(gene);
    assert.deepEqual([...column.values], dense.map((row) => row[gene]));
    const effect = geneEffect(genes, gene, marks, sizesOf(marks));
    const plain = effectOf(column, marks);
    near(effect.effect, plain.effect);
    near(effect.a, plain.a);
    near(effect.b, plain.b);
  });
  assert.equal(geneEffect(genes, 0, marks, [2, 3]).shareA, 1);
});

test("genes are found by name, whole names first", () => {
  assert.deepEqual(findGenes(genes, "INS", 9).map(({ name }) => name), ["Ins1", "ins2"]);
  assert.deepEqual(findGenes(genes, "ins2", 9).map(({ exact }) => exact), [true]);
  assert.deepEqual(findGenes(null, "x", 9), []);
});

test("sets have names of their own", () => {
  const a = fromRows([1, 2], 5);
  const sets = kept(kept([], a), fromRows([0], 5));
  assert.deepEqual(sets.map(({ name }) => name), ["A", "B"]);
  assert.equal(freeName(dropped(sets, "A")), "A");
  assert.deepEqual(renamed(sets, "A", " stem ").map(({ name }) => name), ["stem", "B"]);
  assert.equal(renamed(sets, "A", "B"), sets);
  assert.equal(renamed(sets, "A", "  "), sets);
  assert.deepEqual(Object.keys(toNamedRows(fromNamedRows({ x: [3] }, 5))), ["x"]);
});

test("the saved list disarms names that a spreadsheet would take for formulas", () => {
  const text = toTable([{ name: "=1+1", kind: "gene", effect: -0.5, raw: 12.5, score: 10, a: 1, b: 2, shareA: 0.5, shareB: 1 }], ["A", "-B"]);
  assert.equal(text.split("\r\n")[1], "'=1+1,gene,-0.5,12.5,10,1,2,,0.5,1");
});

test("rates of false discoveries are Benjamini and Hochberg's, and do not rise with surprise", () => {
  const p = [0.01, 0.04, 0.03, 0.005, 1];
  const expected = [0.025, 0.05, 0.05, 0.025, 1];
  [...adjusted(p.map((value) => -Math.log10(value)))].forEach((score, i) => near(10 ** -score, expected[i], 1e-9));
  assert.equal(adjusted([]).length, 0);
});

test("a probability is written as a reader knows it, however small", () => {
  assert.deepEqual([0, 1.30103, 2.999, 14.69897, 15.01, 400].map(probability), ["1", "0.05", "0.001", "2e−15", "1e−15", "1e−400"]);
});

test("the picture has every entry, and names the outstanding ones of both sides", () => {
  const entries = [
    { name: "up", effect: 0.9, score: 30 }, { name: "down", effect: -0.8, score: 20 },
    { name: "weak", effect: 0.05, score: 9 }, { name: "by chance", effect: 0.5, score: 0.4 },
  ];
  const places = positionsOf(entries);
  assert.ok(places[0][0] > places[3][0] && places[3][0] > places[2][0] && places[2][0] > places[1][0]);
  assert.ok(places[0][1] < places[1][1] && places[1][1] < places[2][1] && places[2][1] < places[3][1]); // upwards is smaller
  assert.deepEqual(outstanding(entries), [0, 1]);
});
