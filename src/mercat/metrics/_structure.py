"""What an embedding shows that is not in the data, and where it tears the data apart."""

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

_INNER = 0.1  # share of the area around a point that is looked into
_LEAST, _MOST, _POINTS_EACH = 20, 100, 60  # neighbours: fewer of few points
N_TRUE = 15  # true neighbours that may be torn away
FAR = 0.05  # share of all points that are nearer, beyond which a neighbour is torn away


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
    measure is the mean number of points there over its expected value, minus 1: 0 for a smooth density,
    whatever its shape at larger scales, above 0 for clumps, below 0 for points that keep apart. Structure is
    false only if the data have none: use it on data without clusters, such as noise of the same spectrum.

    Parameters
    ----------
    Y : array-like of shape (n, p)
        The embedding.
    k : int or None, default=None
        Number of neighbours. None means a sixtieth of the points, at least 20 and at most 100.
    geometry, n_points, random_state
        As in :func:`neighborhood_preservation`. On the sphere, areas are those of caps.

    Returns
    -------
    Score
        The excess and its standard error, which takes into account that neighbourhoods overlap.

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
        k = min(max(_LEAST, n // _POINTS_EACH), _MOST, n - 1)
    check_k(k, n)
    queries = sample_points(n, n_points, generator(random_state))
    last = nearest(embedding, queries, k)[:, -1]
    radius = embedding.chord(embedding.distances(queries, last))
    dimension = 2 if embedding.on_sphere else embedding.coordinates.shape[1]
    # Chords: the area of a cap is proportional to the square of its chord.
    inner = _count(embedding, queries, (radius * _INNER ** (1 / dimension))[:, None])[:, 0]
    relative = inner / (_INNER * max(k - 1, 1))
    independent = min(len(queries), max(n / k, 1))
    error = float(np.std(relative) / np.sqrt(independent))
    return Score(float(np.mean(relative) - 1), error)


def most_nearer(k: int, n: int, far: float = FAR) -> int:
    """Number of points that may lie nearer on a map of n points than one of k neighbours that is not torn."""
    return max(k, int(far * n))


def torn_neighbors(
    X: Any,
    Y: Any,
    *,
    k: int = N_TRUE,
    far: float = FAR,
    geometry: Geometry = "auto",
) -> Floats:
    """For each point, the share of its true neighbours that lie far away in the embedding.

    A neighbour of a point in the data is torn away if more than the share `far` of all points, and more than
    k points, lie nearer to the point in the embedding. Points on both sides of a tear have high values.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The data.
    Y : array-like of shape (n, p)
        The embedding.
    k : int, default=15
        Number of true neighbours of each point.
    far : float, default=0.05
        Share of the points that may lie nearer.
    geometry
        As in :func:`neighborhood_preservation`.

    Returns
    -------
    torn : ndarray of shape (n,)
        Shares in [0, 1].

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
    everyone = np.arange(n)
    return torn_shares(ranks(embedding, everyone, nearest(data, everyone, k)), n, far)


def torn_shares(ranks: Indices, n: int, far: float = FAR) -> Floats:
    """Share of torn neighbours by the ranks (m, k), among n points of the embedding, of true neighbours."""
    return np.asarray(np.mean(ranks > most_nearer(ranks.shape[1], n, far), axis=1))
