// The selection: number of points, their colours, and actions.
import { css } from "../draw/color.js";
import { NOTHING } from "../state/selection.js";
import { touched } from "../state/store.js";
import { h } from "../ui/dom.js";
import { MISSING, count, percent, plural } from "../ui/format.js";
import { section } from "./section.js";

const LISTED = 6;

function shareLine(name, color, k, total) {
  const bar = h("span", { class: "share" });
  bar.style.width = `${Math.max(1, (100 * k) / total)}%`;
  bar.style.background = color;
  return h(
    "li",
    {},
    h("span", { class: "name", text: name, title: name }),
    h("span", { class: "count", text: `${count(k)} (${percent(k / total)})` }),
    bar,
  );
}

function classShares(scheme, rows) {
  const counts = new Map();
  for (const row of rows) counts.set(scheme.codes[row], (counts.get(scheme.codes[row]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([code, k]) => shareLine(scheme.labels[code], css(scheme.colors[code]), k, rows.length));
}

/** Median and quartiles of a number column. */
function summary({ name, values, format }, rows) {
  const known = Float64Array.from(rows, (row) => values[row]).filter((value) => value === value).sort();
  const missing = rows.length - known.length;
  const at = (q) => format(known[Math.round(q * (known.length - 1))]);
  const facts = known.length === 0
    ? []
    : [["median", at(0.5)], ["middle half", `${at(0.25)} to ${at(0.75)}`], ["range", `${at(0)} to ${at(1)}`]];
  if (missing > 0) facts.push([MISSING, count(missing)]);
  return h(
    "dl",
    { class: "facts" },
    h("div", { class: "field" }, h("dt", { text: name }), h("dd", {})),
    ...facts.map(([key, text]) => h("div", { class: "field" }, h("dt", { text: key }), h("dd", { text }))),
  );
}

export function createSelectionPanel({ store, model, actions }) {
  const says = h("p", { class: "strong" });
  const place = h("div", {});
  let open = false;
  const button = (text, onclick) => h("button", { type: "button", class: "text-button", text, onclick });
  const element = section(
    "Selection",
    { class: "selection-panel" },
    says,
    place,
    h(
      "div",
      { class: "buttons" },
      button("Centre", () => actions.centerSelection()),
      button("Keep", () => actions.keepSelection()),
      button("Save CSV", actions.saveRows),
      button("Clear", () => store.set({ selection: NOTHING })),
    ),
  );

  function divide({ rows }) {
    const { scheme } = model;
    if (scheme.kind === "plain") return [];
    if (scheme.kind === "number") return [summary(scheme, rows)];
    const lines = classShares(scheme, rows);
    const shown = open ? lines : lines.slice(0, LISTED);
    const left = lines.length - LISTED;
    const more = h("button", { type: "button", class: "link small", text: open ? "fewer" : `and ${count(left)} more`, onclick: () => {
      open = !open;
      place.replaceChildren(...divide(store.get().selection));
    } });
    return [h("ul", { class: "divided" }, ...shown), left > 0 ? more : ""];
  }

  return {
    element,
    update({ selection }, changed) {
      if (!touched(changed)("selection", "scheme")) return;
      element.hidden = selection.rows.length === 0;
      if (element.hidden) return;
      says.textContent = `${plural(selection.rows.length, "point")} selected`;
      place.replaceChildren(...divide(selection));
    },
  };
}
