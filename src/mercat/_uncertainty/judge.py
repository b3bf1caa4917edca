"""`uncertainty`: uncertainty of the positions on a map, from other maps of the same data."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._data.arrays import is_dask, to_numpy
from .._data.checks import check_integer, generator
from .._data.source import RowSource
from .._detail.new_points import DetailPlacer
from .._estimator import Mercat
from .._math.angles import AngleFit, Calibration
from .._math.sphere import geodesic
from .._progress import Progress
from .._solve.initial import resized, scaled, size_of
from .._solve.pipeline import Plan, landmark_placer
from .._solve.placement import LandmarkPlacer
from .._solve.rotated import rotated
from .._validation import check_init, neighbors_of
from ..metrics._structure import FAR, N_NEIGHBORS
from . import points
from .maps import (
    N_PROBES,
    draw,
    null_distribution,
    other_maps,
    placed,
    projected,
    relative_size,
    stability,
    with_detail,
)
from .points import Halves, Judge, Legs, OtherMap, Taken
from .record import Uncertainty

_MIN_MAPS = 4
_COMPARED = 200  # number of landmarks compared with the map
_MAX_MEDIAN_DISTANCE = 0.1  # largest median distance from the map, in map sizes
_MIN_POINTS_WITH_DETAIL = 10  # points, of which other maps have half
# Without detail, the variance of positions should be inversely proportional to the number of rows of a map.
# Between maps of new data, it is larger by about this factor (chosen empirically, benchmarks/calibration.py).
# With detail, it depends on the nearest rows, not on their number.
_MORE_SCATTER = 1.2


def uncertainty(
    model: Mercat, X: Any, *, n_maps: int = 20, random_state: Any = None
) -> Uncertainty:
    """Uncertainty of each position on a map, from other maps of the same data.

    Other maps are fitted to other rows of X, rotated and scaled onto the map, and each point is placed on all
    of them: its positions there show the effect of other data from the same distribution. For a map of few
    landmarks, other maps have other landmarks. For a map of all rows, or with `detail`, pairs of maps of
    complementary halves of the rows are compared with each other.

    Parameters
    ----------
    model : Mercat
        A fitted model.
    X : array, sparse matrix, data frame, Dask array or torch tensor of shape (n, n_features)
        The data that the model was fitted to.
    n_maps : int, default=20
        Number of other maps, at least 4. Time grows linearly with it.
    random_state : int, numpy Generator or RandomState, or None, default=None
        Seed of the other maps. The same seed gives bit-identical results for any number of
        threads.

    Returns
    -------
    uncertainty : Uncertainty
        Ellipse, alternative position, torn neighbours and p-value of each point, and stability of the map.
        For a Dask array, the other maps are fitted immediately, and the arrays per point are lazy.

    Notes
    -----
    The principal components are those of the model. If `neighbors` is a graph, neighbours that are not among
    the rows of a map are replaced by their own neighbours that are.

    Examples
    --------
    >>> import numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) * [4, 3, 2, 1, 1]
    >>> model = mercat.Mercat(random_state=0).fit(X)
    >>> bars = mercat.uncertainty(model, X, n_maps=5, random_state=0)
    >>> bars
    Uncertainty of 200 points by 5 maps, of stability ...
    >>> bars.spread.shape, bars.ellipses(0.9).shape
    ((200,), (200, 48, 3))
    """
    if not isinstance(model, Mercat):
        raise TypeError(
            f"model must be a Mercat, got {type(model).__name__}: for a pipeline, pass its Mercat step, and "
            "the data that reach this step."
        )
    check_is_fitted(model)
    check_integer("n_maps", n_maps, _MIN_MAPS)
    if model.solver == "algorithm1":
        raise ValueError(
            "model must be fitted by solver='exact' or 'landmarks', got solver='algorithm1'."
        )
    rng = generator(random_state)
    model = model._snapshot()
    with model._workers_and_progress() as (workers, progress):
        source = model._open(X, workers, fitting=False)
        n = source.shape[0]
        if (model.detail > 0) != isinstance(model._placer.against, DetailPlacer):
            raise ValueError(
                f"detail must be as it was at the fit, got detail={model.detail!r}: fit the model again."
            )
        if model.detail > 0 and (
            source.lazy or source.device is not None or len(model._placer.against.Y) < n
        ):
            raise ValueError(
                "uncertainty of a map with detail needs X in memory and all points in the descent, got "
                f"detail={model.detail!r}, n_detail={model.n_detail!r} and X as a {type(X).__name__}."
            )
        if model.detail > 0 and n < _MIN_POINTS_WITH_DETAIL:
            raise ValueError(
                f"X must have at least {_MIN_POINTS_WITH_DETAIL} rows for the uncertainty of a map with "
                f"detail, got {n}: other maps have half of them."
            )
        if n != len(model.embedding_):
            raise ValueError(
                "X must be the data that the model was fitted to, with "
                f"{len(model.embedding_)} rows, got {n}."
            )
        if is_dask(model.embedding_) and not source.lazy:
            model.embedding_ = to_numpy(model.embedding_)
        plan = model._plan(source, model._placer.spectral, rng, progress)._replace(
            init=check_init(model.init, n), neighbors=neighbors_of(model, n)
        )
        judge, others, stability, sizes = _prepared(model, plan, n_maps)
        found = _judged(model, source, judge, others, progress)
    return Uncertainty(
        places=found[:, points.PLACE],
        axes=found[:, points.AXES].reshape((n, 2, 3)),
        alternative=found[:, points.ALTERNATIVE],
        alternative_gap=found[:, points.GAP],
        alternative_wins=found[:, points.WINS],
        torn=found[:, points.TORN],
        p_value=found[:, points.P_VALUE],
        stability=stability,
        n_maps=n_maps,
        n_comparisons=n_maps if judge.halves is None else n_maps // 2,
        sizes=sizes,
    )


def _prepared(
    model: Mercat, plan: Plan, n_maps: int
) -> tuple[Judge, np.ndarray | None, float, np.ndarray]:
    """The judge; positions on other maps with detail (n_maps x n x 3), or None; stability; relative sizes."""
    samples = draw(plan, model.landmarks_, n_maps)
    n, detail = plan.source.shape[0], plan.detail > 0
    needed = np.arange(n) if detail else np.union1d(samples.all, model.landmarks_)
    taken = _taken(model, plan, needed)
    reference, landmarks = taken.some(samples.reference), taken.some(model.landmarks_)
    plan.progress.phase("other maps", n_maps, "map")
    maps: tuple[OtherMap, ...] = ()
    here = reference.Y[:N_PROBES]
    placed = None
    if detail:
        found = list(with_detail(plan, samples, taken))
        sizes = np.array([relative_size(Y, taken.Y) for Y in found])
        placed = np.stack([resized(Y, size_of(taken.Y)) for Y in found])
        probes = placed[:, samples.reference[:N_PROBES]].astype(np.float64)
    else:
        made = other_maps(plan, samples, taken, reference, model.correlation_)
        maps, raw = zip(*made, strict=True)
        sizes = np.array([relative_size(Y, here) for Y in raw])
        probes = np.stack([scaled(Y, m.centre, m.scale) for m, Y in zip(maps, raw, strict=True)])
    rng = samples.generators[-1]
    null = null_distribution(plan, taken.some(samples.null).X.astype(np.float64), rng)
    line = Calibration(*model.calibration_)
    agreement = stability(probes, halves=samples.halves)
    halves = None
    if samples.halves:
        fitted_to = len(model.landmarks_) if plan.sampled else n
        inflation = 1.0 if detail else _MORE_SCATTER * (n / 2) / fitted_to
        halves = Halves(inflation, agreement, reference.Y.mean(axis=0, dtype=np.float64))
    judge = Judge(
        spectral=plan.reducer,
        own=_own_placer(model, landmarks, plan),
        rotation=model._rotation,
        maps=maps,
        halves=halves,
        legs=Legs(landmarks.X, landmarks.Y, line),
        reference=reference,
        k=N_NEIGHBORS,
        far=FAR,
        null=null,
        loss=model.loss_,
    )
    return judge, placed, agreement, sizes


def _taken(model: Mercat, plan: Plan, rows: np.ndarray) -> Taken:
    """X_hat and positions of some rows (ascending). Raises ValueError if X is not the data of the map."""
    X_hat = projected(plan.source.take(rows), plan).astype(np.float32)
    if plan.source.lazy:
        placer = model._placer.against
        Y = rotated(placed(placer, X_hat, plan.workers), model._rotation, "float32")
        return Taken(X_hat, Y, rows)
    found = Taken(X_hat, to_numpy(model.embedding_[rows]).astype(np.float32), rows)
    # The model must place its landmarks at their own positions.
    some = found.some(model.landmarks_[:_COMPARED])
    again = placed(model._placer.against, some.X, plan.workers) @ model._rotation.T
    apart, size = float(np.median(geodesic(again, some.Y.astype(np.float64)))), size_of(found.Y)
    if apart > _MAX_MEDIAN_DISTANCE * size:
        raise ValueError(
            "X must be the data that the model was fitted to, in the same order, got rows that the model "
            f"places at a median distance of {np.degrees(apart):.2g} degrees from its own points, on a map "
            f"of size {np.degrees(size):.2g} degrees."
        )
    return found


def _own_placer(model: Mercat, landmarks: Taken, plan: Plan) -> LandmarkPlacer:
    """Placer by angles for the map: that of the model, or a new one for a map with detail."""
    against = model._placer.against
    if isinstance(against, LandmarkPlacer):
        return against
    fit = AngleFit(Calibration(*model.calibration_), model.correlation_, model.loss_, np.empty(0))
    return landmark_placer(landmarks.X, landmarks.Y @ model._rotation, fit, plan)


def _judged(
    model: Mercat,
    rows: RowSource,
    judge: Judge,
    placed: np.ndarray | None,
    progress: Progress,
) -> Any:
    """All columns for all rows; lazy if the rows are lazy."""
    places = None if rows.lazy else model.embedding_
    judge_rows = functools.partial(_judge_rows, judge.to_device(rows), places, placed)
    return rows.results(judge_rows, (points.N_COLUMNS,), "float64", progress)


def _judge_rows(judge: Judge, places: Any, placed: np.ndarray | None, rows: Any, start: int) -> Any:
    here = slice(start, start + rows.shape[0])
    return judge.judged(
        rows,
        None if places is None else places[here],
        None if placed is None else placed[:, here],
        start,
    )
