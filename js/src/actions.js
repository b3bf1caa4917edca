// Actions of buttons, keys and panels that change several keys of the state.
import { composePicture, download, fileName, toCsv } from "./ui/export.js";
import { centerOf } from "./geometry/centers.js";
import { keepInView } from "./geometry/camera.js";
import { isHome, sphereHome } from "./geometry/home.js";
import { cameraKey } from "./geometry/layout.js";
import { createProjector, pick } from "./geometry/picking.js";
import { FLAT } from "./geometry/projections.js";
import { apply, between, fromCenter, multiply, normalize } from "./geometry/rotation.js";
import { withFilter } from "./state/filter.js";
import { writeAddress } from "./state/address.js";
import { NOTHING, fromRows } from "./state/selection.js";
import { kept } from "./state/sets.js";
import { KEPT, initialState } from "./state/state.js";
import { toView } from "./state/view.js";
import { copyText } from "./ui/clipboard.js";
import { count } from "./ui/format.js";
import { zoomBy } from "./ui/keyboard.js";

const FRONT = [1, 0, 0];
const MAX_ZOOM = 30; // relative to the zoom that shows all points
const FILLED = 0.55; // fraction of the large view that centred rows fill

export function createActions(dataset, store, model, motion, parts) {
  const { stage, history } = parts;
  const largePane = () => stage.panesNow()[0];
  const spheres = dataset.embeddings.filter(({ kind }) => kind === "sphere");
  const at = (row) => [0, 1, 2].map((c) => model.positions[3 * row + c]);

  /** The rotation that brings a direction of the data to the front. */
  const facing = (direction) => {
    const { rotation } = store.get();
    return normalize(multiply(between(apply(rotation, direction), FRONT), rotation));
  };

  /** Centre the view on a position; zoom: of the large view, unchanged by default. */
  function centerOn(place, zoom) {
    const pane = largePane();
    if (pane.projection === FLAT) {
      motion.zoomTo("flat", keepInView(pane, [zoom ?? pane.zoom, place[0], place[1]]));
      return;
    }
    const { globe, map } = store.get();
    store.set({ globe: [globe[0], 0, 0], map: [map[0], 0, 0] });
    if (zoom !== undefined) motion.zoomTo(cameraKey(pane), [zoom, 0, 0]);
    motion.flyTo(facing(place));
  }

  /** Zoom at which rows fill part of the large view centred on a position. */
  function zoomFor(rows, place) {
    const pane = largePane();
    const flat = pane.projection === FLAT;
    const centeredPane = { ...pane, zoom: 1, x: flat ? place[0] : 0, y: flat ? place[1] : 0, rotation: flat ? pane.rotation : facing(place) };
    const project = createProjector(centeredPane, model.positions);
    const { x, y, width, height } = pane.rect;
    const stride = Math.max(1, Math.floor(rows.length / 5000));
    const reach = [];
    for (let i = 0; i < rows.length; i += stride) {
      const spot = project(rows[i]);
      if (spot) reach.push(Math.max(Math.abs(spot[0] - x - width / 2) / (width / 2), Math.abs(spot[1] - y - height / 2) / (height / 2)));
    }
    reach.sort((a, b) => a - b);
    const most = reach[Math.floor(0.97 * (reach.length - 1))] ?? 1;
    const all = stage.homeZoom(pane);
    return Math.max(all, Math.min(MAX_ZOOM * all, FILLED / Math.max(most, 1e-9)));
  }

  /** Show all of an embedding on the sphere. */
  function goHome({ rotation, globe, map }) {
    const { layout, projection } = store.get();
    const cameras = { globe, map: map[projection] };
    const other = layout === "globe" ? "map" : "globe";
    store.set({ [other]: cameras[other] });
    motion.zoomTo(layout, cameras[layout]);
    motion.flyTo(fromCenter(rotation));
  }

  function togglePin(row) {
    const { pins } = store.get();
    store.set({ pins: pins.includes(row) ? pins.filter((other) => other !== row) : [...pins, row] });
  }

  /** Make this the large view; the previous one becomes the inset, with an animation. */
  function showLarge(name) {
    const { layout } = store.get();
    if (layout === name || motion.changing || model.embedding.kind === "plane") return;
    if (name === "globe") {
      store.set({ layout: "globe", unfold: 1, hover: null });
      motion.unfoldTo(0, (stageOf) => ({ unfold: stageOf }));
    } else {
      motion.unfoldTo(1, (stageOf) => (stageOf === 1 ? { layout: "map", unfold: 0, hover: null } : { unfold: stageOf }));
    }
  }

  const actions = {
    togglePin,
    showLarge,
    swap: () => showLarge(store.get().layout === "map" ? "globe" : "map"),
    /** Show another embedding; colours, filters, selection and a changed view are kept. */
    showEmbedding(embedding) {
      const from = store.get().embedding;
      if (embedding === from) return;
      motion.finish();
      const state = store.get();
      const home = spheres.some((one) => isHome(toView(state), one.home, state.projection));
      store.set({ embedding, hover: null, lasso: null });
      motion.morphFrom(from);
      if (home && model.embedding.kind === "sphere") goHome(model.embedding.home);
    },
    zoom: (factor) => zoomBy(store, largePane(), factor),
    centerOn,
    centerRow: (row) => centerOn(at(row), zoomFor([row], at(row))),
    centerSelection() {
      const rows = Array.from(store.get().selection.rows);
      if (rows.length === 0) return;
      const place = rows.length === 1 ? at(rows[0]) : centerOf(rows, model.embedding);
      centerOn(place, zoomFor(rows, place));
    },
    setFilter: (column, filter) =>
      store.set({ filters: withFilter(store.get().filters, column, filter), spotlight: null }),
    colorBy: (column) => store.set({ colorBy: column, spotlight: null }),
    /** Switch a column of few integers between categories and a scale. */
    toggleScale(column) {
      const scales = new Set(store.get().scales);
      if (!scales.delete(column)) scales.add(column);
      store.set({ scales, filters: withFilter(store.get().filters, column, null) });
    },
    /** Colour the points by a gene, and add a card for it. */
    showGene(gene) {
      const index = dataset.columns.length + gene;
      const { genes } = store.get();
      store.set({ colorBy: index, genes: genes.includes(index) ? genes : [index, ...genes], spotlight: null });
    },
    closeGene(index) {
      const { genes, colorBy, filters } = store.get();
      store.set({
        genes: genes.filter((other) => other !== index),
        filters: withFilter(filters, index, null),
        colorBy: colorBy === index ? initialState(dataset, "dark").colorBy : colorBy,
      });
    },
    /** A point and its nearest neighbours in the data. */
    selectNeighbors(row) {
      const rows = dataset.neighbors.of(row, store.get().embedding).map((one) => one.row);
      store.set({ selection: fromRows([row, ...rows], dataset.n) });
    },
    /** Copy a link to the view to the clipboard; linkTo is in page.js. */
    async copyLink() {
      const { text, left } = writeAddress(store.get(), dataset, model.column);
      await copyText(parts.linkTo(text));
      parts.toast.show(left === 0 ? "Link copied" : `Link copied without the selection: ${count(left)} points are too many for a link.`);
    },
    keepSelection: () => store.set({ sets: kept(store.get().sets, store.get().selection) }),
    saveText: (text, name) => download(new Blob([text], { type: "text/csv;charset=utf-8" }), fileName(`${dataset.title} ${name}`, "csv")),
    reset() {
      motion.finish();
      parts.search.clear();
      const old = store.get();
      history.step(() => store.set({
        ...initialState(dataset, old.theme),
        ...Object.fromEntries(KEPT.map((key) => [key, old[key]])),
      }));
      parts.toast.show("Everything was reset.", "Undo", actions.undo);
    },
    undo() {
      motion.finish();
      history.undo();
    },
    redo() {
      motion.finish();
      history.redo();
    },
    clearSelection: () => store.set({ selection: NOTHING, lasso: null, hover: null }),
    toggleTheme: () => store.set({ theme: store.get().theme === "dark" ? "light" : "dark" }),
    setProjection(projection) {
      const { home } = model.embedding.kind === "sphere" ? model.embedding : { home: sphereHome(dataset) };
      store.set({ projection, map: home.map[projection] });
    },
    pinMiddle() {
      const pane = largePane();
      const { rect } = pane;
      const reach = Math.min(rect.width, rect.height) / 4;
      const row = pick(pane, rect.x + rect.width / 2, rect.y + rect.height / 2, reach, model);
      if (row >= 0) togglePin(row);
    },
    focusSearch: () => parts.search.focus(),
    showHelp: () => parts.help.show(),
    /** The picture as a blob, as savePicture would write it. */
    picture() {
      store.set({ hover: null });
      const { theme } = store.get();
      const canvas = stage.picture((layers, ratio) =>
        composePicture(layers, { ...stage.size(), ratio, title: dataset.title, theme, scheme: model.scheme }),
      );
      return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    },
    async savePicture() {
      download(await actions.picture(), fileName(dataset.title, "png"));
    },
    saveRows() {
      actions.saveText(toCsv(dataset.columns, store.get().selection.rows), "selection");
    },
  };
  return actions;
}
