// The header and the footer: what can be done, always in reach.
import { choice, h, icon, iconButton, slider } from "./dom.js";
import { count, plural } from "./format.js";

export function createHeader(dataset, store, actions, searchBox) {
  const shownText = h("span", { class: "quiet points" });
  const panelButton = iconButton("panel", "Colours and details", () => store.set({ panelOpen: !store.get().panelOpen }), {
    class: "icon-button panel-button",
  });
  const element = h(
    "header",
    { class: "head" },
    h("h1", { text: dataset.title, title: dataset.title }),
    shownText,
    searchBox,
    h(
      "div",
      { class: "icons" },
      iconButton("theme", "Dark or light (D)", actions.toggleTheme, { "data-action": "theme" }),
      iconButton("picture", "Save a picture (S)", actions.savePicture, { "data-action": "picture" }),
      iconButton("help", "Help (?)", actions.showHelp, { "data-action": "help" }),
      iconButton("reset", "Reset everything (R)", actions.reset, { "data-action": "reset" }),
      panelButton,
    ),
  );
  return {
    element,
    update(state, shownCount) {
      shownText.textContent = shownCount === dataset.n
        ? plural(dataset.n, "point")
        : `${count(shownCount)} of ${plural(dataset.n, "point")}`;
      panelButton.setAttribute("aria-expanded", String(state.panelOpen));
    },
  };
}

const TOOLS = [
  { value: "turn", text: "Turn", iconName: "turn", title: "Drag to turn (T)" },
  { value: "pan", text: "Pan", iconName: "pan", title: "Drag to pan (P)" },
  { value: "lasso", text: "Lasso", iconName: "lasso", title: "Drag to select (L, or hold Shift)" },
];

const LAYOUTS = [
  { value: "globe", text: "Globe", iconName: "globe", title: "Globe alone (1)" },
  { value: "both", text: "Both", iconName: "both", title: "Globe and map (2)" },
  { value: "map", text: "Map", iconName: "map", title: "Map alone (3)" },
];

export function createFooter(store, actions) {
  const tools = choice("What dragging does", TOOLS, (tool) => store.set({ tool }));
  const layouts = choice("Views", LAYOUTS, (layout) => store.set({ layout }));
  const unfold = slider("Unfold", {
    min: 0, max: 1, step: 0.005, value: 0, "data-control": "unfold",
    oninput: (value) => actions.setUnfold(value),
  });
  const button = h(
    "button",
    { type: "button", class: "text-button", title: "Unfold the globe into the map (U)", onclick: actions.toggleUnfold },
    icon("unfold"),
    h("span", { text: "Unfold" }),
  );
  const wrap = h("div", { class: "unfold" }, button, unfold.input);
  return {
    element: h("footer", { class: "foot" }, tools.element, layouts.element, wrap),
    update(state) {
      tools.set(state.tool);
      layouts.set(state.layout);
      unfold.input.value = state.unfold;
      button.lastChild.textContent = state.unfold < 0.5 ? "Unfold" : "Fold";
      for (const control of [button, unfold.input]) control.disabled = state.layout === "map";
    },
  };
}
