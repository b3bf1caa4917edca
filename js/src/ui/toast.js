// A message at the bottom of the stage, with an optional action.
import { h } from "./dom.js";

const SECONDS = 8;

export function createToast() {
  const says = h("span", {});
  const button = h("button", { type: "button", class: "link" });
  const element = h("div", { class: "toast", role: "status", hidden: true }, says, button);
  let timer = 0;
  let act = null;
  button.addEventListener("click", () => {
    element.hidden = true;
    act?.();
  });
  return {
    element,
    /** action: text of the button, if any; run: its handler. */
    show(text, action = null, run = null) {
      says.textContent = text;
      button.hidden = action === null;
      button.textContent = action ?? "";
      act = run;
      element.hidden = false;
      clearTimeout(timer);
      timer = setTimeout(() => (element.hidden = true), 1000 * SECONDS);
    },
    destroy: () => clearTimeout(timer),
  };
}
