// The header: title, number of points shown, search, and actions on the whole view.
import { h, icon, iconButton } from "./dom.js";
import { count, plural } from "./format.js";

/** Menu of embeddings. */
function createEmbeddings({ embeddings }, actions) {
  const select = h(
    "select",
    { class: "embeddings", "aria-label": "Embedding", title: "Embedding", onchange: () => actions.showEmbedding(Number(select.value)), hidden: embeddings.length < 2 },
    ...embeddings.map(({ name }, i) => h("option", { value: i, text: name })),
  );
  return select;
}

/** withLink: whether the page has an address for links. */
export function createHeader(dataset, store, actions, searchBox, withLink) {
  const shownText = h("span", { class: "quiet points" });
  const embeddings = createEmbeddings(dataset, actions);
  const undo = iconButton("undo", "Undo (Ctrl Z)", () => actions.undo(), { "data-action": "undo", disabled: true });
  const railButton = h(
    "button",
    { type: "button", class: "text-button rail-button", "aria-label": "Columns and selection", onclick: () => store.set({ railOpen: !store.get().railOpen }) },
    icon("panel"),
    h("span", { text: "Columns" }),
  );
  const menu = h(
    "div",
    { class: "icons menu" },
    iconButton("theme", "Dark or light theme (D)", actions.toggleTheme, { "data-action": "theme" }),
    withLink ? iconButton("link", "Copy a link to this view", actions.copyLink, { "data-action": "link" }) : null,
    iconButton("picture", "Save a picture (S)", actions.savePicture, { "data-action": "picture" }),
    iconButton("help", "Help (?)", actions.showHelp, { "data-action": "help" }),
    iconButton("reset", "Reset everything (R)", actions.reset, { "data-action": "reset" }),
  );
  const more = iconButton("more", "More", () => {
    const open = element.classList.toggle("menu-open");
    more.setAttribute("aria-expanded", String(open));
  }, { class: "icon-button more-button", "aria-expanded": "false" });
  const element = h(
    "header",
    { class: "head" },
    h("h1", { text: dataset.title, title: dataset.title }),
    shownText,
    embeddings,
    searchBox,
    railButton,
    h("div", { class: "icons" }, undo, more),
    menu,
  );
  return {
    element,
    setUndo: (possible) => {
      undo.disabled = !possible;
    },
    update(state, shownCount) {
      shownText.textContent = shownCount === dataset.n
        ? plural(dataset.n, "point")
        : `${count(shownCount)} of ${plural(dataset.n, "point")}`;
      embeddings.value = state.embedding;
      railButton.setAttribute("aria-expanded", String(state.railOpen));
    },
  };
}
