"""The representation of cells that is embedded: principal components, X or a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from .._data.checks import check_integer, not_finite, warn_caller
from .._data.sparse import check_sparse
from .keys import key_list

if TYPE_CHECKING:
    from anndata import AnnData

_N_CELLS_READ, _LARGEST_SMALL_COUNT = 1000, 20  # to recognise counts


def representation(adata: AnnData, key: str | None) -> tuple[str, Any, str]:
    """Key, values and location of the representation to embed, by default X_pca, else X.

    Raises KeyError with the key if it does not exist.
    """
    if key is None:
        key = "X_pca" if "X_pca" in adata.obsm else "X"
    if key == "X" and adata.X is not None:
        return key, adata.X, "adata.X"
    for name in ("obsm", "layers"):
        if key in (field := getattr(adata, name)):
            return key, field[key], f"adata.{name}[{key!r}]"
    raise KeyError(key)


def in_memory(X: Any, where: str) -> Any:
    """Values of an AnnData object as an array or a valid sparse matrix in memory.

    Raises a ValueError that starts with `where` for an inconsistent sparse matrix.
    """
    if hasattr(X, "to_memory"):  # backed by a file
        X = X.to_memory()
    if not scipy.sparse.issparse(X):
        return np.asarray(X)
    check_sparse(X, where)
    return X


def rows_to_embed(
    adata: AnnData, use_rep: str | None, layer: str | None = None, n_pcs: int | None = None
) -> tuple[str, Any]:
    """Name of the embedded representation, and its rows in memory."""
    if n_pcs is not None:
        check_integer("n_pcs", n_pcs, 0 if use_rep is None else 1)
    if layer is not None:
        if use_rep is not None:
            raise ValueError(
                f"layer must be None if use_rep is given, got {layer!r} and use_rep={use_rep!r}."
            )
        if layer not in adata.layers:
            raise ValueError(
                f"layer must be a key of adata.layers {key_list(adata.layers)}, got {layer!r}."
            )
        source, X, where = layer, adata.layers[layer], f"adata.layers[{layer!r}]"
    else:
        source, X, where = _named_representation(adata, "X" if n_pcs == 0 else use_rep)
    X = in_memory(X, where)
    if n_pcs:
        X = _first_columns(X, n_pcs, where)
    check_finite_cells(where, X, adata)
    return source, X


def _named_representation(adata: AnnData, use_rep: str | None) -> tuple[str, Any, str]:
    try:
        return representation(adata, use_rep)
    except KeyError as error:
        or_X = "" if adata.X is None else "'X', "
        raise ValueError(
            f"use_rep must be {or_X}a key of adata.obsm {key_list(adata.obsm)} or of adata.layers, got "
            f"{error}."
        ) from None


def _first_columns(X: Any, n_pcs: int, where: str) -> Any:
    """The first components of a representation."""
    if not where.startswith("adata.obsm"):
        raise ValueError(f"n_pcs must be None for {where}, which has no components, got {n_pcs}.")
    if n_pcs > X.shape[1]:
        raise ValueError(
            f"n_pcs must be at most {X.shape[1]}, the number of columns of {where}, got {n_pcs}."
        )
    return X[:, :n_pcs]


def check_finite_cells(name: str, X: Any, adata: AnnData) -> None:
    """Raise an error that names the first cell with NaN or infinity."""
    rows = np.unique(not_finite(X)[0])
    if len(rows) == 0:
        return
    raise ValueError(
        f"{name} must be finite, got NaN or infinity in {len(rows)} of {adata.n_obs} cells, the first of "
        f"which is {adata.obs_names[rows[0]]!r}."
    )


def warn_of_counts(where: str, X: Any) -> None:
    """Warn if expression looks like raw counts: integers, some of them large, in a sample of the cells."""
    cells = X[np.linspace(0, X.shape[0] - 1, min(_N_CELLS_READ, X.shape[0])).astype(int)]
    values = cells.data if scipy.sparse.issparse(cells) else cells
    largest = values.max(initial=0)
    if largest <= _LARGEST_SMALL_COUNT or values.min() < 0 or (values != np.floor(values)).any():
        return
    warn_caller(
        f"{where} looks like raw counts, integers of up to {largest:g}: run sc.pp.normalize_total and "
        "sc.pp.log1p first, or cells differ mostly by their total counts.",
        UserWarning,
    )
