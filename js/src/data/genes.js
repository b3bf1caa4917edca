// Many features, such as genes: a sparse matrix by column (mercat/viewer/_genes.py), converted to columns of numbers
// on demand.

/** { names, column(gene), visit(gene, each) }; each(row, value) is called for every nonzero entry. */
export function createGenes({ names, starts, gaps, values, colors }, n) {
  const made = new Map();

  function visit(gene, each) {
    let row = -1;
    for (let k = starts[gene]; k < starts[gene + 1]; k++) {
      row += gaps[k];
      each(row, values[k]);
    }
  }

  function column(gene) {
    if (!made.has(gene)) {
      const dense = new Float32Array(n);
      visit(gene, (row, value) => (dense[row] = value));
      made.set(gene, { name: names[gene], kind: "number", role: "gene", colors, values: dense, classes: null });
    }
    return made.get(gene);
  }

  return { names, column, visit };
}

/** Genes whose names contain a text, exact matches first, then those that begin with it: [{ gene, name, exact }]. */
export function findGenes(genes, text, most) {
  const needle = text.trim().toLowerCase();
  if (!genes || needle === "") return [];
  const found = [];
  genes.names.forEach((name, gene) => {
    const lower = name.toLowerCase();
    const at = lower.indexOf(needle);
    if (at >= 0) found.push({ gene, name, exact: lower === needle, rank: lower === needle ? 0 : at === 0 ? 1 : 2 });
  });
  return found.sort((a, b) => a.rank - b.rank).slice(0, most);
}
