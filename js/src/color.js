// Colours that hold for colour-blind readers, as [red, green, blue] in 0 to 255.

const hex = (text) => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16));

// Okabe and Ito (2008), in the order of Python's _palette.py. Their yellow is too pale on white and their blue too deep on black:
// those two are shifted in lightness for the theme, all else is theirs.
export const OKABE_ITO = {
  dark: ["3F8FE0", "E69F00", "009E73", "D55E00", "CC79A7", "56B4E9", "F0E442"].map(hex),
  light: ["0072B2", "E69F00", "009E73", "D55E00", "CC79A7", "56B4E9", "B8A800"].map(hex),
};

// Chosen by palette.js to stay apart for readers with and without red-green blindness.
const FURTHER = {
  dark: "84ede1 a1529b 96cf95 3c6cdc 65d1db 9cf09b 7db57c c8393c 1a8770 b56cbc 7fd85e 974dbf 8ec2fd 50a252 c48fc8 dab1bc 5285f8 299f9c f7ccc4 87af9f 77a2fc b1a759 8b6e57 d6e26f 82eafc"
    .split(" ").map(hex),
  light: "7c140a 50326c b3b894 35615c 4d7ff1 b0378b 0c33a0 c03809 224b40 61765a 214dba 8fbdc6 87ac69 0a8fd1 3666d5 963215 719cf5 92c765 81347c 77914c 6e513d 9576b6 47aec6 af6d97 610c85"
    .split(" ").map(hex),
};

export const MISSING_COLOR = { dark: [92, 100, 116], light: [176, 180, 188] };
export const PLAIN_COLOR = { dark: [110, 178, 240], light: [0, 104, 172] };

// Seventeen colours of matplotlib's tables (public domain), joined by straight lines.
const RAMPS = {
  viridis:
    "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
  cividis:
    "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838",
};
const TABLES = Object.fromEntries(
  Object.entries(RAMPS).map(([name, text]) => [name, text.split(" ").map(hex)]),
);

/** k colours for categories: Okabe-Ito, then those of palette.js; beyond 32 they come again. */
export function categoricalPalette(k, theme) {
  const table = [...OKABE_ITO[theme], ...FURTHER[theme]];
  return Array.from({ length: k }, (_, i) => table[i % table.length]);
}

/** The colour at t in [0, 1]; the end that would vanish into the theme's ground is left off. */
export function ramp(name, t, theme) {
  const table = TABLES[name];
  const [low, high] = theme === "dark" ? [0.14, 1] : [0, 0.93];
  const at = (low + (high - low) * Math.max(0, Math.min(1, t))) * (table.length - 1);
  const i = Math.min(table.length - 2, Math.floor(at));
  return table[i].map((part, c) => Math.round(part + (table[i + 1][c] - part) * (at - i)));
}

export const css = ([r, g, b], alpha = 1) => `rgb(${r} ${g} ${b} / ${alpha})`;
