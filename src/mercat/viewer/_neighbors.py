"""Nearest neighbours of points in the data, and which of them are torn away by a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._data.arrays import blocks
from .._data.sparse import checked_csr
from ..metrics._structure import largest_near_rank

_SAMPLE = 2000  # size of the sample from which reaches are estimated for larger data
_BLOCK = 500


@dataclass(frozen=True)
class Neighbors:
    """Point i has the neighbours indices[starts[i]:starts[i + 1]]."""

    starts: NDArray[np.int64]
    indices: NDArray[np.int64]

    @property
    def most(self) -> int:
        """Largest number of neighbours of a point."""
        return int(np.diff(self.starts).max(initial=0))


def read_neighbors(neighbors: Any, n: int) -> Neighbors | None:
    """Read an array of row numbers of shape (n, k), or a sparse graph of shape (n, n)."""
    if neighbors is None:
        return None
    if scipy.sparse.issparse(neighbors):
        found = _from_graph(neighbors, n)
    else:
        found = _from_rows(neighbors, n)
    source = np.repeat(np.arange(n), np.diff(found.starts))
    itself = found.indices == source
    if itself.any():  # many graphs and searches include the point itself
        found = Neighbors(
            np.concatenate([[0], np.cumsum(np.bincount(source[~itself], minlength=n))]),
            found.indices[~itself],
        )
    return found


def _from_graph(graph: Any, n: int) -> Neighbors:
    if graph.shape != (n, n):
        raise ValueError(f"neighbors as a graph must have shape ({n}, {n}), got {graph.shape}.")
    rows = scipy.sparse.csr_array(checked_csr(graph, "neighbors"), copy=True)
    rows.eliminate_zeros()
    return Neighbors(rows.indptr.astype(np.int64), rows.indices[: rows.nnz].astype(np.int64))


def _from_rows(neighbors: Any, n: int) -> Neighbors:
    rows = np.asarray(neighbors)
    if rows.ndim != 2 or len(rows) != n:
        raise ValueError(
            f"neighbors must have shape ({n}, k), or be a sparse graph, got shape {rows.shape}."
        )
    if rows.dtype.kind not in "iu":
        raise TypeError(f"neighbors must hold row numbers, got dtype {rows.dtype}.")
    wrong = (rows < 0) | (rows >= n)
    if wrong.any():
        raise ValueError(f"neighbors must hold rows from 0 to {n - 1}, got {rows[wrong][0]}.")
    k = rows.shape[1]
    return Neighbors(np.arange(0, n * k + 1, max(k, 1))[: n + 1], rows.ravel().astype(np.int64))


def torn(points: NDArray[np.float64], neighbors: Neighbors) -> NDArray[np.bool_]:
    """Whether each neighbour is torn away, as defined by `mercat.metrics.torn_neighbors`.

    points: unit vectors, or positions in the plane; chords and arcs on the sphere have the same order. For
    more than 2,000 points, the distance to the nearest 5 % is estimated from a fixed sample of 2,000 points.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.stack([np.arange(100.0), np.zeros(100)], axis=1)
    >>> to_next = read_neighbors(np.roll(np.arange(100), -1)[:, None], 100)
    >>> np.flatnonzero(torn(line, to_next)).tolist()
    [99]
    """
    n = len(points)
    within = largest_near_rank(neighbors.most, n)
    others = np.arange(n)
    if n > _SAMPLE:
        others = np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))
        within = max(1, round(within / n * _SAMPLE))
    points = points - points.mean(axis=0)  # reduces rounding errors
    flags = np.empty(len(neighbors.indices), dtype=bool)
    for block in blocks(n, _BLOCK):
        rows = np.arange(block.start, block.stop)
        reach = _reach(points, rows, others, within)
        part = slice(neighbors.starts[block.start], neighbors.starts[block.stop])
        source = np.repeat(rows, np.diff(neighbors.starts[block.start : block.stop + 1]))
        gap = points[source] - points[neighbors.indices[part]]
        flags[part] = (gap * gap).sum(axis=1) > reach[source - block.start] * (1 + 1e-9) + 1e-12
    return flags


def _reach(
    points: NDArray[np.float64], rows: NDArray[np.intp], others: NDArray[np.intp], within: int
) -> NDArray[np.float64]:
    """Squared distance from each row to the last of its `within` nearest other points."""
    here, there = points[rows], points[others]
    square = (here * here).sum(axis=1)[:, None] + (there * there).sum(axis=1) - 2 * here @ there.T
    square[rows[:, None] == others[None, :]] = np.inf
    last = min(within, square.shape[1]) - 1
    return np.asarray(np.maximum(np.partition(square, last, axis=1)[:, last], 0.0))


def shares(flags: NDArray[np.bool_], neighbors: Neighbors) -> NDArray[np.float64]:
    """Fraction of each point's neighbours that are torn away; NaN for a point without neighbours."""
    counts = np.diff(neighbors.starts)
    source = np.repeat(np.arange(len(counts)), counts)
    with np.errstate(invalid="ignore"):
        return np.bincount(source, weights=flags, minlength=len(counts)) / counts
