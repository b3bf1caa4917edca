// Names, rings, pins and the lasso, on a second canvas over the points.
import { createProjector } from "../geometry/picking.js";
import { writeNames } from "./labels.js";
import { FONT, THEMES, onCanvas } from "./theme.js";

const MOST_RINGS = 60; // a selection of no more points gets a ring each

function ring(context, [x, y], radius, color, halo) {
  for (const [width, style] of [[4, halo], [2, color]]) {
    context.lineWidth = width;
    context.strokeStyle = style;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.stroke();
  }
}

function pin(context, [x, y], number, { accent, halo, ground }) {
  ring(context, [x, y], 5, accent, halo);
  context.font = `600 11px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = accent;
  context.beginPath();
  context.arc(x + 11, y - 11, 8, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = onCanvas(ground);
  context.fillText(String(number), x + 11, y - 10.5);
}

function drawLasso(context, polygon, accent) {
  context.beginPath();
  polygon.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  context.closePath();
  context.globalAlpha = 0.12;
  context.fillStyle = accent;
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  context.strokeStyle = accent;
  context.setLineDash([5, 4]);
  context.stroke();
  context.setLineDash([]);
}

function within(context, { x, y, width, height }, draw) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  draw();
  context.restore();
}

function drawMarks(context, pane, state, positions, colors) {
  const project = createProjector(pane, positions);
  const small = pane.inset ? 0.6 : 1;
  const { rows } = state.selection;
  if (rows.length <= MOST_RINGS) {
    for (const row of rows) {
      const at = project(row);
      if (at) ring(context, at, 6 * small, colors.ink, colors.halo);
    }
  }
  state.pins.forEach((row, i) => {
    const at = project(row);
    if (!at) return;
    if (pane.inset) ring(context, at, 3, colors.accent, colors.halo);
    else pin(context, at, i + 1, colors);
  });
  const at = state.hover === null ? null : project(state.hover.row);
  if (at) ring(context, at, 6.5 * small, colors.ink, colors.halo);
}

/**
 * Draw everything over the points. names: see labels.js; extras: functions that draw below the marks,
 * called with (context, pane, state, colors). Returns { written, left } of the large view, see labels.js.
 */
export function drawOverlay(context, panes, state, positions, names, ratio, extras = []) {
  const colors = THEMES[state.theme];
  let found = { written: [], left: 0 };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  if (state.morph !== null) return found; // marks wait until the points have arrived
  const covered = panes.filter(({ inset }) => inset).map(({ rect: { x, y, width, height } }) => [x, y, x + width, y + height]);
  for (const pane of panes) {
    const { x, y, width, height } = pane.rect;
    if (pane.inset) context.clearRect(x, y, width, height);
    within(context, pane.rect, () => {
      for (const extra of extras) extra(context, pane, state, colors);
      if (state.names && !pane.inset) found = writeNames(context, pane, names, colors, covered);
      drawMarks(context, pane, state, positions, colors);
      if (state.lasso?.pane === pane.name) drawLasso(context, state.lasso.polygon, colors.accent);
    });
  }
  return found;
}
