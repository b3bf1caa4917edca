// One line for a first-time visitor, gone for good once it is closed.
import { h, iconButton } from "./dom.js";

const KEY = "mercat-hint-closed";

function remembered() {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false; // a browser that keeps nothing
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "yes");
  } catch {
    // it comes again next time
  }
}

export function createHint(dataset) {
  const round = dataset.embeddings.some(({ kind }) => kind === "sphere");
  const text = h(
    "span",
    {},
    h("strong", { text: "Near points are alike in the data. " }),
    round ? "The globe is the map before it is laid flat: turn either, click it to swap." : "Drag to move, Shift and drag to select.",
  );
  const element = h("p", { class: "hint", hidden: remembered() }, text, iconButton("close", "Close this note", () => {
    element.hidden = true;
    remember();
  }));
  return { element };
}
