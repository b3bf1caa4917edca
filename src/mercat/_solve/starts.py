"""Choice of the best of several starts, by short descents of a few points."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .._data.arrays import beside, namespace, on_host, to_numpy, widest
from .._data.threads import Workers
from .._math.orientation import orthogonal_onto
from .._math.sphere import geodesic
from . import trials
from .exact import ROUGH, Fit, judged, objective_of, takes_pairs
from .initial import flat_positions, many_positions, pca_positions, resized, size_of
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

_VERY_FEW = 20  # most points for which every start is solved; one may have all angles reversed
_TRIED_FOR = 8  # iterations of every start, after which ...
_PROMISING = 2  # ... this many are chosen
_LEARNED_FROM = 4  # samples of the same data after which only starts that were promising are tried
# Maps are alike if at most this fraction of the points is farther apart than this angle in radians.
_APART, _MOST_APART = 0.1, 0.05
_TRIED_ON_DEVICE = 20  # evaluations of every start on a device
# These are solved on a sample of the points, larger for more points, ...
_LEAST_SAMPLE, _MOST_SAMPLE = 200, 400
_ROUGHLY = 1e-3  # ... to this tolerance
_JUDGED_BY = 2.5  # times as many points are placed against them; their loss decides between starts
_PLACED_TOGETHER = 256  # points per thread, at a time
# Flat data fill more or less of the sphere at about the same objective, which is lowest for the smallest map.
# Their map gets a size that is visible on a globe and does not depend on the seed.
_USUAL_SIZE = 0.25  # root mean square arc from the centre
_SMALL_SIZE = 0.1  # of points in a plane, whose flat map then has nearly exact angles
_IN_A_PLANE = 1e-6  # greatest fraction of the variance of points in a plane that is outside of it
_NO_DIFFERENCE = 1.01  # objectives within this factor count as equal
_CLEARLY = 0.002  # fraction of the objective by which another start must be better than the first


class Promising:
    """Indices of the starts that were promising for samples of the same data."""

    def __init__(self) -> None:
        self._chosen: list[np.ndarray] = []
        # The best start of each sample; all of its promising ones if they led to different arrangements.
        self._best: set[int] = set()

    def among(self, n_starts: int) -> np.ndarray:
        """The starts to try for the next sample: all at first, then those that were promising.

        One is enough if it was the best for each sample and the others led to the same arrangement.
        """
        if len(self._chosen) < _LEARNED_FROM:
            return np.arange(n_starts)
        if len(self._best) == 1:
            return np.array([*self._best])
        return np.unique(np.concatenate(self._chosen))

    def add(self, chosen: np.ndarray, best: int, maps: list[np.ndarray]) -> None:
        """Record the promising starts of another sample, the best of them, and the maps they led to."""
        if len(self._chosen) >= _LEARNED_FROM:
            return
        self._chosen.append(chosen)
        same = all(arranged_alike(Y, maps[0]) for Y in maps[1:])
        self._best.update([best] if same else chosen.tolist())


def arranged_alike(Y: np.ndarray, other: np.ndarray) -> bool:
    """Whether two maps of the same points are alike, up to orientation and size."""
    Y = resized(Y.astype(np.float64), size_of(other.astype(np.float64)))
    apart = geodesic(Y @ orthogonal_onto(Y, other).T, other)
    return bool(np.mean(apart > _APART) <= _MOST_APART)


def best_start(
    X_hat: np.ndarray,
    scores: np.ndarray,
    about_all: AngleLoss,
    descend: Callable[..., Fit],
    *,
    tol: float,
    sample: np.ndarray,
    workers: Workers,
    before: Promising | None = None,
    complete: bool = True,
) -> np.ndarray:
    """Positions of all points from the best of several starts.

    All starts are tried for some iterations on a few points, and the most promising ones are solved. More
    points are then placed against these, and their objective decides, so that the minimum is good for all
    points and not just for the few. The paper's own start is kept unless another one is clearly better.
    Points in a plane start at their flat map, which is smaller if they are `complete`: placing others needs
    space. `before` contains the starts that were promising for other samples of the same data.
    """
    if about_all.line is None and len(X_hat) > _VERY_FEW and _in_a_plane(X_hat, scores):
        return flat_positions(scores, _SMALL_SIZE if complete else _USUAL_SIZE)
    many_there = not on_host(about_all.X) and len(X_hat) > _VERY_FEW
    if many_there and about_all.line is None and trials.known_terms():
        return _best_on_device(scores, about_all, sample, workers)
    in_parts = functools.partial(place_in_blocks, size=_PLACED_TOGETHER, workers=workers)
    quietly = functools.partial(descend, workers=workers, report=lambda *_: False)
    if len(X_hat) <= _VERY_FEW:
        fits = [quietly(X_hat, start, sharing=about_all) for start in many_positions(scores)]
        return min(fits, key=lambda fit: (fit.angle_fit.calibration.beta < 0, fit.angle_fit.loss)).Y
    size = _sample_size(len(X_hat))
    sample, single = sample[: round(_JUDGED_BY * size)], X_hat.astype(np.float32)
    few, many = single[sample[:size]], single
    about_few = AngleLoss(few, line=about_all.line, workers=workers)
    about_many = about_all
    if len(X_hat) > len(sample):
        many = single[sample]
        about_many = AngleLoss(
            many, line=about_all.line, workers=workers, sharing=about_all, rows=sample
        )
    rough = functools.partial(
        quietly, few, careful=False, tol=max(tol, _ROUGHLY), sharing=about_few
    )

    rounding = SMOOTH if about_all.line is None else SHARP

    def follow(start: np.ndarray) -> LandmarkPlacer:
        fit = rough(start)
        takes = takes_pairs(len(few), about_all.line, fit.angle_fit.correlation)
        landmarks = prepare_landmarks(
            few.astype(np.float64),
            fit.Y,
            fit.angle_fit.calibration,
            rounding=rounding,
            terms=placed_terms(few, fit.Y, fit.angle_fit) if takes else (),
        )
        return as_type(landmarks, np.float32)

    def of_many(landmarks: LandmarkPlacer) -> float:
        judge = AngleLoss(many, line=about_all.line, workers=workers, sharing=about_many)
        Y = in_parts(lambda rows: landmarks.place_roughly(rows)[0], many)
        return judged(objective_of(judge), Y)

    starts = many_positions(scores[sample[:size]])
    before = Promising() if before is None else before
    promising = before.among(len(starts))
    if len(promising) > _PROMISING:
        tried = [rough(starts[k], max_iter=_TRIED_FOR).history[-1] for k in promising]
        promising = promising[np.argsort(tried, kind="stable")[:_PROMISING]]
    found, best = [follow(starts[k]) for k in promising], 0
    if len(found) > 1:
        # Favour the paper's start a little.
        handicap = np.where(promising == 0, 1 - _CLEARLY, 1.0)
        best = int(np.argmin(np.array([of_many(landmarks) for landmarks in found]) * handicap))
        before.add(promising, int(promising[best]), [landmarks.Y for landmarks in found])
    return _of_usual_size(scores, in_parts(found[best].place, single), about_all)


def _in_a_plane(X_hat: np.ndarray, scores: np.ndarray) -> bool:
    """Whether two components explain the variance of the points but for rounding errors."""
    everything, plane = (
        float(np.sum(np.var(P, axis=0, dtype=np.float64))) for P in (X_hat, scores[:, :2])
    )
    return everything - plane <= _IN_A_PLANE * everything


def _sample_size(n: int) -> int:
    """Number of points on which starts are tried, of n."""
    return min(max(_LEAST_SAMPLE, round(n / _JUDGED_BY)), _MOST_SAMPLE)


def _best_on_device(
    scores: np.ndarray, about_all: AngleLoss, sample: np.ndarray, workers: Workers
) -> np.ndarray:
    """`best_start` with all starts at once on the device of the data, for the calibrated objective."""
    xp, line = namespace(about_all.X), None
    X = xp.astype(about_all.X, xp.float32)
    size = _sample_size(len(X))
    sample = sample[: round(_JUDGED_BY * size)]
    rows = xp.asarray(sample, **beside(X))
    few, many = X[rows[:size], :], X[rows, :]
    about_few, about_many = (AngleLoss(P, line=line, workers=workers) for P in (few, many))
    both = takes_pairs(len(few), line, 0.0)
    objectives = trials.Objectives(about_few, ROUGH, distances=both)
    starts = np.stack(many_positions(scores[sample[:size]])).astype(np.float32)
    trial = trials.begin(objectives, xp.asarray(starts, **beside(X)))
    # A device completes all starts in the same time as the most promising ones.
    trial = trials.descended(objectives, trial, _TRIED_ON_DEVICE)
    promising = np.argsort(to_numpy(trial.value), kind="stable")[:_PROMISING]
    found = []
    for k in range(len(promising)):
        Y = trial.Y[int(promising[k]), ...]
        fit = about_few.judge(Y)
        alone = not takes_pairs(len(few), line, fit.correlation)
        terms = () if alone else placed_terms(few, Y, fit)
        X_wide, Y_wide = (xp.astype(P, widest(P)) for P in (few, Y))
        landmarks = prepare_landmarks(X_wide, Y_wide, fit.calibration, rounding=SMOOTH, terms=terms)
        landmarks = as_type(landmarks, xp.float32)
        value = judged(objective_of(about_many), to_numpy(landmarks.place_roughly(many)[0]))
        found.append((value * (1 - _CLEARLY if promising[k] == 0 else 1.0), landmarks))
    _, landmarks = min(found, key=lambda pair: pair[0])
    return _of_usual_size(scores, to_numpy(landmarks.place(X)), about_all)


def _of_usual_size(scores: np.ndarray, placed: np.ndarray, about_all: AngleLoss) -> np.ndarray:
    """The placed points or the paper's start, whichever is better; at the usual size if that is as good.

    A smaller map gets the usual size too, unless it is nearly exact: clusters would become too small for
    single precision.
    """
    objective = objective_of(about_all)
    # The paper's start may be perfect, as for points on a line.
    starts = ((start, judged(objective, start)) for start in (pca_positions(scores), placed))
    best, lowest = min(starts, key=lambda pair: pair[1])
    usual: np.ndarray = resized(best, _USUAL_SIZE)
    if judged(objective, usual) <= _NO_DIFFERENCE * lowest:
        return usual
    small = size_of(best) < _USUAL_SIZE
    exact = not takes_pairs(len(best), about_all.line, about_all.judge(best).correlation)
    return usual if small and not exact else best
