"""Nearest neighbours in the data.

The search is exact up to twenty thousand points: one matrix product per block of rows, then a selection in
two steps. The points are split into groups; the k groups with the smallest minimum distances contain the k
nearest points, so only these groups are searched. For more points, the search is approximate: points are
assigned to cells around centres, and only the cells nearest to the point's own are searched. The number of
cells depends on the data; it is determined by an exact search for a sample of points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import (
    TILE,
    Array,
    beside,
    blocks,
    in_tiles,
    namespace,
    row_blocks,
    row_product,
    rows_alike,
)
from .._data.sparse import checked_csr
from .._data.threads import Workers

N_NEIGHBORS = 30
_GROUP = 32  # points per group
_QUERIES = 16  # new points per tile; tiles are padded, so a single point takes as long
_ROWS = 64  # queries per block: their distances to a few thousand points fit the cache
_COPIED = 1 << 14  # points copied or hashed at a time, so that temporary arrays are small
_ALL_PAIRS_UP_TO = 20_000  # largest number of points for the exact search
_POINTS_PER_CELL = 250, 500  # minimum and maximum; between them n / 1000
_CELLS_SEARCHED = 20  # minimum
_TRAINING = 20  # points per centre used to compute the centres
_ROUNDS = 4  # of Lloyd's algorithm
_JUDGED_BY = 256  # points with an exact search, which determine the number of cells ...
_ENOUGH = 0.985  # ... such that this fraction of their neighbours is found
# Bounds the time; in, e.g., ten million points of noise, fewer neighbours are found.
_MOST_CELLS = 200


class Search:
    """Exact nearest-neighbour search by matrix products.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    order : (n,) array of int, optional
        Their order in the search, which renumbers them.
    """

    def __init__(self, X: np.ndarray, order: np.ndarray | None = None) -> None:
        n, r = X.shape
        self.n_groups = -(-n // _GROUP)
        # With |x|^2 / 2 as an extra column, one product gives |x|^2 / 2 - x.q, which sorts like distances.
        self._columns = np.zeros((_GROUP * self.n_groups, r + 1), dtype=np.float32)
        for block in blocks(n, _COPIED):
            part = X[block] if order is None else X[order[block]]
            self._columns[block, :r] = part
            self._columns[block, r] = 0.5 * np.einsum("ij,ij->i", part, part)
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

        `itself` is the index of each query among the points, which is excluded; -1 for queries that are not
        points.
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
    for block in row_blocks(X, _COPIED, X.shape[1]):
        found, bits = codes[block], (xp.astype(X[block], xp.float32) + 0).view(xp.int32)  # no -0
        for k in range(X.shape[1]):
            found = (found ^ xp.astype(bits[:, k], xp.int64)) * int(factors[k])  # modulo 2**64
            found = found ^ (found >> 29)
        codes[block] = found
    return codes


class Cells:
    """Points sorted into cells around centres, for an approximate search in the nearest cells.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    rng : numpy.random.Generator
        Draws the points from which the centres are computed.
    workers : Workers
        Threads.

    Attributes
    ----------
    centres : (c, r) array
        Centres of the cells, each followed by one nearby.
    order : (n,) array
        Indices of the points, sorted by cell, so that points near in the data are near in memory.
    cell : (n,) array
        Cell of each point, in this order.
    starts : (c + 1,) array
        Index of the first point of each cell, in this order.
    """

    def __init__(self, X: np.ndarray, rng: np.random.Generator, workers: Workers) -> None:
        n, (least, most) = len(X), _POINTS_PER_CELL
        self.centres = _chain(_centres(X, n // min(max(n // 1000, least), most), rng, workers))
        cell = _cells(X, self.centres, workers)
        self.order = np.argsort(cell, kind="stable")
        self.cell = cell[self.order]
        self.starts = np.searchsorted(self.cell, np.arange(len(self.centres) + 1))

    def members(self, cell: int) -> np.ndarray:
        """Points of a cell."""
        return np.arange(self.starts[cell], self.starts[cell + 1])

    def in_lanes(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points as `nearest_in_cells` takes them (g x r x LANES), starts of cells, and indices of points.

        Cells are padded with points at infinity, whose index is -1.
        """
        sizes = np.diff(self.starts)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // kernels.LANES) * kernels.LANES)])
        place = np.arange(len(X)) + np.repeat(starts[:-1] - self.starts[:-1], sizes)
        order = np.full(starts[-1], -1)
        order[place] = self.order
        lanes = np.full(
            (starts[-1] // kernels.LANES, X.shape[1], kernels.LANES), np.inf, np.float32
        )
        for block in blocks(len(X), _COPIED):
            group, lane = np.divmod(place[block], kernels.LANES)
            lanes[group, :, lane] = X[self.order[block]]
        return lanes, starts, order

    def reach(
        self,
        search: Search,
        sample: np.ndarray,
        seen_from: np.ndarray,
        k: int,
        workers: Workers,
    ) -> int:
        """Number of cells, nearest first, that contain nearly all neighbours of a sample of points.

        `search` is the exact search among the points in the order of cells, and `seen_from` (s x r) the
        positions from which the distances to cells are measured.
        """

        def ranks(block: slice) -> np.ndarray:
            rows = sample[block]
            found = search(search.X[rows], k, rows)
            difference = seen_from[block][:, None, :] - self.centres[None, :, :]
            distance = np.einsum("bcr,bcr->bc", difference, difference)
            farthest = np.take_along_axis(distance, self.cell[found], axis=1)
            return np.asarray((distance[:, None, :] <= farthest[:, :, None]).sum(axis=2))

        found = np.concatenate(list(workers.map(ranks, blocks(len(sample), 16))))
        enough = int(np.quantile(found, _ENOUGH, method="higher"))
        return min(max(enough, _CELLS_SEARCHED), _MOST_CELLS, len(self.centres))


def _nearest_in_cells(
    X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers
) -> Neighbors:
    """Approximate nearest neighbours: the nearest points in the nearest cells."""
    n, cells = len(X), Cells(X, rng, workers)
    centres, order = cells.centres, cells.order
    search, near_cells = Search(X, order), Search(centres)
    sample = np.sort(rng.choice(n, min(n, _JUDGED_BY), replace=False))
    wanted = cells.reach(search, sample, centres[cells.cell[sample]], k, workers)

    def part(c: int) -> tuple[np.ndarray, np.ndarray]:
        own, reach = cells.members(c), wanted
        if not len(own):
            return own, np.empty((0, k), dtype=np.intp)
        while True:  # cells may be small: add cells until they hold k other points
            near = near_cells(centres[c : c + 1], min(reach, len(centres)))
            near = in_order(centres, centres[c : c + 1], near)[0][0]
            # Nearest cells first, so that few points replace others in the selection.
            pool = np.concatenate([own, *(cells.members(other) for other in near if other != c)])
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


class NearestToNew:
    """Nearest points to new ones: among all if there are few points, else in the cells nearest to each one.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    k : int
        Number of nearest points.
    """

    def __init__(self, X: np.ndarray, k: int) -> None:
        self.X, self.k = X, k
        self._cells: Cells | None = None
        if len(X) <= _ALL_PAIRS_UP_TO:
            self._all = Search(X)
            return
        with rows_alike(), Workers(1) as workers:
            rng = np.random.default_rng(0)
            self._cells = cells = Cells(X, rng, workers)
            self._near_cells = Search(cells.centres)
            sample = np.sort(rng.choice(len(X), _JUDGED_BY, replace=False))
            search = Search(X, cells.order)
            self._reach = cells.reach(search, sample, search.X[sample], k, workers)
            del search  # as large as X: not in memory together with the next copy of X
            self._lanes, self._starts, self._order = cells.in_lanes(X)

    def __call__(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices (b x k) of the points nearest to each query, nearest first, and their distances."""
        if self._cells is None:
            (found,) = in_tiles(lambda t: (self._all(t, self.k),), queries, size=_QUERIES)
        else:
            found = self._order[self._in_cells(self._cells, queries, self._reach)]
        return in_order(self.X, queries, found)

    def _in_cells(self, cells: Cells, queries: np.ndarray, reach: int) -> np.ndarray:
        """Positions (b x k) among the sorted points of those found in the nearest cells."""
        (near,) = in_tiles(lambda t: (self._near_cells(t, reach),), queries, size=_QUERIES)
        near, _ = in_order(cells.centres, queries, near)
        by_cell = np.argsort(near[:, 0], kind="stable")  # so that the cells are still in the cache
        found = np.empty((len(queries), self.k), dtype=np.intp)
        found[by_cell] = nearest_in_cells(
            self._lanes, self._starts, queries[by_cell], near[by_cell], self.k
        )
        (too_few,) = np.nonzero((found < 0).any(axis=1))
        if len(too_few):  # cells may be small
            found[too_few] = self._in_cells(
                cells, queries[too_few], min(2 * reach, len(cells.centres))
            )
        return found


def nearest_in_cells(
    X: np.ndarray, starts: np.ndarray, queries: np.ndarray, cells: np.ndarray, k: int
) -> np.ndarray:
    """Positions (b x k) of the points nearest to each query in some cells (b x c), unordered.

    X (g x r x LANES) and starts (number of cells + 1) are those of `Cells.in_lanes`. If the cells have fewer
    than k points, the rest is -1.
    """
    if kernels.take(X, queries):
        return kernels.nearest_in_cells(X, starts, queries, cells, k)
    found = np.full((len(queries), k), -1)
    for i, query in enumerate(queries):
        pool = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in cells[i]])
        difference = X[pool[:: kernels.LANES] // kernels.LANES] - query[:, None]
        distance = np.einsum("grl,grl->gl", difference, difference).ravel()
        best = np.argsort(distance, kind="stable")[:k]
        found[i, : len(best)] = np.where(np.isfinite(distance[best]), pool[best], -1)
    return found


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
