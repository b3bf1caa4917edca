// What the legend lets through: hidden categories (0 is "missing") and a range of a number column.

export const NO_FILTER = Object.freeze({ hidden: Object.freeze(new Set()), range: null });

export function toggle(filter, code) {
  const hidden = new Set(filter.hidden);
  if (!hidden.delete(code)) hidden.add(code);
  return { ...filter, hidden };
}

/** Show one category alone; asked again for the same one, show all. */
export function isolate(filter, code, codes) {
  const others = codes.filter((other) => other !== code);
  const alone = !filter.hidden.has(code) && others.every((other) => filter.hidden.has(other));
  return { ...filter, hidden: new Set(alone ? [] : others) };
}

/** One byte a row: 1 if shown. */
export function visibility(scheme, { hidden, range }, n) {
  const shown = new Uint8Array(n).fill(1);
  if (scheme.kind === "category" && hidden.size > 0) {
    const lets = scheme.labels.map((_, code) => (hidden.has(code) ? 0 : 1));
    for (let i = 0; i < n; i++) shown[i] = lets[scheme.codes[i]];
  } else if (scheme.kind === "number") {
    const [low, high] = range ?? [-Infinity, Infinity];
    const missing = hidden.has(0) ? 0 : 1;
    for (let i = 0; i < n; i++) {
      const value = scheme.values[i];
      shown[i] = Number.isNaN(value) ? missing : value >= low && value <= high ? 1 : 0;
    }
  }
  return shown;
}
