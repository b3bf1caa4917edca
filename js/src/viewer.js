// Assemble the viewer in an element. The store has the state, the model what is derived from it; every part has an
// element and the method update(state, changed).
import { createActions } from "./actions.js";
import { createContours } from "./draw/contours.js";
import { createLinks } from "./draw/links.js";
import { createStage } from "./draw/stage.js";
import { resolveTheme } from "./draw/theme.js";
import { createUncertaintyMarks } from "./draw/uncertainty.js";
import { toPlane } from "./geometry/camera.js";
import { rowsInside } from "./geometry/lasso.js";
import { createMotion } from "./geometry/motion.js";
import { createProjector, pick } from "./geometry/picking.js";
import { unplace } from "./geometry/projections.js";
import { apply, inverse } from "./geometry/rotation.js";
import { DRAWER, RAIL } from "./panels/index.js";
import { createHistory } from "./state/history.js";
import { createModel } from "./state/model.js";
import { combine, fromMask } from "./state/selection.js";
import { initialState } from "./state/state.js";
import { createStore, touched } from "./state/store.js";
import { createTooltip, describe } from "./ui/card.js";
import { h, iconButton } from "./ui/dom.js";
import { plural } from "./ui/format.js";
import { attachGestures } from "./ui/gestures.js";
import { createHeader } from "./ui/header.js";
import { createHelp } from "./ui/help.js";
import { createHint } from "./ui/hint.js";
import { createInset } from "./ui/inset.js";
import { createKey } from "./ui/key.js";
import { attachKeyboard } from "./ui/keyboard.js";
import { createNotes } from "./ui/notes.js";
import { createSearchBox } from "./ui/searchbox.js";
import { createToast } from "./ui/toast.js";
import { createTools } from "./ui/tools.js";

// In pixels of the viewer, not of the screen: a notebook cell may be narrow.
const NARROW = 720;
const WIDE = 1700;
const REACH = { mouse: 9, touch: 22 };

const prefersReducedMotion = () => globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;

/**
 * Show a dataset (decode.js) in an element. embedded: inside a page that scrolls; linkTo(text): the address of a page
 * that opens with a state (address.js).
 */
