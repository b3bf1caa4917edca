"""Nearest neighbours in the data.

The search is exact up to twenty thousand points: one matrix product per block of rows, then a selection in
two steps. The points are split into groups; the k groups with the smallest minimum distances contain the k
nearest points, so only these groups are searched. For more points, the search is approximate: points are
assigned to cells around centres, and only the cells nearest to the point's own are searched. The number of
cells depends on the data; it is determined by an exact search for a sample of points.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import TILE, Array, beside, blocks, namespace, row_product
from .._data.sparse import checked_csr
from .._data.threads import Workers

N_NEIGHBORS = 30
_GROUP = 32  # points per group
_ROWS = 64  # queries per block: their distances to a few thousand points fit the cache
_ALL_PAIRS_UP_TO = 20_000  # largest number of points for the exact search
_POINTS_PER_CELL = 250, 500  # minimum and maximum; between them n / 1000
_CELLS_SEARCHED = 20  # minimum
_TRAINING = 20  # points per centre used to compute the centres
_ROUNDS = 4  # of Lloyd's algorithm
_JUDGED_BY = 256  # points with an exact search, which determine the number of cells ...
_ENOUGH = 0.985  # ... so that this fraction of their neighbours is found
_MOST_CELLS = (
    200  # bounds the time; fewer neighbours are found in, e.g., ten million points of noise
)


class Search:
    """Exact nearest-neighbour search by matrix products.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    """

    def __init__(self, X: np.ndarray) -> None:
        n, r = X.shape
        self.n_groups = -(-n // _GROUP)
        # With |x|^2 / 2 as an extra column, one product gives |x|^2 / 2 - x.q, which sorts like distances.
        self._columns = np.zeros((_GROUP * self.n_groups, r + 1), dtype=np.float32)
        self._columns[:n, :r] = X
        self._columns[:n, r] = 0.5 * np.einsum("ij,ij->i", X, X)
        self._columns[n:, r] = np.inf
        self.X = self._columns[:n, :r]

    def among(self, rows: np.ndarray) -> Search:
        """Search restricted to some rows, which are renumbered from 0."""
        part = Search.__new__(Search)
        r = self._columns.shape[1] - 1
        part.n_groups = -(-len(rows) // _GROUP)
        part._columns = np.empty((_GROUP * part.n_groups, r + 1), dtype=np.float32)
        np.take(self._columns, rows, axis=0, out=part._columns[: len(rows)])
        part._columns[len(rows) :] = [*[0.0] * r, np.inf]
        part.X = part._columns[: len(rows), :r]
        return part

    def __call__(self, queries: np.ndarray, k: int, itself: np.ndarray | None = None) -> np.ndarray:
        """Indices (q x k) of the points nearest to each query, unordered.

        `itself` is the index of each query among the points, which is excluded, or -1 for other queries.
        """
        with_one = np.concatenate([-queries, np.ones_like(queries[:, :1])], axis=1)
        if kernels.available():
            found = kernels.smallest(with_one, self._columns[: len(self.X)], k, itself)
            if found is not None:
                return found
        D = row_product(with_one, self._columns.T)
        if itself is not None:
            (known,) = np.nonzero(itself >= 0)
            D[known, itself[known]] = np.inf
        grouped = D.reshape(len(D), _GROUP, self.n_groups)
        k_groups = min(k, self.n_groups)
        groups = np.argpartition(grouped.min(axis=1), k_groups - 1, axis=1)[:, :k_groups]
        candidates = np.take_along_axis(grouped, groups[:, None, :], axis=2).reshape(len(D), -1)
        which = np.argpartition(candidates, k - 1, axis=1)[:, :k]
        member, group = np.divmod(which, k_groups)
        return np.asarray(np.take_along_axis(groups, group, axis=1) + self.n_groups * member)


class Neighbors(NamedTuple):
    """Nearest neighbours of each point (n x k), nearest first, and an order of the points.

    In that order, points that are near in the data are near in memory; None for few points.
    """

    indices: np.ndarray
    order: np.ndarray | None = None


def nearest(X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers) -> Neighbors:
    """The k nearest neighbours of each point, without the point itself."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    if len(X) > _ALL_PAIRS_UP_TO:
        return _nearest_in_cells(X, k, rng, workers)
    search = Search(X)

    def part(block: slice) -> np.ndarray:
        rows = np.arange(block.start, block.stop)
        return in_order(X, X[block], search(X[block], k, rows))[0]

    return Neighbors(np.concatenate(list(workers.map(part, blocks(len(X), _ROWS)))))


