// All columns, each with a chart that filters and a name that colours the points.
import { findGenes } from "../data/genes.js";
import { h } from "../ui/dom.js";
import { count, plural } from "../ui/format.js";
import { NO_FILTERS } from "../state/filter.js";
import { touched } from "../state/store.js";
import { createColumnCard } from "./column-card.js";
import { section } from "./section.js";

const SEARCHED_FROM = 8; // columns
const MOST_FOUND = 12; // genes

/** The column of the colours first, since it is the key to the map; names of points last. */
function arranged({ columns }, colorBy) {
  const rank = (i) => (i === colorBy ? 0 : columns[i].role === "id" ? 2 : 1);
  return [...columns.keys()].sort((a, b) => rank(a) - rank(b));
}

/** Genes that match the text in the box: { element, look(text) }. */
function createGeneFinder({ genes }, actions) {
  const element = h("div", { class: "genes-found", role: "group", "aria-label": "Genes found" });
  return {
    element,
    look(text) {
      element.replaceChildren(...findGenes(genes, text, MOST_FOUND).map(({ gene, name }) =>
        h("button", { type: "button", class: "text-button", text: name, onclick: () => actions.showGene(gene) }),
      ));
    },
  };
}

export function createColumnsPanel(context) {
  const { dataset, store, actions } = context;
  const { genes } = dataset;
  const short = genes ? "Find a column or gene" : "Find a column";
  const what = genes ? `Find a column or one of ${count(genes.names.length)} genes` : "Find a column";
  const finder = createGeneFinder(dataset, actions);
  const geneList = h("div", { class: "columns" });
  const list = h("div", { class: "columns" });
  const query = h("input", { type: "search", class: "filter-names", placeholder: short, "aria-label": what, oninput: narrow });
  const none = h("p", { class: "quiet", text: "No match", hidden: true });
  const clear = h("button", { type: "button", class: "link", text: "Show all", onclick: () => store.set({ filters: NO_FILTERS }) });
  const says = h("span", {});
  const filtered = h("p", { class: "filtered" }, says, clear);
  const element = section("Columns", { class: "columns-panel" }, filtered, query, finder.element, geneList, list, none);

  // Charts are drawn when they are scrolled into view.
  const byElement = new Map();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) byElement.get(target)?.setSeen(isIntersecting);
  }, { rootMargin: "200px" });

  function addCard(index) {
    const card = createColumnCard(context, index);
    byElement.set(card.element, card);
    observer.observe(card.element);
    return card;
  }

  const cards = arranged(dataset, store.get().colorBy).map(addCard);
  list.append(...cards.map((card) => card.element));
  query.hidden = cards.length <= SEARCHED_FROM && !genes;
  if (cards.length === 0) list.append(h("p", { class: "quiet", text: "There are no columns." }));
  let geneCards = [];

  function showGenes(state) {
    for (const card of geneCards.filter(({ index }) => !state.genes.includes(index))) {
      observer.unobserve(card.element);
      byElement.delete(card.element);
    }
    geneCards = state.genes.map((index) => geneCards.find((card) => card.index === index) ?? addCard(index));
    geneList.replaceChildren(...geneCards.map((card) => card.element));
    for (const card of geneCards) card.update(state, null);
  }

  function narrow() {
    const needle = query.value.trim().toLowerCase();
    finder.look(query.value);
    for (const card of cards) card.element.hidden = !card.name.toLowerCase().includes(needle);
    none.hidden = cards.some((card) => !card.element.hidden) || finder.element.children.length > 0;
  }

  return {
    element,
    update(state, changed) {
      if (touched(changed)("genes")) showGenes(state);
      for (const card of [...geneCards, ...cards]) card.update(state, changed);
      if (touched(changed)("filters")) {
        filtered.hidden = state.filters.size === 0;
        says.textContent = `${plural(state.filters.size, "filter")} `;
      }
    },
    destroy: () => observer.disconnect(),
  };
}
