// A column: its name, which colours the points, and its chart, which filters them.
import { iconButton, h } from "../ui/dom.js";
import { count } from "../ui/format.js";
import { touched } from "../state/store.js";
import { createHistogram } from "./histogram.js";
import { createValues } from "./values.js";

const GLYPHS = { number: "#", date: "date", category: "abc" };
const BADGES = { loss: "Trust", torn: "Trust", gene: "gene" };

function chartOf(context, index) {
  const column = context.model.column(index);
  if (column.role === "id") {
    const says = `${count(column.labels.length)} distinct values, available in the search and on cards.`;
    return { element: h("p", { class: "quiet", text: says }), update() {} };
  }
  return column.kind === "category" ? createValues(context, index) : createHistogram(context, index);
}

export function createColumnCard(context, index) {
  const { dataset, store, model, actions } = context;
  const { name, role } = dataset.column(index);
  const isName = role === "id";
  const title = h("span", { class: "name", text: name, title: name });
  const badge = BADGES[role] ? h("span", { class: "badge-quiet", text: BADGES[role] }) : null;
  const glyph = h("span", { class: "glyph", "aria-hidden": "true" });
  const colorButton = isName
    ? h("span", { class: "column-name" }, glyph, title)
    : h(
        "button",
        {
          type: "button", class: "column-name", title: "Colour by this column; click again to remove colours",
          "aria-label": `Colour by ${name}`, "data-column": name,
          onclick: () => actions.colorBy(store.get().colorBy === index ? -1 : index),
        },
        glyph, title,
        h("span", { class: "drop", "aria-hidden": "true" }),
      );
  const scale = h("button", { type: "button", class: "link small", onclick: () => actions.toggleScale(index) });
  const clear = iconButton("close", `Clear the filter of ${name}`, () => actions.setFilter(index, null), { class: "icon-button small" });
  const remove = role === "gene" ? iconButton("close", `Close ${name}`, () => actions.closeGene(index), { class: "icon-button small" }) : null;
  const place = h("div", { class: "chart" });
  const element = h("article", { class: "column", "aria-label": name }, h("header", {}, colorButton, badge, scale, clear, remove), place);
  scale.hidden = !model.columns.hasChoice(index);
  let chart = null;
  let [seen, stale] = [true, null]; // stale: what changed while it was out of sight; null for nothing

  function build(state) {
    chart = chartOf(context, index);
    place.replaceChildren(chart.element);
    const { kind } = model.column(index);
    glyph.dataset.kind = isName ? "id" : GLYPHS[kind]; // drawn by the style sheet: it is no part of the name
    scale.textContent = kind === "category" ? "as a scale" : "as classes";
    chart.update(state);
  }

  function refresh(state, changed) {
    const any = touched(changed);
    const colored = state.colorBy === index;
    if (any("colorBy")) {
      element.classList.toggle("colored", colored);
      if (!isName) colorButton.setAttribute("aria-pressed", String(colored));
    }
    if (any("filters")) clear.hidden = !state.filters.has(index);
    if (chart === null || any("scales")) build(state);
    else if (any("shown", "selection", "scheme")) chart.update(state);
  }

  return {
    index,
    name,
    element,
    setSeen(now) {
      seen = now;
      if (!seen || stale === null) return;
      const all = stale;
      stale = null;
      refresh(store.get(), all);
    },
    update(state, changed) {
      if (seen || changed === null) refresh(state, changed);
      else stale = new Set([...(stale ?? []), ...changed]);
    },
  };
}
