r"""Placement of points against fixed landmarks, each point independently.

A point x at y takes part in two kinds of triples: as the apex over pairs of landmarks, and as a leg at
each landmark l, paired with every other landmark. For the second kind, all that does not depend on x is
summed once: with :math:`S_l, M_l, t_l` of `ApexSums` and a the direction from landmark l to x, the sum of the
squared residuals of these pairs is, up to a constant,

.. math:: f_l(b) = \tfrac12 b^T \sigma_l b + K_l \cdot b, \qquad \sigma_l = 4 \beta^2 S_l, \quad
          K_l = -4 \beta\, a^T M_l + 4 \alpha \beta\, t_l

where b is the direction from l to y, so that a step costs O(1) per landmark. The energy of a point has two
unknowns. Terms over pairs (`_math/terms.py`) add squared residuals of a point and the landmarks. The best
of several candidates (all leg terms at all candidates are one matrix product) is refined by BFGS. The
position of a point does not depend on the other points of a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _kernels as kernels
from .._data.arrays import (
    Array,
    blocks,
    filled_up,
    like,
    namespace,
    on_host,
    row_dot,
    same_device,
    unstack,
)
from .._data.source import blocks_from
from .._data.threads import Workers
from .._kernels import device
from .._math.angles import (
    AngleFit,
    ApexSums,
    Calibration,
    Moments,
    data_moments,
    directions,
    distance_tolerances,
    inverse_distances,
    legs_of,
    map_moments,
    softening_for,
)
from .._math.distances import half_ranks
from .._math.sphere import fibonacci_grid, normalize, tangent_frame
from .._math.terms import PAIR_TERMS, fitted_to
from .bfgs import bfgs, newton, outer
from .energy import (
    CONVERGED_STEP,
    FINAL_STEP,
    LONGEST_STEP,
    MIN_SEPARATION,
    N_KEPT,
    ROUNDING,
    Energies,
    Energy,
    EnergyOnGPU,
    energy_of,
)
from .landmarks import Landmarks, PlacedTerm

N_APEX_LEGS = 80  # fewest legs of the placed point as an apex: the first of the landmarks
_N_GRID = 128  # candidates spread over the sphere ...
_N_AT_LANDMARKS = 384  # ... and at the last landmarks, which are dense where the map is dense
_FIRST_PASS = (4, 0.03)  # BFGS steps of every point, and the length of the first, in radians
_SECOND_PASS = (6, 0.01)  # further steps of points that have not converged
_WARM_START = (2, 0.02)  # BFGS steps of points that start near their minimum
_NEWTON_STEPS = 4  # maximum number of steps, before a short last one
_DIFFERENCE = 0.02  # step of the finite differences of gradients, in radians
_MIN_CURVATURE = 0.1  # smallest eigenvalue of a Hessian, as a fraction of the largest
_LIMITS = (math.cos(MIN_SEPARATION), LONGEST_STEP, ROUNDING, CONVERGED_STEP)  # for the C kernel
# Softenings of directions, as fractions of the squared spacing of the landmarks that a point is compared with
# (`softening_for`). Without softening, points form clumps around landmarks that are not in the data.
SMOOTH, SHARP = 30.0, 1.0


class LandmarkPlacer(Landmarks):
    """Places points against landmarks."""

    def place(self, X: Array) -> Array:
        """Positions (b x 3) of points X (b x r), each at the minimum of its own energy.

        Most points converge within a few steps; the others get more. A point that coincides with a landmark
        in the data gets the position of that landmark.
        """
        if self._runs_in_c(X):
            return self._place_in_c(X, _SECOND_PASS[0])[0]
        if self.runs_on_gpu(X):
            return self._place_on_gpu(X, _SECOND_PASS[0])[0]
        xp = namespace(X)
        Y, converged = self.place_roughly(X)
        (rest,) = xp.nonzero(~converged)
        if rest.shape[0] > 0:
            X_rest, Y_rest = (filled_up(xp.take(a, rest, axis=0)) for a in (X, Y))
            Y_rest, _ = bfgs(energy_of(X_rest, self), Y_rest, *_SECOND_PASS)
            # Row of `Y_rest` for each row of Y that got more steps.
            row = xp.cumulative_sum(xp.astype(~converged, rest.dtype)) - 1
            row = xp.where(converged, xp.zeros_like(row), row)
            Y = xp.where(converged[:, None], Y, xp.take(Y_rest, row, axis=0))
        return Y

    def place_roughly(self, X: Array, away_from: Array | None = None) -> tuple[Array, Array]:
        """Positions (b x 3) near the minimum of each point's energy, and whether it has converged.

        Candidates near the positions `away_from` (b x 3) are left out; the descent may still lead there.
        """
        if self._runs_in_c(X):
            return self._place_in_c(X, 0, away_from)
        if self.runs_on_gpu(X):
            return self._place_on_gpu(X, 0, away_from)
        n = X.shape[0]
        X, away_from = filled_up(X), None if away_from is None else filled_up(away_from)
        energy = energy_of(X, self, away_from)
        Y, converged = bfgs(energy, energy.best_candidate(), *_FIRST_PASS)
        Y, converged = self._place_duplicates(X, energy.min_inverse_distance == 0, Y, converged)
        return Y[:n, :], converged[:n]

    def _place_duplicates(
        self, X: Array, coincides: Array, Y: Array, converged: Array
    ) -> tuple[Array, Array]:
        """Give points that coincide with a landmark in the data the position of that landmark."""
        xp = namespace(X)
        (rows,) = xp.nonzero(coincides)
        if rows.shape[0] > 0:
            landmark = xp.argmin(inverse_distances(xp.take(X, rows, axis=0), self.X), axis=1)
            Y = xp.asarray(Y, copy=True)
            Y[rows, :] = xp.take(self.Y, landmark, axis=0)
        return Y, converged | coincides

    def place_from(
        self, X: Array, starts: Array, steps: int = _WARM_START[0]
    ) -> tuple[Array, Array]:
        """Positions (b x 3) at minima near the best of each point's n starts, and the energies there.

        Missing starts (b x n x 3) are NaN; the first start of a point is never missing. A point that
        coincides with a landmark in the data gets the position of that landmark.
        """
        if self._runs_in_c(X):
            return self._place_from_starts_in_c(X, starts, None, steps)[:2]
        n = X.shape[0]
        X, starts = filled_up(X), filled_up(starts)
        energy = energy_of(X, self)
        Y = _best_of(energy, starts)
        if steps:
            Y, _ = bfgs(energy, Y, steps, _WARM_START[1])
        E, coincides = energy(Y)[0], energy.min_inverse_distance == 0
        return self._place_duplicates(X, coincides, Y, coincides)[0][:n, :], E[:n]

    def place_near(self, X: Array, starts: Array, H: Array | None) -> Array:
        """Like `place_from`, by Newton steps with the `inverse_hessians` H of a similar map, unless None.

        One step is enough for most points; the others get more.
        """
        if H is None:
            return self.place_from(X, starts)[0]
        if self._runs_in_c(X):
            return self._place_from_starts_in_c(X, starts, H, _NEWTON_STEPS)[0]
        n = X.shape[0]
        X, starts, H = (filled_up(a) for a in (X, starts, H))
        energy = energy_of(X, self)
        Y = newton(energy, _best_of(energy, starts), H, _NEWTON_STEPS)
        coincides = energy.min_inverse_distance == 0
        return self._place_duplicates(X, coincides, Y, coincides)[0][:n, :]

    def inverse_hessians(self, X: Array, Y: Array) -> Array | None:
        """Approximate inverse Hessians (b x 3 x 3) of the energies of points at Y, along the sphere.

        Curvatures are replaced by their absolute values, and small ones are raised, so that a step descends.
        None on a GPU, where kernels descend and separate evaluations would take longer.
        """
        if self.runs_on_gpu(X):
            return None
        U, V = unstack(tangent_frame(Y))
        neighbors = (normalize(Y + _DIFFERENCE * axis) for axis in (U, V))
        g, g_U, g_V = (
            gradient / _DIFFERENCE
            for gradient in self._gradients(X, namespace(X).stack([Y, *neighbors], axis=1))
        )
        H_U, H_V = g_U - g, g_V - g  # the Hessian times U and V
        p, q, mixed = positive_inverse(
            row_dot(H_U, U),
            row_dot(H_V, V),
            (row_dot(H_U, V) + row_dot(H_V, U)) / 2,
        )
        off_diagonal = mixed * (outer(U, V) + outer(V, U))
        return p * outer(U, U) + q * outer(V, V) + off_diagonal

    def _gradients(self, X: Array, Y: Array) -> tuple[Array, ...]:
        """Gradients (b x 3) of the energies at each of n positions Y (b x n x 3)."""
        each = range(Y.shape[1])
        if self._runs_in_c(X):
            gradients = kernels.gradients(self.for_kernels, X, Y)
            return tuple(gradients[:, k, :] for k in each)
        n = X.shape[0]
        energy, Y = energy_of(filled_up(X), self), filled_up(Y)
        return tuple(energy(Y[:, k, :])[1][:n, :] for k in each)

    def excess(self, X: Array, Y: Array, Z: Array) -> Array:
        """Mean squared residual of points at Z (b x 3) minus that at Y."""
        E_Y, E_Z = (self.place_from(X, P[:, None, :], 0)[1] for P in (Y, Z))
        return (E_Z - E_Y) / (3 * int(self.X.shape[0]) ** 2)

    def _runs_in_c(self, X: Array) -> bool:
        """Whether C kernels place these points."""
        fits = on_host(X) and X.dtype == "float32" and kernels.supports(X, self.X)
        return fits and self.kernels_support_terms

    def _place_on_gpu(
        self, X: Array, more_steps: int, away_from: Array | None = None
    ) -> tuple[Array, Array]:
        """Like `_place_in_c`."""
        energy = EnergyOnGPU(X, self, away_from)
        Y, converged = energy.descend(energy.places(), _FIRST_PASS, (more_steps, _SECOND_PASS[1]))
        return self._place_duplicates(X, energy.min_inverse_distance == 0, Y, converged)

    def _place_in_c(
        self, X: Array, more_steps: int, away_from: Array | None = None
    ) -> tuple[Array, Array]:
        """Like `place_roughly`, with more steps for points that have not converged."""
        steps = N_KEPT, _FIRST_PASS[0], more_steps
        limits = *_LIMITS, _FIRST_PASS[1], _SECOND_PASS[1], 0.0
        Y, _, converged = kernels.place(self.for_kernels, X, None, away_from, None, steps, limits)
        return Y, converged

    def _place_from_starts_in_c(
        self, X: Array, starts: Array, H: Array | None, steps: int
    ) -> tuple[Array, Array, Array]:
        """`place_from` or, with inverse Hessians H, `place_near`: positions, energies and convergence."""
        limits = *_LIMITS, _WARM_START[1], 0.0, FINAL_STEP
        return kernels.place(self.for_kernels, X, starts, None, H, (0, steps, 0), limits)


def _best_of(energy: Energy | Energies, starts: Array) -> Array:
    """The one of each point's n starts (b x n x 3) with the lowest energy (b x 3); NaN is never chosen."""
    xp, Y = namespace(starts), starts[:, 0, :]
    lowest = energy(Y)[0]
    for k in range(1, starts.shape[1]):
        E = energy(starts[:, k, :])[0]
        Y = xp.where((lowest > E)[:, None], starts[:, k, :], Y)
        lowest = xp.where(lowest > E, E, lowest)
    return Y


