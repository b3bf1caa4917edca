"""The exact solver: all triples, the full gradient, L-BFGS on the sphere."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree

from .._data.arrays import Array, namespace, widest
from .._data.threads import Workers
from .._math.angles import MIN_SOFTENING, AngleFit, Calibration, softening_for
from .._math.sphere import normalize, squared_spacing
from .._math.terms import PAIR_TERMS
from .._progress import Report
from .losses import AngleLoss, Objective, PairLoss
from .status import Status

_WINDOW = 5  # iterations over which the decrease of the loss is measured
# Softenings of directions as fractions of the squared spacing of the points (`softening_for`), in order: for
# a sample, for all points, and for polished maps.
ROUGH = 10.0
_ROUGH, _SMOOTH, _POLISHED = (ROUGH,), (ROUGH, 1.0), (ROUGH, 0.1, 1e-4)
# In clusters, the last softening is this multiple of the squared spacing of nearby points: a larger one loses
# the angles within clusters, and a smaller one the neighbourhoods.
_CLUSTER_FACTOR, _NEIGHBOR = 10.0, 6
_COMPARED_AT = 0.01  # fraction of the last softening with which starts are compared
# Without softening, many points form rings that are not in the data, unless angles fit nearly exactly.
_FEW, _NEARLY_EXACT = 100, 0.985  # points, correlation of the angles
_NEEDS_DOUBLE = 1e-3  # softening below which single precision is too coarse
_FOR_STARTS = 10.0  # factor of the tolerance if a descent with less softening follows
_SMALL_LOSS = 0.1  # below it, the absolute decrease counts instead of the relative one
# Evaluations per line search; fewer for all points and for one of many samples. The gradient omits the part
# that shortens softened directions, so a search may find no lower loss.
_STEPS_TRIED, _FEWER_STEPS = 5, 3
_PERFECT = 1e-6  # loss below which the fit stops


def has_pair_terms(n: int, line: Calibration | None, correlation: float) -> bool:
    """Whether the objective for n points and this correlation of angles has terms over pairs."""
    return line is None and n > _FEW and correlation < _NEARLY_EXACT


def objective_of(angles: AngleLoss) -> Objective:
    """The objective with a given angle loss, before the map is known."""
    if not has_pair_terms(len(angles.X), angles.line, 0.0):
        return Objective(angles)
    return Objective(angles, [PairLoss(angles, t.term, t.weight, t.ranked) for t in PAIR_TERMS])


def last_softening(Y: np.ndarray) -> float:
    """Softening of the last descent, see `softening_for`: 1, or less if the points form tight clusters.

    Without clusters, half the points of a normal or uniform distribution in the plane have their k-th
    neighbour within a squared distance of 2 k times `squared_spacing`.
    """
    distance = cKDTree(Y).query(Y, [_NEIGHBOR + 1])[0]
    expected = 2 * _NEIGHBOR * max(squared_spacing(Y), MIN_SOFTENING)
    return float(np.clip(_CLUSTER_FACTOR * np.median(distance) ** 2 / expected, _NEEDS_DOUBLE, 1.0))


def compared_objective(objective: Objective, Y: np.ndarray) -> float:
    """The objective at Y with little softening, in proportion to the squared spacing of the points.

    With the smallest softening, the objective in single precision would be lower for smaller maps.
    """
    if objective.angles.line is not None:
        return objective.value(Y)
    return objective.value(Y, softening_for(Y, _COMPARED_AT * last_softening(Y)))


class _NoLowerLossError(Exception):
    """A line search found no lower loss."""


class Fit(NamedTuple):
    """Result of a solver."""

    Y: np.ndarray
    angle_fit: AngleFit
    history: list[float]
    status: Status


def solve_exact(
    X: Array,
    Y: np.ndarray,
    *,
    line: Calibration | None,
    max_iter: int,
    tol: float,
    workers: Workers,
    report: Report,
    careful: bool = True,
    sharing: AngleLoss | None = None,
    one_of_many: bool = False,
) -> Fit:
    """Minimise the objective over all triples and all pairs from the start Y.

    Directions jump where two points meet, which causes local minima between neighbours. So the objective is
    first minimised with directions softened at three times the spacing of the points, in single precision,
    and then, if `careful`, at their spacing, or less in clusters. Few points, maps that fit nearly exactly,
    and the paper's objective are polished: with less softening, finally in double precision, by angles alone.
    """
    history: list[float] = []
    start, xp = Y, namespace(X)
    loss_of = functools.partial(AngleLoss, line=line, workers=workers)
    if has_pair_terms(len(X), line, 0.0):
        objective = objective_of(loss_of(xp.astype(X, xp.float32), sharing=sharing))
        steps = _FEWER_STEPS if careful or one_of_many else _STEPS_TRIED
        fractions = _SMOOTH if careful else _ROUGH
        for stage in fractions:
            stage_tol = tol if stage == fractions[-1] else _FOR_STARTS * tol
            fraction = stage if stage == ROUGH else last_softening(Y)
            Y, status = _descend(
                objective, fraction, Y, max_iter, stage_tol, history, report, steps, one_of_many
            )
            if status in (Status.CALLBACK, Status.MAX_ITER):
                break
        angles = objective.angles
        found = loss_of(X, sharing=angles).judge(Y)
        stopped = status in (Status.CALLBACK, Status.MAX_ITER)
        if stopped or has_pair_terms(len(X), line, found.correlation):
            return Fit(Y, found, history, status)
        # Single precision is too coarse for maps that fit nearly exactly.
        sharing = angles if X.dtype == angles.X.dtype else None
    judge = loss_of(X, sharing=sharing)
    angles = loss_of(xp.astype(X, xp.float32), sharing=judge)
    for fraction in _POLISHED if careful else _ROUGH:
        if fraction < _NEEDS_DOUBLE:
            angles = loss_of(xp.astype(X, widest(X)), sharing=judge)
        Y, status = _descend(Objective(angles), fraction, Y, max_iter, tol, history, report)
        if status in (Status.CALLBACK, Status.MAX_ITER):
            break
    # With softening, a nearly perfect start may become worse.
    start = np.asarray(normalize(start.astype(np.float64)))
    candidates = ((Z, judge.judge(Z)) for Z in (start, Y))
    return Fit(*min(candidates, key=lambda pair: pair[1].loss), history, status)


def _descend(
    objective: Objective,
    softening_fraction: float,
    Y: np.ndarray,
    max_iter: int,
    tol: float,
    history: list[float],
    report: Report,
    steps: int = _STEPS_TRIED,
    once: bool = False,
) -> tuple[np.ndarray, Status]:
    """Run L-BFGS from Y with softened directions, and append the loss of each iteration to `history`.

    Unit vectors are parametrised by free vectors in R^3. The gradient is tangent, so that their lengths
    hardly change. After a failed line search, SciPy restarts along the gradient; if `once`, the descent ends
    instead.
    """
    start = len(history)
    stopped: list[Status] = []
    # Raised by the user's callback; SciPy would treat it as a request to stop.
    raised: list[StopIteration] = []

    latest = Y.astype(np.float64).ravel()
    first = np.nan  # loss at the start
    left = steps + 1  # evaluations before the next iteration; the first one is at the start

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal first, left
        left -= 1
        if once and left < 0:
            raise _NoLowerLossError
        Z = z.reshape(-1, 3)
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        unit = Z / length
        value, gradient = objective.evaluate(unit, softening_for(unit, softening_fraction))
        first = value if np.isnan(first) else first
        return value, (gradient / length).ravel()

    def after_iteration(intermediate_result: Any) -> None:
        nonlocal latest, left
        latest, left = intermediate_result.x.copy(), steps
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
        "maxls": steps,
        "ftol": 0.0,
        "gtol": 0.0,
    }
    try:
        result = minimize(
            function, latest, jac=True, method="L-BFGS-B", callback=after_iteration, options=limits
        )
        latest = result.x
    except _NoLowerLossError:
        stopped.append(Status.PRECISION)
    if raised:
        raise raised[0]
    Y = normalize(latest.reshape(-1, 3))
    if len(history) == start:  # count an iteration that found no lower loss
        history.append(float(np.sqrt(first)))
    if not stopped:
        stopped.append(Status.MAX_ITER if len(history) >= max_iter else Status.PRECISION)
    return Y, stopped[-1]
