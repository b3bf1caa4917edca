"""Far terms of the descent: angles and terms over pairs, between every point and a few anchors.

There is one `AngleTerm`, and `PairForces` turns any term of `_math/terms.py` into a far term; new terms are
added there. A far term is a record with two methods, which `FarTerms` and the placement of new points call:

- ``force(pairs, Y, anchors)``: for points at Y, n times the gradient of the term (b x 3), a bound on its
  curvature (b x 1 or a number), and sums for the update of the term.
- ``learned(sums, n, m)``: the updated term after a step of n points and m anchors with these sums.

In each step, all points are compared with the same anchors; the next step uses other anchors. The noise of
the forces is then nearly the same for neighbours and moves them together; separate anchors per point would
move them apart.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import _kernels as kernels
from .._data.arrays import Array, namespace, row_blocks, row_dot, row_product, to_numpy, widest
from .._data.sampling import Sample
from .._data.threads import Workers
from .._kernels import device as device_kernels
from .._math.angles import (
    ApexSums,
    Calibration,
    Moments,
    apex_gradient,
    bearings,
    calibrate,
    data_moments,
    directions,
    distance_tolerances,
    inverse_distances,
    legs_of,
    legs_with_ones,
    map_moments,
    mean_square,
)
from .._math.distances import MIN_SINE, DistanceTerm
from .._math.sphere import tangent_frame
from .._math.terms import PAIR_TERMS, PairTerm, fitted_to

# At least the first number of anchors; for few points, as many as give the second number of pairs.
_MIN_ANCHORS, _PAIRS = 48, 250_000
_ROWS_PER_BLOCK, _N_BLOCKS = 1024, 32  # minimum and maximum, for any number of threads
_COSINE_SAMPLE = 256  # points used to estimate mean and variance of the cosines
_PARAMETER_SAMPLE = 256  # points used to fit the terms over pairs at first
_MIN_VARIANCE = 1e-9  # smaller variances of cosines are rounding errors
_ANGLE_CURVATURE = 3.0  # safety factor for the curvature of the angle term


class _Fields(NamedTuple):
    """Fields of `Anchors`."""

    X: Array  # (m, r) data
    Y: Array  # (m, 3) positions
    sums: ApexSums
    softening: float  # softening of directions, see `bearings`


class Anchors(_Fields):
    """Sample of the points, with sums of the directions between them."""

    @functools.cached_property
    def frame(self) -> Array:
        """Tangent vectors (2 x m x 3)."""
        return tangent_frame(self.Y)

    @functools.cached_property
    def offset(self) -> Array:
        """Inner products of the sums M at each anchor with its data (2m)."""
        return row_dot(self.sums.M, self.X).reshape(-1)

    @functools.cached_property
    def for_kernels(self) -> kernels.Anchors:
        """The anchors in the layout of the C kernels."""
        return kernels.anchors_of(self.X, self.Y, self.frame, self.sums, self.offset)

    def __getstate__(self) -> None:
        """Return no state: the fields are pickled without it, and cached properties are left out."""


def n_anchors(n: int) -> int:
    """Number of anchors for n points; all points if there are few."""
    return min(n, max(_MIN_ANCHORS, _PAIRS // n))


def anchors_at(X: Array, Y: Array, softening: float) -> Anchors:
    """Anchors with data X and positions Y."""
    return Anchors(X, Y, directions(legs_of(X, X), Y, Y, softening)[1], softening)


class Pairs(NamedTuple):
    """Points and anchors in the data."""

    X: Array  # (b, r) points
    inverse_distance: Array  # (b, m) to the anchors, 0 where points coincide
    squares: Array | None = None  # (b,) squared norms of the points, for kernels on a device


def pairs_of(X: Array, anchors: Anchors, squares: Array | None = None) -> Pairs:
    """Pairs of points X (b x r) and anchors."""
    if squares is None and device_kernels.supports(X):
        squares = device_kernels.squared_norms(X)
    return Pairs(X, inverse_distances(X, anchors.X, squares), squares)


class Term(Protocol):
    """Interface of a far term."""

    def force(self, pairs: Pairs, Y: Array, anchors: Anchors) -> tuple[Array, Any, Array]:
        """n times the gradient (b x 3), a bound on its curvature, and sums for `learned`."""

    def learned(self, sums: np.ndarray, n: int, m: int) -> Term:
        """The updated term after a step."""


class AngleTerm(NamedTuple):
    """Mean squared residual of the cosines, as a fraction of their variance."""

    calibration: Calibration
    variance: float  # variance of the cosines in the data; infinite (a term of 0) if all are equal
    mean: float = 0.0  # mean of these cosines
    calibrated: bool = False  # whether the line is refitted after each step
    loss: float = 0.0  # root mean squared residual at the last step

    def factors(self, m: int) -> tuple[float, float]:
        """Divisor of the summed forces from m anchors, and factor of the sums of squared inverse sines."""
        steepest = _ANGLE_CURVATURE * 4 * self.calibration.beta**2 / (m * self.variance)
        return max(m * (m - 1), 1) * self.variance, steepest

    def force(self, pairs: Pairs, Y: Array, anchors: Anchors) -> tuple[Array, Array, Array]:
        """Forces on points as apices over pairs of anchors, and as legs at anchors with the other anchors.

        The sums are those of b, b^2 and ab over the triples with points as apices.
        """
        xp, m = namespace(Y), anchors.X.shape[0]
        X, inverse_distance, squares = pairs
        count, steepest = self.factors(m)
        if device_kernels.supports(X, Y, inverse_distance) and device_kernels.legs_fit(m):
            force, steepness, moments = device_kernels.angle_force(
                X,
                squares,
                Y,
                inverse_distance,
                anchors,
                anchors.frame,
                anchors.offset,
                self.calibration,
            )
            sums = xp.sum(moments, axis=1, dtype=widest(moments))
        else:
            mask = xp.astype(inverse_distance > 0, inverse_distance.dtype)
            legs = legs_with_ones(X, anchors.X, inverse_distance)._replace(mask=mask)
            b, s = directions(legs, Y, anchors.Y, anchors.softening)
            to_apices, _ = apex_gradient(legs, Y, anchors.Y, b, s, self.calibration)
            inverse_distance, mask = (
                xp.matrix_transpose(inverse_distance),
                xp.matrix_transpose(mask),
            )
            legs = legs_with_ones(anchors.X, X, inverse_distance)._replace(mask=mask)
            b_anchors = bearings(anchors.Y, Y, mask, anchors.softening)
            _, to_legs = apex_gradient(
                legs, anchors.Y, Y, b_anchors, anchors.sums, self.calibration
            )
            force, steepness = to_apices + to_legs, row_dot(b.inverse_sine, b.inverse_sine)
            sums = xp.stack([xp.sum(v) for v in map_moments(s)])
        return force / count, steepest * steepness[:, None], sums

    def learned(self, sums: np.ndarray, n: int, m: int) -> AngleTerm:
        """The term with updated loss and line through the cosines."""
        b, bb, ab = (float(s) / (n * max(m * (m - 1), 1)) for s in sums)
        variance = self.variance if np.isfinite(self.variance) else 0.0
        means = Moments(1.0, self.mean, variance + self.mean**2, b, bb, ab)
        line = calibrate(means)[0] if self.calibrated else self.calibration
        return self._replace(calibration=line, loss=float(np.sqrt(mean_square(means, line))))


def products_of(X: Array, anchors: Anchors) -> Array:
    """Inner products of the sums M at each anchor with the differences between X and the anchor (b x 2m)."""
    M = anchors.sums.M.reshape(-1, X.shape[1])
    products = row_product(X, namespace(X).matrix_transpose(M))
    products -= anchors.offset
    return products


def angle_term(X: Array, calibration: Calibration, calibrated: bool, sample: Sample) -> AngleTerm:
    """Angle term for data X (n x r), given the calibration of the map of angles."""
    X = X[sample.rows[:_COSINE_SAMPLE]]
    count, a, aa = (
        float(to_numpy(m).astype(np.float64).sum()) for m in data_moments(legs_of(X, X))
    )
    mean = a / max(count, 1.0)
    variance = aa / max(count, 1.0) - mean**2
    return AngleTerm(
        calibration, variance if variance > _MIN_VARIANCE else np.inf, mean, calibrated
    )


class PairForces(NamedTuple):
    """A term over pairs of points and anchors."""

    term: PairTerm
    weight: float  # relative to the angle term

    def factors(self, m: int) -> tuple[float, float]:
        """Factor of the gradient of the residuals with m anchors, and the curvature."""
        # A pair is part of the forces on both of its points, and both move: twice the curvature.
        share = 2 * self.weight / self.term.variance
        return share / m, 2 * share * self.term.curvature

    def force(self, pairs: Pairs, Y: Array, anchors: Anchors) -> tuple[Array, float, Array]:
        """Forces between points and anchors; the sums are those of `PairTerm.residuals`."""
        share, curvature = self.factors(anchors.X.shape[0])
        _, gradient, sums = self.term.residuals(pairs.inverse_distance, Y, anchors.Y)
        return gradient * share, curvature, namespace(Y).sum(sums, axis=1)

    def learned(self, sums: np.ndarray, n: int, m: int) -> PairForces:
        """The term with updated parameters."""
        return self._replace(term=self.term.fitted(sums, n * m)[0])


def pair_forces(X: Array, Y: Array, sample: Sample) -> list[PairForces]:
    """All terms over pairs, for data X (n x r) at Y (n x 3)."""
    rows = sample.rows[:_PARAMETER_SAMPLE]
    return [
        PairForces(fitted_to(entry.term, X[rows], Y[rows]), entry.weight_with_detail)
        for entry in PAIR_TERMS
    ]


class FarTerms:
    """The far terms during a descent of points X (n x r)."""

    def __init__(
        self,
        X: Array,
        angles: AngleTerm,
        pairs: Sequence[PairForces],
        sample: Sample,
        workers: Workers,
    ) -> None:
        self.X, self.angles, self.pairs = X, angles, tuple(pairs)
        self._sample, self._workers, self._step = sample, workers, 0
        self._squares = device_kernels.squared_norms(X) if device_kernels.supports(X) else None

    def force(self, Y: Array, softening: float) -> tuple[Array, Array]:
        """n times the gradient of the sum of the terms (n x 3), and its approximate curvature (n x 1)."""
        n, m = len(Y), n_anchors(len(Y))
        rows = self._sample.subsample(self._step, m)
        self._step += 1
        anchors = anchors_at(self.X[rows], Y[rows], softening)
        numbers = None
        if kernels.supports(self.X, Y) and Y.dtype == "float32":
            numbers = numbers_for_kernels(self.angles, self.pairs, anchors)
        if numbers is None:
            force, curvature, sums = self._force(Y, anchors)
        else:
            n_threads = self._workers.n_jobs
            force, curvature, sums = _force_in_c(self.X, Y, anchors, numbers, n_threads)
        self.angles = self.angles.learned(sums[0], n, m)
        self.pairs = tuple(
            term.learned(of_term, n, m) for term, of_term in zip(self.pairs, sums[1:], strict=False)
        )
        return force, curvature

    def _force(self, Y: Array, anchors: Anchors) -> tuple[Array, Array, list[np.ndarray]]:
        """Sums of the forces of all terms and of their curvatures, and the sums of each term."""
        xp, (n, m) = namespace(Y), (len(Y), len(anchors.X))
        terms: list[Term] = [self.angles, *self.pairs]

        def part(block: slice) -> tuple[Array, Array, list[np.ndarray]]:
            squares = None if self._squares is None else self._squares[block]
            pairs = pairs_of(self.X[block], anchors, squares)
            results = [term.force(pairs, Y[block], anchors) for term in terms]
            forces, curvatures, sums = zip(*results, strict=True)
            return sum(forces), sum(curvatures), [to_numpy(s).astype(np.float64) for s in sums]

        blocks = row_blocks(Y, max(_ROWS_PER_BLOCK, -(-n // _N_BLOCKS)), 16 * m)
        forces, curvatures, sums = zip(*self._workers.map(part, blocks), strict=True)
        of_terms = [np.sum(parts, axis=0) for parts in zip(*sums, strict=True)]
        return xp.concat(forces), xp.concat(curvatures), of_terms


def numbers_for_kernels(
    angles: AngleTerm, pairs: Sequence[PairForces], anchors: Anchors
) -> tuple[float, ...] | None:
    """Numbers of these terms for the C kernels; None if the kernels do not support the terms."""
    if [type(pair.term) for pair in pairs] not in ([], [DistanceTerm]):
        return None
    m = len(anchors.X)
    count, steepest = angles.factors(m)
    distances = pairs[0] if pairs else PairForces(DistanceTerm(), 0.0)
    term: Any = distances.term
    of_angles = *angles.calibration, anchors.softening, 1 / count, steepest
    return *of_angles, term.p, term.q, MIN_SINE, *distances.factors(m)


def _force_in_c(
    X: np.ndarray, Y: np.ndarray, anchors: Anchors, numbers: tuple[float, ...], n_threads: int
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Sums of the forces of angles and distances and of their curvatures, and the sums of each term."""
    numbers = *numbers, *distance_tolerances(X)
    force, curvature, sums = kernels.far_forces(X, Y, anchors.for_kernels, numbers, n_threads)
    return force, curvature, [sums[:3], sums[3:]]
