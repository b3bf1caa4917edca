"""Other maps of the same data, and the null distribution from a map of permuted data.

The difference between two maps stands for that between the map and one of new data from the same
distribution. So the two maps must be independent: they have no rows in common, and each starts from principal
components of its own rows. A map of a few landmarks is compared with maps of other landmarks. A map of all
rows, or of most of them, leaves no rows for other maps. In that case, pairs of maps of complementary halves
of the rows are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import TILE, rows_alike, to_numpy
from .._data.source import RowSource
from .._data.threads import Workers
from .._detail.neighbors import Search, check_neighbors
from .._math.orientation import orthogonal_onto
from .._math.sphere import geodesic
from .._progress import Progress
from .._reduce.components import ComponentReducer
from .._reduce.reducer import Reducer, fit_reducer, project_all
from .._solve.detail import add_detail
from .._solve.initial import centre_of, resized, size_of
from .._solve.losses import AngleLoss
from .._solve.pipeline import Plan, descend, landmark_placer, solve
from .._solve.placement import LandmarkPlacer, place_in_blocks
from .._solve.starts import PromisingStarts
from .points import N_ANGLE_LANDMARKS, AngleSample, MapPoints, OtherMap, monomials, warp_positions

# Neighbours are searched among all points or, if there are many, among a sample: as many points as give the
# second number of distances, but at least the first number.
_MIN_REFERENCE, _REFERENCE_PAIRS = 1000, 4_000_000
N_PROBES = 1000  # number of reference points (probes) whose positions on the maps are compared
_N_NULL = 2000  # points of permuted data that are placed, in addition to the landmarks
_N_NULL_EXACT = 1500  # points of permuted data in an exact fit
_N_NOISE_MAPS = 3  # number of maps of noise whose agreement is that by chance
# A warm start misses a point if it leads farther than this distance, in radians, from the result of the full
# search. If it misses more than this fraction of the points, the full search is used.
_MAX_DISPLACEMENT, _MAX_MISSED_FRACTION = 0.1, 0.02
# Correlation of the angles below which all samples share their sums over the data.
_MAX_CORRELATION_TO_SHARE = 0.95
_SINGULAR = 1e-6  # relative cutoff for small singular values


class Samples(NamedTuple):
    """All random samples of rows, drawn before the data are read."""

    reference: np.ndarray
    maps: list[np.ndarray]  # rows of each other map
    are_halves: bool  # whether maps 2 k and 2 k + 1 have complementary halves of the rows
    null: np.ndarray
    generators: list[np.random.Generator]  # one per map, and one for permuted data

    @property
    def all(self) -> np.ndarray:
        return np.unique(np.concatenate([self.reference, self.null, *self.maps]))


def n_reference(n: int) -> int:
    """Number of points among which neighbours of n points are searched."""
    return min(n, max(_MIN_REFERENCE, _REFERENCE_PAIRS // n))


def draw_samples(plan: Plan, landmarks: np.ndarray, n_maps: int) -> Samples:
    """Draw all samples; `landmarks` are the rows that the map was fitted to, if it is without detail."""
    n = plan.source.shape[0]
    *generators, common = plan.rng.spawn(n_maps + 1)
    size = len(landmarks) if plan.sampled else n
    n_null = min(n, size + _N_NULL if plan.sampled else _N_NULL_EXACT)
    are_halves = plan.detail > 0 or 2 * size > n
    return Samples(
        common.choice(n, n_reference(n), replace=False),
        complementary_halves(n, generators)
        if are_halves
        else [other_rows(n, np.sort(landmarks), g) for g in generators],
        are_halves,
        common.choice(n, n_null, replace=False),
        [*generators, common],
    )


def complementary_halves(n: int, generators: list[np.random.Generator]) -> list[np.ndarray]:
    """One half of n rows per generator, ascending; every second half has the rows that the first lacks."""
    halves: list[np.ndarray] = []
    for first in generators[::2]:
        order = first.permutation(n)
        halves += [np.sort(order[: n // 2]), np.sort(order[n // 2 :])]
    return halves[: len(generators)]


def other_rows(n: int, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random rows out of n: as many as `rows` (ascending), and none of them."""
    drawn = rng.choice(n - len(rows), len(rows), replace=False)
    return drawn + np.searchsorted(rows - np.arange(len(rows)), drawn, side="right")


