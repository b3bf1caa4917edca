// The initial state, also that after a reset. Everything that panels show is derived from the state, the data and the
// model (model.js).
import { FLAT_HOME, sphereHome } from "../geometry/home.js";
import { fromCenter } from "../geometry/rotation.js";
import { NO_FILTERS } from "./filter.js";
import { NOTHING } from "./selection.js";

const MANY = 100000; // points; with more, contours are shown initially

export function initialState(dataset, theme) {
  const { columns, options } = dataset;
  const home = sphereHome(dataset);
  return {
    // the view
    embedding: 0,
    morph: null, // { from, t } on the way from another embedding
    rotation: fromCenter(home.rotation), // a quaternion, see rotation.js
    globe: home.globe, // zoom, and the position of the plane at the middle
    map: home.map[options.projection],
    flat: FLAT_HOME, // the same for planar embeddings
    layout: "map", // the large view
    unfold: 0, // of the large globe; between 0 and 1 on the way to the map
    projection: options.projection,
    // what is shown
    colorBy: columns.findIndex(({ name }) => name === options.color), // -1: one colour
    scales: new Set(), // columns of few integers that are shown as a scale
    filters: NO_FILTERS,
    selection: NOTHING,
    sets: [], // kept selections, see sets.js
    genes: [], // numbers of gene columns that have a card
    pins: [],
    theme,
    size: 1,
    names: true,
    graticule: true,
    seeThrough: true,
    contours: dataset.n > MANY,
    lines: true, // to neighbours in the data, where the file has them
    inset: true,
    insetAt: [0, 1],
    // the current interaction
    tool: "turn",
    spotlight: null, // { column, code }: the category pointed at
    hover: null,
    lasso: null,
    railOpen: false, // used on narrow screens only
    tableOpen: false,
  };
}

/** Keys that a reset does not change. */
export const KEPT = ["theme", "railOpen", "tableOpen", "insetAt"];
