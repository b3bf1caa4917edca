// A box that finds labels and selects their points.
import { h } from "./dom.js";
import { plural } from "./format.js";
import { rowsOf, searchLabels } from "../data/search.js";

const LISTED = 8;
let boxes = 0;

/** onfind(mask) is told the rows of what was chosen. */
export function createSearchBox(dataset, onfind) {
  const listName = `mercat-found-${boxes++}`;
  const list = h("ul", { class: "found", id: listName, role: "listbox", "aria-label": "Labels found", hidden: true });
  const input = h("input", {
    type: "search", placeholder: "Search labels", "aria-label": "Search labels", role: "combobox",
    "aria-controls": listName, "aria-expanded": "false", autocomplete: "off", spellcheck: "false",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(look, 120);
    },
    onkeydown: keydown,
    onblur: () => close(),
    onfocus: () => input.value && look(),
  });
  let timer = 0; // of a look that waits for more typing
  let found = []; // all labels that hold the text
  let current = -1; // the marked one

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  function choose(matches) {
    if (matches.length > 0) onfind(rowsOf(matches, dataset.n));
    close();
  }

  function option(match, i) {
    return h(
      "li",
      {
        role: "option", id: `${listName}-${i}`, "aria-selected": "false",
        onpointerdown: (event) => {
          event.preventDefault(); // keeps the focus in the box
          choose([match]);
        },
      },
      h("span", { class: "name", text: match.label }),
      h("span", { class: "quiet", text: match.column.name }),
    );
  }

  /** Find the labels that hold the text, and list the first of them. */
  function look() {
    clearTimeout(timer);
    timer = 0;
    found = searchLabels(dataset.columns, input.value);
    current = -1;
    input.removeAttribute("aria-activedescendant");
    const options = found.slice(0, LISTED).map(option);
    const says = found.length === 0
      ? "No label holds this"
      : `Enter selects ${found.length === 1 ? "it" : `all ${plural(found.length, "label")}`}`;
    list.replaceChildren(...options, h("li", { class: "quiet says", role: "presentation", text: says }));
    list.hidden = input.value.trim() === "";
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function mark(next) {
    const options = [...list.querySelectorAll("[role=option]")];
    if (options.length === 0) return;
    current = (next + options.length) % options.length;
    options.forEach((element, i) => element.setAttribute("aria-selected", String(i === current)));
    input.setAttribute("aria-activedescendant", options[current].id);
  }

  const keys = {
    ArrowDown: () => mark(current + 1),
    ArrowUp: () => mark(current - 1),
    Escape: close,
    Enter: () => choose(current >= 0 ? [found[current]] : found),
  };

  function keydown(event) {
    event.stopPropagation();
    if (!(event.key in keys)) return;
    if (timer !== 0) look(); // these keys mean the list of the text as it stands
    keys[event.key]();
    event.preventDefault();
  }

  return {
    element: h("div", { class: "search", role: "search" }, input, list),
    focus: () => input.focus(),
    clear() {
      input.value = "";
      look();
    },
  };
}
