// Sets, and the differences between two of them in all columns and genes, largest first.
import { effectOf, geneEffect, membership, sizesOf } from "../data/effects.js";
import { adjusted, probability } from "../data/tests.js";
import { dropped, renamed } from "../state/sets.js";
import { touched } from "../state/store.js";
import { h, iconButton } from "../ui/dom.js";
import { cell } from "../ui/export.js";
import { count, formatter, number, percent, plural } from "../ui/format.js";
import { section } from "./section.js";
import { createVolcano } from "./volcano.js";

const PAGE = 12;
const DELAY = 60; // milliseconds, so that a change of the selection is drawn first
const SELECTION = "selection"; // key of the selection; keys of sets are numbers
const REST = "rest";

/** Texts and lengths of the bars of A and B for a column. */
function sides({ kind, a, b, column, shareA, shareB }) {
  if (kind === "category") return { texts: [a, b].map(percent), lengths: [a, b] };
  if (kind === "gene") {
    const top = Math.max(a, b, 1e-12);
    const texts = [[a, shareA], [b, shareB]].map(([mean, share]) => `${number(mean, 3)} in ${percent(share)}`);
    return { texts, lengths: [a / top, b / top].map((part) => Math.max(0, part)) };
  }
  const format = formatter(column);
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const span = high - low || 1;
  const from = low >= 0 ? 0 : low - span * 0.1;
  return { texts: [a, b].map(format), lengths: [a, b].map((value) => (value - from) / (high - from || 1)) };
}

export function toTable(rows, [nameA, nameB]) {
  const head = ["name", "kind", "effect", "minus log10 p", "minus log10 adjusted p", `mean or share of ${nameA}`, `mean or share of ${nameB}`, "of which", `above 0 in ${nameA}`, `above 0 in ${nameB}`];
  const digits = (value) => (value === undefined || Number.isNaN(value) ? "" : String(Number(value.toPrecision(6))));
  const lines = rows.map(({ name, kind, effect, raw, score, a, b, label = "", shareA, shareB }) =>
    [cell(name), kind, digits(effect), digits(raw), digits(score), digits(a), digits(b), cell(label), digits(shareA), digits(shareB)].join(","),
  );
  return `${[head.map(cell).join(","), ...lines].join("\r\n")}\r\n`;
}

