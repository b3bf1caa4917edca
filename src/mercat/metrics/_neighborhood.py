"""Preservation of neighbourhoods, and neighbourhoods of labelled classes."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import mode

from .._data.arrays import to_numpy
from .._data.checks import generator
from .._parameters import PARAMETERS
from ._correlation import mean
from ._nearest import nearest, ranks
from ._points import (
    N_POINTS,
    Geometry,
    Indices,
    Points,
    check_embedding,
    check_k,
    check_labels,
    check_pair,
    check_points,
    on_device_of,
    sample_points,
)
from ._score import Score

# Default numbers of neighbours.
N_COMPARED = 50  # neighborhood_preservation, as in the paper
N_RANKED = 15  # trustworthiness and continuity
N_VOTERS = 10  # knn_accuracy


def neighborhood_preservation(
    X: Any,
    Y: Any,
    *,
    k: int = N_COMPARED,
    n_spectral: int | Literal["auto"] | None = None,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Mean Jaccard index of the k nearest neighbours in the data and in the embedding.

    .. math:: \frac 1n \sum_i
              \frac{|\mathrm{knn}(X, i) \cap \mathrm{knn}(Y, i)|}
                   {|\mathrm{knn}(X, i) \cup \mathrm{knn}(Y, i)|}

    Parameters
    ----------
    X, Y, geometry, random_state
        As in :func:`angle_preservation`.
    k : int, default=50
        Number of neighbours per point, excluding the point itself.
    n_spectral : int, "auto" or None, default=None
        Number of principal components to which X is reduced first, or "auto" to choose it by ScreeNOT, as in
        the paper. None uses X unchanged.
    n_points : int or None, default=5000
        Size of the random sample of points whose neighbours, among all n points, are compared. None means
        all points.

    Returns
    -------
    Score
        The mean, in [0, 1], and its standard error. A random embedding scores about k / (2n).

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import neighborhood_preservation
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> print(neighborhood_preservation(X, -X, k=2))
    1.0000
    """
    data, embedding = check_pair(X, Y, geometry)
    check_k(k, len(data))
    PARAMETERS["n_spectral"].check("n_spectral", n_spectral)
    if n_spectral is not None:
        from .._reduce.reducer import denoise

        coordinates = data.coordinates
        if data.on_host:
            data = check_points(denoise(coordinates, n_spectral), "X")
        else:
            denoised = denoise(to_numpy(coordinates), n_spectral)
            data = check_points(on_device_of(denoised, coordinates), "X")
    queries = sample_points(len(data), n_points, generator(random_state))
    return shared_neighbors(nearest(data, queries, k), nearest(embedding, queries, k), len(data))


def shared_neighbors(in_data: Indices, in_embedding: Indices, n: int) -> Score:
    """Mean Jaccard index of the neighbours (m, k) of m out of n points."""
    k = in_data.shape[1]
    merged = np.sort(np.hstack([in_data, in_embedding]), axis=1)
    shared = np.count_nonzero(merged[:, 1:] == merged[:, :-1], axis=1)
    return mean(shared / (2 * k - shared), n)


def trustworthiness(
    X: Any,
    Y: Any,
    *,
    k: int = N_RANKED,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Extent to which neighbours in the embedding are neighbours in the data.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)}
              \sum_i \sum_{j \in \mathrm{knn}(Y, i)} \max(0, r_X(i, j) - k)

    where :math:`r_X(i, j)` is the rank of j among the neighbours of i in X. False neighbours lower the score,
    distant ones most.

    Parameters
    ----------
    X, Y, geometry, n_points, random_state
        As in :func:`neighborhood_preservation`.
    k : int, default=15
        Number of neighbours per point, less than half of the points.

    Returns
    -------
    Score
        A number in [0, 1], and its standard error.

    See Also
    --------
    continuity : the same with X and Y exchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import trustworthiness
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> print(trustworthiness(X, X), trustworthiness(X, X[:, :2]))
    1.0000 0.864
    """
    data, embedding = check_pair(X, Y, geometry)
    return _rank_score(data, embedding, k, n_points, random_state)


def continuity(
    X: Any,
    Y: Any,
    *,
    k: int = N_RANKED,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Extent to which neighbours in the data are neighbours in the embedding.

    .. math:: 1 - \frac{2}{n k (2n - 3k - 1)}
              \sum_i \sum_{j \in \mathrm{knn}(X, i)} \max(0, r_Y(i, j) - k)

    where :math:`r_Y(i, j)` is the rank of j among the neighbours of i in Y. Neighbours that the embedding
    separates lower the score.

    Parameters
    ----------
    X, Y, k, geometry, n_points, random_state
        As in :func:`trustworthiness`.

    Returns
    -------
    Score
        A number in [0, 1], and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import continuity
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> print(continuity(X, X), continuity(X, X[:, :2]))
    1.0000 0.942
    """
    data, embedding = check_pair(X, Y, geometry)
    return _rank_score(embedding, data, k, n_points, random_state)


