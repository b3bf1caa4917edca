// Files to download: a picture of the view, and the selected rows.
import { css } from "../draw/color.js";
import { field } from "./format.js";
import { occurring } from "../data/columns.js";
import { FONT, THEMES, onCanvas } from "../draw/theme.js";

const KEY_LINE = 20; // pixels

export function fileName(title, ending) {
  const stem = title.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").toLowerCase();
  return `${stem.slice(0, 60) || "mercat"}.${ending}`;
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export function cell(text) {
  // A spreadsheet would interpret text with a leading sign as a formula.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function value(column, row) {
  if (column.kind === "number") {
    const x = column.values[row];
    return Number.isNaN(x) ? "" : String(column.values instanceof Float32Array ? Number(x.toPrecision(8)) : x);
  }
  if (column.kind === "date") return Number.isNaN(column.values[row]) ? "" : field(column, row);
  return column.codes[row] === 0 ? "" : cell(field(column, row));
}

export function toCsv(columns, rows) {
  const lines = [["row", ...columns.map(({ name }) => cell(name))].join(",")];
  for (const row of rows) lines.push([row, ...columns.map((column) => value(column, row))].join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** Codes listed by a key with a limited number of lines, and the number of those left out. */
export function keyLines(codes, lines) {
  const listed = codes.length <= lines ? codes : codes.slice(0, Math.max(0, lines - 1));
  return { listed, rest: codes.length - listed.length };
}

function drawCategoryKey(context, scheme, x, y, room) {
  const { listed, rest } = keyLines(occurring(scheme.counts), Math.floor(room / KEY_LINE));
  listed.forEach((code, i) => {
    context.fillStyle = css(scheme.colors[code]);
    context.beginPath();
    context.arc(x + 5, y + KEY_LINE * i, 5, 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = context.strokeStyle;
    context.fillText(scheme.labels[code].slice(0, 28), x + 18, y + KEY_LINE * i);
  });
  if (rest > 0) context.fillText(`and ${rest} more`, x + 18, y + KEY_LINE * listed.length);
}

function drawNumberKey(context, scheme, x, y) {
  for (let i = 0; i < 150; i++) {
    context.fillStyle = css(scheme.colors[Math.round((i / 149) * (scheme.colors.length - 1))]);
    context.fillRect(x + i, y, 1.5, 10);
  }
  context.fillStyle = context.strokeStyle;
  context.fillText(scheme.format(scheme.low), x, y + 24);
  context.textAlign = "right";
  context.fillText(scheme.format(scheme.high), x + 150, y + 24);
  context.textAlign = "left";
}

/** Canvas with both layers, the title and the key to the colours. */
export function composePicture(layers, { width, height, ratio, title, theme, scheme }) {
  const side = scheme.kind === "plain" ? 0 : 220;
  const top = title ? 48 : 0;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round((width + side) * ratio);
  canvas.height = Math.round((height + top) * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const { ground, ink } = THEMES[theme];
  context.fillStyle = onCanvas(ground);
  context.fillRect(0, 0, width + side, height + top);
  for (const layer of layers) context.drawImage(layer, 0, top, width, height);
  context.fillStyle = ink;
  context.strokeStyle = ink;
  context.textBaseline = "middle";
  context.font = `600 17px ${FONT}`;
  context.fillText(title, 20, 28, width + side - 40);
  if (scheme.kind === "plain") return canvas;
  context.font = `600 12px ${FONT}`;
  context.fillText(scheme.name, width + 10, top + 24, side - 20);
  context.font = `12px ${FONT}`;
  if (scheme.kind === "category") drawCategoryKey(context, scheme, width + 10, top + 50, height - 50);
  else drawNumberKey(context, scheme, width + 10, top + 44);
  return canvas;
}
