// What the keys do. The table is also what the help shows.
import { keepInView, zoomAbout } from "../geometry/camera.js";
import { aboutAxis, multiply, normalize } from "../geometry/rotation.js";

const STEP = (6 * Math.PI) / 180;

export const KEYS = [
  ["← → ↑ ↓", "turn the globe; with Shift, pan the view last used"],
  [", .", "roll left, roll right"],
  ["+ −", "zoom the view last used"],
  ["U", "unfold the globe into the map, and back"],
  ["1 2 3", "globe, both, map"],
  ["T P L", "turn, pan, lasso"],
  ["Enter", "pin the point nearest to the middle"],
  ["[ ]", "smaller, larger points"],
  ["N G B", "names, graticule, back of the globe"],
  ["/", "search"],
  ["D", "dark or light"],
  ["S", "save a picture"],
  ["Esc", "let go of the selection"],
  ["R or 0", "reset everything"],
  ["?", "help"],
];

function turnBy(store, axis, angle) {
  store.set({ rotation: normalize(multiply(aboutAxis(axis, angle), store.get().rotation)) });
}

function panBy(store, pane, dx, dy) {
  const step = 0.1 / pane.zoom;
  store.set({ [pane.name]: keepInView(pane, [pane.zoom, pane.x + dx * step, pane.y + dy * step]) });
}

function zoomBy(store, pane, factor) {
  const { rect } = pane;
  store.set({ [pane.name]: zoomAbout(pane, factor, rect.x + rect.width / 2, rect.y + rect.height / 2) });
}

/** Handlers by key; an arrow turns, with Shift it pans. */
function keymap(store, actions, activePane) {
  const flip = (name) => () => store.set({ [name]: !store.get()[name] });
  const resize = (factor) => () => store.set({ size: Math.max(0.25, Math.min(4, store.get().size * factor)) });
  const arrow = (axis, sign, dx, dy) => (event) =>
    event.shiftKey ? panBy(store, activePane(), dx, dy) : turnBy(store, axis, sign * STEP);
  return {
    ArrowLeft: arrow([0, 0, 1], 1, -1, 0),
    ArrowRight: arrow([0, 0, 1], -1, 1, 0),
    ArrowUp: arrow([0, 1, 0], 1, 0, 1),
    ArrowDown: arrow([0, 1, 0], -1, 0, -1),
    ",": () => turnBy(store, [1, 0, 0], STEP),
    ".": () => turnBy(store, [1, 0, 0], -STEP),
    "+": () => zoomBy(store, activePane(), 1.25),
    "=": () => zoomBy(store, activePane(), 1.25),
    "-": () => zoomBy(store, activePane(), 0.8),
    1: () => store.set({ layout: "globe" }),
    2: () => store.set({ layout: "both" }),
    3: () => store.set({ layout: "map" }),
    t: () => store.set({ tool: "turn" }),
    p: () => store.set({ tool: "pan" }),
    l: () => store.set({ tool: "lasso" }),
    n: flip("names"),
    g: flip("graticule"),
    b: flip("seeThrough"),
    "[": resize(0.8),
    "]": resize(1.25),
    u: actions.toggleUnfold,
    d: actions.toggleTheme,
    s: actions.savePicture,
    r: actions.reset,
    0: actions.reset,
    Enter: actions.pinMiddle,
    Escape: actions.letGo,
    "/": actions.focusSearch,
    "?": actions.showHelp,
  };
}

/** Keys that a control has its own use for are left to it. */
function takenByControl({ target, key }) {
  if (target.closest?.("input[type=search], select, dialog")) return true;
  const control = target.closest?.("input, button");
  return Boolean(control) && (key === "Enter" || key === " " || key.startsWith("Arrow"));
}

/** target: the stage in a notebook, the document in a page of its own. */
export function attachKeyboard(target, store, actions, activePane) {
  const keys = keymap(store, actions, activePane);
  function keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || takenByControl(event)) return;
    const handler = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!handler) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has its own meaning for these keys
    handler(event);
  }
  target.addEventListener("keydown", keydown);
  return () => target.removeEventListener("keydown", keydown);
}
