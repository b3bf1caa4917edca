"""Landmarks, and the sums over pairs of them that are needed to place a point."""

from __future__ import annotations

import functools
from typing import NamedTuple

from .. import _kernels as kernels
from .._data.arrays import Array, namespace, row_dot, unstack, widest
from .._kernels import device
from .._math.angles import Calibration, bearings, distance_tolerances
from .._math.distances import MIN_SINE, DistanceTerm, HalfRanks
from .._math.sphere import tangent_frame
from .._math.terms import PairTerm

N_SCREEN = 128  # number of landmarks whose leg terms are summed to screen the candidates


class PlacedTerm(NamedTuple):
    """A term over the pairs of a placed point and the landmarks."""

    term: PairTerm
    weight: float  # weight, in units of a squared residual of a triple
    # The scale h(d) on which distances are compared; None to compare the distances themselves.
    scale: HalfRanks | None = None


class _Fields(NamedTuple):
    """Fields of `Landmarks`."""

    X: Array  # (L, r) data
    Y: Array  # (L, 3) positions
    # A placed point's energy as a leg is a quadratic function of its direction on the map.
    sigma: Array  # (2, L) diagonal of the matrix of the quadratic part ...
    sigma12: Array  # (L,) ... and its off-diagonal entry
    P: Array  # (2, L, r) -4 beta M; the linear part is P times the direction in the data, ...
    T: Array  # (2, L) ... plus T = 4 alpha beta t
    candidates: Array  # (G, 3) initial positions
    calibration: Calibration
    softening: float
    n_apex_legs: int
    terms: tuple[PlacedTerm, ...] = ()  # terms in addition to the angles


class Landmarks(_Fields):
    """Landmarks and sums over pairs of them."""

    @functools.cached_property
    def frame(self) -> Array:
        """Tangent frames (2 x L x 3)."""
        return tangent_frame(self.Y)

    @functools.cached_property
    def p(self) -> Array:
        """Inner products of P and the data of each landmark (2 x L)."""
        xp = namespace(self.X)
        P, X = (xp.astype(a, widest(a)) for a in (self.P, self.X))
        return xp.astype(row_dot(P, X), self.X.dtype)

    @functools.cached_property
    def at_candidates(self) -> tuple[Array, Array]:
        """Directions from the S screening landmarks to the candidates, and sums over these landmarks.

        The directions are 2 x S x G; the sums (G) are those of the quadratic parts of the energy.
        """
        screen = slice(0, min(N_SCREEN, self.X.shape[0]))
        C = bearings(self.Y[screen, :], self.candidates, None, self.softening).B
        c1, c2 = unstack(C)
        quadratic = 0.5 * (self.sigma[0, screen] @ (c1 * c1) + self.sigma[1, screen] @ (c2 * c2))
        return C, quadratic + self.sigma12[screen] @ (c1 * c2)

    @property
    def screen_factor(self) -> float:
        """Factor from sums over the first `N_SCREEN` landmarks to sums over all."""
        return float(self.X.shape[0] / self.at_candidates[0].shape[1])

    @property
    def n_used_apex_legs(self) -> int:
        """Number of legs of an apex, at most the number of landmarks."""
        return min(self.n_apex_legs, int(self.X.shape[0]))

    @property
    def apex_weight(self) -> float:
        """Weight of a point's energy as an apex: the pairs of its legs represent all pairs of landmarks."""
        n, m = int(self.X.shape[0]), self.n_used_apex_legs
        return n * (n - 1) / max(m * (m - 1), 1)

    @property
    def weighted_terms(self) -> list[tuple[float, PairTerm]]:
        """Terms, each with the weight of a pair of the placed point and one of its legs as an apex.

        With each other landmark, a pair forms two triples: either of its points may be the apex. The pairs
        with these legs represent those with all landmarks.
        """
        n, m = int(self.X.shape[0]), self.n_used_apex_legs
        return [
            (2 * (weight / term.variance) * n * (n - 1) / max(m, 1), term)
            for term, weight, _ in self.terms
        ]

    @property
    def distance_constants(self) -> tuple[float, float, float, float]:
        """Weight, line (p, q) and smallest sine of the distance term, for the kernels."""
        weight, term = self.weighted_terms[0] if self.terms else (0.0, DistanceTerm())
        assert isinstance(term, DistanceTerm)
        return weight, term.p, term.q, MIN_SINE

    @functools.cached_property
    def for_kernels(self) -> kernels.Landmarks:
        """The landmarks in the layout of the C kernel."""
        scale = self.terms[0].scale if self.terms else None
        slope = 0.0 if scale is None else 1 / scale.deviation
        numbers = self.softening, *self.calibration, self.apex_weight, *self.distance_constants
        legs = self.frame, self.sigma, self.sigma12, self.p, self.T
        C, quadratic = (self.screen_factor * a for a in self.at_candidates)
        return kernels.landmarks_of(
            self.X, self.Y, legs, self.P, self.candidates, (C, quadratic), self.n_used_apex_legs,
            None if scale is None else scale[:2], (*numbers, distance_tolerances(self.X)[1], slope),
        )  # fmt: skip

    def __getstate__(self) -> None:
        """Return no state: the fields are pickled without it, and cached properties are left out."""

    @property
    def kernels_support_terms(self) -> bool:
        """Whether the kernels compute the terms: there are none, or only the distance term."""
        return [type(t.term) for t in self.terms] in ([], [DistanceTerm])

    def runs_on_gpu(self, X: Array) -> bool:
        """Whether kernels place these points on a GPU."""
        fits = device.supports(X, self.X) and device.legs_fit(self.n_used_apex_legs)
        return fits and self.kernels_support_terms
