// Colours that are distinguishable with any colour vision, as [red, green, blue] from 0 to 255. Those of classes and
// missing values come with their columns; mercat/_draw/palette.py chooses them.

export const hex = (text) => [0, 2, 4].map((i) => parseInt(text.slice(i, i + 2), 16));

export const PLAIN_COLOR = { dark: [110, 178, 240], light: [0, 104, 172] };

// Seventeen colours of matplotlib's tables (public domain), interpolated linearly.
const RAMPS = {
  viridis:
    "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
  cividis:
    "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78 8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838",
};
const TABLES = Object.fromEntries(
  Object.entries(RAMPS).map(([name, text]) => [name, text.split(" ").map(hex)]),
);

/** Colour at t in [0, 1], without the end of the scale that has little contrast with the theme's background. */
export function ramp(name, t, theme) {
  const table = TABLES[name];
  const [low, high] = theme === "dark" ? [0.14, 1] : [0, 0.93];
  const at = (low + (high - low) * Math.max(0, Math.min(1, t))) * (table.length - 1);
  const i = Math.min(table.length - 2, Math.floor(at));
  return table[i].map((part, c) => Math.round(part + (table[i + 1][c] - part) * (at - i)));
}

export const css = ([r, g, b], alpha = 1) => `rgb(${r} ${g} ${b} / ${alpha})`;
