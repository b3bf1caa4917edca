// A set of rows: sorted indices and, for the renderer, a byte per row.

export const NOTHING = Object.freeze({ rows: new Uint32Array(0), mask: null });

export function fromRows(rows, n) {
  if (rows.length === 0) return NOTHING;
  const mask = new Uint8Array(n);
  for (const row of rows) mask[row] = 1;
  return fromMask(mask);
}

export function fromMask(mask) {
  let size = 0;
  for (let i = 0; i < mask.length; i++) size += mask[i];
  if (size === 0) return NOTHING;
  const rows = new Uint32Array(size);
  for (let i = 0, k = 0; i < mask.length; i++) if (mask[i]) rows[k++] = i;
  return { rows, mask };
}

/** how: "replace" or "add". */
export function combine(old, next, how) {
  if (how === "replace" || old.mask === null) return next;
  if (next.mask === null) return old;
  return fromMask(old.mask.map((a, i) => a | next.mask[i]));
}
