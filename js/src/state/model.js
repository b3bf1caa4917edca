// Values derived from the data and the state: colours, shown points, names. Panels read it; its changes are passed as
// the keys scheme, shown and names, next to those of the state.
import { countCodes, createColumns } from "../data/columns.js";
import { drawOrder } from "../data/order.js";
import { createPlaneIndex } from "../data/plane-index.js";
import { createSphereIndex } from "../data/sphere-index.js";
import { paint } from "../draw/paint.js";
import { createScheme } from "../draw/scheme.js";
import { classNames } from "../geometry/centers.js";
import { place } from "../geometry/projections.js";
import { toMatrix } from "../geometry/rotation.js";
import { createCrossfilter } from "./crossfilter.js";
import { holds } from "./filter.js";
import { touched } from "./store.js";

export function createModel(dataset, store) {
  const { n, embeddings } = dataset;
  const order = drawOrder(n);
  const columns = createColumns(dataset);
  const column = (index) => columns.get(index, store.get().scales);
  const crossfilter = createCrossfilter(n, column);
  const opening = dataset.columns.findIndex(({ name }) => name === dataset.options.names);
  const indices = new Map();
  let centers = [];

  const model = {
    order,
    columns,
    column,
    bins: (index) => columns.bins(index, store.get().scales),
    counts: (index, mask) => crossfilter.counts(index, model.bins(index), mask),
    scheme: null,
    shown: crossfilter.shown,
    shownCount: n,
    names: [],
    get embedding() {
      return embeddings[store.get().embedding];
    },
    get positions() {
      return model.embedding.positions;
    },
    index() {
      const { embedding } = model;
      if (!indices.has(embedding)) {
        const create = embedding.kind === "plane" ? createPlaneIndex : createSphereIndex;
        indices.set(embedding, create(embedding.positions));
      }
      return indices.get(embedding);
    },
    paint: ({ selection, spotlight, colorBy }) =>
      paint(order, model.scheme, model.shown, selection.mask, spotlight?.column === colorBy ? spotlight.code : null),
    countBeyond,
    update,
  };

  /**
   * Positions of names: of classes; of label columns from coarse to fine; or, if the colours are not classes, of the
   * initial colour column, or else of regions.
   */
  function findCenters({ colorBy }) {
    const { embedding, scheme } = model;
    const named = (index, level) => {
      const { codes, labels } = column(index);
      const places = classNames({ codes, counts: countCodes({ codes, labels }) }, embedding, order);
      return places.map((place) => ({ ...place, index, level, text: labels[place.code - 1] }));
    };
    if (dataset.labels) {
      const levels = dataset.labels.length;
      return dataset.labels.flatMap((index, level) => (column(index).kind === "category" ? named(index, levels > 1 ? level : undefined) : []));
    }
    if (scheme.kind === "category") return named(colorBy);
    if (opening >= 0 && column(opening).kind === "category") return named(opening);
    return embedding.regions.map((region) => ({ ...region, index: -1, home: null }));
  }

  /** Names by priority: selected classes first, then the coarsest, then the largest. */
  function namesFor({ filters, selection }) {
    const selected = new Set();
    for (const index of new Set(centers.map((center) => center.index))) {
      if (index >= 0) for (const row of selection.rows) selected.add(`${index} ${column(index).codes[row]}`);
    }
    const chosen = ({ index, code }) => selected.has(`${index} ${code}`);
    return centers.filter(({ index, code }) => holds(filters.get(index), code)).sort((a, b) => chosen(b) - chosen(a));
  }

  /** Update after these keys of the state changed (null: all); returns the changed keys of the model. */
  function update(state, changed) {
    const any = touched(changed);
    const derived = [];
    if (any("colorBy", "scales", "theme")) {
      model.scheme = createScheme(column(state.colorBy), state.theme);
      derived.push("scheme");
    }
    if (any("colorBy", "scales", "embedding")) {
      centers = findCenters(state);
    }
    if (any("filters", "scales")) {
      model.shownCount = crossfilter.update(state.filters);
      derived.push("shown");
    }
    if (any("colorBy", "scales", "embedding", "filters", "selection")) {
      model.names = namesFor(state);
      derived.push("names");
    }
    return derived;
  }

  /** Number of shown points beyond the edge of the map at this rotation. */
  function countBeyond({ rotation, projection }) {
    if (model.embedding.kind === "plane") return 0;
    const m = toMatrix(rotation);
    const { positions } = model;
    const out = [0, 0, 0, 0];
    let beyond = 0;
    for (let row = 0; row < n; row++) {
      const [x, y, z] = [positions[3 * row], positions[3 * row + 1], positions[3 * row + 2]];
      const up = m[6] * x + m[7] * y + m[8] * z;
      if (Math.abs(up) < 0.99 || !model.shown[row]) continue;
      place(out, m[0] * x + m[1] * y + m[2] * z, m[3] * x + m[4] * y + m[5] * z, up, 1, projection);
      beyond += out[3];
    }
    return beyond;
  }

  return model;
}
