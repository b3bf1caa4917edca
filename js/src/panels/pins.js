// Pinned points, each with all its fields.
import { touched } from "../state/store.js";
import { pinnedCard } from "../ui/card.js";
import { h } from "../ui/dom.js";
import { section } from "./section.js";

export function createPinsPanel({ dataset, actions }) {
  const list = h("div", { class: "cards" });
  const element = section("Pinned", { class: "pins-panel" }, list);
  return {
    element,
    update(state, changed) {
      if (!touched(changed)("pins", "colorBy", "embedding")) return;
      const { pins } = state;
      element.hidden = pins.length === 0;
      list.replaceChildren(
        ...pins.map((row, i) =>
          pinnedCard(dataset, row, i, state, {
            close: () => actions.togglePin(row),
            center: () => actions.centerRow(row),
            neighbors: () => actions.selectNeighbors(row),
          }),
        ),
      );
    },
  };
}
