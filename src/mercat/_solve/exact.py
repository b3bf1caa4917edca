"""The exact solver: all triples, the full gradient, L-BFGS on the sphere."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from .._data.arrays import Array, beside, blocks, like, namespace, on_host, to_numpy, widest
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
    legs_of,
    map_moments,
    mean_square,
    rounded,
    total,
)
from .._math.sphere import normalize
from .._progress import Report
from .status import Status

_PAIRS_A_BLOCK = 1 << 17  # what fits the cache of a core
_PAIRS_KEPT = 1 << 22  # distances and bearings are kept up to here, and computed anew beyond
_PAIRS_ON_DEVICE = 1 << 26  # both of them on a device
_WINDOW = 5  # iterations over which the fall of the loss is judged
# Roundings of directions, in turn; the square root of the first is three times the points' spacing.
COARSE, POLISHED = (10.0,), (10.0, 0.1, 1e-4)
# Sharp directions draw many points into rings that are not in the data, unless angles fit nearly exactly.
_FEW, NEARLY_EXACT = 100, 0.1  # points, loss
_NEEDS_DOUBLE = 1e-3  # a rounding below which single precision is too coarse
_SMALL_LOSS = 0.1  # below it a fall counts by itself, not as a fraction of what little is left
# In a line search. The gradient leaves out what shortens rounded directions, so that there may be no lower
# loss to be found: this many steps are enough to tell.
_STEPS_TRIED = 5
_PERFECT = 1e-6  # a loss below which there is nothing left to gain


class Fit(NamedTuple):
    """What a solver hands back."""

    Y: np.ndarray
    angle_fit: AngleFit
    history: list[float]
    status: Status


class AngleLoss:
    """Mean squared residual over all triples of X and Y, and its gradient, in blocks of apices.

    Parameters
    ----------
    X : (n, r) array
        Denoised data, in the precision to compute in, where to compute.
    line : Calibration or None
        The (alpha, beta) that residuals are measured against; None for those that fit best, at each
        evaluation. By the envelope theorem the gradient is then the one with these held.
    sharing : AngleLoss, optional
        Another one for the same data: what it knows of the data's own cosines is taken over.
    """

    def __init__(
        self,
        X: Array,
        *,
        line: Calibration | None,
        workers: Workers,
        sharing: AngleLoss | None = None,
    ) -> None:
        n = len(X)
        self.X = X
        self.line = line
        host = on_host(X)
        self._map = workers.map if host else Workers(1).map  # a device runs one block at a time
        self._pairs = _PAIRS_A_BLOCK if host else _PAIRS_ON_DEVICE
        self._blocks = blocks(n, max(16, min(256 if host else n, self._pairs // n)))
        self._indices = range(len(self._blocks))
        self._keep = n * n <= (_PAIRS_KEPT if host else _PAIRS_ON_DEVICE)
        self._legs: list[Legs] | None = None
        if sharing is not None and sharing.X.dtype == X.dtype:
            self._legs = sharing._legs  # constants of the data, which evaluations only read
        elif self._keep:
            self._legs = list(self._map(self._prepare, self._blocks))
        # Count, sum and sum of squares of the data's cosines at each apex.
        self._data_sums: tuple[Any, ...] = (
            self._sum_up_data() if sharing is None else sharing._data_sums
        )

    def _sum_up_data(self) -> tuple[np.ndarray, ...]:
        n, r = self.X.shape
        parts = list(self._map(self._sum_up_block, blocks(n, max(1, 8 * self._pairs // (n * r)))))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _prepare(self, block: slice) -> Legs:
        return legs_of(self.X[block], self.X)

    def _sum_up_block(self, block: slice) -> tuple[np.ndarray, ...]:
        return tuple(to_numpy(m).astype(np.float64) for m in data_moments(self._prepare(block)))

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
        """How well the points at Y (n x 3) keep the angles, over all triples."""
        Y = self._beside_data(Y)
        found = self._map(lambda k: self._sums(Y, k, softening), self._indices)
        return angle_fit(self._moments(s for _, s in found), self.line)

    def evaluate(self, Y: np.ndarray, softening: float | None = None) -> tuple[float, np.ndarray]:
        """Mean squared residual at Y (n x 3) and its gradient, tangent to the sphere.

        `softening` rounds off the directions, see `bearings`.
        """
        Y = self._beside_data(Y)
        xp = namespace(Y)
        found = list(self._map(lambda k: self._sums(Y, k, softening), self._indices))
        moments = total(self._moments(s for _, s in found))
        line = calibrate(moments)[0] if self.line is None else self.line
        gradient = xp.zeros(Y.shape, dtype=widest(Y), **beside(Y))
        parts = self._map(lambda k: self._gradient(Y, k, softening, *found[k], line), self._indices)
        for block, (to_apices, to_legs) in zip(self._blocks, parts, strict=True):
            gradient[block] += to_apices
            gradient += to_legs
        gradient /= max(moments.count, 1.0)
        return float(mean_square(moments, line)), to_numpy(gradient)

    def _beside_data(self, Y: np.ndarray) -> Array:
        return namespace(self.X).asarray(Y, **like(self.X))


def solve_exact(
    X: Array,
    Y: np.ndarray,
    *,
    line: Calibration | None,
    max_iter: int,
    tol: float,
    workers: Workers,
    report: Report,
    roundings: tuple[float, ...] = POLISHED,
    sharing: AngleLoss | None = None,
) -> Fit:
    """Minimise the loss over all triples from the start Y.

    The directions jump where two points meet, which strews local minima between neighbours. So the loss
    is first minimised with these jumps rounded off at three times the points' spacing, in single precision.
    Few points, maps that fit nearly exactly, and the paper's objective are polished: with less rounding, at
    last in double precision.
    """
    history: list[float] = []
    start, xp = Y, namespace(X)
    loss_of = functools.partial(AngleLoss, line=line, workers=workers)
    if sharing is None:
        sharing = loss_of(xp.astype(X, widest(X)))
    objective = single = loss_of(xp.astype(X, xp.float32), sharing=sharing)
    for rounding in roundings:
        if rounding < _NEEDS_DOUBLE:
            objective = loss_of(xp.astype(X, widest(X)), sharing=single)
        Y, status = _descend(objective, rounding, Y, max_iter, tol, history, report)
        if status in (Status.CALLBACK, Status.MAX_ITER):
            break
        if line is None and len(X) > _FEW and history[-1] > NEARLY_EXACT:
            break
    # The softened loss may lead astray where the start was as good as perfect.
    start = np.asarray(normalize(start.astype(np.float64)))
    judge = objective if X.dtype == objective.X.dtype else loss_of(X, sharing=sharing)
    judged = ((Z, judge.judge(Z)) for Z in (start, Y))
    return Fit(*min(judged, key=lambda pair: pair[1].loss), history, status)


def _descend(
    objective: AngleLoss,
    rounding: float,
    Y: np.ndarray,
    max_iter: int,
    tol: float,
    history: list[float],
    report: Report,
) -> tuple[np.ndarray, Status]:
    """Run L-BFGS from Y, with directions `rounded`, and add the loss of each iteration to `history`.

    The unit vectors are the directions of free vectors in R^3, to which L-BFGS applies as it is: the
    gradient is tangent, so that lengths hardly change.
    """
    start = len(history)
    stopped: list[Status] = []
    raised: list[
        StopIteration
    ] = []  # by the user's callback; SciPy would take it for a wish to stop

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        Z = z.reshape(-1, 3)
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        unit = Z / length
        value, gradient = objective.evaluate(unit, rounded(unit, rounding))
        return value, (gradient / length).ravel()

    def after_iteration(intermediate_result: Any) -> None:
        loss = float(np.sqrt(intermediate_result.fun))
        history.append(loss)
        try:
            enough = report(len(history), loss, normalize(intermediate_result.x.reshape(-1, 3)))
        except StopIteration as error:
            raised.append(error)
            raise
        if enough:
            stopped.append(Status.CALLBACK)
            raise StopIteration
        recent = history[start:][-1 - _WINDOW :]
        least = tol * _WINDOW * max(recent[0], _SMALL_LOSS)
        if loss < _PERFECT or (len(recent) > _WINDOW and recent[0] - loss <= least):
            stopped.append(Status.CONVERGED)
            raise StopIteration

    limits = {
        "maxiter": max_iter - start,
        "maxfun": 20 * max_iter,
        "maxls": _STEPS_TRIED,
        "ftol": 0.0,
        "gtol": 0.0,
    }
    result = minimize(
        function,
        Y.astype(np.float64).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=after_iteration,
        options=limits,
    )
    if raised:
        raise raised[0]
    if len(history) == start:  # an iteration that found nothing lower is one, too
        history.append(float(np.sqrt(result.fun)))
    if not stopped:
        stopped.append(Status.MAX_ITER if len(history) >= max_iter else Status.PRECISION)
    return normalize(result.x.reshape(-1, 3)), stopped[-1]
