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
    AlignedMap,
    Anchors,
    aligned_map,
    anchored_sample,
    anchored_start,
    closest_to_start,
)
from .diagnostics import (
    Diagnostics,
    HeldOutCorrelations,
    correlation_among,
    crowding,
    find_cut,
    find_dominance,
)
from .exact import Fit, has_pair_terms, solve_exact
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
from .starts import PromisingStarts, best_start
from .status import Status

# Largest number of points that solver="auto" solves exactly; fewer if the descent starts from a map of
# averages.
_MAX_EXACT, _MAX_EXACT_WITH_AVERAGES = 2000, 1000
_MAX_ITER = 500
_SAMPLE_TOL = 3  # factor of the tolerance if a sample is solved
N_ORIENTING = 10_000  # number of points that determine the rotation of the map, ...
# ... or as many as have this many values in total, if components must be computed.
_ORIENTING_VALUES = 4_000_000
# Landmarks that a point is compared with (the others contribute through sums): at least the first number, and
# as many as give the second number of pairs of a point and a landmark.
_MIN_COMPARED, _COMPARED_PAIRS = 128, 4_000_000
# Landmarks that are legs of the placed point as an apex: at most the first number, otherwise as many as give
# the second number of pairs, but at least `N_APEX_LEGS`.
_MAX_LEGS, _LEG_PAIRS = 300, 2_400_000
_MAX_EXACT_LOSS = 4000  # largest number of points for which the loss of Algorithm 1 is exact
# Largest number of points in one batch of Algorithm 1, as for the paper's toy data.
_MAX_FULL_BATCH = 10_000
_BATCH_SIZE = 64  # batch size of Algorithm 1 for more points
MIN_DETAIL_FOR_AVERAGES = 0.2  # smallest detail for which the descent starts from a map of averages
_PLACED_BEFORE_DETAIL = 3000  # points placed to measure the angles, if others need not be placed
_MAX_UNSEEN, _MIN_UNSEEN = 300, 100  # points other than landmarks on which the map is tested


class Plan(NamedTuple):
    """Validated inputs and settings of a solver."""

    source: RowSource
    reducer: Reducer
    solver: str
    line: Calibration | None  # line of the residuals of angles; None for the best one
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
    similar: AngleLoss | None = None  # loss of another sample of the data, whose sums are reused
    before: PromisingStarts | None = None  # promising starts of other samples, if there are many

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
        max_exact = _MAX_EXACT_WITH_AVERAGES if starts_from_averages(self) else _MAX_EXACT
        many = self.source.shape[0] > max_exact
        return self.solver == "landmarks" or (self.solver == "auto" and many)


class OrientingPoints(NamedTuple):
    """Points that determine the rotation of a map."""

    Y: np.ndarray  # (n, 3) positions
    scores: np.ndarray  # (n, 3) scores on principal components
    plane: np.ndarray | None = None  # (n, 2) coordinates of data in a plane; None for other data


class Solved(NamedTuple):
    """A finished map.

    `fit` is of all points, or of a sample if the others are placed later; `landmarks` are the rows that
    others are placed against.
    """

    fit: Fit
    placement: ScoredMap
    landmarks: np.ndarray
    sample: Sample
    orienting: OrientingPoints
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
    full_sample = sample_of(rows, min(n, max(N_ORIENTING, plan.n_landmarks)))
    sample, n_landmarks = full_sample.rows, plan.n_landmarks
    if starts_from_averages(plan):
        sample = sample[: max(_PLACED_BEFORE_DETAIL, n_landmarks + _MAX_UNSEEN)]
    if plan.anchors is not None:
        landmarks = anchored_sample(plan.anchors, n_landmarks, plan.rng)
        sample = np.concatenate([landmarks, np.setdiff1d(sample, landmarks)])
        n_landmarks = len(landmarks)
    landmarks, unseen = sample[:n_landmarks], sample[n_landmarks:][:_MAX_UNSEEN]
    X = rows.take(sample if rows.lazy else sample[: len(landmarks) + len(unseen)])
    X_landmarks = X[: len(landmarks)]
    X_hat = _projected(X_landmarks, plan)
    fit, placement = solve_sample(X_hat, landmarks, plan)
    diagnostics = _diagnostics(X_landmarks, X_hat, landmarks, np.arange(len(landmarks)), plan)
    placed, index = rows, sample  # rows that are placed, and indices of the sample among them
    if rows.lazy:
        placed = RowSource(X[np.argsort(sample)], plan.workers)
    elif starts_from_averages(plan) and fit.status is not Status.CALLBACK:
        placed = rows.part(np.sort(sample))
    if placed is not rows:
        index = np.argsort(np.argsort(sample))
    aligned = None
    if plan.anchors is not None:
        aligned = aligned_map(placement, plan.anchors, landmarks, fit.Y, fit.angle_fit)
    fit = _place_all(placed, placement, fit, plan.progress, aligned)
    if len(unseen) >= _MIN_UNSEEN:
        others = slice(len(landmarks), len(landmarks) + len(unseen))
        X_hat = project_all(plan.source.to_device(plan.reducer), X[others], plan.workers)
        among = correlation_among(X_hat, fit.Y[index[others]], plan.workers)
        diagnostics = diagnostics._replace(
            unseen=HeldOutCorrelations(fit.angle_fit.correlation, among)
        )
    orienting = _placed_orienting_points(placed, np.sort(index), fit.Y, plan)
    return Solved(fit, placement, landmarks, full_sample, orienting, diagnostics)


