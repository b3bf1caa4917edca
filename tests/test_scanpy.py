"""A scanpy pipeline from counts to the explorer, on generated counts and on scanpy's own cells."""

from __future__ import annotations

import anndata
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mercat

mpl.use("Agg")

import matplotlib.pyplot as plt
import scanpy as sc

# Raised by scanpy itself with newer versions of matplotlib.
pytestmark = pytest.mark.filterwarnings("ignore:The set_.* function:PendingDeprecationWarning")


@pytest.fixture
def cells() -> anndata.AnnData:
    """Counts of 240 cells along a branching path: a trunk, and two branches of its end."""
    rng = np.random.default_rng(0)
    branch = np.repeat(["trunk", "left", "right"], 80)
    along = rng.random(240)
    ends = rng.normal(scale=1.2, size=(4, 300))
    state = np.where(branch == "trunk", along, 1)[:, None] * ends[0] + ends[1]
    for name, end in (("left", ends[2]), ("right", ends[3])):
        state += np.where(branch == name, along, 0)[:, None] * end
    counts = rng.poisson(np.exp(state))
    adata = anndata.AnnData(sparse.csr_matrix(counts.astype(np.float32)))
    adata.obs["branch"] = pd.Categorical(branch)
    adata.obs_names = [f"cell{k}" for k in range(240)]
    adata.var_names = [f"gene{k}" for k in range(300)]
    return adata


def test_from_counts_to_the_explorer(cells, tmp_path):
    sc.pp.normalize_total(cells, target_sum=1e4)
    sc.pp.log1p(cells)
    sc.pp.highly_variable_genes(cells, n_top_genes=200)
    sc.pp.pca(cells, n_comps=20)
    mercat.tl.mercat(cells)
    assert cells.uns["mercat"]["params"]["use_rep"] == "X_pca"
    kept = mercat.metrics.angle_preservation(cells.obsm["X_pca"], cells.obsm["X_mercat_sphere"])
    assert kept > 0.75

    (left, right) = sc.pl.embedding(
        cells, "mercat", color=["branch", "gene7"], show=False, use_raw=False
    )
    drawn = np.concatenate([c.get_offsets() for c in left.collections])
    np.testing.assert_allclose(
        np.sort(drawn, axis=0), np.sort(cells.obsm["X_mercat"], axis=0), atol=1e-6
    )
    assert right.get_title() == "gene7"
    ax = mercat.pl.map(cells, "branch")  # in the colours chosen by scanpy
    shown = [mpl.colors.to_hex(h.get_color()) for h in ax.get_legend().legend_handles]
    assert shown == [mpl.colors.to_hex(c) for c in cells.uns["branch_colors"]]
    mercat.pl.globe(cells, "gene7")
    plt.close("all")

    page = mercat.pl.explore(cells, tmp_path / "cells.html", color="branch", keys=["gene7"])
    assert page.stat().st_size > 10_000
    cells.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(back.obsm["X_mercat_sphere"], cells.obsm["X_mercat_sphere"])


def test_data_set_of_scanpy():
    adata = sc.datasets.pbmc68k_reduced()
    mercat.tl.mercat(adata)
    assert adata.obsm["X_mercat_sphere"].shape == (700, 3)
    mercat.pl.map(adata, ["bulk_labels", "CST3"])
    plt.close("all")
