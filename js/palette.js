// Chooses the colours of categories beyond Okabe and Ito's: node palette.js
//
// Greedy: each next colour is the candidate farthest (in OKLab) from all before it and from the
// ground, as seen by the closest of three readers: full vision, protanopia, deuteranopia
// (Machado, Oliveira and Fernandes, 2009). The tables it prints are those in src/color.js.
import { OKABE_ITO } from "./src/color.js";

const LENGTH = 32;
const SETTINGS = {
  dark: { ground: [25, 33, 48], lightness: [0.56, 0.64, 0.72, 0.8, 0.88], apart: 0.2 },
  light: { ground: [255, 255, 255], lightness: [0.38, 0.46, 0.54, 0.62, 0.7, 0.77], apart: 0.2 },
};
const READERS = [
  [1, 0, 0, 0, 1, 0, 0, 0, 1],
  [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
];

const toLinear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const toByte = (v) => Math.round(255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055));

function oklab([r, g, b]) {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklch(lightness, chroma, hue) {
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function seen(linear) {
  return READERS.map((m) =>
    oklab([0, 3, 6].map((i) => Math.max(0, Math.min(1, m[i] * linear[0] + m[i + 1] * linear[1] + m[i + 2] * linear[2])))),
  );
}

const distance = (a, b) => Math.min(...a.map((lab, i) => Math.hypot(...lab.map((part, c) => part - b[i][c]))));

function candidates({ lightness, ground, apart }) {
  const under = seen(ground.map(toLinear));
  const list = [];
  for (const l of lightness) {
    for (const chroma of [0.05, 0.1, 0.14, 0.18]) {
      for (let degrees = 0; degrees < 360; degrees += 6) {
        const linear = fromOklch(l, chroma, (degrees * Math.PI) / 180);
        if (linear.some((part) => part < 0 || part > 1)) continue;
        const view = seen(linear);
        if (distance(view, under) > apart) list.push({ linear, view });
      }
    }
  }
  return list;
}

for (const [theme, setting] of Object.entries(SETTINGS)) {
  const chosen = OKABE_ITO[theme].map((color) => seen(color.map(toLinear)));
  const pool = candidates(setting);
  const names = [];
  while (chosen.length < LENGTH) {
    const near = (candidate) => Math.min(...chosen.map((view) => distance(view, candidate.view)));
    const best = pool.reduce((a, b) => (near(b) > near(a) ? b : a));
    chosen.push(best.view);
    names.push(best.linear.map((part) => toByte(part).toString(16).padStart(2, "0")).join(""));
  }
  console.log(`${theme}: "${names.join(" ")}"`);
}
