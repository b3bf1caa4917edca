"""Classical scaling: X_hat from a matrix of distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.checks import as_floats
from .components import largest_eigenvectors
from .rank import screenot_rank


class DistanceReducer(NamedTuple):
    """Maps distances to the training points to X_hat, by Gower's formula."""

    mean: np.ndarray  # (n,) mean squared distance of each training point, in squares of `unit`
    axes: np.ndarray  # (n, r) eigenvectors divided by square roots of eigenvalues
    explained_variance: np.ndarray
    unit: float  # largest distance
    spread: float  # root mean squared norm of the training points, in units of `unit`

    def project(self, distances: Any) -> np.ndarray:
        """X_hat (b x r) of points with these distances (b x n) to the training points."""
        squares = (np.asarray(distances, dtype=np.float64) / self.unit) ** 2
        gram = -0.5 * (squares - squares.mean(axis=1, keepdims=True) - self.mean + self.mean.mean())
        return np.asarray(gram @ self.axes / self.spread)

    def gram(self, distances: Any, columns: np.ndarray) -> np.ndarray:
        """Inner products of some centred training points, in units of the squared spread.

        `distances` (b x n) are their distances to all training points; `columns` (b) are their indices.
        """
        squares = (np.asarray(distances, dtype=np.float64) / self.unit) ** 2
        mean = squares.mean(axis=1)
        gram = squares[:, columns] - mean[:, None] - mean[None, :] + self.mean.mean()
        return np.asarray(-0.5 * gram / self.spread**2)


def fit_distances(distances: np.ndarray, n_spectral: int | str | None) -> DistanceReducer:
    """Classical scaling of a matrix of distances; negative eigenvalues are dropped."""
    n, distances = len(distances), as_floats(distances)
    unit = float(distances.max()) or 1.0
    squares = (distances / unit) ** 2
    mean = squares.mean(axis=0)
    gram = -0.5 * (squares - mean[:, None] - mean[None, :] + mean.mean())
    k = n if n_spectral is None or n_spectral == "auto" else min(int(n_spectral), n)
    values, vectors = largest_eigenvectors(gram, k)
    positive = max(1, int(np.sum(values > 1e-12 * values[:1] * n)))
    if n_spectral == "auto":
        k = screenot_rank(np.sqrt(values[:positive]), (n, positive))
    k = min(k, positive)
    values, vectors = values[:k], vectors[:, :k]
    signs = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    vectors = vectors * np.where(signs < 0, -1, 1)
    spread = float(np.sqrt(values.sum() / n)) or 1.0
    axes = vectors / np.sqrt(np.where(values > 0, values, 1))
    return DistanceReducer(mean, axes, values / max(n - 1, 1) * unit**2, unit, spread)
