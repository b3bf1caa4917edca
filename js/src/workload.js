// How many points to draw while things move, so that a slow machine stays smooth.
// The order of drawing makes any first part a fair sample; at rest all points are drawn.

const SLOW = 42; // milliseconds a frame
const FAST = 24;
const LEAST = 12000;

export function createWorkload(n) {
  let budget = n;
  return {
    get budget() {
      return Math.round(budget);
    },
    note(milliseconds) {
      if (milliseconds > SLOW) budget = Math.max(Math.min(n, LEAST), budget * 0.7);
      else if (milliseconds < FAST) budget = Math.min(n, budget * 1.1);
    },
  };
}
