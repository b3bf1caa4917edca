// A search box for labels, numbers and rows, which selects their points.
import { find, meant, rowsOf } from "../data/search.js";
import { h } from "./dom.js";
import { count, plural } from "./format.js";

const MAX_LISTED = 8;
let boxes = 0;

/** onfind(mask) is called with the rows of the chosen matches, ongene(gene) with a gene. */
export function createSearchBox(dataset, { onfind, ongene }) {
  const listName = `mercat-found-${boxes++}`;
  const list = h("ul", { id: listName, role: "listbox", "aria-label": "Matches" });
  const note = h("p", { class: "quiet says" });
  const box = h("div", { class: "found", hidden: true }, list, note);
  const input = h("input", {
    type: "search", placeholder: "Search labels, numbers, rows", "aria-label": "Search labels and numbers", role: "combobox",
    "aria-controls": listName, "aria-expanded": "false", autocomplete: "off", spellcheck: "false",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(search, 120);
    },
    onkeydown: keydown,
    onblur: () => close(),
    onfocus: () => input.value && search(),
  });
  let timer = 0; // of a search that waits for more typing
  let allMatches = []; // of the current text
  let current = -1; // index of the marked match, or -1

  function close() {
    box.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  function choose(matches) {
    const points = matches.filter(({ gene }) => gene === undefined);
    if (points.length > 0) onfind(rowsOf(points, dataset.n));
    else if (matches.length > 0) ongene(matches[0].gene);
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
      h("span", { class: "quiet", text: match.source }),
    );
  }

  function describeEnter() {
    if (allMatches.length === 0) return "No match";
    const wanted = meant(allMatches);
    if (wanted.every(({ gene }) => gene !== undefined)) return "Enter colours by the first";
    if (wanted.length > 1) return `Enter selects all ${count(wanted.length)}`;
    return allMatches.length === 1 ? "Enter selects it" : "Enter selects the first, an exact match";
  }

  /** Find matches of the text, and list the first ones. */
  function search() {
    clearTimeout(timer);
    timer = 0;
    allMatches = find(dataset, input.value);
    current = -1;
    input.removeAttribute("aria-activedescendant");
    list.replaceChildren(...allMatches.slice(0, MAX_LISTED).map(option));
    const more = allMatches.length - MAX_LISTED;
    note.textContent = `${more > 0 ? `and ${plural(more, "other")}. ` : ""}${describeEnter()}`;
    box.hidden = input.value.trim() === "";
    input.setAttribute("aria-expanded", String(!box.hidden));
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
    Enter: () => choose(current >= 0 ? [allMatches[current]] : meant(allMatches)),
  };

  function keydown(event) {
    event.stopPropagation();
    if (!(event.key in keys)) return;
    if (timer !== 0) search(); // these keys apply to the matches of the current text
    keys[event.key]();
    event.preventDefault();
  }

  return {
    element: h("div", { class: "search", role: "search" }, input, box),
    focus: () => input.focus(),
    clear() {
      input.value = "";
      search();
    },
  };
}
