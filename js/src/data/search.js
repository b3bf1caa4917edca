// Labels that hold a text.

/** Matches { column, code, label, at }, those that begin with the text first. */
export function searchLabels(columns, text) {
  const needle = text.trim().toLowerCase();
  if (needle === "") return [];
  const matches = [];
  for (const column of columns) {
    if (column.kind !== "category") continue;
    column.labels.forEach((label, i) => {
      const at = label.toLowerCase().indexOf(needle);
      if (at >= 0) matches.push({ column, code: i + 1, label, at });
    });
  }
  return matches.sort((a, b) => (a.at === 0 ? 0 : 1) - (b.at === 0 ? 0 : 1));
}

/** A byte a row: 1 where any of the matches holds. */
export function rowsOf(matches, n) {
  const mask = new Uint8Array(n);
  const byColumn = new Map();
  for (const { column, code } of matches) {
    if (!byColumn.has(column)) byColumn.set(column, new Uint8Array(column.labels.length + 1));
    byColumn.get(column)[code] = 1;
  }
  for (const [{ codes }, wanted] of byColumn) {
    for (let row = 0; row < n; row++) mask[row] |= wanted[codes[row]];
  }
  return mask;
}
