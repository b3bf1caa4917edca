// Drawn over the points on a second, plain canvas: names, rings, pins, the lasso.
import { toScreen } from "../geometry/camera.js";
import { createProjector } from "../geometry/picking.js";
import { place } from "../geometry/projections.js";
import { apply } from "../geometry/rotation.js";
import { FONT, THEMES, onCanvas } from "./theme.js";

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

function writeNames(context, pane, rotation, names, { ink, halo }) {
  context.font = `600 12px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  const taken = [];
  for (const { at, text } of names) {
    const out = place([], ...apply(rotation, at), pane.unfold, pane.projection);
    if (out[2] < (pane.unfold < 0.5 ? 0.15 : 0) || (out[3] && pane.unfold > 0.5)) continue;
    const [x, y] = toScreen(pane, out[0], out[1]);
    const half = context.measureText(text).width / 2 + 5;
    const box = [x - half, y - 9, x + half, y + 9];
    const { rect } = pane;
    if (box[0] < rect.x || box[2] > rect.x + rect.width || box[1] < rect.y || box[3] > rect.y + rect.height) continue;
    if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
    taken.push(box);
    context.lineWidth = 3.5;
    context.strokeStyle = halo;
    context.strokeText(text, x, y);
    context.fillStyle = ink;
    context.fillText(text, x, y);
  }
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

/** names: [{ at, text }] in the data's frame, the most important first. */
export function drawOverlay(context, panes, state, positions, names, ratio) {
  const colors = THEMES[state.theme];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  for (const pane of panes) {
    const project = createProjector(pane, state.rotation, positions);
    context.save();
    context.beginPath();
    context.rect(pane.rect.x, pane.rect.y, pane.rect.width, pane.rect.height);
    context.clip();
    if (state.names) writeNames(context, pane, state.rotation, names, colors);
    state.pins.forEach((row, i) => {
      const at = project(row);
      if (at) pin(context, at, i + 1, colors);
    });
    const at = state.hover === null ? null : project(state.hover.row);
    if (at) ring(context, at, 6.5, colors.ink, colors.halo);
    if (state.lasso?.pane === pane.name) drawLasso(context, state.lasso.polygon, colors.accent);
    context.restore();
  }
}
