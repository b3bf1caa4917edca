"""`uncertainty`: error bars for the places of a map, from other maps of the same data."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import f as _f_distribution
from sklearn.utils.validation import check_is_fitted

from ._data.arrays import is_dask, namespace, to_numpy
from ._data.checks import check_integer, generator
from ._data.source import RowSource
from ._estimator import Mercat, _turned
from ._math.angles import AngleFit, Calibration
from ._math.sphere import geodesic
from ._progress import Progress
from ._solve import uncertainty as _solve
from ._solve.pipeline import Plan
from ._solve.placement import LandmarkPlacer
from ._validation import check_init, neighbors_of
from .metrics._structure import FAR, N_TRUE

_LEAST_MAPS = 4
# Chosen by measurement (benchmarks/calibration.py): degrees of freedom, and how much more data drawn anew
# move a map than other samples of the same data, of all rows.
_TAILS, _OTHER_DATA = 7, 0.5
_COMPARED, _NOT_THE_SAME = 200, 0.5  # rows that must be near their place on the map; radians


@dataclass(frozen=True, repr=False, eq=False)
class Uncertainty:
    """How far the places on a map can be trusted, as `mercat.uncertainty` finds it.

    Arrays have a row for each point and are of the kind of X: NumPy arrays, tensors on the device of X, or
    lazy Dask arrays.

    Attributes
    ----------
    places : array of shape (n, 3)
        The places on the map, which ellipses are centred at.
    axes : array of shape (n, 2, 3)
        Half-axes of an ellipse for each point, the longer one first: tangent vectors at its place, as long as
        the root mean square deviation, in radians, of its place on another map along them.
    spread : array of shape (n,)
        Root mean square distance, in radians, between a place on the map and that on another map.
    alternative : array of shape (n, 3)
        Another place of the point, at least 0.3 radians away: where most of the other maps that put it
        elsewhere put it, or else another minimum of its loss on the map; NaN where there is neither.
    alternative_gap : array of shape (n,)
        How much worse the point fits there on the map: the difference of its mean squared residuals, over
        the mean squared residual of the map's angles. Below 0 if it fits better there.
    alternative_wins : array of shape (n,)
        Share of the other maps that put the point there; 0 for another minimum that none of them chose.
    torn : array of shape (n,)
        Share of the true neighbours of each point that are torn away on the map, as
        :func:`mercat.metrics.torn_neighbors` counts them in the denoised data; of more than 2000 points,
        among a random sample of 1000 or more.
    p_value : array of shape (n,)
        Share of the points of data without structure, in which the values of each column are permuted, whose
        angles a map made in the same way explains at least as well. The data are those of up to 2000 rows
        beside landmarks; it is at least 1 over their number.
    stability : float
        Agreement between the other maps: 1 if they are the same, 0 if they have nothing in common. One minus
        the mean squared distance of a point on two maps over that of two points on one map.
    n_maps : int
        Number of the other maps.
    """

    places: Any
    axes: Any
    alternative: Any
    alternative_gap: Any
    alternative_wins: Any
    torn: Any
    p_value: Any
    stability: float
    n_maps: int

    def __repr__(self) -> str:
        n = self.places.shape[0]
        return f"Uncertainty of {n} points by {self.n_maps} maps, of stability {self.stability:.3f}"

    @property
    def spread(self) -> Any:  # numpydoc ignore=RT01
        """Root mean square distance between places on the map and on another one, in radians."""
        return (self.axes * self.axes).sum(axis=(1, 2)) ** 0.5

    def columns(self) -> dict[str, Any]:
        """The numbers that there is one of for each point.

        Returns
        -------
        columns : dict of str to array of shape (n,)
            "spread", "alternative_gap", "alternative_wins", "torn" and "p_value".
        """
        names = ("spread", "alternative_gap", "alternative_wins", "torn", "p_value")
        return {name: getattr(self, name) for name in names}

    def factor(self, level: float) -> float:
        """How many standard deviations the region of a level extends to.

        Parameters
        ----------
        level : float
            Probability in (0, 1), such as 0.9.

        Returns
        -------
        factor : float
            The quantile of a distribution with heavier tails than the normal one: a t-distribution with 7
            degrees of freedom, or as many as there are maps. It was chosen by measurement.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be a number above 0 and below 1, got {level!r}.")
        return float(np.sqrt(2 * _f_distribution.ppf(level, 2, min(_TAILS, self.n_maps))))

    def ellipses(self, level: float = 0.9, *, rows: Any = None, n_vertices: int = 48) -> Any:
        """Outlines of the regions where another map puts the points with some probability.

        Parameters
        ----------
        level : float, default=0.9
            The probability.
        rows : array of int, optional
            The points; all by default.
        n_vertices : int, default=48
            Number of vertices of an outline.

        Returns
        -------
        outlines : array of shape (n, n_vertices, 3)
            Unit vectors. Ellipses in the tangent plane, carried to the sphere along great circles.
        """
        check_integer("n_vertices", n_vertices, 3)
        scale = self.factor(level)
        rows = slice(None) if rows is None else rows
        center, axes = (to_numpy(_computed(a[rows])) for a in (self.places, self.axes))
        angle = np.arange(n_vertices) * (2 * np.pi / n_vertices)
        around = scale * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        step = around @ axes
        length = np.minimum(np.linalg.norm(step, axis=2, keepdims=True), np.pi)
        direction = step / np.where(length > 0, np.linalg.norm(step, axis=2, keepdims=True), 1)
        return np.cos(length) * center[:, None, :] + np.sin(length) * direction

    def contains(self, Y: Any, level: float = 0.9) -> Any:
        """Whether places lie in the regions of a level.

        Parameters
        ----------
        Y : array of shape (n, 3)
            Unit vectors, a place for each point.
        level : float, default=0.9
            The probability.

        Returns
        -------
        inside : array of bool of shape (n,)
        """
        center, axes = self.places, self.axes
        xp = np if is_dask(center) else namespace(center)
        length = (axes * axes).sum(axis=2) ** 0.5
        distance = geodesic(Y, center)
        along = (axes * Y[:, None, :]).sum(axis=2)  # times sine and length
        tangent = Y - (Y * center).sum(axis=1)[:, None] * center
        sine = (tangent * tangent).sum(axis=1) ** 0.5
        unit = xp.where(sine > 0, distance / xp.where(sine > 0, sine, 1.0), 1.0)
        flat = length == 0
        deviation = xp.where(
            flat,
            xp.where(abs(along) > 0, xp.inf, 0.0),
            along * unit[:, None] / xp.where(flat, 1.0, length) ** 2,
        )
        return (deviation * deviation).sum(axis=1) <= self.factor(level) ** 2


