"""Clusters that are only in the embedding, and neighbours that it tears apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.checks import generator
from ._nearest import _count, nearest, ranks
from ._points import (
    N_POINTS,
    Floats,
    Geometry,
    Indices,
    check_embedding,
    check_k,
    check_pair,
    sample_points,
)
from ._score import Score

_INNER_FRACTION = 0.1  # part of the neighbourhood's area in which points are counted
_MIN_K, _MAX_K, _POINTS_PER_NEIGHBOR = 20, 100, 60  # the default of k is n // 60, from 20 to 100
N_NEIGHBORS = 15  # default number of neighbours in the data
FAR = 0.05  # a neighbour is torn away if more than this fraction of all points is nearer


def false_structure(
    Y: Any,
    *,
    k: int | None = None,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Small-scale clustering of an embedding in excess of a smooth density.

    Let r be the distance of a point to its k-th neighbour. Where the density is smooth, a tenth of the k - 1
    points within r lie in the inner tenth of the area (in p dimensions, within :math:`r \, 0.1^{1/p}`). The
    measure is the mean number of points there, divided by the expected number, minus 1. It is 0 for a smooth
    density of any shape at larger scales, positive for clumps and negative for evenly spaced points.
    Structure is false only if the data have none: use data without clusters, such as noise with the
    spectrum of your data.

    Parameters
    ----------
    Y : array-like of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    k : int or None, default=None
        Number of neighbours. None means n // 60, at least 20 and at most 100.
    geometry, n_points, random_state
        As in :func:`neighborhood_preservation`. On the sphere, areas are areas of caps.

    Returns
    -------
    Score
        The excess and its standard error, which accounts for overlapping neighbourhoods.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import false_structure
    >>> rng = np.random.default_rng(0)
    >>> smooth = rng.normal(size=(3000, 2))
    >>> clumps = (3 * smooth).round() / 3 + 0.02 * rng.normal(size=(3000, 2))
    >>> abs(false_structure(smooth)) < 0.05, false_structure(clumps) > 1
    (True, True)
    """
    embedding = check_embedding(Y, geometry)
    n = len(embedding)
    if k is None:
        k = min(max(_MIN_K, n // _POINTS_PER_NEIGHBOR), _MAX_K, n - 1)
    check_k(k, n)
    queries = sample_points(n, n_points, generator(random_state))
    last = nearest(embedding, queries, k)[:, -1]
    radius = embedding.chord(embedding.distances(queries, last))
    dimension = 2 if embedding.on_sphere else embedding.coordinates.shape[1]
    # Chords: the area of a cap is proportional to the square of its chord.
    inner = _count(embedding, queries, (radius * _INNER_FRACTION ** (1 / dimension))[:, None])[:, 0]
    relative = inner / (_INNER_FRACTION * max(k - 1, 1))
    independent = min(len(queries), max(n / k, 1))
    error = float(np.std(relative) / np.sqrt(independent))
    return Score(float(np.mean(relative) - 1), error)


def largest_near_rank(k: int, n: int, far: float = FAR) -> int:
    """Largest rank on a map of n points at which a neighbour does not count as torn away."""
    return max(k, int(far * n))


def torn_neighbors(
    X: Any,
    Y: Any,
    *,
    k: int = N_NEIGHBORS,
    far: float = FAR,
    geometry: Geometry = "auto",
) -> Floats:
    """Fraction of each point's nearest neighbours in the data that are far away in the embedding.

    A neighbour is torn away if, in the embedding, it is neither among the k nearest points nor among the
    nearest fraction `far` of all points. Points on both sides of a tear have high values.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data.
    Y : array-like of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    k : int, default=15
        Number of nearest neighbours of each point in the data.
    far : float, default=0.05
        Fraction of all points that may be nearer in the embedding.
    geometry
        As in :func:`neighborhood_preservation`.

    Returns
    -------
    torn : ndarray of shape (n,)
        Fractions in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import torn_neighbors
    >>> X = np.arange(100.0)[:, None]
    >>> Y = np.where(X < 50, X, X + 1000)  # torn in the middle
    >>> torn = torn_neighbors(X, Y, k=4)
    >>> torn[[0, 49, 50, 99]]
    array([0. , 0.5, 0.5, 0. ])
    """
    if not 0 < far < 1:
        raise ValueError(f"far must be a number above 0 and below 1, got {far!r}.")
    data, embedding = check_pair(X, Y, geometry)
    n = len(data)
    check_k(k, n)
    all_points = np.arange(n)
    return torn_shares(ranks(embedding, all_points, nearest(data, all_points, k)), n, far)


def torn_shares(ranks: Indices, n: int, far: float = FAR) -> Floats:
    """Fraction of torn neighbours, given the ranks (m, k) of true neighbours in an embedding of n points."""
    return np.asarray(np.mean(ranks > largest_near_rank(ranks.shape[1], n, far), axis=1))
