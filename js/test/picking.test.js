import assert from "node:assert/strict";
import { test } from "node:test";
import { classNames, centerOf } from "../src/geometry/centers.js";
import { inside, rowsInside } from "../src/geometry/lasso.js";
import { createProjector, pick } from "../src/geometry/picking.js";
import { fromCenter } from "../src/geometry/rotation.js";
import { createPlaneIndex } from "../src/data/plane-index.js";
import { createSphereIndex } from "../src/data/sphere-index.js";

/** Points spread evenly along a spiral. */
function spiral(n) {
  const out = new Float32Array(3 * n);
  for (let i = 0; i < n; i++) {
    const z = 1 - (2 * i + 1) / n;
    const s = Math.sqrt(1 - z * z);
    out.set([s * Math.cos(2.39996 * i), s * Math.sin(2.39996 * i), z], 3 * i);
  }
  return out;
}

const n = 2000;
const positions = spiral(n);
const shown = new Uint8Array(n).fill(1);
const grid = createSphereIndex(positions);
const rotation = fromCenter([1, 0.4, 0.3]);
const scene = { positions, shown, index: () => grid };
const rect = { x: 0, y: 0, width: 500, height: 500 };
const globe = { name: "globe", rect, rotation, unfold: 0, projection: "mercator", zoom: 1, x: 0, y: 0 };
const map = { ...globe, name: "map", unfold: 1 };

test("the index finds all near points, at poles and across the seam too", () => {
  for (const v of [[0, 0, 1], [0, 0, -1], [-1, 0, 0], [0.6, -0.48, 0.64]]) {
    for (const angle of [0.02, 0.3, 1.8]) {
      const found = new Set();
      grid.near(v, angle, (row) => found.add(row));
      for (let row = 0; row < n; row++) {
        const cos = v[0] * positions[3 * row] + v[1] * positions[3 * row + 1] + v[2] * positions[3 * row + 2];
        if (Math.acos(Math.min(1, cos)) < angle) assert.ok(found.has(row), `row ${row} near ${v}`);
      }
    }
  }
});

test("the index looks at few points for a small place", () => {
  let visited = 0;
  grid.near([1, 0, 0], 0.05, () => visited++);
  assert.ok(visited < n / 20);
});

test("every visible point is picked at its own place, on globe, map and in between", () => {
  for (const pane of [globe, map, { ...map, projection: "equal_earth" }, { ...globe, unfold: 0.4 }, { ...globe, zoom: 5, x: 0.4 }]) {
    const project = createProjector(pane, positions);
    let seen = 0;
    for (let row = 0; row < n; row += 7) {
      const at = project(row);
      if (at === null) continue;
      seen++;
      const found = pick(pane, ...at, 8, scene);
      const [x, y] = project(found);
      assert.ok(Math.hypot(x - at[0], y - at[1]) < 1e-6, `row ${row} on ${pane.name}`);
    }
    assert.ok(seen > 80);
  }
});

test("hidden points, the far side and empty places are not picked", () => {
  const project = createProjector(globe, positions);
  const row = [...Array(n).keys()].find((r) => project(r) !== null);
  const none = { ...scene, shown: new Uint8Array(n) };
  assert.equal(pick(globe, ...project(row), 8, none), -1);
  assert.equal(pick(globe, 2, 2, 8, scene), -1);
  const far = [...Array(n).keys()].filter((r) => project(r) === null).length;
  assert.ok(Math.abs(far - n / 2) < 20);
});

test("inside a concave line", () => {
  const notch = [[0, 0], [10, 0], [10, 10], [5, 3], [0, 10]];
  assert.ok(inside(notch, 2, 2) && inside(notch, 9, 7) && !inside(notch, 5, 8) && !inside(notch, 11, 5));
});

test("the lasso takes what its line holds and nothing of the far side", () => {
  const square = [[200, 200], [300, 200], [300, 300], [200, 300]];
  for (const pane of [globe, map]) {
    const mask = rowsInside(square, pane, scene);
    const project = createProjector(pane, positions);
    for (let row = 0; row < n; row++) {
      const at = project(row);
      const within = at !== null && at[0] > 200 && at[0] < 300 && at[1] > 200 && at[1] < 300;
      assert.equal(mask[row], within ? 1 : 0);
    }
    assert.ok(mask.some((one) => one === 1));
  }
});

test("a name is written at the middle of the denser part of its category", () => {
  const rows = [];
  for (let row = 0; row < n; row++) if (positions[3 * row + 2] > 0.95) rows.push(row, row);
  for (let row = 0; row < n; row++) if (positions[3 * row + 2] < -0.97) rows.push(row);
  const sphere = { kind: "sphere", positions };
  assert.ok(centerOf(rows, sphere)[2] > 0.99);
  const codes = Uint8Array.from({ length: n }, (_, row) => (positions[3 * row] > 0.9 ? 1 : positions[3 * row] < -0.8 ? 2 : 0));
  const counts = [0, 1, 2].map((code) => codes.filter((c) => c === code).length);
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  const centers = classNames({ codes, counts }, sphere, order).filter(({ home }) => home === null);
  assert.deepEqual(centers.map(({ code }) => code), [2, 1]);
  assert.ok(centers[0].at[0] < -0.98 && centers[1].at[0] > 0.98);
});

test("a class in two parts has two places for its name, the larger first", () => {
  const codes = Uint8Array.from({ length: n }, (_, row) => (positions[3 * row + 2] > 0.93 || positions[3 * row + 2] < -0.96 ? 1 : 0));
  const counts = [0, 1].map((code) => codes.filter((c) => c === code).length);
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  const [first, second, ...rest] = classNames({ codes, counts }, { kind: "sphere", positions }, order);
  assert.ok(first.at[2] > 0.99 && first.home === null);
  assert.ok(second.at[2] < -0.99 && second.home === first.at);
  assert.equal(rest.length, 0);
});

test("points of the plane are picked at their own place", () => {
  const flat = Float32Array.from({ length: 3 * n }, (_, i) => (i % 3 === 2 ? 0 : Math.sin(i * i)));
  const index = createPlaneIndex(flat);
  const pane = { name: "map", rect, rotation: [0, 0, 0, 1], unfold: 1, projection: "flat", half: [1, 1], zoom: 3, x: 0.1, y: -0.2 };
  const project = createProjector(pane, flat);
  for (let row = 0; row < n; row += 13) {
    const [x, y] = project(pick(pane, ...project(row), 6, { positions: flat, shown, index: () => index }));
    assert.ok(Math.hypot(x - project(row)[0], y - project(row)[1]) < 1e-6);
  }
});
