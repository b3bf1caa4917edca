"""Residuals of distances against arcs, and distances half replaced by ranks (distances.c)."""

from __future__ import annotations

import numpy as np

from ._library import contiguous, run


def half_ranks(
    inverse_distance: np.ndarray, quantiles: np.ndarray, ranks: np.ndarray, slope: float
) -> np.ndarray:
    """See `_math.distances.HalfRanks.inverse`."""
    assert len(quantiles) == len(ranks) == 65  # as C expects
    result = np.empty(inverse_distance.shape, dtype=np.float32)
    arrays = (contiguous(a, np.float32) for a in (inverse_distance, quantiles, ranks))
    run("half_ranks", *result.shape, *arrays, slope, result)
    return result


def arc_residuals(
    inverse_distance: np.ndarray,
    Y: np.ndarray,
    others: np.ndarray,
    p: float,
    q: float,
    least_sine: float,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See `_math.distances.DistanceTerm.residuals`."""
    b, m = inverse_distance.shape
    shapes = (b,), (b, 3), (5, b)
    squares, gradient, sums = (np.empty(shape, dtype=np.float32) for shape in shapes)
    arrays = (contiguous(a, np.float32) for a in (inverse_distance, Y, others.T))
    outputs = squares, gradient, sums
    run("arc_residuals", n_threads, b, m, *arrays, float(p), float(q), least_sine, *outputs)
    return outputs
