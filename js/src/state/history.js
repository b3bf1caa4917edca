// Undo and redo: the state before each change that can be undone.
import { touched } from "./store.js";

const STEPS = ["filters", "selection", "pins", "colorBy", "scales", "embedding", "sets", "genes"];
const TRANSIENT = ["hover", "lasso", "spotlight", "morph", "unfold", "tool", "railOpen", "tableOpen", "theme"];
const MAX_STEPS = 60;
const MERGE_WITHIN = 500; // milliseconds: changes of the same keys, such as those of a dragged brush, are one step

const withoutTransient = (state) => Object.fromEntries(Object.entries(state).filter(([key]) => !TRANSIENT.includes(key)));

/** Keys that differ, and columns whose filters differ. */
function touchedKeys(changed, state, last) {
  const columns = changed.has("filters") ? [...new Set([...state.filters.keys(), ...last.filters.keys()])] : [];
  const other = columns.filter((column) => state.filters.get(column) !== last.filters.get(column));
  return [...STEPS.filter((key) => changed.has(key)), ...other].join();
}

/** onchange({ canUndo, canRedo }) is called when these change. now: a clock in milliseconds. */
export function createHistory(store, { onchange = () => {}, now = () => performance.now() } = {}) {
  const past = [];
  const future = [];
  let last = store.get();
  let lastStep = -Infinity;
  let lastKeys = "";
  let applying = false;

  const notify = () => onchange({ canUndo: past.length > 0, canRedo: future.length > 0 });

  function push(state) {
    past.push(withoutTransient(state));
    if (past.length > MAX_STEPS) past.shift();
    future.length = 0;
    notify();
  }

  const unsubscribe = store.subscribe((state, changed) => {
    if (!applying && touched(changed)(...STEPS)) {
      const keys = touchedKeys(changed, state, last);
      if (keys !== lastKeys || now() - lastStep > MERGE_WITHIN) push(last);
      [lastKeys, lastStep] = [keys, now()];
    }
    last = state;
  });

  function go(from, to) {
    if (from.length === 0) return;
    to.push(withoutTransient(store.get()));
    applying = true;
    store.set(from.pop());
    applying = false;
    lastKeys = "";
    notify();
  }

  return {
    /** Make changes that are undone in one step. */
    step(change) {
      push(store.get());
      applying = true;
      change();
      applying = false;
      lastKeys = "";
    },
    undo: () => go(past, future),
    redo: () => go(future, past),
    destroy: unsubscribe,
  };
}
