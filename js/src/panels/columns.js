// All columns: a chart of each, which filters, and whose name gives the points its colours.
import { h } from "../ui/dom.js";
import { plural } from "../ui/format.js";
import { NO_FILTERS } from "../state/filter.js";
import { touched } from "../state/store.js";
import { createColumnCard } from "./column-card.js";
import { section } from "./section.js";

const SEARCHED_FROM = 8; // columns

/** The column of the colours first, for it is the key to the map; names of points last. */
function arranged({ columns }, colorBy) {
  const rank = (i) => (i === colorBy ? 0 : columns[i].role === "id" ? 2 : 1);
  return [...columns.keys()].sort((a, b) => rank(a) - rank(b));
}

export function createColumnsPanel(context) {
  const { dataset, store } = context;
  const cards = arranged(dataset, store.get().colorBy).map((index) => createColumnCard(context, index));
  const list = h("div", { class: "columns" }, ...cards.map(({ element }) => element));
  const query = h("input", { type: "search", class: "filter-names", placeholder: "Find a column", "aria-label": "Find a column", oninput: narrow });
  const none = h("p", { class: "quiet", text: "No column has this in its name.", hidden: true });
  const clear = h("button", { type: "button", class: "link", text: "Show all", onclick: () => store.set({ filters: NO_FILTERS }) });
  const says = h("span", {});
  const filtered = h("p", { class: "filtered" }, says, clear);
  query.hidden = cards.length <= SEARCHED_FROM;
  const element = section("Columns", { class: "columns-panel" }, filtered, query, list, none);
  if (cards.length === 0) list.append(h("p", { class: "quiet", text: "The points came without columns." }));

  function narrow() {
    const needle = query.value.trim().toLowerCase();
    for (const card of cards) card.element.hidden = !card.name.toLowerCase().includes(needle);
    none.hidden = cards.some((card) => !card.element.hidden);
  }

  // Charts out of sight wait until they are looked at.
  const byElement = new Map(cards.map((card) => [card.element, card]));
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) byElement.get(target).setSeen(isIntersecting);
  }, { rootMargin: "200px" });
  for (const card of cards) observer.observe(card.element);

  return {
    element,
    update(state, changed) {
      for (const card of cards) card.update(state, changed);
      if (touched(changed)("filters")) {
        filtered.hidden = state.filters.size === 0;
        says.textContent = `${plural(state.filters.size, "filter")} `;
      }
    },
    destroy: () => observer.disconnect(),
  };
}
