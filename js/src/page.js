// The stand-alone page: the payload is in the page itself.
import { decode, fromBase64 } from "./data/decode.js";
import { h } from "./ui/dom.js";
import { resolveTheme } from "./draw/theme.js";
import { toView } from "./state/view.js";
import { mount } from "./viewer.js";

/** What a reader (or a test) may ask of the page; nothing here can change it. */
function windowOn(viewer) {
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
  });
}

/** Take the theme that the address names: a page around this one can tell it so (#theme=dark). */
function followAddress(store) {
  const wish = new URLSearchParams(location.hash.slice(1)).get("theme");
  if (["dark", "light", "auto"].includes(wish)) store.set({ theme: resolveTheme(wish) });
}

export async function boot() {
  const root = document.getElementById("mercat");
  try {
    const payload = document.getElementById("mercat-payload");
    const bytes = fromBase64(payload.textContent);
    payload.remove(); // the text is as large as all points together
    const viewer = mount(root, await decode(bytes));
    followAddress(viewer.store);
    addEventListener("hashchange", () => followAddress(viewer.store));
    globalThis.mercat = windowOn(viewer);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    root.append(h("p", { class: "failure", role: "alert", text: `The page could not be shown: ${error.message}` }));
    throw error;
  }
}
