import assert from "node:assert/strict";
import { test } from "node:test";
import { ramp } from "../src/draw/color.js";
import { asCategories, createColumns } from "../src/data/columns.js";
import { suits } from "../src/draw/labels.js";
import { NO_FILTERS } from "../src/state/filter.js";
import { createModel } from "../src/state/model.js";
import { classNames } from "../src/geometry/centers.js";
import { drawOrder } from "../src/data/order.js";
import { DIM, NORMAL, STRONG, paint } from "../src/draw/paint.js";
import { createScheme } from "../src/draw/scheme.js";
import { NOTHING, fromRows } from "../src/state/selection.js";

const colors = { dark: [[9, 9, 9], [1, 0, 0], [2, 0, 0]], light: [[8, 8, 8], [0, 1, 0], [0, 2, 0]] };
const kinds = { name: "k", kind: "category", colors, codes: Uint8Array.of(1, 2, 0, 2), labels: ["a", "b"] };
const sizes = { name: "s", kind: "number", colors, classes: null, values: Float32Array.of(0, 5, NaN, 10) };

test("classes and missing values have the colours that come with their column", () => {
  assert.deepEqual(createScheme(kinds, "dark").colors, colors.dark);
  assert.deepEqual(createScheme(kinds, "light").colors, colors.light);
  assert.deepEqual(createScheme(sizes, "light").missingColor, [8, 8, 8]);
});

test("colours that are fewer than the classes come again", () => {
  const many = { ...kinds, labels: ["a", "b", "c", "d", "e"] };
  const [missing, a, b] = colors.dark;
  assert.deepEqual(createScheme(many, "dark").colors, [missing, a, b, a, b, a]);
});

test("ramps grow lighter all the way", () => {
  const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  for (const name of ["viridis", "cividis"]) {
    for (let t = 0; t < 0.99; t += 0.05) assert.ok(light(ramp(name, t + 0.05, "dark")) > light(ramp(name, t, "dark")));
  }
});

test("numbers with classes are categories in order, unless a scale is asked for", () => {
  const digits = { name: "d", kind: "number", colors, classes: [2, 7], values: Float32Array.of(7, 2, NaN, 7) };
  const { labels, codes } = asCategories(digits);
  assert.deepEqual([labels, [...codes]], [["2", "7"], [2, 1, 0, 2]]);
  const columns = createColumns({ columns: [digits], column: () => digits });
  assert.equal(createScheme(columns.get(0, new Set()), "dark").kind, "category");
  assert.equal(createScheme(columns.get(0, new Set([0])), "dark").kind, "number");
  assert.equal(asCategories(sizes), null);
});

test("outliers do not flatten the colours, and the legend knows", () => {
  const values = Float32Array.from({ length: 1000 }, (_, i) => i / 1000);
  values[5] = 1e6;
  const { low, high, min, max } = createScheme({ ...sizes, values }, "dark");
  assert.ok(low >= min && high < 1 && max === 1e6);
  const even = createScheme(sizes, "dark");
  assert.deepEqual([even.low, even.high, even.missing], [0, 10, 1]);
});

test("a column of nothing but missing values still has a scheme", () => {
  const { low, high, missing } = createScheme({ ...sizes, values: Float32Array.of(NaN, NaN) }, "light");
  assert.deepEqual([low, high, missing], [0, 0, 2]);
});

test("paint follows the order of drawing and says how strongly each point shows", () => {
  const scheme = createScheme(kinds, "dark");
  const order = Uint32Array.of(3, 0, 2, 1);
  const strength = (...rest) => [...paint(order, scheme, ...rest)].filter((_, i) => i % 4 === 3);
  const all = new Uint8Array(4).fill(1);
  const bytes = paint(order, scheme, all, null, null);
  assert.deepEqual([...bytes.slice(0, 4)], [...scheme.colors[2], NORMAL]);
  assert.deepEqual([...bytes.slice(8, 11)], scheme.colors[0]);
  assert.deepEqual(strength(Uint8Array.of(1, 1, 1, 0), null, null), [0, NORMAL, NORMAL, NORMAL]);
  assert.deepEqual(strength(all, Uint8Array.of(1, 0, 0, 0), null), [DIM, STRONG, DIM, DIM]);
  assert.deepEqual(strength(all, null, 2), [STRONG, DIM, DIM, STRONG]);
});