def in_order(
    X: np.ndarray, queries: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the points found (q x k) by distance, ties by index, and return them with the distances."""
    if kernels.take(X, queries):
        return kernels.in_order(X, queries, found)
    found = np.sort(found, axis=1)
    difference = X[found] - queries[:, None, :]
    squared = np.einsum("qkr,qkr->qk", difference, difference)
    order = np.argsort(squared, axis=1, kind="stable")
    distances = np.sqrt(np.take_along_axis(squared, order, axis=1))
    return np.take_along_axis(found, order, axis=1), distances


class EqualRows:
    """Finds rows of X (n x r) that equal given rows."""

    def __init__(self, X: Array) -> None:
        self._X, codes = X, _codes(X)
        self._order = namespace(X).argsort(codes, stable=True)
        self._codes = codes[self._order]

    def __call__(self, queries: Array) -> Array:
        """Index of the first row of X that equals each query, or -1 (q)."""
        xp = namespace(queries)
        at = xp.searchsorted(self._codes, _codes(queries))
        candidate = self._order[xp.clip(at, None, len(self._order) - 1)]
        equal = xp.all(self._X[candidate] == queries, axis=1)
        return xp.where(equal, candidate, xp.full_like(candidate, -1))


def _codes(X: Array) -> Array:
    """Hash of each row (n)."""
    xp = namespace(X)
    factors = 2 * np.random.default_rng(0).integers(-(1 << 61), 1 << 61, size=X.shape[1]) + 1
    codes = xp.zeros(X.shape[0], dtype=xp.int64, **beside(X))
    bits = (xp.astype(X, xp.float32) + 0).view(xp.int32)  # + 0 turns -0 into 0
    for k in range(X.shape[1]):
        codes = (codes ^ xp.astype(bits[:, k], xp.int64)) * int(factors[k])  # modulo 2**64
        codes = codes ^ (codes >> 29)
    return codes


def _nearest_in_cells(
    X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers
) -> Neighbors:
    """Approximate nearest neighbours: the nearest points in the nearest cells."""
    n = len(X)
    least, most = _POINTS_PER_CELL
    centres = _chain(_centres(X, n // min(max(n // 1000, least), most), rng, workers))
    cell = _cells(X, centres, workers)
    # Sorted by cell, so that points near in the data are near in memory.
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
        while True:  # cells may be small: add cells until they hold k other points
            near = near_cells(centres[c : c + 1], min(reach, len(centres)))
            near = in_order(centres, centres[c : c + 1], near)[0][0]
            # The nearest cells first: then few points replace others in the selection.
            pool = np.concatenate([own, *(members[other] for other in near if other != c)])
            if len(pool) > k:
                break
            reach *= 2
        among, at = search.among(pool), np.arange(len(own))
        rows = order[own]
        found = [
            in_order(X, X[rows[b]], order[pool[among(X[rows[b]], k, at[b])]])[0]
            for b in blocks(len(rows), 4 * _ROWS)
        ]
        return rows, np.concatenate(found)

    result = np.empty((n, k), dtype=np.intp)
    for rows, found in workers.map(part, range(len(centres))):
        result[rows] = found
    return Neighbors(result, order)


def _cells_to_search(
    search: Search,
    cell: np.ndarray,
    centres: np.ndarray,
    sample: np.ndarray,
    k: int,
    workers: Workers,
) -> int:
    """Number of cells that contain nearly all neighbours of a sample of points."""

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
    """Centres of cells, by a few rounds of Lloyd's algorithm on a sample of the points."""
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


def _chain(centres: np.ndarray) -> np.ndarray:
    """The centres, each followed by the nearest one that is left."""
    left, chain = centres.copy(), []
    here, among = left[0], np.arange(len(left))
    while len(among):
        difference = left - here
        nearest = int(np.argmin(np.einsum("cr,cr->c", difference, difference)))
        chain.append(among[nearest])
        here = left[nearest].copy()
        left[nearest], among[nearest] = left[-1], among[-1]  # the last one takes its place
        left, among = left[:-1], among[:-1]
    return centres[chain]


def _cells(X: np.ndarray, centres: np.ndarray, workers: Workers) -> np.ndarray:
    """Index of the centre nearest to each point."""
    search = Search(centres)
    parts = workers.map(lambda b: search(X[b], 1)[:, 0], blocks(len(X), TILE))
    return np.concatenate(list(parts))


def _entries(graph: scipy.sparse.csr_array, kept: np.ndarray) -> scipy.sparse.csr_array:
    """Graph with only some of the stored entries; explicit zeros are kept."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return scipy.sparse.csr_array(
        (graph.data[kept], graph.indices[kept], before[graph.indptr]), shape=graph.shape
    )


def check_neighbors(neighbors: Any, n: int) -> int | scipy.sparse.csr_array:
    """Number of neighbours to search for, or the validated graph."""
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
            f"neighbors must have the shape ({n}, {n}), since X has {n} rows, got {graph.shape}."
        )
    bad = ~(np.isfinite(graph.data) & (graph.data >= 0))
    if bad.any():
        raise ValueError(
            "neighbors must contain finite numbers >= 0 (their size does not matter), "
            f"got {graph.data[np.argmax(bad)]}."
        )
    own = np.repeat(np.arange(n), np.diff(graph.indptr)) == graph.indices
    loops = own & (graph.data != 0)
    if loops.any():
        row = int(graph.indices[np.argmax(loops)])
        raise ValueError(
            f"neighbors must have no self-loops, got an entry on the diagonal in row {row}: remove them "
            "with graph.setdiag(0); graph.eliminate_zeros()."
        )
    if own.any():  # zero distances of points to themselves, as scanpy stores them above 8,000 cells
        graph = _entries(graph, ~own)
    degree = np.diff(graph.indptr)
    if not degree.all():
        row = int(np.argmin(degree))
        raise ValueError(
            f"neighbors must have a neighbour for every point, got {int((degree == 0).sum())} empty rows, "
            f"the first of them {row}: add graph.T to a directed graph, or connect points without a "
            "neighbour to their nearest point."
        )
    return graph
