"""
Blood cells, with scanpy
========================

This example embeds an AnnData object, and colours the map by cell type and by gene. The cells are a data set
of scanpy; `mercat.tl.mercat` embeds their principal components.
"""

import scanpy as sc

import mercat

adata = sc.datasets.pbmc68k_reduced().raw.to_adata()
sc.pp.pca(adata, n_comps=30)
mercat.tl.mercat(adata)
ax = mercat.pl.map(adata, color="bulk_labels", legend_loc="on data")

# %%
# Genes that mark monocytes (CST3), killer cells (NKG7) and B cells (CD79A), and the loss of each cell:

axes = mercat.pl.map(adata, color=["CST3", "NKG7", "CD79A", "mercat_loss"], ncols=2)
