"""Nearest points and ranks, exact for the points asked about, in blocks of bounded memory."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._backend import Workers, blocks, n_threads
from ._points import Floats, Indices, Points

ROWS, COLUMNS = 64, 2**16  # a block of squared distances, 32 MB
SLACK = 1e-9  # relative, so that equal distances stay equal through rounding


def nearest(points: Points, queries: Indices, k: int) -> Indices:
    """The k nearest points of each query point (m, k), nearest first, itself excluded."""
    centred = points.coordinates - _centre(points).astype(points.coordinates.dtype)
    finder = NearestNeighbors(n_neighbors=k + 1).fit(centred)
    found = finder.kneighbors(centred[queries], return_distance=False)
    itself = found == queries[:, None]
    # Among more than k duplicates the query may not be found: the last one goes instead.
    itself[~itself.any(axis=1), -1] = True
    return np.asarray(found[~itself].reshape(len(queries), k), dtype=np.intp)


def count_within(points: Points, queries: Indices, radii: Floats) -> Indices:
    """How many points lie within each of a query's radii (m, q), itself excluded."""
    return _count(points, queries, points.chord(radii) * (1 + SLACK))


def ranks(points: Points, queries: Indices, others: Indices) -> Indices:
    """Rank of others (m, q) among a query's neighbours, 1 the nearest; ties share the best."""
    distances = points.distances(queries[:, None], others)
    return 1 + _count(points, queries, points.chord(distances) * (1 - SLACK))


def _centre(points: Points) -> Floats:
    # Squared distances as |p|^2 - 2 p.q + |q|^2 cancel where the data lies far from zero.
    return np.asarray(points.coordinates.mean(axis=0, dtype=np.float64))


def _count(points: Points, queries: Indices, radii: Floats) -> Indices:
    centre = _centre(points)
    n = len(points)

    def centred(rows: Indices | slice) -> Floats:
        return np.asarray(points.coordinates[rows] - centre)  # in float64, as the centre is

    def count(rows: slice) -> Indices:
        Q = centred(queries[rows])
        limits = radii[rows] ** 2
        counts = np.zeros(limits.shape, dtype=np.intp)
        for columns in blocks(n, COLUMNS):
            P = centred(columns)
            D = Q @ P.T
            D *= -2
            D += np.einsum("id,id->i", P, P)
            D += np.einsum("id,id->i", Q, Q)[:, None]
            own = (queries[rows] >= columns.start) & (queries[rows] < columns.stop)
            D[own, queries[rows][own] - columns.start] = np.inf
            counts += _count_row_by_row(D, limits)
        return counts

    with Workers(n_threads(-1)) as workers:
        return np.concatenate(list(workers.map(count, blocks(len(queries), ROWS))))


def _count_row_by_row(D: Floats, limits: Floats) -> Indices:
    """How many entries of each row of D are at most each of that row's limits.

    A pass a limit beats sorting the row: comparing is vectorised, a row fits in the cache.
    """
    found = [
        [np.count_nonzero(limit >= d) for limit in row] for d, row in zip(D, limits, strict=True)
    ]
    return np.array(found, dtype=np.intp)
