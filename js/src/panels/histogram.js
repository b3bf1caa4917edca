// A histogram of numbers or dates; drag over it to show only a range.
import { css } from "../draw/color.js";
import { ranged } from "../state/filter.js";
import { h, svg } from "../ui/dom.js";
import { MISSING, count, formatter } from "../ui/format.js";

const TRUNCATED_FROM = 5; // a bar more than this many times as high as the next one ...
const TRUNCATED_TO = 1.5; // ... is truncated at this many times its height
const GAP = [0.76, 0.84]; // range of heights left out of a truncated bar, as fractions

/** Path of bars, one unit wide; those above 1 are truncated. */
function bars(heights) {
  const bar = (i, low, high) => `M${i + 0.06} ${1 - low}V${1 - high}H${i + 0.94}V${1 - low}Z`;
  return heights.map((height, i) => (height > 1 ? bar(i, 0, GAP[0]) + bar(i, GAP[1], 1) : height > 0 ? bar(i, 0, height) : "")).join("");
}

/** Number of points of a bar of full height. */
export function fullHeight(counts) {
  const [most = 1, next = 0] = Array.from(counts).sort((a, b) => b - a);
  return next > 0 && most > TRUNCATED_FROM * next ? TRUNCATED_TO * next : Math.max(1, most);
}