def knn_accuracy(
    Y: Any,
    labels: Any,
    *,
    k: int = N_VOTERS,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    """Leave-one-out accuracy of a k-nearest-neighbours classifier on the embedding.

    A point is classified correctly if its class is the most frequent among its k nearest neighbours. Ties go
    to the first class in sorted order, as in scikit-learn.

    Parameters
    ----------
    Y : array-like of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    labels : array-like of shape (n,)
        Class of each point: numbers or strings, none missing.
    k : int, default=10
        Number of neighbours per point.
    geometry, n_points, random_state
        As in :func:`neighborhood_preservation`.

    Returns
    -------
    Score
        The accuracy, in [0, 1], and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import knn_accuracy
    >>> Y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> print(knn_accuracy(Y, ["a", "a", "a", "b", "b", "b"], k=2))
    1.0000
    """
    embedding = check_embedding(Y, geometry)
    n = len(embedding)
    codes = check_labels(labels, n)
    check_k(k, n)
    queries = sample_points(n, n_points, generator(random_state))
    return vote_accuracy(codes, queries, nearest(embedding, queries, k))


def vote_accuracy(codes: Indices, queries: Indices, neighbors: Indices) -> Score:
    """Fraction of the points `queries` whose class is the most frequent among their neighbours (m, k)."""
    votes = mode(codes[neighbors], axis=1).mode
    return mean((votes == codes[queries]).astype(np.float64), len(codes))


def class_connectivity(
    Y: Any,
    labels: Any,
    *,
    k: int = 10,
    geometry: Geometry = "auto",
) -> Score:
    """Fraction of points in the largest connected component of their class.

    Two points of a class are connected if one is among the k nearest neighbours of the other in the
    embedding. An embedding that breaks a class into islands scores low, even if the neighbourhoods are pure.

    Parameters
    ----------
    Y : array-like of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    labels : array-like of shape (n,)
        Class of each point: numbers or strings, none missing.
    k : int, default=10
        Number of neighbours per point.
    geometry
        As in :func:`neighborhood_preservation`.

    Returns
    -------
    Score
        The fraction, in (0, 1]. All points are used, so its standard error is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import class_connectivity
    >>> Y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> print(class_connectivity(Y, ["a", "a", "a", "a", "b", "b"], k=1))
    0.8333
    """
    embedding = check_embedding(Y, geometry)
    n = len(embedding)
    codes = check_labels(labels, n)
    check_k(k, n)
    i = np.repeat(np.arange(n), k)
    j = nearest(embedding, np.arange(n), k).ravel()
    within = codes[i] == codes[j]
    i, j = i[within], j[within]
    graph = csr_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n))
    component = connected_components(graph, directed=False)[1]
    sizes = np.bincount(component)
    largest = np.zeros(codes.max() + 1, dtype=np.intp)
    np.maximum.at(largest, codes, sizes[component])  # all points of a component have the same class
    return Score(float(largest.sum() / n))


def _rank_score(
    reference: Points,
    compared: Points,
    k: int,
    n_points: int | None,
    random_state: int | np.random.Generator | None,
) -> Score:
    """One minus the scaled excess rank in `reference` of the k nearest neighbours in `compared`."""
    n = len(reference)
    if not isinstance(k, numbers.Integral) or not 1 <= k < n / 2:
        raise ValueError(
            f"k must be at least 1 and less than half the number of points, {n}, got {k!r}."
        )
    queries = sample_points(n, n_points, generator(random_state))
    return excess_rank(ranks(reference, queries, nearest(compared, queries, k)), n)


def excess_rank(ranks: Indices, n: int) -> Score:
    """One minus the scaled excess over k of the ranks (m, k) in one space of the neighbours in the other."""
    k = ranks.shape[1]
    penalty = np.maximum(ranks - k, 0).sum(axis=1)
    return mean(1 - 2 * penalty / (k * (2 * n - 3 * k - 1)), n)