def other_maps(
    plan: Plan, samples: Samples, on_map: MapPoints, reference: MapPoints, correlation: float
) -> Iterator[tuple[OtherMap, np.ndarray]]:
    """Yield other maps without detail, and the positions of the probes on each of them before scaling.

    Each has its own rows and start, and is rotated onto the map; a map of a second half is rotated onto that
    of the first half. `correlation` is the correlation between the angles of the map and of the data.
    """
    X, Y = reference.X[:N_PROBES], reference.Y[:N_PROBES]
    if correlation < _MAX_CORRELATION_TO_SHARE:
        first = plan.source.to_device(on_map.subset(samples.maps[0]).X)
        similar = AngleLoss(first, line=plan.line, workers=plan.workers)
        plan = plan._replace(similar=similar)
    # Not for few points: their maps take little time, and depend more on the start.
    if plan.sampled:
        plan = plan._replace(before=PromisingStarts())
    plan = plan._replace(reducer=_identity_reducer(on_map.X))
    placer: LandmarkPlacer | None = None
    for k, (rows, rng) in enumerate(zip(samples.maps, samples.generators, strict=False)):
        sample, map_plan = on_map.subset(rows), plan._replace(rng=rng)
        fit = descend(sample.X, rows, map_plan, careful=not plan.sampled)
        onto = sample.Y.astype(np.float64)
        if samples.are_halves and k % 2:
            onto = place_points(placer, sample.X, plan.workers)
        rotated = fit.Y @ _rotation_onto(fit.Y, onto).T
        placer = landmark_placer(sample.X, rotated, fit.angle_fit, map_plan)
        Y_other = place_points(placer, X, plan.workers)
        # A warm start saves most of the time for many points; among few, some would stay near their start.
        yield _other_map(placer, X, Y, Y_other, full_search=samples.are_halves), Y_other
        plan.progress.advance()


def _other_map(
    placer: LandmarkPlacer,
    X: np.ndarray,
    Y: np.ndarray,
    Y_other: np.ndarray,
    *,
    full_search: bool,
) -> OtherMap:
    """The map of a placer, on which the points X, at Y on the map, are at Y_other.

    Without `full_search`, points are placed by a warm start, unless it misses too many of the points X.
    """
    warp = np.linalg.lstsq(monomials(Y.astype(np.float64)), Y_other, rcond=_SINGULAR)[0]
    size = relative_size(Y_other, Y)
    scale = 1 / size if np.isfinite(size) and size > 0 else 1.0
    other = OtherMap(placer, warp, full_search, centre_of(Y_other), scale)
    if full_search:
        return other
    with rows_alike():
        nearby = other.place_unscaled(X, warp_positions((other,), Y)[0][:, None, :], None)
    missed = np.mean(geodesic(nearby.astype(np.float64), Y_other) > _MAX_DISPLACEMENT)
    return other._replace(full_search=bool(missed > _MAX_MISSED_FRACTION))


