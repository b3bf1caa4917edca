"""`uncertainty`: uncertainty of the positions on a map, from other maps of the same data."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

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
    draw_samples,
    null_distribution,
    other_maps,
    other_maps_with_detail,
    place_points,
    project,
    relative_size,
    stability,
    stability_by_chance,
)
from .points import AngleSample, HalfMapScatter, MapPoints, OtherMap, PointEstimator
from .record import Uncertainty

_MIN_MAPS = 4
# X must be the data of the map: the model must place this number of landmarks near their positions, with at
# most this median distance, in map sizes.
_N_COMPARED, _MAX_MEDIAN_DISTANCE = 200, 0.1
_ROUNDING = 1e-6  # radians, for maps whose points all coincide
_MIN_POINTS = 10  # other maps may have half of them
_FLAT = 2  # number of columns up to which the data determine a map even if they are noise


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
        Number of other maps, at least 4. Time grows linearly with it. Choose an even number: if maps are
        compared in pairs, the last one of an odd number is used for alternative positions only.
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
    Uncertainty of 200 points from 5 maps with stability ...
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
        has_detail = isinstance(model._placer.against, DetailPlacer)
        if not has_detail:
            # Of the snapshot: `detail` may have had no effect.
            model.detail = 0.0
        elif model.detail == 0:
            raise ValueError(
                f"detail must not be changed after the fit, got detail={model.detail!r}: fit the model again."
            )
        if has_detail and (
            source.lazy or source.device is not None or len(model._placer.against.Y) < n
        ):
            raise ValueError(
                "uncertainty of a map with detail needs X in memory and all points in the descent, got "
                f"detail={model.detail!r}, n_detail={model.n_detail!r} and X as a {type(X).__name__}."
            )
        if n < _MIN_POINTS:
            raise ValueError(
                f"X must have at least {_MIN_POINTS} rows for uncertainty, got {n}: other maps have half of "
                "them."
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
        estimator, others, agreement, sizes = _prepare(model, plan, n_maps)
        columns = _all_results(model, source, estimator, others, progress)
    return Uncertainty(
        places=columns[:, points.PLACE],
        axes=columns[:, points.AXES].reshape((n, 2, 3)),
        alternative=columns[:, points.ALTERNATIVE],
        alternative_gap=columns[:, points.GAP],
        alternative_wins=columns[:, points.WINS],
        torn=columns[:, points.TORN],
        p_value=columns[:, points.P_VALUE],
        stability=agreement.stability,
        stability_by_chance=agreement.by_chance,
        n_maps=n_maps,
        n_comparisons=n_maps if estimator.halves is None else n_maps // 2,
        sizes=sizes,
    )


class Agreement(NamedTuple):
    """Stability of the other maps, and of such maps of noise."""

    stability: float
    by_chance: float


def _prepare(
    model: Mercat, plan: Plan, n_maps: int
) -> tuple[PointEstimator, np.ndarray | None, Agreement, np.ndarray]:
    """Estimator; positions on other maps with detail (n_maps x n x 3), or None; agreement; relative sizes."""
    samples = draw_samples(plan, model.landmarks_, n_maps)
    n, detail = plan.source.shape[0], plan.detail > 0
    rows = np.arange(n) if detail else np.union1d(samples.all, model.landmarks_)
    on_map = _map_points(model, plan, rows)
    reference, landmarks = on_map.subset(samples.reference), on_map.subset(model.landmarks_)
    plan.progress.phase("other maps", n_maps, "map")
    maps: tuple[OtherMap, ...] = ()
    others = None
    if detail:
        raw = list(other_maps_with_detail(plan, samples, on_map))
        sizes = np.array([relative_size(Y, on_map.Y) for Y in raw])
        others = np.stack([resized(Y, size_of(on_map.Y)) for Y in raw])
        probes = others[:, samples.reference[:N_PROBES]].astype(np.float64)
    else:
        fitted = other_maps(plan, samples, on_map, reference, model.correlation_)
        maps, raw = zip(*fitted, strict=True)
        sizes = np.array([relative_size(Y, reference.Y[:N_PROBES]) for Y in raw])
        probes = np.stack([scaled(Y, m.centre, m.scale) for m, Y in zip(maps, raw, strict=True)])
    rng = samples.generators[-1]
    null = null_distribution(plan, on_map.subset(samples.null).X.astype(np.float64), rng)
    line = Calibration(*model.calibration_)
    agreement = stability(probes, in_pairs=samples.are_halves)
    by_chance = stability_by_chance(plan, samples, reference.X.shape[1], rng)
    halves = None
    if samples.are_halves:
        halves = _half_map_scatter(model, plan, agreement, by_chance, reference)
    estimator = PointEstimator(
        spectral=plan.reducer,
        placer=_angle_placer(model, landmarks, plan),
        rotation=model._rotation,
        maps=maps,
        halves=halves,
        angle_sample=AngleSample(landmarks.X, landmarks.Y, line),
        reference=reference,
        k=N_NEIGHBORS,
        near_fraction=FAR,
        null=null,
        loss=model.loss_,
    )
    return estimator, others, Agreement(agreement, by_chance), sizes


def _half_map_scatter(
    model: Mercat, plan: Plan, agreement: float, by_chance: float, on_map: MapPoints
) -> HalfMapScatter:
    """How maps of halves, with this agreement, predict maps of new data."""
    n = plan.source.shape[0]
    n_solved = len(model.landmarks_) if plan.sampled else n
    # The variance of positions that the data determine is inversely proportional to the number of rows of a
    # map. With detail, it depends on the nearest rows, not on their number.
    determined = 1.0 if plan.detail > 0 else (n / 2) / n_solved
    if on_map.X.shape[1] <= _FLAT:
        by_chance = 0.0
    mean = on_map.Y.mean(axis=0, dtype=np.float64)
    return HalfMapScatter.expected(agreement, by_chance, determined, mean)


def _map_points(model: Mercat, plan: Plan, rows: np.ndarray) -> MapPoints:
    """X_hat and positions of some rows (ascending). Raises ValueError if X is not the data of the map."""
    X_hat = project(plan.source.take(rows), plan).astype(np.float32)
    if plan.source.lazy:
        placer = model._placer.against
        Y = rotated(place_points(placer, X_hat, plan.workers), model._rotation, "float32")
        return MapPoints(X_hat, Y, rows)
    on_map = MapPoints(X_hat, to_numpy(model.embedding_[rows]).astype(np.float32), rows)
    # The model must place its landmarks near their positions.
    landmarks = on_map.subset(model.landmarks_[:_N_COMPARED])
    Y = place_points(model._placer.against, landmarks.X, plan.workers) @ model._rotation.T
    distance = float(np.median(geodesic(Y, landmarks.Y.astype(np.float64))))
    size = size_of(on_map.Y)
    if distance > _MAX_MEDIAN_DISTANCE * size + _ROUNDING:
        raise ValueError(
            "X must be the data that the model was fitted to, in the same order, got rows that the model "
            f"places at a median distance of {np.degrees(distance):.2g} degrees from its own points, on a "
            f"map of size {np.degrees(size):.2g} degrees."
        )
    return on_map


def _angle_placer(model: Mercat, landmarks: MapPoints, plan: Plan) -> LandmarkPlacer:
    """Placer by angles for the map: that of the model, or a new one for a map with detail."""
    against = model._placer.against
    if isinstance(against, LandmarkPlacer):
        return against
    fit = AngleFit(Calibration(*model.calibration_), model.correlation_, model.loss_, np.empty(0))
    return landmark_placer(landmarks.X, landmarks.Y @ model._rotation, fit, plan)


def _all_results(
    model: Mercat,
    rows: RowSource,
    estimator: PointEstimator,
    others: np.ndarray | None,
    progress: Progress,
) -> Any:
    """All columns for all rows; lazy if the rows are lazy."""
    Y = None if rows.lazy else model.embedding_
    function = functools.partial(_results_of_rows, estimator.to_device(rows), Y, others)
    return rows.results(function, (points.N_COLUMNS,), "float64", progress)


def _results_of_rows(
    estimator: PointEstimator, Y: Any, others: np.ndarray | None, rows: Any, start: int
) -> Any:
    block = slice(start, start + rows.shape[0])
    return estimator.results(
        rows,
        None if Y is None else Y[block],
        None if others is None else others[:, block],
        start,
    )
