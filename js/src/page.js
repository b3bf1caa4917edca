// The stand-alone page, which contains its payload.
import { decode, fromBase64 } from "./data/decode.js";
import { h } from "./ui/dom.js";
import { resolveTheme } from "./draw/theme.js";
import { toView } from "./state/view.js";
import { readAddress, writeAddress } from "./state/address.js";
import { mount } from "./viewer.js";

const ADDRESS_DELAY = 400; // milliseconds after the last change of the state
const NOT_IN_ADDRESS = new Set(["hover", "lasso", "spotlight", "morph", "unfold", "tool", "railOpen", "tableOpen", "theme"]);

/** Read-only interface of the page, for users and tests. */
function createInterface(viewer) {
  const { store, dataset, stage, actions, model } = viewer;
  return Object.freeze({
    view: () => toView(store.get()),
    selection: () => Array.from(store.get().selection.rows),
    state() {
      const { tool, layout, unfold, theme, projection, size, pins, hover, colorBy, filters, embedding } = store.get();
      return { tool, layout, unfold, theme, projection, size, pins, hover: hover?.row ?? null, colorBy, filters: filters.size, embedding };
    },
    shown: () => model.shownCount,
    points: dataset.n,
    project: viewer.project,
    panes: () => stage.panesNow().map(({ name, rect }) => ({ name, ...rect })),
    picture: actions.picture,
    frames: stage.frames,
    budget: stage.budget,
    names: stage.names,
  });
}

const inAddress = (name) => new URLSearchParams(location.hash.slice(1)).get(name);

/** Address of this page with a state, and its other parameters. */
function linkTo(text) {
  const parts = new URLSearchParams(location.hash.slice(1));
  parts.set("view", text);
  return `${location.href.split("#")[0]}#${parts}`;
}

/** Apply the theme and the state in the address, which an embedding page or a link may set. */
function applyAddress({ store, dataset, model }) {
  const theme = inAddress("theme");
  if (["dark", "light", "auto"].includes(theme)) store.set({ theme: resolveTheme(theme) });
  const text = inAddress("view");
  const patch = text && readAddress(text, dataset, store.get(), model.columns.get);
  if (patch) store.set(patch);
}

/** Write the state to the address, so that the page can be reloaded or linked to at any time. */
function updateAddress({ store, dataset, model }) {
  let timer = 0;
  store.subscribe((state, changed) => {
    if ([...changed].every((key) => NOT_IN_ADDRESS.has(key))) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      try {
        history.replaceState(null, "", linkTo(writeAddress(store.get(), dataset, model.column).text));
      } catch {
        // Some browsers do not let files change their address; the button still copies a link.
      }
    }, ADDRESS_DELAY);
  });
}

export async function boot() {
  const root = document.getElementById("mercat");
  try {
    const payload = document.getElementById("mercat-payload");
    const bytes = fromBase64(payload.textContent);
    payload.remove(); // frees its memory
    const viewer = mount(root, await decode(bytes), { linkTo });
    applyAddress(viewer);
    addEventListener("hashchange", () => applyAddress(viewer));
    updateAddress(viewer);
    globalThis.mercat = createInterface(viewer);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    root.append(h("p", { class: "failure", role: "alert", text: `The page cannot be shown: ${error.message}` }));
    throw error;
  }
}
