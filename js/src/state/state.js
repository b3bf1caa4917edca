// What the viewer starts from, and what a reset goes back to.
import { NO_FILTER } from "./filter.js";
import { fromCenter } from "../geometry/rotation.js";
import { NOTHING } from "./selection.js";

export function initialState(dataset, theme) {
  const { columns, home, options } = dataset;
  return {
    rotation: fromCenter(home.rotation), // a quaternion, see rotation.js
    globe: home.globe, // zoom and the place of the plane in the middle
    map: home.map[options.projection],
    active: "globe", // the pane that keys zoom and pan
    unfold: 0,
    layout: "both",
    projection: options.projection,
    tool: "turn",
    theme,
    colorBy: columns.findIndex(({ name }) => name === options.color), // -1: one colour
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
