"""Exact nearest neighbours and ranks of query points, in blocks of bounded memory."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._data.arrays import Array, blocks, namespace, row_dot, to_numpy, widest
from .._data.threads import Workers, n_threads
from ._points import BLOCK, Floats, Indices, Points, SparsePoints, on_device_of, row_squares

ROWS, COLUMNS = 64, 2**16  # shape of a block of squared distances, 32 MB
NUMBERS_ON_DEVICE = 2**28  # size of a block on a device, 2 GB
SLACK = 1e-9  # relative tolerance within which distances count as equal


def nearest(points: Points, queries: Indices, k: int) -> Indices:
    """The k nearest neighbours of each query point (m, k), nearest first, without the point itself."""
    if not points.on_host:
        return _nearest_on_device(points, queries, k)
    centred = points.coordinates
    if not isinstance(points, SparsePoints):  # which would become dense
        centred = centred - _centre(points).astype(centred.dtype)
    finder = NearestNeighbors(n_neighbors=k + 1).fit(centred)
    indices = finder.kneighbors(centred[queries], return_distance=False)
    itself = indices == queries[:, None]
    # With more than k duplicates, the query itself may be missing: drop the last neighbour instead.
    itself[~itself.any(axis=1), -1] = True
    return np.asarray(indices[~itself].reshape(len(queries), k), dtype=np.intp)


def count_within(points: Points, queries: Indices, radii: Floats) -> Indices:
    """Number of points within each radius (m, q) of each query point, without the point itself."""
    return _count(points, queries, points.chord(radii) * (1 + SLACK))


def ranks(points: Points, queries: Indices, others: Indices) -> Indices:
    """Rank of others (m, q) among the neighbours of each query, from 1; ties share the lowest rank."""
    distances = points.distances(queries[:, None], others)
    return 1 + _count(points, queries, points.chord(distances) * (1 - SLACK))


def counts_and_ranks(
    points: Points, queries: Indices, radius: float, others: Indices
) -> tuple[Indices, Indices]:
    """`count_within` a radius and `ranks` in one pass over the distances."""
    limits = points.chord(points.distances(queries[:, None], others)) * (1 - SLACK)
    within = np.full((len(queries), 1), points.chord(np.array(radius)) * (1 + SLACK))
    counts = _count(points, queries, np.hstack([limits, within]))
    return counts[:, -1], 1 + counts[:, :-1]


def _centre(points: Points) -> Array:
    # |p|^2 - 2 p.q + |q|^2 loses precision where the data are far from zero.
    xp = namespace(points.coordinates)
    return xp.mean(points.coordinates, axis=0, dtype=widest(points.coordinates))


def _squared_distances(Q: Array, P: Array, queries: Indices, columns: slice) -> Array:
    """Squared distances (m, c) from the queries to a slice of the points, infinite from a point to itself.

    Q and P are their coordinates relative to the centre of the points.
    """
    D = Q @ namespace(P).matrix_transpose(P)
    D *= -2
    D += row_dot(P, P)
    D += row_dot(Q, Q)[:, None]
    (rows,) = np.nonzero((queries >= columns.start) & (queries < columns.stop))
    D[on_device_of(rows, D), on_device_of(queries[rows] - columns.start, D)] = np.inf
    return D


def _nearest_on_device(points: Points, queries: Indices, k: int) -> Indices:
    """`nearest` by brute force on the device."""
    centre = _centre(points)
    n = len(points)
    P, neighbors = points.take(slice(0, n)) - centre, []
    for rows in blocks(len(queries), max(1, NUMBERS_ON_DEVICE // n)):
        Q = points.take(queries[rows]) - centre
        D = _squared_distances(Q, P, queries[rows], slice(0, n))
        neighbors.append(to_numpy(D.topk(k, largest=False).indices))
    return np.concatenate(neighbors).astype(np.intp)


def _count(points: Points, queries: Indices, radii: Floats) -> Indices:
    if isinstance(points, SparsePoints):
        return _count_sparse(points, queries, radii)
    centre = _centre(points)
    n = len(points)
    n_rows, n_columns, count_each = ROWS, COLUMNS, _count_row_by_row
    if not points.on_host:
        n_rows, n_columns, count_each = max(1, NUMBERS_ON_DEVICE // n), n, _count_on_device

    # If all points fit into one block, centre them once instead of once per block of rows.
    all_points = points.take(slice(0, n)) - centre if n <= n_columns else None

    def count(rows: slice) -> Indices:
        limits = radii[rows] ** 2
        counts = np.zeros(limits.shape, dtype=np.intp)
        Q = points.take(queries[rows]) - centre
        for columns in blocks(n, n_columns):
            P = points.take(columns) - centre if all_points is None else all_points
            counts += count_each(_squared_distances(Q, P, queries[rows], columns), limits)
        return counts

    with Workers(n_threads(-1) if points.on_host else 1) as workers:
        return np.concatenate(list(workers.map(count, blocks(len(queries), n_rows))))


def _count_sparse(points: SparsePoints, queries: Indices, radii: Floats) -> Indices:
    """`_count` by products of sparse matrices."""
    P = points.coordinates
    squares = row_squares(P)

    def count(rows: slice) -> Indices:
        chosen = queries[rows]
        D = (P @ P[chosen].T).toarray().T * -2
        D += squares
        D += squares[chosen][:, None]
        D[np.arange(len(chosen)), chosen] = np.inf
        return _count_row_by_row(D, radii[rows] ** 2)

    size = min(ROWS, max(1, BLOCK // len(points)))
    with Workers(n_threads(-1)) as workers:
        return np.concatenate(list(workers.map(count, blocks(len(queries), size))))


def _count_row_by_row(D: Floats, limits: Floats) -> Indices:
    """Number of entries of each row of D that do not exceed each limit of that row.

    One pass per limit is faster than sorting: comparisons are vectorised and a row fits in the cache.
    """
    counts = [
        [np.count_nonzero(limit >= d) for limit in row] for d, row in zip(D, limits, strict=True)
    ]
    return np.array(counts, dtype=np.intp)


def _count_on_device(D: Array, limits: Floats) -> Indices:
    """`_count_row_by_row` on a device, with one pass per limit over the whole block."""
    xp = namespace(D)
    counts = [xp.sum(column[:, None] >= D, axis=1) for column in on_device_of(limits, D).T]
    return to_numpy(xp.stack(counts, axis=1)).astype(np.intp)
