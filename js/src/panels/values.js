// Values of a category column, with bars that show counts and filter. A single tab stop; arrow keys move within.
import { occurring, labelOf } from "../data/columns.js";
import { css } from "../draw/color.js";
import { holds, isolated, toggled } from "../state/filter.js";
import { h } from "../ui/dom.js";
import { count } from "../ui/format.js";

const FEW = 5; // values listed for a column that does not give the colours
const MANY = 30; // values listed for the column that does
const MOST = 2000; // values listed at all
const SEARCHED_FROM = 12;

export function createValues({ store, model, actions }, index) {
  const column = model.column(index);
  const { all } = model.bins(index);
  const codes = occurring(all);
  const bySize = [...codes].sort((a, b) => all[b] - all[a]);
  const largest = Math.max(1, ...bySize.slice(0, 1).map((code) => all[code]));
  const rows = new Map(); // by code, created when first listed
  let listed = [];
  let current = codes[0]; // the one that the tab key focuses
  let open = false;

  const list = h("ul", {
    class: "values", role: "listbox", "aria-multiselectable": "true", "aria-label": `Values of ${column.name}`, onkeydown: keydown,
    onpointerleave: () => store.set({ spotlight: null }),
  });
  const query = h("input", {
    type: "search", class: "filter-values", placeholder: `Search ${count(codes.length)} values`, "aria-label": `Search values of ${column.name}`,
    oninput: () => refill(store.get()),
  });
  const more = h("button", { type: "button", class: "link small", onclick: () => {
    open = !open;
    refill(store.get());
  } });
  query.hidden = codes.length <= SEARCHED_FROM;
  const element = h("div", {}, query, list, more);

  const filterOf = () => store.get().filters.get(index);
  const toggle = (code) => actions.setFilter(index, toggled(filterOf(), code, codes));
  const isolate = (code) => actions.setFilter(index, isolated(filterOf(), code));

  function createRow(code) {
    const label = labelOf(column, code);
    const swatch = h("span", { class: "swatch", title: "Hide or show", onclick: (event) => {
      event.stopPropagation();
      toggle(code);
    } });
    const back = h("span", { class: "share all" });
    const front = h("span", { class: "share" });
    const chosen = h("span", { class: "share chosen" });
    const number = h("span", { class: "count" });
    const item = h(
      "li",
      {
        role: "option", "data-code": code, tabindex: -1, title: label,
        onclick: (event) => {
          current = code;
          if (event.ctrlKey || event.metaKey || event.shiftKey) toggle(code);
          else isolate(code);
        },
        onpointerenter: () => store.get().colorBy === index && store.set({ spotlight: { column: index, code } }),
      },
      swatch,
      h("span", { class: code === 0 ? "name quiet" : "name", text: label }),
      number,
      h("span", { class: "shares", "aria-hidden": "true" }, back, front, chosen),
    );
    back.style.width = `${(100 * all[code]) / largest}%`;
    return { item, swatch, front, chosen, number };
  }

  function row(code) {
    if (!rows.has(code)) rows.set(code, createRow(code));
    return rows.get(code);
  }

  /** Values listed: all in their order, or the most frequent if there are too many. */
  function choose(state) {
    const needle = query.value.trim().toLowerCase();
    if (needle) return bySize.filter((code) => labelOf(column, code).toLowerCase().includes(needle)).slice(0, MOST);
    const room = open ? MOST : state.colorBy === index ? MANY : FEW;
    return codes.length <= room ? codes : bySize.slice(0, room);
  }

  function refill(state) {
    listed = choose(state);
    list.replaceChildren(...listed.map((code) => row(code).item));
    if (!listed.includes(current)) current = listed[0];
    const left = codes.length - listed.length;
    more.hidden = Boolean(query.value.trim()) || (left === 0 && !open);
    more.textContent = left > 0 ? `and ${count(left)} more` : "fewer";
    redraw(state);
  }

  function redraw(state) {
    const filter = state.filters.get(index);
    const counts = model.counts(index);
    const chosen = state.selection.mask ? model.counts(index, state.selection.mask) : null;
    const colors = state.colorBy === index && model.scheme.kind === "category" ? model.scheme.colors : null;
    for (const code of listed) {
      const { item, swatch, front, chosen: part, number } = row(code);
      const on = holds(filter, code);
      const color = colors ? css(colors[code]) : "";
      item.setAttribute("aria-selected", String(on));
      item.tabIndex = code === current ? 0 : -1;
      swatch.style.background = color;
      front.style.background = color;
      front.style.width = `${(100 * counts[code]) / largest}%`;
      front.style.opacity = chosen && on ? 0.3 : ""; // so that the selected part stands out in the same colour
      part.style.background = color;
      part.style.width = chosen ? `${(100 * chosen[code]) / largest}%` : "0";
      number.textContent = count(chosen ? chosen[code] : counts[code]);
      number.title = `${count(counts[code])} shown of ${count(all[code])}${chosen ? `, ${count(chosen[code])} selected` : ""}`;
    }
  }

  function move(to) {
    const code = listed[Math.max(0, Math.min(listed.length - 1, to))];
    row(current).item.tabIndex = -1;
    current = code;
    row(code).item.tabIndex = 0;
    row(code).item.focus();
  }

  function keydown(event) {
    const at = listed.indexOf(current);
    const keys = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(listed.length - 1),
      " ": () => toggle(current),
      Enter: () => isolate(current),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }

  let wasColored = null;
  return {
    element,
    update(state) {
      const colored = state.colorBy === index;
      if (colored !== wasColored) refill(state);
      else redraw(state);
      wasColored = colored;
    },
  };
}
