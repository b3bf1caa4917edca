// Uncertainty of positions (mercat/viewer/_uncertainty.py).
const NO_POSITION = -32768;
const VERTICES = 48;

const cross = ([a, b, c], [x, y, z]) => [b * z - c * y, c * x - a * z, a * y - b * x];

/**
 * alternative: unit vectors; codes: codes of the alternatives, which mark missing ones; axes: four numbers per point,
 * the longer half-axis of the ellipse as a vector in space, and the length of the other.
 */
export function createUncertainty({ axes, alternative, codes }) {
  return {
    /** Vertices of a point's ellipse, a closed polygon with three numbers per vertex. */
    ellipse(row, positions) {
      const middle = [0, 1, 2].map((k) => positions[3 * row + k]);
      const long = [0, 1, 2].map((k) => axes[4 * row + k]);
      const length = Math.hypot(...long) || 1;
      const short = cross(middle, long).map((x) => (x / length) * axes[4 * row + 3]);
      const out = new Float32Array(3 * (VERTICES + 1));
      for (let k = 0; k <= VERTICES; k++) {
        const angle = (2 * Math.PI * k) / VERTICES;
        const step = long.map((x, i) => Math.cos(angle) * x + Math.sin(angle) * short[i]);
        const reach = Math.hypot(...step);
        const arc = Math.min(reach, Math.PI);
        for (let i = 0; i < 3; i++) out[3 * k + i] = Math.cos(arc) * middle[i] + (reach > 0 ? (Math.sin(arc) * step[i]) / reach : 0);
      }
      return out;
    },
    /** Alternative position of a point, or null. */
    alternative(row) {
      return codes[2 * row] === NO_POSITION ? null : alternative.subarray(3 * row, 3 * row + 3);
    },
  };
}
