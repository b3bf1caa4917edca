// Animations: spinning after a drag, flights to a position, folding and unfolding.
import { between } from "./home.js";
import { aboutAxis, interpolate, multiply, normalize } from "./rotation.js";

const SPIN_SECONDS = 0.45; // time in which the speed of a spin decreases by a factor of e
const FLIGHT_SECONDS = 0.7;
const UNFOLD_SECONDS = 1.1;
const MORPH_SECONDS = 1.2;
const SLOWEST = 0.015; // radians per second

const ease = (t) => (t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2);

/** wake() is called when an animation starts, to request frames that call step(). */
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
    /** Whether the large view is changing between globe and map, or between embeddings. */
    get changing() {
      return glides.has("unfold") || glides.has("morph");
    },
    /** Stop spins and flights, and complete changes of the view. */
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
    /** Spin about an axis of the view, with an initial speed in radians per second. */
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
    /** Animate the [zoom, x, y] under a key of the state. */
    zoomTo(key, camera) {
      const start = store.get()[key];
      glide("camera", FLIGHT_SECONDS, (t) => store.set({ [key]: between(start, camera, t) }));
    },
    /** Unfold the large globe into the map, or fold it; patch(stage) is set in the state on the way. */
    unfoldTo(unfold, patch) {
      const start = store.get().unfold;
      glide("unfold", UNFOLD_SECONDS, (t) => store.set(patch(t === 1 ? unfold : start + (unfold - start) * t)));
    },
    /** Move the points from one embedding to another. */
    morphFrom(from) {
      glide("morph", MORPH_SECONDS, (t) => store.set({ morph: t === 1 ? null : { from, t } }));
    },
    /** Advance by a number of seconds. */
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
