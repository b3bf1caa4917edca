import assert from "node:assert/strict";
import { test } from "node:test";
import { globeHome, homeZoom, rebase } from "../src/geometry/home.js";
import { toView } from "../src/state/view.js";
import { initialState } from "../src/state/state.js";

const WORLD = { rotation: [0, 0, 0], globe: [1, 0, 0], map: { mercator: [1, 0, 0], equal_earth: [1, 0, 0] } };
const NEAR = { rotation: [0.5, -0.2, 0], globe: [1.2, 0, 0], map: { mercator: [4.8, 0.2, -0.1], equal_earth: [3, 0.1, 0] } };
const near = (a, b) => a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-9, `${a} is not ${b}`));

test("the state begins with the view that fits the data", () => {
  const state = initialState({ home: NEAR, columns: [], options: { projection: "equal_earth" } }, "dark");
  const { rotation, globe, map } = toView(state);
  near(rotation, NEAR.rotation);
  near(globe, NEAR.globe);
  near(map, NEAR.map.equal_earth);
});

test("unfolding leads from the globe's home to the map's, by equal factors", () => {
  assert.deepEqual(globeHome(NEAR, "mercator", 0), NEAR.globe);
  near(globeHome(NEAR, "mercator", 1), NEAR.map.mercator);
  near(globeHome(NEAR, "mercator", 0.5), [2.4, 0.1, -0.05]);
  for (const unfold of [0, 0.3, 1]) assert.deepEqual(globeHome(WORLD, "mercator", unfold), [1, 0, 0]);
});

test("each pane knows the zoom of its home", () => {
  assert.equal(homeZoom(NEAR, { name: "map", projection: "equal_earth", unfold: 1 }), 3);
  assert.equal(homeZoom(NEAR, { name: "globe", projection: "equal_earth", unfold: 0 }), 1.2);
});

test("a view keeps its distance from home when home moves", () => {
  near(rebase([2.4, 0.3, 0], NEAR.globe, NEAR.map.mercator), [9.6, 0.5, -0.1]);
  assert.deepEqual(rebase(NEAR.globe, NEAR.globe, NEAR.globe), NEAR.globe);
});
