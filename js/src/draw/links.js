// Lines from hovered and pinned points to their nearest neighbours in the data, red and dashed if the map has torn them
// away.
import { createProjector } from "../geometry/picking.js";

/** Draw a line that ends in a dot, with a halo for contrast with dense points. */
function link(context, from, to, color, halo, { dashed, width }) {
  for (const [wide, style, dash] of [[width + 2.5, halo, []], [width, color, dashed ? [7, 3] : []]]) {
    context.lineWidth = wide;
    context.strokeStyle = style;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.fillStyle = style;
    context.beginPath();
    context.arc(...to, wide / 2 + 0.9 * width, 0, 2 * Math.PI);
    context.fill();
  }
}

/** Function that the overlay calls for each pane. */
export function createLinks({ neighbors }, model) {
  return (context, pane, state, colors) => {
    if (!neighbors || !state.lines) return;
    const project = createProjector(pane, model.positions);
    const width = pane.inset ? 1 : 2;
    context.save();
    for (const row of new Set([...state.pins, ...(state.hover ? [state.hover.row] : [])])) {
      const from = project(row);
      if (from === null) continue;
      for (const { row: other, torn } of neighbors.of(row, state.embedding)) {
        const to = project(other);
        if (to !== null) link(context, from, to, torn ? colors.torn : colors.accent, colors.halo, { dashed: torn, width });
      }
    }
    context.restore();
  };
}