export function mount(root, dataset, { embedded = false, linkTo = null } = {}) {
  const store = createStore(initialState(dataset, resolveTheme(dataset.options.theme)));
  const model = createModel(dataset, store);
  const motion = createMotion(store, { calm: prefersReducedMotion, wake: () => stage.request() });
  const notes = createNotes(store, model);
  const contours = createContours(store, model);
  const stage = createStage(dataset, store, model, motion, {
    onrest: rest, onnames: notes.setNamesLeft, extras: [contours.extra, createUncertaintyMarks(dataset, model), createLinks(dataset, model)],
  });
  const history = createHistory(store, { onchange: ({ canUndo }) => header.setUndo(canUndo) });
  const search = createSearchBox(dataset, { onfind: find, ongene: (gene) => actions.showGene(gene) });
  const help = createHelp();
  const toast = createToast();
  const actions = createActions(dataset, store, model, motion, { stage, history, search, help, toast, linkTo });
  const context = { dataset, store, model, actions };
  const header = createHeader(dataset, store, actions, search.element, linkTo !== null);
  const tools = createTools(dataset, store, model, actions);
  const inset = createInset(store, stage, actions);
  const key = createKey(store, model);
  const [columns, ...below] = RAIL.map((createPanel) => createPanel(context));
  const rail = [columns, ...below];
  const drawer = DRAWER.map((createPanel) => createPanel(context));
  const tooltip = createTooltip(dataset);
  const live = h("p", { class: "unseen", role: "status", "aria-live": "polite" });

  root.classList.add("mercat");
  root.classList.toggle("embedded", embedded);
  stage.element.append(inset.element, notes.element, tooltip.element, toast.element);
  root.append(
    header.element,
    h("main", { class: "main", "aria-label": "Map" }, createHint(dataset).element, tools.element, key.element, stage.element, ...drawer.map(({ element }) => element)),
    h(
      "aside",
      { class: "rail", "aria-label": "Columns and selection" },
      iconButton("close", "Close the panel", () => store.set({ railOpen: false }), { class: "icon-button close-rail" }),
      columns.element,
      h("div", { class: "below" }, ...below.map(({ element }) => element)),
    ),
    help.element,
    live,
  );

  /** Updates made only at rest. */
  function rest() {
    notes.countBeyond();
    if (motion.changing) return;
    contours.refresh(stage.panesNow()[0]);
    stage.request(false);
  }

  let restTimer = 0;
  function scheduleRest() {
    clearTimeout(restTimer);
    restTimer = setTimeout(rest, 40);
  }

  function find(mask) {
    store.set({ selection: fromMask(mask) });
    actions.centerSelection();
  }

  attachGestures(stage.element, {
    store, motion, panesNow: stage.panesNow, wheelNeedsFocus: embedded,
    on: {
      hover(pane, at) {
        const row = pane === null || pane.inset ? -1 : pick(pane, ...at, REACH.mouse, model);
        const { hover } = store.get();
        if (row < 0) store.set({ hover: null });
        else if (hover?.row !== row) store.set({ hover: { row, at, docked: false } });
      },
      leave: () => store.set({ hover: null }),
      click(pane, at, touch) {
        if (pane.inset) {
          actions.swap();
          return;
        }
        const row = pick(pane, ...at, touch ? REACH.touch : REACH.mouse, model);
        if (row < 0) return;
        actions.togglePin(row);
        if (touch && store.get().pins.includes(row)) store.set({ hover: { row, at, docked: true } });
      },
      lasso(pane, polygon, how) {
        const next = fromMask(rowsInside(polygon, pane, model));
        store.set({ selection: combine(store.get().selection, next, how) });
      },
      center(pane, at) {
        const place = unplace(...toPlane(pane, ...at), pane.unfold, pane.projection);
        if (place) actions.centerOn(apply(inverse(pane.rotation), place));
      },
    },
  });
  const detachKeyboard = attachKeyboard(embedded ? root : document, store, actions, () => stage.panesNow()[0]);

  function announce(state, changed) {
    if (changed.has("selection")) live.textContent = `${plural(state.selection.rows.length, "point")} selected`;
    if (changed.has("filters")) live.textContent = `${plural(model.shownCount, "point")} shown`;
    if (changed.has("pins") && state.pins.length > 0) {
      live.textContent = `Pinned ${describe(dataset, state.pins.at(-1), state.colorBy)}`;
    }
  }

  function showHover({ hover, colorBy, embedding }) {
    if (hover?.at) tooltip.show(hover.row, { colorBy, embedding }, hover, stage.size());
    else tooltip.hide();
    stage.element.classList.toggle("over-point", hover !== null);
  }

  function update(state, keys) {
    const derived = model.update(state, keys);
    const changed = keys && new Set([...keys, ...derived]);
    const any = touched(changed);
    if (any("scheme", "shown", "selection", "spotlight")) stage.repaint();
    for (const part of [...rail, ...drawer, tools, key]) part.update(state, changed);
    if (any("shown", "railOpen", "embedding")) header.update(state, model.shownCount);
    if (any("shown", "layout", "projection", "embedding", "morph", "contours")) scheduleRest();
    if (any("layout", "inset", "insetAt", "embedding")) inset.update();
    if (any("theme")) root.dataset.theme = state.theme;
    if (any("tool")) stage.element.dataset.tool = state.tool;
    if (any("railOpen")) root.classList.toggle("rail-open", state.railOpen);
    if (any("hover")) showHover(state);
    if (changed) announce(state, changed);
  }

  const sizes = new ResizeObserver(([{ contentRect }]) => {
    root.classList.toggle("narrow", contentRect.width < NARROW);
    root.classList.toggle("wide", contentRect.width >= WIDE);
    root.classList.toggle("low", contentRect.height < 480);
    inset.update();
    scheduleRest();
  });
  update(store.get(), null);
  stage.start();
  const unsubscribe = store.subscribe(update);
  sizes.observe(root);
  sizes.observe(stage.element);
  setTimeout(() => model.index(), 300);

  return {
    store, dataset, model, actions, stage,
    project(row, paneName) {
      const pane = stage.panesNow().find(({ name }) => name === paneName);
      return pane ? createProjector(pane, model.positions)(row) : null;
    },
    destroy() {
      unsubscribe();
      history.destroy();
      detachKeyboard();
      sizes.disconnect();
      for (const part of [...rail, ...drawer]) part.destroy?.();
      toast.destroy();
      clearTimeout(restTimer);
      motion.stop();
      stage.destroy();
      root.replaceChildren();
    },
  };
}
