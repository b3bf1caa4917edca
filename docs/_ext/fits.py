"""Fits shared by several figures."""

from __future__ import annotations

import functools
from typing import Any

from sklearn.datasets import load_digits

from mercat import Mercat


@functools.cache
def digits(**parameters: Any) -> tuple[Any, Mercat]:
    """Scikit-learn's digits and a model of them."""
    data = load_digits()
    return data, Mercat(random_state=0, **parameters).fit(data.data)


@functools.cache
def blood_cells() -> Any:
    """Scanpy's blood cells with neighbours and a plain map."""
    import scanpy as sc

    import mercat

    adata = sc.datasets.pbmc68k_reduced().raw.to_adata()
    sc.pp.pca(adata, n_comps=30)
    sc.pp.neighbors(adata)
    mercat.tl.mercat(adata)
    return adata
