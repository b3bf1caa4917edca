// What the viewer starts from, and what a reset goes back to.
import { NO_FILTER } from "./filter.js";
import { fromCenter } from "./rotation.js";
import { NOTHING } from "./selection.js";

/** The column to colour by at first: the one asked for, else categories, else numbers. */
function firstColumn({ columns, options }) {
  const named = columns.findIndex(({ name }) => name === options.color);
  if (named >= 0) return named;
  const categories = columns.findIndex(({ kind, labels }) => kind === "category" && labels.length <= 60);
  return categories >= 0 ? categories : Math.min(0, columns.length - 1);
}

export function initialState(dataset, theme) {
  const { home } = dataset;
  return {
    rotation: fromCenter(home.rotation), // a quaternion, see rotation.js
    globe: home.globe, // zoom and the place of the plane in the middle
    map: home.map[dataset.options.projection],
    active: "globe", // the pane that keys zoom and pan
    unfold: 0,
    layout: "both",
    projection: dataset.options.projection,
    tool: "turn",
    theme,
    colorBy: firstColumn(dataset),
    asScale: false,
    filter: NO_FILTER,
    spotlight: null, // the category pointed at in the legend
    selection: NOTHING,
    pins: [],
    hover: null,
    lasso: null,
    size: 1,
    names: true,
    graticule: true,
    seeThrough: true,
    panelOpen: false, // matters on narrow screens only
  };
}
