"""The paper's Algorithm 1 as published: the reference for the other solvers.

Longitude and colatitude of each point are free parameters. In each iteration every point draws 64 others;
Adam follows the gradient of the root mean squared difference of cosines. Only the gradient is computed
differently: factorised, without the 64 x 64 cosines (see `_math/angles.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._data.arrays import blocks
from .._data.threads import Workers
from .._math.angles import (
    ABSOLUTE,
    apex_gradient,
    data_moments,
    directions,
    legs_of,
    map_moments,
)
from .._math.sphere import from_lonlat, to_lonlat
from .._progress import Report
from .status import Status

N_LEGS = 64
LEARNING_RATE = 0.01
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Adam's standard parameters
_APICES_PER_BLOCK = 512


def draw_legs(apices: np.ndarray, n: int, n_legs: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `n_legs` distinct other points of range(n) for each apex, or all if there are fewer."""
    if n - 1 <= n_legs:
        others = np.arange(n - 1)[None, :]
        return np.asarray(others + (others >= apices[:, None]))
    drawn = rng.integers(n - 1, size=(len(apices), n_legs))
    while True:
        drawn.sort(axis=1)
        rows, columns = np.nonzero(drawn[:, 1:] == drawn[:, :-1])
        if len(rows) == 0:
            return np.asarray(drawn + (drawn >= apices[:, None]))
        drawn[rows, columns] = rng.integers(n - 1, size=len(rows))


def batch_loss(
    X: np.ndarray, Y: np.ndarray, apices: np.ndarray, legs: np.ndarray, workers: Workers
) -> tuple[float, np.ndarray]:
    """Root mean squared difference of cosines at the apices over their own legs, and its gradient."""

    def part(block: slice) -> tuple[float, float, np.ndarray, np.ndarray, np.ndarray]:
        i, j = apices[block], legs[block]
        prepared = legs_of(X[i], X[j])
        b, s = directions(prepared, Y[i], Y[j])
        to_apices, to_legs = apex_gradient(prepared, Y[i], Y[j], b, s, ABSOLUTE)
        count, _, aa = data_moments(prepared)
        _, bb, ab = map_moments(s)
        return float(np.sum(aa - 2 * ab + bb)), float(count.sum()), i, to_apices, to_legs

    gradient = np.zeros_like(Y)
    squares = count = 0.0
    parts = blocks(len(apices), _APICES_PER_BLOCK)
    for block, (s, c, i, to_apices, to_legs) in zip(parts, workers.map(part, parts), strict=True):
        squares, count = squares + s, count + c
        gradient[i] += to_apices
        flat = legs[block].ravel()
        for axis in range(3):
            gradient[:, axis] += np.bincount(flat, to_legs[..., axis].ravel(), minlength=len(Y))
    loss = float(np.sqrt(max(squares, 0.0) / max(count, 1.0)))
    return loss, gradient / (2 * max(loss, 1e-12) * max(count, 1.0))


def solve_algorithm1(
    X: np.ndarray,
    Y: np.ndarray,
    *,
    max_iter: int,
    milestones: Iterable[int],
    batch_size: int | None,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> tuple[np.ndarray, list[float], Status]:
    """Run Algorithm 1 on X (n x r) from Y (n x 3); return positions, loss of each iteration and status.

    An iteration is a pass over all points in batches of `batch_size` apices, or in one batch for None.
    The learning rate falls tenfold after each of the `milestones`.
    """
    n = len(X)
    longitude, latitude = to_lonlat(Y)
    angles = np.stack([longitude, np.pi / 2 - latitude])
    first, second = np.zeros_like(angles), np.zeros_like(angles)
    milestones = set(milestones)
    rate, step = LEARNING_RATE, 0
    history: list[float] = []
    for iteration in range(1, max_iter + 1):
        order = np.arange(n) if batch_size is None else rng.permutation(n)
        losses = []
        for batch in blocks(n, batch_size or n):
            apices = order[batch]
            Y = _positions(angles)
            legs = draw_legs(apices, n, N_LEGS, rng)
            loss, gradient = batch_loss(X, Y, apices, legs, workers)
            losses.append(loss)
            step += 1
            slope = _angle_gradient(angles, gradient)
            first = _BETA1 * first + (1 - _BETA1) * slope
            second = _BETA2 * second + (1 - _BETA2) * slope**2
            unbiased = first / (1 - _BETA1**step), second / (1 - _BETA2**step)
            angles = angles - rate * unbiased[0] / (np.sqrt(unbiased[1]) + _EPSILON)
        if iteration in milestones:
            rate *= 0.1
        history.append(float(np.mean(losses)))
        if report(iteration, history[-1], _positions(angles)):
            return _positions(angles), history, Status.CALLBACK
    return _positions(angles), history, Status.SCHEDULE


def _positions(angles: np.ndarray) -> np.ndarray:
    longitude, colatitude = angles
    return np.asarray(from_lonlat(longitude, np.pi / 2 - colatitude))


def _angle_gradient(angles: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Convert a gradient with respect to unit vectors to one with respect to the two angles."""
    (cos_lon, cos_col), (sin_lon, sin_col) = np.cos(angles), np.sin(angles)
    gx, gy, gz = gradient.T
    along_longitude = sin_col * (gy * cos_lon - gx * sin_lon)
    along_colatitude = cos_col * (gx * cos_lon + gy * sin_lon) - sin_col * gz
    return np.stack([along_longitude, along_colatitude])