def positive_inverse(a: Array, c: Array, mixed: Array) -> tuple[Array, Array, Array]:
    """Entries (b x 1 x 1) of the inverses of symmetric matrices (a, mixed; mixed, c), made positive.

    Eigenvalues are replaced by their absolute values, and small ones are raised to a fraction of the other;
    the inverse of 0 is 0.
    """
    xp = namespace(a)
    mean, half = (a + c) / 2, (a - c) / 2
    radius = xp.hypot(half, mixed)  # the eigenvalues are mean + radius and mean - radius
    first, second = xp.abs(mean + radius), xp.abs(mean - radius)
    smallest = xp.maximum(first, second) * _MIN_CURVATURE
    zero, one = smallest == 0, xp.ones_like(smallest)
    p, q = (
        xp.where(zero, 0 * one, 1 / xp.where(zero, one, xp.maximum(e, smallest)))
        for e in (first, second)
    )
    scale = (p - q) / xp.where(radius == 0, one, radius) / 2
    entries = (p + q) / 2 + scale * half, (p + q) / 2 - scale * half, scale * mixed
    x, y, z = (e[:, None, None] for e in entries)
    return x, y, z


def prepare_landmarks(
    X: Array,
    Y: Array,
    calibration: Calibration,
    n_apices: int | None = None,
    n_apex_legs: int = N_APEX_LEGS,
    softening_fraction: float | None = None,
    terms: tuple[PlacedTerm, ...] = (),
) -> LandmarkPlacer:
    """Compute the sums over landmarks X (L x r) at Y (L x 3) for placing points.

    Points are compared with the first `n_apices` landmarks (by default, all); sums at these include all
    landmarks. With fewer apices, placement is faster and nearly as accurate. `softening_fraction` is that of
    `softening_for`, by default `SMOOTH`. Pass arrays in double precision, and convert the result with
    `as_type`.
    """
    xp = namespace(X)
    alpha, beta = calibration
    n_landmarks = X.shape[0]
    k = n_landmarks if n_apices is None else min(n_apices, n_landmarks)
    softening = softening_for(
        Y[:k, :], SMOOTH if softening_fraction is None else softening_fraction
    )
    legs = legs_of(X[:k, :], X)
    _, s = directions(legs, Y[:k, :], Y, softening)
    s = ApexSums(*(m * (k / n_landmarks) for m in s))  # scaled as if they were sums over k legs
    at_landmarks = Y[max(0, n_landmarks - _N_AT_LANDMARKS) :, :]
    candidates = xp.concat([fibonacci_grid(_N_GRID, xp, **like(Y)), at_landmarks], axis=0)
    X, Y = X[:k, :], Y[:k, :]
    quadratic = 4 * beta * beta
    sigma, sigma12 = quadratic * s.S, quadratic * s.S12
    P = -4 * beta * s.M
    return LandmarkPlacer(
        X, Y, sigma, sigma12, P, 4 * alpha * beta * s.t, candidates,
        calibration, softening, n_apex_legs, terms,
    )  # fmt: skip


