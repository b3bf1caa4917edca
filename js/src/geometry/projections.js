// Projections of the sphere to the plane, and the transition between globe and map.
//
// Both maps are of the form x = longitude * width(latitude), y = height(latitude), so one rule
// unrolls the globe into either: with t from 0 (globe) to 1 (map) and k = 1 - t,
//     x = sin(k longitude) / k * mix(cos(latitude), width, t),  y = mix(sin(latitude), height, t^2)
// (squared, so that the poles do not move too early), and a position faces the viewer where cos(k longitude) >= 0. The
// shaders (shaders.js) use the same rule on the GPU; picking and the lasso use this file.

const SQRT3 = Math.sqrt(3);
const [A1, A2, A3, A4] = [1.340264, -0.081106, 0.000893, 0.003796];

function equalEarthSlope(theta) {
  const t2 = theta * theta;
  return A1 + 3 * A2 * t2 + t2 * t2 * t2 * (7 * A3 + 9 * A4 * t2);
}

function equalEarthHeight(theta) {
  const t2 = theta * theta;
  return theta * (A1 + A2 * t2 + t2 * t2 * t2 * (A3 + A4 * t2));
}

function equalEarthTheta(y) {
  let theta = y / A1;
  for (let step = 0; step < 12; step++) {
    const change = (equalEarthHeight(theta) - y) / equalEarthSlope(theta);
    theta -= change;
    if (Math.abs(change) < 1e-12) break;
  }
  return theta;
}

/** The projection of a planar embedding: the identity. */
export const FLAT = "flat";
export const FLAT_INDEX = 2;

export const PROJECTIONS = {
  mercator: {
    index: 0,
    label: "Mercator",
    keeps: "preserves angles",
    halfWidth: Math.PI,
    halfHeight: Math.PI, // cut at latitude 85.05 degrees, which makes the map a square
    width: () => 1,
    height: (sin, cos) => Math.sign(sin) * Math.log((1 + Math.abs(sin)) / Math.max(cos, 1e-30)),
    latitude: (y) => Math.atan(Math.sinh(y)),
  },
  equal_earth: {
    index: 1,
    label: "Equal Earth",
    keeps: "preserves areas",
    halfWidth: (2 * SQRT3 * Math.PI) / (3 * A1),
    halfHeight: equalEarthHeight(Math.PI / 3),
    width: (sin) => {
      const theta = Math.asin((SQRT3 / 2) * sin);
      return (2 * SQRT3 * Math.cos(theta)) / (3 * equalEarthSlope(theta));
    },
    height: (sin) => equalEarthHeight(Math.asin((SQRT3 / 2) * sin)),
    latitude: (y) => Math.asin(Math.max(-1, Math.min(1, (2 * Math.sin(equalEarthTheta(y))) / SQRT3))),
  },
};

/**
 * Place a unit vector of the view's frame: out = [x, y, facing, beyond].
 *
 * facing is negative on the far side; beyond is 1 outside the edge of the map.
 */
export function place(out, vx, vy, vz, unfold, projection) {
  if (projection === FLAT) {
    out[0] = vx;
    out[1] = vy;
    out[2] = 1;
    out[3] = 0;
    return out;
  }
  if (unfold === 0) {
    out[0] = vy;
    out[1] = vz;
    out[2] = vx;
    out[3] = 0;
    return out;
  }
  const { width, height, halfHeight } = PROJECTIONS[projection];
  const cos = Math.hypot(vx, vy);
  const longitude = Math.atan2(vy, vx);
  const k = 1 - unfold;
  const across = k < 1e-4 ? longitude : Math.sin(k * longitude) / k;
  const up = height(vz, cos);
  out[0] = across * (k * cos + unfold * width(vz, cos));
  const rise = unfold * unfold;
  out[1] = (1 - rise) * vz + rise * Math.max(-halfHeight, Math.min(halfHeight, up));
  out[2] = Math.cos(k * longitude);
  out[3] = Math.abs(up) > halfHeight + 1e-6 ? 1 : 0;
  return out;
}

/** The unit vector of the view's frame at (x, y) of the globe (unfold 0) or map (unfold 1), or null. */
export function unplace(x, y, unfold, projection) {
  if (projection === FLAT) return [x, y, 0];
  if (unfold === 0) {
    const r2 = x * x + y * y;
    return r2 > 1 ? null : [Math.sqrt(1 - r2), x, y];
  }
  if (unfold !== 1) return null;
  const map = PROJECTIONS[projection];
  if (Math.abs(y) > map.halfHeight) return null;
  const latitude = map.latitude(y);
  const sin = Math.sin(latitude);
  const cos = Math.cos(latitude);
  const longitude = x / map.width(sin, cos);
  if (Math.abs(longitude) > Math.PI) return null;
  return [cos * Math.cos(longitude), cos * Math.sin(longitude), sin];
}
