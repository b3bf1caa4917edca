import assert from "node:assert/strict";
import { test } from "node:test";
import { keepInView, pixelsPerUnit, toPlane, toScreen, zoomAbout } from "../src/geometry/camera.js";
import { panned, turned } from "../src/ui/gestures.js";
import { panes } from "../src/geometry/layout.js";
import { place, unplace } from "../src/geometry/projections.js";
import { apply } from "../src/geometry/rotation.js";

const IDENTITY = [0, 0, 0, 1];
const pane = { name: "map", rect: { x: 100, y: 20, width: 400, height: 300 }, unfold: 1, projection: "mercator", zoom: 2, x: 0.3, y: -0.2 };
const globe = { ...pane, name: "globe", unfold: 0 };
const near = (a, b) => a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-9, `${a} is not ${b}`));

test("toPlane undoes toScreen, and the pane's middle is its (x, y)", () => {
  near(toPlane(pane, ...toScreen(pane, 1.1, 0.7)), [1.1, 0.7]);
  near(toPlane(pane, 300, 170), [0.3, -0.2]);
});

test("zooming keeps the place under the pointer", () => {
  const before = toPlane(pane, 210, 80);
  const [zoom, x, y] = zoomAbout(pane, 1.7, 210, 80);
  near(toPlane({ ...pane, zoom, x, y }, 210, 80), before);
  assert.equal(zoom, 3.4);
});

test("zoom and pan have limits", () => {
  const [zoom, x, y] = keepInView(pane, [1e9, 99, -99]);
  assert.ok(zoom < 1000 && x <= Math.PI && y >= -Math.PI);
});

test("panning moves the plane with the pointer", () => {
  const before = toPlane(pane, 200, 100);
  const [, x, y] = panned(pane, [200, 100], [230, 90]);
  near(toPlane({ ...pane, x, y }, 230, 90), before);
});

test("a drag on the globe keeps the place under the pointer", () => {
  const [from, to] = [[300, 150], [360, 110]];
  const grabbed = unplace(...toPlane(globe, ...from), 0, "mercator");
  const rotation = turned(globe, IDENTITY, from, to);
  const [, y, z] = apply(rotation, grabbed);
  near(toScreen(globe, y, z), to);
});

test("a drag across the map turns it by as much", () => {
  const rotation = turned(pane, IDENTITY, [200, 100], [240, 100]);
  const [x] = place([], ...apply(rotation, [1, 0, 0]), 1, "mercator");
  near([x], [40 / pixelsPerUnit(pane)]);
  const up = turned(pane, IDENTITY, [200, 100], [200, 70]);
  assert.ok(place([], ...apply(up, [1, 0, 0]), 1, "mercator")[1] > 0);
});

test("panes lie side by side on a wide stage and stacked on a tall one", () => {
  const state = { layout: "both", unfold: 0, projection: "mercator", globe: [1, 0, 0], map: [1, 0, 0] };
  const [a, b] = panes(state, 1000, 600);
  assert.deepEqual([a.rect, b.rect], [{ x: 0, y: 0, width: 500, height: 600 }, { x: 500, y: 0, width: 500, height: 600 }]);
  const [c, d] = panes(state, 400, 800);
  assert.deepEqual([c.rect.height, d.rect.y], [400, 400]);
  assert.deepEqual(panes({ ...state, layout: "map" }, 400, 300).map(({ name }) => name), ["map"]);
  const [e, f] = panes({ ...state, projection: "equal_earth" }, 1000, 600);
  assert.ok(f.rect.width > e.rect.width && Math.abs(e.rect.width + f.rect.width - 1000) < 1e-9);
});
