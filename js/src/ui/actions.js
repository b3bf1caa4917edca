// What buttons and keys share.
import { centerOf } from "../geometry/centers.js";
import { composePicture, download, fileName, toCsv } from "./export.js";
import { globeHome, rebase } from "../geometry/home.js";
import { pick } from "../geometry/picking.js";
import { apply, between, multiply, normalize } from "../geometry/rotation.js";
import { NOTHING } from "../state/selection.js";
import { initialState } from "../state/state.js";

const FRONT = [1, 0, 0];

export function createActions(dataset, store, model, motion, parts) {
  /** Bring a direction of the data to the middle of both views. */
  function centerOn(direction) {
    const { rotation, globe, map } = store.get();
    store.set({ globe: [globe[0], 0, 0], map: [map[0], 0, 0] });
    motion.flyTo(normalize(multiply(between(apply(rotation, direction), FRONT), rotation)));
  }

  /** The patch for another stage of unfolding, or another map: the globe's pane follows its home. */
  function refold(patch) {
    const { globe, projection, unfold } = store.get();
    const next = { projection, unfold, ...patch };
    const [from, to] = [{ projection, unfold }, next].map((at) => globeHome(dataset.home, at.projection, at.unfold));
    return { ...patch, globe: rebase(globe, from, to) };
  }

  function togglePin(row) {
    const { pins } = store.get();
    store.set({ pins: pins.includes(row) ? pins.filter((other) => other !== row) : [...pins, row] });
  }

  const actions = {
    togglePin,
    centerRow: (row) => centerOn([0, 1, 2].map((c) => dataset.positions[3 * row + c])),
    centerSelection() {
      const rows = Array.from(store.get().selection.rows);
      if (rows.length > 0) centerOn(centerOf(rows, dataset.positions));
    },
    reset() {
      motion.stop();
      parts.search.clear();
      store.set(initialState(dataset, store.get().theme));
    },
    letGo: () => store.set({ selection: NOTHING, lasso: null, hover: null }),
    toggleTheme: () => store.set({ theme: store.get().theme === "dark" ? "light" : "dark" }),
    toggleUnfold() {
      if (store.get().layout === "map") return;
      const { projection, unfold } = store.get();
      store.set({ globe: globeHome(dataset.home, projection, unfold) });
      motion.unfoldTo(unfold < 0.5 ? 1 : 0, (stage) => refold({ unfold: stage }));
    },
    setUnfold(unfold) {
      motion.stop();
      store.set(refold({ unfold }));
    },
    setProjection: (projection) => store.set({ ...refold({ projection }), map: dataset.home.map[projection] }),
    pinMiddle() {
      const pane = parts.activePane();
      const { rect } = pane;
      const reach = Math.min(rect.width, rect.height) / 4;
      const row = pick(pane, rect.x + rect.width / 2, rect.y + rect.height / 2, reach, parts.pickable());
      if (row >= 0) togglePin(row);
    },
    focusSearch: () => parts.search.focus(),
    showHelp: () => parts.help.show(),
    /** The picture as a blob, as savePicture would write it. */
    picture() {
      store.set({ hover: null });
      const { theme } = store.get();
      const canvas = parts.stage.picture((layers, ratio) =>
        composePicture(layers, { ...parts.stage.size(), ratio, title: dataset.title, theme, scheme: model.scheme }),
      );
      return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    },
    async savePicture() {
      download(await actions.picture(), fileName(dataset.title, "png"));
    },
    saveRows() {
      const text = toCsv(dataset.columns, store.get().selection.rows);
      download(new Blob([text], { type: "text/csv;charset=utf-8" }), fileName(`${dataset.title} selection`, "csv"));
    },
  };
  return actions;
}
