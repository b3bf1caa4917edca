import assert from "node:assert/strict";
import { test } from "node:test";
import { createMotion } from "../src/geometry/motion.js";
import { apply, aboutAxis, toAxisAngle } from "../src/geometry/rotation.js";
import { createStore } from "../src/state/store.js";
import { fromView, toView } from "../src/state/view.js";
import { link } from "../src/widget.js";
import { createWorkload } from "../src/draw/workload.js";

const IDENTITY = [0, 0, 0, 1];

test("the store tells only of what changed", () => {
  const store = createStore({ a: 1, b: 2 });
  const told = [];
  store.subscribe((state, changed) => told.push([...changed]));
  store.set({ a: 1, b: 3 });
  store.set({ b: 3 });
  assert.deepEqual(told, [["b"]]);
});

test("a thrown globe slows down and stops", () => {
  const store = createStore({ rotation: IDENTITY });
  const motion = createMotion(store);
  motion.throwGlobe([0, 0, 1], 2);
  let steps = 0;
  while (motion.active && steps < 1000) {
    motion.step(1 / 60);
    steps++;
  }
  const { axis, angle } = toAxisAngle(store.get().rotation);
  assert.ok(steps > 60 && steps < 300);
  assert.ok(axis[2] > 0.999 && Math.abs(angle - 2 * 0.45) < 0.05); // speed times the time it falls by e
});

test("a reader who wants calm gets no spin, and arrives at once", () => {
  const store = createStore({ rotation: IDENTITY, unfold: 0 });
  const motion = createMotion(store, { calm: () => true });
  motion.throwGlobe([0, 0, 1], 5);
  motion.unfoldTo(1, (unfold) => ({ unfold }));
  assert.deepEqual([motion.active, store.get().unfold], [false, 1]);
});

test("a flight ends where it should; stop() ends it early, but not the change of the view", () => {
  const store = createStore({ rotation: IDENTITY, unfold: 0 });
  const motion = createMotion(store);
  motion.flyTo(aboutAxis([0, 0, 1], 1));
  motion.unfoldTo(1, (unfold) => ({ unfold }));
  for (let i = 0; i < 20; i++) motion.step(0.05);
  assert.ok(Math.abs(apply(store.get().rotation, [1, 0, 0])[1] - Math.sin(1)) < 1e-9);
  assert.ok(motion.changing && store.get().unfold < 1);
  motion.flyTo(aboutAxis([0, 0, 1], 2));
  motion.stop();
  assert.ok(motion.active);
  for (let i = 0; i < 20; i++) motion.step(0.05);
  assert.ok(!motion.active && store.get().unfold === 1);
  assert.ok(Math.abs(apply(store.get().rotation, [1, 0, 0])[1] - Math.sin(1)) < 1e-9);
});

test("finish() brings everything to its end at once", () => {
  const store = createStore({ rotation: IDENTITY, unfold: 0, morph: null });
  const motion = createMotion(store);
  motion.unfoldTo(1, (unfold) => ({ unfold }));
  motion.morphFrom(2);
  motion.step(0.1);
  assert.equal(store.get().morph.from, 2);
  motion.finish();
  assert.deepEqual([motion.active, store.get().unfold, store.get().morph], [false, 1, null]);
});

test("a slow machine draws fewer points while moving, a fast one all", () => {
  const work = createWorkload(1e6);
  assert.equal(work.budget, 1e6);
  work.note(1e6, 560);
  assert.equal(work.budget, 50000);
  for (let i = 0; i < 20; i++) work.note(work.budget, 2800);
  assert.equal(work.budget, 20000);
  for (let i = 0; i < 40; i++) work.note(work.budget, 0.01);
  assert.equal(work.budget, 1e6);
  const small = createWorkload(50);
  small.note(50, 500);
  assert.equal(small.budget, 50);
});

function fakeModel(values) {
  const handlers = {};
  return {
    saved: 0,
    get: (key) => values[key],
    set(key, value) {
      values[key] = value;
    },
    save_changes() {
      this.saved++;
    },
    on: (event, handler) => (handlers[event] = handler),
    off: (event) => delete handlers[event],
    tell: (event) => handlers[event]?.(),
    handlers,
  };
}

test("selection and view go both ways between widget and notebook, without an echo", async () => {
  const home = { rotation: [0, 0, 0], globe: [1, 0, 0], map: [1, 0, 0], flat: [1, 0, 0] };
  const values = { selection: new DataView(Uint32Array.of(2).buffer), view: { ...home, rotation: [0.5, 0.2, 0] }, sets: { A: new DataView(Uint32Array.of(0, 3).buffer) } };
  const model = fakeModel(values);
  const store = createStore({ ...fromView(home), selection: null, sets: [] });
  const unlink = link({ store, dataset: { n: 5 } }, model);
  assert.deepEqual([...store.get().selection.rows], [2]);
  assert.ok(Math.abs(toView(store.get()).rotation[0] - 0.5) < 1e-9);
  assert.equal(model.saved, 0);

  store.set({ selection: { rows: Uint32Array.of(1, 4), mask: null } });
  assert.deepEqual([...new Uint32Array(values.selection.buffer)], [1, 4]);
  assert.equal(model.saved, 1);

  assert.deepEqual(store.get().sets.map(({ name, selection }) => [name, ...selection.rows]), [["A", 0, 3]]);
  store.set({ sets: [{ name: "__proto__", selection: { rows: Uint32Array.of(4) } }] });
  assert.deepEqual(Object.entries(values.sets).map(([name, rows]) => [name, ...new Uint32Array(rows.buffer)]), [["__proto__", 4]]);
  assert.equal(model.saved, 2);

  store.set({ map: [3, 0.1, 0] });
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(values.view.map, [3, 0.1, 0]);

  values.view = home;
  model.tell("change:view");
  assert.deepEqual(store.get().map, [1, 0, 0]);
  assert.equal(model.saved, 3);
  unlink();
  assert.deepEqual(Object.keys(model.handlers), []);
});
