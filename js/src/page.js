// The stand-alone page: the payload is in the page itself.
import { decode, fromBase64 } from "./decode.js";
import { h } from "./dom.js";
import { toView } from "./view.js";
import { mount } from "./viewer.js";

/** What a reader (or a test) may ask of the page; nothing here can change it. */
function windowOn(viewer) {
  const { store, dataset, stage, actions } = viewer;
  return Object.freeze({
    view: () => toView(store.get()),
    selection: () => Array.from(store.get().selection.rows),
    state() {
      const { tool, layout, unfold, theme, projection, size, pins, hover, colorBy, filter } = store.get();
      return { tool, layout, unfold, theme, projection, size, pins, hover: hover?.row ?? null, colorBy, hidden: [...filter.hidden], range: filter.range };
    },
    points: dataset.n,
    project: viewer.project,
    panes: () => stage.panesNow().map(({ name, rect }) => ({ name, ...rect })),
    picture: actions.picture,
    frames: stage.frames,
    budget: stage.budget,
  });
}

export async function boot() {
  const root = document.getElementById("mercat");
  try {
    const payload = document.getElementById("mercat-payload");
    const bytes = fromBase64(payload.textContent);
    payload.remove(); // the text is as large as all points together
    const viewer = mount(root, await decode(bytes));
    globalThis.mercat = windowOn(viewer);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    root.append(h("p", { class: "failure", role: "alert", text: `The page could not be shown: ${error.message}` }));
    throw error;
  }
}
