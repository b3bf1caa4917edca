"""`open_source` selects the source of rows and the device for X."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array

from .arrays import is_dask, is_torch, to_numpy
from .checks import check_columns, check_no_text
from .source import RowSource
from .sparse import checked_csr
from .threads import Workers
from .torch_source import TorchSource, check_tensor, find_device


def open_source(X: Any, device: Any, workers: Workers) -> RowSource:
    """Source of the rows of X: on a torch device, in Dask chunks or in memory. Values are not read yet.

    `device` is the device to compute on. If None, tensors are processed on their own device, and data in host
    memory by NumPy.
    """
    if is_dask(X):
        from .dask_source import DaskSource, check_chunks

        return DaskSource(check_chunks(X), workers)
    found = find_device(device, X)
    if is_torch(X):
        X = check_tensor(X)
    if found is not None:
        source: RowSource = TorchSource(X if is_torch(X) else _as_array(X), workers, found)
    else:
        source = RowSource(_as_array(to_numpy(X) if is_torch(X) else X), workers)
    source.on_disk = isinstance(X, np.memmap)
    return source


def _as_array(X: Any) -> Any:
    """Convert an array, list or data frame to a NumPy array or CSR matrix of numbers."""
    if type(X).__module__.partition(".")[0] == "anndata":
        if hasattr(X, "to_memory") and hasattr(X, "group"):
            raise TypeError(
                f"X must be in memory or a Dask array, got the {type(X).__name__} of a backed AnnData: pass "
                "X.to_memory(), or anndata.experimental.read_elem_lazy(X.group) to leave it on disk."
            )
        raise TypeError(
            f"X must be an array, a sparse matrix or a data frame, got an {type(X).__name__}: use "
            "mercat.tl, or pass one of its matrices, such as adata.obsm['X_pca']."
        )
    check_columns(X, "X")
    check_no_text(X, "X")
    if np.ma.is_masked(X):
        raise ValueError("X must have no masked values: impute them or drop the rows.")
    if scipy.sparse.issparse(X):
        X = checked_csr(X, "X")
    X = check_array(
        X,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,  # checked by `RowSource.check_values`, which names row and column
        estimator="Mercat",
        input_name="X",
    )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got the type {X.dtype}.")
    return X
