// The background of the points: the globe or the sheet of the map, and its lines.
import { createBuffer, createProgram, setFrame } from "./gl.js";
import { PROJECTIONS } from "../geometry/projections.js";
import { BODY_FRAGMENT, BODY_VERTEX, LINES_FRAGMENT, LINES_VERTEX } from "./shaders.js";

const DEGREE = Math.PI / 180;
const IDENTITY = [1, 0, 0, 0, 1, 0, 0, 0, 1];

function at(longitude, latitude) {
  const c = Math.cos(latitude);
  return [c * Math.cos(longitude), c * Math.sin(longitude), Math.sin(latitude)];
}

function polyline(segments, count, point) {
  for (let i = 0; i < count; i++) segments.push(...point(i / count), ...point((i + 1) / count));
}

function meridian(segments, longitude, limit) {
  polyline(segments, 72, (t) => at(longitude, (2 * t - 1) * limit));
}

function parallel(segments, latitude) {
  polyline(segments, 144, (t) => at((2 * t - 1) * Math.PI, latitude));
}

/** Segments of the graticule every 15 degrees; the equator and zero meridian are separate. */
export function graticule() {
  const fine = [];
  const strong = [];
  for (let degrees = -180; degrees < 180; degrees += 15) {
    // Only every third meridian reaches the pole, where lines would merge.
    if (degrees !== 0) meridian(fine, degrees * DEGREE, (degrees % 45 === 0 ? 89.99 : 75) * DEGREE);
  }
  for (let degrees = -75; degrees <= 75; degrees += 15) {
    parallel(degrees === 0 ? strong : fine, degrees * DEGREE);
  }
  meridian(strong, 0, 89.99 * DEGREE);
  return { fine: new Float32Array(fine), strong: new Float32Array(strong) };
}

/** The globe's limb, and the border of each map, in the view's frame. */
function outlines() {
  const limb = [];
  polyline(limb, 180, (t) => [1e-6, Math.cos(2 * Math.PI * t), Math.sin(2 * Math.PI * t)]);
  const borders = Object.values(PROJECTIONS).map(({ halfHeight, latitude }) => {
    const limit = Math.min(latitude(halfHeight), 89.999 * DEGREE);
    const border = [];
    for (const side of [-1, 1]) {
      meridian(border, side * (Math.PI - 1e-5), limit);
      polyline(border, 144, (t) => at((2 * t - 1) * (Math.PI - 1e-5), side * limit));
    }
    return new Float32Array(border);
  });
  return { limb: new Float32Array(limb), borders };
}

function bodyMesh() {
  const [columns, rows] = [72, 36];
  const vertices = [];
  const triangles = [];
  for (let j = 0; j <= rows; j++) {
    // Slightly inside the poles and the seam, so that every corner has a longitude.
    const latitude = (j / rows - 0.5) * (Math.PI - 2e-4);
    for (let i = 0; i <= columns; i++) vertices.push(...at((2 * (i / columns) - 1) * (Math.PI - 1e-5), latitude));
  }
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const a = j * (columns + 1) + i;
      const b = a + columns + 1;
      triangles.push(a, a + 1, b, b, a + 1, b + 1);
    }
  }
  return { vertices: new Float32Array(vertices), triangles: new Uint16Array(triangles) };
}

function createBody(gl) {
  const { program, uniforms } = createProgram(gl, BODY_VERTEX, BODY_FRAGMENT);
  const { vertices, triangles } = bodyMesh();
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  createBuffer(gl, vertices);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  createBuffer(gl, triangles, gl.ELEMENT_ARRAY_BUFFER);
  gl.bindVertexArray(null);
  return (placement, { side, center, edge, alpha }) => {
    gl.useProgram(program);
    setFrame(gl, uniforms, "u_now", { ...placement, rotation: IDENTITY });
    gl.uniform1f(uniforms.u_side, side);
    gl.uniform3fv(uniforms.u_center, center);
    gl.uniform3fv(uniforms.u_edge, edge);
    gl.uniform1f(uniforms.u_alpha, alpha);
    gl.bindVertexArray(array);
    gl.drawElements(gl.TRIANGLES, triangles.length, gl.UNSIGNED_SHORT, 0);
  };
}

/** Four corners per segment: its two ends, and the index of the corner. */
export function ribbons(segments) {
  const count = segments.length / 6;
  const vertices = new Float32Array(count * 4 * 8);
  const triangles = new Uint16Array(count * 6);
  const corners = [[0, -1], [1, -1], [0, 1], [1, 1]];
  for (let i = 0; i < count; i++) {
    const ends = segments.subarray(6 * i, 6 * i + 6);
    corners.forEach((corner, c) => {
      vertices.set(ends, 8 * (4 * i + c));
      vertices.set(corner, 8 * (4 * i + c) + 6);
    });
    triangles.set([0, 1, 2, 2, 1, 3].map((c) => 4 * i + c), 6 * i);
  }
  return { vertices, triangles };
}

function createLines(gl) {
  const { program, uniforms } = createProgram(gl, LINES_VERTEX, LINES_FRAGMENT);

  // Not instanced: software renderers make a draw call per instance of four corners.
  function prepare(segments) {
    const { vertices, triangles } = ribbons(segments);
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    createBuffer(gl, vertices);
    [[3, 0], [3, 12], [2, 24]].forEach(([size, offset], location) => {
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, size, gl.FLOAT, false, 32, offset);
    });
    createBuffer(gl, triangles, gl.ELEMENT_ARRAY_BUFFER);
    gl.bindVertexArray(null);
    return { array, count: triangles.length };
  }

  function draw({ array, count }, placement, { side, width, color, viewport }) {
    gl.useProgram(program);
    setFrame(gl, uniforms, "u_now", placement);
    gl.uniform1f(uniforms.u_side, side);
    gl.uniform1f(uniforms.u_width, width);
    gl.uniform4fv(uniforms.u_color, color);
    gl.uniform2fv(uniforms.u_viewport, viewport);
    gl.bindVertexArray(array);
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_SHORT, 0);
  }

  return { prepare, draw };
}

export function createGround(gl) {
  const drawBody = createBody(gl);
  const lines = createLines(gl);
  const { fine, strong } = graticule();
  const { limb, borders } = outlines();
  const ready = {
    fine: lines.prepare(fine),
    strong: lines.prepare(strong),
    limb: lines.prepare(limb),
    borders: borders.map(lines.prepare),
  };
  const faded = ([r, g, b, a], by) => [r, g, b, a * by];

  return {
    body: drawBody,
    graticule(placement, { side, colors, viewport, ratio }) {
      const by = side < 0 ? 0.4 : 1;
      const width = Math.max(1, 0.8 * ratio);
      lines.draw(ready.fine, placement, { side, width, color: faded(colors.line, by), viewport });
      lines.draw(ready.strong, placement, { side, width: 1.3 * width, color: faded(colors.strongLine, by), viewport });
    },
    outline(placement, { colors, viewport, ratio }) {
      const { unfold } = placement;
      const width = Math.max(1, 1.2 * ratio);
      const draw = (line, by) =>
        by > 0 && lines.draw(line, { ...placement, rotation: IDENTITY }, { side: 1, width, color: faded(colors.outline, by), viewport });
      draw(ready.limb, Math.max(0, 1 - 3 * unfold));
      draw(ready.borders[placement.projectionIndex], unfold);
    },
  };
}