def solve_sample(X_hat: np.ndarray, rows: np.ndarray, plan: Plan) -> tuple[Fit, ScoredMap]:
    """Solve denoised rows exactly, and prepare placing others against them."""
    fit = descend(X_hat, rows, plan, careful=not plan.sampled)
    return fit, placement_of(X_hat, fit.Y, fit.angle_fit, plan)


def _placed_orienting_points(
    rows: RowSource, sample: np.ndarray, Y: Any, plan: Plan
) -> OrientingPoints:
    """Orienting points from a sample of the placed rows, read in blocks."""
    sample = _thinned(sample, rows.shape[1], plan)
    n_columns = 3 if _has_components(plan.reducer) else None
    parts = [
        _projected(rows.take(sample[block]), plan)[:, :n_columns]
        for block in blocks(len(sample), rows.block)
    ]
    X_hat = np.concatenate(parts)
    return OrientingPoints(
        to_numpy(Y[sample]), _scores(X_hat, plan.reducer), _plane(X_hat, plan.reducer)
    )


def _thinned(sample: np.ndarray, n_columns: int, plan: Plan) -> np.ndarray:
    """Every k-th row of the sample, with k > 1 if components must be computed from many columns."""
    step = 1 if _has_components(plan.reducer) else -(-len(sample) * n_columns // _ORIENTING_VALUES)
    return sample[::step]


def _diagnostics(
    rows: Any, X_hat: np.ndarray, indices: np.ndarray, order: np.ndarray, plan: Plan
) -> Diagnostics:
    """Diagnostics from some rows with these indices in the data; `order` is a random order of the rows."""
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
    aligned: AlignedMap | None = None,
) -> Fit:
    """Place rows and compute their losses in blocks; with `aligned`, near their positions on another map."""
    n = rows.shape[0]
    progress.phase("placing", n, "point")
    sample = placement.loss_sample.for_points(n, rows.tile)
    placement = rows.to_device(placement._replace(loss_sample=sample))
    Y, point_loss = rows.scratch((n, 3)), rows.empty((n,), "float64")
    totals, start = Moments(*np.zeros(6)), 0
    place = placement.block if aligned is None else aligned._replace(placement=placement).block

    def place_and_score(block: Any, first: int) -> tuple[Array, Array, Moments]:
        Y, moments = place(block, first)
        return Y, placement.point_loss(moments), total(moments)

    for Y_block, losses, moments in rows.each(place_and_score):
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
    X = plan.source.take_all()
    n = X.shape[0]
    X_hat = _projected(X, plan)
    sample = sample_of(plan.source, n)
    diagnostics = _diagnostics(X, X_hat, np.arange(n), sample.rows, plan)
    if plan.solver == "algorithm1":
        fit = _run_algorithm1(X_hat, plan)
    else:
        fit = descend(X_hat, np.arange(n), plan, careful=True, sample=sample.rows)
    landmarks = sample.rows[: n if n <= _MAX_EXACT else plan.n_landmarks]
    placement = placement_of(X_hat[landmarks], fit.Y[landmarks], fit.angle_fit, plan)
    orienting = orienting_points(fit.Y, X_hat, np.sort(sample.rows[:N_ORIENTING]), plan)
    return Solved(fit, placement, landmarks, sample, orienting, diagnostics)


def orienting_points(Y: Array, X_hat: Array, rows: np.ndarray, plan: Plan) -> OrientingPoints:
    """Orienting points from some rows of Y (n x 3) and X_hat (n x r)."""
    rows = _thinned(rows, X_hat.shape[1], plan)
    X_hat = to_numpy(X_hat[rows])
    return OrientingPoints(
        to_numpy(Y[rows]), _scores(X_hat, plan.reducer), _plane(X_hat, plan.reducer)
    )