test("the order of drawing holds every row once and starts with a fair sample", () => {
  for (const n of [1, 2, 10, 1000, 4096]) assert.equal(new Set(drawOrder(n)).size, n);
  const early = [...drawOrder(1000).slice(0, 100)].filter((row) => row < 500).length;
  assert.ok(early >= 48 && early <= 52);
});

test("the names of selected classes come first, then the largest", () => {
  const codes = Uint8Array.of(1, 1, 1, 2, 2, 3);
  const column = { ...kinds, codes, labels: ["large", "middle", "small"] };
  const regions = [{ text: "where", at: [1, 0, 0], reach: 0.5, level: 0 }];
  const embeddings = [{ kind: "sphere", positions: new Float32Array(18).fill(Math.sqrt(1 / 3)), regions }];
  const state = { colorBy: 0, scales: new Set(), theme: "dark", filters: NO_FILTERS, selection: NOTHING, embedding: 0 };
  const dataset = { n: 6, columns: [column], column: (i) => [column][i], embeddings, options: { names: null } };
  const model = createModel(dataset, { get: () => state });
  const names = () => model.names.map(({ text }) => text);
  model.update(state, null);
  assert.deepEqual(names(), ["large", "middle", "small"]);
  model.update({ ...state, selection: fromRows([5], 6) }, new Set(["selection"]));
  assert.deepEqual(names(), ["small", "large", "middle"]);
  model.update({ ...state, colorBy: -1, selection: fromRows([5], 6) }, new Set(["colorBy"]));
  assert.deepEqual(names(), ["where"]); // no classes: regions have names
  const asked = createModel({ ...dataset, options: { names: column.name } }, { get: () => state });
  asked.update({ ...state, colorBy: -1 }, null);
  assert.deepEqual(asked.names.map(({ text }) => text), ["large", "middle", "small"]); // those asked for stay
});

test("columns that were asked for are named from coarse to fine, whatever gives the colours", () => {
  const coarse = { ...kinds, codes: Uint8Array.of(1, 1, 1, 1, 2, 2), labels: ["animals", "plants"] };
  const fine = { ...kinds, codes: Uint8Array.of(1, 1, 2, 2, 3, 3), labels: ["cats", "dogs", "oaks"] };
  const columns = [coarse, fine];
  const embeddings = [{ kind: "sphere", positions: new Float32Array(18).fill(Math.sqrt(1 / 3)), regions: [] }];
  const state = { colorBy: -1, scales: new Set(), theme: "dark", filters: NO_FILTERS, selection: NOTHING, embedding: 0 };
  const model = createModel({ n: 6, labels: [0, 1], columns, column: (i) => columns[i], embeddings, options: {} }, { get: () => state });
  model.update(state, null);
  assert.deepEqual(model.names.map(({ text, level }) => [text, level]), [["animals", 0], ["plants", 0], ["cats", 1], ["dogs", 1], ["oaks", 1]]);
  model.update({ ...state, filters: new Map([[1, { kind: "set", codes: new Set([3]) }]]) }, new Set(["filters"]));
  assert.deepEqual(model.names.map(({ text }) => text), ["animals", "plants", "oaks"]);
});

test("a finer name waits until its place is large on the screen, and a coarse one goes when one is within it", () => {
  const pane = (zoom) => ({ zoom, unfold: 1, projection: "mercator", rect: { width: 900, height: 600 } });
  const coarse = { level: 0, reach: 0.8 };
  const fine = { level: 1, reach: 0.1 };
  assert.deepEqual([1, 3, 20].map((zoom) => suits(coarse, pane(zoom), 1)), [true, true, false]);
  assert.deepEqual([1, 4, 20].map((zoom) => suits(fine, pane(zoom), 1)), [false, true, true]);
  assert.ok(suits({ reach: 0.1 }, pane(1), 0)); // names without levels are for any zoom
});

test("the name of a class on a small map is on its densest part, not between its parts", () => {
  const places = [[0.06, 60], [-0.06, 40]].flatMap(([y, n]) => Array.from({ length: n }, (_, i) => [1, y + 0.0002 * (i % 5), 0.0002 * (i % 7)]));
  const embedding = { kind: "sphere", positions: Float32Array.from(places.flat()) };
  const [{ at }] = classNames({ codes: new Uint8Array(100).fill(1), counts: [0, 100] }, embedding, drawOrder(100));
  assert.ok(Math.abs(at[1] - 0.06) < 0.01, `${at}`);
});
