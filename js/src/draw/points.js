// Draw the points: a buffer of positions per embedding shown, a buffer of paint, any number of panes.
import { createBuffer, createProgram, setFrame } from "./gl.js";
import { POINTS_FRAGMENT, POINTS_VERTEX } from "./shaders.js";

/** Default diameter in CSS pixels for n points on a pane. */
export function autoSize(n, { width, height }) {
  const room = Math.sqrt(Math.min(width, height) / 620);
  return Math.max(1.3, Math.min(8, 11 - 1.7 * Math.log10(n))) * Math.max(0.5, Math.min(1.4, room));
}

export function autoAlpha(n) {
  return Math.max(0.42, Math.min(0.92, 1.16 - 0.11 * Math.log10(n)));
}

function inOrder(codes, order) {
  // Two 16-bit integers are copied as one of 32 bits.
  const pairs = new Uint32Array(codes.buffer, codes.byteOffset, order.length);
  const out = new Uint32Array(order.length);
  for (let k = 0; k < order.length; k++) out[k] = pairs[order[k]];
  return new Int16Array(out.buffer);
}

export function createPoints(gl, embeddings, order) {
  const n = order.length;
  const { program, uniforms } = createProgram(gl, POINTS_VERTEX, POINTS_FRAGMENT);
  const paintBuffer = createBuffer(gl, new Uint8Array(4 * n));
  const buffers = embeddings.map(() => null); // made when first shown
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  gl.enableVertexAttribArray(1);
  gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
  gl.bindVertexArray(null);

  function bindPositions(location, embedding) {
    gl.bindVertexArray(array);
    if (embedding === null) {
      gl.disableVertexAttribArray(location);
      return;
    }
    buffers[embedding] ??= createBuffer(gl, inOrder(embeddings[embedding].codes, order));
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[embedding]);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 2, gl.SHORT, true, 0, 0);
  }

  return {
    setPaint(bytes) {
      gl.bindBuffer(gl.ARRAY_BUFFER, paintBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW); // anew, so as not to wait for frames that use the old
    },
    /** Select the embedding of the next draws, and the one that points come from (or null). */
    show(now, before) {
      bindPositions(0, now);
      bindPositions(2, before);
    },
    /** Draw the first `count` points in drawing order; side: 1 for the near side, -1 for the far side. */
    draw(placement, { side, size, alpha, ground, count, before, arrived }) {
      gl.useProgram(program);
      setFrame(gl, uniforms, "u_now", placement);
      setFrame(gl, uniforms, "u_before", before ?? placement);
      gl.uniform1f(uniforms.u_arrived, arrived);
      gl.uniform1f(uniforms.u_side, side);
      gl.uniform1f(uniforms.u_size, size);
      gl.uniform1f(uniforms.u_alpha, alpha);
      gl.uniform3fv(uniforms.u_ground, ground);
      gl.bindVertexArray(array);
      gl.drawArrays(gl.POINTS, 0, count);
    },
  };
}
