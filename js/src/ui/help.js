// The help dialog.
import { h, iconButton } from "./dom.js";
import { KEYS } from "./keyboard.js";

const POINTER = [
  ["Drag", "turn; map and globe have the same centre"],
  ["Shift-drag", "select with a lasso; with Ctrl, add to the selection"],
  ["Right button, Alt, or two fingers", "pan"],
  ["Wheel or pinch", "zoom"],
  ["Click or tap", "pin or unpin a point; on the inset, enlarge it"],
  ["Double-click", "centre the view there"],
  ["Drag over a histogram", "filter by a range; click to clear it"],
  ["Click a value", "show only this value; click its dot, or Ctrl-click, to hide or add it"],
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
      h("header", {}, h("h2", { text: "Controls" }), iconButton("close", "Close help", () => element.close())),
      h(
        "p",
        { class: "quiet", text: "Nearby points are similar in the data. All points lie on a sphere. The globe shows this sphere, and the map is a flat projection of it with the same centre. Mercator preserves angles, but enlarges areas far from the horizontal centre line; Equal Earth preserves areas. While the view of a large data set moves, only a sample of the points is drawn." },
      ),
      h("div", { class: "tables" }, table("Pointer", POINTER, "span"), table("Keyboard", KEYS, "kbd")),
    ),
  );
  return { element, show: () => element.showModal() };
}
