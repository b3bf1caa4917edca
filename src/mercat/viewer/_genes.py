"""Genes or other features as stored by the viewer: a sparse matrix by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._data.sparse import checked_csr

MAX_GENES = 2000


@dataclass(frozen=True)
class Genes:
    """A sparse matrix: column g has the entries from starts[g] to starts[g + 1].

    gaps: differences between the row numbers of consecutive entries, starting from row -1 in each column.
    """

    names: list[str]
    starts: NDArray[np.uint32]
    gaps: NDArray[Any]
    values: NDArray[Any]


def read_genes(genes: Any, n: int) -> Genes | None:
    """Convert a tuple of a dense or sparse matrix with n rows and the names of its columns to `Genes`."""
    if genes is None:
        return None
    if not isinstance(genes, tuple) or len(genes) != 2:
        raise TypeError(f"genes must be a tuple (matrix, names), got {type(genes).__name__}.")
    matrix = _by_column(genes[0], n)
    names = [str(name) for name in genes[1]]
    if len(names) != matrix.shape[1]:
        raise ValueError(
            f"genes must have one name per column ({matrix.shape[1]}), got {len(names)} names."
        )
    if len(names) > MAX_GENES:
        raise ValueError(
            f"genes must have at most {MAX_GENES} columns, got {len(names)}: choose those that matter, "
            "such as the highly variable ones."
        )
    duplicate = _first_duplicate(names)
    if duplicate is not None:
        raise ValueError(f"Names of genes must be unique, got {duplicate!r} more than once.")
    return Genes(names, matrix.indptr.astype(np.uint32), _gaps(matrix), _values(matrix.data))


def _by_column(matrix: Any, n: int) -> Any:
    sparse = scipy.sparse.issparse(matrix)
    if not sparse:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2:
            raise ValueError(f"genes must hold a matrix of shape ({n}, g), got {matrix.shape}.")
    if matrix.shape[0] != n:
        raise ValueError(f"genes must have one row per point ({n}), got {matrix.shape[0]}.")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"genes must hold numbers, got dtype {matrix.dtype}.")
    columns = scipy.sparse.csc_array(checked_csr(matrix, "genes") if sparse else matrix)
    columns.eliminate_zeros()
    if not np.isfinite(columns.data).all():
        raise ValueError("genes must have no NaN or infinity.")
    if columns.nnz >= 2**32:
        raise ValueError(f"genes must have fewer than 2**32 entries, got {columns.nnz}.")
    return columns


def _gaps(columns: Any) -> NDArray[Any]:
    gaps = np.diff(columns.indices.astype(np.int64), prepend=-1)
    first_entries = columns.indptr[:-1][np.diff(columns.indptr) > 0]
    gaps[first_entries] = columns.indices[first_entries].astype(np.int64) + 1
    return np.asarray(gaps, dtype=np.min_scalar_type(int(gaps.max(initial=0))))


def _values(data: NDArray[Any]) -> NDArray[Any]:
    """Counts as the narrowest integers that hold them, all else as 32-bit floats."""
    whole = data.astype(np.int64) if np.abs(data).max(initial=0) < 2**31 else None
    if whole is None or not np.array_equal(whole, data):
        return data.astype(np.float32)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        limits = np.iinfo(dtype)
        if limits.min <= whole.min(initial=0) and whole.max(initial=0) <= limits.max:
            return whole.astype(dtype)
    return data.astype(np.float32)


def _first_duplicate(names: list[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
