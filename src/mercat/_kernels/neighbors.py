"""Nearest neighbours (neighbors.c)."""

from __future__ import annotations

import numpy as np

from .._data.arrays import row_product
from ._library import LANES, contiguous, run

_PRODUCTS = 1 << 19  # products per selection, which fit the cache of a core
_EMPTY = np.uint64(2**64 - 1)  # entry of an empty heap


def smallest(
    left: np.ndarray, right: np.ndarray, k: int, itself: np.ndarray | None
) -> np.ndarray | None:
    """Columns (q x k) of the k smallest entries of each row of left @ right.T, in any order.

    The column `itself` of each row is left out. None if a row has fewer than k finite entries.
    """
    q, n = len(left), len(right)
    if itself is None:
        itself = np.full(q, -1)
    itself = contiguous(itself, np.int64)
    heaps = np.full((q, k), _EMPTY)
    for start in range(0, n, max(LANES, _PRODUCTS // q)):
        part = right[start : start + max(LANES, _PRODUCTS // q)]
        D = contiguous(row_product(left, part.T), np.float32)
        run("smallest", q, len(part), D, start, itself, k, heaps)
    return None if (heaps[:, 0] == _EMPTY).any() else heaps.astype(np.uint32).astype(np.intp)


def nearest_in_cells(
    X: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    queries: np.ndarray,
    itself: np.ndarray,
    cells: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.neighbors.nearest_in_cells`; starts and stops are multiples of `LANES`."""
    heaps = np.full((len(queries), k), _EMPTY)
    found, distances = np.empty(heaps.shape, np.int64), np.empty(heaps.shape, np.float32)
    X, queries = contiguous(X, np.float32), contiguous(queries, np.float32)
    integers = (contiguous(a, np.int64) for a in (starts, stops, itself, cells))
    starts, stops, itself, cells = integers
    shape, of_queries = (*cells.shape, queries.shape[1], k), (queries, itself, cells)
    run("nearest_in_cells", *shape, X, starts, stops, *of_queries, heaps, distances, found)
    return found, distances


def in_order(
    X: np.ndarray, queries: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.neighbors.in_order`."""
    found = found.astype(np.int64, order="C")
    distances = np.empty(found.shape, dtype=np.float32)
    X, queries = contiguous(X, np.float32), contiguous(queries, np.float32)
    run("in_order", *found.shape, X.shape[1], X, queries, found, distances)
    return found, distances
