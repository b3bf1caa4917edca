import assert from "node:assert/strict";
import { test } from "node:test";
import * as rotation from "../src/geometry/rotation.js";

const close = (a, b, tolerance = 1e-12) => a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < tolerance, `${a} is not ${b}`));
const DEGREE = Math.PI / 180;

test("a quarter turn about z takes x to y", () => {
  close(rotation.apply(rotation.aboutAxis([0, 0, 1], Math.PI / 2), [1, 0, 0]), [0, 1, 0]);
});

test("multiply applies the right one first", () => {
  const a = rotation.aboutAxis([0, 0, 1], 0.4);
  const b = rotation.aboutAxis([0, 1, 0], -1.1);
  const v = [0.6, 0, 0.8];
  close(rotation.apply(rotation.multiply(a, b), v), rotation.apply(a, rotation.apply(b, v)));
});

test("between takes one vector to the other, opposite ones too", () => {
  const vectors = [[1, 0, 0], [0, 0.6, 0.8], [-1, 0, 0], [0, -0.6, -0.8], [0, 0, 1]];
  for (const a of vectors) for (const b of vectors) close(rotation.apply(rotation.between(a, b), a), b, 1e-6);
});

test("fromCenter brings a place to the front with north up", () => {
  const [longitude, latitude] = [50 * DEGREE, 30 * DEGREE];
  const q = rotation.fromCenter([longitude, latitude, 0]);
  const at = [Math.cos(latitude) * Math.cos(longitude), Math.cos(latitude) * Math.sin(longitude), Math.sin(latitude)];
  close(rotation.apply(q, at), [1, 0, 0]);
  const [, y, z] = rotation.apply(q, [0, 0, 1]);
  assert.ok(Math.abs(y) < 1e-12 && z > 0);
});

test("toCenter undoes fromCenter, and at a pole gives the same rotation", () => {
  for (const center of [[0.3, -1.2, 2.5], [-3, 0.2, -3], [0, 0, 0]]) {
    close(rotation.toCenter(rotation.fromCenter(center)), center, 1e-9);
  }
  const pole = rotation.fromCenter([0.7, Math.PI / 2, 0.4]);
  const again = rotation.fromCenter(rotation.toCenter(pole));
  close(rotation.apply(again, [0.6, 0.8, 0]), rotation.apply(pole, [0.6, 0.8, 0]), 1e-6);
});

test("interpolate goes the short way at constant speed", () => {
  const a = [0, 0, 0, 1];
  const b = rotation.aboutAxis([0, 0, 1], 1).map((part) => -part); // the same rotation, other sign
  close(rotation.apply(rotation.interpolate(a, b, 0.25), [1, 0, 0]), [Math.cos(0.25), Math.sin(0.25), 0]);
});
