// The frame of the inset: its name, a grip to move it, and a button to swap it with the large view. The stage draws its
// content.
import { insetPlace } from "../geometry/layout.js";
import { h, icon, iconButton } from "./dom.js";

export function createInset(store, stage, actions) {
  const name = h("span", {});
  const grip = h("span", { class: "grip", title: "Move the inset" }, icon("move"));
  const swap = iconButton("swap", "", actions.swap, { class: "icon-button swap-inset" });
  const element = h("div", { class: "inset" }, grip, name, swap);
  let start = null;

  grip.addEventListener("pointerdown", (event) => {
    event.stopPropagation();
    grip.setPointerCapture(event.pointerId);
    const { rect } = stage.panesNow().find(({ inset }) => inset);
    start = { x: event.clientX - rect.x, y: event.clientY - rect.y };
  });
  grip.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const { width, height } = stage.size();
    store.set({ insetAt: insetPlace(event.clientX - start.x, event.clientY - start.y, width, height) });
  });
  for (const type of ["pointerup", "pointercancel"]) grip.addEventListener(type, () => (start = null));

  return {
    element,
    update() {
      const pane = stage.panesNow().find(({ inset }) => inset);
      element.hidden = !pane;
      if (!pane) return;
      const { x, y, width, height } = pane.rect;
      Object.assign(element.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
      const other = pane.name === "globe" ? "globe" : "map";
      name.textContent = other === "globe" ? "Globe" : "Map";
      swap.title = `Enlarge the ${other} (U)`;
      swap.setAttribute("aria-label", `Enlarge the ${other}`);
    },
  };
}
