import assert from "node:assert/strict";
import { test } from "node:test";
import { createPace } from "../src/draw/pace.js";

/** A clock that goes on when it is told to, and runs what is due. */
function clock() {
  let [time, due] = [0, null];
  return {
    now: () => time,
    set: (call, after) => {
      due = { call, at: time + after };
      return 1;
    },
    clear: () => (due = null),
    /** Without timers: as while a handler keeps the page busy. */
    busy: (milliseconds) => (time += milliseconds),
    go(milliseconds) {
      time += milliseconds;
      if (due === null || due.at > time) return;
      const { call } = due;
      due = null;
      call();
    },
  };
}

test("things move until some time after the last move, and rest once", () => {
  const time = clock();
  let rests = 0;
  const pace = createPace(() => 150, () => rests++, time);
  assert.equal(pace.frame(), false);
  pace.note();
  assert.equal(pace.frame(), true);
  time.go(100);
  assert.equal(pace.frame(), true);
  time.go(100);
  assert.deepEqual([pace.frame(), rests], [false, 1]);
});

test("the first frame after a move is one of things that move, however long the page was busy with it", () => {
  const time = clock();
  let rests = 0;
  const pace = createPace(() => 150, () => rests++, time);
  pace.note();
  time.busy(2000);
  time.go(0); // the timer is due before the frame
  assert.deepEqual([pace.frame(), rests], [true, 0]);
  time.go(200);
  assert.deepEqual([pace.frame(), rests], [false, 1]);
});
