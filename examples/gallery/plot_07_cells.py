"""
Blood cells, with scanpy
========================

From an AnnData object to maps coloured by cell type and by gene. The cells are a data set of scanpy;
`mercat.tl.mercat` embeds their principal components.
"""

import scanpy as sc

import mercat

adata = sc.datasets.pbmc68k_reduced().raw.to_adata()
sc.pp.pca(adata, n_comps=30)
mercat.tl.mercat(adata)
ax = mercat.pl.map(adata, color="bulk_labels", legend_loc="on data")

# %%
# Genes that mark monocytes, killer cells and B cells, and the loss of each cell:

axes = mercat.pl.map(adata, color=["CST3", "NKG7", "CD79A", "mercat_loss"], ncols=2)
