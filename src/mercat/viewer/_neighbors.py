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

# Size of the sample from which distances to the nearest 5 % are estimated for larger data.
_SAMPLE = 2000
_BLOCK = 500  # number of rows processed at a time


@dataclass(frozen=True)
class Neighbors:
    """Point i has the neighbours indices[starts[i]:starts[i + 1]]."""

    starts: NDArray[np.int64]
    indices: NDArray[np.int64]

    @property
    def max_count(self) -> int:
        """Largest number of neighbours of a point."""
        return int(np.diff(self.starts).max(initial=0))


def read_neighbors(neighbors: Any, n: int) -> Neighbors | None:
    """Read an array of row numbers of shape (n, k), or a sparse graph of shape (n, n)."""
    if neighbors is None:
        return None
    if scipy.sparse.issparse(neighbors):
        graph = _from_graph(neighbors, n)
    else:
        graph = _from_rows(neighbors, n)
    source = np.repeat(np.arange(n), np.diff(graph.starts))
    is_loop = graph.indices == source
    if is_loop.any():  # many graphs and searches include the point itself
        graph = Neighbors(
            np.concatenate([[0], np.cumsum(np.bincount(source[~is_loop], minlength=n))]),
            graph.indices[~is_loop],
        )
    return graph


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


def find_torn(points: NDArray[np.float64], neighbors: Neighbors) -> NDArray[np.bool_]:
    """Whether each neighbour is torn away, as defined by `mercat.metrics.torn_neighbors`.

    points: unit vectors, or positions in the plane; chords and arcs on the sphere have the same order. For
    more than 2,000 points, the distance to the nearest 5 % is estimated from a fixed sample of 2,000 points.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.stack([np.arange(100.0), np.zeros(100)], axis=1)
    >>> to_next = read_neighbors(np.roll(np.arange(100), -1)[:, None], 100)
    >>> np.flatnonzero(find_torn(line, to_next)).tolist()
    [99]
    """
    n = len(points)
    max_rank = largest_near_rank(neighbors.max_count, n)
    sample = np.arange(n)
    if n > _SAMPLE:
        sample = np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))
        max_rank = max(1, round(max_rank / n * _SAMPLE))
    points = points - points.mean(axis=0)  # reduces rounding errors
    torn = np.empty(len(neighbors.indices), dtype=bool)
    for block in blocks(n, _BLOCK):
        rows = np.arange(block.start, block.stop)
        squared_radii = _squared_radii(points, rows, sample, max_rank)
        edges = slice(neighbors.starts[block.start], neighbors.starts[block.stop])
        source = np.repeat(rows, np.diff(neighbors.starts[block.start : block.stop + 1]))
        differences = points[source] - points[neighbors.indices[edges]]
        squared = (differences * differences).sum(axis=1)
        # Tolerances for rounding errors.
        torn[edges] = squared > squared_radii[source - block.start] * (1 + 1e-9) + 1e-12
    return torn


def _squared_radii(
    points: NDArray[np.float64], rows: NDArray[np.intp], others: NDArray[np.intp], rank: int
) -> NDArray[np.float64]:
    """Squared distance from each row to its neighbour of this rank among the other points."""
    P, Q = points[rows], points[others]
    squares = (P * P).sum(axis=1)[:, None] + (Q * Q).sum(axis=1) - 2 * P @ Q.T
    squares[rows[:, None] == others[None, :]] = np.inf
    last = min(rank, squares.shape[1]) - 1
    return np.asarray(np.maximum(np.partition(squares, last, axis=1)[:, last], 0.0))


def torn_fractions(torn: NDArray[np.bool_], neighbors: Neighbors) -> NDArray[np.float64]:
    """Fraction of each point's neighbours that are torn away; NaN for a point without neighbours."""
    counts = np.diff(neighbors.starts)
    source = np.repeat(np.arange(len(counts)), counts)
    with np.errstate(invalid="ignore"):
        return np.bincount(source, weights=torn, minlength=len(counts)) / counts
