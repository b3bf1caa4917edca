// The two canvases, and the loop that redraws them after changes.
import { h } from "../ui/dom.js";
import { whenDrawn } from "./gl.js";
import { homeZoom } from "../geometry/home.js";
import { panes } from "../geometry/layout.js";
import { drawOverlay } from "./overlay.js";
import { createPace } from "./pace.js";
import { createScene } from "./scene.js";
import { touched } from "../state/store.js";
import { createWorkload } from "./workload.js";

const MOVES = ["rotation", "globe", "map", "flat", "unfold", "morph", "filters", "spotlight"];
const OVERLAY_ONLY = new Set(["hover", "lasso", "pins", "tool", "names", "railOpen", "tableOpen", "contours", "lines", "genes", "sets"]);
const CONTEXT = { alpha: false, antialias: false, depth: false, powerPreference: "high-performance" };

/** extras: see overlay.js. onrest() is called when motion ends; onnames(count) with the number of names without room. */
export function createStage(dataset, store, model, motion, { onrest, onnames, extras = [] }) {
  const canvas = h("canvas", { class: "points-layer", "aria-hidden": "true" });
  const overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  const element = h(
    "div",
    {
      class: "stage", tabindex: 0, role: "application", "aria-roledescription": "map and globe",
      "aria-label": `${dataset.title}: map and globe. Arrow keys rotate, plus and minus zoom, question mark opens the help.`,
    },
    canvas,
    overlay,
  );
  const context = overlay.getContext("2d");
  const gl = canvas.getContext("webgl2", CONTEXT);
  const workload = createWorkload(dataset.n);
  let scene = null;
  let [width, height, ratio] = [0, 0, 1];
  const pace = createPace(() => workload.restMilliseconds, () => {
    request();
    onrest();
  });
  let [pending, lastFrame] = [0, 0];
  let [pointsStale, frames] = [true, 0];
  let names = { written: [], left: 0 };

  const panesNow = () => panes(store.get(), model.embedding, width, height);

  /** Large pane of the embedding that the points come from, during a transition. */
  function paneBefore({ morph }) {
    if (morph === null) return null;
    return panes(store.get(), dataset.embeddings[morph.from], width, height)[0];
  }

  /** Request a frame; points are redrawn only if they may have changed. */
  function request(points = true) {
    pointsStale ||= points;
    if (pending === 0) pending = requestAnimationFrame(frame);
  }

  function draw(scale, points) {
    const state = store.get();
    const list = panesNow();
    if (pointsStale && scene && !gl.isContextLost()) {
      scene.draw(list, state, scale, points, paneBefore(state));
      whenDrawn(gl, (milliseconds) => workload.note(points, milliseconds));
      frames++;
    }
    pointsStale = false;
    names = drawOverlay(context, list, state, model.positions, model.names, scale, extras);
    onnames(names.left);
  }

  function frame(now) {
    pending = 0;
    if (width === 0) return;
    const elapsed = Math.max(0, now - lastFrame);
    lastFrame = now;
    if (motion.active) motion.step(Math.min(0.05, elapsed / 1000));
    draw(ratio, pace.frame() ? workload.budget : dataset.n);
    if (motion.active) request();
  }

  function sizeCanvases(scale) {
    pointsStale = true; // a canvas of a new size is empty
    for (const layer of [canvas, overlay]) {
      layer.width = Math.round(width * scale);
      layer.height = Math.round(height * scale);
    }
  }

  function resize() {
    [width, height] = [element.clientWidth, element.clientHeight];
    ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    if (width === 0 || height === 0) return;
    sizeCanvases(ratio);
    draw(ratio, dataset.n);
  }

  function start() {
    if (!gl) return;
    scene = createScene(gl, dataset, model.order);
    scene.setPaint(model.paint(store.get()));
  }

  if (gl === null) {
    element.append(
      h("p", { class: "failure", role: "alert", text: "Points cannot be drawn, since this browser does not support WebGL2. Names, search and selection still work." }),
    );
  }
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    start();
    request();
  });
  const observer = new ResizeObserver(resize);
  observer.observe(element);
  const unsubscribe = store.subscribe((state, changed) => {
    if (touched(changed)(...MOVES)) pace.note();
    request([...changed].some((key) => !OVERLAY_ONLY.has(key)));
  });

  return {
    element,
    panesNow,
    homeZoom: (pane) => homeZoom(model.embedding, pane),
    request,
    start,
    repaint: () => scene?.setPaint(model.paint(store.get())),
    size: () => ({ width, height }),
    frames: () => frames,
    names: () => names.written,
    budget: () => workload.budget,
    /** Draw everything at full resolution, pass both layers to compose(), and restore the view. */
    picture(compose) {
      const scale = Math.max(2, ratio);
      sizeCanvases(scale);
      draw(scale, dataset.n);
      const result = compose([canvas, overlay], scale);
      sizeCanvases(ratio);
      draw(ratio, dataset.n);
      return result;
    },
    destroy() {
      unsubscribe();
      observer.disconnect();
      pace.stop();
      cancelAnimationFrame(pending);
      gl?.getExtension("WEBGL_lose_context")?.loseContext();
    },
  };
}
