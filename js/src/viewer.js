// Puts the parts together on one element.
import { createActions } from "./ui/actions.js";
import { createTooltip, describe } from "./ui/card.js";
import { h } from "./ui/dom.js";
import { plural } from "./ui/format.js";
import { attachGestures } from "./ui/gestures.js";
import { createHelp } from "./ui/help.js";
import { attachKeyboard } from "./ui/keyboard.js";
import { rowsInside } from "./geometry/lasso.js";
import { createModel } from "./state/model.js";
import { createMotion } from "./geometry/motion.js";
import { createPanel } from "./panels/panel.js";
import { createProjector, pick } from "./geometry/picking.js";
import { createSearchBox } from "./ui/searchbox.js";
import { combine, fromMask } from "./state/selection.js";
import { createStage } from "./draw/stage.js";
import { initialState } from "./state/state.js";
import { createStore, touched } from "./state/store.js";
import { resolveTheme } from "./draw/theme.js";
import { createFooter, createHeader } from "./ui/toolbar.js";

const NARROW = 760; // pixels of the viewer, not of the screen: a notebook's cell may be narrow
const REACH = { mouse: 9, touch: 22 };

const wantsCalm = () => globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;

/** Show a dataset (decode.js) in an element. embedded: inside a page that scrolls. */
export function mount(root, dataset, { embedded = false } = {}) {
  const store = createStore(initialState(dataset, resolveTheme(dataset.options.theme)));
  const model = createModel(dataset);
  const motion = createMotion(store, { calm: wantsCalm });
  const stage = createStage(dataset, store, model, motion, { onrest: updateNote });
  const search = createSearchBox(dataset, find);
  const help = createHelp();
  const activePane = () => {
    const list = stage.panesNow();
    return list.find(({ name }) => name === store.get().active) ?? list[0];
  };
  const pickable = () => ({ ...model, rotation: store.get().rotation, positions: dataset.positions });
  const actions = createActions(dataset, store, model, motion, { stage, search, help, activePane, pickable });
  const header = createHeader(dataset, store, actions, search.element);
  const footer = createFooter(store, actions);
  const panel = createPanel(dataset, store, actions);
  const tooltip = createTooltip(dataset);
  const note = h("p", { class: "note quiet", hidden: true });
  const live = h("p", { class: "unseen", role: "status", "aria-live": "polite" });

  root.classList.add("mercat");
  root.classList.toggle("embedded", embedded);
  stage.element.append(tooltip.element, note);
  root.append(header.element, stage.element, panel.element, footer.element, help.element, live);

  function find(mask) {
    store.set({ selection: fromMask(mask) });
    actions.centerSelection();
  }

  attachGestures(stage.element, {
    store, motion, panesNow: stage.panesNow, wheelNeedsFocus: embedded,
    on: {
      hover(pane, [x, y]) {
        const row = pane === null ? -1 : pick(pane, x, y, REACH.mouse, pickable());
        const { hover } = store.get();
        if (row < 0) store.set({ hover: null });
        else if (hover?.row !== row || hover.pane !== pane.name) store.set({ hover: { row, pane: pane.name, at: [x, y] } });
      },
      leave: () => store.set({ hover: null }),
      click(pane, [x, y], touch) {
        const row = pick(pane, x, y, touch ? REACH.touch : REACH.mouse, pickable());
        if (row >= 0) actions.togglePin(row);
      },
      lasso(pane, polygon, how) {
        const next = fromMask(rowsInside(polygon, pane, pickable()));
        store.set({ selection: combine(store.get().selection, next, how) });
      },
    },
  });
  const detachKeyboard = attachKeyboard(embedded ? stage.element : document, store, actions, activePane);

  function updateNote() {
    const map = stage.panesNow().find(({ name }) => name === "map");
    const beyond = map ? model.countBeyond(store.get()) : 0;
    note.hidden = beyond === 0;
    if (beyond === 0) return;
    note.textContent = `${plural(beyond, "point")} beyond the edge: turn, or choose Equal Earth`;
    note.style.maxWidth = `${map.rect.width}px`;
    note.style.left = `${map.rect.x + map.rect.width / 2}px`;
    note.style.top = `${map.rect.y + map.rect.height - 30}px`;
  }

  function announce(state, changed) {
    if (changed.has("selection")) live.textContent = `${plural(state.selection.rows.length, "point")} selected`;
    if (changed.has("pins") && state.pins.length > 0) {
      live.textContent = `Pinned ${describe(dataset, state.pins.at(-1), state.colorBy)}`;
    }
  }

  function update(state, changed) {
    const { recolored, refiltered, repainted } = model.update(state, changed);
    const any = touched(changed);
    if (recolored) panel.rebuildLegend(model.scheme);
    if (repainted) stage.repaint();
    panel.update(state, changed, model.scheme);
    if (any("tool", "layout", "unfold")) footer.update(state);
    if (refiltered || any("panelOpen")) header.update(state, model.shownCount);
    if (refiltered || any("layout", "projection")) updateNote();
    if (any("theme")) root.dataset.theme = state.theme;
    if (any("tool")) stage.element.dataset.tool = state.tool;
    if (any("panelOpen")) root.classList.toggle("panel-open", state.panelOpen);
    if (any("hover")) {
      if (state.hover) tooltip.show(state.hover.row, state.colorBy, state.hover.at, stage.size());
      else tooltip.hide();
      stage.element.classList.toggle("over-point", state.hover !== null);
    }
    if (changed) announce(state, changed);
  }

  const narrow = new ResizeObserver(([{ contentRect }]) => {
    root.classList.toggle("narrow", contentRect.width < NARROW);
    updateNote();
  });
  update(store.get(), null);
  stage.start();
  const unsubscribe = store.subscribe(update);
  narrow.observe(root);
  setTimeout(() => model.index(), 300);

  return {
    store, dataset, actions, stage,
    project(row, paneName) {
      const pane = stage.panesNow().find(({ name }) => name === paneName);
      return pane ? createProjector(pane, store.get().rotation, dataset.positions)(row) : null;
    },
    destroy() {
      unsubscribe();
      detachKeyboard();
      narrow.disconnect();
      motion.stop();
      stage.destroy();
      root.replaceChildren();
    },
  };
}
