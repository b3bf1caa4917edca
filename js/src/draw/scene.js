// Draw all panes of a state on one canvas.
import { placement as placementOf } from "../geometry/camera.js";
import { homeZoom } from "../geometry/home.js";
import { FLAT } from "../geometry/projections.js";
import { createGround } from "./ground.js";
import { autoAlpha, autoSize, createPoints } from "./points.js";
import { THEMES } from "./theme.js";

export function createScene(gl, { embeddings }, order) {
  const n = order.length;
  const points = createPoints(gl, embeddings, order);
  const ground = createGround(gl);

  function drawGlobeOrMap(pane, placement, state, dots, lineStyle) {
    const { colors } = lineStyle;
    const hasBack = pane.unfold < 0.5;
    if (hasBack) {
      ground.body(placement, { side: -1, ...colors, alpha: 1 });
      if (state.seeThrough) {
        if (state.graticule) ground.graticule(placement, { side: -1, ...lineStyle });
        points.draw(placement, { ...dots, side: -1 });
      }
    }
    const glass = hasBack && state.seeThrough ? colors.glass : 1;
    ground.body(placement, { side: 1, ...colors, alpha: glass });
    if (state.graticule) ground.graticule(placement, { side: 1, ...lineStyle });
    points.draw(placement, { ...dots, side: 1 });
    ground.outline(placement, lineStyle);
  }

  /** Progress of the points between embeddings; the inset does not show transitions from the plane. */
  function arrivedOn(pane, morph) {
    if (morph === null || (pane.inset && embeddings[morph.from].kind === "plane")) return 1;
    return morph.t;
  }

  /** before: pane of the embedding that the points come from, or null. */
  function drawPane(pane, state, ratio, count, before) {
    const colors = THEMES[state.theme];
    const placement = placementOf(pane);
    const viewport = [pane.rect.width * ratio, pane.rect.height * ratio];
    const nearer = pane.inset ? 1 : pane.zoom / homeZoom(embeddings[state.embedding], pane);
    const size = autoSize(n, pane.rect) * state.size * Math.min(3, Math.max(0.6, nearer ** 0.35)) * ratio;
    const dots = {
      size, alpha: autoAlpha(n), ground: colors.center, count,
      before: before && placementOf(before), arrived: arrivedOn(pane, state.morph),
    };
    if (pane.projection === FLAT) points.draw(placement, { ...dots, side: 1 });
    else drawGlobeOrMap(pane, placement, state, dots, { colors, viewport, ratio });
  }

  function clear(x, y, width, height, [r, g, b]) {
    gl.scissor(x, y, width, height);
    gl.clearColor(r, g, b, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  return {
    setPaint: points.setPaint,
    /** ratio: device pixels per CSS pixel; count: number of points to draw, in drawing order; before: see above. */
    draw(panes, state, ratio, count, before) {
      const { canvas } = gl;
      const colors = THEMES[state.theme];
      points.show(state.embedding, state.morph?.from ?? null);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.enable(gl.SCISSOR_TEST);
      for (const pane of panes) {
        const x = Math.round(pane.rect.x * ratio);
        const width = Math.round(pane.rect.width * ratio);
        const height = Math.round(pane.rect.height * ratio);
        const y = canvas.height - Math.round(pane.rect.y * ratio) - height;
        clear(x, y, width, height, colors.ground);
        gl.viewport(x, y, width, height);
        drawPane(pane, state, ratio, count, pane.inset ? null : before);
      }
    },
  };
}
