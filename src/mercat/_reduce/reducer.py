"""Map X to X_hat for any metric: select the reducer and apply it to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .._data.arrays import Array, blocks, in_tiles, namespace
from .._data.source import ROWS_PER_BLOCK, RowSource
from .._data.threads import Workers
from .components import ComponentReducer, fit_components, prepare_rows
from .distances import DistanceReducer, fit_distances
from .metrics import MetricReducer, fit_metric

Reducer = ComponentReducer | DistanceReducer | MetricReducer
LINEAR = ("euclidean", "cosine", "correlation")  # metrics with principal components


def fit_reducer(rows: RowSource, n_spectral: int | str | None, *, metric: Any) -> Reducer:
    """Fit the reducer for a metric: principal components of rows, or classical scaling of distances.

    Precomputed distances may be distances to landmarks only, which are the first rows.
    """
    if metric == "precomputed":
        return fit_distances(rows.X[: rows.shape[1]], n_spectral)
    if metric not in LINEAR:
        return fit_metric(rows, n_spectral, metric=metric)
    return fit_components(rows, n_spectral, metric=metric)


def denoise(X: Any, n_spectral: int | str | None) -> np.ndarray:
    """X_hat of all rows, in units of the spread of the data."""
    with Workers(1) as workers:
        reducer = fit_components(RowSource(X, workers), n_spectral, metric="euclidean")
        return np.asarray(project_all(reducer, X, workers))


def project_all(reducer: Any, X: Any, workers: Workers) -> Array:
    """X_hat of all rows of X, computed in blocks."""
    parts = blocks(X.shape[0], ROWS_PER_BLOCK)
    projected = list(workers.map(lambda b: project_rows(reducer, X[b]), parts))
    return namespace(projected[0]).concat(projected)


def project_rows(reducer: Any, rows: Any) -> Array:
    """X_hat of rows; in memory, the result of a row is bit-identical whatever the other rows are."""
    if scipy.sparse.issparse(rows):  # SciPy multiplies row by row
        return np.asarray(reducer.project(rows))
    return in_tiles(lambda tile: (reducer.project(tile),), rows)[0]


def full_rows(reducer: Any, rows: Any) -> Array:
    """Rows in the geometry of the metric with all components; for other reducers, X_hat."""
    if isinstance(reducer, ComponentReducer):
        prepared, offset = prepare_rows(rows, reducer.metric)
        dense = prepared.toarray() if scipy.sparse.issparse(prepared) else prepared
        return dense - offset[:, None]
    return project_rows(reducer, rows)
