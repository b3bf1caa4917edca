// Number of points to draw while the view moves, so that motion is smooth on slow machines.
// The first points in drawing order are a random sample; at rest, all points are drawn.

const TARGET = 28; // milliseconds per frame
const LEAST = 20000;

export function createWorkload(n) {
  const least = Math.min(n, LEAST);
  let millisecondsAll = 0; // what a frame of all points takes, as far as is known
  return {
    get budget() {
      if (millisecondsAll <= TARGET) return n;
      return Math.round(Math.max(least, (n * TARGET) / millisecondsAll));
    },
    /** Time to wait after the last move before drawing all points. */
    get restMilliseconds() {
      return 150 + Math.min(600, millisecondsAll / 2);
    },
    /** Record the time of a frame with a number of points. */
    note(points, milliseconds) {
      const all = (milliseconds * n) / Math.max(1, points);
      millisecondsAll = millisecondsAll === 0 ? all : (millisecondsAll + all) / 2;
    },
  };
}
