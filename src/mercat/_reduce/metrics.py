"""X_hat for non-Euclidean metrics, from distances to landmarks.

As for "cosine", the distances of the metric become squared Euclidean distances. The square roots of
Manhattan, Hamming and Jaccard distances are Euclidean (Schoenberg; for Jaccard, Gower and Legendre 1986), so
classical scaling represents them exactly. Distances computed by a function are used unchanged; their
non-Euclidean part is dropped.

Landmark MDS (de Silva and Tenenbaum 2004): a sample of the rows is scaled, and every training or new row is
placed by its distances to the sample. Memory and time are linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist

from .._data.arrays import blocks
from .._data.sampling import sample_of
from .._data.source import RowSource
from .distances import DistanceReducer, fit_distances

_LANDMARKS = 1000
_LANDMARKS_OF_FUNCTIONS = 300  # fewer, since a function is called for each pair
_MAX_VALUES = 50_000_000  # landmarks x columns, which limits the number of landmarks
_ROWS_PER_BLOCK = 512
_TOLERANCE = 1e-6  # tolerance of the checks of a function, relative to its largest value


class MetricReducer(NamedTuple):
    """Maps a row of X to X_hat by its distances to landmarks."""

    metric: str | Callable[[np.ndarray, np.ndarray], float]
    points: np.ndarray  # (w, d) the landmarks
    scaling: DistanceReducer

    @property
    def explained_variance(self) -> np.ndarray:
        return self.scaling.explained_variance

    @property
    def unit(self) -> float:
        return self.scaling.unit

    def project(self, rows: Any) -> np.ndarray:
        """X_hat (b x r) of rows (b x d)."""
        return self.scaling.project(root_distances(rows, self.points, self.metric))

    def gram(self, rows: Any, _: np.ndarray) -> np.ndarray:
        """Inner products of rows about the mean of the landmarks, in units of the squared spread."""
        among, to_landmarks = (
            (root_distances(rows, others, self.metric) / self.unit) ** 2
            for others in (_dense(rows), self.points)
        )
        mean = to_landmarks.mean(axis=1)
        gram = among - mean[:, None] - mean[None, :] + self.scaling.mean.mean()
        return np.asarray(-0.5 * gram / self.scaling.spread**2)


def fit_metric(
    rows: RowSource,
    n_spectral: int | str | None,
    *,
    metric: str | Callable[[np.ndarray, np.ndarray], float],
) -> MetricReducer:
    """Classical scaling of a sample of the rows, or of all rows if there are few."""
    n, d = rows.shape
    n_landmarks = _LANDMARKS_OF_FUNCTIONS if callable(metric) else _LANDMARKS
    size = min(n, n_landmarks, max(100, _MAX_VALUES // d))
    chosen = np.arange(n) if size == n else np.sort(sample_of(rows, size).rows)
    points = _dense(rows.take(chosen))
    distances = root_distances(points, points, metric)
    if callable(metric):
        _check_function(distances)
    return MetricReducer(metric, points, fit_distances(distances, n_spectral))


def root_distances(rows: Any, points: np.ndarray, metric: Any) -> np.ndarray:
    """Square roots (b x w) of the distances of the metric; for a function, its values."""
    if callable(metric):
        return np.array(
            [[float(metric(a, b)) for b in points] for a in _dense(rows)], dtype=np.float64
        ).reshape(rows.shape[0], len(points))
    if metric == "jaccard":
        return np.asarray(np.sqrt(_jaccard(rows, points)))
    name = {"manhattan": "cityblock"}.get(metric, metric)
    parts = [
        cdist(_dense(rows[b]).astype(np.float64), points.astype(np.float64), name)
        for b in blocks(rows.shape[0], _ROWS_PER_BLOCK)
    ]
    return np.asarray(np.sqrt(np.concatenate(parts)))


def _jaccard(rows: Any, points: np.ndarray) -> np.ndarray:
    """Jaccard distances of the sets of nonzero columns; 0 if both sets are empty."""
    row_sets = (rows != 0).astype(np.float64)
    point_sets = (points != 0).astype(np.float64)
    common = np.asarray(row_sets @ point_sets.T)
    union = np.asarray(row_sets.sum(axis=1)).reshape(-1, 1) + point_sets.sum(axis=1) - common
    return 1 - np.asarray(np.where(union > 0, common, 1.0) / np.where(union > 0, union, 1.0))


def _dense(rows: Any) -> np.ndarray:
    dense = np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows)
    return dense if dense.dtype in (np.float32, np.float64) else dense.astype(np.float64)


def _check_function(distances: np.ndarray) -> None:
    """Raise ValueError unless the values of a function are distances."""
    if not np.isfinite(distances).all() or distances.min() < 0:
        raise ValueError(
            "metric must be a function that returns finite numbers of at least 0, got "
            f"{distances[~(np.isfinite(distances) & (distances >= 0))][0]}."
        )
    largest = float(distances.max())
    if not largest < 1e150:
        raise ValueError(
            f"metric must be a function that returns numbers below 1e150, got {largest:.3g}."
        )
    for name, gap in (
        ("symmetric", np.abs(distances - distances.T).max()),
        ("0 for equal rows", np.abs(np.diag(distances)).max()),
    ):
        if gap > _TOLERANCE * largest:
            raise ValueError(
                f"metric must be a function that is {name}, got a difference of {gap:.3g}."
            )
