// Draws every pane of a state on the one canvas.
import { placement as placementOf } from "../geometry/camera.js";
import { createGround } from "./ground.js";
import { homeZoom } from "../geometry/home.js";
import { autoAlpha, autoSize, createPoints } from "./points.js";
import { toMatrix } from "../geometry/rotation.js";
import { THEMES } from "./theme.js";

export function createScene(gl, { positions, home }, order) {
  const n = order.length;
  const points = createPoints(gl, positions, order);
  const ground = createGround(gl);

  function drawPane(pane, state, ratio, count) {
    const colors = THEMES[state.theme];
    const placement = placementOf(pane);
    const matrix = toMatrix(state.rotation);
    const viewport = [pane.rect.width * ratio, pane.rect.height * ratio];
    const lineStyle = { colors, viewport, ratio };
    const nearer = pane.zoom / homeZoom(home, pane);
    const size = autoSize(n, pane.rect) * state.size * Math.min(3, nearer ** 0.35) * ratio;
    const dots = { size, alpha: autoAlpha(n), ground: colors.center, count };
    const hasBack = pane.unfold < 0.5;

    if (hasBack) {
      ground.body(placement, { side: -1, ...colors, alpha: 1 });
      if (state.seeThrough) {
        if (state.graticule) ground.graticule(placement, matrix, { side: -1, ...lineStyle });
        points.draw(placement, matrix, { ...dots, side: -1 });
      }
    }
    const glass = hasBack && state.seeThrough ? colors.glass : 1;
    ground.body(placement, { side: 1, ...colors, alpha: glass });
    if (state.graticule) ground.graticule(placement, matrix, { side: 1, ...lineStyle });
    points.draw(placement, matrix, { ...dots, side: 1 });
    ground.outline(placement, lineStyle);
  }

  return {
    setPaint: points.setPaint,
    /** ratio: device pixels a CSS pixel; count: how many points in drawing order. */
    draw(panes, state, ratio, count) {
      const { canvas } = gl;
      const [r, g, b] = THEMES[state.theme].ground;
      gl.disable(gl.SCISSOR_TEST);
      gl.clearColor(r, g, b, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      gl.enable(gl.SCISSOR_TEST);
      for (const pane of panes) {
        const x = Math.round(pane.rect.x * ratio);
        const width = Math.round(pane.rect.width * ratio);
        const height = Math.round(pane.rect.height * ratio);
        const y = canvas.height - Math.round(pane.rect.y * ratio) - height;
        gl.viewport(x, y, width, height);
        gl.scissor(x, y, width, height);
        drawPane(pane, state, ratio, count);
      }
    },
  };
}
