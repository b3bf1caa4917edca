// Helpers for WebGL2.

export function createProgram(gl, vertexSource, fragmentSource) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertexSource], [gl.FRAGMENT_SHADER, fragmentSource]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
    throw new Error(`A shader did not compile: ${logs.join(" ")} ${gl.getProgramInfoLog(program)}`);
  }
  const uniforms = {};
  const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) ?? 0;
  for (let i = 0; i < count; i++) {
    const { name } = gl.getActiveUniform(program, i);
    uniforms[name] = gl.getUniformLocation(program, name);
  }
  return { program, uniforms };
}

export function createBuffer(gl, data, target = gl.ARRAY_BUFFER) {
  const buffer = gl.createBuffer();
  gl.bindBuffer(target, buffer);
  gl.bufferData(target, data, gl.STATIC_DRAW);
  return buffer;
}

/** Call done(milliseconds) when the GPU has finished all commands so far. */
export function whenDrawn(gl, done) {
  const start = performance.now();
  const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.flush();
  const look = () => {
    if (gl.isContextLost()) return;
    if (gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
      setTimeout(look, 4);
      return;
    }
    gl.deleteSync(fence);
    done(performance.now() - start);
  };
  setTimeout(look, 0);
}

/** Uniforms of a Frame (shaders.js): the view of a pane. A fixed mesh has the identity as rotation. */
export function setFrame(gl, uniforms, name, { scale, pan, unfold, projectionIndex, rotation }) {
  // WebGL expects columns; the matrix is stored by rows.
  gl.uniformMatrix3fv(uniforms[`${name}.rotation`] ?? null, true, rotation);
  gl.uniform1f(uniforms[`${name}.unfold`] ?? null, unfold);
  gl.uniform1i(uniforms[`${name}.projection`] ?? null, projectionIndex);
  gl.uniform2f(uniforms[`${name}.scale`] ?? null, scale[0], scale[1]);
  gl.uniform2f(uniforms[`${name}.pan`] ?? null, pan[0], pan[1]);
}
