"""The exact solver: all triples, the full gradient, L-BFGS on the sphere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ._angles import (
    ABSOLUTE,
    Bearings,
    Calibration,
    Legs,
    Moments,
    Sums,
    apex_gradient,
    apex_sums,
    bearings,
    calibrate,
    data_moments,
    legs_of,
    map_moments,
    mean_square,
    rounded,
    total,
)
from ._backend import (
    Array,
    Workers,
    beside,
    blocks,
    namespace,
    on_host,
    to_numpy,
    widest,
)
from ._backend import (
    like as alike,
)
from ._progress import Report
from ._sphere import normalize
from ._status import Status

# Told of each iteration: its number, the loss, the positions. True asks to stop.

_PAIRS_A_BLOCK = 1 << 17  # what fits the cache of a core
_PAIRS_KEPT = 1 << 22  # distances and bearings are kept up to here, and computed anew beyond
_PAIRS_ON_DEVICE = 1 << 26  # both of them on a device
_WINDOW = 5  # iterations over which the fall of the loss is judged
# Roundings of directions, in turn; the square root of the first is three times the points' spacing.
COARSE, POLISHED = (10.0,), (10.0, 0.1, 1e-4)
_NEEDS_DOUBLE = 1e-3  # a rounding below which single precision is too coarse
_SMALL_LOSS = 0.1  # below it a fall counts by itself, not as a fraction of what little is left
# In a line search. The gradient leaves out what shortens rounded directions, so that there may be no lower
# loss to be found: this many steps are enough to tell.
_STEPS_TRIED = 5
_PERFECT = 1e-6  # a loss below which there is nothing left to gain


class Fit(NamedTuple):
    """What a solver hands back."""

    Y: np.ndarray
    calibration: Calibration
    loss: float
    correlation: float
    point_loss: np.ndarray
    history: list[float]
    status: Status


class AngleLoss:
    """Mean squared residual over all triples of X and Y, and its gradient, in blocks of apices.

    Parameters
    ----------
    X : (n, r) array
        Denoised data, in the precision to compute in, where to compute.
    calibrated : bool
        Fit (alpha, beta) to the triples at each evaluation. By the envelope theorem the gradient is then
        the one with (alpha, beta) held at their optimum.
    like : AngleLoss, optional
        Another one for the same data: what it knows of the data's own cosines is taken over.
    """

    def __init__(
        self,
        X: Array,
        *,
        calibrated: bool,
        workers: Workers,
        like: AngleLoss | None = None,
    ) -> None:
        n = len(X)
        self.X = X
        self.calibrated = calibrated
        self.calibration = ABSOLUTE
        self.correlation = 0.0
        self.rounding: float | None = None  # of directions, see `rounded`
        self.softening: float | None = None
        host = on_host(X)
        self._map = workers.map if host else Workers(1).map  # a device runs one block at a time
        self._pairs = _PAIRS_A_BLOCK if host else _PAIRS_ON_DEVICE
        self._blocks = blocks(n, max(16, min(256 if host else n, self._pairs // n)))
        self._indices = range(len(self._blocks))
        self._keep = n * n <= (_PAIRS_KEPT if host else _PAIRS_ON_DEVICE)
        self._legs: list[Legs] | None = None
        if like is not None and like.X.dtype == X.dtype:
            self._legs = like._legs  # constants of the data, which evaluations only read
        elif self._keep:
            self._legs = list(self._map(self._prepare, self._blocks))
        self._count, self._a, self._aa = self._data_constants() if like is None else like.constants

    @property
    def constants(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count, sum and sum of squares of the data's cosines at each apex."""
        return self._count, self._a, self._aa

    def _data_constants(self) -> tuple[np.ndarray, ...]:
        n, r = self.X.shape
        parts = list(self._map(self._data_moments, blocks(n, max(1, 8 * self._pairs // (n * r)))))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _prepare(self, block: slice) -> Legs:
        return legs_of(self.X[block], self.X)

    def _data_moments(self, block: slice) -> tuple[np.ndarray, ...]:
        return tuple(to_numpy(m).astype(np.float64) for m in data_moments(self._prepare(block)))

    def _block_legs(self, k: int) -> Legs:
        return self._legs[k] if self._legs is not None else self._prepare(self._blocks[k])

    def _sums(self, Y: Array, k: int) -> tuple[Bearings | None, Sums]:
        legs = self._block_legs(k)
        b = bearings(Y[self._blocks[k]], Y, legs.mask, self.softening)
        return (b if self._keep else None), apex_sums(legs, b)

    def _gradient(self, Y: Array, k: int, b: Bearings | None, s: Sums) -> tuple[Array, Array]:
        legs, block = self._block_legs(k), self._blocks[k]
        if b is None:
            b = bearings(Y[block], Y, legs.mask, self.softening)
        return apex_gradient(legs, Y[block], Y, b, s, self.calibration)

    def _moments(self, sums: Iterable[Sums]) -> Moments:
        parts = [[to_numpy(m).astype(np.float64) for m in map_moments(s)] for s in sums]
        b, bb, ab = (np.concatenate(p) for p in zip(*parts, strict=True))
        return Moments(self._count, self._a, self._aa, b, bb, ab)

    def judge(self, Y: np.ndarray) -> Moments:
        """The moments at each apex with the points at Y (n x 3), whose line is taken over."""
        Y = self._beside_data(Y)
        return self._judged(s for _, s in self._map(lambda k: self._sums(Y, k), self._indices))

    def _judged(self, sums: Iterable[Sums]) -> Moments:
        moments = self._moments(sums)
        line, self.correlation = calibrate(total(moments))
        if self.calibrated:
            self.calibration = line
        return moments

    def value(self, moments: Moments) -> float:
        """Mean squared residual over all triples."""
        return max(float(mean_square(total(moments), self.calibration)), 0.0)

    def point_loss(self, moments: Moments) -> np.ndarray:
        """Root mean squared residual over the pairs of legs of each apex."""
        return np.asarray(np.sqrt(np.maximum(mean_square(moments, self.calibration), 0)))

    def evaluate(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean squared residual at Y (n x 3) and its gradient, tangent to the sphere."""
        Y = self._beside_data(Y)
        xp = namespace(Y)
        found = list(self._map(lambda k: self._sums(Y, k), self._indices))
        moments = self._judged(s for _, s in found)
        gradient = xp.zeros(Y.shape, dtype=widest(Y), **beside(Y))
        parts = self._map(lambda k: self._gradient(Y, k, *found[k]), self._indices)
        for block, (to_apices, to_legs) in zip(self._blocks, parts, strict=True):
            gradient[block] += to_apices
            gradient += to_legs
        gradient /= max(total(moments).count, 1.0)
        return self.value(moments), to_numpy(gradient)

    def _beside_data(self, Y: np.ndarray) -> Array:
        if self.rounding is not None:
            self.softening = rounded(Y, self.rounding)
        return namespace(self.X).asarray(Y, **alike(self.X))


def solve_exact(
    X: Array,
    Y: np.ndarray,
    *,
    calibrated: bool,
    max_iter: int,
    tol: float,
    workers: Workers,
    report: Report,
    roundings: tuple[float, ...] = POLISHED,
    like: AngleLoss | None = None,
) -> Fit:
    """Minimise the loss over all triples from the start Y.

    The directions jump where two points meet, which strews local minima between neighbours. So the loss
    is first minimised with these jumps rounded off at three times the points' spacing, then less: in single
    precision while the rounding-off is coarser than that, in double for the last polish.
    """
    history: list[float] = []
    start, xp = Y, namespace(X)
    if like is None:
        like = AngleLoss(xp.astype(X, widest(X)), calibrated=calibrated, workers=workers)
    single = AngleLoss(xp.astype(X, xp.float32), calibrated=calibrated, workers=workers, like=like)
    objective = single
    for rounding in roundings:
        if rounding < _NEEDS_DOUBLE:
            objective = AngleLoss(
                xp.astype(X, widest(X)), calibrated=calibrated, workers=workers, like=single
            )
        objective.rounding = rounding
        Y, status = _descend(objective, Y, max_iter, tol, history, report)
        if status in (Status.CALLBACK, Status.MAX_ITER):
            break
    objective.rounding = objective.softening = None
    at_start = objective.value(objective.judge(start))
    moments = objective.judge(Y)
    # The softened loss may lead astray where the start was as good as perfect.
    if at_start <= objective.value(moments):
        Y = np.asarray(normalize(start.astype(np.float64)))
        moments = objective.judge(Y)
    return Fit(
        Y,
        objective.calibration,
        float(np.sqrt(objective.value(moments))),
        objective.correlation,
        objective.point_loss(moments),
        history,
        status,
    )


def _descend(
    objective: AngleLoss,
    Y: np.ndarray,
    max_iter: int,
    tol: float,
    history: list[float],
    report: Report,
) -> tuple[np.ndarray, Status]:
    """Run L-BFGS from Y and add the loss of each iteration to `history`.

    The unit vectors are the directions of free vectors in R^3, to which L-BFGS applies as it is: the
    gradient is tangent, so that lengths hardly change.
    """
    start = len(history)
    stopped: list[Status] = []

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        Z = z.reshape(-1, 3)
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        value, gradient = objective.evaluate(Z / length)
        return value, (gradient / length).ravel()

    def after_iteration(intermediate_result: Any) -> None:
        loss = float(np.sqrt(intermediate_result.fun))
        history.append(loss)
        if report(len(history), loss, normalize(intermediate_result.x.reshape(-1, 3))):
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
    if len(history) == start:  # an iteration that found nothing lower is one, too
        history.append(float(np.sqrt(result.fun)))
    if not stopped:
        stopped.append(Status.MAX_ITER if len(history) >= max_iter else Status.PRECISION)
    return normalize(result.x.reshape(-1, 3)), stopped[-1]