export function createHistogram({ store, model, actions }, index) {
  const column = model.column(index);
  const bins = model.bins(index);
  const { range } = bins;
  const format = formatter(column);
  const tallest = fullHeight(bins.all.subarray(1));
  const edge = (bar) => (bar <= 0 ? -Infinity : bar >= bins.bars ? Infinity : bins.start + bar * bins.width);
  const barOf = (value) => Math.max(0, Math.min(bins.bars, Math.round((value - bins.start) / bins.width)));

  const paths = Object.fromEntries(["all", "shown", "chosen"].map((name) => [name, svg("path", { class: name })]));
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${bins.bars} 1`, preserveAspectRatio: "none", class: "bars", "aria-hidden": "true" },
    ...Object.values(paths),
  );
  const window = h("span", { class: "brush", hidden: true });
  const handles = ["Least", "Greatest"].map((end, side) => {
    const handle = h("span", {
      class: "handle", role: "slider", tabindex: 0, "aria-label": `${end} ${column.name} shown`,
      "aria-valuemin": 0, "aria-valuemax": bins.bars, onkeydown: (event) => step(event, side),
    });
    return handle;
  });
  const most = Math.max(...bins.all.subarray(1));
  const area = h("div", { class: "histogram", ...(most > tallest && { title: `The truncated bar is ${count(most)} high.` }) }, drawing, window, ...handles);
  const ramp = h("div", { class: "bar", hidden: true });
  const left = h("span", { text: (range.min < range.low ? "≤ " : "") + format(range.low) });
  const right = h("span", { text: (range.max > range.high ? "≥ " : "") + format(range.high) });
  const caption = h("span", { class: "quiet" });
  const missing = h(
    "button",
    { type: "button", class: "missing small", title: "Hide or show missing values", onclick: toggleMissing, hidden: bins.all[0] === 0 },
  );
  const element = h("div", {}, area, ramp, h("div", { class: "ends" }, left, caption, right), missing);
  paths.all.setAttribute("d", bars(Array.from(bins.all.subarray(1), (k) => k / tallest)));

  /** Bars shown, as [first, last + 1], and whether missing values are shown. */
  function current() {
    const filter = store.get().filters.get(index);
    const ends = filter ? [filter.low, filter.high] : [-Infinity, Infinity];
    return { ends: ends.map((value, i) => (Number.isFinite(value) ? barOf(value) : i * bins.bars)), missing: filter?.missing ?? true };
  }

  function set([first, last], keepMissing) {
    const whole = first <= 0 && last >= bins.bars;
    actions.setFilter(index, ranged(edge(first), edge(last), whole ? keepMissing ?? true : keepMissing ?? false));
  }

  function toggleMissing() {
    const { ends, missing: on } = current();
    set(ends, !on);
  }

  function step(event, side) {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5, Home: -bins.bars, End: bins.bars }[event.key];
    if (!by) return;
    event.preventDefault();
    const { ends } = current();
    const limits = side === 0 ? [0, ends[1] - 1] : [ends[0] + 1, bins.bars];
    ends[side] = Math.max(limits[0], Math.min(limits[1], ends[side] + by));
    set(ends);
  }

  // Dragging moves an end or the whole range if it starts there; elsewhere, it creates a range.
  let drag = null;
  const barAt = (event) => {
    const box = area.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * bins.bars;
  };
  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || bins.bars < 2) return;
    area.setPointerCapture(event.pointerId);
    const at = barAt(event);
    const { ends } = current();
    const near = bins.bars * (event.pointerType === "touch" ? 0.08 : 0.03);
    const filtered = store.get().filters.has(index);
    const side = ends.findIndex((end) => filtered && Math.abs(at - end) < near);
    const inside = filtered && at > ends[0] && at < ends[1];
    drag = { start: at, ends, kind: side >= 0 ? side : inside ? "move" : "new", moved: false };
  });
  area.addEventListener("pointermove", (event) => {
    if (drag === null) return;
    const at = barAt(event);
    if (!drag.moved && Math.abs(at - drag.start) < bins.bars * 0.015) return;
    drag.moved = true;
    const clamp = (value) => Math.max(0, Math.min(bins.bars, Math.round(value)));
    if (drag.kind === "new") {
      const [a, b] = [drag.start, at].sort((p, q) => p - q);
      set([Math.min(Math.max(0, Math.floor(a)), bins.bars - 1), Math.max(1, Math.min(bins.bars, Math.ceil(b)))]);
    } else if (drag.kind === "move") {
      const wide = drag.ends[1] - drag.ends[0];
      const first = Math.max(0, Math.min(bins.bars - wide, clamp(drag.ends[0] + at - drag.start)));
      set([first, first + wide]);
    } else {
      const ends = [...drag.ends];
      ends[drag.kind] = drag.kind === 0 ? Math.min(ends[1] - 1, clamp(at)) : Math.max(ends[0] + 1, clamp(at));
      set(ends);
    }
  });
  area.addEventListener("pointerup", () => {
    if (drag && !drag.moved) actions.setFilter(index, null);
    drag = null;
  });
  area.addEventListener("pointercancel", () => (drag = null));

  return {
    element,
    update(state) {
      const counts = model.counts(index);
      const { ends, missing: withMissing } = current();
      const inRange = (i) => i >= ends[0] && i < ends[1];
      const part = (all, wanted) => bars(Array.from(all.subarray(1), (k, i) => (wanted(i) ? k / tallest : 0)));
      paths.shown.setAttribute("d", part(counts, inRange));
      paths.chosen.setAttribute("d", state.selection.mask ? part(model.counts(index, state.selection.mask), inRange) : "");
      const filter = state.filters.get(index);
      const narrowed = ends[0] > 0 || ends[1] < bins.bars;
      window.hidden = !narrowed;
      const place = (bar) => `${(100 * bar) / bins.bars}%`;
      window.style.left = place(ends[0]);
      window.style.width = place(ends[1] - ends[0]);
      handles.forEach((handle, side) => {
        handle.style.left = place(ends[side]);
        handle.setAttribute("aria-valuenow", ends[side]);
        handle.setAttribute("aria-valuetext", format(side === 0 ? (ends[0] === 0 ? range.min : edge(ends[0])) : ends[1] === bins.bars ? range.max : edge(ends[1])));
      });
      const words = [ends[0] > 0 ? `from ${format(edge(ends[0]))}` : "", ends[1] < bins.bars ? `below ${format(edge(ends[1]))}` : ""];
      caption.textContent = filter && narrowed ? words.filter(Boolean).join(", ") : trust(column.role, state.colorBy === index);
      missing.textContent = `${count(counts[0])} ${MISSING}`;
      missing.setAttribute("aria-pressed", String(withMissing));
      ramp.hidden = state.colorBy !== index || model.scheme.kind !== "number";
      if (!ramp.hidden) ramp.style.background = `linear-gradient(90deg, ${model.scheme.colors.filter((_, i) => i % 15 === 0).map((color) => css(color)).join(", ")})`;
    },
  };
}

function trust(role, colored) {
  return colored && (role === "loss" || role === "torn") ? "trusted ⟶ doubtful" : "";
}
