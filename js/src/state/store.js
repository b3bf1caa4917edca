// The state, a plain object changed only by set(), which passes the changed keys to listeners.

export function createStore(initial) {
  let state = { ...initial };
  const listeners = new Set();
  return {
    get: () => state,
    set(patch) {
      const changed = new Set(Object.keys(patch).filter((key) => !Object.is(state[key], patch[key])));
      if (changed.size === 0) return;
      state = { ...state, ...patch };
      for (const listener of listeners) listener(state, changed);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Whether any of some keys has changed; null stands for all. */
export const touched = (changed) => (...keys) => changed === null || keys.some((key) => changed.has(key));
