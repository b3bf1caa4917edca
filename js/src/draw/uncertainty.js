// Uncertainty of hovered and pinned points: an ellipse, and a dashed line to an alternative position.
import { createProjector } from "../geometry/picking.js";

/** Draw a line through points, without hidden ones and without jumps across the map. */
function trace(context, points, farthest) {
  let last = null;
  context.beginPath();
  for (const position of points) {
    if (position === null) last = null;
    else {
      const joined = last !== null && Math.hypot(position[0] - last[0], position[1] - last[1]) < farthest;
      if (joined) context.lineTo(...position);
      else context.moveTo(...position);
      last = position;
    }
  }
  context.stroke();
}

/** Draw with a halo, for contrast with dense points. */
function strokeWithHalo(context, width, color, halo, draw) {
  for (const [lineWidth, style] of [[width + 2.5, halo], [width, color]]) {
    context.lineWidth = lineWidth;
    context.strokeStyle = style;
    draw();
  }
}

/** Function that the overlay calls for each pane. */
export function createUncertaintyMarks({ uncertainty }, model) {
  return (context, pane, state, colors) => {
    if (!uncertainty || state.embedding !== 0) return;
    const projectPoint = createProjector(pane, model.positions);
    const width = pane.inset ? 1 : 2;
    const farthest = Math.min(pane.rect.width, pane.rect.height) / 2;
    context.save();
    for (const row of new Set([...state.pins, ...(state.hover ? [state.hover.row] : [])])) {
      const outline = uncertainty.ellipse(row, model.positions);
      const project = createProjector(pane, outline);
      const vertices = Array.from({ length: outline.length / 3 }, (_, k) => project(k));
      context.setLineDash([]);
      strokeWithHalo(context, width, colors.ink, colors.halo, () => trace(context, vertices, farthest));
      const alternative = uncertainty.alternative(row);
      const end = alternative === null ? null : createProjector(pane, alternative)(0);
      if (end === null) continue;
      const start = projectPoint(row);
      context.setLineDash([2, 4]);
      if (start !== null) strokeWithHalo(context, width, colors.ink, colors.halo, () => trace(context, [start, end], Infinity));
      context.setLineDash([]);
      strokeWithHalo(context, width, colors.ink, colors.halo, () => {
        context.beginPath();
        context.arc(...end, pane.inset ? 3 : 5, 0, 2 * Math.PI);
        context.stroke();
      });
    }
    context.restore();
  };
}
