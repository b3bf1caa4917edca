"""How far each place on a finished map can be trusted, by other maps of the same data.

Other maps are made as a fit makes one, each from a bootstrap sample of the rows and from its own start. They
are turned onto the map, and each point is placed on all of them, from where it is on the map. The scatter of
its places is what other landmarks, or other data of the same kind, would do to it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse

from .._data.arrays import (
    TILE,
    Array,
    beside,
    blocks,
    in_tiles,
    like,
    namespace,
    on_host,
    row_dot,
    row_product,
    rows_alike,
    to_numpy,
    unstack,
    widest,
)
from .._data.source import RowSource
from .._data.threads import Workers
from .._detail.neighbors import check_neighbors, graph_of, nearest
from .._math.angles import AngleFit, Calibration, Moments, mean_square
from .._math.orientation import orthogonal_onto
from .._math.sphere import geodesic, normalize, tangent_frame
from .._progress import Progress
from .._reduce.components import ComponentReducer
from .._reduce.distances import DistanceReducer
from .._reduce.reducer import Reducer, fit_reducer, project_all
from .diagnostics import Diagnostics
from .exact import Fit
from .fitted_map import ScoredMap, within_reach
from .pipeline import (
    Crowd,
    Plan,
    Solved,
    _place_all,
    _placement,
    add_detail,
    solve,
    solve_sample,
)
from .placement import LandmarkPlacer, placed_moments

# Points among which neighbours are looked for: all of few, a sample of more.
_LEAST_REFERENCE, _REFERENCE_PAIRS = 1000, 4_000_000
N_WITNESSES = 1000  # of them, those that maps are turned and compared by
_N_NULL = 2000  # points of permuted data that are placed, beside landmarks
_N_NULL_EXACT = 1500  # points of permuted data that are solved together
_N_LEGS = 100  # landmarks that a point is judged by
ELSEWHERE = 0.3  # radians from which another minimum is another place ...
_STEPS_ELSEWHERE = 10  # ... after so many more steps
_REARRANGED = (
    0.1  # radians between where a point comes from its place and where a full search puts it ...
)
_MOST_MISSED = 0.02  # ... and the share of points farther apart from which all are searched for
_SINGULAR = 1e-6  # relative size of what is left out of a fit
# Columns of what is found out about a point.
PLACE, AXES, ALTERNATIVE = slice(0, 3), slice(3, 9), slice(9, 12)
GAP, WINS, TORN, P_VALUE, N_COLUMNS = 12, 13, 14, 15, 16


class OtherMap(NamedTuple):
    """Another map of the data: what places points on it, and how it is turned onto the map.

    `warp` leads from a place on the map to about the same place on this one, before it is turned.
    """

    placer: LandmarkPlacer
    rotation: np.ndarray  # (3, 3)
    warp: np.ndarray  # (20, 3)
    search: bool  # whether a point is looked for all over this map

    def place(self, X_hat: Array, starts: Array) -> Array:
        """Places of points, turned onto the map, from where they may be on that (b x n x 3)."""
        if self.search:
            Y = self.placer.place(X_hat)
        else:
            xp = namespace(X_hat)
            warped = [_warped(starts[:, k, :], self.warp) for k in range(starts.shape[1])]
            Y, _ = self.placer.place_from(X_hat, xp.stack(warped, axis=1))
        return _product(Y, self.rotation)


class Taken(NamedTuple):
    """Points of the map, denoised, their places on it, and the rows of the data that they are."""

    X: np.ndarray
    Y: np.ndarray
    rows: np.ndarray

    def some(self, rows: np.ndarray) -> Taken:
        """Those of some rows, where all rows are ascending."""
        at = np.searchsorted(self.rows, rows)
        return Taken(self.X[at], self.Y[at], rows)


class Legs(NamedTuple):
    """Landmarks that angles at a point are judged by, and the line that these are measured against."""

    X: np.ndarray
    Y: np.ndarray
    line: Calibration

    def unexplained(self, X_hat: Array, Y: Array) -> Array:
        """Share of the variance of the cosines at each point that the map does not explain."""
        moments = placed_moments(X_hat, Y, self.X, self.Y, 0, _N_LEGS)
        return _unexplained(moments, self.line)


class Judge(NamedTuple):
    """All that it takes to judge a row, the same whatever rows come with it."""

    spectral: Any
    own: LandmarkPlacer  # of the map, before it is turned
    rotation: np.ndarray
    maps: tuple[OtherMap, ...]
    inflation: float  # of the scatter of maps of the same data, to that of maps of other data
    legs: Legs
    reference: Taken
    k: int  # true neighbours
    far: float
    null: np.ndarray  # (N,) what permuted data leave unexplained, ascending
    loss: float  # of the map

    def to_device(self, rows: RowSource) -> Judge:
        moved = {name: rows.to_device(getattr(self, name)) for name in _RECORDS}
        return self._replace(**moved, maps=tuple(rows.to_device(m) for m in self.maps))

    def judged(self, rows: Any, places: Array | None, others: Array | None, start: int) -> Array:
        """All columns (b x N_COLUMNS) of some rows, the first of them number `start`.

        `places` (b x 3) are theirs on the map, `others` (n_maps x b x 3) those on the other maps, if known.
        """
        with rows_alike():
            X_hat = within_reach(self.spectral, rows)
            parts = [
                self._judged(
                    X_hat[t, :],
                    None if places is None else places[t, :],
                    None if others is None else others[:, t, :],
                    start + t.start,
                )
                for t in blocks(X_hat.shape[0], TILE if on_host(X_hat) else _ROWS_THERE)
            ]
        return namespace(parts[0]).concat(parts)

    def _judged(self, X_hat: Array, Y: Array | None, others: Array | None, start: int) -> Array:
        xp, wide = namespace(X_hat), widest(X_hat)
        single = like(X_hat)
        turned = self.rotation.T
        if Y is None:
            Y = normalize(_product(xp.astype(self.own.place(X_hat), wide), self.rotation))
        Y = xp.asarray(Y, **single)
        raw = _product(Y, turned)
        other_minimum = _product(self._other_minimum(X_hat, raw), self.rotation)
        if others is None:
            starts = xp.stack([Y, other_minimum], axis=1)
            found = xp.stack([m.place(X_hat, starts) for m in self.maps])
        else:
            found = xp.asarray(others, **single)
        places = xp.astype(Y, wide)
        axes = scatter(xp.astype(found, wide), places, self.inflation)
        alternative, wins = elsewhere(found, Y)
        alternative = xp.where((wins > 0)[:, None], alternative, other_minimum)
        wins = xp.where(xp.isnan(alternative[:, 0]), xp.nan, wins)
        gap = self.own.excess(X_hat, raw, _product(alternative, turned))
        gap = gap / max(self.loss, _LEAST_LOSS) ** 2
        torn = torn_share(X_hat, Y, start, self.reference, self.k, self.far)
        unexplained = self.legs.unexplained(X_hat, Y)
        p = p_values(xp.astype(unexplained, wide), self.null)
        columns = [xp.astype(c, wide) for c in (gap, wins, torn, p)]
        return xp.concat(
            [
                places,
                xp.reshape(axes, (-1, 6)),
                xp.astype(alternative, wide),
                xp.stack(columns, axis=1),
            ],
            axis=1,
        )

    def _other_minimum(self, X_hat: Array, Y: Array) -> Array:
        """The best minimum of each point's loss that lies elsewhere (b x 3); NaN for none."""
        xp = namespace(X_hat)
        there, _ = self.own.place_roughly(X_hat, Y)
        away = geodesic(there, Y) > ELSEWHERE
        (rows,) = xp.nonzero(away)
        if rows.shape[0] > 0:  # few: most descents lead back
            start = xp.take(there, rows, axis=0)[:, None, :]
            there[rows, :] = self.own.place_from(
                xp.take(X_hat, rows, axis=0), start, _STEPS_ELSEWHERE
            )[0]
        away = away & (geodesic(there, Y) > ELSEWHERE)
        return xp.where(away[:, None], there, xp.nan)