def _rotation_onto(Y: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """Rotation or reflection of a map onto another one, whatever their sizes."""
    return orthogonal_onto(resized(Y, size_of(onto)), onto)


def place_points(placer: Any, X_hat: np.ndarray, workers: Workers) -> np.ndarray:
    """Positions of points on a map, before rotation."""

    def place(rows: np.ndarray) -> np.ndarray:
        with rows_alike():
            return np.asarray(placer.place(rows))

    return np.asarray(place_in_blocks(place, X_hat, TILE, workers), dtype=np.float64)


def other_maps_with_detail(plan: Plan, samples: Samples, points: MapPoints) -> Iterator[np.ndarray]:
    """Yield the positions of all points (n x 3) on each other map with detail, as `other_maps` does.

    Each map has its own landmarks and neighbours, among its own rows. Points that it was not fitted to are
    placed as `transform` places them, as they would be on maps of other data.
    """
    first = points.Y
    for k, (rows, rng) in enumerate(zip(samples.maps, samples.generators, strict=False)):
        map_plan = plan._replace(
            init=plan.init if isinstance(plan.init, str) else plan.init[rows],
            neighbors=_neighbors_among(rows, plan.neighbors, points.X[rows], rng),
            rng=rng,
        )
        Y = place_points(_placer_with_detail(points.X[rows], map_plan), points.X, plan.workers)
        onto = first if k % 2 else points.Y
        first = (Y @ _rotation_onto(Y, onto.astype(np.float64)).T).astype(np.float32)
        yield first
        plan.progress.advance()


def _placer_with_detail(X_hat: np.ndarray, plan: Plan) -> Any:
    """Placer of a map with detail of rows X_hat, by the settings of a plan for more rows."""
    plan = plan._replace(
        source=RowSource(X_hat.astype(np.float64), plan.workers),
        reducer=_identity_reducer(X_hat),
        solver="landmarks" if plan.sampled else "exact",
        progress=Progress(False),
    )
    return add_detail(solve(plan), plan).placement.placer.against


def _identity_reducer(X_hat: np.ndarray) -> ComponentReducer:
    """Reducer for data that are X_hat: maps then start from principal components of their own rows."""
    r = X_hat.shape[1]
    return ComponentReducer(np.zeros(r), None, np.ones(r), 1.0, "euclidean")


def _neighbors_among(
    rows: np.ndarray, neighbors: Any, X_hat: np.ndarray, rng: np.random.Generator
) -> Any:
    """Number of neighbours or graph for a sample of the rows with the components X_hat.

    In a given graph, neighbours that were not drawn are replaced by their own neighbours that were.
    """
    m = len(rows)
    if isinstance(neighbors, int):
        return max(1, min(neighbors, m // 3))
    number = np.full(neighbors.shape[0], -1)
    number[rows] = np.arange(m)
    start, end = neighbors.tocoo().coords
    drawn = rng.permutation(np.flatnonzero(number[end] >= 0))
    replaced = np.full_like(number, -1)
    replaced[start[drawn]] = number[end[drawn]]
    replaced[rows] = np.arange(m)
    in_sample = number[start] >= 0
    start, end = number[start[in_sample]], replaced[end[in_sample]]
    kept = (end >= 0) & (end != start)
    start, end = start[kept], end[kept]
    isolated = np.setdiff1d(np.arange(m), start)
    if len(isolated):  # connect them to the nearest point in the data
        nearest = Search(X_hat)(X_hat[isolated], 1, isolated)[:, 0]
        start, end = np.append(start, isolated), np.append(end, nearest)
    ones = np.ones(len(start), dtype=np.float32)
    return scipy.sparse.coo_array((ones, (start, end)), shape=(m, m)).tocsr()


def project(rows: Any, plan: Plan) -> np.ndarray:
    """X_hat of rows, in memory."""
    return to_numpy(project_all(plan.source.to_device(plan.reducer), rows, plan.workers))


def null_distribution(plan: Plan, X_hat: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fraction of unexplained variance at the points of a map of permuted data, in increasing order.

    A map is fitted with the settings of `plan`. Data without structure are X_hat, randomly rotated and with
    each column permuted: without the rotation, principal components would keep their variances, and with
    them much of the structure.
    """
    source = RowSource(remove_structure(X_hat, rng), plan.workers)
    spectral: Reducer = fit_reducer(source, None, metric="euclidean")
    map_plan = plan._replace(
        source=source,
        reducer=spectral,
        init="auto",
        rng=rng,
        neighbors=_neighbors_of_noise(plan, source.shape[0]),
        progress=Progress(False),
    )
    solved = solve(map_plan)
    if plan.detail:
        solved = add_detail(solved, map_plan)
    X = project(source.take_all(), map_plan).astype(np.float32)
    Y = to_numpy(solved.fit.Y).astype(np.float32)
    chosen = solved.landmarks[:N_ANGLE_LANDMARKS]
    angle_sample = AngleSample(X[chosen], Y[chosen], solved.fit.angle_fit.calibration)
    measured = np.ones(len(X), dtype=bool)
    if len(solved.landmarks) < len(X):
        measured[solved.landmarks] = False  # only placed points, as most points of the map are
    return np.sort(angle_sample.unexplained(X[measured], Y[measured]).astype(np.float64))


def stability_by_chance(
    plan: Plan, samples: Samples, n_columns: int, rng: np.random.Generator
) -> float:
    """Stability of maps of normal noise with this number of columns, as that of the maps of the samples."""
    m = len(samples.maps[0])
    X = rng.normal(size=(_N_NOISE_MAPS * m, n_columns)).astype(np.float32)
    plan = plan._replace(
        source=RowSource(X, plan.workers),
        reducer=_identity_reducer(X),
        solver="landmarks" if plan.sampled else "exact",
        init="auto",
        neighbors=_neighbors_of_noise(plan, m),
        rng=rng,
        progress=Progress(False),
    )
    probes = np.sort(rng.choice(len(X), min(len(X), 2 * N_PROBES), replace=False))
    maps = [
        place_points(_placer_of_noise(rows, plan), X[probes], plan.workers)
        for rows in np.split(X, _N_NOISE_MAPS)
    ]
    map_of_probe, found = probes // m, []  # the map that was fitted to each probe
    for k, first in enumerate(maps):
        if samples.are_halves:  # the second is rotated onto the first, and both have all points
            for j, second in enumerate(maps[:k]):
                common = (map_of_probe == j) | (map_of_probe == k)
                pair = first[common], _aligned(second[common], first[common])
                found.append(stability(np.stack(pair)))
        else:  # others are rotated onto the map, and have other points
            own = map_of_probe == k
            others = [_aligned(Y[own], first[own]) for Y in maps[:k] + maps[k + 1 :]]
            found.append(stability(np.stack(others)))
    return float(np.mean(found))


def _placer_of_noise(X: np.ndarray, plan: Plan) -> Any:
    """Placer of a map of all rows of X."""
    if plan.detail > 0:
        return _placer_with_detail(X, plan)
    fit = descend(X, np.arange(len(X)), plan, careful=not plan.sampled)
    return landmark_placer(X, fit.Y, fit.angle_fit, plan)


def _neighbors_of_noise(plan: Plan, n: int) -> int:
    """Number of neighbours for maps of n rows of data without structure."""
    default = check_neighbors(None, n)
    return min(plan.neighbors, default) if isinstance(plan.neighbors, int) else default


def _aligned(Y: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """A map, scaled and rotated onto another one of the same points."""
    Y = resized(Y, size_of(onto))
    return np.asarray(Y @ orthogonal_onto(Y, onto).T)


def remove_structure(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """X (n x r), randomly rotated, with each column permuted."""
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    return rng.permuted(X @ rotation, axis=0)


def stability(maps: np.ndarray, *, in_pairs: bool = False) -> float:
    """Agreement of aligned maps of the same points (m x n x 3): 1 for equal maps, 0 for unrelated ones.

    One minus the mean squared distance between the positions of a point on two maps, divided by that between
    two points of a map. With `in_pairs`, the mean over maps 2 k and 2 k + 1.
    """
    if in_pairs:
        return float(np.mean([stability(maps[k : k + 2]) for k in range(0, len(maps) - 1, 2)]))
    m = len(maps)
    between = np.sum((maps - maps.mean(axis=0)) ** 2, axis=2).mean() * m / (m - 1)
    within = np.sum((maps - maps.mean(axis=1, keepdims=True)) ** 2, axis=2).mean()
    return float(1 - between / within) if within > 0 else 1.0


def relative_size(Y_other: np.ndarray, Y: np.ndarray) -> float:
    """Size of another map (n x 3) as a multiple of that of Y (n x 3); NaN if all points of Y coincide."""
    size = size_of(Y.astype(np.float64))
    return size_of(Y_other) / size if size > 0 else np.nan
