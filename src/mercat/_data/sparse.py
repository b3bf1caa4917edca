"""Checks of sparse matrices: SciPy does not check their indices and may read out of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_ENTRIES_PER_BLOCK = 1 << 22  # entries checked at a time, to bound memory


def checked_csr(X: Any, name: str) -> Any:
    """Convert a sparse matrix to CSR with sorted indices and without duplicates.

    Raises a ValueError that starts with `name` if indices are out of bounds. X is not modified, and is
    returned unchanged if it already has this form.
    """
    check_sparse(X, name)
    found = X.tocsr()
    if _is_canonical(found.indptr, found.indices):
        return found
    parts = found.data.copy(), found.indices.copy(), found.indptr.copy()
    # A new matrix: a copy would keep the cached flags about the order of its indices.
    canonical = type(found)(parts, shape=found.shape)
    canonical.sum_duplicates()
    return canonical


def check_sparse(X: Any, name: str) -> None:
    """Raise a ValueError that starts with `name` if the arrays of a sparse matrix are inconsistent."""
    _check_native(X, name)
    try:
        fault = _FAULTS[X.format](X) if X.format in _FAULTS else None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        fault = str(error)
    if fault:
        raise ValueError(f"{name} is not a valid sparse matrix ({X.format}): {fault}.")


def _check_native(X: Any, name: str) -> None:
    """Raise a ValueError unless the byte order is native: SciPy misreads others."""
    if not X.dtype.isnative:
        raise ValueError(
            f"{name} must hold numbers in the byte order of this machine, got a sparse matrix of "
            f"{X.dtype.str}: use .astype({X.dtype.newbyteorder('=').name!r})."
        )


def _fault_of_compressed(X: Any) -> str | None:
    rows, columns = X.shape
    n, m = (columns, rows) if X.format == "csc" else (rows, columns)
    if X.format == "bsr":
        height, width = X.blocksize
        if X.data.ndim != 3 or n % height or m % width:
            return f"blocks of {X.data.shape[1:]} do not fill the shape {X.shape}"
        n, m = n // height, m // width
    indptr, indices = X.indptr, X.indices
    for part, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{part} must be a vector of integers, got {array.dtype} of shape {array.shape}"
    if len(indptr) != n + 1 or indptr[0] != 0:
        return f"indptr must be {n + 1} numbers starting at 0, got {len(indptr)} starting at {indptr[:1]}"
    if (X.format != "bsr" and X.data.ndim != 1) or len(X.data) != len(indices):
        return f"data of shape {X.data.shape} do not match {len(indices)} indices"
    if np.any(indptr[1:] < indptr[:-1]):
        return "indptr must not decrease"
    if indptr[-1] > len(indices):
        return f"indptr must end within the {len(indices)} indices, got {indptr[-1]}"
    return _fault_of_range("indices", indices[: indptr[-1]], m)


def _fault_of_triplets(X: Any) -> str | None:
    for axis, (array, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != len(X.data):
            return f"coords[{axis}] must have one integer per entry, {len(X.data)} in all"
        if fault := _fault_of_range(f"coords[{axis}]", array, size):
            return fault
    return None


def _fault_of_diagonals(X: Any) -> str | None:
    offsets = X.offsets
    if X.data.ndim != 2 or offsets.shape != X.data.shape[:1] or offsets.dtype.kind not in "iu":
        return f"offsets must be {len(X.data)} integers, got the shape {offsets.shape}"
    if len(np.unique(offsets)) != len(offsets):
        return "offsets must be distinct"
    return None


def _fault_of_lists(X: Any) -> str | None:
    if not len(X.rows) == len(X.data) == X.shape[0]:
        return f"rows and data must be {X.shape[0]} lists, got {len(X.rows)} and {len(X.data)}"
    for row, (indices, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(indices) != len(values):
            return f"row {row} has {len(indices)} indices and {len(values)} data"
        if fault := _fault_of_list(f"rows[{row}]", indices, X.shape[1]):
            return fault
    return None


def _fault_of_keys(X: Any) -> str | None:
    keys = np.array(list(X.keys())).reshape(-1, 2)
    for axis, indices in enumerate(keys.T):
        if fault := _fault_of_list(f"the keys along axis {axis}", indices, X.shape[axis]):
            return fault
    return None


def _fault_of_list(part: str, indices: Sequence[Any] | np.ndarray, size: int) -> str | None:
    array = np.asarray(indices)
    if len(array) > 0 and array.dtype.kind not in "iu":
        return f"{part} must be integers, got {array.dtype}"
    return _fault_of_range(part, array, size)


def _fault_of_range(part: str, indices: np.ndarray, size: int) -> str | None:
    if len(indices) == 0:
        return None
    low, high = int(indices.min()), int(indices.max())
    if low >= 0 and high < size:
        return None
    return f"{part} must be in 0..{size - 1}, got {low if low < 0 else high}"


_FAULTS = {
    "csr": _fault_of_compressed,
    "csc": _fault_of_compressed,
    "bsr": _fault_of_compressed,
    "coo": _fault_of_triplets,
    "dia": _fault_of_diagonals,
    "lil": _fault_of_lists,
    "dok": _fault_of_keys,
}


def _is_canonical(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the indices of each row are sorted, without duplicates."""
    n = int(indptr[-1])
    for start in range(0, n - 1, _ENTRIES_PER_BLOCK):
        part = indices[start : min(start + _ENTRIES_PER_BLOCK + 1, n)]
        falls = start + 1 + np.flatnonzero(part[1:] <= part[:-1])
        # They may decrease only at the start of a row.
        if not np.array_equal(indptr[np.searchsorted(indptr, falls)], falls):
            return False
    return True
