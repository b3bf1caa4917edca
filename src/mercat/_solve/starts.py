"""Choice of the best of several starts, by short descents of a few points."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .._data.arrays import namespace, on_host, same_device, to_numpy, widest
from .._data.threads import Workers
from .._math.orientation import orthogonal_onto
from .._math.sphere import geodesic
from . import trials
from .exact import ROUGH, Fit, compared_objective, has_pair_terms, objective_of
from .initial import flat_positions, pca_positions, resized, size_of, start_positions
from .losses import AngleLoss
from .placement import (
    SHARP,
    SMOOTH,
    LandmarkPlacer,
    as_type,
    place_in_blocks,
    placed_terms,
    prepare_landmarks,
)

# Up to this many points, every start is solved to the end, since a solution may reverse all angles
# (beta < 0).
_VERY_FEW = 20
_TRIAL_ITERATIONS = 8  # iterations of every start, after which ...
_N_PROMISING = 2  # ... this many are chosen
# Samples of the same data after which only starts that were promising are tried.
_N_TRAINING_SAMPLES = 4
# Maps are alike if the distances of all but this fraction of the points are at most this angle in radians.
_MAX_FRACTION_APART, _MAX_ANGLE = 0.05, 0.1
_TRIAL_EVALUATIONS = 20  # evaluations of every start on a device
# Starts are solved on a sample of the points, larger for more points, ...
_MIN_SAMPLE, _MAX_SAMPLE = 200, 400
_TRIAL_TOL = 1e-3  # ... to this tolerance
# The test sample is this many times the trial sample; the start with the lowest objective on it is used.
_TEST_FACTOR = 2.5
_POINTS_PER_BLOCK = 256  # placed by a thread at a time
# For flat data, the objective hardly depends on the size of the map, and is lowest for the smallest. Their
# map gets a size that is visible on a globe and does not depend on the seed.
_USUAL_SIZE = 0.25  # root mean square arc from the centre
_SMALL_SIZE = 0.1  # size of the map of points in a plane, which then has nearly exact angles
# Largest variance outside a plane, relative to the smaller variance in it, of points that lie in the plane.
_PLANE_TOLERANCE = 1e-6
_PAPER_START = 0  # its index in start_positions
_EQUAL_FACTOR = 1.01  # objectives within this factor count as equal
# Fraction of the objective by which another start must be better than the first.
_MIN_IMPROVEMENT = 0.002


class PromisingStarts:
    """Indices of the starts that were promising for samples of the same data."""

    def __init__(self) -> None:
        self._chosen: list[np.ndarray] = []
        # The best start of each sample; all of its promising ones if they led to different arrangements.
        self._best: set[int] = set()

    def among(self, n_starts: int) -> np.ndarray:
        """The starts to try for the next sample: all at first, then those that were promising.

        One is enough if it was the best for each sample and the others led to the same arrangement.
        """
        if len(self._chosen) < _N_TRAINING_SAMPLES:
            return np.arange(n_starts)
        if len(self._best) == 1:
            return np.array([*self._best])
        return np.unique(np.concatenate(self._chosen))

    def add(self, chosen: np.ndarray, best: int, maps: list[np.ndarray]) -> None:
        """Record the promising starts of another sample, the best of them, and the maps they led to."""
        if len(self._chosen) >= _N_TRAINING_SAMPLES:
            return
        self._chosen.append(chosen)
        same = all(arranged_alike(Y, maps[0]) for Y in maps[1:])
        self._best.update([best] if same else chosen.tolist())


def arranged_alike(Y: np.ndarray, other: np.ndarray) -> bool:
    """Whether two maps of the same points are alike, up to orientation and size."""
    Y = resized(Y.astype(np.float64), size_of(other.astype(np.float64)))
    distance = geodesic(Y @ orthogonal_onto(Y, other).T, other)
    return bool(np.mean(distance > _MAX_ANGLE) <= _MAX_FRACTION_APART)


def best_start(
    X_hat: np.ndarray,
    scores: np.ndarray,
    angles: AngleLoss,
    descend: Callable[..., Fit],
    *,
    tol: float,
    sample: np.ndarray,
    workers: Workers,
    before: PromisingStarts | None = None,
    complete: bool = True,
) -> np.ndarray:
    """Positions of all points from the best of several starts.

    All starts are tried for some iterations on a few points, and the most promising ones are solved. More
    points are then placed against these, and their objective decides, so that the minimum is good for all
    points and not just for the few. The paper's own start is kept unless another one is clearly better.
    Points in a plane start at their flat map, which is smaller if they are `complete`: placing others needs
    space. `before` contains the starts that were promising for other samples of the same data. The
    calibration is fitted if `angles.line` is None, and fixed for the paper's loss.
    """
    if angles.line is None and len(X_hat) > _VERY_FEW and _in_a_plane(X_hat, scores):
        return flat_positions(scores, _SMALL_SIZE if complete else _USUAL_SIZE)
    on_device = not on_host(angles.X) and len(X_hat) > _VERY_FEW
    if on_device and angles.line is None and trials.supports_terms():
        return _best_on_device(scores, angles, sample, workers)
    in_blocks = functools.partial(place_in_blocks, size=_POINTS_PER_BLOCK, workers=workers)
    descend_silently = functools.partial(descend, workers=workers, report=lambda *_: False)
    if len(X_hat) <= _VERY_FEW:
        fits = [descend_silently(X_hat, start, sharing=angles) for start in start_positions(scores)]
        return min(fits, key=lambda fit: (fit.angle_fit.calibration.beta < 0, fit.angle_fit.loss)).Y
    size = _sample_size(len(X_hat))
    sample, X = sample[: round(_TEST_FACTOR * size)], X_hat.astype(np.float32)
    X_trial, X_test = X[sample[:size]], X
    trial_angles = AngleLoss(X_trial, line=angles.line, workers=workers)
    test_angles = angles
    if len(X_hat) > len(sample):
        X_test = X[sample]
        test_angles = AngleLoss(
            X_test, line=angles.line, workers=workers, sharing=angles, rows=sample
        )
    solve = functools.partial(
        descend_silently, X_trial, careful=False, tol=max(tol, _TRIAL_TOL), sharing=trial_angles
    )

    softening_fraction = SMOOTH if angles.line is None else SHARP

    def solved_landmarks(start: np.ndarray) -> LandmarkPlacer:
        fit = solve(start)
        with_pairs = has_pair_terms(len(X_trial), angles.line, fit.angle_fit.correlation)
        landmarks = prepare_landmarks(
            X_trial.astype(np.float64),
            fit.Y,
            fit.angle_fit.calibration,
            softening_fraction=softening_fraction,
            terms=placed_terms(X_trial, fit.Y, fit.angle_fit) if with_pairs else (),
        )
        return as_type(landmarks, np.float32)

    def test_objective(landmarks: LandmarkPlacer) -> float:
        loss = AngleLoss(X_test, line=angles.line, workers=workers, sharing=test_angles)
        Y = in_blocks(lambda rows: landmarks.place_roughly(rows)[0], X_test)
        return compared_objective(objective_of(loss), Y)

    starts = start_positions(scores[sample[:size]])
    before = PromisingStarts() if before is None else before
    promising = before.among(len(starts))
    if len(promising) > _N_PROMISING:
        losses = [solve(starts[k], max_iter=_TRIAL_ITERATIONS).history[-1] for k in promising]
        promising = promising[np.argsort(losses, kind="stable")[:_N_PROMISING]]
    solutions, best = [solved_landmarks(starts[k]) for k in promising], 0
    if len(solutions) > 1:
        # Favour the paper's start a little.
        factors = np.where(promising == _PAPER_START, 1 - _MIN_IMPROVEMENT, 1.0)
        objectives = np.array([test_objective(landmarks) for landmarks in solutions])
        best = int(np.argmin(objectives * factors))
        before.add(promising, int(promising[best]), [landmarks.Y for landmarks in solutions])
    return _with_usual_size(scores, in_blocks(solutions[best].place, X), angles)


def _in_a_plane(X_hat: np.ndarray, scores: np.ndarray) -> bool:
    """Whether the points lie in the plane of the first two components, up to rounding errors."""
    total, first, second = (
        float(np.sum(np.var(P, axis=0, dtype=np.float64)))
        for P in (X_hat, scores[:, :1], scores[:, 1:2])
    )
    # Relative to the second component: an outlier alone may determine the first.
    return total - first - second <= _PLANE_TOLERANCE * second


def _sample_size(n: int) -> int:
    """Number of points, out of n, on which starts are tried."""
    return min(max(_MIN_SAMPLE, round(n / _TEST_FACTOR)), _MAX_SAMPLE)


def _best_on_device(
    scores: np.ndarray, angles: AngleLoss, sample: np.ndarray, workers: Workers
) -> np.ndarray:
    """`best_start` with all starts at once on the device of the data, for the calibrated objective."""
    xp = namespace(angles.X)
    line = None
    X = xp.astype(angles.X, xp.float32)
    size = _sample_size(len(X))
    sample = sample[: round(_TEST_FACTOR * size)]
    rows = xp.asarray(sample, **same_device(X))
    X_trial, X_test = X[rows[:size], :], X[rows, :]
    trial_angles, test_angles = (
        AngleLoss(P, line=line, workers=workers) for P in (X_trial, X_test)
    )
    with_pairs = has_pair_terms(len(X_trial), line, 0.0)
    objectives = trials.Objectives(trial_angles, ROUGH, distances=with_pairs)
    starts = np.stack(start_positions(scores[sample[:size]])).astype(np.float32)
    trial = trials.begin(objectives, xp.asarray(starts, **same_device(X)))
    # A device completes all starts in the same time as the most promising ones.
    trial = trials.descended(objectives, trial, _TRIAL_EVALUATIONS)
    promising = np.argsort(to_numpy(trial.value), kind="stable")[:_N_PROMISING]
    solutions = []
    for k in range(len(promising)):
        Y = trial.Y[int(promising[k]), ...]
        fit = trial_angles.judge(Y)
        with_pairs = has_pair_terms(len(X_trial), line, fit.correlation)
        terms = placed_terms(X_trial, Y, fit) if with_pairs else ()
        X_wide, Y_wide = (xp.astype(P, widest(P)) for P in (X_trial, Y))
        landmarks = prepare_landmarks(
            X_wide, Y_wide, fit.calibration, softening_fraction=SMOOTH, terms=terms
        )
        landmarks = as_type(landmarks, xp.float32)
        Y_test = to_numpy(landmarks.place_roughly(X_test)[0])
        value = compared_objective(objective_of(test_angles), Y_test)
        factor = 1 - _MIN_IMPROVEMENT if promising[k] == _PAPER_START else 1.0
        solutions.append((value * factor, landmarks))
    _, landmarks = min(solutions, key=lambda pair: pair[0])
    return _with_usual_size(scores, to_numpy(landmarks.place(X)), angles)


def _with_usual_size(scores: np.ndarray, placed: np.ndarray, angles: AngleLoss) -> np.ndarray:
    """The placed points or the paper's start, whichever is better; at the usual size if that is as good.

    A smaller map gets the usual size too, unless it is nearly exact: clusters would become too small for
    single precision.
    """
    objective = objective_of(angles)
    # The paper's start may be perfect, as for points on a line.
    starts = (pca_positions(scores), placed)
    candidates = ((start, compared_objective(objective, start)) for start in starts)
    best, lowest = min(candidates, key=lambda pair: pair[1])
    usual: np.ndarray = resized(best, _USUAL_SIZE)
    if compared_objective(objective, usual) <= _EQUAL_FACTOR * lowest:
        return usual
    smaller = size_of(best) < _USUAL_SIZE
    exact = not has_pair_terms(len(best), angles.line, angles.judge(best).correlation)
    return usual if smaller and not exact else best
