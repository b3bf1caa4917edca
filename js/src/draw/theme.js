// Colours and font of the stage for both themes. Those of the controls are in style.css.
import { hex } from "./color.js";

const rgb = (text) => hex(text.slice(1)).map((part) => part / 255);
const line = (text, alpha) => [...rgb(text), alpha];

export const FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** A WebGL colour as CSS, for a 2D canvas. */
export const onCanvas = (color) => `rgb(${color.map((part) => Math.round(255 * part)).join(" ")})`;

export const THEMES = {
  dark: {
    ground: rgb("#0b0e14"),
    center: rgb("#192130"),
    edge: rgb("#0f141e"),
    glass: 0.74,
    line: line("#a9c0e6", 0.11),
    strongLine: line("#a9c0e6", 0.26),
    outline: line("#a9c0e6", 0.34),
    ink: "#f2f5fa",
    halo: "rgb(11 14 20 / 0.85)",
    accent: "#7cc0ff",
    torn: "#ff6b6b",
  },
  light: {
    ground: rgb("#f6f5f1"),
    center: rgb("#ffffff"),
    edge: rgb("#eceae3"),
    glass: 0.78,
    line: line("#3b4a63", 0.11),
    strongLine: line("#3b4a63", 0.24),
    outline: line("#3b4a63", 0.34),
    ink: "#1a2230",
    halo: "rgb(255 255 255 / 0.88)",
    accent: "#0a63b8",
    torn: "#d6262b",
  },
};

/** Resolve "auto" to "dark" or "light": the theme of the notebook, else of the system. */
export function resolveTheme(wish) {
  if (wish in THEMES) return wish;
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "true" ? "light" : "dark";
  return globalThis.matchMedia?.("(prefers-color-scheme: light)").matches ? "light" : "dark";
}
