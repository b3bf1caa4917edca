// The side panel: colours, selection, pinned points, display.
import { pinnedCard } from "../ui/card.js";
import { css } from "../draw/color.js";
import { checkbox, h, iconButton, slider } from "../ui/dom.js";
import { NO_FILTER } from "../state/filter.js";
import { count, plural } from "../ui/format.js";
import { createLegend } from "./legend.js";
import { PROJECTIONS } from "../geometry/projections.js";
import { asCategories } from "../draw/scheme.js";
import { NOTHING } from "../state/selection.js";
import { touched } from "../state/store.js";

function section(title, ...children) {
  return h("section", {}, h("h2", { text: title }), ...children);
}

function options(list) {
  return list.map(([value, text]) => h("option", { value, text }));
}

function createColors(dataset, store) {
  const label = ({ name, role }) => (role === "loss" ? `Trust (${name})` : name);
  const select = h(
    "select",
    {
      "aria-label": "Colour by", "data-control": "color",
      onchange: () => store.set({ colorBy: Number(select.value), asScale: false, filter: NO_FILTER, spotlight: null }),
    },
    ...options([...dataset.columns.map((column, i) => [i, label(column)]), [-1, "One colour"]]),
  );
  const asScale = checkbox("As a scale", (on) => store.set({ asScale: on, filter: NO_FILTER }));
  const place = h("div", { class: "legend" });
  const all = h("button", { type: "button", class: "link", text: "Show all", onclick: () => store.set({ filter: NO_FILTER }) });
  let legend = null;
  return {
    element: section("Colour", select, asScale.element, place, all),
    rebuild(scheme) {
      legend = createLegend(scheme, store);
      place.replaceChildren(legend.element);
    },
    update(state) {
      select.value = state.colorBy;
      const column = dataset.columns[state.colorBy];
      asScale.element.hidden = !(column?.kind === "number" && asCategories(column) !== null);
      asScale.input.checked = state.asScale;
      all.hidden = state.filter.hidden.size === 0 && state.filter.range === null;
      legend?.update(state);
    },
  };
}

/** How the selection divides over the categories of the colours. */
function breakdown(scheme, rows) {
  if (scheme.kind !== "category") return [];
  const counts = new Map();
  for (const row of rows) counts.set(scheme.codes[row], (counts.get(scheme.codes[row]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([code, k]) => {
    const bar = h("span", { class: "share" });
    bar.style.width = `${Math.max(1, (100 * k) / rows.length)}%`;
    bar.style.background = css(scheme.colors[code]);
    return h(
      "li",
      {},
      h("span", { class: "name", text: scheme.labels[code] }),
      h("span", { class: "count", text: count(k) }),
      bar,
    );
  });
}

function createSelectionSection(store, actions) {
  const says = h("p", {});
  const list = h("ul", { class: "shares" });
  const element = section(
    "Selection",
    says,
    list,
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "text-button", text: "Turn to it", onclick: actions.centerSelection }),
      h("button", { type: "button", class: "text-button", text: "Save CSV", onclick: actions.saveRows }),
      h("button", { type: "button", class: "text-button", text: "Clear", onclick: () => store.set({ selection: NOTHING }) }),
    ),
  );
  return {
    element,
    update({ selection }, scheme) {
      element.hidden = selection.rows.length === 0;
      says.textContent = `${plural(selection.rows.length, "point")} selected`;
      list.replaceChildren(...breakdown(scheme, selection.rows));
    },
  };
}

function createPins(dataset, actions) {
  const list = h("div", { class: "cards" });
  const element = section("Pinned", list);
  return {
    element,
    update({ pins, colorBy }) {
      element.hidden = pins.length === 0;
      list.replaceChildren(
        ...pins.map((row, i) =>
          pinnedCard(dataset, row, i, colorBy, () => actions.togglePin(row), () => actions.centerRow(row)),
        ),
      );
    },
  };
}

function createDisplay(store, actions) {
  const projection = h(
    "select",
    { "aria-label": "Map projection", "data-control": "projection", onchange: () => actions.setProjection(projection.value) },
    ...options(Object.entries(PROJECTIONS).map(([name, { label, keeps }]) => [name, `${label}: ${keeps}`])),
  );
  // The slider is in powers of two, so that its middle is the size that suits the data.
  const size = slider("Point size", { min: -2, max: 2, step: 0.1, value: 0, "data-control": "size", oninput: (value) => store.set({ size: 2 ** value }) });
  const boxes = [["names", "Names"], ["graticule", "Graticule"], ["seeThrough", "Back of the globe"]].map(([key, text]) => ({
    key,
    ...checkbox(text, (on) => store.set({ [key]: on })),
  }));
  return {
    element: section("Display", projection, size.element, h("div", { class: "checks" }, ...boxes.map(({ element }) => element))),
    update(state) {
      projection.value = state.projection;
      size.input.value = Math.log2(state.size);
      for (const { key, input } of boxes) input.checked = state[key];
    },
  };
}

export function createPanel(dataset, store, actions) {
  const colors = createColors(dataset, store);
  const selection = createSelectionSection(store, actions);
  const pins = createPins(dataset, actions);
  const display = createDisplay(store, actions);
  const close = iconButton("close", "Close the panel", () => store.set({ panelOpen: false }), { class: "icon-button close-panel" });
  return {
    element: h("aside", { class: "panel", "aria-label": "Colours and details" }, close, colors.element, selection.element, pins.element, display.element),
    rebuildLegend: colors.rebuild,
    update(state, changed, scheme) {
      const any = touched(changed);
      if (any("colorBy", "asScale", "filter", "theme")) colors.update(state);
      if (any("selection", "colorBy", "asScale", "theme")) selection.update(state, scheme);
      if (any("pins", "colorBy")) pins.update(state);
      if (any("projection", "size", "names", "graticule", "seeThrough")) display.update(state);
    },
  };
}
