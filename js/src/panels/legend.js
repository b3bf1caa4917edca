// The key to the colours, which also hides, isolates and narrows.
import { css } from "../draw/color.js";
import { h } from "../ui/dom.js";
import { isolate, toggle } from "../state/filter.js";
import { MISSING, count, number } from "../ui/format.js";

const MOST_ENTRIES = 200;

/** Codes in the legend's order: as the labels came, the missing last. */
export function legendCodes({ counts }) {
  const codes = Array.from(counts.keys()).filter((code) => code > 0 && counts[code] > 0);
  return counts[0] > 0 ? [...codes, 0] : codes;
}

function entry(scheme, code, store, codes) {
  const label = scheme.labels[code];
  const set = (change) => store.set({ filter: change(store.get().filter), spotlight: null });
  const swatch = h("span", { class: "swatch" });
  swatch.style.background = css(scheme.colors[code]);
  return h(
    "li",
    {
      "data-code": code,
      onmouseenter: () => store.set({ spotlight: code }),
      onmouseleave: () => store.set({ spotlight: null }),
    },
    h(
      "button",
      {
        type: "button", class: "entry", title: "Click to hide or show; double-click to show alone",
        onclick: () => set((filter) => toggle(filter, code)),
        ondblclick: () => set((filter) => isolate(filter, code, codes)),
      },
      swatch,
      h("span", { class: code === 0 ? "name quiet" : "name", text: label, title: label }),
      h("span", { class: "count", text: count(scheme.counts[code]) }),
    ),
    h("button", {
      type: "button", class: "only", text: "only", "aria-label": `Show only ${label}`,
      onclick: () => set((filter) => isolate(filter, code, codes)),
    }),
  );
}

function categoryLegend(scheme, store) {
  const codes = legendCodes(scheme);
  const listed = codes.length > MOST_ENTRIES
    ? [...codes].sort((a, b) => scheme.counts[b] - scheme.counts[a]).slice(0, MOST_ENTRIES)
    : codes;
  const list = h("ul", { class: "entries" }, ...listed.map((code) => entry(scheme, code, store, codes)));
  const rest = codes.length - listed.length;
  const note = rest > 0 ? h("p", { class: "quiet", text: `and ${count(rest)} smaller ${rest === 1 ? "category" : "categories"}` }) : null;
  return {
    element: h("div", {}, list, note),
    update({ filter }) {
      for (const item of list.children) {
        const hidden = filter.hidden.has(Number(item.dataset.code));
        item.classList.toggle("off", hidden);
        item.firstChild.setAttribute("aria-pressed", String(!hidden));
      }
    },
  };
}

function rangeInput(label, value, oninput) {
  const input = h("input", { type: "range", min: 0, max: 1000, step: 1, "aria-label": label, oninput });
  input.value = value;
  return input;
}

function numberLegend(scheme, store) {
  const { low, high, min, max } = scheme;
  const bar = h("div", { class: "bar" });
  bar.style.background = `linear-gradient(90deg, ${scheme.colors.filter((_, i) => i % 15 === 0).map((color) => css(color)).join(", ")})`;
  const ends = h(
    "div",
    { class: "ends" },
    h("span", { text: (min < low ? "≤ " : "") + number(low, 3) }),
    scheme.role === "loss" ? h("span", { class: "quiet", text: "trusted ⟶ doubtful" }) : "",
    h("span", { text: (max > high ? "≥ " : "") + number(high, 3) }),
  );
  const valueAt = (t) => min + ((max - min) * t) / 1000;
  const from = rangeInput(`Least ${scheme.name} shown`, 0, () => change());
  const to = rangeInput(`Greatest ${scheme.name} shown`, 1000, () => change());
  const says = h("p", { class: "quiet" });
  function change() {
    const [a, b] = [Number(from.value), Number(to.value)].sort((p, q) => p - q);
    const whole = a === 0 && b === 1000;
    const range = whole ? null : [a === 0 ? -Infinity : valueAt(a), b === 1000 ? Infinity : valueAt(b)];
    store.set({ filter: { ...store.get().filter, range } });
  }
  const missing = scheme.missing > 0
    ? h("button", {
        type: "button", class: "entry",
        onclick: () => store.set({ filter: toggle(store.get().filter, 0) }),
      }, h("span", { class: "swatch" }), h("span", { class: "name quiet", text: MISSING }), h("span", { class: "count", text: count(scheme.missing) }))
    : null;
  if (missing) missing.firstChild.style.background = css(scheme.missingColor);
  return {
    element: h("div", { class: "scale" }, bar, ends, h("div", { class: "range" }, from, to), says, missing),
    update({ filter }) {
      if (filter.range === null) [from.value, to.value] = [0, 1000];
      const [a, b] = filter.range ?? [min, max];
      says.textContent = filter.range === null
        ? "Drag the handles to narrow"
        : `Showing ${number(Math.max(a, min), 4)} to ${number(Math.min(b, max), 4)}`;
      missing?.setAttribute("aria-pressed", String(!filter.hidden.has(0)));
      missing?.classList.toggle("off", filter.hidden.has(0));
    },
  };
}

/** { element, update(state) } for a scheme. */
export function createLegend(scheme, store) {
  if (scheme.kind === "category") return categoryLegend(scheme, store);
  if (scheme.kind === "number") return numberLegend(scheme, store);
  return { element: h("p", { class: "quiet", text: "No column gives the colours." }), update() {} };
}