def placed_terms(X: Array, Y: Array, fit: AngleFit) -> tuple[PlacedTerm, ...]:
    """The terms over pairs for landmarks X (L x r) at Y (L x 3), given the fit of the angles."""
    variance = fit.loss**2 / (1 - fit.correlation**2)  # variance of the cosines
    terms = []
    for term, weight, _, ranked in PAIR_TERMS:
        scale = half_ranks(X) if ranked else None
        terms.append(PlacedTerm(fitted_to(term, X, Y, scale), weight * variance, scale))
    return tuple(terms)


def as_type(landmarks: LandmarkPlacer, dtype: Any) -> LandmarkPlacer:
    """The landmarks in another precision."""
    xp = namespace(landmarks.X)
    arrays = {
        name: xp.astype(value, dtype)
        for name, value in landmarks._asdict().items()
        if name not in ("calibration", "softening", "n_apex_legs", "terms")
    }
    return landmarks._replace(**arrays)


def place_in_blocks(
    place: Callable[[Array], Array], X: Array, size: int, workers: Workers
) -> Array:
    """place(rows) for blocks of `size` rows of X, on all threads."""
    parts = workers.map(lambda rows: place(X[rows]), blocks(X.shape[0], size))
    return namespace(X).concat(list(parts))


def placed_moments(
    X: Array, Y: Array, X_landmarks: Array, Y_landmarks: Array, start: int, n_legs: int, tile: int
) -> Moments:
    """Moments of placed points as apices. The first of the points has the index `start`.

    Each tile of `tile` points has `n_legs` landmarks as legs; the next tile has the next ones, cyclically.
    """
    xp, n_landmarks = namespace(X), X_landmarks.shape[0]
    softening, (_, negligible) = float(xp.finfo(Y.dtype).eps), distance_tolerances(X)
    if kernels.supports(X, Y, X_landmarks, Y_landmarks):
        landmarks = X_landmarks, Y_landmarks
        return Moments(
            *kernels.moments(X, Y, *landmarks, start, n_legs, tile, negligible, softening)
        )
    parts = []
    for t in blocks_from(start, Y.shape[0], tile):
        first = (start + t.start) // tile * n_legs
        legs = (xp.arange(min(n_legs, n_landmarks), **same_device(X)) + first) % n_landmarks
        X_legs, Y_legs = (xp.take(P, legs, axis=0) for P in (X_landmarks, Y_landmarks))
        parts.append(_moments_over(X[t, :], Y[t, :], X_legs, Y_legs, softening))
    return Moments(*(xp.concat(m) for m in zip(*parts, strict=True)))


def _moments_over(X: Array, Y: Array, X_legs: Array, Y_legs: Array, softening: float) -> Moments:
    """Moments of apices X at Y that share their legs."""
    if device.supports(X, Y, X_legs, Y_legs) and device.legs_fit(len(X_legs)):
        inverse_distance = inverse_distances(X, X_legs)
        return Moments(*device.moments(X, Y, X_legs, Y_legs, inverse_distance, softening))
    legs = legs_of(X, X_legs)
    _, s = directions(legs, Y, Y_legs, softening)
    return Moments(*data_moments(legs), *map_moments(s))
