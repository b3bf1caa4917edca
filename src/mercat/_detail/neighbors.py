"""The nearest points of each point in the data.

The search is exact up to twenty thousand points: a matrix product a block of rows, then a
selection in two steps. The columns are dealt into groups; the k groups with the smallest minima hold the k
nearest points, so that only these groups are looked through. Beyond, points are sorted into cells around
centres and looked for in the cells nearest to their own alone. How many cells are enough depends on the data:
a sample of points, whose neighbours are looked for among all, tells.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import TILE, Array, beside, blocks, namespace, row_product
from .._data.sparse import checked_csr
from .._data.threads import Workers

N_NEIGHBORS = 30
_GROUP = 32  # columns a group
_ROWS = 64  # queries a block: their distances to some thousand points fit the cache
_ALL_PAIRS_UP_TO = 20_000  # points that are all compared with all
_POINTS_A_CELL = 250, 500  # at least, at most; between them a thousandth of all
_CELLS_SEARCHED = 20  # at least
_TRAINING = 20  # points a centre that centres are computed from
_ROUNDS = 4  # of Lloyd's algorithm
_JUDGED_BY = (
    256  # points whose neighbours, looked for among all, tell how many cells are enough ...
)
_ENOUGH = 0.985  # ... share of them that must be found
_MOST_CELLS = 200  # a bound on time: beyond it more are missed, as of ten million points of noise


class Search:
    """Finds the nearest of some points, exactly, by matrix products.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred so that differences keep their digits.
    """

    def __init__(self, X: np.ndarray) -> None:
        n, r = X.shape
        self.n_groups = -(-n // _GROUP)
        # With |x|^2 / 2 beside x one product gives |x|^2 / 2 - x.q, which orders points as distances do.
        self._columns = np.zeros((_GROUP * self.n_groups, r + 1), dtype=np.float32)
        self._columns[:n, :r] = X
        self._columns[:n, r] = 0.5 * np.einsum("ij,ij->i", X, X)
        self._columns[n:, r] = np.inf
        self.X = self._columns[:n, :r]

    def among(self, rows: np.ndarray) -> Search:
        """The same for some of the points alone, which are numbered anew."""
        part = Search.__new__(Search)
        r = self._columns.shape[1] - 1
        part.n_groups = -(-len(rows) // _GROUP)
        part._columns = np.empty((_GROUP * part.n_groups, r + 1), dtype=np.float32)
        np.take(self._columns, rows, axis=0, out=part._columns[: len(rows)])
        part._columns[len(rows) :] = [*[0.0] * r, np.inf]
        part.X = part._columns[: len(rows), :r]
        return part

    def __call__(self, queries: np.ndarray, k: int, itself: np.ndarray | None = None) -> np.ndarray:
        """Indices (q x k) of the points nearest to each query, in no order.

        `itself` is the index of each query among the points, to be left out.
        """
        with_one = np.concatenate([-queries, np.ones_like(queries[:, :1])], axis=1)
        if kernels.available():
            found = kernels.smallest(with_one, self._columns[: len(self.X)], k, itself)
            if found is not None:
                return found
        D = row_product(with_one, self._columns.T)
        if itself is not None:
            D[np.arange(len(D)), itself] = np.inf
        grouped = D.reshape(len(D), _GROUP, self.n_groups)
        k_groups = min(k, self.n_groups)
        groups = np.argpartition(grouped.min(axis=1), k_groups - 1, axis=1)[:, :k_groups]
        candidates = np.take_along_axis(grouped, groups[:, None, :], axis=2).reshape(len(D), -1)
        which = np.argpartition(candidates, k - 1, axis=1)[:, :k]
        member, group = np.divmod(which, k_groups)
        return np.asarray(np.take_along_axis(groups, group, axis=1) + self.n_groups * member)


def nearest(X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers) -> np.ndarray:
    """Indices (n x k) of the k nearest points of each point, the nearest first, itself left out."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    if len(X) > _ALL_PAIRS_UP_TO:
        return _nearest_in_cells(X, k, rng, workers)
    search = Search(X)

    def part(block: slice) -> np.ndarray:
        rows = np.arange(block.start, block.stop)
        return in_order(X, X[block], search(X[block], k, rows))[0]

    return np.concatenate(list(workers.map(part, blocks(len(X), _ROWS))))


