import assert from "node:assert/strict";
import { test } from "node:test";
import { createColumns } from "../src/data/columns.js";
import { createGenes } from "../src/data/genes.js";
import { createNeighbors } from "../src/data/neighbors.js";
import { density, isoline, levelsOf } from "../src/draw/contours.js";
import { wrapped } from "../src/draw/labels.js";
import { readAddress, writeAddress } from "../src/state/address.js";
import { fromRows } from "../src/state/selection.js";
import { initialState } from "../src/state/state.js";

const whole = [1, 0, 0];
const home = { rotation: [0, 0, 0], globe: whole, map: { mercator: whole, equal_earth: whole } };
const colors = { dark: [[0, 0, 0]], light: [[0, 0, 0]] };
const kind = { name: "__proto__", kind: "category", role: null, colors, codes: Uint8Array.of(1, 2, 0, 1, 2, 1), labels: ["<b>", "b"] };
const size = { name: "size", kind: "number", role: null, colors, classes: null, values: Float32Array.of(0, 1, 2, 3, 4, 5) };
const level = { name: "level", kind: "number", role: null, colors, classes: [0, 1], values: Uint8Array.of(0, 1, 0, 1, 0, 1) };
const ids = { name: "id", kind: "category", role: "id", colors, codes: Uint8Array.of(1, 2, 3, 4, 5, 6), labels: [..."abcdef"] };
const genes = createGenes({ names: ["Ins1", "Gcg"], starts: Uint32Array.of(0, 1, 2), gaps: Uint8Array.of(2, 3), values: Uint8Array.of(1, 1), colors }, 6);
const columns = [kind, size, level, ids];
const dataset = {
  n: 6, columns, genes, options: { color: "size", projection: "mercator" },
  embeddings: [{ name: "a", kind: "sphere", home }, { name: "b", kind: "plane", home: { half: [1, 1] } }],
  column: (index) => columns[index] ?? (index >= 4 ? genes.column(index - 4) : undefined),
};
const reader = createColumns(dataset);
const start = initialState(dataset, "dark");
const read = (text) => readAddress(text, dataset, start, reader.get);
const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a state comes back from its address as it was", () => {
  const state = {
    ...start, layout: "globe", projection: "equal_earth", embedding: 1, map: [3, 0.25, -0.5], flat: [2, 0, 0.5],
    colorBy: 5, genes: [5], scales: new Set([2]), pins: [3, 1], size: 2, names: false, contours: true,
    filters: new Map([[0, { kind: "set", codes: new Set([0, 1]) }], [1, { kind: "range", low: 1, high: Infinity, missing: false }]]),
    selection: fromRows([1, 2, 5], 6), sets: [{ name: "constructor", selection: fromRows([4], 6) }],
  };
  const { text, left } = writeAddress(state, dataset, (index) => reader.get(index, state.scales));
  assert.match(text, /^[A-Za-z0-9_-]+$/);
  assert.equal(left, 0);
  const back = { ...start, ...read(text) };
  back.rotation.forEach((part, i) => assert.ok(Math.abs(part - state.rotation[i]) < 1e-9));
  assert.deepEqual({ ...back, rotation: 0 }, { ...state, rotation: 0 });
});

test("a selection too large for an address is left out, and said so", () => {
  const n = 9000;
  const rows = Uint32Array.from({ length: n }, (_, i) => i);
  const { text, left } = writeAddress({ ...start, selection: { rows, mask: null } }, { ...dataset, n }, dataset.column);
  assert.equal(left, n);
  assert.equal(read(text).selection.rows.length, 0);
});

test("what an address holds that does not fit is left out", () => {
  for (const text of ["", "%", "!!!", "e30", encode(null), encode([1]), encode({ version: 2 }), encode("x"), "A".repeat(5000)]) {
    assert.equal(read(text), null);
  }
  const bad = read(encode({
    version: 1, view: { rotation: [1, "2", 0], map: [1e9, 0, 0], globe: [0, 0, 0], flat: [NaN] }, layout: "toString", projection: "constructor",
    embedding: "none", color: "id", scales: ["size", 7, null], genes: ["size", "no such gene", {}],
    filters: { nothing: {}, size: { from: 3, to: 1 }, level: 5, __proto__: { in: ["<i>", 3, {}] }, id: null },
    selection: [2, -1, 5], sets: { a: "x", b: [1e9] }, pins: [1.5, -1, 9, "1", 2, 2], size: 1e300, on: { length: 3 },
  }));
  assert.deepEqual([bad.map, bad.globe, bad.flat], [whole, whole, whole]);
  assert.ok(!("layout" in bad) && !("projection" in bad) && !("embedding" in bad) && !("names" in bad));
  assert.deepEqual([bad.colorBy, bad.scales.size, bad.genes, bad.filters.size], [1, 0, [], 0]);
  assert.deepEqual([[...bad.selection.rows], bad.pins, bad.size], [[2], [2], 4]);
  assert.deepEqual(bad.sets.map(({ selection }) => selection.rows.length), [0, 0]);
});

test("neighbours know which of them are torn away, by embedding", () => {
  const neighbors = createNeighbors({ starts: Uint32Array.of(0, 2, 2, 12), rows: Uint8Array.of(1, 2, ...Array(10).keys()), torn: [Uint8Array.of(0b10, 0b1000), Uint8Array.of(0, 0)] });
  assert.deepEqual(neighbors.of(0, 0), [{ row: 1, torn: false }, { row: 2, torn: true }]);
  assert.deepEqual(neighbors.of(1, 0), []);
  assert.deepEqual(neighbors.of(2, 0).map(({ torn }) => torn).indexOf(true), 9);
  assert.ok(neighbors.of(0, 1).every(({ torn }) => !torn));
});

test("contours of a round heap of points are rings about its middle, one within the other", () => {
  const rect = { x: 0, y: 0, width: 600, height: 600 };
  const spots = Array.from({ length: 40000 }, (_, i) => {
    const r = 60 * Math.sqrt(-2 * Math.log((i + 0.5) / 40000));
    return [300 + r * Math.cos(2.39996 * i), 300 + r * Math.sin(2.39996 * i)];
  });
  const field = density((row) => spots[row], [...spots.keys()], rect);
  const levels = levelsOf(field);
  assert.equal(levels.length, 4);
  const radii = levels.map((level) => isoline(field, level).map(([x, y]) => 6 * Math.hypot(x + 0.5 - 50, y + 0.5 - 50)));
  const mean = radii.map((list) => list.reduce((a, b) => a + b) / list.length);
  // Half of a normal heap of deviation s lies within 1.177 s; smoothing widens it.
  const s = Math.hypot(60, 6 * Math.sqrt(3 * 2));
  assert.ok(Math.abs(mean[1] - 1.177 * s) < 4, `${mean}`);
  assert.ok(mean.every((radius, i) => i === 0 || radius > mean[i - 1] + 5));
  radii.forEach((list, i) => list.forEach((radius) => assert.ok(Math.abs(radius - mean[i]) < 12)));
  assert.deepEqual(levelsOf(density(() => null, [0], rect)), []);
});

test("long names are wrapped, and longer ones shortened", () => {
  assert.deepEqual(wrapped("T cell"), ["T cell"]);
  assert.deepEqual(wrapped("CD8-positive, alpha-beta T cell"), ["CD8-positive,", "alpha-beta T cell"]);
  assert.deepEqual(wrapped("x".repeat(60)), ["x".repeat(22), `${"x".repeat(21)}…`]);
});
