r"""The distance term of the objective: arcs on the map compared with distances in the data.

.. math:: \frac{\mathrm{mean}\,(d_{ij} - p - q\,\theta_{ij})^2}{\mathrm{var}(d)}

where d are the distances, :math:`\theta` the arcs between points on the sphere, and (p, q) is the best line.
It is the fraction of the variance of the distances that the map does not explain. Angles alone do not
determine distances; this term keeps distant points from drifting away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _kernels as kernels
from .._data.arrays import Array, blocks, namespace, row_dot, row_product, to_numpy, widest
from .._kernels import device as device_kernels
from .angles import inverse_distances

_ROWS_A_BLOCK = 256
LEAST_SINE = 0.03  # bounds the gradient where two points coincide or are antipodal


class DistanceLine(NamedTuple):
    """The line d = p + q arc that distances are measured against, and their variance."""

    p: float
    q: float
    variance: float  # infinite if all distances are equal


NO_LINE = DistanceLine(0.0, 0.0, np.inf)


def arc_residuals(
    inverse_distance: Array, Y: Array, others: Array, line: DistanceLine
) -> tuple[Array, Array, Array]:
    """Sum of squared residuals of each point at Y (b) over m others, and its gradient (b x 3).

    Also returns the sums (5 x b) of d, arc, d^2, arc^2 and d arc. An inverse distance (b x m) of zero means
    that the points coincide.
    """
    if kernels.take(Y, others, inverse_distance) and Y.dtype == "float32":
        return kernels.arc_residuals(inverse_distance, Y, others, line.p, line.q, LEAST_SINE)
    if device_kernels.take(Y, others, inverse_distance) and device_kernels.takes_legs(len(others)):
        return device_kernels.arc_residuals(inverse_distance, Y, others, line[:2], LEAST_SINE)
    xp = namespace(Y)
    apart = inverse_distance > 0
    d = apart / xp.where(apart, inverse_distance, xp.ones_like(inverse_distance))
    cosine = xp.clip(Y @ others.T, -1, 1)
    arc = xp.acos(cosine)
    residual = d - line.p - line.q * arc
    sine = xp.sqrt(xp.clip(1 - cosine * cosine, LEAST_SINE**2, None))
    gradient = 2 * line.q * row_product(residual / sine, others)
    sums = (
        xp.sum(d, axis=1),
        xp.sum(arc, axis=1),
        row_dot(d, d),
        row_dot(arc, arc),
        row_dot(d, arc),
    )
    return row_dot(residual, residual), gradient, xp.stack(sums)


def fit_line(sums: np.ndarray, count: float) -> tuple[DistanceLine, float]:
    """Least-squares line through distances and arcs, and the fraction of the variance it leaves."""
    d, arc, dd, arc_arc, d_arc = (float(s) / max(count, 1) for s in sums)
    variance, spread, covariance = dd - d * d, arc_arc - arc * arc, d_arc - d * arc
    if not (variance > 0 and spread > 0):
        return NO_LINE, 0.0
    q = max(covariance / spread, 0.0)  # arcs must not decrease with distances
    share = 1 - q * covariance / variance
    return DistanceLine(d - q * arc, q, variance), max(share, 0.0)


def line_through(X: Array, Y: Array) -> DistanceLine:
    """Line through the distances and arcs of all pairs of points X (n x r) at Y (n x 3)."""
    xp = namespace(X)
    X, Y = xp.astype(X, xp.float32), xp.astype(Y, xp.float32)
    sums, n = np.zeros(5), len(X)
    for block in blocks(n, _ROWS_A_BLOCK):
        found = arc_residuals(inverse_distances(X[block], X), Y[block], Y, NO_LINE)[2]
        sums += to_numpy(xp.sum(found, axis=1, dtype=widest(found)))
    return fit_line(sums, n * (n - 1))[0]