def in_order(
    X: np.ndarray, queries: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The points found (q x k), the nearest first, of equally near ones the first; and distances."""
    if kernels.take(X, queries):
        return kernels.in_order(X, queries, found)
    found = np.sort(found, axis=1)
    difference = X[found] - queries[:, None, :]
    squared = np.einsum("qkr,qkr->qk", difference, difference)
    order = np.argsort(squared, axis=1, kind="stable")
    distances = np.sqrt(np.take_along_axis(squared, order, axis=1))
    return np.take_along_axis(found, order, axis=1), distances


class EqualRows:
    """Finds rows that are equal to those of X (n x r)."""

    def __init__(self, X: Array) -> None:
        self._X, codes = X, _codes(X)
        self._order = namespace(X).argsort(codes, stable=True)
        self._codes = codes[self._order]

    def __call__(self, queries: Array) -> Array:
        """The first row of X that equals each query, or -1 (q)."""
        xp = namespace(queries)
        at = xp.searchsorted(self._codes, _codes(queries))
        candidate = self._order[xp.clip(at, None, len(self._order) - 1)]
        equal = xp.all(self._X[candidate] == queries, axis=1)
        return xp.where(equal, candidate, xp.full_like(candidate, -1))


def _codes(X: Array) -> Array:
    """A number for each row (n), the same for equal ones and hardly ever for others."""
    xp = namespace(X)
    factors = 2 * np.random.default_rng(0).integers(-(1 << 61), 1 << 61, size=X.shape[1]) + 1
    codes = xp.zeros(X.shape[0], dtype=xp.int64, **beside(X))
    bits = (xp.astype(X, xp.float32) + 0).view(xp.int32)  # of 0, also for -0
    for k in range(X.shape[1]):
        codes = (codes ^ xp.astype(bits[:, k], xp.int64)) * int(factors[k])  # modulo 2**64
        codes = codes ^ (codes >> 29)
    return codes


def _nearest_in_cells(
    X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers
) -> np.ndarray:
    """Nearest points among those in the nearest cells: a few are missed."""
    n = len(X)
    least, most = _POINTS_A_CELL
    centres = _centres(X, n // min(max(n // 1000, least), most), rng, workers)
    cell = _cells(X, centres, workers)
    # Cell by cell, so that what is near in the data is near in memory.
    order = np.argsort(cell, kind="stable")
    search, cell = Search(X[order]), cell[order]
    stops = np.searchsorted(cell, np.arange(len(centres)), side="right")
    members = [np.arange(*ends) for ends in itertools.pairwise([0, *stops])]
    near_cells = Search(centres)
    sample = np.sort(rng.choice(n, min(n, _JUDGED_BY), replace=False))
    wanted = _cells_to_search(search, cell, centres, sample, k, workers)

    def part(c: int) -> tuple[np.ndarray, np.ndarray]:
        own, reach = members[c], wanted
        if not len(own):
            return own, np.empty((0, k), dtype=np.intp)
        while True:  # cells may be small: go on to as many as hold k others
            near = near_cells(centres[c : c + 1], min(reach, len(centres)))[0]
            pool = np.concatenate([members[c] for c in np.sort(near)])
            if len(pool) > k:
                break
            reach *= 2
        among, at = search.among(pool), np.searchsorted(pool, own)
        rows = order[own]
        found = [
            in_order(X, X[rows[b]], order[pool[among(X[rows[b]], k, at[b])]])[0]
            for b in blocks(len(rows), 4 * _ROWS)
        ]
        return rows, np.concatenate(found)

    result = np.empty((n, k), dtype=np.intp)
    for rows, found in workers.map(part, range(len(centres))):
        result[rows] = found
    return result


def _cells_to_search(
    search: Search,
    cell: np.ndarray,
    centres: np.ndarray,
    sample: np.ndarray,
    k: int,
    workers: Workers,
) -> int:
    """So many that nearly all neighbours of some points are among them, by the cells that these are in."""

    def ranks(block: slice) -> np.ndarray:
        rows = sample[block]
        found = search(search.X[rows], k, rows)
        difference = centres[cell[rows]][:, None, :] - centres[None, :, :]
        distance = np.einsum("bcr,bcr->bc", difference, difference)
        farthest = np.take_along_axis(distance, cell[found], axis=1)
        return np.asarray((distance[:, None, :] <= farthest[:, :, None]).sum(axis=2))

    found = np.concatenate(list(workers.map(ranks, blocks(len(sample), 16))))
    enough = int(np.quantile(found, _ENOUGH, method="higher"))
    return min(max(enough, _CELLS_SEARCHED), _MOST_CELLS)


def _centres(X: np.ndarray, n_cells: int, rng: np.random.Generator, workers: Workers) -> np.ndarray:
    """Means of cells of a sample of the points, by a few rounds of Lloyd's algorithm."""
    sample = X[np.sort(rng.choice(len(X), min(len(X), _TRAINING * n_cells), replace=False))]
    centres = sample[np.sort(rng.choice(len(sample), n_cells, replace=False))]
    for _ in range(_ROUNDS):
        cell = _cells(sample, centres, workers)
        sums = (
            scipy.sparse.csr_array(
                (np.ones(len(sample), np.float32), cell, np.arange(len(sample) + 1)),
                shape=(len(sample), n_cells),
            ).T
            @ sample
        )
        counts = np.bincount(cell, minlength=n_cells)[:, None]
        centres = np.where(counts > 0, sums / np.maximum(counts, 1), centres).astype(np.float32)
    return centres


def _cells(X: np.ndarray, centres: np.ndarray, workers: Workers) -> np.ndarray:
    """Index of the nearest centre to each point."""
    search = Search(centres)
    parts = workers.map(lambda b: search(X[b], 1)[:, 0], blocks(len(X), TILE))
    return np.concatenate(list(parts))


def _entries(graph: scipy.sparse.csr_array, kept: np.ndarray) -> scipy.sparse.csr_array:
    """The graph of some of the stored entries; zeros among them stay stored."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return scipy.sparse.csr_array(
        (graph.data[kept], graph.indices[kept], before[graph.indptr]), shape=graph.shape
    )


def check_neighbors(neighbors: Any, n: int) -> int | scipy.sparse.csr_array:
    """How many neighbours to look for, or the graph that was given."""
    most = n // 3
    if neighbors is None:
        return max(1, min(N_NEIGHBORS, most))
    if not scipy.sparse.issparse(neighbors):
        if neighbors > most:
            raise ValueError(
                f"neighbors must be at most a third of the number of points, {most}, got {neighbors}."
            )
        return int(neighbors)
    graph = scipy.sparse.csr_array(checked_csr(neighbors, "neighbors"))
    if graph.shape != (n, n):
        raise ValueError(
            f"neighbors must be of shape ({n}, {n}), as X has {n} rows, got {graph.shape}."
        )
    bad = ~(np.isfinite(graph.data) & (graph.data >= 0))
    if bad.any():
        raise ValueError(
            "neighbors must hold finite numbers of at least 0, whose size does not matter, "
            f"got {graph.data[np.argmax(bad)]}."
        )
    own = np.repeat(np.arange(n), np.diff(graph.indptr)) == graph.indices
    loops = own & (graph.data != 0)
    if loops.any():
        row = int(graph.indices[np.argmax(loops)])
        raise ValueError(
            f"neighbors must have no self-loops, got an entry on the diagonal in row {row}: take them out "
            "with graph.setdiag(0); graph.eliminate_zeros()."
        )
    if own.any():  # the distance of a point to itself, as scanpy stores it beyond some 8,000 cells
        graph = _entries(graph, ~own)
    degree = np.diff(graph.indptr)
    if not degree.all():
        row = int(np.argmin(degree))
        raise ValueError(
            f"neighbors must name a neighbour for every point, got {int((degree == 0).sum())} empty rows, "
            f"the first of them {row}: add graph.T to a graph of one direction, or give points without a "
            "neighbour their nearest."
        )
    return graph
