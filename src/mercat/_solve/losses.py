"""Terms of the objective over all triples and all pairs of points, with their gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _kernels as kernels
from .._data.arrays import Array, blocks, like, namespace, on_host, same_device, to_numpy, widest
from .._data.threads import Workers
from .._math.angles import (
    AngleFit,
    ApexSums,
    Bearings,
    Calibration,
    Legs,
    Moments,
    angle_fit,
    apex_gradient,
    bearings,
    calibrate,
    data_moments,
    directions,
    inverse_distances,
    legs_of,
    map_moments,
    mean_square,
    total,
)
from .._math.distances import HalfRanks, half_ranks
from .._math.sphere import tangent
from .._math.terms import PairTerm, on_scale

T = TypeVar("T")
_PAIRS_PER_BLOCK = 1 << 17  # fits the cache of a core
_PAIRS_KEPT = 1 << 22  # distances and bearings of more pairs are recomputed
_PAIRS_ON_DEVICE = 1 << 26  # both limits on a device


class _Ranked:
    """Inverse distances of points X on the scale `HalfRanks`, by block; kept if not too many."""

    def __init__(self, X: Array, *, keep: bool) -> None:
        self._X, self._keep = X, keep
        self._blocks: dict[int, Array] = {}

    @functools.cached_property
    def _scale(self) -> HalfRanks | None:
        return half_ranks(self._X)

    def __call__(self, k: int, inverse_distance: Array) -> Array:
        """Block k, given its inverse distances."""
        if k in self._blocks:
            return self._blocks[k]
        scaled = on_scale(inverse_distance, self._scale)
        if self._keep:
            self._blocks[k] = scaled
        return scaled


class AngleLoss:
    """Mean squared residual over all triples of X and Y, and its gradient, in blocks of apices.

    Parameters
    ----------
    X : (n, r) array
        Denoised data, in the precision and on the device of the computation.
    line : Calibration or None
        (alpha, beta) of the residuals; None for the best ones at each evaluation. By the envelope theorem,
        they are held constant in the gradient.
    workers : Workers
        Threads.
    sharing : AngleLoss or None, default=None
        Another loss for the same or similar data, whose sums over the data's cosines are reused.
    rows : (n,) array or None, default=None
        Rows of `sharing.X` that equal or resemble those of X, from whose sums the sums for X are estimated;
        None if `sharing.X` equals X.
    """

    def __init__(
        self,
        X: Array,
        *,
        line: Calibration | None,
        workers: Workers,
        sharing: AngleLoss | None = None,
        rows: np.ndarray | None = None,
    ) -> None:
        n = len(X)
        self.X = X
        self.line = line
        host = on_host(X)
        self._map = workers.map if host else Workers(1).map  # a device runs one block at a time
        self._pairs = _PAIRS_PER_BLOCK if host else _PAIRS_ON_DEVICE
        self._blocks = blocks(n, max(16, min(256 if host else n, self._pairs // n)))
        self._indices = range(len(self._blocks))
        self._keep = n * n <= (_PAIRS_KEPT if host else _PAIRS_ON_DEVICE)
        self.n_threads = workers.n_jobs
        self._legs: list[Legs] | None = None
        self._apices: kernels.Apices | None = (
            None  # instead of `_legs`, if compiled kernels are used
        )
        self._ranked = _Ranked(X, keep=self._keep)
        if sharing is not None and rows is None and sharing.X.dtype == X.dtype:
            self._legs, self._apices = sharing._legs, sharing._apices  # constants of the data
            self._ranked = sharing._ranked
        elif (
            self._keep and n <= kernels.MAX_APICES and X.dtype == "float32" and kernels.supports(X)
        ):
            inverse_distance = np.concatenate(
                list(self._map(self._inverse_distances, self._blocks))
            )
            self._apices = kernels.apices_of(X, inverse_distance)
        elif self._keep:
            self._legs = list(self._map(self._prepare, self._blocks))
        # Count, sum and sum of squares of the data's cosines at each apex.
        if sharing is None:
            self._data_sums: tuple[Any, ...] = self._sum_up_data()
        elif rows is None:
            self._data_sums = sharing._data_sums
        else:
            n_shared = len(sharing.X)
            # Ratio of the numbers of pairs of legs.
            ratio = (n - 1) * (n - 2) / max((n_shared - 1) * (n_shared - 2), 1)
            self._data_sums = tuple(ratio * m[rows] for m in sharing._data_sums)

    def _sum_up_data(self) -> tuple[np.ndarray, ...]:
        n, r = self.X.shape
        parts = list(self._map(self._sum_up_block, blocks(n, max(1, 8 * self._pairs // (n * r)))))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _inverse_distances(self, block: slice) -> Array:
        return inverse_distances(self.X[block], self.X)

    def _prepare(self, block: slice) -> Legs:
        return legs_of(self.X[block], self.X)

    def _sum_up_block(self, block: slice) -> tuple[np.ndarray, ...]:
        if self._apices is None:
            found = data_moments(self._prepare(block))
        else:
            inverse_distance = self._apices.inverse_distance[block]
            found = kernels.data_moments(self.X[block], self.X, inverse_distance)
        return tuple(to_numpy(m).astype(np.float64) for m in found)

    def _block_legs(self, k: int) -> Legs:
        return self._legs[k] if self._legs is not None else self._prepare(self._blocks[k])

    def _sums(self, Y: Array, k: int, softening: float | None) -> tuple[Bearings | None, ApexSums]:
        legs = self._block_legs(k)
        b, s = directions(legs, Y[self._blocks[k]], Y, softening)
        return (b if self._keep else None), s

    def _gradient(
        self,
        Y: Array,
        k: int,
        softening: float | None,
        b: Bearings | None,
        s: ApexSums,
        line: Calibration,
    ) -> tuple[Array, Array]:
        legs, block = self._block_legs(k), self._blocks[k]
        if b is None:
            b = bearings(Y[block], Y, legs.mask, softening)
        return apex_gradient(legs, Y[block], Y, b, s, line)

    def _moments(self, sums: Iterable[ApexSums]) -> Moments:
        parts = [[to_numpy(m).astype(np.float64) for m in map_moments(s)] for s in sums]
        return Moments(
            *self._data_sums, *(np.concatenate(part) for part in zip(*parts, strict=True))
        )

    def judge(self, Y: np.ndarray, softening: float | None = None) -> AngleFit:
        """Quality of the angles at Y (n x 3), over all triples."""
        Y = self.beside_data(Y)
        if self._apices is not None:
            return angle_fit(self._moments_by_kernel(self._apices, Y, softening)[0], self.line)
        found = self._map(lambda k: self._sums(Y, k, softening), self._indices)
        return angle_fit(self._moments(s for _, s in found), self.line)

    def evaluate(self, Y: np.ndarray, softening: float | None = None) -> tuple[float, np.ndarray]:
        """Mean squared residual at Y (n x 3) and its gradient, tangent to the sphere.

        `softening`: see `bearings`.
        """
        Y = self.beside_data(Y)
        if self._apices is not None:
            return self._evaluated_by_kernel(self._apices, Y, softening)
        xp = namespace(Y)
        found = list(self._map(lambda k: self._sums(Y, k, softening), self._indices))
        moments = total(self._moments(s for _, s in found))
        line = calibrate(moments)[0] if self.line is None else self.line
        gradient = xp.zeros(Y.shape, dtype=widest(Y), **same_device(Y))
        parts = self._map(lambda k: self._gradient(Y, k, softening, *found[k], line), self._indices)
        for block, (to_apices, to_legs) in zip(self._blocks, parts, strict=True):
            gradient[block] += to_apices
            gradient += to_legs
        gradient /= max(moments.count, 1.0)
        return float(mean_square(moments, line)), to_numpy(gradient)

    def _moments_by_kernel(
        self, apices: kernels.Apices, Y: np.ndarray, softening: float | None
    ) -> tuple[Moments, tuple[np.ndarray, ...]]:
        """Moments of each apex, and sums for the gradient."""
        softening = float(np.finfo(Y.dtype).eps) if softening is None else softening
        moments, *sums = kernels.loss_sums(apices, Y, softening, self.n_threads)
        return Moments(*self._data_sums, *moments.astype(np.float64)), tuple(sums)

    def _evaluated_by_kernel(
        self, apices: kernels.Apices, Y: np.ndarray, softening: float | None
    ) -> tuple[float, np.ndarray]:
        softening = float(np.finfo(Y.dtype).eps) if softening is None else softening
        of_apices, sums = self._moments_by_kernel(apices, Y, softening)
        moments = total(of_apices)
        line = calibrate(moments)[0] if self.line is None else self.line
        gradient = kernels.loss_forces(apices, sums, softening, line, self.n_threads)
        return float(mean_square(moments, line)), gradient / max(moments.count, 1.0)

    @property
    def data_totals(self) -> tuple[float, float, float]:
        """Number, sum and sum of squares of the data's cosines."""
        count, a, aa = (float(np.sum(m)) for m in self._data_sums)
        return count, a, aa

    @property
    def variance(self) -> float:
        """Variance of the data's cosines."""
        count, a, aa = self.data_totals
        return max(aa / max(count, 1.0) - (a / max(count, 1.0)) ** 2, 0.0)

    def each_block(
        self, function: Callable[[slice, Array], T], *, ranked: bool = False
    ) -> Iterator[T]:
        """Apply a function to blocks of points and their inverse distances to all points (b x n).

        If `ranked`, distances are on the scale `HalfRanks`. With compiled kernels, all points are in one
        block, since kernels use threads themselves.
        """
        if self._apices is not None:
            inverse = self._apices.inverse_distance
            scaled = self._ranked(0, inverse) if ranked else inverse
            return iter([function(slice(0, len(inverse)), scaled)])

        def apply(k: int) -> T:
            inverse = self._block_legs(k).inverse_distance
            return function(self._blocks[k], self._ranked(k, inverse) if ranked else inverse)

        return self._map(apply, self._indices)

    def beside_data(self, Y: np.ndarray) -> Array:
        """Positions on the device and in the precision of the data."""
        return namespace(self.X).asarray(Y, **like(self.X))


