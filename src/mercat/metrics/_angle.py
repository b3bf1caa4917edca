"""Angle preservation: do three points form the same angle in the data and in the embedding?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._data.arrays import Array, blocks, namespace, row_dot, to_numpy
from .._data.checks import check_integer, generator
from .._data.threads import Workers, n_threads
from ._points import (
    BLOCK,
    N_POINTS,
    Floats,
    Geometry,
    Indices,
    Points,
    check_pair,
    sample_points,
)
from ._score import Score


def angle_preservation(
    X: Any,
    Y: Any,
    *,
    geometry: Geometry = "auto",
    n_legs: int = 64,
    n_points: int | None = N_POINTS,
    random_state: int | np.random.Generator | None = 0,
) -> Score:
    r"""Pearson correlation between angles in the data and in the embedding.

    For each point i, `n_legs` other points are drawn, and for each pair j, k of them the angle at i is
    measured in X and in Y:

    .. math:: \mathrm{corr}\big(\angle X_j X_i X_k,\ \angle Y_j Y_i Y_k\big)

    Angles are in radians. On the sphere, the angle is the one between the two geodesics from :math:`Y_i`.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, d)
        The data. Tensors are measured on their device.
    Y : array-like or torch tensor of shape (n, p), or fitted model
        The embedding, or a model with the attribute ``embedding_``.
    geometry : {"auto", "sphere", "euclidean"}, default="auto"
        Geometry of Y. "auto" means the sphere if Y has three columns and rows of length 1.
    n_legs : int, default=64
        Number of other points per point, as in the paper; at most n - 1.
    n_points : int or None, default=5000
        Size of the random sample of points at which angles are measured. None means all points.
    random_state : int, Generator or None, default=0
        Seed of the samples.

    Returns
    -------
    Score
        The correlation, in [-1, 1], and its standard error, which is 0 if all points and legs were used.
        nan if all angles of X or of Y are equal.

    Notes
    -----
    There is no direction between two points that coincide in X or in Y, or that are antipodes on the sphere.
    Their angles are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.metrics import angle_preservation
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> print(angle_preservation(X, 3 * X + 1))
    1.0000
    >>> print(angle_preservation(X, X * [1, 2]))
    0.939
    """
    data, embedding = check_pair(X, Y, geometry)
    check_integer("n_legs", n_legs, 2)
    rng = generator(random_state)
    n = len(data)
    apices = sample_points(n, n_points, rng)
    n_legs = min(n_legs, n - 1)

    def moments(block: tuple[Indices, Indices]) -> Floats:
        return _moments(data, embedding, *block)

    width = max(n_legs, data.coordinates.shape[1])
    size = max(1, BLOCK // (n_legs * width))
    with Workers(n_threads(-1) if data.on_host else 1) as workers:
        apices_and_legs = _draw_legs(apices, n, n_legs, size, rng)
        M = np.concatenate(list(workers.map(moments, apices_and_legs)))
    return _correlation(M, n)


def _draw_legs(
    apices: Indices, n: int, n_legs: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[Indices, Indices]]:
    """Yield blocks of apices and their legs, which are distinct and differ from the apex."""
    for block in blocks(len(apices), size):
        apex = apices[block]
        legs = np.stack([rng.choice(n - 1, n_legs, replace=False, shuffle=False) for _ in apex])
        legs += legs >= apex[:, None]
        yield apex, legs


def _moments(data: Points, embedding: Points, apices: Indices, legs: Indices) -> Floats:
    """Sums of 1, a, b, a^2, b^2, ab over the other legs, for each apex and leg (b, m, 6)."""
    A, in_data = data.directions(apices, legs)
    B, in_embedding = embedding.directions(apices, legs)
    exists = in_data & in_embedding
    xp = namespace(A)
    pairs = xp.astype(exists[:, :, None] & exists[:, None, :], A.dtype)
    diagonal = xp.arange(legs.shape[1])
    pairs[:, diagonal, diagonal] = 0
    a, b = _angles(A) * pairs, _angles(B) * pairs
    sums = [xp.sum(p, axis=2) for p in (pairs, a, b)]
    products = [row_dot(p, q) for p, q in ((a, a), (b, b), (a, b))]
    return to_numpy(xp.stack([*sums, *products], axis=2))


def _angles(directions: Array) -> Array:
    xp = namespace(directions)
    return xp.acos(xp.clip(directions @ xp.matrix_transpose(directions), -1, 1))


def _correlation(M: Floats, n: int) -> Score:
    """Pearson's correlation and its standard error, from the moments of each leg.

    Sampling has two stages: apices out of n, and legs out of n - 1. The influence of an angle on the
    correlation, z_a z_b - rho/2 (z_a^2 + z_b^2), is linear in the moments, so its mean per leg or apex needs
    no second pass over the angles.
    """
    n_apices, n_legs = M.shape[:2]
    total = M.sum(axis=(0, 1))
    if total[0] == 0:
        return Score(np.nan, np.nan)
    _, mean_a, mean_b, aa, bb, ab = total / total[0]
    var_a, var_b = aa - mean_a**2, bb - mean_b**2
    if min(var_a, var_b) <= 1e-14:  # rounding errors of a sum of squares near pi^2
        return Score(np.nan, np.nan)
    scale = np.sqrt(var_a * var_b)
    rho = float(np.clip((ab - mean_a * mean_b) / scale, -1, 1))
    coefficients = np.array(
        [
            mean_a * mean_b / scale - rho / 2 * (mean_a**2 / var_a + mean_b**2 / var_b),
            rho * mean_a / var_a - mean_b / scale,
            rho * mean_b / var_b - mean_a / scale,
            -rho / (2 * var_a),
            -rho / (2 * var_b),
            1 / scale,
        ]
    )
    by_leg = M @ coefficients / (total[0] / (n_apices * n_legs))
    between = np.var(by_leg.mean(axis=1), ddof=1)
    # A mean over pairs of legs contains each leg twice, hence the 4.
    within = 4 * np.mean(np.var(by_leg, axis=1, ddof=1)) / n_legs * (1 - n_legs / (n - 1))
    sampled_fraction = n_apices / n
    return Score(
        rho,
        float(np.sqrt(((1 - sampled_fraction) * between + sampled_fraction * within) / n_apices)),
    )