export function createComparePanel({ dataset, store, model, actions }) {
  const { n, columns, genes } = dataset;
  const list = h("ul", { class: "sets" });
  const chooseA = h("select", { "aria-label": "Set A", onchange: () => choose() });
  const chooseB = h("select", { "aria-label": "Set B", onchange: () => choose() });
  const effects = h("ol", { class: "effects" });
  const more = h("button", { type: "button", class: "link small", onclick: () => {
    room += 4 * PAGE;
    write();
  } });
  const save = h("button", { type: "button", class: "text-button", text: "Save this list", onclick: () => actions.saveText(toTable(ranked, namesOf()), "comparison") });
  const sizesLine = h("p", { class: "small" });
  const about = h("p", { class: "quiet small" });
  const show = (entry) => (entry.gene === undefined ? actions.colorBy(entry.index) : actions.showGene(entry.gene));
  const volcano = createVolcano(show);
  const tabs = ["Columns", "Genes"].map((text, i) => h("button", { type: "button", text, onclick: () => {
    tab = i;
    compute();
  } }));
  const body = h(
    "div",
    {},
    h("div", { class: "versus" }, h("span", {}, h("span", { class: "dot a" }), "A"), chooseA, h("span", {}, h("span", { class: "dot b" }), "B"), chooseB),
    h("div", { class: "tabs", hidden: !genes }, ...tabs),
    sizesLine, volcano.element, effects, more, h("div", { class: "buttons" }, save), about,
  );
  const element = section("Compare A with B", { class: "compare-panel" }, list, body);
  let [tab, room, timer] = [0, PAGE, 0];
  let chosen = [SELECTION, REST];
  let ranked = [];

  const rowsOf = (key) => (key === SELECTION ? store.get().selection.rows : store.get().sets[Number(key)]?.selection.rows ?? []);
  const nameOf = (key) => ({ [SELECTION]: "the selection", [REST]: "the rest" })[key] ?? store.get().sets[Number(key)]?.name ?? "";
  const namesOf = () => chosen.map(nameOf);

  function choose() {
    chosen = [chooseA.value, chooseB.value];
    compute();
  }

  function listSets({ sets }) {
    list.replaceChildren(...sets.map(({ name, selection }) => h(
      "li",
      {},
      h("input", { type: "text", value: name, "aria-label": `Name of set ${name}`, maxlength: 60, onchange: (event) => {
        store.set({ sets: renamed(store.get().sets, name, event.target.value) });
        listSets(store.get());
      } }),
      h("button", { type: "button", class: "link small", text: plural(selection.rows.length, "point"), title: "Select these points", onclick: () => store.set({ selection }) }),
      iconButton("close", `Delete set ${name}`, () => store.set({ sets: dropped(store.get().sets, name) }), { class: "icon-button small" }),
    )));
  }

  function options({ sets, selection }) {
    const setOptions = sets.map(({ name }, i) => [String(i), name]);
    const selectionOption = selection.rows.length > 0 ? [[SELECTION, "the selection"]] : [];
    const entries = (pairs) => pairs.map(([value, text]) => h("option", { value, text }));
    chooseA.replaceChildren(...entries([...selectionOption, ...setOptions]));
    chooseB.replaceChildren(...entries([[REST, "the rest"], ...setOptions, ...selectionOption]));
    const has = (select, value) => [...select.options].some((option) => option.value === value);
    if (!has(chooseA, chosen[0])) chosen[0] = chooseA.options[0]?.value ?? SELECTION;
    if (!has(chooseB, chosen[1])) chosen[1] = REST;
    [chooseA.value, chooseB.value] = chosen;
  }

  function rank() {
    const [a, b] = chosen;
    const marks = membership(rowsOf(a), b === REST ? null : rowsOf(b), n);
    const sizes = sizesOf(marks);
    const results = tab === 0
      ? columns.flatMap((raw, index) => {
          const column = model.column(index);
          return column.role === "id" ? [] : [{ name: raw.name, index, column, ...effectOf(column, marks) }];
        })
      : genes.names.map((name, gene) => ({ name, gene, ...geneEffect(genes, gene, marks, sizes) }));
    const scores = adjusted(results.map(({ score }) => score));
    const shared = marks.includes(3); // p-values assume disjoint sets
    ranked = results
      .map((entry, i) => ({ ...entry, raw: shared ? NaN : entry.score, score: shared ? NaN : scores[i] }))
      .sort((p, q) => Math.abs(q.effect) - Math.abs(p.effect) || q.score - p.score);
    sizesLine.textContent = Math.min(...sizes) === 0 ? "One of the sets is empty." : `${count(sizes[0])} against ${plural(sizes[1], "point")}`;
    about.textContent = `Effect sizes range from 0 (equal) to 1 (disjoint); + and − mean higher and lower values in A. ${
      shared ? "There are no p-values, since the sets share points." : "p: p-value, corrected for multiple comparisons."}`;
  }

  function line(entry) {
    const { texts, lengths } = sides(entry);
    const bars = ["a", "b"].map((side, i) => {
      const bar = h("span", { class: side });
      bar.style.width = `${Math.min(100, 100 * lengths[i])}%`;
      return bar;
    });
    const sign = entry.kind === "category" ? "" : entry.effect >= 0 ? "+" : "−";
    return h(
      "li",
      {},
      h("div", { class: "line" },
        h("button", { type: "button", class: "name", text: entry.name, title: `Colour by ${entry.name}`, onclick: () => show(entry) }),
        h("span", { class: "count small quiet", text: Number.isNaN(entry.score) ? "" : `p ${probability(entry.score)}` }),
        h("span", { class: "count effect", text: sign + Math.abs(entry.effect).toFixed(2) })),
      h("div", { class: "line small quiet" }, h("span", { class: "name", text: entry.label ?? "" }), h("span", { text: `${texts[0]} | ${texts[1]}` })),
      h("div", { class: "pair", "aria-hidden": "true" }, ...bars),
    );
  }

  function write() {
    volcano.draw(ranked, tab === 0 ? "columns" : "genes");
    effects.replaceChildren(...ranked.slice(0, room).map(line));
    more.hidden = ranked.length <= room;
    more.textContent = `and ${count(ranked.length - room)} more`;
    tabs.forEach((button, i) => button.setAttribute("aria-pressed", String(i === tab)));
  }

  function compute() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (element.hidden) return;
      rank();
      write();
    }, DELAY);
  }

  return {
    element,
    update(state, changed) {
      const any = touched(changed);
      if (!any("selection", "sets", "scales")) return;
      element.hidden = state.selection.rows.length === 0 && state.sets.length === 0;
      if (any("sets")) listSets(state);
      options(state);
      room = PAGE;
      compute();
    },
    destroy: () => clearTimeout(timer),
  };
}
