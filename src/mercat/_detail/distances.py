r"""The distances' term of the objective: arcs on the map beside distances in the data.

.. math:: \frac{\mathrm{mean}\,(d_{ij} - p - q\,\theta_{ij})^2}{\mathrm{var}(d)}

with d the distances, :math:`\theta` the arcs between the points on the sphere, and (p, q) the line that fits
best. Angles alone do not fix distances: this term keeps far points from drifting off. As for the angles,
a point is compared with a few anchors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._data.arrays import blocks, row_product
from .._data.source import ROWS_A_BLOCK
from .._data.threads import Workers

WEIGHT = 1.0  # beside the angles' term: both are shares of a variance
_LEAST_SINE = 0.03  # rounds the gradient off where a point meets an anchor or its antipode


class DistanceAnchors(NamedTuple):
    """Points that arcs are measured to, and the line d = p + q arc."""

    X: np.ndarray
    Y: np.ndarray
    p: float
    q: float
    variance: float  # of the distances; infinite where all are equal

    def force(self, X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """n-fold gradient of the term at points X (b x r) at Y (b x 3), from pairs with the anchors.

        Beside it: about its own slope, and the sums of d, arc, d^2, arc^2 and d arc.
        """
        d, cosine, arc = self._pairs(X, Y)
        residual = d - np.float32(self.p) - np.float32(self.q) * arc
        sine = np.sqrt(np.maximum(1 - cosine * cosine, np.float32(_LEAST_SINE**2)))
        scale = np.float32(4 * self.q / (len(self.Y) * self.variance))
        force = row_product(scale * (residual / sine), self.Y)
        sums = [np.sum(v, dtype=np.float64) for v in (d, arc, d * d, arc * arc, d * arc)]
        return force, 4 * self.q**2 / self.variance, np.array(sums)

    def _pairs(self, X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Distances, cosines of arcs, and arcs to the anchors (b x m)."""
        squares = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", self.X, self.X)
        squares -= 2 * row_product(X, self.X.T)
        cosine = np.clip(row_product(Y, self.Y.T), -1, 1)
        return np.sqrt(np.maximum(squares, 0)), cosine, np.arccos(cosine)


class Distances:
    """The term over the course of a descent: forces from anchors that are drawn anew each time."""

    def __init__(
        self, X: np.ndarray, n_anchors: int, rng: np.random.Generator, workers: Workers
    ) -> None:
        self.X = X
        self._m, self._rng, self._workers = n_anchors, rng, workers
        self.p, self.q, self.variance = 0.0, 0.0, np.inf  # unknown: no force

    def anchors(self, rows: np.ndarray, Y: np.ndarray) -> DistanceAnchors:
        """Rows of the data at Y as anchors, with the line as it is."""
        return DistanceAnchors(self.X[rows], Y[rows], self.p, self.q, self.variance)

    def force(self, Y: np.ndarray) -> tuple[np.ndarray, float]:
        """n-fold gradient of the term (n x 3), and about its slope."""
        rows = self._rng.choice(len(Y), self._m, replace=False)
        if not np.isfinite(self.variance):
            self._fit_line(self.anchors(rows, Y).force(self.X[rows], Y[rows])[2], self._m**2)
        anchors = self.anchors(rows, Y)
        found = list(
            self._workers.map(
                lambda b: anchors.force(self.X[b], Y[b]), blocks(len(Y), ROWS_A_BLOCK // 2)
            )
        )
        self._fit_line(np.sum([sums for _, _, sums in found], axis=0), len(Y) * self._m)
        return np.concatenate([force for force, _, _ in found]), found[0][1]

    def _fit_line(self, sums: np.ndarray, count: int) -> None:
        """The least-squares line through distances and arcs."""
        d, arc, dd, arc_arc, d_arc = (float(s) / count for s in sums)
        variance, spread = dd - d * d, arc_arc - arc * arc
        if variance > 0 and spread > 0:
            self.q = max((d_arc - d * arc) / spread, 0.0)  # arcs never fall with distances
            self.p, self.variance = d - self.q * arc, variance
