"""Read AnnData files: .h5ad and .zarr."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._data.sparse import check_sparse, checked_csr
from .._extras import require
from .._files.containers import check_hdf5, check_zarr
from .._files.untrusted import check_sides, reading
from ._columns import check_names, plain, unique_name
from ._console import Console
from ._problems import BadInput, as_bad_input, join_names, unknown_column
from ._table import ReadOptions, Table


def read_anndata(path: Path, options: ReadOptions, console: Console) -> Table:
    """Read X or another representation, with obs as metadata."""
    import pandas as pd

    adata = load(path)
    key, X, features = _representation(adata, options.key, path)
    if options.key is None and key == "X_pca":
        console.note(
            f"Using the principal components X_pca of {path}; --key X uses the data themselves."
        )
    obs = {str(name): plain(adata.obs[name], path, str(name)) for name in adata.obs.columns}
    ids = unique_name(str(adata.obs.index.name or "index"), obs)
    names = pd.Series(adata.obs_names.astype(str).to_numpy(dtype=object))
    meta = {ids: plain(names, path, ids)} | obs
    gene = _gene(adata, options.label, meta, path)
    if gene is not None:
        meta[str(options.label)] = gene
        if features is not None and options.label in features:
            console.note(
                f"{options.label!r} is a gene: it colours the map and is embedded with the others."
            )
    elif options.label is not None and options.label not in meta:
        raise unknown_column("--label", options.label, meta, path, genes=_genes(adata))
    check_names(meta, path, options, features or ())
    table = Table(
        path=path,
        X=X,
        features=features,
        meta=pd.DataFrame({k: v for k, v in meta.items() if k not in options.drop}),
        ids=ids,
        locate=lambda row, column: (
            f"{path}, {key}, row {row} ({adata.obs_names[row]!r}), column "
            f"{column if features is None else repr(features[column])}"
        ),
        adata=adata,
        key=key,
        uns=adata.uns,
    )
    return table.drop_features(options.drop)


def _genes(adata: Any) -> Any:
    return adata.var_names if adata.raw is None else adata.raw.var_names


def _gene(adata: Any, label: str | None, meta: Any, path: Path) -> Any:
    """Expression of the gene that --label names, from `raw` if present; None if it names a column."""
    from .._anndata.columns import column

    if label is None or label in meta or label not in _genes(adata):
        return None
    with as_bad_input():
        values = column(adata, label, layer=None, use_raw=None, name="--label")
    return plain(values.reset_index(drop=True), path, label)


def load(path: Path) -> Any:
    """Read an AnnData file into memory and check its sparse matrices."""
    import scipy.sparse

    anndata = require("anndata", f"Reading {path}", "cli,anndata")
    if path.is_dir():
        require("zarr", f"Reading {path}", "cli,anndata")
        # zarr raises the first error of a store; asyncio would log the others when the program ends.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with as_bad_input(), reading(path, "a valid AnnData file", folder=True):
        (check_zarr if path.is_dir() else check_hdf5)(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adata = anndata.read_zarr(path) if path.is_dir() else anndata.read_h5ad(path)
        for name, X in _matrices(adata):
            if scipy.sparse.issparse(X):
                check_sides(path, X.shape)
                check_sparse(X, f"{path}: {name}")
        return adata


def _matrices(adata: Any) -> Iterator[tuple[str, Any]]:
    """All arrays that may be sparse matrices: selecting rows of AnnData accesses each of them."""
    yield "X", adata.X
    if adata.raw is not None:
        yield "raw.X", adata.raw.X
    for name in ("layers", "obsm", "varm", "obsp", "varp"):
        for key, X in getattr(adata, name).items():
            yield f"{name}[{key!r}]", X


def _representation(adata: Any, key: str | None, path: Path) -> tuple[str, Any, list[str] | None]:
    """Key, values and column names of the representation to embed."""
    import scipy.sparse

    from .._anndata.representation import representation

    try:
        key, X, where = representation(adata, key)
    except KeyError as error:
        keys = [*(["X"] if adata.X is not None else []), *adata.obsm.keys(), *adata.layers.keys()]
        raise BadInput(
            f"{path} has no {error} to embed. --key takes one of {join_names(keys)}."
        ) from None
    of_genes = not where.startswith("adata.obsm")
    features = [str(name) for name in adata.var_names] if of_genes else None
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_array(checked_csr(X, f"{path}: {key}"))
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise BadInput(
            f"{path}: {key} must be a table of numbers, got {X.dtype} of shape {X.shape}."
        )
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return key, X, features
