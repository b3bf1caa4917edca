// Mouse, pen and touch on the stage: turn, pan, lasso, zoom, hover, click.
import { keepInView, pixelsPerUnit, toPlane, zoomAbout } from "../geometry/camera.js";
import { cameraKey, paneAt } from "../geometry/layout.js";
import { FLAT, PROJECTIONS } from "../geometry/projections.js";
import { aboutAxis, between, inverse, multiply, normalize, toAxisAngle } from "../geometry/rotation.js";

const CLICK_PIXELS = 5;
const THROW_MILLISECONDS = 90;

/** Direction on the globe at (sx, sy), or on its limb if that is outside. */
function grab(pane, sx, sy) {
  const [x, y] = toPlane(pane, sx, sy);
  const r = Math.hypot(x, y);
  return r < 1 ? [Math.sqrt(1 - r * r), x, y] : [0, x / r, y / r];
}

/** Rotation after a drag over a pane, from its start to its current position. */
export function turned(pane, rotation, [x0, y0], [x1, y1]) {
  if (pane.unfold === 0) {
    return normalize(multiply(between(grab(pane, x0, y0), grab(pane, x1, y1)), rotation));
  }
  const { width, height } = PROJECTIONS[pane.projection];
  const small = 1e-3;
  const scale = pixelsPerUnit(pane);
  const across = (x1 - x0) / (scale * width(0, 1));
  const up = (y0 - y1) / ((scale * height(Math.sin(small), Math.cos(small))) / small);
  const turn = multiply(aboutAxis([0, 1, 0], -up), aboutAxis([0, 0, 1], across));
  return normalize(multiply(turn, rotation));
}

export function panned(pane, [x0, y0], [x1, y1]) {
  const scale = pixelsPerUnit(pane);
  return keepInView(pane, [pane.zoom, pane.x - (x1 - x0) / scale, pane.y + (y1 - y0) / scale]);
}

/** Handle all pointers on `target`; `on` has the handlers hover, click, lasso and center, called with the pane, and leave. */
export function attachGestures(target, { store, motion, panesNow, on, wheelNeedsFocus }) {
  const pointers = new Map();
  let drag = null;
  let pinch = null;

  const at = (event) => {
    const box = target.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const under = (point) => paneAt(panesNow(), point);
  const large = () => panesNow()[0];

  function actionOf(event, pane) {
    if (pane.inset) return "turn";
    if (event.button === 1 || event.button === 2 || event.altKey) return "pan";
    if (event.shiftKey || store.get().tool === "lasso") return "lasso";
    return pane.projection === FLAT ? "pan" : "turn";
  }

  function begin(event) {
    if (motion.changing || event.target.closest("button")) return;
    target.focus({ preventScroll: true });
    target.setPointerCapture(event.pointerId);
    const point = at(event);
    pointers.set(event.pointerId, point);
    motion.stop();
    on.leave();
    if (pointers.size === 2) {
      beginPinch();
      return;
    }
    const pane = under(point);
    if (pane === null || pointers.size > 2) return;
    drag = {
      pane, action: actionOf(event, pane), start: point, moved: false,
      rotation: store.get().rotation, trail: [], polygon: [point],
      how: event.ctrlKey || event.metaKey ? "add" : "replace",
    };
  }

  function beginPinch() {
    drag = null;
    store.set({ lasso: null });
    const [a, b] = [...pointers.values()];
    pinch = { a, b };
  }

  function movePinch() {
    const [a, b] = [...pointers.values()];
    const middle = (p, q) => [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];
    const reach = (p, q) => Math.max(20, Math.hypot(p[0] - q[0], p[1] - q[1]));
    const angle = (p, q) => Math.atan2(p[1] - q[1], q[0] - p[0]);
    const { a: a0, b: b0 } = pinch;
    const key = cameraKey(large());
    store.set({ [key]: panned(large(), middle(a0, b0), middle(a, b)) });
    store.set({ [key]: zoomAbout(large(), reach(a, b) / reach(a0, b0), ...middle(a, b)) });
    const roll = aboutAxis([1, 0, 0], angle(a, b) - angle(a0, b0));
    store.set({ rotation: normalize(multiply(roll, store.get().rotation)) });
    pinch = { a, b };
  }

  function moveDrag(event, point) {
    if (drag.moved && drag.action === "lasso" && store.get().lasso === null) {
      drag = null; // Escape cancelled it
      return;
    }
    if (!drag.moved && Math.hypot(point[0] - drag.start[0], point[1] - drag.start[1]) < CLICK_PIXELS) return;
    drag.moved = true;
    if (drag.action === "turn") {
      const rotation = turned(drag.pane, drag.rotation, drag.start, point);
      drag.trail.push({ time: event.timeStamp, rotation });
      store.set({ rotation });
    } else if (drag.action === "pan") {
      store.set({ [cameraKey(drag.pane)]: panned(drag.pane, drag.start, point) });
    } else {
      drag.polygon.push(point);
      store.set({ lasso: { pane: drag.pane.name, polygon: [...drag.polygon] } });
    }
  }

  function move(event) {
    const point = at(event);
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType !== "touch") on.hover(under(point), point);
      return;
    }
    pointers.set(event.pointerId, point);
    if (pinch && pointers.size === 2) movePinch();
    else if (drag) moveDrag(event, point);
  }

  function throwOn(event) {
    const recent = drag.trail.filter(({ time }) => event.timeStamp - time < THROW_MILLISECONDS);
    if (recent.length < 2) return;
    const [first, last] = [recent[0], recent.at(-1)];
    const seconds = (event.timeStamp - first.time) / 1000;
    const { axis, angle } = toAxisAngle(multiply(last.rotation, inverse(first.rotation)));
    if (seconds > 0) motion.throwGlobe(axis, angle / seconds);
  }

  function end(event) {
    if (!pointers.delete(event.pointerId)) return;
    pinch = null;
    if (drag === null) return;
    const canceled = event.type === "pointercancel";
    const drawn = store.get().lasso !== null; // unless Escape cancelled it
    if (drag.moved && drag.action === "turn" && !canceled) throwOn(event);
    if (drag.action === "lasso") {
      store.set({ lasso: null });
      if (drag.moved && drawn && !canceled) on.lasso(drag.pane, drag.polygon, drag.how);
    }
    if (!drag.moved && !canceled && event.button === 0) {
      on.click(drag.pane, drag.start, event.pointerType === "touch");
    }
    drag = null;
  }

  function wheel(event) {
    const hasFocus = target.contains(target.getRootNode().activeElement);
    if (wheelNeedsFocus && !hasFocus && !event.ctrlKey) return;
    const point = at(event);
    const pane = under(point);
    if (pane === null || motion.changing) return;
    event.preventDefault();
    motion.stop();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016));
    const { rect } = large();
    const about = pane.inset ? [rect.x + rect.width / 2, rect.y + rect.height / 2] : point;
    store.set({ [cameraKey(large())]: zoomAbout(large(), factor, ...about) });
  }

  function center(event) {
    const pane = under(at(event));
    if (pane && !pane.inset && !event.target.closest("button")) on.center(pane, at(event));
  }

  const listeners = {
    pointerdown: begin, pointermove: move, pointerup: end, pointercancel: end,
    // Lifting a finger is a leave event, too; keep the hovered point.
    pointerleave: (event) => event.pointerType !== "touch" && on.leave(), dblclick: center, wheel,
    contextmenu: (event) => event.preventDefault(),
  };
  for (const [name, listener] of Object.entries(listeners)) {
    target.addEventListener(name, listener, name === "wheel" ? { passive: false } : undefined);
  }
}
