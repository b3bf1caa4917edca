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
MIN_SEPARATION = 0.3  # ... and the smallest distance between them, in radians
CONVERGED_STEP = 0.02  # length of a step below which a point has converged, in radians
ROUNDING = 3e-6  # relative rounding error of an energy in single precision
LONGEST_STEP = 0.15  # radians
FINAL_STEP = 0.01  # length below which a step with a given Hessian is the last, in radians


class Energy:
    """Energy of a block of b points as a function of their positions.

    `min_inverse_distance` (b) is the smallest inverse distance to a landmark. It is zero for a point that
    coincides with a landmark; the energy of such a point is meaningless. Candidates near the positions
    `away_from` (b x 3) are left out.
    """

    def __init__(self, X: Array, landmarks: Landmarks, away_from: Array | None = None) -> None:
        self._set_landmarks(landmarks, away_from)
        self.K, inverse_distance, self.min_inverse_distance = _linear_parts(X, landmarks)
        self.apex_legs = legs_with_ones(
            X, landmarks.X[: landmarks.n_used_apex_legs, :], inverse_distance
        )
        self._set_distances(inverse_distance)

    def _set_landmarks(self, landmarks: Landmarks, away_from: Array | None) -> None:
        self.landmarks, self.away_from = landmarks, away_from
        self.apex_weight, self.terms = landmarks.apex_weight, landmarks.weighted_terms

    def _set_distances(self, inverse_distance: Array) -> None:
        """Put the inverse distances to the legs of an apex (b x m) on the scale of each term over pairs."""
        scales = [scale for _, _, scale in self.landmarks.terms]
        self.scaled_inverses = [on_scale(inverse_distance, scale) for scale in scales]

    def screen(self) -> Array:
        """Leg energy at each candidate (b x G), from a sample of the landmarks."""
        k = self.landmarks
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = row_product(self.K[0, :, :m], C[0, ...])
        E += row_product(self.K[1, :, :m], C[1, ...])
        E += quadratic
        E *= k.screen_factor
        return E if self.away_from is None else _exclude_near(self.away_from, k.candidates, E)

    def best_candidate(self) -> Array:
        """Initial positions (b x 3)."""
        return _best_candidate(self)

    def __call__(self, Y: Array) -> tuple[Array, Array]:
        """Energy (b) and its tangent gradient (b x 3)."""
        leg_energy, leg_gradient = self._as_leg(Y)
        apex_energy, apex_gradient = self._as_apex(Y)
        energy, gradient = leg_energy + apex_energy, leg_gradient + apex_gradient
        for term_energy, term_gradient in self._of_pairs(Y):
            energy, gradient = energy + term_energy, gradient + term_gradient
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
        g = pull_back(g, b.B, b.inverse_sine)
        gradient = gradient_at_apices(b.frame, g, Y @ Y_legs.T)
        return energy, self.apex_weight * gradient

    def _of_pairs(self, Y: Array) -> Iterator[tuple[Array, Array]]:
        """Energy and gradient of each term over pairs."""
        for (weight, term), inverse in zip(self.terms, self.scaled_inverses, strict=True):
            squares, gradient, _ = term.residuals(
                inverse, Y, self.landmarks.Y[: inverse.shape[1], :]
            )
            yield weight * squares, weight * gradient

    def energy_except_as_leg(self, Y: Array) -> Array:
        """Energy (b) as an apex and of the terms over pairs."""
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
        self._set_landmarks(landmarks, away_from)
        k = landmarks
        sums = k.X, k.P, k.p, k.T, k.n_used_apex_legs
        self._linear = device.linear_parts(X, *sums, *distance_tolerances(X))
        self.K, self.min_inverse_distance = self._linear.K, self._linear.min_inv_d
        self._set_distances(self._linear.inv_d)
        frame = k.frame.mT.reshape(6, -1)
        self._legs = namespace(X).concat([frame, k.sigma, k.sigma12[None, :]])

    def places(self) -> device.Places:
        """Candidates and their energies."""
        k, away_from = self.landmarks, self.away_from
        C, quadratic = k.at_candidates
        m = C.shape[1]
        E = (self.K[0, :, :m] @ C[0, ...] + quadratic).addmm_(self.K[1, :, :m], C[1, ...])
        E = E if away_from is None else _exclude_near(away_from, k.candidates, E)
        return device.Places(k.candidates, E, k.screen_factor, N_KEPT, math.cos(MIN_SEPARATION))

    def __call__(self, Y: Array) -> tuple[Array, Array]:
        """Energy (b) and its tangent gradient (b x 3)."""
        return self._by_kernel(Y, (0, 0.0), (0, 0.0))[2:]

    def descend(
        self,
        start: device.Places | Array,
        first: tuple[int, float],
        second: tuple[int, float] = (0, 0.0),
    ) -> tuple[Array, Array]:
        """Run `bfgs` from the best candidates or given positions; again for points that did not converge."""
        return self._by_kernel(start, first, second)[:2]

    def _by_kernel(
        self, start: Any, first: tuple[int, float], second: tuple[int, float]
    ) -> tuple[Array, Array, Array, Array]:
        k, m = self.landmarks, self.landmarks.n_used_apex_legs
        settings = (k.softening, *k.calibration, self.apex_weight, *k.distance_constants)
        limits = device.Steps(first, second, LONGEST_STEP, ROUNDING, CONVERGED_STEP)
        apex = k.X[:m, :], k.Y[:m, :]
        scaled = self.scaled_inverses[0] if self.scaled_inverses else self._linear.inv_d
        return device.place(self._linear, scaled, self._legs, apex, settings, start, limits)


