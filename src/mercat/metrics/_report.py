"""Compute all measures of an embedding at once."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._data.arrays import is_torch, to_numpy
from .._data.checks import generator, positions_of
from .._data.columns import is_missing
from .._progress import Progress
from ._angle import angle_preservation
from ._correlation import mean, pearson
from ._density import N_DENSITY, mean_distance
from ._distance import (
    N_PAIRS,
    N_TRIPLETS,
    centroid_preservation,
    distance_preservation,
    random_triplet_accuracy,
)
from ._nearest import counts_and_ranks, nearest
from ._neighborhood import (
    N_COMPARED,
    N_RANKED,
    N_VOTERS,
    excess_rank,
    knn_accuracy,
    neighborhood_preservation,
    shared_neighbors,
    vote_accuracy,
)
from ._points import (
    MIN_POINTS,
    N_POINTS,
    Geometry,
    check_k,
    check_labels,
    check_pair,
    sample_points,
)
from ._score import Report, Score
from ._structure import torn_shares

_SMALL_DATA = 1000  # up to this many points, n_points="auto" means each measure's default
# Neighbours of all points are found if that takes at most this many multiplications, about half a second.
_MAX_EXACT_COST = 300_000_000


def default_k(n: int) -> int:
    """Default number of neighbours to compare: 50, at most half of the n points."""
    return max(1, min(N_COMPARED, (n - 1) // 2))


def report(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    k: int | None = None,
    n_spectral: int | Literal["auto"] | None = None,
    geometry: Geometry = "auto",
    n_points: int | Literal["auto"] | None = "auto",
    random_state: int | np.random.Generator | None = 0,
    verbose: bool = False,
) -> Report:
    """Compute all measures of an embedding, except `class_connectivity` and `false_structure`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The data.
    Y : array-like of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    labels : array-like of shape (n,) or None, default=None
        Class of each point. Adds :func:`knn_accuracy` and :func:`centroid_preservation`, both computed
        from the points whose label is not None or NaN.
    k : int or None, default=None
        Number of neighbours for the neighbourhood preservation. None means 50, at most half of the points.
        The other measures use their defaults, at most half of the points.
    n_spectral : int, "auto" or None, default=None
        Number of principal components to which X is reduced for the neighbourhood preservation, as in
        :func:`neighborhood_preservation`.
    geometry, random_state
        As in :func:`angle_preservation`.
    n_points : int, "auto" or None, default="auto"
        Size of the sample of points, as in :func:`angle_preservation`; None means all. With "auto", the
        report takes less time than the fit of a map. Up to 1000 points, measures use their default samples.
        For more points, neighbours are searched for all points of small data (about 2000 points of 64
        columns), else for at most 1000 points; angles are measured at no more than 400 points, and distances
        for no more than 60,000 pairs and 50,000 triplets. Samples are smaller for data of more than 150
        columns or 30,000 points.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    Report
        A dictionary of :class:`Score` by name, which prints as a table and has ``to_frame()`` for pandas.
        ``torn_neighbors`` is the mean fraction of torn neighbours; lower is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat import metrics
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> metrics.report(X, X[:, :2], labels=X[:, 0] > 0)
    angle_preservation         0.7581 ± 0.0033
    distance_preservation      0.8157
    neighborhood_preservation  0.6955
    density_preservation       0.7436
    trustworthiness            0.8726
    continuity                 0.9532
    torn_neighbors             0.3953
    random_triplet_accuracy    0.83339 ± 0.00083
    knn_accuracy               0.9300
    centroid_preservation      nan
    """
    Y = positions_of("Y", Y)
    data, embedding = check_pair(X, Y, geometry)
    if issparse(X):
        X = data.coordinates  # whose rows can be selected
    n = len(data)
    max_k = (n - 1) // 2  # any map preserves neighbourhoods of all points
    k = default_k(n) if k is None else k
    k_density, k_ranks = min(N_DENSITY, max_k), min(N_RANKED, max_k)
    check_k(k, n)
    sizes = _sizes(n, data.coordinates.shape[1], n_points)
    common: dict[str, Any] = {"geometry": geometry, "random_state": random_state}
    with Progress(verbose) as progress:
        progress.phase("measuring", 8 if labels is None else 10, "measure")
        scores = Report()

        def add(name: str, score: Score) -> None:
            scores[name] = score
            progress.advance()

        add("angle_preservation", angle_preservation(X, Y, **common, n_points=sizes.angles))
        add("distance_preservation", distance_preservation(X, Y, **common, n_pairs=sizes.pairs))
        # Several measures share these neighbours.
        queries = sample_points(n, sizes.points, generator(random_state))
        largest_k = max(k, k_density, k_ranks)
        in_data, in_embedding = (
            nearest(points, queries, largest_k) for points in (data, embedding)
        )
        if n_spectral is None:
            neighborhoods = shared_neighbors(in_data[:, :k], in_embedding[:, :k], n)
        else:
            neighborhoods = neighborhood_preservation(
                X, Y, k=k, n_spectral=n_spectral, n_points=sizes.points, **common
            )
        add("neighborhood_preservation", neighborhoods)
        (data_density, data_ranks), (embedding_density, embedding_ranks) = (
            counts_and_ranks(
                points,
                queries,
                mean_distance(points, queries, neighbors[:, :k_density]),
                other_neighbors[:, :k_ranks],
            )
            for points, neighbors, other_neighbors in (
                (data, in_data, in_embedding),
                (embedding, in_embedding, in_data),
            )
        )
        densities = [counts.astype(np.float64) for counts in (data_density, embedding_density)]
        add("density_preservation", pearson(densities[0], densities[1], n))
        add("trustworthiness", excess_rank(data_ranks, n))
        add("continuity", excess_rank(embedding_ranks, n))
        add("torn_neighbors", mean(torn_shares(embedding_ranks, n), n))
        triplets = random_triplet_accuracy(X, Y, **common, n_triplets=sizes.triplets)
        add("random_triplet_accuracy", triplets)
        if labels is not None:
            X, Y, labels = _rows_with_labels(X, Y, labels)
            k_voters = min(N_VOTERS, (len(Y) - 1) // 2)
            if len(Y) == n:
                accuracy = vote_accuracy(
                    check_labels(labels, n), queries, in_embedding[:, :k_voters]
                )
            else:  # among the rows whose label is known
                accuracy = knn_accuracy(Y, labels, k=k_voters, n_points=sizes.points, **common)
            add("knn_accuracy", accuracy)
            add("centroid_preservation", centroid_preservation(X, Y, labels, geometry=geometry))
    return scores


class _Sizes(NamedTuple):
    """Sample size of each kind of measure."""

    points: int | None
    angles: int | None
    pairs: int
    triplets: int


def _sizes(n: int, d: int, n_points: int | Literal["auto"] | None) -> _Sizes:
    """Sample sizes for n points of d columns.

    With "auto", small data have the default sizes. For other data, all samples shrink with d, and the sample
    of points whose neighbours are compared also with n, so that a report takes less time than a fit.
    """
    if n_points != "auto":
        return _Sizes(n_points, n_points, N_PAIRS, N_TRIPLETS)
    if n <= _SMALL_DATA:
        return _Sizes(N_POINTS, N_POINTS, N_PAIRS, N_TRIPLETS)
    points = N_POINTS
    if n > N_POINTS or n * n * d > _MAX_EXACT_COST:
        points = _clip(min(150_000 // d, 30_000_000 // n), 150, _SMALL_DATA)
    return _Sizes(
        points,
        angles=_clip(300_000 // d, 250, 400),
        pairs=_clip(20_000_000 // d, 5_000, 60_000),
        triplets=_clip(10_000_000 // d, 2_500, 50_000),
    )


def _clip(size: int, low: int, high: int) -> int:
    return min(max(size, low), high)


def _rows_with_labels(X: Any, Y: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The rows whose label is known."""
    labels = to_numpy(labels) if is_torch(labels) else np.asarray(labels)
    if labels.shape != (len(Y),):
        return X, Y, labels  # the measures raise the error
    known = np.flatnonzero(~is_missing(labels))
    if len(known) == len(labels):
        return X, Y, labels  # without a copy: X may be large, or on disk
    if len(known) < MIN_POINTS:
        raise ValueError(
            f"labels must not be missing for at least {MIN_POINTS} points, got {len(known)}."
        )
    X, Y = (A[known] if is_torch(A) or issparse(A) else np.asarray(A)[known] for A in (X, Y))
    return X, Y, labels[known]