def starts_from_averages(plan: Plan) -> bool:
    """Whether the descent with detail starts from a map of averages instead of the plain map."""
    no_start = plan.anchors is None and isinstance(plan.init, str)
    return plan.detail >= MIN_DETAIL_FOR_AVERAGES and no_start


def placement_of(X_hat: np.ndarray, Y: np.ndarray, fit: AngleFit, plan: Plan) -> ScoredMap:
    """Prepare placing points against these landmarks and computing their losses."""
    placer = FittedMap(plan.reducer, landmark_placer(X_hat, Y, fit, plan))
    return ScoredMap(
        placer, loss_sample(X_hat, Y).for_points(plan.source.shape[0]), fit.calibration
    )


def landmark_placer(X_hat: np.ndarray, Y: np.ndarray, fit: AngleFit, plan: Plan) -> LandmarkPlacer:
    """Placer against landmarks. A point is compared with some of them if a sample was solved; else with all.

    With the paper's loss, a point is always compared with all landmarks.
    """
    n, n_apices, n_legs = plan.source.shape[0], None, len(X_hat)
    if plan.calibrated:
        n_legs = min(max(N_APEX_LEGS, _LEG_PAIRS // n), _MAX_LEGS)
        n_apices = max(_MIN_COMPARED, _COMPARED_PAIRS // n) if plan.sampled else None
    with_pairs = has_pair_terms(len(X_hat), plan.line, fit.correlation)
    softening_fraction = SMOOTH if with_pairs else SHARP
    terms = placed_terms(X_hat, Y, fit) if with_pairs else ()
    landmarks = prepare_landmarks(
        X_hat.astype(np.float64), Y, fit.calibration, n_apices, n_legs, softening_fraction, terms
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
        tol=plan.tol if careful else _SAMPLE_TOL * plan.tol,
        workers=plan.workers,
        one_of_many=plan.before is not None,
    )
    X_hat = X_hat.astype(np.float64 if careful else np.float32)
    X = plan.source.to_device(X_hat)
    # Single precision is enough, unless a map may fit nearly exactly or is aligned with one that may.
    single = plan.anchors is None and has_pair_terms(len(X_hat), plan.line, 0.0)
    xp = namespace(X)
    angles = AngleLoss(
        xp.astype(X, xp.float32) if single else X,
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
            angles,
            descend,
            tol=plan.tol,
            sample=np.arange(len(X_hat)) if sample is None else sample,
            workers=plan.workers,
            before=plan.before,
            complete=careful,
        )
    report = reporter(plan.progress, plan.callback)
    fit = descend(X, start, report=report, careful=careful, sharing=angles)
    return fit if plan.anchors is None else closest_to_start(fit, start, angles)


def _has_components(reducer: Reducer) -> bool:
    """Whether the columns of X_hat are principal components, not columns of the data."""
    return not (isinstance(reducer, ComponentReducer) and reducer.components is None)


def _scores(X_hat: np.ndarray, reducer: Reducer) -> np.ndarray:
    """Scores on the first three principal components: of all data if known, otherwise of these rows."""
    if not _has_components(reducer):
        return principal_scores(X_hat.astype(np.float64), 3)
    return np.pad(X_hat[:, :3], [(0, 0), (0, max(0, 3 - X_hat.shape[1]))])


def _plane(X_hat: np.ndarray, reducer: Reducer) -> np.ndarray | None:
    """The columns of data with two columns, centred and scaled; None for other data."""
    if not isinstance(reducer, ComponentReducer) or len(reducer.mean) != 2:
        return None
    if reducer.metric != "euclidean":
        return None
    return X_hat if reducer.components is None else X_hat @ reducer.components


def _run_algorithm1(X_hat: np.ndarray, plan: Plan) -> Fit:
    n = len(X_hat)
    full_batch = n <= _MAX_FULL_BATCH
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
    rows = np.arange(n)  # over which the loss is computed
    if n > _MAX_EXACT_LOSS:
        rows = plan.rng.permutation(n)[:_MAX_EXACT_LOSS]
    angle_fit = AngleLoss(X_hat[rows], line=ABSOLUTE, workers=plan.workers).judge(Y[rows])
    point_loss = np.full(n, np.nan)
    point_loss[rows] = angle_fit.point_loss
    return Fit(Y, angle_fit._replace(point_loss=point_loss), history, status)
