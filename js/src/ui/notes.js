// Notes in the corner of the stage: numbers of points beyond the edge of the map, and of names without room.
import { h } from "./dom.js";
import { plural } from "./format.js";

export function createNotes(store, model) {
  const beyond = h("span", { class: "note beyond", hidden: true });
  const names = h("span", { class: "note names-left", hidden: true });
  const element = h("div", { class: "notes quiet" }, beyond, names);
  let left = 0;
  return {
    element,
    countBeyond() {
      const state = store.get();
      const count = state.layout === "map" ? model.countBeyond(state) : 0;
      beyond.hidden = count === 0;
      beyond.textContent = `${plural(count, "point")} beyond the edge: turn the map, or choose Equal Earth`;
    },
    setNamesLeft(count) {
      if (count === left) return;
      left = count;
      names.hidden = count === 0;
      names.textContent = `${plural(count, "more name")}: zoom in`;
    },
  };
}
