"""Nearest neighbours in the data.

The search is exact up to twenty thousand points: one matrix product per block of rows, then a selection in
two steps. The points are split into groups; the k groups with the smallest minimum distances contain the k
nearest points, so only these groups are searched. For more points, the search is approximate: points are
assigned to cells around centres, and only the cells whose centres are nearest to the point are searched. The
number of cells depends on the data; it is determined by an exact search for a sample of points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import (
    TILE,
    Array,
    blocks,
    in_tiles,
    namespace,
    row_blocks,
    row_product,
    rows_alike,
    same_device,
)
from .._data.sparse import checked_csr
from .._data.threads import Workers

# Default number of neighbours: a fraction of the points within these limits. With more neighbours, small
# groups would merge with others.
_MIN_NEIGHBORS, _MAX_NEIGHBORS, _POINTS_PER_NEIGHBOR = 10, 30, 20
_GROUP = 32  # points per group
_QUERIES_PER_TILE = 16  # tiles are padded, so a single query takes as long as 16
_QUERIES_PER_BLOCK = 64  # their distances to a few thousand points fit the cache
_POINTS_PER_BLOCK = 2048  # points per block of the search in cells
_POINTS_PER_COPY = 1 << 14  # points copied or hashed at a time, so that temporary arrays are small
_ALL_PAIRS_UP_TO = 20_000  # largest number of points for the exact search
_POINTS_PER_CELL = 250, 500  # minimum and maximum; n / 1000 between them
_MIN_CELLS = 20  # minimum number of cells searched
# Cells searched for a point are chosen among those nearest to its own cell: this number of times as many.
_CANDIDATE_FACTOR = 4
_POINTS_PER_CENTRE = 20  # points per centre in the sample from which the centres are computed
_N_ROUNDS = 4  # rounds of Lloyd's algorithm
# The number of cells searched is such that this fraction of the neighbours of a sample of points is found.
_N_TEST_POINTS, _MIN_RECALL = 256, 0.98
# Maximum number of cells searched, to bound the time; in, e.g., ten million points of noise, fewer neighbours
# are found.
_MAX_CELLS = 200


class Search:
    """Exact nearest-neighbour search by matrix products.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    order : (n,) array of int or None, default=None
        The order in which the search numbers the points; None for the order of X.
    """

    def __init__(self, X: np.ndarray, order: np.ndarray | None = None) -> None:
        n, r = X.shape
        self.n_groups = -(-n // _GROUP)
        # With |x|^2 / 2 as an extra column, one product gives |x|^2 / 2 - x.q, which sorts like distances.
        self._columns = np.zeros((_GROUP * self.n_groups, r + 1), dtype=np.float32)
        for block in blocks(n, _POINTS_PER_COPY):
            part = X[block] if order is None else X[order[block]]
            self._columns[block, :r] = part
            self._columns[block, r] = 0.5 * np.einsum("ij,ij->i", part, part)
        self._columns[n:, r] = np.inf
        self.X = self._columns[:n, :r]

    def __call__(self, queries: np.ndarray, k: int, itself: np.ndarray | None = None) -> np.ndarray:
        """Indices (q x k) of the points nearest to each query, unordered.

        `itself` contains the index of each query among the points, which is excluded, or -1 for queries that
        are not points; None if no query is one.
        """
        with_one = np.concatenate([-queries, np.ones_like(queries[:, :1])], axis=1)
        if kernels.available():
            nearest = kernels.smallest(with_one, self._columns[: len(self.X)], k, itself)
            if nearest is not None:
                return nearest
        D = row_product(with_one, self._columns.T)
        if itself is not None:
            (known,) = np.nonzero(itself >= 0)
            D[known, itself[known]] = np.inf
        grouped = D.reshape(len(D), _GROUP, self.n_groups)
        k_groups = min(k, self.n_groups)
        groups = np.argpartition(grouped.min(axis=1), k_groups - 1, axis=1)[:, :k_groups]
        candidates = np.take_along_axis(grouped, groups[:, None, :], axis=2).reshape(len(D), -1)
        smallest = np.argpartition(candidates, k - 1, axis=1)[:, :k]
        member, group = np.divmod(smallest, k_groups)
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
        cells = Cells(X, k, rng, workers)
        return Neighbors(cells.nearest(workers), cells.order)
    search = Search(X)

    def part(block: slice) -> np.ndarray:
        rows = np.arange(block.start, block.stop)
        return in_order(X, X[block], search(X[block], k, rows))[0]

    return Neighbors(np.concatenate(list(workers.map(part, blocks(len(X), _QUERIES_PER_BLOCK)))))


def in_order(
    X: np.ndarray, queries: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of points (q x k), sorted by distance to the query (ties by index), and the distances."""
    if kernels.supports(X, queries):
        return kernels.in_order(X, queries, indices)
    indices = np.sort(indices, axis=1)
    difference = X[indices] - queries[:, None, :]
    squared = np.einsum("qkr,qkr->qk", difference, difference)
    order = np.argsort(squared, axis=1, kind="stable")
    distances = np.sqrt(np.take_along_axis(squared, order, axis=1))
    return np.take_along_axis(indices, order, axis=1), distances


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
    codes = xp.zeros(X.shape[0], dtype=xp.int64, **same_device(X))
    for block in row_blocks(X, _POINTS_PER_COPY, X.shape[1]):
        code, bits = codes[block], (xp.astype(X[block], xp.float32) + 0).view(xp.int32)  # no -0
        for k in range(X.shape[1]):
            code = (code ^ xp.astype(bits[:, k], xp.int64)) * int(factors[k])  # modulo 2**64
            code = code ^ (code >> 29)
        codes[block] = code
    return codes


