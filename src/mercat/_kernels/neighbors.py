"""Nearest neighbours (neighbors.c)."""

from __future__ import annotations

import numpy as np

from .._data.arrays import row_product
from ._library import LANES, exactly, run

_PRODUCTS = 1 << 19  # products per selection, which fit the cache of a core


def smallest(
    left: np.ndarray, right: np.ndarray, k: int, itself: np.ndarray | None
) -> np.ndarray | None:
    """Columns (q x k) of the k smallest entries of each row of left @ right.T, in any order.

    The column `itself` of each row is left out. None if a row has fewer than k finite entries.
    """
    q, n = len(left), len(right)
    if itself is None:
        itself = np.full(q, -1)
    itself = exactly(itself, np.int64)
    values = np.full((q, k), np.inf, dtype=np.float32)
    indices = np.full((q, k), -1, dtype=np.int64)
    for start in range(0, n, max(LANES, _PRODUCTS // q)):
        part = right[start : start + max(LANES, _PRODUCTS // q)]
        D = exactly(row_product(left, part.T), np.float32)
        run("smallest", q, len(part), D, start, itself, k, values, indices)
    return None if (indices[:, 0] < 0).any() else indices


def nearest_in_cells(
    X: np.ndarray, starts: np.ndarray, queries: np.ndarray, cells: np.ndarray, k: int
) -> np.ndarray:
    """See `_detail.neighbors.nearest_in_cells`; starts are multiples of `LANES`."""
    found = np.full((len(queries), k), -1, dtype=np.int64)
    values = np.full(found.shape, np.inf, dtype=np.float32)
    X, queries = exactly(X, np.float32), exactly(queries, np.float32)
    starts, cells = exactly(starts, np.int64), exactly(cells, np.int64)
    shape = *cells.shape, queries.shape[1], k
    run("nearest_in_cells", *shape, X, starts, queries, cells, values, found)
    return found


def in_order(
    X: np.ndarray, queries: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.neighbors.in_order`."""
    found = found.astype(np.int64, order="C")
    distances = np.empty(found.shape, dtype=np.float32)
    X, queries = exactly(X, np.float32), exactly(queries, np.float32)
    run("in_order", *found.shape, X.shape[1], X, queries, found, distances)
    return found, distances
