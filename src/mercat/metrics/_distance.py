"""Preservation of the order of distances: over pairs, triplets and class centroids."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import euclidean_distances

from .._data.arrays import blocks, to_numpy
from .._data.checks import check_integer, generator
from .._math.sphere import normalize
from ._correlation import spearman
from ._points import (
    BLOCK,
    Floats,
    Geometry,
    Indices,
    Points,
    SparsePoints,
    check_labels,
    check_pair,
)
from ._score import Score

N_PAIRS, N_TRIPLETS = 1_000_000, 200_000  # sample sizes


def distance_preservation(
    X: Any,
    Y: Any,
    *,
    geometry: Geometry = "auto",
    n_pairs: int = N_PAIRS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Spearman's rank correlation between distances in the data and in the embedding.

    .. math:: \mathrm{corr}\big(\mathrm{rank}\, d(X_i, X_j),\ \mathrm{rank}\, d(Y_i, Y_j)\big)
              \quad \text{over pairs } i < j

    Distances are Euclidean, or arc lengths where Y is on the sphere.

    Parameters
    ----------
    X, Y, geometry, random_state
        As in :func:`angle_preservation`.
    n_pairs : int, default=1_000_000
        Size of the sample of pairs, drawn with replacement. If there are no more pairs than this
        (n up to 1414), all are used.

    Returns
    -------
    Score
        The correlation, in [-1, 1], and its standard error. nan if all distances are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import distance_preservation
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> print(distance_preservation(X, [[0.0], [2.0], [3.0]]))
    0.5000
    """
    data, embedding = check_pair(X, Y, geometry)
    check_integer("n_pairs", n_pairs, 2)
    rng = generator(random_state)
    n = len(data)
    exact = n * (n - 1) // 2 <= n_pairs
    if exact:
        return spearman(_all_distances(data), _all_distances(embedding), exact=True)
    i, j = _random_tuples(n, 2, n_pairs, rng)
    return spearman(data.distances(i, j), embedding.distances(i, j), exact=False)


def _all_distances(points: Points) -> Floats:
    """Distances of all pairs i < j, in the order of `numpy.triu_indices`."""
    if isinstance(points, SparsePoints):
        return np.asarray(
            squareform(euclidean_distances(points.coordinates), force="tovector", checks=False)
        )
    if points.on_host and not points.on_sphere:
        return np.asarray(pdist(points.take(slice(None))))
    return points.distances(*np.triu_indices(len(points), 1))


def random_triplet_accuracy(
    X: Any,
    Y: Any,
    *,
    geometry: Geometry = "auto",
    n_triplets: int = N_TRIPLETS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Fraction of triplets (i, j, k) in which the same one of j and k is nearer to i in X and in Y.

    .. math:: P\big[\mathrm{sign}(d(X_i, X_j) - d(X_i, X_k))
              = \mathrm{sign}(d(Y_i, Y_j) - d(Y_i, Y_k))\big]

    A tie agrees only with a tie. A random embedding scores 1/2 on data without ties.

    Parameters
    ----------
    X, Y, geometry, random_state
        As in :func:`angle_preservation`.
    n_triplets : int, default=200_000
        Size of the sample of triplets, drawn with replacement. If there are no more triplets than this
        (n up to 74), all are used.

    Returns
    -------
    Score
        The fraction, in [0, 1], and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import random_triplet_accuracy
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> print(random_triplet_accuracy(X, [[0.0], [2.0], [3.0]]))
    0.6667
    """
    data, embedding = check_pair(X, Y, geometry)
    check_integer("n_triplets", n_triplets, 2)
    rng = generator(random_state)
    n = len(data)
    exact = n * (n - 1) * (n - 2) // 2 <= n_triplets
    if exact:
        i, j, k = _all_triplets(n)
    else:
        i, j, k = _random_tuples(n, 3, n_triplets, rng)
    share = float(np.mean(_order(data, i, j, k) == _order(embedding, i, j, k)))
    return Score(share, 0.0 if exact else np.sqrt(share * (1 - share) / n_triplets))


def _order(points: Points, i: Indices, j: Indices, k: Indices) -> Floats:
    """-1 where j is nearer to i than k is, 0 at the same distance, 1 where it is farther."""
    # A full distance matrix is cheaper only if there are at least n**2 triplets.
    if len(points) ** 2 > len(i):
        return np.asarray(np.sign(points.distances(i, j) - points.distances(i, k)))
    D = squareform(_all_distances(points))
    return np.asarray(np.sign(D[i, j] - D[i, k]))


def centroid_preservation(X: Any, Y: Any, labels: Any, *, geometry: Geometry = "auto") -> Score:
    """Spearman's rank correlation between distances of class centroids in X and in Y.

    The centroid of a class is the mean of its points; on the sphere, that mean is normalized. All points are
    used, whatever their number.

    Parameters
    ----------
    X, Y, geometry
        As in :func:`angle_preservation`.
    labels : array-like of shape (n,)
        Class of each point: numbers or strings, none missing.

    Returns
    -------
    Score
        The correlation, in [-1, 1]. nan if there are fewer than three classes or if all distances are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import centroid_preservation
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0], [30.0]])
    >>> print(centroid_preservation(X, -X, ["a", "a", "b", "b", "c"]))
    1.0000
    """
    data, embedding = check_pair(X, Y, geometry)
    codes = check_labels(labels, len(data))
    i, j = np.triu_indices(codes.max() + 1, 1)
    if len(i) < 3:
        return Score(np.nan)
    distances = [_centroids(points, codes).distances(i, j) for points in (data, embedding)]
    return spearman(*distances, exact=True)


def _centroids(points: Points, codes: Indices) -> Points:
    n = len(codes)
    members = csr_array((np.ones(n), (codes, np.arange(n))))
    row_blocks = blocks(n, max(1, BLOCK // points.coordinates.shape[1]))
    sums = sum(members[:, block] @ to_numpy(points.take(block)) for block in row_blocks)
    means = sums / np.bincount(codes)[:, None]
    if not points.on_sphere:
        return Points(means)
    lengths = np.linalg.norm(means, axis=1)
    if np.any(lengths < 1e-12):
        raise ValueError(
            "labels must have classes with a centroid on the sphere, got a class whose points sum to zero."
        )
    return Points(normalize(means), on_sphere=True)


def _random_tuples(n: int, length: int, size: int, rng: np.random.Generator) -> tuple[Indices, ...]:
    """Draw `size` independent uniform tuples of `length` distinct points."""
    chosen: list[Indices] = []
    for n_chosen in range(length):
        new = rng.integers(n - n_chosen, size=size)
        # Skip the points chosen before, smallest first.
        for earlier in np.sort(np.array(chosen), axis=0) if chosen else []:
            new += new >= earlier
        chosen.append(new)
    return tuple(chosen)


def _all_triplets(n: int) -> tuple[Indices, Indices, Indices]:
    """Every apex i with every pair j < k of the others."""
    j, k = np.triu_indices(n - 1, 1)
    i = np.repeat(np.arange(n), len(j))
    j, k = np.tile(j, n), np.tile(k, n)
    return i, j + (j >= i), k + (k >= i)
