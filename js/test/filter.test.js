import assert from "node:assert/strict";
import { test } from "node:test";
import { fullHeight } from "../src/panels/histogram.js";
import { binsOf, createColumns, occurring } from "../src/data/columns.js";
import { createCrossfilter } from "../src/state/crossfilter.js";
import { NO_FILTERS, isolated, passing, ranged, toggled, withFilter } from "../src/state/filter.js";
import { createHistory } from "../src/state/history.js";
import { createStore } from "../src/state/store.js";

const kinds = { name: "k", kind: "category", codes: Uint8Array.of(1, 2, 0, 2, 1), labels: ["a", "b", "none"] };
const sizes = { name: "s", kind: "number", values: Float32Array.of(0, 5, NaN, 10, 5) };

test("values are hidden, shown alone and shown again", () => {
  const codes = occurring(binsOf(kinds).all);
  assert.deepEqual(codes, [1, 2, 0]);
  const without = toggled(undefined, 2, codes);
  assert.deepEqual([...passing(kinds, without, 5)], [1, 0, 1, 0, 1]);
  assert.equal(toggled(without, 2, codes), null);
  const alone = isolated(undefined, 0);
  assert.deepEqual([...passing(kinds, alone, 5)], [0, 0, 1, 0, 0]);
  assert.equal(isolated(alone, 0), null);
  assert.deepEqual([...isolated(without, 1).codes], [1]);
});

test("a range leaves its upper end out, unless it has none", () => {
  assert.deepEqual([...passing(sizes, ranged(5, 10, false), 5)], [0, 1, 0, 0, 1]);
  assert.deepEqual([...passing(sizes, ranged(5, Infinity, true), 5)], [0, 1, 1, 1, 1]);
  assert.equal(ranged(-Infinity, Infinity, true), null);
});

test("taking the last filter away leaves none", () => {
  const one = withFilter(NO_FILTERS, 3, isolated(undefined, 1));
  assert.equal(one.size, 1);
  assert.equal(withFilter(one, 3, null), NO_FILTERS);
  assert.equal(NO_FILTERS.size, 0);
});

test("a chart counts what the other columns let through; random filters agree with a plain count", () => {
  const n = 500;
  const draw = (k) => Math.abs(Math.round(1e6 * Math.sin(k * 12.9898))) % 1000;
  const columns = [0, 1, 2].map((c) => ({
    name: String(c), kind: "category", labels: ["a", "b", "c"], codes: Uint8Array.from({ length: n }, (_, i) => draw(7 * i + c) % 4),
  }));
  const cross = createCrossfilter(n, (index) => columns[index]);
  let filters = NO_FILTERS;
  for (let round = 0; round < 30; round++) {
    const column = draw(round) % 3;
    const codes = new Set([0, 1, 2, 3].filter((code) => draw(round * 5 + code) % 2));
    filters = withFilter(filters, column, codes.size === 4 || round % 7 === 0 ? null : { kind: "set", codes });
    const shown = cross.update(filters);
    const passes = (row, but) => [...filters].every(([c, filter]) => c === but || filter.codes.has(columns[c].codes[row]));
    const rows = [...Array(n).keys()];
    assert.equal(shown, rows.filter((row) => passes(row, null)).length);
    const mask = Uint8Array.from(rows, (row) => draw(row) % 2);
    columns.forEach((one, c) => {
      const plain = (extra) => [0, 1, 2, 3].map((code) => rows.filter((row) => one.codes[row] === code && passes(row, c) && extra(row)).length);
      assert.deepEqual([...cross.counts(c, binsOf(one))], plain(() => true));
      assert.deepEqual([...cross.counts(c, binsOf(one), mask)], plain((row) => mask[row]));
    });
  }
});

test("bins hold every number, whole ones a bin each, and outliers the last", () => {
  const whole = binsOf({ kind: "number", values: Uint8Array.of(3, 4, 4, 7) });
  assert.deepEqual([whole.bars, [...whole.all]], [5, [0, 1, 2, 0, 0, 1]]);
  const many = Float64Array.from({ length: 1000 }, (_, i) => i / 1000);
  many[5] = 1e6;
  const bins = binsOf({ kind: "number", values: many });
  assert.equal(bins.all.reduce((a, b) => a + b), 1000);
  assert.ok(bins.range.high < 1 && bins.range.max === 1e6 && bins.all[bins.bars] > 0);
  const shares = binsOf({ kind: "number", values: Float32Array.from({ length: 60 }, (_, i) => (i % 11) / 10) });
  assert.deepEqual([shares.bars, Math.min(...shares.all.subarray(1))], [11, 5]); // a bar each, and none between
  const same = binsOf({ kind: "number", values: Float32Array.of(0.5, 0.5, NaN) });
  assert.deepEqual([same.bars, [...same.all]], [1, [1, 2]]);
  const infinite = binsOf({ kind: "number", values: Float32Array.of(-Infinity, 0.25, 0.75, Infinity) });
  assert.equal(infinite.all[1] + infinite.all[infinite.bars], 4);
});

test("columns are read as asked for, and remember it", () => {
  const digits = { name: "d", kind: "number", classes: [2, 7], values: Float32Array.of(7, 2, NaN, 7) };
  const columns = createColumns({ columns: [digits, sizes], column: (i) => [digits, sizes][i] });
  assert.equal(columns.get(0, new Set()), columns.get(0, new Set()));
  assert.equal(columns.get(0, new Set([0])), digits);
  assert.deepEqual([columns.hasChoice(0), columns.hasChoice(1)], [true, false]);
});

test("undo goes back step by step, redo forward, and a brush is one step", () => {
  let time = 0;
  const only = (column, value) => new Map([[column, value]]);
  const store = createStore({ filters: NO_FILTERS, pins: 0, hover: 0, map: 0 });
  const told = [];
  const history = createHistory(store, { onchange: ({ canUndo, canRedo }) => told.push([canUndo, canRedo]), now: () => time });
  store.set({ hover: 5 });
  history.undo();
  assert.equal(store.get().hover, 5);
  for (time = 0; time < 400; time += 50) store.set({ filters: only(1, time) });
  const brushed = store.get().filters;
  store.set({ filters: new Map([...brushed, [2, "at once"]]) }); // of another column: another step
  history.undo();
  assert.equal(store.get().filters, brushed);
  time = 5000;
  store.set({ map: 3 });
  store.set({ pins: 2 });
  history.undo();
  assert.deepEqual(store.get(), { filters: brushed, pins: 0, hover: 5, map: 3 });
  history.undo();
  assert.deepEqual([store.get().filters, store.get().map], [NO_FILTERS, 0]);
  history.redo();
  history.redo();
  assert.deepEqual(store.get(), { filters: brushed, pins: 2, hover: 5, map: 3 });
  history.step(() => store.set({ map: 9, filters: NO_FILTERS, pins: 9 }));
  history.undo();
  assert.deepEqual(store.get(), { filters: brushed, pins: 2, hover: 5, map: 3 });
  assert.deepEqual(told.at(-1), [true, true]);
});

test("a bar that dominates is cut, so that the others are seen", () => {
  assert.equal(fullHeight([1000, 20, 10, 0]), 30);
  assert.equal(fullHeight([90, 20, 10, 0]), 90);
  assert.equal(fullHeight([1000, 0, 0]), 1000);
  assert.equal(fullHeight([0, 0]), 1);
});
