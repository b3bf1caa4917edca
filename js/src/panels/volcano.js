// Volcano plot: effect sizes and p-values of the entries of a comparison, the strongest ones with their names.
import { h, svg } from "../ui/dom.js";

const WIDTH = 300;
const HEIGHT = 150;
const PAD = { left: 8, right: 8, top: 14, bottom: 16 };
const MIN_ENTRIES = 8; // fewer entries have no plot
const NAMES_PER_SIDE = 3;
const SIGNIFICANT = 2; // −log10 of the false discovery rate
const STRONG = 0.15;
const REACH = 12;
const MAX_LETTERS = 14; // of a name

const shortened = (name) => (name.length <= MAX_LETTERS ? name : `${name.slice(0, MAX_LETTERS - 1)}…`);

/** Positions [x, y] of the entries; the scales end at the largest effect and the smallest p-value, rounded up. */
export function positionsOf(entries) {
  const widest = Math.max(0.2, ...entries.map(({ effect }) => Math.abs(effect)));
  const highest = Math.max(SIGNIFICANT, ...entries.map(({ score }) => score || 0));
  const half = (WIDTH - PAD.left - PAD.right) / 2;
  return entries.map(({ effect, score }) => [
    PAD.left + half + (half * effect) / widest,
    HEIGHT - PAD.bottom - ((HEIGHT - PAD.top - PAD.bottom) * (score || 0)) / highest,
  ]);
}

const dots = (positions) => positions.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("");

/** Indices of the strong entries with the smallest p-values, on each side. */
export function outstanding(entries) {
  const side = (sign) => [...entries.keys()]
    .filter((i) => sign * entries[i].effect >= STRONG && entries[i].score >= SIGNIFICANT)
    .sort((i, j) => entries[j].score * Math.abs(entries[j].effect) - entries[i].score * Math.abs(entries[i].effect))
    .slice(0, NAMES_PER_SIDE);
  return [...side(1), ...side(-1)];
}

/** onchoose(entry): a dot was clicked. */
export function createVolcano(onchoose) {
  const paths = Object.fromEntries(["none", "less", "more"].map((name) => [name, svg("path", { class: name })]));
  const names = svg("g", { class: "names" });
  const ring = svg("circle", { class: "ring", r: 5, hidden: true });
  const middle = svg("path", { class: "axis", d: `M${WIDTH / 2} ${PAD.top}V${HEIGHT - PAD.bottom}M0 ${HEIGHT - PAD.bottom}H${WIDTH}` });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" }, middle, ...Object.values(paths), names, ring);
  const caption = h("p", { class: "small quiet", "aria-hidden": "true" });
  const element = h("div", { class: "volcano" }, drawing, caption);
  let entries = [];
  let positions = [];

  const axisHint = "right: more in A; up: smaller p";

  function nearest(event) {
    const box = drawing.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT];
    let [best, found] = [REACH, -1];
    positions.forEach(([px, py], i) => {
      const distance = Math.hypot(px - x, py - y);
      if (distance < best) [best, found] = [distance, i];
    });
    return found;
  }

  function point(i) {
    ring.toggleAttribute("hidden", i < 0);
    drawing.classList.toggle("over", i >= 0);
    caption.textContent = i < 0 ? axisHint : entries[i].name;
    if (i < 0) return;
    ring.setAttribute("cx", positions[i][0]);
    ring.setAttribute("cy", positions[i][1]);
  }

  drawing.addEventListener("pointermove", (event) => point(nearest(event)));
  drawing.addEventListener("pointerleave", () => point(-1));
  drawing.addEventListener("click", (event) => {
    const i = nearest(event);
    if (i >= 0) onchoose(entries[i]);
  });

  function label(i) {
    const [x, y] = positions[i];
    const right = x > WIDTH / 2;
    const room = right ? WIDTH - x : x;
    const inward = room < 70;
    return svg("text", { x: x + (right !== inward ? 5 : -5), y: y + 3.5, "text-anchor": right !== inward ? "start" : "end", text: shortened(entries[i].name) });
  }

  /** Overlapping names are left out. */
  function withoutOverlaps(chosen) {
    const kept = [];
    for (const i of chosen) {
      const clear = kept.every((j) => Math.abs(positions[i][1] - positions[j][1]) > 10 || Math.abs(positions[i][0] - positions[j][0]) > 90);
      if (clear) kept.push(i);
    }
    return kept;
  }

  return {
    element,
    /** entries: [{ name, effect, score }]; what: "genes" or "columns". */
    draw(next, what) {
      entries = next;
      element.hidden = entries.length < MIN_ENTRIES || entries.some(({ score }) => Number.isNaN(score));
      if (element.hidden) return;
      positions = positionsOf(entries);
      const group = ({ effect, score }) => (score < SIGNIFICANT || Math.abs(effect) < STRONG ? "none" : effect > 0 ? "more" : "less");
      for (const [name, path] of Object.entries(paths)) path.setAttribute("d", dots(positions.filter((_, i) => group(entries[i]) === name)));
      names.replaceChildren(...withoutOverlaps(outstanding(entries)).map(label));
      drawing.setAttribute("aria-label", `${entries.length} ${what} by effect size and p-value; the list below has the same content.`);
      point(-1);
    },
  };
}
