// Fields of a point: next to the pointer, or pinned in the panel.
import { h, iconButton } from "./dom.js";
import { count, field } from "./format.js";

const MOST_FIELDS = 8;

const line = (name, text) => h("div", { class: "field" }, h("dt", { text: name }), h("dd", { text }));

/** Number of neighbours in the data, and of those torn away on this embedding. */
function neighborLine({ neighbors }, row, embedding) {
  if (!neighbors) return null;
  const found = neighbors.of(row, embedding);
  const torn = found.filter((one) => one.torn).length;
  return line("neighbours", torn > 0 ? `${found.length}, ${torn} torn away` : String(found.length));
}

function lines(columns, row) {
  return columns.map((column) => line(column.name, field(column, row)));
}

/** The column of the colours comes first. */
function ordered({ columns, column }, colorBy) {
  const first = column(colorBy);
  return first ? [first, ...columns.filter((one) => one !== first)] : columns;
}

export function createTooltip(dataset) {
  const element = h("div", { class: "tooltip", hidden: true });
  return {
    element,
    /** docked: at the bottom of the stage, for touch screens. */
    show(row, { colorBy, embedding }, { at: [x, y], docked }, { width, height }) {
      const shown = ordered(dataset, colorBy).slice(0, MOST_FIELDS);
      const left = ordered(dataset, colorBy).length - shown.length;
      element.replaceChildren(...[
        h("div", { class: "row-name", text: `Row ${count(row)}` }),
        dataset.images?.element(row),
        h("dl", {}, ...lines(shown, row), neighborLine(dataset, row, embedding)),
        left > 0 ? h("div", { class: "quiet", text: docked ? `and ${left} more under Columns` : `and ${left} more: click to pin` }) : null,
      ].filter(Boolean));
      element.hidden = false;
      element.classList.toggle("docked", docked);
      element.style.left = element.style.top = "";
      if (docked) return;
      const box = element.getBoundingClientRect();
      const right = x + 16 + box.width > width ? x - 16 - box.width : x + 16;
      element.style.left = `${Math.max(4, right)}px`;
      element.style.top = `${Math.max(4, Math.min(y + 12, height - box.height - 4))}px`;
    },
    hide() {
      element.hidden = true;
    },
  };
}

/** on: { close, center, neighbors }, the handlers of its buttons. */
export function pinnedCard(dataset, row, index, { colorBy, embedding }, on) {
  const name = `Row ${count(row)}`;
  return h(
    "article",
    { class: "card", "aria-label": `Pinned ${name}` },
    h(
      "header",
      {},
      h("span", { class: "badge", text: String(index + 1) }),
      h("button", { type: "button", class: "row-name link", title: "Centre this point", text: name, onclick: on.center }),
      iconButton("close", `Unpin ${name}`, on.close),
    ),
    dataset.images?.element(row),
    h("dl", {}, ...lines(ordered(dataset, colorBy), row), neighborLine(dataset, row, embedding)),
    dataset.neighbors ? h("button", { type: "button", class: "link", text: "Select its neighbours", onclick: on.neighbors }) : null,
  );
}

export function describe(dataset, row, colorBy) {
  const column = dataset.column(colorBy);
  return column ? `Row ${count(row)}, ${column.name} ${field(column, row)}` : `Row ${count(row)}`;
}
