"""Read tables from .npy and .npz files, without unpickling."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._data.sparse import checked_csr
from .._files import untrusted as _untrusted
from ._columns import check_names, plain
from ._console import Console
from ._problems import BadInput, as_bad_input, join_names
from ._table import ReadOptions, Table

# Arrays of integers in files of sparse matrices.
_INTEGERS = ("shape", "coords", "row", "col", "indices", "indptr", "offsets")
NPY_MAGIC = b"\x93NUMPY"


def read_npy(path: Path, options: ReadOptions, console: Console) -> Table:
    """Read one array (n, d)."""
    del console
    if zipfile.is_zipfile(path):
        raise BadInput(
            f"{path} is a zip archive, as .npz files are. Name it .npz if it holds arrays."
        )
    return array_table(path, apply_transpose(_load_npy(path), options), options)


def read_npz(path: Path, options: ReadOptions, console: Console) -> Table:
    """Read an array (n, d), with arrays of length n as metadata, or a SciPy sparse matrix."""
    arrays = load_npz(path)
    if {"format", "shape", "data"} <= set(arrays):
        return array_table(path, apply_transpose(_scipy_sparse(path, arrays), options), options)
    key = options.key or _main_array(path, arrays)
    if key not in arrays:
        raise BadInput(f"{path} has no array {key!r}. Its arrays: {join_names(arrays)}.")
    X = apply_transpose(arrays.pop(key), options)
    if X.ndim == 2:
        columns = {
            name: a
            for name, a in arrays.items()
            if a.shape == (len(X),) and a.dtype.kind in "biufUS"
        }
        ignored = [f"{name} {a.shape}" for name, a in arrays.items() if name not in columns]
        if ignored:
            console.note(
                f"Ignored arrays of {path}, since they are not columns of {len(X)} numbers or texts: "
                f"{join_names(ignored)}."
            )
        arrays = columns
    return array_table(path, X, options, arrays, key)


def load_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"{path}: the file is broken or truncated, or not an .npz file at all.")
    with as_bad_input():
        return _untrusted.read_npz(path)


def _load_npy(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        start = file.read(6)
    if start != NPY_MAGIC:
        raise BadInput(f"{path} is not a NumPy file. If it is a text file, name it .csv.")
    with as_bad_input():
        return _untrusted.read_npy(path)


def apply_transpose(X: Any, options: ReadOptions) -> Any:
    """Transpose the array if `options.transpose`."""
    if not options.transpose:
        return X
    return X.T if isinstance(X, np.ndarray) else X.T.tocsr()


def _main_array(path: Path, arrays: dict[str, np.ndarray]) -> str:
    if "X" in arrays:
        return "X"
    tables = [name for name, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "biuf"]
    if len(tables) != 1:
        shapes = [f"{name} {a.shape}" for name, a in arrays.items()]
        if not tables:
            raise BadInput(f"{path} has no two-dimensional array of numbers: {join_names(shapes)}.")
        raise BadInput(
            f"{path} has {len(tables)} two-dimensional arrays of numbers. Choose one with --key: "
            f"{join_names(shapes)}."
        )
    return tables[0]


def array_table(
    path: Path,
    X: Any,
    options: ReadOptions,
    columns: dict[str, np.ndarray] | None = None,
    key: str | None = None,
    features: list[str] | None = None,
) -> Table:
    """Convert an array to a table, with arrays of one value per row as metadata."""
    import pandas as pd

    if X.ndim != 2:
        raise BadInput(f"{path} must hold an array of two dimensions, got shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise BadInput(f"{path} must hold numbers, got the type {X.dtype}.")
    X = X.astype(
        np.float64 if X.dtype.kind in "biu" or X.dtype.itemsize > 8 else X.dtype, copy=False
    )
    X = X.astype(np.float32) if X.dtype == np.float16 else X
    meta = {name: _column(path, name, a) for name, a in (columns or {}).items()}
    check_names(meta, path, options, features or ())
    meta = {name: column for name, column in meta.items() if name not in options.drop}
    return Table(
        path=path,
        X=X if not isinstance(X, np.ndarray) else np.ascontiguousarray(X),
        features=features,
        meta=pd.DataFrame(meta, index=pd.RangeIndex(X.shape[0])),
        ids=None,
        locate=lambda row, column: f"{path}, row {row}, column {column} (counted from 0)",
        key=key,
    )


def _column(path: Path, name: str, array: np.ndarray) -> Any:
    import pandas as pd

    text = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
    return plain(pd.Series(text.astype(object) if text.dtype.kind == "U" else text), path, name)


def _scipy_sparse(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    """Read a matrix written by `scipy.sparse.save_npz`, and check its structure."""
    import scipy.sparse

    def parts(*names: str) -> tuple[np.ndarray, ...]:
        return tuple(arrays[name] for name in names)

    with as_bad_input(), _untrusted.reading(path, "a valid sparse matrix"):
        for name in filter(arrays.__contains__, _INTEGERS):
            _untrusted.check_integers(f"{path}: {name}", arrays[name])
        sparse_format = str(np.char.decode(arrays["format"].astype("S"), "ascii"))
        n, d = (int(size) for size in arrays["shape"])
        _untrusted.check_sides(path, (n, d))
        if sparse_format in ("csr", "csc", "bsr"):
            sparse_type = getattr(scipy.sparse, f"{sparse_format}_array")
            matrix = sparse_type(parts("data", "indices", "indptr"), shape=(n, d))
        elif sparse_format == "coo":
            row, col = parts("coords")[0] if "coords" in arrays else parts("row", "col")
            matrix = scipy.sparse.coo_array((arrays["data"], (row, col)), shape=(n, d))
        elif sparse_format == "dia":
            matrix = scipy.sparse.dia_array(parts("data", "offsets"), shape=(n, d))
        else:
            raise ValueError(
                f"{path} must be a sparse matrix of a known format, got {sparse_format[:20]!r}."
            )
        return scipy.sparse.csr_array(checked_csr(matrix, str(path)))
