// Keyboard shortcuts; the help dialog shows the same table.
import { keepInView, zoomAbout } from "../geometry/camera.js";
import { cameraKey } from "../geometry/layout.js";
import { FLAT } from "../geometry/projections.js";
import { aboutAxis, multiply, normalize } from "../geometry/rotation.js";

const STEP = (6 * Math.PI) / 180;

export const KEYS = [
  ["← → ↑ ↓", "turn; with Shift, pan the large view"],
  ["+ −", "zoom the large view"],
  ["U", "swap the inset and the large view: unfold the globe into the map, or fold the map"],
  ["1 2", "enlarge the globe, enlarge the map"],
  ["I", "show or hide the inset"],
  ["T L", "drag to turn, drag to select"],
  ["Enter", "pin the point nearest to the centre"],
  ["[ ]", "decrease, increase the point size"],
  ["N C G B", "show or hide names, density contours, graticule, back of the globe"],
  ["/", "search"],
  ["Ctrl Z", "undo; with Shift, redo"],
  ["D", "dark or light theme"],
  ["S", "save a picture"],
  ["Esc", "clear the selection"],
  ["R or 0", "reset everything (can be undone)"],
  ["?", "help"],
];

function turnBy(store, axis, angle) {
  store.set({ rotation: normalize(multiply(aboutAxis(axis, angle), store.get().rotation)) });
}

function panBy(store, pane, dx, dy) {
  const step = 0.1 / pane.zoom;
  store.set({ [cameraKey(pane)]: keepInView(pane, [pane.zoom, pane.x + dx * step, pane.y + dy * step]) });
}

export function zoomBy(store, pane, factor) {
  const { rect } = pane;
  store.set({ [cameraKey(pane)]: zoomAbout(pane, factor, rect.x + rect.width / 2, rect.y + rect.height / 2) });
}

/** Handlers by key; arrows turn, with Shift they pan. */
function keymap(store, actions, largePane) {
  const flip = (name) => () => store.set({ [name]: !store.get()[name] });
  const resize = (factor) => () => store.set({ size: Math.max(0.25, Math.min(4, store.get().size * factor)) });
  const arrow = (axis, sign, dx, dy) => (event) =>
    event.shiftKey || largePane().projection === FLAT
      ? panBy(store, largePane(), dx, dy)
      : turnBy(store, axis, sign * STEP);
  return {
    ArrowLeft: arrow([0, 0, 1], 1, -1, 0),
    ArrowRight: arrow([0, 0, 1], -1, 1, 0),
    ArrowUp: arrow([0, 1, 0], 1, 0, 1),
    ArrowDown: arrow([0, 1, 0], -1, 0, -1),
    "+": () => zoomBy(store, largePane(), 1.25),
    "=": () => zoomBy(store, largePane(), 1.25),
    "-": () => zoomBy(store, largePane(), 0.8),
    1: () => actions.showLarge("globe"),
    2: () => actions.showLarge("map"),
    i: flip("inset"),
    t: () => store.set({ tool: "turn" }),
    l: () => store.set({ tool: "lasso" }),
    n: flip("names"),
    c: flip("contours"),
    g: flip("graticule"),
    b: flip("seeThrough"),
    "[": resize(0.8),
    "]": resize(1.25),
    u: actions.swap,
    d: actions.toggleTheme,
    s: actions.savePicture,
    r: actions.reset,
    0: actions.reset,
    Enter: actions.pinMiddle,
    Escape: actions.clearSelection,
    "/": actions.focusSearch,
    "?": actions.showHelp,
  };
}

const TEXT_CONTROLS = "input:not([type=range], [type=checkbox], [type=radio]), select, textarea, dialog";
const CONTROL_KEYS = new Set(["Enter", " ", "Home", "End", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);

/** Whether a control uses this key itself. */
function takenByControl({ target, key }) {
  if (target.closest?.(TEXT_CONTROLS)) return true;
  const control = target.closest?.("input, button, summary, [role=option], [role=slider]");
  return Boolean(control) && CONTROL_KEYS.has(key);
}

/** target: the viewer in a notebook, the document in a stand-alone page. */
export function attachKeyboard(target, store, actions, largePane) {
  const keys = keymap(store, actions, largePane);
  function undoOrRedo(event) {
    const key = event.key.toLowerCase();
    if (key === "z") return event.shiftKey ? actions.redo : actions.undo;
    return key === "y" ? actions.redo : null;
  }
  function keydown(event) {
    if (event.altKey || takenByControl(event)) return;
    const chord = event.ctrlKey || event.metaKey;
    const handler = chord ? undoOrRedo(event) : keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!handler) return;
    event.preventDefault();
    event.stopPropagation(); // notebooks use these keys, too
    handler(event);
  }
  target.addEventListener("keydown", keydown);
  return () => target.removeEventListener("keydown", keydown);
}
