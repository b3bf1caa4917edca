// How many points to draw while things move, so that a slow machine stays smooth.
// The order of drawing makes any first part a fair sample; at rest all points are drawn.

const TARGET = 28; // milliseconds a frame
const LEAST = 20000;

export function createWorkload(n) {
  const least = Math.min(n, LEAST);
  let millisecondsAll = 0; // what a frame of all points takes, as far as is known
  return {
    get budget() {
      if (millisecondsAll <= TARGET) return n;
      return Math.round(Math.max(least, (n * TARGET) / millisecondsAll));
    },
    /** How long to wait after the last move before drawing everything. */
    get restMilliseconds() {
      return 150 + Math.min(600, millisecondsAll / 2);
    },
    /** A frame of so many points took so long. */
    note(points, milliseconds) {
      const all = (milliseconds * n) / Math.max(1, points);
      millisecondsAll = millisecondsAll === 0 ? all : (millisecondsAll + all) / 2;
    },
  };
}
