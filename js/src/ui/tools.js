// Tools on the stage: drag mode, large view, zoom, and display settings (behind the gear).
import { PROJECTIONS } from "../geometry/projections.js";
import { touched } from "../state/store.js";
import { checkbox, choice, h, icon, iconButton, slider } from "./dom.js";

const TURN = { text: "Turn", title: "Drag to turn (T)" };
const MOVE = { text: "Move", title: "Drag to move (T)" }; // in the plane, where nothing turns

const TOOLS = [
  { value: "turn", text: TURN.text, iconName: "turn", title: TURN.title },
  { value: "lasso", text: "Lasso", iconName: "lasso", title: "Drag to select (L, or hold Shift)" },
];

const SWITCHES = [
  ["names", "Names"],
  ["contours", "Density contours"],
  ["lines", "Lines to neighbours in the data"],
  ["inset", "Inset"],
  ["graticule", "Graticule"],
  ["seeThrough", "Back of the globe"],
];

function createDisplay(dataset, store, actions) {
  const projection = h(
    "select",
    { "aria-label": "Map projection", "data-control": "projection", onchange: () => actions.setProjection(projection.value) },
    ...Object.entries(PROJECTIONS).map(([value, { label, keeps }]) => h("option", { value, text: `${label}: ${keeps}` })),
  );
  // The slider is in powers of two; its middle is the default size.
  const size = slider("Point size", { min: -2, max: 2, step: 0.1, value: 0, "data-control": "size", oninput: (value) => store.set({ size: 2 ** value }) });
  const boxes = SWITCHES.filter(([key]) => key !== "lines" || dataset.neighbors).map(([key, text]) => ({ key, ...checkbox(text, (on) => store.set({ [key]: on })) }));
  return {
    element: h("div", { class: "sheet display" }, projection, size.element, h("div", { class: "checks" }, ...boxes.map(({ element }) => element))),
    update(state) {
      projection.value = state.projection;
      size.input.value = Math.log2(state.size);
      for (const { key, input } of boxes) input.checked = state[key];
    },
  };
}

export function createTools(dataset, store, model, actions) {
  const tools = choice("Drag mode", TOOLS, (tool) => store.set({ tool }));
  const swapText = h("span", {});
  const swap = h("button", { type: "button", class: "text-button swap", onclick: actions.swap }, icon("unfold"), swapText);
  const display = createDisplay(dataset, store, actions);
  const gear = h("details", { class: "gear" }, h("summary", { class: "icon-button", title: "Display", "aria-label": "Display" }, icon("gear")), display.element);
  const closeGear = (event) => {
    if (!gear.contains(event.target)) gear.open = false;
  };
  gear.addEventListener("toggle", () => {
    const change = gear.open ? document.addEventListener : document.removeEventListener;
    change.call(document, "pointerdown", closeGear);
  });
  gear.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !gear.open) return;
    event.stopPropagation();
    gear.open = false;
    gear.firstChild.focus();
  });
  const element = h(
    "div",
    { class: "tools", role: "group", "aria-label": "View" },
    tools.element,
    swap,
    h("div", { class: "zoom" }, iconButton("minus", "Zoom out (−)", () => actions.zoom(0.8)), iconButton("plus", "Zoom in (+)", () => actions.zoom(1.25))),
    gear,
  );
  return {
    element,
    update(state, changed) {
      const any = touched(changed);
      if (any("tool")) tools.set(state.tool);
      if (any("layout", "embedding")) {
        const toGlobe = state.layout === "map";
        const flat = model.embedding.kind === "plane";
        swap.hidden = flat;
        tools.rename("turn", flat ? MOVE : TURN);
        swapText.textContent = toGlobe ? "Fold" : "Unfold";
        swap.title = toGlobe ? "Fold the map into the globe (U)" : "Unfold the globe into the map (U)";
      }
      if (any("projection", "size", ...SWITCHES.map(([key]) => key))) display.update(state);
    },
  };
}
