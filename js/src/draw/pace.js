// Whether the view moves, counted from the last frame drawn: with large data, a frame may take longer than the wait
// for rest, and must not be followed by a frame with all points.

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
    /** Report a move. */
    note() {
      undrawn = true;
      arm();
    },
    /** Report a frame; returns whether the view moves. */
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
