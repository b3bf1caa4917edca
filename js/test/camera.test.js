import assert from "node:assert/strict";
import { test } from "node:test";
import { keepInView, pixelsPerUnit, toPlane, toScreen, zoomAbout } from "../src/geometry/camera.js";
import { panned, turned } from "../src/ui/gestures.js";
import { insetPlace, insetRect, paneAt, panes } from "../src/geometry/layout.js";
import { place, unplace } from "../src/geometry/projections.js";
import { apply } from "../src/geometry/rotation.js";

const IDENTITY = [0, 0, 0, 1];
const pane = { name: "map", rect: { x: 100, y: 20, width: 400, height: 300 }, unfold: 1, projection: "mercator", zoom: 2, x: 0.3, y: -0.2, rotation: IDENTITY };
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

const SPHERE = { kind: "sphere" };
const state = {
  layout: "map", inset: true, insetAt: [0, 1], unfold: 0, projection: "mercator", rotation: IDENTITY,
  globe: [1, 0, 0], map: [4, 0.1, 0.2], flat: [2, 0.5, 0],
};

test("the large view fills the stage, and the other is an inset that shows all of it", () => {
  const [large, small] = panes(state, SPHERE, 1000, 600);
  assert.deepEqual([large.name, large.zoom, large.rect], ["map", 4, { x: 0, y: 0, width: 1000, height: 600 }]);
  assert.deepEqual([small.name, small.zoom, small.unfold], ["globe", 1, 0]);
  assert.ok(small.rect.x < 20 && small.rect.y + small.rect.height > 580);
  assert.equal(paneAt([large, small], [30, 580]).name, "globe");
  assert.equal(paneAt([large, small], [500, 300]).name, "map");
  assert.deepEqual(panes({ ...state, layout: "globe" }, SPHERE, 1000, 600).map(({ name }) => name), ["globe", "map"]);
  assert.equal(panes({ ...state, inset: false }, SPHERE, 1000, 600).length, 1);
});

test("on the way the large globe's view lies between both homes", () => {
  const [large] = panes({ ...state, layout: "globe", unfold: 0.5 }, SPHERE, 1000, 600);
  near([large.zoom, large.x, large.y], [2, 0.05, 0.1]);
});

test("a planar embedding is shown on the map alone, with a view of its own", () => {
  const list = panes(state, { kind: "plane", home: { half: [1, 0.5] } }, 1000, 600);
  assert.deepEqual(list.map(({ name, projection, zoom, x }) => [name, projection, zoom, x]), [["map", "flat", 2, 0.5]]);
  near(toScreen({ ...list[0], zoom: 1, x: 0 }, 1, 0), [500 + 0.92 * 500, 300]); // the wider side fills the pane
});

test("an inset goes where it is put, and stays on the stage", () => {
  const rect = insetRect([0.25, 0.5], 1000, 600);
  near(insetPlace(rect.x, rect.y, 1000, 600), [0.25, 0.5]);
  assert.deepEqual(insetPlace(-500, 9999, 1000, 600), [0, 1]);
});
