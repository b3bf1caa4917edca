"""All measures at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._data.arrays import is_torch, to_numpy
from .._data.columns import is_missing
from ._angle import angle_preservation
from ._density import N_CROWD, density_preservation
from ._distance import centroid_preservation, distance_preservation, random_triplet_accuracy
from ._neighborhood import (
    N_COMPARED,
    N_RANKED,
    N_VOTERS,
    continuity,
    knn_accuracy,
    neighborhood_preservation,
    trustworthiness,
)
from ._points import LEAST_FOR_ANGLES, N_POINTS, Geometry
from ._score import Report


def default_k(n: int) -> int:
    """Neighbours that are compared where none are asked for: at most half of n points."""
    return max(1, min(N_COMPARED, (n - 1) // 2))


def report(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    k: int | None = None,
    n_spectral: int | Literal["auto"] | None = None,
    geometry: Geometry = "auto",
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Report:
    """The measures of an embedding in one table, those of classes where labels are given.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The data, dense.
    Y : array-like of shape (n, p)
        The embedding.
    labels : array-like of shape (n,), optional
        Class of each point. With them the table also has the accuracy of a classifier by
        neighbours and the preservation of class centroids, both of the points whose class is
        known: None and NaN stand for others.
    k : int or None, default=None
        Neighbours for the neighbourhood preservation; None means 50, or half of the points where these
        are fewer than 101. The other measures use their defaults, and at most half of the points.
    n_spectral
        Denoising of X for the neighbourhood preservation: see :func:`neighborhood_preservation`.
    geometry, n_points, random_state
        As in :func:`angle_preservation`.

    Returns
    -------
    Report
        A dictionary from the name of a measure to its :class:`Score`, which prints as a table
        and has ``to_frame()`` for pandas.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat import metrics
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> metrics.report(X, X[:, :2], labels=X[:, 0] > 0)
    angle_preservation         0.758 ± 0.003
    distance_preservation      0.816
    neighborhood_preservation  0.696
    density_preservation       0.744
    trustworthiness            0.873
    continuity                 0.953
    random_triplet_accuracy    0.833 ± 0.001
    knn_accuracy               0.930
    centroid_preservation      nan
    """
    common: dict[str, Any] = {"geometry": geometry, "random_state": random_state}
    by_point = common | {"n_points": n_points}
    half = (len(Y) - 1) // 2  # were all points neighbours, any map would keep them
    scores = Report(
        angle_preservation=angle_preservation(X, Y, **by_point),
        distance_preservation=distance_preservation(X, Y, **common),
        neighborhood_preservation=neighborhood_preservation(
            X, Y, k=default_k(len(Y)) if k is None else k, n_spectral=n_spectral, **by_point
        ),
        density_preservation=density_preservation(X, Y, k=min(N_CROWD, half), **by_point),
        trustworthiness=trustworthiness(X, Y, k=min(N_RANKED, half), **by_point),
        continuity=continuity(X, Y, k=min(N_RANKED, half), **by_point),
        random_triplet_accuracy=random_triplet_accuracy(X, Y, **common),
    )
    if labels is not None:
        X, Y, labels = _labelled(X, Y, labels)
        half = (len(Y) - 1) // 2
        scores["knn_accuracy"] = knn_accuracy(Y, labels, k=min(N_VOTERS, half), **by_point)
        scores["centroid_preservation"] = centroid_preservation(X, Y, labels, geometry=geometry)
    return scores


def _labelled(X: Any, Y: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The rows whose label is known."""
    labels = to_numpy(labels) if is_torch(labels) else np.asarray(labels)
    if labels.shape != (len(Y),):
        return X, Y, labels  # which is said by the measures
    known = np.flatnonzero(~is_missing(labels))
    if len(known) == len(labels):
        return X, Y, labels  # as they are: X may be large, or on disk
    if len(known) < LEAST_FOR_ANGLES:
        raise ValueError(
            f"labels must name the class of at least {LEAST_FOR_ANGLES} points, got {len(known)}."
        )
    return (*(A[known] if is_torch(A) else np.asarray(A)[known] for A in (X, Y)), labels[known])
