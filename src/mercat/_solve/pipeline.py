"""From denoised data to a finished map: solve all points, or solve a sample and place the others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import Array, blocks, namespace, to_numpy
from .._data.sampling import Sample, sample_of
from .._data.source import RowSource
from .._data.threads import Workers
from .._math.angles import (
    ABSOLUTE,
    AngleFit,
    Calibration,
    Moments,
    calibrate,
    mean_square,
    total,
)
from .._progress import Progress, reporter
from .._reduce.components import ComponentReducer
from .._reduce.reducer import Reducer, project_all
from .algorithm1 import solve_algorithm1
from .anchors import (
    Anchors,
    HeldMap,
    anchored_sample,
    anchored_start,
    hold,
    no_farther_than_needed,
)
from .diagnostics import (
    Diagnostics,
    Unseen,
    correlation_among,
    crowding,
    find_cut,
    find_dominance,
)
from .exact import Fit, solve_exact, takes_pairs
from .fitted_map import FittedMap, ScoredMap, loss_sample
from .initial import pca_positions, principal_scores
from .losses import AngleLoss
from .placement import (
    N_APEX_LEGS,
    SHARP,
    SMOOTH,
    LandmarkPlacer,
    as_type,
    placed_terms,
    prepare_landmarks,
)
from .starts import Promising, best_start
from .status import Status

_EXACT_UP_TO = 2000  # points that solver="auto" solves exactly, ...
_EXACT_WITH_DETAIL_UP_TO = 1000  # ... if the descent starts from a map of averages
_MAX_ITER = 500
_FOR_SAMPLES = 3  # factor of the tolerance if a sample is solved
CROWD = 10_000  # points that determine the rotation of the map, ...
_CROWD_VALUES = 4_000_000  # ... fewer if components must be computed from more values than this
# Landmarks that a point is compared with (the others contribute through sums): more for few points.
_PLACED_AGAINST, _PLACED_PAIRS = 128, 4_000_000
# Number of these that are legs of the placed point as an apex: also more for few points.
_MOST_LEGS, _PLACED_LEGS = 300, 2_400_000
_EXACT_LOSS_UP_TO = 4000  # points for which the loss of Algorithm 1 is computed over all triples
_FULL_BATCH_UP_TO = 10_000  # points in one batch of Algorithm 1, as for the paper's toy data
_BATCH_SIZE = 64
FROM_AVERAGES = 0.2  # smallest detail for which the descent starts from a map of averages
PLACED_BEFORE_DETAIL = 3000  # points placed to measure the angles, if others need not be placed
_UNSEEN, _FEWEST_UNSEEN = 300, 100  # points other than landmarks on which the map is tested


class Plan(NamedTuple):
    """Validated inputs and settings of a solver."""

    source: RowSource
    reducer: Reducer
    solver: str
    line: Calibration | None  # of the residuals of angles; None for the best one
    init: str | np.ndarray
    n_landmarks: int
    max_iter: int | None
    tol: float
    callback: Callable[[int, float, Any], Any] | None
    rng: np.random.Generator
    progress: Progress
    detail: float
    neighbors: Any
    anchors: Anchors | None = None
    similar: AngleLoss | None = None  # of another sample of the data, whose sums are reused
    before: Promising | None = None  # for one of many samples: promising starts of the others

    @property
    def workers(self) -> Workers:
        return self.source.workers

    @property
    def device_workers(self) -> Workers:
        """Threads for arrays in memory; a single one for a device."""
        return self.workers if self.source.device is None else Workers(1)

    @property
    def calibrated(self) -> bool:
        return self.line is None

    @property
    def sampled(self) -> bool:
        """Whether a sample is solved and all rows are placed against it."""
        exact_up_to = _EXACT_WITH_DETAIL_UP_TO if begins_at_averages(self) else _EXACT_UP_TO
        many = self.source.shape[0] > exact_up_to
        return self.solver == "landmarks" or (self.solver == "auto" and many)


class Crowd(NamedTuple):
    """Positions on the map, scores on three principal components, and coordinates of data in a plane."""

    Y: np.ndarray
    scores: np.ndarray
    plane: np.ndarray | None = None


class Solved(NamedTuple):
    """A finished map.

    `fit` is of all points, or of a sample if points are placed lazily; `landmarks` are the rows that others
    are placed against, and `crowd` determines the rotation of the map.
    """

    fit: Fit
    placement: ScoredMap
    landmarks: np.ndarray
    sample: Sample
    crowd: Crowd
    diagnostics: Diagnostics


def solve(plan: Plan) -> Solved:
    """Place the rows on the sphere so that angles are preserved."""
    return _solve_landmarks(plan) if plan.sampled else _solve_all(plan)


def _solve_landmarks(plan: Plan) -> Solved:
    """Solve a sample exactly, then place every point, including the sample, as `transform` does.

    Only a sample is placed if the others are not needed: for lazy rows, and for maps with detail that start
    from averages.
    """
    rows = plan.source
    n = rows.shape[0]
    by_values = sample_of(rows, min(n, max(CROWD, plan.n_landmarks)))
    sample, n_landmarks = by_values.rows, plan.n_landmarks
    if begins_at_averages(plan):
        sample = sample[: max(PLACED_BEFORE_DETAIL, n_landmarks + _UNSEEN)]
    if plan.anchors is not None:
        chosen = anchored_sample(plan.anchors, n_landmarks, plan.rng)
        sample, n_landmarks = np.concatenate([chosen, np.setdiff1d(sample, chosen)]), len(chosen)
    chosen, unseen = sample[:n_landmarks], sample[n_landmarks:][:_UNSEEN]
    taken = rows.take(sample if rows.lazy else sample[: len(chosen) + len(unseen)])
    X_hat = _projected(taken[: len(chosen)], plan)
    fit, placement = solve_sample(X_hat, chosen, plan)
    in_order = np.arange(len(chosen))
    diagnostics = _diagnostics(taken[: len(chosen)], X_hat, chosen, in_order, plan)
    placed, at = rows, sample  # `at`: indices of the sample among the rows that are placed
    if rows.lazy:
        placed = RowSource(taken[np.argsort(sample)], plan.workers)
    elif begins_at_averages(plan) and fit.status is not Status.CALLBACK:
        placed = rows.part(np.sort(sample))
    if placed is not rows:
        at = np.argsort(np.argsort(sample))
    held = None
    if plan.anchors is not None:
        held = hold(placement, plan.anchors, chosen, fit.Y, fit.angle_fit)
    fit = _place_all(placed, placement, fit, plan.progress, held)
    if len(unseen) >= _FEWEST_UNSEEN:
        others = slice(len(chosen), len(chosen) + len(unseen))
        X_hat = project_all(plan.source.to_device(plan.reducer), taken[others], plan.workers)
        found = correlation_among(X_hat, fit.Y[at[others]], plan.workers)
        diagnostics = diagnostics._replace(unseen=Unseen(fit.angle_fit.correlation, found))
    crowd = _placed_crowd(placed, np.sort(at), fit.Y, plan)
    return Solved(fit, placement, chosen, by_values, crowd, diagnostics)


def solve_sample(X_hat: np.ndarray, rows: np.ndarray, plan: Plan) -> tuple[Fit, ScoredMap]:
    """Solve denoised rows exactly, and prepare placing others against them."""
    fit = descend(X_hat, rows, plan, careful=not plan.sampled)
    return fit, placement_of(X_hat, fit.Y, fit.angle_fit, plan)


def _placed_crowd(rows: RowSource, sample: np.ndarray, Y: Any, plan: Plan) -> Crowd:
    """Positions and scores of a sample, read in blocks."""
    sample = _thinned(sample, rows.shape[1], plan)
    kept = 3 if _has_components(plan.reducer) else None
    parts = [
        _projected(rows.take(sample[block]), plan)[:, :kept]
        for block in blocks(len(sample), rows.block)
    ]
    X_hat = np.concatenate(parts)
    return Crowd(to_numpy(Y[sample]), _scores(X_hat, plan.reducer), _plane(X_hat, plan.reducer))


def _thinned(sample: np.ndarray, width: int, plan: Plan) -> np.ndarray:
    """Fewer rows if components must be computed from many columns."""
    step = 1 if _has_components(plan.reducer) else -(-len(sample) * width // _CROWD_VALUES)
    return sample[::step]


def _diagnostics(
    rows: Any, X_hat: np.ndarray, indices: np.ndarray, order: np.ndarray, plan: Plan
) -> Diagnostics:
    """Diagnostics from some rows with given indices in the data; `order` is a random order of them."""
    return Diagnostics(
        find_cut(plan.source.to_device(plan.reducer), rows, X_hat, indices, order),
        crowding(X_hat[order]),
        dominance=find_dominance(rows, getattr(plan.reducer, "metric", None)),
    )


def _projected(rows: Any, plan: Plan) -> np.ndarray:
    """X_hat of given rows, in memory."""
    return to_numpy(project_all(plan.source.to_device(plan.reducer), rows, plan.workers))


def _place_all(
    rows: RowSource,
    placement: ScoredMap,
    fit: Fit,
    progress: Progress,
    held: HeldMap | None = None,
) -> Fit:
    """Place rows and compute their losses in blocks; if `held` is given, near their positions on another
    map."""
    n = rows.shape[0]
    progress.phase("placing", n, "point")
    share = placement.loss_sample.share(n, rows.tile)
    placement = rows.to_device(placement._replace(loss_sample=share))
    Y, point_loss = rows.scratch((n, 3)), rows.empty((n,), "float64")
    totals, start = Moments(*np.zeros(6)), 0
    place = placement.block if held is None else held._replace(placement=placement).block

    def judged(some: Any, first: int) -> tuple[Array, Array, Moments]:
        Y, moments = place(some, first)
        return Y, placement.point_loss(moments), total(moments)

    for Y_block, losses, moments in rows.each(judged):
        block = slice(start, start := start + len(Y_block))
        Y[block] = Y_block
        rows.store(losses, point_loss, block)
        totals = Moments(*(t + m for t, m in zip(totals, moments, strict=True)))
        progress.advance(len(Y_block))
    line, (_, correlation) = fit.angle_fit.calibration, calibrate(totals)
    loss = float(np.sqrt(mean_square(totals, line)))
    return fit._replace(Y=Y, angle_fit=AngleFit(line, correlation, loss, point_loss))


def _solve_all(plan: Plan) -> Solved:
    """Solve all points together; keep all of them, or a sample if there are many, for `transform`."""
    given = plan.source.take_all()
    n = given.shape[0]
    X_hat = _projected(given, plan)
    sample = sample_of(plan.source, n)
    diagnostics = _diagnostics(given, X_hat, np.arange(n), sample.rows, plan)
    if plan.solver == "algorithm1":
        fit = _run_algorithm1(X_hat, plan)
    else:
        fit = descend(X_hat, np.arange(n), plan, careful=True, sample=sample.rows)
    chosen = sample.rows[: n if n <= _EXACT_UP_TO else plan.n_landmarks]
    placement = placement_of(X_hat[chosen], fit.Y[chosen], fit.angle_fit, plan)
    crowd = crowd_of(fit.Y, X_hat, np.sort(sample.rows[:CROWD]), plan)
    return Solved(fit, placement, chosen, sample, crowd, diagnostics)


def crowd_of(Y: Array, X_hat: Array, rows: np.ndarray, plan: Plan) -> Crowd:
    """Positions and scores of some rows."""
    rows = _thinned(rows, X_hat.shape[1], plan)
    some = to_numpy(X_hat[rows])
    return Crowd(to_numpy(Y[rows]), _scores(some, plan.reducer), _plane(some, plan.reducer))


def begins_at_averages(plan: Plan) -> bool:
    """Whether the descent with detail starts from a map of averages instead of the plain map."""
    free = plan.anchors is None and isinstance(plan.init, str)
    return plan.detail >= FROM_AVERAGES and free


def placement_of(X_hat: np.ndarray, Y: np.ndarray, fit: AngleFit, plan: Plan) -> ScoredMap:
    """Prepare placing points against these landmarks and computing their losses."""
    placer = FittedMap(plan.reducer, landmark_placer(X_hat, Y, fit, plan))
    return ScoredMap(placer, loss_sample(X_hat, Y).share(plan.source.shape[0]), fit.calibration)


def landmark_placer(X_hat: np.ndarray, Y: np.ndarray, fit: AngleFit, plan: Plan) -> LandmarkPlacer:
    """Landmarks that points are placed against; some of them are enough, except for the paper's loss."""
    n, n_apices, n_legs = plan.source.shape[0], None, len(X_hat)
    if plan.calibrated:
        n_legs = min(max(N_APEX_LEGS, _PLACED_LEGS // n), _MOST_LEGS)
        n_apices = max(_PLACED_AGAINST, _PLACED_PAIRS // n) if plan.sampled else None
    takes = takes_pairs(len(X_hat), plan.line, fit.correlation)
    rounding = SMOOTH if takes else SHARP
    terms = placed_terms(X_hat, Y, fit) if takes else ()
    landmarks = prepare_landmarks(
        X_hat.astype(np.float64), Y, fit.calibration, n_apices, n_legs, rounding, terms
    )
    return as_type(landmarks, np.float32)


def descend(
    X_hat: np.ndarray,
    rows: np.ndarray,
    plan: Plan,
    *,
    careful: bool,
    sample: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> Fit:
    """Solve rows exactly, from the given start or the best one found.

    `sample` orders the rows such that the first ones are a random sample; by default, the rows are in such an
    order. A sample is solved less carefully than all data, since another sample would differ by more.
    """
    plan.progress.phase("solving", None, "iteration")
    descend = functools.partial(
        solve_exact,
        line=plan.line,
        max_iter=_MAX_ITER if plan.max_iter is None else plan.max_iter,
        tol=plan.tol if careful else _FOR_SAMPLES * plan.tol,
        workers=plan.workers,
        one_of_many=plan.before is not None,
    )
    X_hat = X_hat.astype(np.float64 if careful else np.float32)
    there = plan.source.to_device(X_hat)
    # Single precision is enough, unless a map may fit nearly exactly or is aligned with one that may.
    single = plan.anchors is None and takes_pairs(len(X_hat), plan.line, 0.0)
    xp = namespace(there)
    about_all = AngleLoss(
        xp.astype(there, xp.float32) if single else there,
        line=plan.line,
        workers=plan.workers,
        sharing=plan.similar,
        rows=None if plan.similar is None else np.arange(len(rows)) % len(plan.similar.X),
    )
    if plan.anchors is not None:
        start = anchored_start(X_hat, plan.anchors.positions[rows], plan.line, plan.workers)
    elif start is None and not isinstance(plan.init, str):
        start = plan.init[rows]
    elif start is None and plan.init == "pca":
        start = pca_positions(_scores(X_hat, plan.reducer))
    elif start is None:
        start = best_start(
            X_hat,
            _scores(X_hat, plan.reducer),
            about_all,
            descend,
            tol=plan.tol,
            sample=np.arange(len(X_hat)) if sample is None else sample,
            workers=plan.workers,
            before=plan.before,
            complete=careful,
        )
    report = reporter(plan.progress, plan.callback)
    fit = descend(there, start, report=report, careful=careful, sharing=about_all)
    return fit if plan.anchors is None else no_farther_than_needed(fit, start, about_all)


def _has_components(spectral: Reducer) -> bool:
    """Whether the columns of X_hat are principal components, not columns of the data."""
    return not (isinstance(spectral, ComponentReducer) and spectral.components is None)


def _scores(X_hat: np.ndarray, spectral: Reducer) -> np.ndarray:
    """Scores on the first three principal components, those of all data if they are known."""
    if not _has_components(spectral):
        return principal_scores(X_hat.astype(np.float64), 3)
    return np.pad(X_hat[:, :3], [(0, 0), (0, max(0, 3 - X_hat.shape[1]))])


def _plane(X_hat: np.ndarray, spectral: Reducer) -> np.ndarray | None:
    """The columns of data with two columns; None for other data."""
    if not isinstance(spectral, ComponentReducer) or len(spectral.mean) != 2:
        return None
    if spectral.metric != "euclidean":
        return None
    return X_hat if spectral.components is None else X_hat @ spectral.components


def _run_algorithm1(X_hat: np.ndarray, plan: Plan) -> Fit:
    n = len(X_hat)
    full_batch = n <= _FULL_BATCH_UP_TO
    max_iter = plan.max_iter or (1000 if full_batch else 250)
    plan.progress.phase("solving", max_iter, "iteration")
    start = pca_positions(_scores(X_hat, plan.reducer)) if isinstance(plan.init, str) else plan.init
    Y, history, status = solve_algorithm1(
        X_hat,
        start,
        max_iter=max_iter,
        milestones=[round(0.35 * max_iter)],
        batch_size=None if full_batch else _BATCH_SIZE,
        rng=plan.rng,
        workers=plan.workers,
        report=reporter(plan.progress, plan.callback),
    )
    judged = np.arange(n)
    if n > _EXACT_LOSS_UP_TO:
        judged = plan.rng.permutation(n)[:_EXACT_LOSS_UP_TO]
    found = AngleLoss(X_hat[judged], line=ABSOLUTE, workers=plan.workers).judge(Y[judged])
    point_loss = np.full(n, np.nan)
    point_loss[judged] = found.point_loss
    return Fit(Y, found._replace(point_loss=point_loss), history, status)