class Cells:
    """Points sorted into cells around centres, for an approximate search in the nearest cells.

    Parameters
    ----------
    X : (n, r) array of float32
        The points, centred for numerical accuracy.
    k : int
        Number of nearest points.
    rng : numpy.random.Generator
        Draws the points from which the centres and the number of cells to search are computed.
    workers : Workers
        Threads.

    Attributes
    ----------
    centres : (c, r) array
        Centres of the cells, ordered so that consecutive centres are near each other.
    order : (n,) array
        Indices of the points, sorted by cell, so that points near in the data are near in memory.
    reach : int
        Number of cells, nearest first, that contain nearly all neighbours of most points.
    """

    def __init__(self, X: np.ndarray, k: int, rng: np.random.Generator, workers: Workers) -> None:
        n, (low, high) = len(X), _POINTS_PER_CELL
        self.k = k
        self.centres = _chain(_centres(X, n // min(max(n // 1000, low), high), rng, workers))
        self._half_squares = 0.5 * np.einsum("cr,cr->c", self.centres, self.centres)
        cell = _cells(X, self.centres, workers)
        self.order = np.argsort(cell, kind="stable")
        self._cell = cell[self.order]
        sample = np.sort(rng.choice(n, min(n, _N_TEST_POINTS), replace=False))
        self.reach = self._number_of_cells(X, sample, workers)
        sizes = np.bincount(cell, minlength=len(self.centres))
        self._lanes, self._starts, self._position = in_lanes(X, self.order, sizes)
        self._index = np.full(self._starts[-1], -1)
        self._index[self._position] = self.order

    def _number_of_cells(self, X: np.ndarray, sample: np.ndarray, workers: Workers) -> int:
        """Number of cells that contain nearly all neighbours of a sample, given by positions in `order`."""
        search = Search(X, self.order)

        def ranks(block: slice) -> np.ndarray:
            rows = sample[block]
            queries = search.X[rows]
            neighbors = search(queries, self.k, rows)
            difference = queries[:, None, :] - self.centres[None, :, :]
            distance = np.einsum("bcr,bcr->bc", difference, difference)
            farthest = np.take_along_axis(distance, self._cell[neighbors], axis=1)
            return np.asarray((distance[:, None, :] <= farthest[:, :, None]).sum(axis=2))

        needed = np.concatenate(list(workers.map(ranks, blocks(len(sample), 16))))
        n_cells = int(np.quantile(needed, _MIN_RECALL, method="higher"))
        return min(max(n_cells, _MIN_CELLS), _MAX_CELLS, len(self.centres))

    def nearest(self, workers: Workers) -> np.ndarray:
        """Indices of the points found near each of the points (n x k), nearest first."""
        n_candidates = min(_CANDIDATE_FACTOR * self.reach, len(self.centres))
        candidates_of_cell = Search(self.centres)(self.centres, n_candidates)
        result = np.empty((len(self.order), self.k), dtype=np.intp)

        def part(block: slice) -> None:
            at, cell = self._position[block], self._cell[block]
            among = np.unique(candidates_of_cell[cell[0] : cell[-1] + 1])
            # Nearest cells first, so that few points replace others in the selection.
            difference = self.centres[among] - self.centres[cell[len(cell) // 2]]
            among = among[np.argsort(np.einsum("cr,cr->c", difference, difference), kind="stable")]
            queries = self._lanes[at // kernels.LANES, :, at % kernels.LANES]
            near = self._near(queries, among, self.reach)
            result[self.order[block]] = self._search(queries, at, among, near)[0]

        for _ in workers.map(part, blocks(len(self.order), _POINTS_PER_BLOCK)):
            pass
        return result

    def nearest_to(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices (b x k) of the points found near each query, nearest first, and their distances."""
        return self._search_more(queries, np.full(len(queries), -1), self.reach)

    def _search_more(
        self, queries: np.ndarray, itself: np.ndarray, reach: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Like `nearest_to`, but in `reach` cells and without the point at the position `itself`."""
        among = np.arange(len(self.centres))
        (near,) = in_tiles(
            lambda t: (self._near(t, among, reach),), queries, size=_QUERIES_PER_TILE
        )
        return self._search(queries, itself, among, near)

    def _search(
        self, queries: np.ndarray, itself: np.ndarray, among: np.ndarray, near: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Like `_search_more`, in the cells among[near], and in more if these have too few points."""
        starts, stops = self._starts[among], self._starts[among + 1]
        positions, distances = nearest_in_cells(
            self._lanes, starts, stops, queries, itself, near, self.k
        )
        (too_few,) = np.nonzero(positions[:, -1] < 0)
        indices = self._index[positions]
        if len(too_few):
            reach = min(2 * near.shape[1], len(self.centres))
            indices[too_few], distances[too_few] = self._search_more(
                queries[too_few], itself[too_few], reach
            )
        return indices, distances

    def _near(self, queries: np.ndarray, among: np.ndarray, reach: int) -> np.ndarray:
        """The cells nearest to each query (q x reach), as indices into `among`, ascending."""
        D = self._half_squares[among] - row_product(queries, self.centres[among].T)
        return np.sort(np.argpartition(D, reach - 1, axis=1)[:, :reach], axis=1)


def in_lanes(
    X: np.ndarray, order: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points as `nearest_in_cells` takes them (g x r x LANES), starts of cells, and position of each point.

    X[order] is sorted by cell, and the cells have these sizes. Cells are padded with points at infinity.
    """
    (n, r), lanes = X.shape, kernels.LANES
    starts = np.concatenate([[0], np.cumsum(-(-sizes // lanes) * lanes)])
    position = np.arange(n) + np.repeat(starts[:-1] - np.cumsum(sizes) + sizes, sizes)
    result = np.empty((starts[-1] // lanes, r, lanes), np.float32)
    for block in blocks(len(result), _POINTS_PER_COPY // lanes):
        begin, end = block.start * lanes, min(block.stop, len(result)) * lanes
        first, last = np.searchsorted(position, [begin, end])
        padded = np.full((end - begin, r), np.inf, np.float32)
        padded[position[first:last] - begin] = X[order[first:last]]
        result[block] = padded.reshape(-1, lanes, r).transpose(0, 2, 1)
    return result, starts, position


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
            self._cells = Cells(X, k, np.random.default_rng(0), workers)

    def __call__(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices (b x k) of the points nearest to each query, nearest first, and their distances."""
        if self._cells is not None:
            return self._cells.nearest_to(queries)
        (indices,) = in_tiles(lambda t: (self._all(t, self.k),), queries, size=_QUERIES_PER_TILE)
        return in_order(self.X, queries, indices)


def nearest_in_cells(
    X: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    queries: np.ndarray,
    itself: np.ndarray,
    cells: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (b x k) of the points nearest to each query in some cells (b x c), and distances.

    X (g x r x LANES) is that of `in_lanes`; starts and stops are the positions where cells start and end. The
    cells of each query are ascending. The nearest points come first, and the position `itself` (b) is left
    out. If there are fewer than k points, the remaining positions are -1, and their distances infinite.
    """
    if kernels.supports(X, queries):
        return kernels.nearest_in_cells(X, starts, stops, queries, itself, cells, k)
    positions = np.full((len(queries), k), -1)
    distances = np.full(positions.shape, np.inf, dtype=np.float32)
    for block in blocks(len(queries), _QUERIES_PER_BLOCK):
        searched, rows = np.unique(cells[block]), np.arange(block.stop - block.start)[:, None]
        pool = np.concatenate([np.arange(starts[c], stops[c]) for c in searched])
        points = X[pool // kernels.LANES, :, pool % kernels.LANES]
        wanted = np.zeros((len(rows), len(searched)), dtype=bool)
        wanted[rows, np.searchsorted(searched, cells[block])] = True
        left_out = ~np.repeat(wanted, stops[searched] - starts[searched], axis=1)
        left_out |= (pool == itself[block, None]) | np.isinf(points[:, 0])
        points[np.isinf(points)] = 0
        D = 0.5 * np.einsum("pr,pr->p", points, points) - queries[block] @ points.T
        D[left_out] = np.inf
        best = np.sort(np.argpartition(D, min(k, len(pool)) - 1, axis=1)[:, :k], axis=1)
        difference = points[best] - queries[block, None, :]
        distance = np.sqrt(np.einsum("qkr,qkr->qk", difference, difference))
        distance[left_out[rows, best]] = np.inf
        nearest_first = np.argsort(distance, axis=1, kind="stable")
        distance = distance[rows, nearest_first]
        columns = slice(distance.shape[1])
        distances[block, columns] = distance
        positions[block, columns] = np.where(
            np.isinf(distance), -1, pool[best[rows, nearest_first]]
        )
    return positions, distances


def _centres(X: np.ndarray, n_cells: int, rng: np.random.Generator, workers: Workers) -> np.ndarray:
    """Centres of cells, by a few rounds of Lloyd's algorithm on a sample of the points."""
    sample = X[
        np.sort(rng.choice(len(X), min(len(X), _POINTS_PER_CENTRE * n_cells), replace=False))
    ]
    centres = sample[np.sort(rng.choice(len(sample), n_cells, replace=False))]
    for _ in range(_N_ROUNDS):
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
    """The centres, each followed by the nearest of the remaining ones."""
    left, chain = centres.copy(), []
    current, indices = left[0], np.arange(len(left))
    while len(indices):
        difference = left - current
        nearest = int(np.argmin(np.einsum("cr,cr->c", difference, difference)))
        chain.append(indices[nearest])
        current = left[nearest].copy()
        left[nearest], indices[nearest] = left[-1], indices[-1]  # replaced by the last one
        left, indices = left[:-1], indices[:-1]
    return centres[chain]


def _cells(X: np.ndarray, centres: np.ndarray, workers: Workers) -> np.ndarray:
    """Index of the centre nearest to each point."""
    search = Search(centres)
    parts = workers.map(lambda b: search(X[b], 1)[:, 0], blocks(len(X), TILE))
    return np.concatenate(list(parts))


def _entries(graph: scipy.sparse.csr_array, kept: np.ndarray) -> scipy.sparse.csr_array:
    """Graph with only some of the stored entries; explicit zeros are kept."""
    n_before = np.concatenate([[0], np.cumsum(kept)])
    return scipy.sparse.csr_array(
        (graph.data[kept], graph.indices[kept], n_before[graph.indptr]), shape=graph.shape
    )


def check_neighbors(neighbors: Any, n: int) -> int | scipy.sparse.csr_array:
    """Number of neighbours to search for, or the validated graph."""
    n_max = n // 3
    if neighbors is None:
        default = max(_MIN_NEIGHBORS, min(n // _POINTS_PER_NEIGHBOR, _MAX_NEIGHBORS))
        return max(1, min(default, n_max))
    if not scipy.sparse.issparse(neighbors):
        if neighbors > n_max:
            raise ValueError(
                f"neighbors must be at most a third of the number of points, {n_max}, got {neighbors}."
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
    on_diagonal = np.repeat(np.arange(n), np.diff(graph.indptr)) == graph.indices
    loops = on_diagonal & (graph.data != 0)
    if loops.any():
        row = int(graph.indices[np.argmax(loops)])
        raise ValueError(
            f"neighbors must have no self-loops, got an entry on the diagonal in row {row}: remove them "
            "with graph.setdiag(0); graph.eliminate_zeros()."
        )
    if on_diagonal.any():
        # Zero distances of points to themselves, as scanpy stores them above 8,000 cells.
        graph = _entries(graph, ~on_diagonal)
    degree = np.diff(graph.indptr)
    if not degree.all():
        row = int(np.argmin(degree))
        raise ValueError(
            f"neighbors must have a neighbour for every point, got {int((degree == 0).sum())} empty rows, "
            f"the first of them {row}: add graph.T to a directed graph, or connect points without a "
            "neighbour to their nearest point."
        )
    return graph
