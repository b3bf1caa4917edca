"""Diagnostics of a fit; `trust.py` turns them into warnings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from .._data.arrays import Array, blocks, namespace, to_numpy
from .._data.threads import Workers
from .._detail.graphs import Graph, components_of
from .._reduce.components import largest_eigenvectors, prepare_rows
from .._reduce.distances import DistanceReducer
from .._reduce.metrics import MetricReducer
from .losses import AngleLoss

# Data are crowded if at most this share of the points is farther from the median than this distance, in units
# of the spread of the data.
_MAX_FAR_SHARE, _FAR = 0.05, 0.1
_COLUMNS_PER_BLOCK = 128  # few enough that a block fits the cache of a core
_ROWS_FOR_CUT = 500  # rows used to estimate what the components drop
# The total of which each column has a share, by metric.
SHARED = {
    "euclidean": "the variance",
    "cosine": "the length of the rows",
    "correlation": "the length of the rows",
    "manhattan": "the distances",
    "hamming": "the distances",
    "jaccard": "the distances",
}
_MIN_COSINE_VARIANCE = 1e-6  # smaller variances are rounding errors in single precision
_MIN_DROPPED = 1e-6  # smaller fractions of the variance are rounding errors


class Cut(NamedTuple):
    """Variance kept and dropped by the principal components."""

    kept: float  # fraction of the variance
    largest: float  # largest variance of a dropped component, divided by their mean


class Dominance(NamedTuple):
    """The column with the largest share of the total that `SHARED` names."""

    column: int
    share: float
    others: float  # the share of all other columns, accurate even if it is tiny


class HeldOutCorrelations(NamedTuple):
    """Correlations of angles, for points that are not landmarks."""

    to_landmarks: float  # correlation with landmarks as legs
    among: float  # correlation with points that are not landmarks as legs


class Diagnostics(NamedTuple):
    """Diagnostics of a fit; None for those that do not apply."""

    cut: Cut | None = None
    crowding: float | None = None  # see `crowding`, in units of the spread of the data
    unseen: HeldOutCorrelations | None = None
    n_components: int | None = None  # number of connected components of a given graph of neighbours
    dominance: Dominance | None = None
    # Whether neighbours are as far from each other as other points, so that `detail` has no effect.
    neighbors_are_far: bool = False


def find_cut(
    reducer: Any, rows: Any, X_hat: np.ndarray, indices: np.ndarray, order: np.ndarray
) -> Cut | None:
    """Variance that the components keep and drop, from some rows of the data; None if they drop none.

    `indices` are the indices of these rows in the data, and X_hat their components. The first rows in `order`
    are used.
    """
    columns = rows.shape[1]
    if isinstance(reducer, MetricReducer):
        columns = len(reducer.points)
    elif isinstance(reducer, DistanceReducer) and indices.max() >= columns:
        return None  # distances to landmarks alone
    if X_hat.shape[1] == columns:
        return None
    sample = order[:_ROWS_FOR_CUT]
    gram = reducer.gram(rows[sample], indices[sample])
    X_hat = X_hat[sample].astype(np.float64)
    dropped_gram = gram - X_hat @ X_hat.T
    n_dropped = min(len(gram) - 1, columns) - X_hat.shape[1]
    dropped, total = float(np.trace(dropped_gram)), float(np.trace(gram))
    if n_dropped < 1 or not dropped > _MIN_DROPPED * total:
        return None
    largest = float(largest_eigenvectors(dropped_gram, 1)[0][0])
    return Cut(float(np.sum(X_hat**2) / total), largest / (dropped / n_dropped))


def find_dominance(rows: Any, metric: Any) -> Dominance | None:
    """The column with the largest share of the variance of some rows; None if this does not apply.

    Other metrics have other totals than the variance: the squared lengths of the rows for "cosine" and
    "correlation"; the absolute deviations from the medians for "manhattan"; the pairs of rows that differ in
    a column for "hamming"; and those of which only one is nonzero in a column for "jaccard".
    """
    if not isinstance(metric, str) or metric not in SHARED or rows.shape[1] < 2:
        return None
    sizes = _column_sizes(rows, metric)
    largest, total = int(sizes.argmax()), float(sizes.sum())
    if not total > 0:
        return None
    others = float(np.delete(sizes, largest).sum()) / total
    if metric == "correlation":  # a centred row never has only one nonzero column
        others = max(0.0, others - 1 / len(sizes))
    return Dominance(largest, 1 - others, others)


def _column_sizes(rows: Any, metric: str) -> np.ndarray:
    """Mean contribution of each column to the total that `SHARED` names, up to a factor."""
    if metric in ("manhattan", "hamming", "jaccard"):
        if scipy.sparse.issparse(rows):
            return _sparse_column_distances(rows, metric)
        return _column_distances(np.asarray(rows, np.float64), metric)
    if metric == "euclidean" and not scipy.sparse.issparse(rows):
        return _column_variances(to_numpy(rows))
    prepared, offset = prepare_rows(rows, metric)
    if scipy.sparse.issparse(prepared):
        mean = np.asarray(prepared.mean(axis=0)).ravel()
        squares = np.asarray(prepared.multiply(prepared).mean(axis=0)).ravel()
        if metric == "euclidean":
            return np.asarray(np.maximum(squares - mean**2, 0))
        return np.asarray(squares - 2 * (prepared.T @ offset) / len(offset) + np.mean(offset**2))
    dense = to_numpy(prepared - offset[:, None]).astype(np.float64)
    return np.asarray(np.mean(dense * dense, axis=0))


def _column_variances(rows: np.ndarray) -> np.ndarray:
    """Variance of each column, up to a factor."""
    largest = max(float(rows.max(initial=0)), -float(rows.min(initial=0))) or 1.0
    variances = []
    for columns in blocks(rows.shape[1], _COLUMNS_PER_BLOCK):
        dense = rows[:, columns] / np.float64(largest)  # so that squares do not overflow
        dense -= dense.mean(axis=0)
        variances.append(np.mean(dense * dense, axis=0))
    return np.concatenate(variances)


def _column_distances(rows: np.ndarray, metric: str) -> np.ndarray:
    """Mean contribution of each column to the distance between two rows, up to a factor."""
    if metric == "manhattan":
        return np.asarray(np.mean(np.abs(rows - np.median(rows, axis=0)), axis=0))
    if metric == "jaccard":
        rows = (rows != 0).astype(np.float64)
    shares = [np.unique(column, return_counts=True)[1] / len(rows) for column in rows.T]
    return np.array([1 - np.sum(share**2) for share in shares])


def _sparse_column_distances(rows: Any, metric: str) -> np.ndarray:
    """`_column_distances` of a sparse matrix, without a dense copy."""
    n, d = rows.shape
    entries = rows.tocoo()
    present = entries.data != 0
    column, value = entries.coords[1][present], entries.data[present].astype(np.float64)
    if metric == "jaccard":
        value = np.ones(len(value))
    order = np.lexsort((value, column))
    column, value = column[order], value[order]
    counts = np.bincount(column, minlength=d)
    zeros = n - counts
    if metric == "manhattan":
        start, negative = np.cumsum(counts) - counts, np.bincount(column[value < 0], minlength=d)
        # The two middle values of each sorted column: negative values, zeros, positive values.
        middle = np.zeros((2, d))
        for values, rank in zip(middle, ((n - 1) // 2, n // 2), strict=True):
            above = rank >= negative + zeros
            nonzero = above | (rank < negative)
            values[nonzero] = value[(start + rank - above * zeros)[nonzero]]
        median = middle.mean(axis=0)
        deviations = np.bincount(column, np.abs(value - median[column]), minlength=d)
        return np.asarray((deviations + zeros * np.abs(median)) / n)
    first = np.flatnonzero(np.diff(column, prepend=-1) | (np.diff(value, prepend=np.nan) != 0))
    # Number of times that each value occurs in its column.
    repeats = np.diff(first, append=len(column))
    squares = np.bincount(column[first], (repeats / n) ** 2, minlength=d)
    return np.asarray(1 - squares - (zeros / n) ** 2)


def crowding(X_hat: np.ndarray) -> float | None:
    """Median distance between consecutive distinct rows if most points are crowded, else None.

    Points are crowded if all but a few are much closer to the median than the spread of the data.
    """
    X = X_hat.astype(np.float64)
    deviation, difference = X - np.median(X, axis=0), np.diff(X, axis=0)
    if np.mean(np.einsum("ij,ij->i", deviation, deviation) > _FAR**2) > _MAX_FAR_SHARE:
        return None
    distance = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return float(np.median(distance[distance > 0])) if distance.any() else None


def correlation_among(X_hat: Array, Y: Array, workers: Workers) -> float:
    """Correlation between the cosines of data and map over all triples of some points.

    NaN if the cosines of the data are all equal, for example if there are only two distinct points.
    """
    xp = namespace(X_hat)
    loss = AngleLoss(xp.astype(X_hat, xp.float32), line=None, workers=workers)
    return loss.judge(Y).correlation if loss.variance > _MIN_COSINE_VARIANCE else float("nan")


def count_components(affinities: Any) -> int:
    """Number of connected components of a symmetric graph."""
    if isinstance(affinities, Graph):
        return int(np.count_nonzero(np.bincount(to_numpy(components_of(affinities)))))
    # In a symmetric graph, strong components are connected components, found without a transposed copy.
    return int(connected_components(affinities, connection="strong", return_labels=False))
