// The key to the colours on narrow screens, where it replaces the columns and opens them.
import { occurring } from "../data/columns.js";
import { css } from "../draw/color.js";
import { touched } from "../state/store.js";
import { h } from "./dom.js";

const LISTED = 12;

export function createKey(store, model) {
  const element = h("button", { type: "button", class: "key", title: "All columns", onclick: () => store.set({ railOpen: true }) });

  function entries() {
    const { scheme } = model;
    if (scheme.kind === "number") {
      const ramp = h("span", { class: "bar" });
      ramp.style.background = `linear-gradient(90deg, ${scheme.colors.filter((_, i) => i % 15 === 0).map((color) => css(color)).join(", ")})`;
      return [h("span", { text: scheme.format(scheme.low) }), ramp, h("span", { text: scheme.format(scheme.high) })];
    }
    const codes = occurring(scheme.counts).sort((a, b) => scheme.counts[b] - scheme.counts[a]);
    const chips = codes.slice(0, LISTED).map((code) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = css(scheme.colors[code]);
      return h("span", { class: "chip" }, swatch, h("span", { class: "name", text: scheme.labels[code] }));
    });
    const left = codes.length - LISTED;
    return left > 0 ? [...chips, h("span", { class: "chip quiet", text: `and ${left} more` })] : chips;
  }

  return {
    element,
    update(state, changed) {
      if (!touched(changed)("scheme")) return;
      element.hidden = model.scheme.kind === "plain";
      if (element.hidden) return;
      element.replaceChildren(h("span", { class: "strong", text: model.scheme.name }), ...entries());
    },
  };
}