def uncertainty(
    model: Mercat, X: Any, *, n_maps: int = 20, random_state: Any = None
) -> Uncertainty:
    """How far each place on a map can be trusted, from other maps of the same data.

    Other maps are made as `fit` makes one, each from its own start and its own bootstrap sample of the rows
    of X, as many as the map was made from, and turned onto the map. Each point is placed on all of them: its
    places show where other landmarks, or other data of the same kind, would put it.

    Parameters
    ----------
    model : Mercat
        A fitted model.
    X : array, sparse matrix, data frame, Dask array or torch tensor of shape (n, n_features)
        The data that the model was fitted to.
    n_maps : int, default=20
        Number of other maps, at least 4. Time grows linearly with it.
    random_state : int, numpy Generator or RandomState, or None, default=None
        Seed of the other maps. The same seed gives the same bits on any number of threads.

    Returns
    -------
    uncertainty : Uncertainty
        For each point its ellipse, alternative place, torn neighbours and p-value; for the map its stability.
        Lazy for a Dask array: the other maps are made at once, and the points judged a chunk at a time when
        they are asked for.

    Notes
    -----
    The principal components are those of the model. With `detail`, the other maps have the same neighbours:
    ellipses then tell what other landmarks do, and not what other data do to neighbourhoods.

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
    check_is_fitted(model)
    check_integer("n_maps", n_maps, _LEAST_MAPS)
    if model.solver == "algorithm1":
        raise ValueError(
            "model must be fitted by solver='exact' or 'landmarks', got solver='algorithm1'."
        )
    rng = generator(random_state)
    model = model._as_now()
    with model._working() as (workers, progress):
        source = model._open(X, workers, fitting=False)
        n = source.shape[0]
        if n != len(model.embedding_):
            raise ValueError(
                f"X must be the data that the model was fitted to, {len(model.embedding_)} rows, got {n}."
            )
        plan = model._plan(source, model._placer.spectral, rng, progress)._replace(
            init=check_init(model.init, n), neighbors=neighbors_of(model, n)
        )
        judge, others, stability = _prepared(model, plan, n_maps)
        found = _judged(model, source, judge, others, progress)
    return Uncertainty(
        places=found[:, _solve.PLACE],
        axes=found[:, _solve.AXES].reshape((n, 2, 3)),
        alternative=found[:, _solve.ALTERNATIVE],
        alternative_gap=found[:, _solve.GAP],
        alternative_wins=found[:, _solve.WINS],
        torn=found[:, _solve.TORN],
        p_value=found[:, _solve.P_VALUE],
        stability=stability,
        n_maps=n_maps,
    )


def _prepared(
    model: Mercat, plan: Plan, n_maps: int
) -> tuple[_solve.Judge, np.ndarray | None, float]:
    """What judges rows; places on other maps with detail (n_maps x n x 3), if any; and how the maps agree."""
    samples = _solve.draw(plan, n_maps)
    taken = _taken(model, plan, np.union1d(samples.all, model.landmarks_))
    reference, landmarks = taken.some(samples.reference), taken.some(model.landmarks_)
    plan.progress.phase("other maps", n_maps, "map")
    made = _solve.other_maps(plan, samples, taken, reference)
    if model.detail > 0:
        Y = np.asarray(model.embedding_, dtype=np.float64)
        maps, placed = [], np.stack(list(_solve.with_detail(plan, samples, made, Y)))
        witnesses = placed[:, samples.reference[: _solve.N_WITNESSES]]
    else:
        maps, witnesses = zip(*((m.other, m.witnesses) for m in made), strict=True)
        placed = None
    rng = samples.generators[-1]
    X_hat = taken.some(samples.null).X
    null = _solve.null_distribution(plan, plan.rows.take(samples.null), X_hat, rng)
    line = Calibration(*model.calibration_)
    judge = _solve.Judge(
        spectral=plan.spectral,
        own=_own_placer(model, landmarks, plan),
        rotation=model._rotation,
        maps=tuple(maps),
        inflation=1 + _OTHER_DATA * len(samples.maps[0]) / plan.rows.shape[0],
        legs=_solve.Legs(landmarks.X, landmarks.Y, line),
        reference=reference,
        k=N_TRUE,
        far=FAR,
        null=null,
        loss=model.loss_,
    )
    return judge, placed, _solve.stability(np.asarray(witnesses, dtype=np.float64))


def _taken(model: Mercat, plan: Plan, rows: np.ndarray) -> _solve.Taken:
    """Some rows, ascending, denoised, and their places on the map, which must be the map of these data."""
    near = plan.rows.take(rows)
    X_hat = _solve.projected(near, plan).astype(np.float32)
    if plan.rows.lazy:
        placer = model._placer.against
        Y = _turned(_solve.placed(placer, X_hat, plan.workers), model._rotation, "float32")
        return _solve.Taken(X_hat, Y, rows)
    Y = to_numpy(model.embedding_[rows]).astype(np.float32)
    some = np.linspace(0, len(rows) - 1, min(len(rows), _COMPARED)).astype(int)
    again = _solve.placed(model._placer.against, X_hat[some], plan.workers)
    apart = float(np.median(geodesic(again @ model._rotation.T, Y[some].astype(np.float64))))
    if apart > _NOT_THE_SAME:
        raise ValueError(
            "X must be the data that the model was fitted to, got rows that the model places at a median of "
            f"{np.degrees(apart):.0f} degrees from its training points."
        )
    return _solve.Taken(X_hat, Y, rows)


def _own_placer(model: Mercat, landmarks: _solve.Taken, plan: Plan) -> LandmarkPlacer:
    """What places points by their angles on the map: the model's own, or one for a map with detail."""
    against = model._placer.against
    if isinstance(against, LandmarkPlacer):
        return against
    fit = AngleFit(Calibration(*model.calibration_), model.correlation_, model.loss_, np.empty(0))
    return _solve.placer_against(landmarks.X, landmarks.Y @ model._rotation, fit, plan)


def _judged(
    model: Mercat,
    rows: RowSource,
    judge: _solve.Judge,
    placed: np.ndarray | None,
    progress: Progress,
) -> Any:
    """All columns of all rows; lazy if the rows are."""
    places = None if rows.lazy else model.embedding_
    judge_rows = functools.partial(_judge_rows, judge.to_device(rows), places, placed)
    return rows.results(judge_rows, (_solve.N_COLUMNS,), "float64", progress)


def _judge_rows(
    judge: _solve.Judge, places: Any, placed: np.ndarray | None, rows: Any, start: int
) -> Any:
    here = slice(start, start + rows.shape[0])
    return judge.judged(
        rows,
        None if places is None else places[here],
        None if placed is None else placed[:, here],
        start,
    )


def _computed(array: Any) -> Any:
    return array.compute() if is_dask(array) else array
