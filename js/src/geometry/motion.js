// What moves by itself: the spin after a throw, the flight to a place, the fold and unfold.
import { between } from "./home.js";
import { aboutAxis, interpolate, multiply, normalize } from "./rotation.js";

const SPIN_SECONDS = 0.45; // the spin falls by e in this time
const FLIGHT_SECONDS = 0.7;
const UNFOLD_SECONDS = 1.1;
const MORPH_SECONDS = 1.2;
const SLOWEST = 0.015; // radians a second

const ease = (t) => (t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2);

/** wake() is called when something begins to move, so that frames come which call step(). */
export function createMotion(store, { calm = () => false, wake = () => {} } = {}) {
  let spin = null;
  const glides = new Map();

  function glide(name, seconds, frame) {
    if (calm()) {
      frame(1);
      return;
    }
    glides.set(name, { age: 0, seconds, frame });
    wake();
  }

  return {
    get active() {
      return spin !== null || glides.size > 0;
    },
    /** Whether the large view is on its way between globe and map, or between embeddings. */
    get changing() {
      return glides.has("unfold") || glides.has("morph");
    },
    /** Stop the spin and the flight; what changes the view itself comes to its end. */
    stop() {
      spin = null;
      glides.delete("rotation");
      glides.delete("camera");
    },
    finish() {
      spin = null;
      for (const { frame } of glides.values()) frame(1);
      glides.clear();
    },
    /** Keep turning about an axis of the view, at first by so many radians a second. */
    throwGlobe(axis, speed) {
      if (calm() || speed <= 10 * SLOWEST) return;
      spin = { axis, speed: Math.min(speed, 12) };
      wake();
    },
    flyTo(rotation) {
      spin = null;
      const start = store.get().rotation;
      glide("rotation", FLIGHT_SECONDS, (t) => store.set({ rotation: interpolate(start, rotation, t) }));
    },
    /** Bring the [zoom, x, y] under a key of the state to another. */
    zoomTo(key, camera) {
      const start = store.get()[key];
      glide("camera", FLIGHT_SECONDS, (t) => store.set({ [key]: between(start, camera, t) }));
    },
    /** Unfold the large globe into the map, or fold it up again; patch(stage) is what to set on the way. */
    unfoldTo(unfold, patch) {
      const start = store.get().unfold;
      glide("unfold", UNFOLD_SECONDS, (t) => store.set(patch(t === 1 ? unfold : start + (unfold - start) * t)));
    },
    /** Take the points from one embedding to another. */
    morphFrom(from) {
      glide("morph", MORPH_SECONDS, (t) => store.set({ morph: t === 1 ? null : { from, t } }));
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
