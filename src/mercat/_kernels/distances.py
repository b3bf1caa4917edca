"""Residuals of distances against arcs (distances.c)."""

from __future__ import annotations

import numpy as np

from ._library import exactly, run


def arc_residuals(
    inverse_distance: np.ndarray,
    Y: np.ndarray,
    others: np.ndarray,
    p: float,
    q: float,
    least_sine: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See `_math.distances.DistanceTerm.residuals`."""
    b, m = inverse_distance.shape
    found = tuple(np.empty(shape, dtype=np.float32) for shape in ((b,), (b, 3), (5, b)))
    arrays = (exactly(a, np.float32) for a in (inverse_distance, Y, others.T))
    run("arc_residuals", b, m, *arrays, float(p), float(q), least_sine, *found)
    return found[0], found[1], found[2]
