// The notebook widget, in the form required by anywidget: render({ model, el }).
import { decode } from "./data/decode.js";
import { fromRows } from "./state/selection.js";
import { fromNamedRows, toNamedRows } from "./state/sets.js";
import { touched } from "./state/store.js";
import { VIEW_KEYS, fromView, toView } from "./state/view.js";
import { mount } from "./viewer.js";

const VIEW_MILLISECONDS = 120;

const bytesOf = (data) => new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);

function rowsFrom(data) {
  // A copy, since 32-bit numbers must start at a multiple of four.
  return new Uint32Array(bytesOf(data).slice().buffer);
}

const mapValues = (object, change) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));

const rowsTo = (rows) => new DataView(rows.slice().buffer);

/** Synchronise selection, sets and view between the model and the viewer, without echoes. */
export function link(viewer, model) {
  const { store, dataset } = viewer;
  let applying = false;
  let timer = 0;

  function apply(patch) {
    applying = true;
    store.set(patch);
    applying = false;
  }
  const onSelection = () => apply({ selection: fromRows(rowsFrom(model.get("selection")), dataset.n) });
  const onSets = () => apply({ sets: fromNamedRows(mapValues(model.get("sets"), rowsFrom), dataset.n) });
  const onView = () => apply(fromView(model.get("view")));

  function sendView() {
    model.set("view", toView(store.get()));
    model.save_changes();
  }
  const unsubscribe = store.subscribe((state, changed) => {
    if (applying) return;
    if (changed.has("selection")) {
      model.set("selection", rowsTo(state.selection.rows));
      model.save_changes();
    }
    if (changed.has("sets")) {
      model.set("sets", mapValues(toNamedRows(state.sets), rowsTo));
      model.save_changes();
    }
    if (touched(changed)(...VIEW_KEYS)) {
      clearTimeout(timer);
      timer = setTimeout(sendView, VIEW_MILLISECONDS);
    }
  });
  model.on("change:selection", onSelection);
  model.on("change:sets", onSets);
  model.on("change:view", onView);
  onSelection();
  onSets();
  onView();
  return () => {
    unsubscribe();
    clearTimeout(timer);
    model.off("change:selection", onSelection);
    model.off("change:sets", onSets);
    model.off("change:view", onView);
  };
}

/** Static picture shown until the widget runs, or instead of it. */
function hideStill({ ownerDocument }, model) {
  const still = ownerDocument.getElementById(model.get("_still"));
  if (still) still.hidden = true;
}

export async function render({ model, el }) {
  const root = document.createElement("div");
  root.style.height = `${model.get("height")}px`;
  el.append(root);
  const viewer = mount(root, await decode(bytesOf(model.get("_payload"))), { embedded: true });
  const unlink = link(viewer, model);
  hideStill(el, model);
  return () => {
    unlink();
    viewer.destroy();
  };
}
