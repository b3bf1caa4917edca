// Rotations of the sphere as unit quaternions [x, y, z, w], taking the data's frame to the view's.
//
// The view's frame: x points to the viewer, y to the right, z up. A view is described by its
// centre: the longitude and latitude that face the viewer, and the roll about that axis.

export function multiply(a, b) {
  const [ax, ay, az, aw] = a;
  const [bx, by, bz, bw] = b;
  return [
    aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx,
    aw * bz + ax * by - ay * bx + az * bw,
    aw * bw - ax * bx - ay * by - az * bz,
  ];
}

export function normalize(q) {
  const length = Math.hypot(...q);
  return q.map((part) => part / length);
}

export function inverse([x, y, z, w]) {
  return [-x, -y, -z, w];
}

export function aboutAxis([x, y, z], angle) {
  const s = Math.sin(angle / 2);
  return [x * s, y * s, z * s, Math.cos(angle / 2)];
}

/** The shortest rotation that takes unit vector a to unit vector b. */
export function between(a, b) {
  const w = 1 + a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  if (w < 1e-9) {
    // Opposite vectors: half a turn about any axis at right angles to a.
    const side = Math.abs(a[0]) < 0.9 ? [0, -a[2], a[1]] : [-a[1], a[0], 0];
    return normalize([...side, 0]);
  }
  return normalize([
    a[1] * b[2] - a[2] * b[1],
    a[2] * b[0] - a[0] * b[2],
    a[0] * b[1] - a[1] * b[0],
    w,
  ]);
}

/** Axis and angle, the angle in [0, pi]. */
export function toAxisAngle(q) {
  const [x, y, z, w] = q[3] < 0 ? q.map((part) => -part) : q;
  const length = Math.hypot(x, y, z);
  if (length < 1e-12) return { axis: [1, 0, 0], angle: 0 };
  return { axis: [x / length, y / length, z / length], angle: 2 * Math.atan2(length, w) };
}

/** Rows of the 3 x 3 matrix, one after the other. */
export function toMatrix([x, y, z, w]) {
  return [
    1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
    2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
    2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y),
  ];
}

export function apply(q, [x, y, z]) {
  const m = toMatrix(q);
  return [
    m[0] * x + m[1] * y + m[2] * z,
    m[3] * x + m[4] * y + m[5] * z,
    m[6] * x + m[7] * y + m[8] * z,
  ];
}

/** The rotation that brings (longitude, latitude) to the front, north up, then rolls. */
export function fromCenter([longitude, latitude, roll]) {
  const turn = aboutAxis([0, 0, 1], -longitude);
  const tilt = aboutAxis([0, 1, 0], latitude);
  return normalize(multiply(aboutAxis([1, 0, 0], roll), multiply(tilt, turn)));
}

export function toCenter(q) {
  const [x, y, z] = apply(inverse(q), [1, 0, 0]);
  const longitude = Math.atan2(y, x);
  const latitude = Math.atan2(z, Math.hypot(x, y));
  const [rx, , , rw] = multiply(q, inverse(fromCenter([longitude, latitude, 0])));
  const roll = 2 * Math.atan2(rx, rw);
  return [longitude, latitude, Math.atan2(Math.sin(roll), Math.cos(roll))];
}

/** The rotation a fraction t of the way from a to b, along the shorter arc. */
export function interpolate(a, b, t) {
  const { axis, angle } = toAxisAngle(multiply(b, inverse(a)));
  return normalize(multiply(aboutAxis(axis, angle * t), a));
}
