// What follows from the data and the state: colours, visibility, names.
import { categoryCenters } from "../geometry/centers.js";
import { visibility } from "./filter.js";
import { drawOrder } from "../data/order.js";
import { paint } from "../draw/paint.js";
import { place } from "../geometry/projections.js";
import { toMatrix } from "../geometry/rotation.js";
import { createScheme } from "../draw/scheme.js";
import { createSphereIndex } from "../data/sphere-index.js";
import { touched } from "./store.js";

const MOST_NAMES = 40;

export function createModel(dataset) {
  const order = drawOrder(dataset.n);
  let index = null;
  const model = {
    order,
    scheme: null,
    shown: null,
    shownCount: dataset.n,
    names: [],
    index: () => (index ??= createSphereIndex(dataset.positions)),
    paint: ({ selection, spotlight }) => paint(order, model.scheme, model.shown, selection.mask, spotlight),
    countBeyond,
    update,
  };
  let centers = [];

  function findCenters() {
    const { scheme } = model;
    const few = scheme.kind === "category" && scheme.labels.length - 1 <= MOST_NAMES;
    centers = few ? categoryCenters(scheme, dataset.positions, order) : [];
  }

  /** Names in the order in which they take their room: selected classes first, then the largest. */
  function namesFor({ filter, selection }) {
    if (centers.length === 0) return [];
    const { codes, labels } = model.scheme;
    const selected = new Set();
    for (const row of selection.rows) selected.add(codes[row]);
    return centers
      .filter(({ code }) => !filter.hidden.has(code))
      .sort((a, b) => selected.has(b.code) - selected.has(a.code))
      .map(({ code, at }) => ({ at, text: labels[code] }));
  }

  /** Bring up to date after these keys of the state changed (null: all). Says what did change. */
  function update(state, changed) {
    const any = touched(changed);
    const recolored = any("colorBy", "asScale", "theme");
    const refiltered = recolored || any("filter");
    if (recolored) model.scheme = createScheme(dataset.columns[state.colorBy], state.theme, state.asScale);
    if (any("colorBy", "asScale")) findCenters();
    if (refiltered) {
      model.shown = visibility(model.scheme, state.filter, dataset.n);
      model.shownCount = model.shown.reduce((sum, one) => sum + one, 0);
    }
    if (refiltered || any("selection")) model.names = namesFor(state);
    return { recolored, refiltered, repainted: refiltered || any("selection", "spotlight") };
  }

  /** How many shown points lie past the edge of the map at this rotation. */
  function countBeyond({ rotation, projection }) {
    const m = toMatrix(rotation);
    const { positions } = dataset;
    const out = [0, 0, 0, 0];
    let beyond = 0;
    for (let row = 0; row < dataset.n; row++) {
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
