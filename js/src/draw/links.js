// Lines from the point pointed at, and from pinned ones, to their nearest neighbours in the data: red and dashed where
// the map has torn them away.
import { createProjector } from "../geometry/picking.js";

function line(context, from, to, color, dashed) {
  context.strokeStyle = color;
  context.setLineDash(dashed ? [6, 4] : []);
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
}

/** What the overlay calls for each pane. */
export function createLinks({ neighbors }, model) {
  return (context, pane, state, colors) => {
    if (!neighbors || !state.lines) return;
    const project = createProjector(pane, model.positions);
    context.save();
    context.lineWidth = pane.inset ? 1 : 1.4;
    for (const row of new Set([...state.pins, ...(state.hover ? [state.hover.row] : [])])) {
      const from = project(row);
      if (from === null) continue;
      for (const { row: other, torn } of neighbors.of(row, state.embedding)) {
        const to = project(other);
        if (to === null) continue;
        context.globalAlpha = torn ? 0.95 : 0.75;
        line(context, from, to, torn ? colors.torn : colors.accent, torn);
        context.fillStyle = torn ? colors.torn : colors.accent;
        context.beginPath();
        context.arc(...to, pane.inset ? 1.5 : 2.6, 0, 2 * Math.PI);
        context.fill();
      }
    }
    context.restore();
  };
}
