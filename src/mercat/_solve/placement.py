r"""Placement of points, each on its own, against fixed landmarks.

A point x at y takes part in two kinds of triples: as the apex over pairs of landmarks, and as a leg at
each landmark l, paired with every other landmark. For the second kind everything that does not depend
on x is summed once: with :math:`S_l, M_l, t_l` of `ApexSums` and a the direction from landmark l to x, the
squared residuals of the leg's pairs are, up to a constant,

.. math:: f_l(b) = \tfrac12 b^T \sigma_l b + K_l \cdot b, \qquad \sigma_l = 4 \beta^2 S_l, \quad
          K_l = -4 \beta\, a^T M_l + 4 \alpha \beta\, t_l

where b is the bearing of y at l, so that a step costs O(1) per landmark. The energy of a point has two
unknowns. Terms over pairs (`_math/terms.py`) add squared residuals of a point and the landmarks. The best
of several candidates (all leg terms at all candidates are one matrix product) is refined by BFGS. The
position of a point does not depend on the other points of a block.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import _kernels as kernels
from .._data.arrays import (
    TILE,
    Array,
    beside,
    blocks,
    filled_up,
    like,
    namespace,
    on_host,
    row_dot,
    row_product,
    unstack,
    widest,
)
from .._kernels import device
from .._math.angles import (
    AngleFit,
    ApexSums,
    Bearings,
    Calibration,
    Moments,
    bearings,
    data_moments,
    direction_gradient,
    directions,
    force_on_apices,
    inverse_distances,
    inverse_length,
    legs_of,
    legs_with_ones,
    map_moments,
    pull_back,
    rounded,
    rounding,
)
from .._math.distances import LEAST_SINE, DistanceTerm
from .._math.sphere import fibonacci_grid, tangent, tangent_frame
from .._math.terms import PAIR_TERMS, PairTerm, fitted_to

N_APEX_LEGS = (
    80  # smallest number of legs of the placed point as an apex, the first of the landmarks
)
_N_GRID = 128  # candidates spread over the sphere ...
_N_TAKEN = 384  # ... and at the last landmarks: dense where the map is
_N_SCREEN = 128  # landmarks whose leg terms screen the candidates
_N_KEPT = 4  # candidates whose full energy is compared ...
_APART = 0.3  # ... and their smallest distance, in radians
_FIRST_PASS = (4, 0.03)  # BFGS steps of every point, and the length of the first, in radians
_SECOND_PASS = (6, 0.01)  # further steps of points that have not converged
_WARM_START = (2, 0.02)  # BFGS steps of points that start near their minimum
_SETTLED = 0.02  # radians
_ROUNDING = 3e-6  # of an energy in single precision
_LONGEST_STEP = 0.15  # radians
# Softenings of directions, see `rounded`, in units of the spacing of the landmarks that a point is compared
# with. Without softening, points form clumps around landmarks that are not in the data.
SMOOTH, SHARP = 30.0, 1.0


class PlacedTerm(NamedTuple):
    """A term over the pairs of a placed point and the landmarks."""

    term: PairTerm
    weight: float  # in units of a squared residual of a triple


class _Landmarks(NamedTuple):
    """Fields of a `LandmarkPlacer`."""

    X: Array  # (L, r) data
    Y: Array  # (L, 3) positions
    sigma: Array  # (2, L) the quadratic part of a leg's energy: on the diagonal ...
    sigma12: Array  # (L,) ... and off it
    P: Array  # (2, L, r) -4 beta M, the data part of its linear part
    T: Array  # (2, L) 4 alpha beta t, the constant part of its linear part
    candidates: Array  # (G, 3) initial positions
    calibration: Calibration
    softening: float
    n_apex_legs: int
    terms: tuple[PlacedTerm, ...] = ()  # beside the angles


class LandmarkPlacer(_Landmarks):
    """Landmarks and their sums over each other, for placing points."""

    @functools.cached_property
    def frame(self) -> Array:
        """Tangent frames (2 x L x 3)."""
        return tangent_frame(self.Y)

    @functools.cached_property
    def p(self) -> Array:
        """Products P . x of each landmark (2 x L)."""
        xp = namespace(self.X)
        P, X = (xp.astype(a, widest(a)) for a in (self.P, self.X))
        return xp.astype(row_dot(P, X), self.X.dtype)

    @functools.cached_property
    def at_candidates(self) -> tuple[Array, Array]:
        """Bearings of the candidates at the screening landmarks (2 x S x G), and quadratic parts (G)."""
        some = slice(0, min(_N_SCREEN, self.X.shape[0]))
        C = bearings(self.Y[some, :], self.candidates, None, self.softening).B
        c1, c2 = unstack(C)
        quadratic = 0.5 * (self.sigma[0, some] @ (c1 * c1) + self.sigma[1, some] @ (c2 * c2))
        return C, quadratic + self.sigma12[some] @ (c1 * c2)

    @functools.cached_property
    def for_kernels(self) -> kernels.Landmarks:
        """The landmarks in the layout of the kernels in C."""
        m = self.n_apex_legs
        legs = self.X[:m, :], self.Y[:m, :]
        return kernels.landmarks_of(self.frame, self.sigma, self.sigma12, *legs, self.candidates)

    def __getstate__(self) -> None:
        """Exclude cached properties from the state."""

    def place(self, X: Array) -> Array:
        """Positions (b x 3) of points X (b x r), each at the minimum of its own energy.

        Most points converge within a few steps; the others get more. A point that coincides with a landmark
        in the data gets the position of that landmark.
        """
        if self._by_kernels(X):
            return self._placed_in_c(X, _SECOND_PASS[0])[0]
        if self.runs_on_gpu(X):
            return self._placed_on_gpu(X, _SECOND_PASS[0])[0]
        xp = namespace(X)
        Y, settled = self.place_roughly(X)
        (again,) = xp.nonzero(~settled)
        if again.shape[0] > 0:
            rest, near = (filled_up(xp.take(a, again, axis=0)) for a in (X, Y))
            further, _ = _bfgs(_energy_of(rest, self), near, *_SECOND_PASS)
            # Row of `further` for each row of Y that got more steps.
            row = xp.cumulative_sum(xp.astype(~settled, again.dtype)) - 1
            row = xp.where(settled, xp.zeros_like(row), row)
            Y = xp.where(settled[:, None], Y, xp.take(further, row, axis=0))
        return Y

    def place_roughly(self, X: Array, away_from: Array | None = None) -> tuple[Array, Array]:
        """Positions (b x 3) near the minimum of each point's energy, and whether it has converged.

        Candidates near the positions `away_from` (b x 3) are left out; the descent may still lead there.
        """
        if self._by_kernels(X):
            return self._placed_in_c(X, 0, away_from)
        if self.runs_on_gpu(X):
            return self._placed_on_gpu(X, 0, away_from)
        n = X.shape[0]
        X, away_from = filled_up(X), None if away_from is None else filled_up(away_from)
        energy = _energy_of(X, self, away_from)
        Y, settled = _bfgs(energy, energy.best_candidate(), *_FIRST_PASS)
        Y, settled = self._join_twins(X, energy.nearest == 0, Y, settled)
        return Y[:n, :], settled[:n]

    def _join_twins(
        self, X: Array, coincides: Array, Y: Array, settled: Array
    ) -> tuple[Array, Array]:
        """Give points that coincide with a landmark in the data the position of that landmark."""
        xp = namespace(X)
        (rows,) = xp.nonzero(coincides)
        if rows.shape[0] > 0:
            twin = xp.argmin(inverse_distances(xp.take(X, rows, axis=0), self.X), axis=1)
            Y = xp.asarray(Y, copy=True)
            Y[rows, :] = xp.take(self.Y, twin, axis=0)
        return Y, settled | coincides

    def place_from(
        self, X: Array, starts: Array, steps: int = _WARM_START[0]
    ) -> tuple[Array, Array]:
        """Positions (b x 3) at minima near the best of the starts (b x n x 3), and the energies there.

        Missing starts are NaN; every point has the first. A point that coincides with a landmark in the data
        gets the position of that landmark.
        """
        xp, n = namespace(X), X.shape[0]
        if self._by_kernels(X):
            parts = [
                self._placed_from_in_c(X[t, :], starts[t, ...], steps) for t in blocks(n, TILE)
            ]
            Y, E = (xp.concat(part) for part in zip(*parts, strict=True))
            return Y, E
        X, starts = filled_up(X), filled_up(starts)
        energy = _energy_of(X, self)
        Y, lowest = starts[:, 0, :], energy(starts[:, 0, :])[0]
        for k in range(1, starts.shape[1]):
            E = energy(starts[:, k, :])[0]
            Y = xp.where((lowest > E)[:, None], starts[:, k, :], Y)
            lowest = xp.where(lowest > E, E, lowest)
        if steps:
            Y, _ = _bfgs(energy, Y, steps, _WARM_START[1])
        E, coincides = energy(Y)[0], energy.nearest == 0
        return self._join_twins(X, coincides, Y, coincides)[0][:n, :], E[:n]

    def _placed_from_in_c(self, X: Array, starts: Array, steps: int) -> tuple[Array, Array]:
        n = X.shape[0]
        X, starts = filled_up(X), filled_up(starts)
        energy = _Energy(X, self)
        limits = _LONGEST_STEP, _ROUNDING, _SETTLED, _WARM_START[1]
        settings = self.softening, *self.calibration, energy.apex_weight, *limits, *energy.line
        near = energy.apex_legs.inverse_distance
        Y, E = kernels.place_from(self.for_kernels, X, energy.K, near, starts, settings, steps)
        coincides = energy.nearest == 0
        return self._join_twins(X, coincides, Y, coincides)[0][:n, :], E[:n]

    def excess(self, X: Array, Y: Array, Z: Array) -> Array:
        """Mean squared residual of points at Z (b x 3) minus that at Y."""
        here, there = (self.place_from(X, P[:, None, :], 0)[1] for P in (Y, Z))
        return (there - here) / (3 * int(self.X.shape[0]) ** 2)

    def _by_kernels(self, X: Array) -> bool:
        fits = on_host(X) and X.dtype == "float32" and kernels.take(X, self.X)
        return fits and self.kernels_know_terms

    @property
    def kernels_know_terms(self) -> bool:
        """Whether the terms are those that the kernels compute: distances or none."""
        return [type(t.term) for t in self.terms] in ([], [DistanceTerm])

    def runs_on_gpu(self, X: Array) -> bool:
        """Whether kernels place these points on a GPU."""
        fits = device.take(X, self.X) and device.takes_legs(min(self.n_apex_legs, len(self.X)))
        return fits and self.kernels_know_terms

    def _placed_on_gpu(
        self, X: Array, more_steps: int, away_from: Array | None = None
    ) -> tuple[Array, Array]:
        """Like `_placed_in_c`."""
        energy = _EnergyOnGPU(X, self, away_from)
        Y, settled = energy.descend(energy.places(), _FIRST_PASS, (more_steps, _SECOND_PASS[1]))
        return self._join_twins(X, energy.nearest == 0, Y, settled)

    def _placed_in_c(
        self, X: Array, more_steps: int, away_from: Array | None = None
    ) -> tuple[Array, Array]:
        """Like `place_roughly`, with more steps for points that have not converged."""
        xp, n = namespace(X), X.shape[0]
        limits = (
            math.cos(_APART),
            _LONGEST_STEP,
            _ROUNDING,
            _SETTLED,
            _FIRST_PASS[1],
            _SECOND_PASS[1],
        )
        steps = _N_KEPT, _FIRST_PASS[0], more_steps
        found = []
        for t in blocks(n, TILE):
            tile = filled_up(X[t, :])
            away = None if away_from is None else filled_up(away_from[t, :])
            energy = _Energy(tile, self, away)
            settings = self.softening, *self.calibration, energy.apex_weight, *limits, *energy.line
            near = energy.apex_legs.inverse_distance
            Y, settled = kernels.place(
                self.for_kernels, tile, energy.K, near, energy.screen(), settings, steps
            )
            found.append(self._join_twins(tile, energy.nearest == 0, Y, settled))
        Y, settled = (xp.concat(parts)[:n, ...] for parts in zip(*found, strict=True))
        return Y, settled


def prepare_landmarks(
    X: Array,
    Y: Array,
    calibration: Calibration,
    n_apices: int | None = None,
    n_apex_legs: int = N_APEX_LEGS,
    rounding: float | None = None,
    terms: tuple[PlacedTerm, ...] = (),
) -> LandmarkPlacer:
    """Compute the sums over landmarks X (L x r) at Y (L x 3) for placing points.

    A point is compared with the first `n_apices` landmarks only, whose sums include all landmarks: faster and
    nearly as accurate. Pass arrays in double precision, and convert the result with `as_type`.
    """
    xp = namespace(X)
    alpha, beta = calibration
    n_landmarks = X.shape[0]
    k = n_landmarks if n_apices is None else min(n_apices, n_landmarks)
    softening = rounded(Y[:k, :], SMOOTH if rounding is None else rounding)
    legs = legs_of(X[:k, :], X)
    _, s = directions(legs, Y[:k, :], Y, softening)
    s = ApexSums(*(m * (k / n_landmarks) for m in s))  # as if over k legs
    taken = Y[max(0, n_landmarks - _N_TAKEN) :, :]
    candidates = xp.concat([fibonacci_grid(_N_GRID, xp, **like(Y)), taken], axis=0)
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
    variance = fit.loss**2 / (1 - fit.correlation**2)  # of the cosines
    return tuple(
        PlacedTerm(fitted_to(term, X, Y), weight * variance) for term, weight, _ in PAIR_TERMS
    )


def as_type(landmarks: LandmarkPlacer, dtype: Any) -> LandmarkPlacer:
    """The landmarks in another precision."""
    xp = namespace(landmarks.X)
    arrays = {
        name: xp.astype(value, dtype)
        for name, value in landmarks._asdict().items()
        if name not in ("calibration", "softening", "n_apex_legs", "terms")
    }
    return landmarks._replace(**arrays)


def _linear_parts(X: Array, k: LandmarkPlacer) -> tuple[Array, Array, Array]:
    """K (2 x b x L), inverse distances to the legs of an apex, and the smallest of all (b)."""
    xp = namespace(X)
    inverse_distance = inverse_distances(X, k.X)
    K = row_product(X, xp.matrix_transpose(k.P))
    K -= k.p[:, None, :]
    K *= inverse_distance
    K += k.T[:, None, :]
    near = xp.asarray(inverse_distance[:, : k.n_apex_legs], copy=True)
    return K, near, xp.min(inverse_distance, axis=1)


class _Energy:
    """Energy of a block of b points as a function of their positions.

    It is meaningless for a point that coincides with a landmark (`nearest`, an inverse distance, is zero).
    Candidates near the positions `away_from` (b x 3) are left out.
    """

    def __init__(self, X: Array, landmarks: LandmarkPlacer, away_from: Array | None = None) -> None:
        self._compare_with(landmarks, away_from)
        self.K, near, self.nearest = _linear_parts(X, landmarks)
        self.apex_legs = legs_with_ones(X, landmarks.X[: self.n_apex_legs, :], near)

    def _compare_with(self, landmarks: LandmarkPlacer, away_from: Array | None) -> None:
        self.landmarks, self.away_from = landmarks, away_from
        n_landmarks = landmarks.X.shape[0]
        self.n_apex_legs = m = min(landmarks.n_apex_legs, n_landmarks)
        # The sampled pairs of the apex represent all pairs of landmarks.
        self.apex_weight = n_landmarks * (n_landmarks - 1) / max(m * (m - 1), 1)
        # At either end, a pair is part of one triple per other landmark.
        self.terms = [
            (2 * (weight / term.variance) * n_landmarks * (n_landmarks - 1) / max(m, 1), term)
            for term, weight in landmarks.terms
        ]

    def screen(self) -> Array:
        """Leg energy at each candidate (b x G), from a sample of the landmarks."""
        k = self.landmarks
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = row_product(self.K[0, :, :m], C[0, ...])
        E += row_product(self.K[1, :, :m], C[1, ...])
        E += quadratic
        E *= k.X.shape[0] / m
        return E if self.away_from is None else _apart_from(self.away_from, k.candidates, E)

    def best_candidate(self) -> Array:
        """Initial positions (b x 3)."""
        return _best_candidate(self)

    def __call__(self, Y: Array) -> tuple[Array, Array]:
        """Energy (b) and its tangent gradient (b x 3)."""
        leg_energy, leg_gradient = self._as_leg(Y)
        apex_energy, apex_gradient = self._as_apex(Y)
        energy, gradient = leg_energy + apex_energy, leg_gradient + apex_gradient
        for more, further in self._of_pairs(Y):
            energy, gradient = energy + more, gradient + further
        return energy, tangent(gradient, Y)

    def _as_leg(self, Y: Array) -> tuple[Array, Array]:
        k = self.landmarks
        xp = namespace(Y)
        B = Y @ xp.matrix_transpose(k.frame)
        inverse_sine = inverse_length(B, k.softening)
        B *= inverse_sine
        g = B * k.sigma[:, None, :]
        g += xp.flip(B, axis=0) * k.sigma12
        g += self.K
        # The gradient times the bearing contains the quadratic part twice and the linear part once.
        energy = xp.sum(row_dot(g, B) + row_dot(self.K, B), axis=0) / 2
        return energy, _weighted_sum(pull_back(g, B, inverse_sine), k.frame)

    def _as_apex(self, Y: Array) -> tuple[Array, Array]:
        energy, Y_legs, b, s = self._apex_state(Y)
        g = direction_gradient(self.apex_legs, b, s, self.landmarks.calibration)
        pulls = pull_back(g, b.B, b.inverse_sine)
        gradient = force_on_apices(b.frame, pulls, Y @ Y_legs.T)
        return energy, self.apex_weight * gradient

    def _of_pairs(self, Y: Array) -> Iterator[tuple[Array, Array]]:
        """Energy and gradient of each term over pairs."""
        near = self.apex_legs.inverse_distance
        for weight, term in self.terms:
            squares, gradient, _ = term.residuals(near, Y, self.landmarks.Y[: near.shape[1], :])
            yield weight * squares, weight * gradient

    @property
    def line(self) -> tuple[float, float, float, float]:
        """The distance term for the kernels: weight, line and smallest sine."""
        weight, term = self.terms[0] if self.terms else (0.0, DistanceTerm())
        assert isinstance(term, DistanceTerm)
        return weight, term.p, term.q, LEAST_SINE

    def beside_legs(self, Y: Array) -> Array:
        """Energy (b) of the points without the leg terms."""
        return sum((energy for energy, _ in self._of_pairs(Y)), self._apex_state(Y)[0])

    def _apex_state(self, Y: Array) -> tuple[Array, Array, Bearings, ApexSums]:
        k = self.landmarks
        legs, (alpha, beta) = self.apex_legs, k.calibration
        Y_legs = k.Y[: legs.inverse_distance.shape[1], :]
        b, s = directions(legs, Y, Y_legs, k.softening)
        sum_b, sum_bb, sum_ab = map_moments(s)
        energy = beta * beta * sum_bb - 2 * beta * sum_ab + 2 * alpha * beta * sum_b
        return self.apex_weight * energy, Y_legs, b, s


class _EnergyOnGPU(_Energy):
    """The same by kernels, which also choose a candidate and descend."""

    def __init__(self, X: Array, landmarks: LandmarkPlacer, away_from: Array | None = None) -> None:
        self._compare_with(landmarks, away_from)
        k = landmarks
        sums = k.X, k.P, k.p, k.T, self.n_apex_legs
        self._linear = device.linear_parts(X, *sums, *rounding(X))
        self.K, self.nearest = self._linear.K, self._linear.nearest
        frame = k.frame.mT.reshape(6, -1)
        self._legs = namespace(X).concat([frame, k.sigma, k.sigma12[None, :]])

    def places(self) -> device.Places:
        """Candidates, and their energies."""
        k, away_from = self.landmarks, self.away_from
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = (self.K[0, :, :m] @ C[0, ...] + quadratic).addmm_(self.K[1, :, :m], C[1, ...])
        E = E if away_from is None else _apart_from(away_from, k.candidates, E)
        return device.Places(k.candidates, E, k.X.shape[0] / m, _N_KEPT, math.cos(_APART))

    def __call__(self, Y: Array) -> tuple[Array, Array]:
        """Energy (b) and its tangent gradient (b x 3)."""
        return self._by_kernel(Y, (0, 0.0), (0, 0.0))[2:]

    def descend(
        self,
        start: device.Places | Array,
        first: tuple[int, float],
        second: tuple[int, float] = (0, 0.0),
    ) -> tuple[Array, Array]:
        """`_bfgs` from the best of the places or from positions; then again for points that need it."""
        return self._by_kernel(start, first, second)[:2]

    def _by_kernel(
        self, start: Any, first: tuple[int, float], second: tuple[int, float]
    ) -> tuple[Array, Array, Array, Array]:
        k, m = self.landmarks, self.n_apex_legs
        settings = (k.softening, *k.calibration, self.apex_weight, *self.line)
        limits = device.Steps(first, second, _LONGEST_STEP, _ROUNDING, _SETTLED)
        apex = k.X[:m, :], k.Y[:m, :]
        return device.place(self._linear, self._legs, apex, settings, start, limits)


class _Energies:
    """Energy of many points, one tile at a time.

    All other operations are on all points at once: with many short operations, threads would wait for each
    other, since Python starts only one operation at a time.
    """

    def __init__(self, X: Array, landmarks: LandmarkPlacer, away_from: Array | None = None) -> None:
        self.tiles = [
            _Energy(X[t, :], landmarks, None if away_from is None else away_from[t, :])
            for t in blocks(X.shape[0], TILE)
        ]

    def __call__(self, Y: Array) -> tuple[Array, ...]:
        each = zip(self.tiles, blocks(Y.shape[0], TILE), strict=True)
        return self._joined(energy(Y[t, :]) for energy, t in each)

    @property
    def nearest(self) -> Array:
        return self._joined((energy.nearest,) for energy in self.tiles)[0]

    def best_candidate(self) -> Array:
        return self._joined((energy.best_candidate(),) for energy in self.tiles)[0]

    @staticmethod
    def _joined(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
        return tuple(namespace(p[0]).concat(p, axis=0) for p in zip(*parts, strict=True))


def _energy_of(
    X: Array, landmarks: LandmarkPlacer, away_from: Array | None = None
) -> _Energy | _Energies:
    """Energy of points; on a device for all at once, since small tiles would leave it idle."""
    if on_host(X):
        return _Energies(X, landmarks, away_from)
    kind = _EnergyOnGPU if landmarks.runs_on_gpu(X) else _Energy
    return kind(X, landmarks, away_from)


def _apart_from(Y: Array, candidates: Array, E: Array) -> Array:
    """Energies at candidates (b x G), infinite where these are near Y (b x 3)."""
    return namespace(Y).where(math.cos(_APART) < Y @ candidates.T, math.inf, E)


def _weighted_sum(pulls: Array, frame: Array) -> Array:
    """Pulls (2 x b x m) along frames (2 x m x 3) in space."""
    (along_U, along_V), (U, V) = unstack(pulls), unstack(frame)
    return along_U @ U + along_V @ V


def _best_candidate(energy: _Energy) -> Array:
    """The candidate of lowest energy, among a few distant ones of lowest leg energy."""
    legs = energy.screen()
    xp = namespace(legs)
    candidates = energy.landmarks.candidates
    lowest = xp.full_like(legs[:, 0], xp.inf)
    best = xp.zeros_like(energy.K[0, :, :3])
    for _ in range(_N_KEPT):
        index = xp.argmin(legs, axis=1)
        Y = xp.take(candidates, index, axis=0)
        E = xp.min(legs, axis=1) + energy.beside_legs(Y)
        better = lowest > E
        best = xp.where(better[:, None], Y, best)
        lowest = xp.where(better, E, lowest)
        legs = _apart_from(Y, candidates, legs)
    return best


def _bfgs(
    energy: _Energy | _Energies, Y: Array, steps: int, first_step: float
) -> tuple[Array, Array]:
    """Take a fixed number of BFGS steps from Y for each point on its own; only descending steps count.

    Returns the positions, and whether each point has converged: a further step would be short, and the last
    one did not increase the energy by more than rounding.
    """
    if isinstance(energy, _EnergyOnGPU):
        return energy.descend(Y, (steps, first_step))
    xp = namespace(Y)
    # A step of length zero: energy and gradient at the point itself.
    E, g = xp.full_like(Y[:, 0], xp.inf), xp.zeros_like(Y)
    H = xp.zeros((Y.shape[0], 3, 3), **like(Y))
    Y, E, g, H, _ = _advance(energy, Y, E, g, H)
    steepness = _length(g)
    flat = steepness == 0
    scale = xp.where(
        flat, xp.zeros_like(E), first_step / xp.where(flat, xp.ones_like(E), steepness)
    )
    H = xp.eye(3, **like(Y))[None, :, :] * scale[:, None, None]
    for _ in range(steps):
        Y, E, g, H, level = _advance(energy, Y, E, g, H)
    return Y, level & (_length(_newton_step(H, g, Y)) < _SETTLED)


def _advance(
    energy: _Energy | _Energies, Y: Array, E: Array, g: Array, H: Array
) -> tuple[Array, ...]:
    """One BFGS step: position, energy, gradient, inverse Hessian; and whether the energy did not increase."""
    xp = namespace(Y)
    tiny = xp.finfo(Y.dtype).smallest_normal
    step = _newton_step(H, g, Y)
    shorten = xp.minimum(_LONGEST_STEP / (_length(step) + tiny), xp.ones_like(E))
    Y_new = Y + step * shorten[:, None]
    Y_new = Y_new / _length(Y_new)[:, None]
    E_new, g_new = energy(Y_new)
    s, y = Y_new - Y, g_new - g
    sy = row_dot(s, y)
    curved = (sy > 1e-3 * _length(s) * _length(y)) & (sy > 1e6 * tiny)
    rho = xp.where(curved, 1 / xp.where(curved, sy, xp.ones_like(sy)), xp.zeros_like(sy))
    Hy = _times(H, y)
    update = ((1 + row_dot(y, Hy) * rho) * rho)[:, None, None] * _outer(s, s)
    update = update - rho[:, None, None] * (_outer(s, Hy) + _outer(Hy, s))
    better = E_new <= E
    level = E_new - E <= _ROUNDING * xp.abs(E)
    stretch = xp.where(better, xp.full_like(E, 2.0), xp.full_like(E, 0.25))
    H = xp.where(curved[:, None, None], H + update, H * stretch[:, None, None])
    Y = xp.where(better[:, None], Y_new, Y)
    g = xp.where(better[:, None], g_new, g)
    E = xp.where(better, E_new, E)
    return Y, E, g, H, level


def _length(vectors: Array) -> Array:
    return namespace(vectors).sqrt(row_dot(vectors, vectors))


def _outer(u: Array, v: Array) -> Array:
    return u[:, :, None] * v[:, None, :]


def _times(H: Array, v: Array) -> Array:
    return (H @ v[:, :, None])[:, :, 0] if on_host(v) else row_dot(H, v[:, None, :])


def _newton_step(H: Array, g: Array, Y: Array) -> Array:
    return tangent(-_times(H, g), Y)


def placed_moments(
    X: Array, Y: Array, X_landmarks: Array, Y_landmarks: Array, start: int, n_legs: int
) -> Moments:
    """Moments of placed points as apices over `n_legs` landmarks, from `start` on, cyclically."""
    xp = namespace(X)
    n_landmarks = X_landmarks.shape[0]
    chosen = xp.arange(min(n_legs, n_landmarks), **beside(X))
    chosen = (chosen + start) % n_landmarks
    X_legs, Y_legs = (xp.take(P, chosen, axis=0) for P in (X_landmarks, Y_landmarks))
    if device.take(X, Y, X_legs, Y_legs) and device.takes_legs(len(chosen)):
        near = inverse_distances(X, X_legs)
        softening = float(xp.finfo(Y.dtype).eps)
        return Moments(*device.moments(X, Y, X_legs, Y_legs, near, softening))
    legs = legs_of(X, X_legs)
    _, s = directions(legs, Y, Y_legs)
    return Moments(*data_moments(legs), *map_moments(s))
