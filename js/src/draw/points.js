// Draws the points: one buffer of unit vectors, one of paint, any number of panes.
import { createBuffer, createProgram, setPlace } from "./gl.js";
import { POINTS_FRAGMENT, POINTS_VERTEX } from "./shaders.js";

/** Diameter in CSS pixels that suits n points on a pane of some size. */
export function autoSize(n, { width, height }) {
  const room = Math.sqrt(Math.min(width, height) / 620);
  return Math.max(1.3, Math.min(8, 11 - 1.7 * Math.log10(n))) * Math.max(0.7, Math.min(1.4, room));
}

export function autoAlpha(n) {
  return Math.max(0.42, Math.min(0.92, 1.16 - 0.11 * Math.log10(n)));
}

export function createPoints(gl, positions, order) {
  const n = order.length;
  const { program, uniforms } = createProgram(gl, POINTS_VERTEX, POINTS_FRAGMENT);
  const ordered = new Float32Array(3 * n);
  for (let k = 0; k < n; k++) {
    for (let c = 0; c < 3; c++) ordered[3 * k + c] = positions[3 * order[k] + c];
  }
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  createBuffer(gl, ordered);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  const paintBuffer = createBuffer(gl, new Uint8Array(4 * n));
  gl.enableVertexAttribArray(1);
  gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  gl.bindVertexArray(null);

  return {
    setPaint(bytes) {
      gl.bindBuffer(gl.ARRAY_BUFFER, paintBuffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, bytes);
    },
    /** side: 1 draws what faces the reader, -1 the far side. Only the first `count` in drawing order. */
    draw(placement, matrix, { side, size, alpha, ground, count }) {
      gl.useProgram(program);
      setPlace(gl, uniforms, placement, matrix);
      gl.uniform1f(uniforms.u_side, side);
      gl.uniform1f(uniforms.u_size, size);
      gl.uniform1f(uniforms.u_alpha, alpha);
      gl.uniform3fv(uniforms.u_ground, ground);
      gl.bindVertexArray(array);
      gl.drawArrays(gl.POINTS, 0, count);
    },
  };
}
