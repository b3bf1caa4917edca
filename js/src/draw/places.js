// Uncertainty of hovered and pinned points: an ellipse, and a dashed line to an alternative position.
import { createProjector } from "../geometry/picking.js";

/** Draw a line through points, without hidden ones and without jumps across the map. */
function trace(context, points, farthest) {
  let last = null;
  context.beginPath();
  for (const at of points) {
    if (at === null) last = null;
    else {
      const joined = last !== null && Math.hypot(at[0] - last[0], at[1] - last[1]) < farthest;
      if (joined) context.lineTo(...at);
      else context.moveTo(...at);
      last = at;
    }
  }
  context.stroke();
}

/** Draw with a halo, for contrast with dense points. */
function drawn(context, width, color, halo, draw) {
  for (const [wide, style] of [[width + 2.5, halo], [width, color]]) {
    context.lineWidth = wide;
    context.strokeStyle = style;
    draw();
  }
}

/** Function that the overlay calls for each pane. */
export function createPlaceMarks({ places }, model) {
  return (context, pane, state, colors) => {
    if (!places || state.embedding !== 0) return;
    const own = createProjector(pane, model.positions);
    const width = pane.inset ? 1 : 2;
    const farthest = Math.min(pane.rect.width, pane.rect.height) / 2;
    context.save();
    for (const row of new Set([...state.pins, ...(state.hover ? [state.hover.row] : [])])) {
      const outline = places.ellipse(row, model.positions);
      const project = createProjector(pane, outline);
      const around = Array.from({ length: outline.length / 3 }, (_, k) => project(k));
      context.setLineDash([]);
      drawn(context, width, colors.ink, colors.halo, () => trace(context, around, farthest));
      const other = places.alternative(row);
      const there = other === null ? null : createProjector(pane, other)(0);
      if (there === null) continue;
      const from = own(row);
      context.setLineDash([2, 4]);
      if (from !== null) drawn(context, width, colors.ink, colors.halo, () => trace(context, [from, there], Infinity));
      context.setLineDash([]);
      drawn(context, width, colors.ink, colors.halo, () => {
        context.beginPath();
        context.arc(...there, pane.inset ? 3 : 5, 0, 2 * Math.PI);
        context.stroke();
      });
    }
    context.restore();
  };
}
