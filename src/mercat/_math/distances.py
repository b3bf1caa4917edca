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
from .._data.arrays import Array, namespace, row_dot, row_product
from .._kernels import device as device_kernels

LEAST_SINE = 0.03  # bounds the gradient where two points coincide or are antipodal


class DistanceTerm(NamedTuple):
    """The line d = p + q arc that distances are compared with, and their variance; see `PairTerm`."""

    p: float = 0.0
    q: float = 0.0
    variance: float = np.inf  # infinite if all distances are equal

    @property
    def curvature(self) -> float:
        """Approximate second derivative of a squared residual with respect to a position."""
        return 2 * self.q**2

    def residuals(
        self, inverse_distance: Array, Y: Array, others: Array
    ) -> tuple[Array, Array, Array]:
        """Sum of squared residuals of each point at Y (b) over m others, and its gradient (b x 3).

        Also returns the sums (5 x b) of d, arc, d^2, arc^2 and d arc. An inverse distance (b x m) of zero
        means that the points coincide in the data.
        """
        if kernels.take(Y, others, inverse_distance) and Y.dtype == "float32":
            return kernels.arc_residuals(inverse_distance, Y, others, self.p, self.q, LEAST_SINE)
        on_device = device_kernels.take(Y, others, inverse_distance)
        if on_device and device_kernels.takes_legs(len(others)):
            return device_kernels.arc_residuals(inverse_distance, Y, others, self[:2], LEAST_SINE)
        xp = namespace(Y)
        apart = inverse_distance > 0
        d = apart / xp.where(apart, inverse_distance, xp.ones_like(inverse_distance))
        cosine = xp.clip(Y @ others.T, -1, 1)
        arc = xp.acos(cosine)
        residual = d - self.p - self.q * arc
        sine = xp.sqrt(xp.clip(1 - cosine * cosine, LEAST_SINE**2, None))
        gradient = 2 * self.q * row_product(residual / sine, others)
        sums = (
            xp.sum(d, axis=1),
            xp.sum(arc, axis=1),
            row_dot(d, d),
            row_dot(arc, arc),
            row_dot(d, arc),
        )
        return row_dot(residual, residual), gradient, xp.stack(sums)

    def fitted(self, sums: np.ndarray, count: float) -> tuple[DistanceTerm, float]:
        """The least-squares line through distances and arcs, and the fraction of the variance it leaves."""
        d, arc, dd, arc_arc, d_arc = (float(s) / max(count, 1) for s in sums)
        variance, spread, covariance = dd - d * d, arc_arc - arc * arc, d_arc - d * arc
        if not (variance > 0 and spread > 0):
            return DistanceTerm(), 0.0
        q = max(covariance / spread, 0.0)  # arcs must not decrease with distances
        left = 1 - q * covariance / variance
        return DistanceTerm(d - q * arc, q, variance), max(left, 0.0)
