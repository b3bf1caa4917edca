// The drawer below the map: a table of the selected rows.
import { touched } from "../state/store.js";
import { h, icon } from "../ui/dom.js";
import { count, field, plural } from "../ui/format.js";

const PAGE = 100; // rows at a time

export function createTablePanel({ dataset, store, actions }) {
  const { columns } = dataset;
  const says = h("span", {});
  const bar = h(
    "button",
    { type: "button", class: "drawer-bar", "aria-expanded": "false", onclick: () => store.set({ tableOpen: !store.get().tableOpen }) },
    icon("table"),
    says,
    h("span", { class: "chevron" }, icon("up")),
  );
  const body = h("tbody", {});
  const table = h(
    "table",
    { class: "rows" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "row" }), ...columns.map(({ name }) => h("th", { scope: "col", text: name, title: name })))),
    body,
  );
  const empty = h("p", { class: "quiet", text: "Select points with the lasso or the search to show their rows here." });
  const more = h("button", { type: "button", class: "text-button", onclick: append });
  const sheet = h("div", { class: "drawer-sheet", tabindex: 0, role: "region", "aria-label": "Selected rows" }, empty, table, more);
  const element = h("section", { class: "drawer", "aria-label": "Table" }, bar, sheet);
  let rows = [];
  let listed = 0;

  function line(row) {
    return h(
      "tr",
      { onpointerenter: () => store.set({ hover: { row, at: null, docked: false } }), onpointerleave: () => store.set({ hover: null }) },
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", text: count(row), title: "Centre this point", onclick: () => actions.centerRow(row) })),
      ...columns.map((column) => {
        const text = field(column, row);
        return h("td", { class: column.kind === "category" ? "" : "numeric", text, title: text });
      }),
    );
  }

  function append() {
    body.append(...Array.from(rows.slice(listed, listed + PAGE), line));
    listed = Math.min(rows.length, listed + PAGE);
    more.hidden = listed === rows.length;
    more.textContent = `Show ${count(Math.min(PAGE, rows.length - listed))} more of ${count(rows.length)}`;
  }

  return {
    element,
    update(state, changed) {
      const any = touched(changed);
      if (!any("selection", "tableOpen")) return;
      ({ rows } = state.selection);
      says.textContent = rows.length === 0 ? "Table" : `Table: ${plural(rows.length, "selected row")}`;
      element.classList.toggle("open", state.tableOpen);
      sheet.hidden = !state.tableOpen;
      bar.setAttribute("aria-expanded", String(state.tableOpen));
      if (!state.tableOpen) return;
      listed = 0;
      body.replaceChildren();
      empty.hidden = rows.length > 0;
      table.hidden = rows.length === 0;
      append();
      if (rows.length === 0) more.hidden = true;
    },
  };
}
