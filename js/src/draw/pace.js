// Whether things move, from the last move that was drawn on: what follows from a move of a large set may itself take
// longer than the wait for rest, and its first frame must not be one of all points.

/** wait(): milliseconds from the last move to rest; onrest() is called then. clock: for tests. */
export function createPace(wait, onrest, clock = { now: () => performance.now(), set: setTimeout.bind(globalThis), clear: clearTimeout.bind(globalThis) }) {
  let [last, undrawn, timer] = [-Infinity, false, 0];

  function rest() {
    if (undrawn) {
      arm();
      return;
    }
    last = -Infinity;
    onrest();
  }

  function arm() {
    last = clock.now();
    clock.clear(timer);
    timer = clock.set(rest, wait() + 20);
  }

  return {
    /** Something moved. */
    note() {
      undrawn = true;
      arm();
    },
    /** A frame is drawn: whether it is one of things that move. */
    frame() {
      if (undrawn) {
        undrawn = false;
        arm();
      }
      return clock.now() - last < wait();
    },
    stop: () => clock.clear(timer),
  };
}
