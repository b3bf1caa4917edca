r"""The distance term of the objective: arcs on the map compared with distances in the data.

.. math:: \frac{\mathrm{mean}\,(d_{ij} - p - q\,\theta_{ij})^2}{\mathrm{var}(d)}

where d are the distances, :math:`\theta` the arcs between points on the sphere, and (p, q) is the best line.
It is the fraction of the variance of the distances that the map does not explain. Angles alone do not
determine distances; this term keeps distant points from drifting away.

On maps without detail, d is replaced by a sum of d and its rank among the distances of the data
(`HalfRanks`), each divided by its standard deviation,

.. math:: h(d) = \frac{d}{\mathrm{sd}(d)} + \frac{\mathrm{rank}(d)}{\mathrm{sd}(\mathrm{rank})}.

Distances in many dimensions are often nearly equal, apart from a few: most of their variance comes from these
few, or from the difference between distances within and between clusters. With ranks, all differences count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from .. import _kernels as kernels
from .._data.arrays import Array, like, namespace, row_dot, row_product, to_numpy
from .._kernels import device as device_kernels

MIN_SINE = 0.03  # bounds the gradient where two points coincide or are antipodal
N_STEPS = 64  # intervals between quantiles, in which ranks are interpolated
_RANKED = 200  # points whose distances are ranked, taken at equal steps ...
_SORTED_BY = 8  # ... after sorting by this number of columns
# Fractions of the mean. Distances with a smaller standard deviation than the first are regarded as all equal.
# Quantiles that differ by less than the second, a few times the rounding error, count as one, with one rank.
_ALL_EQUAL, _EQUAL = 1e-4, 1e-6


class HalfRanks(NamedTuple):
    """The scale h(d) = d / sd(d) + rank(d) / sd(rank), on which distances are compared; h(0) = 0.

    The rank is the fraction of the distances of the data that are smaller, plus half the fraction of equal
    ones. It is interpolated between quantiles, of which the first is replaced by 0.
    """

    quantiles: Array  # (N_STEPS + 1,)
    ranks: Array  # (N_STEPS + 1,) of the quantiles, divided by the standard deviation of ranks
    deviation: float  # standard deviation of the distances

    def inverse(self, inverse_distance: Array) -> Array:
        """1 / h(d) for inverse distances 1 / d; zero, for points that coincide in the data, stays zero."""
        slope = 1 / self.deviation
        if kernels.supports(inverse_distance) and inverse_distance.dtype == "float32":
            return kernels.half_ranks(inverse_distance, self.quantiles, self.ranks, slope)
        xp = namespace(inverse_distance)
        quantiles, ranks = (xp.asarray(a, **like(inverse_distance)) for a in self[:2])
        if device_kernels.supports(inverse_distance):
            return device_kernels.half_ranks(inverse_distance, quantiles, ranks, slope)
        apart = inverse_distance > 0
        d = apart / xp.where(apart, inverse_distance, xp.ones_like(inverse_distance))
        above = xp.searchsorted(quantiles, xp.reshape(d, (-1,)), side="right")
        above = xp.reshape(xp.clip(above, 1, N_STEPS), d.shape)
        low, high = quantiles[above - 1], quantiles[above]
        part = xp.where(d < high, (d - low) / xp.where(d < high, high - low, 1.0), 1.0)
        h = d * slope + (1 - part) * ranks[above - 1] + part * ranks[above]
        return apart / xp.where(apart, h, xp.ones_like(h))


def half_ranks(X: Array) -> HalfRanks | None:
    """The scale for points X (n x r), or None if their distances are all equal.

    The ranks are among the distances of a sample of the points, taken at equal steps in the order of their
    first columns, so that it does not depend on the order of X.
    """
    X = to_numpy(X).astype(np.float64)
    n = len(X)
    if n > _RANKED:
        in_order = np.lexsort(X[:, :_SORTED_BY].T[::-1])
        X = X[in_order[np.arange(_RANKED) * n // _RANKED]]
    d = np.sort(pdist(X))
    d = d[d > 0]
    if len(d) == 0 or d.std() <= _ALL_EQUAL * d.mean():
        return None
    ranks = np.linspace(0, 1, N_STEPS + 1)
    quantiles = d[np.rint(ranks * (len(d) - 1)).astype(int)]
    group = np.cumsum(np.diff(quantiles, prepend=0) > _EQUAL * d.mean())
    size = np.maximum(np.bincount(group), 1)
    quantiles, ranks = ((np.bincount(group, a) / size)[group] for a in (quantiles, ranks))
    quantiles[0] = ranks[0] = 0
    return HalfRanks(quantiles, ranks / np.interp(d, quantiles, ranks).std(), float(d.std()))


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
        self, inverse_distance: Array, Y: Array, others: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """Sum of squared residuals of each point at Y (b) over m others, and its gradient (b x 3).

        Also returns the sums (5 x b) of d, arc, d^2, arc^2 and d arc. An inverse distance (b x m) of zero
        means that the points coincide in the data.
        """
        if kernels.supports(Y, others, inverse_distance) and Y.dtype == "float32":
            line = self.p, self.q
            return kernels.arc_residuals(inverse_distance, Y, others, *line, MIN_SINE, n_threads)
        on_device = device_kernels.supports(Y, others, inverse_distance)
        if on_device and device_kernels.legs_fit(len(others)):
            return device_kernels.arc_residuals(inverse_distance, Y, others, self[:2], MIN_SINE)
        xp = namespace(Y)
        apart = inverse_distance > 0
        d = apart / xp.where(apart, inverse_distance, xp.ones_like(inverse_distance))
        cosine = xp.clip(Y @ others.T, -1, 1)
        arc = xp.acos(cosine)
        residual = d - self.p - self.q * arc
        sine = xp.sqrt(xp.clip(1 - cosine * cosine, MIN_SINE**2, None))
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
        """The least-squares line through distances and arcs, and the fraction of variance not explained."""
        d, arc, dd, arc_arc, d_arc = (float(s) / max(count, 1) for s in sums)
        variance, spread, covariance = dd - d * d, arc_arc - arc * arc, d_arc - d * arc
        if not (variance > 0 and spread > 0):
            return DistanceTerm(), 0.0
        q = max(covariance / spread, 0.0)  # arcs must not decrease with distances
        left = 1 - q * covariance / variance
        return DistanceTerm(d - q * arc, q, variance), max(left, 0.0)
