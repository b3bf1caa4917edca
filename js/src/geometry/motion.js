// What moves by itself: the spin after a throw, the flight to a place, the fold and unfold.
import { aboutAxis, interpolate, multiply, normalize } from "./rotation.js";

const SPIN_SECONDS = 0.45; // the spin falls by e in this time
const FLIGHT_SECONDS = 0.7;
const UNFOLD_SECONDS = 1.1;
const SLOWEST = 0.015; // radians a second

const ease = (t) => (t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2);

export function createMotion(store, { calm = () => false } = {}) {
  let spin = null;
  const glides = new Map();

  function glide(name, seconds, frame) {
    if (calm()) {
      frame(1);
      return;
    }
    glides.set(name, { age: 0, seconds, frame });
  }

  return {
    get active() {
      return spin !== null || glides.size > 0;
    },
    stop() {
      spin = null;
      glides.clear();
    },
    /** Keep turning about an axis of the view, at first by so many radians a second. */
    throwGlobe(axis, speed) {
      if (!calm() && speed > 10 * SLOWEST) spin = { axis, speed: Math.min(speed, 12) };
    },
    flyTo(rotation) {
      spin = null;
      const start = store.get().rotation;
      glide("rotation", FLIGHT_SECONDS, (t) => store.set({ rotation: interpolate(start, rotation, t) }));
    },
    /** patch: what to set at a stage of unfolding. */
    unfoldTo(unfold, patch) {
      const start = store.get().unfold;
      glide("unfold", UNFOLD_SECONDS, (t) => store.set(patch(t === 1 ? unfold : start + (unfold - start) * t)));
    },
    /** Advance by so many seconds. */
    step(seconds) {
      if (spin) {
        const turn = aboutAxis(spin.axis, spin.speed * seconds);
        store.set({ rotation: normalize(multiply(turn, store.get().rotation)) });
        spin.speed *= Math.exp(-seconds / SPIN_SECONDS);
        if (spin.speed < SLOWEST) spin = null;
      }
      for (const [name, move] of glides) {
        move.age += seconds;
        const t = Math.min(1, move.age / move.seconds);
        if (t === 1) glides.delete(name);
        move.frame(ease(t));
      }
    },
  };
}
