import assert from "node:assert/strict";
import { test } from "node:test";
import { between, homeZoom, isHome, sphereHome } from "../src/geometry/home.js";
import { toView } from "../src/state/view.js";
import { initialState } from "../src/state/state.js";

const WORLD = { rotation: [0, 0, 0], globe: [1, 0, 0], map: { mercator: [1, 0, 0], equal_earth: [1, 0, 0] } };
const NEAR = { rotation: [0.5, -0.2, 0], globe: [1.2, 0, 0], map: { mercator: [4.8, 0.2, -0.1], equal_earth: [3, 0.1, 0] } };
const near = (a, b) => a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-9, `${a} is not ${b}`));

test("the state begins with the view that fits the data", () => {
  const state = initialState({ embeddings: [{ kind: "plane" }, { kind: "sphere", home: NEAR }], columns: [], options: { projection: "equal_earth" } }, "dark");
  const { rotation, globe, map } = toView(state);
  near(rotation, NEAR.rotation);
  near(globe, NEAR.globe);
  near(map, NEAR.map.equal_earth);
});

test("without an embedding on the sphere, its home is the whole world", () => {
  assert.deepEqual(sphereHome({ embeddings: [{ kind: "plane" }] }), WORLD);
});

test("a view is home where nothing of it was moved", () => {
  const view = { rotation: [0.5, -0.2, 0], globe: [1.2, 0, 0], map: [4.8, 0.2, -0.1] };
  assert.ok(isHome(view, NEAR, "mercator"));
  assert.ok(!isHome(view, NEAR, "equal_earth"));
  assert.ok(!isHome({ ...view, rotation: [0.5, -0.25, 0] }, NEAR, "mercator"));
  assert.ok(!isHome({ ...view, map: [5.2, 0.2, -0.1] }, NEAR, "mercator"));
});

test("unfolding leads from the globe's view to the map's, by equal factors", () => {
  near(between(NEAR.globe, NEAR.map.mercator, 0), NEAR.globe);
  near(between(NEAR.globe, NEAR.map.mercator, 1), NEAR.map.mercator);
  near(between(NEAR.globe, NEAR.map.mercator, 0.5), [2.4, 0.1, -0.05]);
});

test("each pane knows the zoom of its home", () => {
  const sphere = { kind: "sphere", home: NEAR };
  assert.equal(homeZoom(sphere, { name: "map", projection: "equal_earth", unfold: 1 }), 3);
  assert.equal(homeZoom(sphere, { name: "globe", projection: "equal_earth", unfold: 0 }), 1.2);
  assert.equal(homeZoom({ kind: "plane", home: {} }, { name: "map", projection: "flat", unfold: 1 }), 1);
});
