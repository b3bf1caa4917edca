"""The energy of points as a function of their positions, given landmarks; see `placement`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from .._data.arrays import TILE, Array, blocks, namespace, on_host, row_dot, row_product, unstack
from .._kernels import device
from .._math.angles import (
    ApexSums,
    Bearings,
    direction_gradient,
    directions,
    distance_tolerances,
    gradient_at_apices,
    inverse_distances,
    inverse_length,
    legs_with_ones,
    map_moments,
    pull_back,
)
from .._math.sphere import tangent
from .._math.terms import on_scale
from .landmarks import Landmarks

N_KEPT = 4  # candidates whose full energy is compared ...
APART = 0.3  # ... and their smallest distance, in radians
SETTLED = 0.02  # length of a step below which a point has converged, in radians
ROUNDING = 3e-6  # relative, of an energy in single precision
LONGEST_STEP = 0.15  # radians
BRIEF = 0.01  # length of a last step with a given Hessian, in radians


class Energy:
    """Energy of a block of b points as a function of their positions.

    It is meaningless for a point that coincides with a landmark (`nearest`, an inverse distance, is zero).
    Candidates near the positions `away_from` (b x 3) are left out.
    """

    def __init__(self, X: Array, landmarks: Landmarks, away_from: Array | None = None) -> None:
        self._compare_with(landmarks, away_from)
        self.K, inverse_distance, self.nearest = _linear_parts(X, landmarks)
        self.apex_legs = legs_with_ones(
            X, landmarks.X[: landmarks.used_apex_legs, :], inverse_distance
        )
        self._see(inverse_distance)

    def _compare_with(self, landmarks: Landmarks, away_from: Array | None) -> None:
        self.landmarks, self.away_from = landmarks, away_from
        self.apex_weight, self.terms = landmarks.apex_weight, landmarks.weighted_terms

    def _see(self, inverse_distance: Array) -> None:
        """Prepare the distances of the terms from the inverse distances to the legs of an apex (b x m)."""
        self.seen = [on_scale(inverse_distance, scale) for _, _, scale in self.landmarks.terms]

    def screen(self) -> Array:
        """Leg energy at each candidate (b x G), from a sample of the landmarks."""
        k = self.landmarks
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = row_product(self.K[0, :, :m], C[0, ...])
        E += row_product(self.K[1, :, :m], C[1, ...])
        E += quadratic
        E *= k.share_of_screen
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
        gradient = gradient_at_apices(b.frame, pulls, Y @ Y_legs.T)
        return energy, self.apex_weight * gradient

    def _of_pairs(self, Y: Array) -> Iterator[tuple[Array, Array]]:
        """Energy and gradient of each term over pairs."""
        for (weight, term), seen in zip(self.terms, self.seen, strict=True):
            squares, gradient, _ = term.residuals(seen, Y, self.landmarks.Y[: seen.shape[1], :])
            yield weight * squares, weight * gradient

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


class EnergyOnGPU(Energy):
    """`Energy` computed by GPU kernels, which also choose a candidate and descend."""

    def __init__(self, X: Array, landmarks: Landmarks, away_from: Array | None = None) -> None:
        self._compare_with(landmarks, away_from)
        k = landmarks
        sums = k.X, k.P, k.p, k.T, k.used_apex_legs
        self._linear = device.linear_parts(X, *sums, *distance_tolerances(X))
        self.K, self.nearest = self._linear.K, self._linear.nearest
        self._see(self._linear.near)
        frame = k.frame.mT.reshape(6, -1)
        self._legs = namespace(X).concat([frame, k.sigma, k.sigma12[None, :]])

    def places(self) -> device.Places:
        """Candidates and their energies."""
        k, away_from = self.landmarks, self.away_from
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = (self.K[0, :, :m] @ C[0, ...] + quadratic).addmm_(self.K[1, :, :m], C[1, ...])
        E = E if away_from is None else _apart_from(away_from, k.candidates, E)
        return device.Places(k.candidates, E, k.share_of_screen, N_KEPT, math.cos(APART))

    def __call__(self, Y: Array) -> tuple[Array, Array]:
        """Energy (b) and its tangent gradient (b x 3)."""
        return self._by_kernel(Y, (0, 0.0), (0, 0.0))[2:]

    def descend(
        self,
        start: device.Places | Array,
        first: tuple[int, float],
        second: tuple[int, float] = (0, 0.0),
    ) -> tuple[Array, Array]:
        """`bfgs` from the best candidate or from positions; then again for points that have not converged."""
        return self._by_kernel(start, first, second)[:2]

    def _by_kernel(
        self, start: Any, first: tuple[int, float], second: tuple[int, float]
    ) -> tuple[Array, Array, Array, Array]:
        k, m = self.landmarks, self.landmarks.used_apex_legs
        settings = (k.softening, *k.calibration, self.apex_weight, *k.line)
        limits = device.Steps(first, second, LONGEST_STEP, ROUNDING, SETTLED)
        apex = k.X[:m, :], k.Y[:m, :]
        seen = self.seen[0] if self.seen else self._linear.near
        return device.place(self._linear, seen, self._legs, apex, settings, start, limits)


class Energies:
    """Energy of many points, one tile at a time.

    All other operations are on all points at once: with many short operations, threads would wait for the
    global interpreter lock.
    """

    def __init__(self, X: Array, landmarks: Landmarks, away_from: Array | None = None) -> None:
        self.tiles = [
            Energy(X[t, :], landmarks, None if away_from is None else away_from[t, :])
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


def energy_of(X: Array, landmarks: Landmarks, away_from: Array | None = None) -> Energy | Energies:
    """Energy of points; of all at once on a device, which small tiles would leave idle."""
    if on_host(X):
        return Energies(X, landmarks, away_from)
    kind = EnergyOnGPU if landmarks.runs_on_gpu(X) else Energy
    return kind(X, landmarks, away_from)


def _linear_parts(X: Array, k: Landmarks) -> tuple[Array, Array, Array]:
    """K (2 x b x L), inverse distances to the legs of an apex, and the smallest of all (b)."""
    xp = namespace(X)
    inverse_distance = inverse_distances(X, k.X)
    K = row_product(X, xp.matrix_transpose(k.P))
    K -= k.p[:, None, :]
    K *= inverse_distance
    K += k.T[:, None, :]
    to_apex_legs = xp.asarray(inverse_distance[:, : k.n_apex_legs], copy=True)
    return K, to_apex_legs, xp.min(inverse_distance, axis=1)


def _apart_from(Y: Array, candidates: Array, E: Array) -> Array:
    """Energies at candidates (b x G), infinite where these are near Y (b x 3)."""
    return namespace(Y).where(math.cos(APART) < Y @ candidates.T, math.inf, E)


def _weighted_sum(pulls: Array, frame: Array) -> Array:
    """Sum (b x 3) of pulls (2 x b x m) along frames (2 x m x 3), in space."""
    (along_U, along_V), (U, V) = unstack(pulls), unstack(frame)
    return along_U @ U + along_V @ V


def _best_candidate(energy: Energy) -> Array:
    """The candidate of lowest energy, among a few distant ones of lowest leg energy."""
    legs = energy.screen()
    xp = namespace(legs)
    candidates = energy.landmarks.candidates
    lowest = xp.full_like(legs[:, 0], xp.inf)
    best = xp.zeros_like(energy.K[0, :, :3])
    for _ in range(N_KEPT):
        index = xp.argmin(legs, axis=1)
        Y = xp.take(candidates, index, axis=0)
        E = xp.min(legs, axis=1) + energy.beside_legs(Y)
        better = lowest > E
        best = xp.where(better[:, None], Y, best)
        lowest = xp.where(better, E, lowest)
        legs = _apart_from(Y, candidates, legs)
    return best
