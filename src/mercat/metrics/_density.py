"""Density preservation: is the embedding dense where the data are dense?"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.checks import generator
from ._correlation import pearson
from ._nearest import count_within, nearest
from ._points import N_POINTS, Floats, Geometry, Indices, Points, check_k, check_pair, sample_points
from ._score import Score

N_DENSITY = 25  # the mean distance to this neighbour is the radius of the balls


def density_preservation(
    X: Any,
    Y: Any,
    *,
    k: int = N_DENSITY,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Pearson correlation between local densities of the data and of the embedding.

    The density at a point is the number of points in a ball around it. All balls of a space have the same
    radius, the mean distance from a point to its k-th nearest neighbour.

    .. math:: \mathrm{corr}\big(\#\{j : d(X_i, X_j) \le \bar k_X\},\
              \#\{j : d(Y_i, Y_j) \le \bar k_Y\}\big)

    Parameters
    ----------
    X, Y, geometry, random_state
        As in :func:`angle_preservation`.
    k : int, default=25
        The radius is the mean distance to the k-th nearest neighbour.
    n_points : int or None, default=5000
        Size of the random sample of points at which the density is measured; all n points are counted in
        the balls. None means all points.

    Returns
    -------
    Score
        The correlation, in [-1, 1], and its standard error. nan if a density is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import density_preservation
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> print(density_preservation(X, 2 * X), density_preservation(X, X[:, :2]))
    1.0000 0.744
    """
    data, embedding = check_pair(X, Y, geometry)
    check_k(k, len(data))
    queries = sample_points(len(data), n_points, generator(random_state))
    in_data, in_embedding = (_density(points, queries, k) for points in (data, embedding))
    return pearson(in_data, in_embedding, len(data))


def _density(points: Points, queries: Indices, k: int) -> Floats:
    """Number of points within the mean distance to the k-th neighbour, for each query point."""
    radii = np.full((len(queries), 1), mean_distance(points, queries, nearest(points, queries, k)))
    return count_within(points, queries, radii)[:, 0].astype(np.float64)


def mean_distance(points: Points, queries: Indices, neighbors: Indices) -> float:
    """Mean distance from the query points to the last of their neighbours (m, k)."""
    return float(np.mean(points.distances(queries, neighbors[:, -1])))
