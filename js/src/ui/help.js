// The dialog that says how it is used.
import { h, iconButton } from "./dom.js";
import { KEYS } from "./keyboard.js";

const POINTER = [
  ["Drag", "turn; map and globe have the same middle"],
  ["Shift and drag", "lasso points; with Ctrl too, add to the selection"],
  ["Right button, Alt, or two fingers", "pan"],
  ["Wheel or pinch", "zoom"],
  ["Click or tap", "pin a point, or unpin it; on the inset, make it the large view"],
  ["Double click", "bring that place to the middle"],
  ["Drag over a histogram", "filter by a range; a click takes it away"],
  ["Click a value", "show it alone; its dot, or Ctrl and click, hides it or adds it"],
];

function table(caption, rows, tag) {
  return h(
    "table",
    {},
    h("caption", { text: caption }),
    ...rows.map(([what, does]) => h("tr", {}, h("th", { scope: "row" }, h(tag, { text: what })), h("td", { text: does }))),
  );
}

export function createHelp() {
  const element = h(
    "dialog",
    { class: "help", "aria-label": "Help", onclick: (event) => event.target === element && element.close() },
    h(
      "div",
      {},
      h("header", {}, h("h2", { text: "How to look around" }), iconButton("close", "Close help", () => element.close())),
      h(
        "p",
        { class: "quiet", text: "Points that are near each other are alike in the data. Every point lies on a sphere: the globe shows it as it is, the map is the same sphere laid flat about the same middle. Mercator keeps angles and stretches areas away from the middle line; Equal Earth keeps areas. While a large set is moving, a sample of it is drawn; at rest, all of it." },
      ),
      h("div", { class: "tables" }, table("Pointer", POINTER, "span"), table("Keyboard", KEYS, "kbd")),
    ),
  );
  return { element, show: () => element.showModal() };
}
