// A section of the side panel, with a title.
import { h } from "../ui/dom.js";

export function section(title, attributes, ...children) {
  return h("section", { "aria-label": title, ...attributes }, h("h2", { text: title }), ...children);
}
