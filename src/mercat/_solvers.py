"""From denoised data to a finished map: which points are solved together, which are placed, from where."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._algorithm1 import solve_algorithm1
from ._angles import ABSOLUTE, Moments, calibrate, mean_square, total
from ._backend import TILE, Workers, blocks
from ._detail import N_ITER, Angles, Surroundings, sharpen, surroundings
from ._exact import AngleLoss, Fit, solve_exact
from ._initial import bent_positions, pca_positions, principal_scores
from ._neighbors import affinities, check_neighbors, graph_of, nearest, radii, strength_of
from ._placement import Landmarks, as_type, place, placed_moments, prepare_landmarks
from ._progress import Progress, reporter
from ._spectral import ROWS_A_BLOCK, FromDistances, Spectral, project_all, project_rows
from ._status import Status

_EXACT_UP_TO = 1000  # points that solver="auto" solves exactly
_MAX_ITER = 500
_START_SAMPLE = 500  # points on which starts are compared
_CLEARLY = 0.001  # fraction of the loss by which another start must be better than the first
_PLACED_AGAINST = 300  # landmarks a point is compared with; the others speak through their sums
_LEGS_A_TILE, _LEGS_IN_ALL = 32, 2000  # landmarks that the loss of placed points is judged by
_EXACT_LOSS_UP_TO = 4000  # points for which Algorithm 1's result is judged over all triples
_FULL_BATCH_UP_TO = 10_000  # points that Algorithm 1 takes in one batch, as the paper's toy data
_BATCH_SIZE = 64
_FARTHEST = 1e12  # in units of the data's spread: beyond it squares leave single precision


class Plan(NamedTuple):
    """What a solver is asked for, checked, and what it works with."""

    calibrated: bool
    init: str | np.ndarray
    n_landmarks: int
    max_iter: int | None
    tol: float
    callback: Callable[[int, float, Any], Any] | None
    rng: np.random.Generator
    workers: Workers
    progress: Progress
    detail: float = 0.0
    neighbors: Any = None


class Placer(NamedTuple):
    """All that places a row of X on the finished map, the same for training rows and new ones."""

    spectral: Spectral | FromDistances
    landmarks: Landmarks

    def block(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """X_hat and positions of some rows, before the map is turned."""
        X_hat = _projected(self.spectral, rows)
        return X_hat, place(X_hat, self.landmarks)


class DetailPlacer(NamedTuple):
    """The same on a map with detail: by a point's neighbours as well as by its angles."""

    spectral: Spectral | FromDistances
    surroundings: Surroundings

    def block(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """X_hat and positions of some rows, before the map is turned."""
        X_hat = _projected(self.spectral, rows)
        return X_hat, self.surroundings.place(X_hat)


def _projected(spectral: Spectral | FromDistances, rows: Any) -> np.ndarray:
    X_hat = project_rows(spectral, rows)
    farthest = float(np.abs(X_hat).max(initial=0))
    if not farthest < _FARTHEST:
        raise ValueError(
            f"X must lie within {_FARTHEST:g} times the spread of the training data, "
            f"got a point at {farthest:.3g} times."
        )
    return X_hat.astype(np.float32)


class Solved(NamedTuple):
    """A finished map: the fit, what places others on it, and the rows these are placed against."""

    fit: Fit
    placer: Placer | DetailPlacer
    landmarks: np.ndarray


def solve(solver: str, X: Any, spectral: Spectral | FromDistances, plan: Plan) -> Solved:
    """Lay the rows of X on the sphere by one of the solvers, "auto" by their number."""
    if solver == "auto":
        solver = "exact" if X.shape[0] <= _EXACT_UP_TO else "landmarks"
    if plan.detail > 0:  # said before the work, not after it
        plan = plan._replace(neighbors=check_neighbors(plan.neighbors, X.shape[0]))
    if solver == "landmarks":
        solved = _solve_landmarks(X, spectral, plan)
    else:
        solved = _solve_all(solver, X, spectral, plan)
    if plan.detail > 0 and solved.fit.status is not Status.CALLBACK:
        solved = _add_detail(solved, X, spectral, plan, exact=solver == "exact")
    return solved


def _solve_landmarks(X: Any, spectral: Spectral | FromDistances, plan: Plan) -> Solved:
    """Solve a sample exactly, then place every point, the sample's too, as `transform` does."""
    n = X.shape[0]
    rows = plan.rng.permutation(n)[: plan.n_landmarks]
    X_hat = project_all(spectral, X[rows], plan.workers)
    fit = _descend(X_hat, rows, spectral, plan, polish=False)
    placer = _prepared(spectral, X_hat, fit, n_apices=_PLACED_AGAINST)
    plan.progress.phase("placing", n, "point")

    # Each tile is judged by other landmarks, so that together they speak for all.
    n_legs = max(_LEGS_A_TILE, _LEGS_IN_ALL * TILE // n)

    def part(block: slice) -> tuple[np.ndarray, list[Moments]]:
        X_block, Y_block = placer.block(X[block])
        judged = []
        for t in blocks(len(Y_block), TILE):
            start = (block.start + t.start) // TILE * n_legs
            judged.append(placed_moments(X_block[t], Y_block[t], placer.landmarks, start, n_legs))
        return Y_block, judged

    positions, moments = [], []
    for Y_block, moments_block in plan.workers.map(part, blocks(n, ROWS_A_BLOCK)):
        positions.append(Y_block)
        moments += [[m.astype(np.float64) for m in tile] for tile in moments_block]
        plan.progress.advance(len(Y_block))
    judged = Moments(*(np.concatenate(m) for m in zip(*moments, strict=True)))
    totals = total(judged)
    loss = np.sqrt(max(mean_square(totals, fit.calibration), 0.0))
    point_loss = np.sqrt(np.maximum(mean_square(judged, fit.calibration), 0))
    fit = fit._replace(
        Y=np.concatenate(positions),
        loss=float(loss),
        correlation=calibrate(totals)[1],
        point_loss=point_loss,
    )
    return Solved(fit, placer, rows)


def _solve_all(solver: str, X: Any, spectral: Spectral | FromDistances, plan: Plan) -> Solved:
    """Solve all points together; all of a few, or a sample of many, serve `transform`."""
    n = X.shape[0]
    X_hat = project_all(spectral, X, plan.workers)
    if solver == "exact":
        fit = _descend(X_hat, np.arange(n), spectral, plan, polish=True)
    else:
        fit = _run_algorithm1(X_hat, spectral, plan)
    rows = plan.rng.permutation(n)[: n if n <= _EXACT_UP_TO else plan.n_landmarks]
    placer = _prepared(spectral, X_hat[rows], fit._replace(Y=fit.Y[rows]))
    return Solved(fit, placer, rows)


def _add_detail(
    solved: Solved, X: Any, spectral: Spectral | FromDistances, plan: Plan, *, exact: bool
) -> Solved:
    """Sharpen the neighbourhoods of a finished map."""
    fit, workers = solved.fit, plan.workers
    X_hat = project_all(spectral, X, workers).astype(np.float32)
    if isinstance(plan.neighbors, int):
        plan.progress.phase("neighbours", None, "")
        graph = graph_of(nearest(X_hat, plan.neighbors, plan.rng, workers))
    else:
        graph = plan.neighbors
    radius = radii(X_hat, graph, workers)
    strength = strength_of(radius)
    angles = Angles(X_hat, fit.calibration, plan.calibrated, plan.rng, workers)
    plan.progress.phase("detail", N_ITER, "iteration")
    before = len(fit.history)
    report = reporter(plan.progress, plan.callback)
    sharp = sharpen(
        fit.Y,
        affinities(graph, strength(radius)),
        plan.detail,
        angles,
        workers=workers,
        report=lambda i, loss, Y: report(before + i, loss, Y),
    )
    k = max(1, round(graph.nnz / len(X_hat)))
    placer = DetailPlacer(
        spectral,
        surroundings(X_hat, sharp.Y, solved.landmarks, k, strength, angles, plan.detail, workers),
    )
    judge = _judged_by_all if exact else _judged_by_landmarks
    fit = judge(X_hat, sharp.Y, solved, plan)
    return Solved(
        fit._replace(
            Y=sharp.Y,
            history=fit.history + sharp.history,
            status=Status.CALLBACK if sharp.stopped else fit.status,
        ),
        placer,
        solved.landmarks,
    )


def _judged_by_all(X_hat: np.ndarray, Y: np.ndarray, solved: Solved, plan: Plan) -> Fit:
    """The fit with the loss of Y over all triples."""
    loss = AngleLoss(X_hat.astype(np.float64), calibrated=plan.calibrated, workers=plan.workers)
    value, _ = loss.evaluate(Y.astype(np.float64))
    return solved.fit._replace(
        calibration=loss.calibration,
        loss=float(np.sqrt(value)),
        correlation=loss.correlation,
        point_loss=loss.point_loss(Y.astype(np.float64)),
    )


def _judged_by_landmarks(X_hat: np.ndarray, Y: np.ndarray, solved: Solved, plan: Plan) -> Fit:
    """The fit with the loss of Y over all points as apices and landmarks as legs."""
    rows, n = solved.landmarks, len(Y)
    assert isinstance(solved.placer, Placer)
    landmarks = solved.placer.landmarks._replace(X=X_hat[rows], Y=Y[rows])
    n_legs = max(_LEGS_A_TILE, _LEGS_IN_ALL * TILE // n)

    def part(t: slice) -> list[np.ndarray]:
        start = t.start // TILE * n_legs
        moments = placed_moments(X_hat[t], Y[t], landmarks, start, n_legs)
        return [m.astype(np.float64) for m in moments]

    parts = plan.workers.map(part, blocks(n, TILE))
    judged = Moments(*(np.concatenate(m) for m in zip(*parts, strict=True)))
    line, correlation = calibrate(total(judged))
    if not plan.calibrated:
        line = ABSOLUTE
    squares = mean_square(judged, line)
    return solved.fit._replace(
        calibration=line,
        loss=float(np.sqrt(max(mean_square(total(judged), line), 0.0))),
        correlation=correlation,
        point_loss=np.sqrt(np.maximum(squares, 0)),
    )


def _prepared(
    spectral: Spectral | FromDistances, X_hat: np.ndarray, fit: Fit, n_apices: int | None = None
) -> Placer:
    landmarks = prepare_landmarks(X_hat.astype(np.float64), fit.Y, fit.calibration, n_apices)
    return Placer(spectral, as_type(landmarks, np.float32))


def _descend(
    X_hat: np.ndarray,
    rows: np.ndarray,
    spectral: Spectral | FromDistances,
    plan: Plan,
    *,
    polish: bool,
) -> Fit:
    """Solve these rows exactly, from the start that was asked for or the best that is found."""
    plan.progress.phase("solving", None, "iteration")
    descend = functools.partial(
        solve_exact,
        calibrated=plan.calibrated,
        max_iter=_MAX_ITER if plan.max_iter is None else plan.max_iter,
        tol=plan.tol,
        workers=plan.workers,
    )
    if not isinstance(plan.init, str):
        start = plan.init[rows]
    elif plan.init == "pca":
        start = pca_positions(_scores(X_hat, spectral))
    else:
        start = _best_start(X_hat, _scores(X_hat, spectral), plan, descend)
    report = reporter(plan.progress, plan.callback)
    return descend(X_hat, start, report=report, polish=polish)


def _scores(X_hat: np.ndarray, spectral: Spectral | FromDistances) -> np.ndarray:
    """Scores on the first three principal components: of all data, wherever these were computed."""
    if isinstance(spectral, Spectral) and spectral.components is None:
        return principal_scores(X_hat, 3)
    return np.pad(X_hat[:, :3], [(0, 0), (0, max(0, 3 - X_hat.shape[1]))])


def _best_start(
    X_hat: np.ndarray, scores: np.ndarray, plan: Plan, descend: Callable[..., Fit]
) -> np.ndarray:
    """Positions of all points from the better of two starts, solved on a sample.

    The first is kept unless the other is clearly better: among equals, the map should not hang on the
    sample.
    """
    sample = plan.rng.permutation(len(X_hat))[:_START_SAMPLE]
    few = X_hat[sample]
    # The data's own cosines, once for both.
    known = AngleLoss(few, calibrated=False, workers=plan.workers)
    inline = {"workers": Workers(1), "report": lambda *_: False, "polish": False, "like": known}
    starts = [pca_positions(scores[sample]), bent_positions(scores[sample])]
    fits = list(plan.workers.map(lambda start: descend(few, start, **inline), starts))
    best = min(fits, key=lambda fit: fit.loss)
    if fits[0].loss <= best.loss * (1 + _CLEARLY):
        best = fits[0]
    if len(sample) == len(X_hat):
        return best.Y[np.argsort(sample)]
    landmarks = prepare_landmarks(few.astype(np.float64), best.Y, best.calibration)
    placed = np.asarray(place(X_hat.astype(np.float32), as_type(landmarks, np.float32)))
    # The paper's start may be perfect as it is, as for points on a line.
    loss = AngleLoss(X_hat, calibrated=plan.calibrated, workers=plan.workers)
    return min((pca_positions(scores), placed), key=lambda Y: loss.evaluate(Y)[0])


def _run_algorithm1(X_hat: np.ndarray, spectral: Spectral | FromDistances, plan: Plan) -> Fit:
    n = len(X_hat)
    full_batch = n <= _FULL_BATCH_UP_TO
    max_iter = plan.max_iter or (1000 if full_batch else 250)
    plan.progress.phase("solving", max_iter, "iteration")
    start = pca_positions(_scores(X_hat, spectral)) if isinstance(plan.init, str) else plan.init
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
    loss = AngleLoss(X_hat[judged], calibrated=False, workers=plan.workers)
    value, _ = loss.evaluate(Y[judged])
    point_loss = np.full(n, np.nan)
    point_loss[judged] = loss.point_loss(Y[judged])
    return Fit(Y, ABSOLUTE, float(np.sqrt(value)), loss.correlation, point_loss, history, status)