class PairLoss:
    """A term over all pairs of points, next to the `AngleLoss` of the same points.

    It is multiplied by the variance of the cosines, so that both are comparable. If `ranked`, the term gets
    the distances on the scale `HalfRanks`.
    """

    def __init__(
        self, angles: AngleLoss, term: PairTerm, weight: float, ranked: bool = False
    ) -> None:
        self._angles, self._term = angles, term
        self._weight = weight * angles.variance
        self._each_block = functools.partial(angles.each_block, ranked=ranked)

    def evaluate(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """The term at Y (n x 3), and its gradient, tangent to the sphere.

        By the envelope theorem, the best parameters are held constant in the gradient.
        """
        angles, n = self._angles, len(Y)
        Y_device = angles.beside_data(Y)
        term, value = self._fitted(Y_device)
        scale = 2 * self._weight / (max(n * (n - 1), 1) * term.variance)
        parts = self._each_block(
            lambda block, inverse: term.residuals(
                inverse, Y_device[block, ...], Y_device, angles.n_threads
            )[1]
        )
        gradient = scale * np.concatenate([to_numpy(part) for part in parts]).astype(np.float64)
        return self._weight * value, tangent(gradient, Y)

    def value(self, Y: np.ndarray) -> float:
        """The term at Y (n x 3)."""
        return self._weight * self._fitted(self._angles.beside_data(Y))[1]

    def _fitted(self, Y: Array) -> tuple[PairTerm, float]:
        """The term with the best parameters for all pairs at Y, and its value."""
        term, n_threads = self._term, self._angles.n_threads
        parts = self._each_block(
            lambda block, inverse: to_numpy(term.residuals(inverse, Y[block, ...], Y, n_threads)[2])
        )
        sums = np.sum([np.sum(part, axis=1, dtype=np.float64) for part in parts], axis=0)
        return term.fitted(sums, len(Y) * (len(Y) - 1))


class Objective(NamedTuple):
    """Objective of the exact solver: the angles, and terms over pairs."""

    angles: AngleLoss
    pairs: Sequence[PairLoss] = ()

    def value(self, Y: np.ndarray, softening: float | None = None) -> float:
        """Sum of the terms at Y (n x 3)."""
        return self.angles.judge(Y, softening).loss ** 2 + sum(term.value(Y) for term in self.pairs)

    def evaluate(self, Y: np.ndarray, softening: float) -> tuple[float, np.ndarray]:
        """Sum of the terms at Y (n x 3) and its gradient, tangent to the sphere."""
        value, gradient = self.angles.evaluate(Y, softening)
        for term in self.pairs:
            more, further = term.evaluate(Y)
            value, gradient = value + more, gradient + further
        return value, gradient
