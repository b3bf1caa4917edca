// A hint for new users; once closed, it is not shown again.
import { h, iconButton } from "./dom.js";

const KEY = "mercat-hint-closed";

function remembered() {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false; // storage is not available
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "yes");
  } catch {
    // The hint will be shown again.
  }
}

export function createHint(dataset) {
  const round = dataset.embeddings.some(({ kind }) => kind === "sphere");
  const text = h(
    "span",
    {},
    h("strong", { text: "Nearby points are similar in the data. " }),
    round ? "Drag the map or the globe to turn it; click the small one to swap them." : "Drag to move, Shift-drag to select.",
  );
  const element = h("p", { class: "hint", hidden: remembered() }, text, iconButton("close", "Close this note", () => {
    element.hidden = true;
    remember();
  }));
  return { element };
}