_RECORDS = ("spectral", "own", "rotation", "legs", "reference", "null")
_ROWS_THERE = 1 << 14  # rows that a device judges at a time
_LEAST_LOSS = 1e-6


class Samples(NamedTuple):
    """Rows for everything that is drawn at random, drawn before the data are read."""

    reference: np.ndarray
    maps: list[np.ndarray]  # rows of each other map, with repetitions
    null: np.ndarray
    generators: list[np.random.Generator]  # one for each map, and one for permuted data

    @property
    def all(self) -> np.ndarray:
        return np.unique(np.concatenate([self.reference, self.null, *self.maps]))


def n_reference(n: int) -> int:
    """Number of points among which neighbours of n points are looked for."""
    return min(n, max(_LEAST_REFERENCE, _REFERENCE_PAIRS // n))


def draw(plan: Plan, n_maps: int) -> Samples:
    """Rows of the other maps: as many as the map was made from, with replacement."""
    n = plan.rows.shape[0]
    *generators, common = plan.rng.spawn(n_maps + 1)
    size = min(n, plan.n_landmarks) if plan.sampled else n
    n_null = min(n, size + _N_NULL if plan.sampled else _N_NULL_EXACT)
    return Samples(
        common.choice(n, n_reference(n), replace=False),
        [generator.choice(n, size) for generator in generators],
        common.choice(n, n_null, replace=False),
        [*generators, common],
    )


class Made(NamedTuple):
    """Another map: its landmarks, what places points, and points of the map on it, turned onto that."""

    fit: Fit
    scored: ScoredMap
    other: OtherMap
    witnesses: np.ndarray


def other_maps(plan: Plan, samples: Samples, taken: Taken, reference: Taken) -> Iterator[Made]:
    """Maps of the same data without detail, each from its own rows and start, turned onto the map."""
    X, Y = reference.X[:N_WITNESSES], reference.Y[:N_WITNESSES]
    for rows, rng in zip(samples.maps, samples.generators, strict=False):
        fit, scored = solve_sample(taken.some(rows).X, rows, plan._replace(rng=rng))
        placer: Any = scored.placer.against
        yield Made(fit, scored, *_turned_onto(placer, X, Y, plan.workers))
        plan.progress.advance()


def _turned_onto(
    placer: LandmarkPlacer, X: np.ndarray, Y: np.ndarray, workers: Workers
) -> tuple[OtherMap, np.ndarray]:
    """A map turned onto another, on which points X are at Y; and where they are on this one, turned."""
    there = placed(placer, X, workers)
    rotation = orthogonal_onto(there, Y)
    warp = np.linalg.lstsq(_monomials(Y.astype(np.float64)), there, rcond=_SINGULAR)[0]
    other, turned = OtherMap(placer, rotation, warp, False), there @ rotation.T
    with rows_alike():
        near = other.place(X, Y[:, None, :])
    missed = np.mean(geodesic(near.astype(np.float64), turned) > _REARRANGED)
    return other._replace(search=bool(missed > _MOST_MISSED)), turned


def placed(placer: Any, X_hat: np.ndarray, workers: Workers) -> np.ndarray:
    """Places of points on a map, before it is turned."""

    def place(tile: slice) -> np.ndarray:
        with rows_alike():
            return np.asarray(placer.place(X_hat[tile]))

    parts = list(workers.map(place, blocks(len(X_hat), TILE)))
    return np.concatenate(parts).astype(np.float64)


def with_detail(
    plan: Plan, samples: Samples, maps: Iterable[Made], Y: np.ndarray
) -> Iterator[np.ndarray]:
    """Places of all rows (n x 3) on other maps with detail, one after the other, turned onto the map at Y.

    The neighbours are those of the map.
    """
    graph = plan.neighbors
    if isinstance(graph, int):
        X_hat = projected(plan.rows.take_all(), plan).astype(np.float32)
        graph = graph_of(nearest(X_hat, graph, samples.generators[-1], plan.workers))
    for rows, rng, made in zip(samples.maps, samples.generators, maps, strict=False):
        fit = _place_all(plan.rows, made.scored, made.fit, Progress(False))
        solved = Solved(fit, made.scored, rows, Crowd(fit.Y, fit.Y), Diagnostics())
        own_plan = plan._replace(neighbors=graph, rng=rng, progress=Progress(False))
        there = to_numpy(add_detail(solved, own_plan).fit.Y).astype(np.float64)
        yield (there @ orthogonal_onto(there, Y).T).astype(np.float32)


def placer_against(X: np.ndarray, Y: np.ndarray, fit: AngleFit, plan: Plan) -> LandmarkPlacer:
    """What places points by their angles to landmarks, wherever these are."""
    placer: Any = _placement(X, Y, fit, plan).placer.against
    return cast(LandmarkPlacer, placer)


def projected(rows: Any, plan: Plan) -> np.ndarray:
    """X_hat of rows that were taken, in memory."""
    return to_numpy(project_all(plan.rows.to_device(plan.spectral), rows, plan.workers))


def null_distribution(
    plan: Plan, rows: Any, X_hat: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """What a map of data without relations between columns leaves unexplained at its points, ascending.

    The values of each column are permuted, and a map is made of the rows as `plan` says, from as many
    components. Of distances, which have no columns, those of X_hat are permuted.
    """
    if isinstance(plan.spectral, DistanceReducer):
        source = RowSource(rng.permuted(X_hat.astype(np.float64), axis=0), plan.workers)
        spectral: Reducer = fit_reducer(source, None, metric="euclidean", rng=rng)
    else:
        source = RowSource(_permuted(rows, rng), plan.workers)
        whole = isinstance(plan.spectral, ComponentReducer) and plan.spectral.components is None
        n_spectral = None if whole else X_hat.shape[1]
        spectral = fit_reducer(source, n_spectral, metric=plan.spectral.metric, rng=rng)
    default = check_neighbors(None, source.shape[0])
    k = min(plan.neighbors, default) if isinstance(plan.neighbors, int) else default
    own_plan = plan._replace(
        rows=source, spectral=spectral, init="auto", rng=rng, neighbors=k, progress=Progress(False)
    )
    solved = solve(own_plan)
    if plan.detail:
        solved = add_detail(solved, own_plan)
    X = projected(source.take_all(), own_plan).astype(np.float32)
    Y = to_numpy(solved.fit.Y).astype(np.float32)
    chosen = solved.landmarks[:_N_LEGS]
    legs = Legs(X[chosen], Y[chosen], solved.fit.angle_fit.calibration)
    judged = np.ones(len(X), dtype=bool)
    if len(solved.landmarks) < len(X):
        judged[solved.landmarks] = False  # most points of the map are not landmarks, either
    return np.sort(legs.unexplained(X[judged], Y[judged]).astype(np.float64))


def _permuted(rows: Any, rng: np.random.Generator) -> Any:
    """Rows with the values of each column in another order; a sparse matrix stays sparse."""
    if not scipy.sparse.issparse(rows):
        return rng.permuted(to_numpy(rows), axis=0)
    columns = scipy.sparse.csc_array(rows)
    n, indices = columns.shape[0], columns.indices.copy()
    for start, stop in itertools.pairwise(columns.indptr):
        indices[start:stop] = rng.choice(n, stop - start, replace=False)
    return scipy.sparse.csc_array((columns.data, indices, columns.indptr), columns.shape).tocsr()


def stability(maps: np.ndarray) -> float:
    """1 for maps of the same points (m x n x 3), aligned, that agree; 0 where they have nothing in common.

    One minus the mean squared distance of a point on two maps over that of two points.
    """
    m = len(maps)
    between = np.sum((maps - maps.mean(axis=0)) ** 2, axis=2).mean() * m / (m - 1)
    within = np.sum((maps - maps.mean(axis=1, keepdims=True)) ** 2, axis=2).mean()
    return float(1 - between / within) if within > 0 else 1.0


# ------------------------------------------------------------------ of each point


def scatter(found: Array, Y: Array, inflation: float) -> Array:
    """Axes (b x 2 x 3) of the scatter about places Y (b x 3) of points on other maps (m x b x 3).

    An axis is a tangent vector at Y as long as the root mean square deviation along it, the longer one first.
    """
    xp = namespace(found)
    frame = tangent_frame(Y)
    u, v = unstack(tangent_coordinates(Y, frame, found))
    uu, vv, uv = (inflation * xp.mean(p, axis=0) for p in (u * u, v * v, u * v))
    middle, half = (uu + vv) / 2, xp.hypot((uu - vv) / 2, uv)
    angle = xp.atan2(uv, (uu - vv) / 2) / 2
    c, s = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    U, V = unstack(frame)
    long = xp.sqrt(middle + half)[:, None] * (c * U + s * V)
    short = xp.sqrt(xp.maximum(middle - half, xp.zeros_like(half)))[:, None] * (c * V - s * U)
    return xp.stack([long, short], axis=1)


def elsewhere(found: Array, Y: Array) -> tuple[Array, Array]:
    """Where most maps that put a point elsewhere than at Y put it, and their share of all maps.

    Places on the maps (m x b x 3) are elsewhere if they are far from Y; of these, the one with the most
    others near it stands for a group, and the mean of that is the place (b x 3), NaN without any.
    """
    xp, m = namespace(found), found.shape[0]
    away = geodesic(found, Y[None, ...]) > ELSEWHERE
    near = xp.sum(found[:, None, ...] * found[None, ...], axis=-1) > math.cos(ELSEWHERE)
    near = near & away[None, ...]
    company = xp.where(away, xp.sum(xp.astype(near, xp.int64), axis=1), -1)
    most = xp.argmax(company, axis=0)
    stands = xp.arange(m, **beside(found))[:, None] == most[None, :]
    group = xp.astype(xp.any(near & stands[:, None, :], axis=0) & away, found.dtype)
    size = xp.sum(group, axis=0)
    mean = normalize(xp.sum(group[..., None] * found, axis=0))
    return xp.where((size > 0)[:, None], mean, xp.nan), size / m


def tangent_coordinates(center: Array, frame: Array, Y: Array) -> Array:
    """Places Y (.. x b x 3) in the tangent planes (2 x b x 3) at centres (b x 3): 2 x .. x b, in radians."""
    xp = namespace(Y)
    along = xp.stack([row_dot(Y, axis) for axis in unstack(frame)])
    sine = xp.sqrt(xp.sum(along * along, axis=0))
    distance = geodesic(Y, xp.broadcast_to(center, Y.shape))
    zero = sine == 0
    return along * xp.where(zero, xp.ones_like(sine), distance / xp.where(zero, 1.0, sine))


def torn_share(X_hat: Array, Y: Array, start: int, reference: Taken, k: int, far: float) -> Array:
    """Share of the k nearest reference points that lie far away on the map, as `torn_neighbors` has it."""
    xp = namespace(X_hat)
    k = min(k, reference.X.shape[0] - 1)
    near = max(k, int(far * reference.X.shape[0]))
    rows = start + xp.arange(X_hat.shape[0], **beside(X_hat))

    def torn(X: Array, Y: Array, rows: Array) -> tuple[Array]:
        itself = xp.nonzero(rows[:, None] == reference.rows[None, :])
        D, D_map = _squared_distances(X, reference.X), _squared_distances(Y, reference.Y)
        D[itself] = D_map[itself] = xp.inf
        there = _at_smallest(D, k, D_map)
        limit = xp.max(_smallest(D_map, near), axis=1)
        return (xp.mean(xp.astype(there > limit[:, None], X.dtype), axis=1),)

    return in_tiles(torn, X_hat, Y, rows)[0]


def _squared_distances(X: Array, P: Array) -> Array:
    xp = namespace(X)
    D = row_product(X, xp.matrix_transpose(P))
    D *= -2
    D += row_dot(P, P)
    D += row_dot(X, X)[:, None]
    return D


def _smallest(D: Array, k: int) -> Array:
    """The k smallest entries of each row, in no order."""
    if on_host(D):
        return np.partition(D, k - 1, axis=1)[:, :k]
    return D.topk(k, dim=1, largest=False, sorted=False).values


def _at_smallest(D: Array, k: int, values: Array) -> Array:
    """Values in the columns of the k smallest entries of each row, in no order."""
    if on_host(D):
        columns = np.argpartition(D, k - 1, axis=1)[:, :k]
        return np.take_along_axis(values, columns, axis=1)
    return values.gather(1, D.topk(k, dim=1, largest=False, sorted=False).indices)


def _unexplained(moments: Moments, line: Calibration) -> Array:
    xp = namespace(moments.b)
    count = xp.maximum(moments.count, xp.ones_like(moments.count))
    variance = moments.aa / count - (moments.a / count) ** 2
    tiny = xp.finfo(variance.dtype).smallest_normal
    return mean_square(moments, line) / xp.maximum(variance, xp.full_like(variance, tiny))


def p_values(unexplained: Array, null: Array) -> Array:
    """Share of the points of permuted data, and the point itself, that fare at least as well."""
    xp = namespace(unexplained)
    at_least = xp.searchsorted(xp.asarray(null, **like(unexplained)), unexplained, side="right")
    return (xp.astype(at_least, unexplained.dtype) + 1) / (null.shape[0] + 1)


def _monomials(Y: Array) -> Array:
    """Products of up to three coordinates (b x 20)."""
    xp = namespace(Y)
    x, y, z = Y[:, 0], Y[:, 1], Y[:, 2]
    one, second = xp.ones_like(x), [x * x, y * y, z * z, x * y, x * z, y * z]
    third = [x * s for s in second] + [y * y * y, y * y * z, y * z * z, z * z * z]
    return xp.stack([one, x, y, z, *second, *third], axis=1)


def _warped(Y: Array, warp: Array) -> Array:
    return normalize(_product(_monomials(Y), namespace(Y).matrix_transpose(warp)))


def _product(A: Array, B: Array) -> Array:
    """A @ B.T in the precision of A, each row as alone."""
    xp = namespace(A)
    B = xp.matrix_transpose(xp.asarray(B, **like(A)))
    return in_tiles(lambda rows: (rows @ B,), A)[0]
