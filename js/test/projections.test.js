import assert from "node:assert/strict";
import { test } from "node:test";
import { PROJECTIONS, place, unplace } from "../src/geometry/projections.js";
import { extents } from "../src/geometry/camera.js";

const DEGREE = Math.PI / 180;
const at = (longitude, latitude) => [
  Math.cos(latitude) * Math.cos(longitude), Math.cos(latitude) * Math.sin(longitude), Math.sin(latitude),
];
const near = (a, b, tolerance) => assert.ok(Math.abs(a - b) < tolerance, `${a} is not ${b}`);

test("Mercator of known places", () => {
  const out = place([], ...at(30 * DEGREE, 60 * DEGREE), 1, "mercator");
  near(out[0], Math.PI / 6, 1e-12);
  near(out[1], Math.log(Math.tan(75 * DEGREE)), 1e-12); // ln tan(45 + 60/2)
});

test("Equal Earth of known places", () => {
  // x = 2 sqrt(3) lambda / (3 A1) on the equator; the pole's height from the published polynomial.
  near(place([], ...at(Math.PI - 1e-9, 0), 1, "equal_earth")[0], 2.7066299836, 1e-6);
  near(place([], ...at(0, 89.9999999 * DEGREE), 1, "equal_earth")[1], 1.3173627591, 1e-6);
});

test("Equal Earth keeps areas", () => {
  const h = 1e-4;
  for (const [longitude, latitude] of [[0.3, 0.1], [2, 1.2], [-1, -0.7]]) {
    const f = (a, b) => place([], ...at(a, b), 1, "equal_earth");
    const du = [0, 1].map((c) => (f(longitude + h, latitude)[c] - f(longitude - h, latitude)[c]) / (2 * h));
    const dv = [0, 1].map((c) => (f(longitude, latitude + h)[c] - f(longitude, latitude - h)[c]) / (2 * h));
    near((du[0] * dv[1] - du[1] * dv[0]) / Math.cos(latitude), 1, 1e-5);
  }
});

test("unplace undoes place on globe and maps", () => {
  for (const projection of Object.keys(PROJECTIONS)) {
    for (const unfold of [0, 1]) {
      for (const v of [at(0.4, -0.9), at(-1.5, 1.3), at(0, 0)]) {
        const [x, y] = place([], ...v, unfold, projection);
        unplace(x, y, unfold, projection).forEach((part, c) => near(part, v[c], 1e-9));
      }
    }
  }
  assert.equal(unplace(0.9, 0.9, 0, "mercator"), null);
  assert.equal(unplace(3.2, 0, 1, "mercator"), null);
  assert.equal(unplace(2.7, 1.2, 1, "equal_earth"), null);
});

test("the poles of Mercator are beyond the map, and nothing is infinite", () => {
  const out = place([], 0, 0, 1, 1, "mercator");
  assert.deepEqual([out[1], out[3]], [Math.PI, 1]);
  assert.equal(place([], ...at(0, 85 * DEGREE), 1, "mercator")[3], 0);
  assert.equal(place([], 0, 0, -1, 1, "equal_earth")[3], 0);
});

test("unfolding starts at the globe, ends at the map and moves without a jump", () => {
  for (const projection of Object.keys(PROJECTIONS)) {
    const v = at(2.2, 0.8);
    const globe = place([], ...v, 0, projection);
    const barely = place([], ...v, 1e-7, projection);
    near(globe[0], barely[0], 1e-5);
    near(globe[1], barely[1], 1e-5);
    assert.equal(Math.sign(globe[2]), Math.sign(barely[2]));
    const map = place([], ...v, 1, projection);
    const nearly = place([], ...v, 1 - 1e-7, projection);
    near(map[0], nearly[0], 1e-5);
    near(map[1], nearly[1], 1e-5);
  }
});

test("the sheet stays within its extents while it unfolds", () => {
  for (const projection of Object.keys(PROJECTIONS)) {
    for (let unfold = 0; unfold <= 1; unfold += 0.1) {
      const [halfWidth, halfHeight] = extents({ unfold, projection });
      let widest = 0;
      for (let i = -200; i <= 200; i++) {
        const longitude = (i / 200) * (Math.PI - 1e-9);
        const [x, y] = place([], ...at(longitude, 1.57), unfold, projection);
        assert.ok(Math.abs(y) <= halfHeight + 1e-9 && Math.abs(x) <= halfWidth + 1e-9);
        widest = Math.max(widest, place([], ...at(longitude, 0), unfold, projection)[0]);
      }
      near(widest, halfWidth, 1e-3);
    }
  }
});
