"""Terms of the objective over pairs of points, in addition to the angles.

A term compares the arcs between points on the map with the distances in the data. The exact solver takes it
over all pairs, the placement of points over pairs with a landmark, and the descent of maps with detail over
pairs with an anchor. All three use terms only through the methods of `PairTerm`. To add a term, write a
`NamedTuple` of numbers with these methods in its own file, and add it to `PAIR_TERMS`. On maps without
detail, a term may get the distances on the scale of `HalfRanks`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from .._data.arrays import Array, blocks, namespace, to_numpy, widest
from .angles import inverse_distances
from .distances import DistanceTerm, HalfRanks

_ROWS_PER_BLOCK = 256


class PairTerm(Protocol):
    """Squared residuals of pairs of points, divided by a variance of the data."""

    @property
    def variance(self) -> float:
        """Variance by which squared residuals are divided; infinite if there is nothing to explain."""

    @property
    def curvature(self) -> float:
        """Approximate second derivative of a squared residual with respect to a position."""

    def residuals(
        self, inverse_distance: Array, Y: Array, others: Array, n_threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """Sum of squared residuals of each point at Y (b) over m others, and its gradient (b x 3).

        Also returns sums over the others (any number x b), from which `fitted` computes the parameters. An
        inverse distance (b x m) of zero means that the points coincide in the data. `n_threads` is the
        number of threads that a compiled kernel may use.
        """

    def fitted(self, sums: np.ndarray, count: float) -> tuple[PairTerm, float]:
        """The term with the best parameters for these sums over `count` pairs, and its value."""


class Weighted(NamedTuple):
    """A term with its weights relative to the angle term."""

    term: PairTerm
    weight: float
    weight_with_detail: float
    ranked: bool = False  # whether it gets `HalfRanks` instead of distances, on maps without detail


PAIR_TERMS = [
    Weighted(DistanceTerm(), weight=0.5, weight_with_detail=1.0, ranked=True),
]


def on_scale(inverse_distance: Array, scale: HalfRanks | None) -> Array:
    """Inverse distances for `PairTerm.residuals`: on a scale, or unchanged if it is None."""
    return inverse_distance if scale is None else scale.inverse(inverse_distance)


def fitted_to(term: PairTerm, X: Array, Y: Array, scale: HalfRanks | None = None) -> PairTerm:
    """The term with the best parameters for all pairs of points X (n x r) at Y (n x 3)."""
    xp = namespace(X)
    X, Y = xp.astype(X, xp.float32), xp.astype(Y, xp.float32)
    n, parts = len(X), []
    for block in blocks(n, _ROWS_PER_BLOCK):
        inverse_distance = on_scale(inverse_distances(X[block], X), scale)
        sums = term.residuals(inverse_distance, Y[block], Y)[2]
        parts.append(to_numpy(xp.sum(sums, axis=1, dtype=widest(sums))))
    return term.fitted(np.sum(parts, axis=0), n * (n - 1))[0]
