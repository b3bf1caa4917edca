// Density contours of the points shown on the large view, around the densest 25, 50, 75 and 90 % of them.
import { createProjector } from "../geometry/picking.js";

const CELL = 6; // pixels
const SAMPLE = 200000; // points
const SHARES = [0.25, 0.5, 0.75, 0.9];
const SMOOTH = 2; // cells, three times over

function smoothLines(from, to, lines, length, step, stride) {
  for (let line = 0; line < lines; line++) {
    const start = line * stride;
    let sum = 0;
    for (let k = -SMOOTH; k < length + SMOOTH; k++) {
      const [enter, leave] = [k + SMOOTH, k - SMOOTH - 1];
      if (enter < length) sum += from[start + enter * step];
      if (leave >= 0) sum -= from[start + leave * step];
      if (k >= 0 && k < length) to[start + k * step] = sum / (2 * SMOOTH + 1);
    }
  }
}

/** Counts of points in cells, smoothed: { grid, columns, rows }. */
export function density(project, rowsShown, { x, y, width, height }) {
  const columns = Math.max(2, Math.ceil(width / CELL));
  const rows = Math.max(2, Math.ceil(height / CELL));
  let grid = new Float32Array(columns * rows);
  for (const row of rowsShown) {
    const at = project(row);
    if (at === null) continue;
    const [i, j] = [Math.floor((at[0] - x) / CELL), Math.floor((at[1] - y) / CELL)];
    if (i >= 0 && j >= 0 && i < columns && j < rows) grid[j * columns + i]++;
  }
  let other = new Float32Array(grid.length);
  for (let pass = 0; pass < 3; pass++) {
    smoothLines(grid, other, rows, columns, 1, columns);
    smoothLines(other, grid, columns, rows, columns, 1);
  }
  return { grid, columns, rows };
}

/** Density above which each share of the points is. */
export function levelsOf({ grid }) {
  const sorted = grid.filter((value) => value > 0).sort().reverse();
  const total = sorted.reduce((sum, value) => sum + value, 0);
  const levels = [];
  let sum = 0;
  for (const value of sorted) {
    sum += value;
    while (levels.length < SHARES.length && sum >= SHARES[levels.length] * total) levels.push(value);
  }
  return levels;
}

/** Segments [x0, y0, x1, y1] of the line at a level, in cells (marching squares). */
export function isoline({ grid, columns, rows }, level) {
  const segments = [];
  const cut = (a, b) => (level - a) / (b - a);
  for (let j = 0; j + 1 < rows; j++) {
    for (let i = 0; i + 1 < columns; i++) {
      const [a, b] = [grid[j * columns + i], grid[j * columns + i + 1]];
      const [d, c] = [grid[(j + 1) * columns + i], grid[(j + 1) * columns + i + 1]];
      const code = (a > level) | ((b > level) << 1) | ((c > level) << 2) | ((d > level) << 3);
      if (code === 0 || code === 15) continue;
      const crossings = [];
      if ((a > level) !== (b > level)) crossings.push([i + cut(a, b), j]);
      if ((b > level) !== (c > level)) crossings.push([i + 1, j + cut(b, c)]);
      if ((d > level) !== (c > level)) crossings.push([i + cut(d, c), j + 1]);
      if ((a > level) !== (d > level)) crossings.push([i, j + cut(a, d)]);
      for (let k = 0; k + 1 < crossings.length; k += 2) segments.push([...crossings[k], ...crossings[k + 1]]);
    }
  }
  return segments;
}

/** { extra, refresh(pane) }: refresh computes the lines of a pane, extra draws them while the pane is unchanged. */
export function createContours(store, model) {
  let made = null;
  const same = (a, b) => ["zoom", "x", "y", "unfold", "projection", "rotation"].every((key) => a[key] === b[key]) && a.rect.width === b.rect.width && a.rect.height === b.rect.height;

  return {
    refresh(pane) {
      made = null;
      if (!store.get().contours || model.shownCount === 0) return;
      const stride = Math.max(1, Math.floor(model.order.length / SAMPLE));
      const rows = [];
      for (let k = 0; k < model.order.length; k += stride) if (model.shown[model.order[k]]) rows.push(model.order[k]);
      const field = density(createProjector(pane, model.positions), rows, pane.rect);
      made = { pane, lines: levelsOf(field).map((level) => isoline(field, level)) };
    },
    extra(context, pane, state, colors) {
      if (!state.contours || made === null || pane.inset || !same(pane, made.pane)) return;
      context.save();
      context.strokeStyle = colors.ink;
      context.lineJoin = "round";
      made.lines.forEach((segments, i) => {
        context.globalAlpha = 0.75 - 0.15 * i;
        context.lineWidth = 1.3;
        context.beginPath();
        for (const [x0, y0, x1, y1] of segments) {
          context.moveTo(pane.rect.x + (x0 + 0.5) * CELL, pane.rect.y + (y0 + 0.5) * CELL);
          context.lineTo(pane.rect.x + (x1 + 0.5) * CELL, pane.rect.y + (y1 + 0.5) * CELL);
        }
        context.stroke();
      });
      context.restore();
    },
  };
}