class Energies:
    """Energy of many points, evaluated one tile at a time.

    Other operations process all points at once, since threads would wait for the global interpreter lock
    during many short operations.
    """

    def __init__(self, X: Array, landmarks: Landmarks, away_from: Array | None = None) -> None:
        self.tiles = [
            Energy(X[t, :], landmarks, None if away_from is None else away_from[t, :])
            for t in blocks(X.shape[0], TILE)
        ]

    def __call__(self, Y: Array) -> tuple[Array, ...]:
        each = zip(self.tiles, blocks(Y.shape[0], TILE), strict=True)
        return self._concat(energy(Y[t, :]) for energy, t in each)

    @property
    def min_inverse_distance(self) -> Array:
        return self._concat((energy.min_inverse_distance,) for energy in self.tiles)[0]

    def best_candidate(self) -> Array:
        return self._concat((energy.best_candidate(),) for energy in self.tiles)[0]

    @staticmethod
    def _concat(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
        return tuple(namespace(p[0]).concat(p, axis=0) for p in zip(*parts, strict=True))


def energy_of(X: Array, landmarks: Landmarks, away_from: Array | None = None) -> Energy | Energies:
    """Energy of points: in tiles in memory, but of all points at once on a device, where tiles are slow."""
    if on_host(X):
        return Energies(X, landmarks, away_from)
    energy_type = EnergyOnGPU if landmarks.runs_on_gpu(X) else Energy
    return energy_type(X, landmarks, away_from)


def _linear_parts(X: Array, k: Landmarks) -> tuple[Array, Array, Array]:
    """K (2 x b x L), inverse distances to the legs of an apex, and the smallest to any landmark (b)."""
    xp = namespace(X)
    inverse_distance = inverse_distances(X, k.X)
    K = row_product(X, xp.matrix_transpose(k.P))
    K -= k.p[:, None, :]
    K *= inverse_distance
    K += k.T[:, None, :]
    to_apex_legs = xp.asarray(inverse_distance[:, : k.n_apex_legs], copy=True)
    return K, to_apex_legs, xp.min(inverse_distance, axis=1)


def _exclude_near(Y: Array, candidates: Array, E: Array) -> Array:
    """Energies E (b x G) at candidates, replaced by infinity where a candidate is near Y (b x 3)."""
    return namespace(Y).where(math.cos(MIN_SEPARATION) < Y @ candidates.T, math.inf, E)


def _weighted_sum(g: Array, frame: Array) -> Array:
    """Sum over landmarks (b x 3) of vectors g (2 x b x m) in tangent planes with frames (2 x m x 3)."""
    (along_U, along_V), (U, V) = unstack(g), unstack(frame)
    return along_U @ U + along_V @ V


def _best_candidate(energy: Energy) -> Array:
    """The candidate with the lowest energy, among a few distant ones with the lowest energies as a leg."""
    leg_energy = energy.screen()
    xp = namespace(leg_energy)
    candidates = energy.landmarks.candidates
    lowest = xp.full_like(leg_energy[:, 0], xp.inf)
    best = xp.zeros_like(energy.K[0, :, :3])
    for _ in range(N_KEPT):
        index = xp.argmin(leg_energy, axis=1)
        Y = xp.take(candidates, index, axis=0)
        E = xp.min(leg_energy, axis=1) + energy.energy_except_as_leg(Y)
        better = lowest > E
        best = xp.where(better[:, None], Y, best)
        lowest = xp.where(better, E, lowest)
        leg_energy = _exclude_near(Y, candidates, leg_energy)
    return best
