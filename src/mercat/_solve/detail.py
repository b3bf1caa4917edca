"""Add detail to a finished map: neighbours, affinities, a start of averages, and the descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.arrays import TILE, Array, blocks, namespace, on_host, to_numpy, widest
from .._data.sampling import Sample
from .._detail import tiles
from .._detail.affinities import Affinities, affinities_of, averages_over
from .._detail.descent import (
    N_ITER,
    SETTLED_AT,
    DescentResult,
    descend_with_detail,
    settled_loss,
    weight_of,
)
from .._detail.graphs import graph_like, graph_of
from .._detail.neighbors import EqualRows, nearest
from .._detail.new_points import detail_placer
from .._detail.terms import FarTerms, angle_term, pair_forces
from .._math.angles import AngleFit, Moments, angle_fit
from .._progress import reporter
from .._reduce.reducer import project_rows
from .anchors import is_about_as_good, start_on_other_map
from .diagnostics import correlation_among, count_components
from .exact import Fit
from .fitted_map import FittedMap, loss_sample
from .initial import resized, size_of
from .losses import AngleLoss
from .pipeline import (
    MIN_DETAIL_FOR_AVERAGES,
    N_ORIENTING,
    Plan,
    Solved,
    descend,
    landmark_placer,
    orienting_points,
    solve,
    starts_from_averages,
)
from .placement import place_in_blocks
from .status import Status

# Smallest root mean square arc from the centre of the map from which the descent starts. On a map that is not
# larger than the first bandwidth, the first stages hardly distinguish near and distant points.
_MIN_SIZE = 0.5
_N_COMPARED = 1000  # number of points used to compare the angles of two maps


def add_detail(solved: Solved, plan: Plan) -> Solved:
    """Add neighbourhoods to a finished map, unless the callback has stopped the fit.

    If neighbours are as far from each other as other points, as in noise, the best map for the neighbour term
    is one that is smaller than the bandwidth, on which the term is constant. Then the map stays without
    detail.
    """
    if solved.fit.status is Status.CALLBACK:
        return solved
    fit, workers = solved.fit, plan.device_workers
    X_hat = _all_projected(plan)
    only_landmarks = plan.sampled and starts_from_averages(plan)
    Y = None if only_landmarks else plan.source.to_device(fit.Y)
    plan.progress.phase("neighbours", None, "")
    graph, order = _graph(X_hat, plan)
    number, landmarks, sample = None, solved.landmarks, solved.sample
    if order is not None:
        X_hat, Y = X_hat[order], None if Y is None else Y[order]
        number = namespace(order).argsort(order)  # new number of each row
        landmarks, rows = (to_numpy(number)[rows] for rows in (landmarks, sample.rows))
        sample = sample._replace(rows=rows)
    affinities, strength = affinities_of(X_hat, graph, workers)
    correlation = fit.angle_fit.correlation
    weights = weight_of(np.inf, correlation), weight_of(plan.detail, correlation)
    # With little detail, the map stays near the plain one. With more, the descent starts from a map of
    # averages over neighbours: they have less noise, which may have separated related points on the plain
    # map.
    if plan.detail >= MIN_DETAIL_FOR_AVERAGES:
        rows = landmarks if plan.sampled else np.arange(len(X_hat))
        start = solved.placement.loss_sample.Y if Y is None else to_numpy(Y[rows])
        Y = _map_of_averages(X_hat, graph, rows, start, plan)
    result, far_terms = _descend(X_hat, Y, fit, affinities, weights, sample, plan, number)
    if not result.stopped and size_of(result.Y) < result.kernel.bandwidth:
        return _without_detail(solved, plan)
    k = max(1, round(graph.nnz / len(X_hat)))
    given = not isinstance(plan.neighbors, int)
    n_components = count_components(affinities.settled) if given else None
    del graph, affinities  # to free memory of a device
    if number is not None:
        X_hat, result = X_hat[number], result._replace(Y=result.Y[number])
    # Equal rows get the same position.
    result = result._replace(Y=result.Y[EqualRows(X_hat)(X_hat)])
    placer = FittedMap(
        plan.reducer,
        plan.source.to_memory(
            detail_placer(
                X_hat, result, solved.landmarks, k, strength, far_terms, weights[1], workers
            )
        ),
    )
    fit = Fit(
        result.Y,
        _angle_fit(X_hat, result.Y, solved.landmarks if plan.sampled else None, plan),
        fit.history + result.history,
        Status.CALLBACK if result.stopped else fit.status,
    )
    rows = np.sort(solved.sample.rows[:N_ORIENTING])
    return solved._replace(
        fit=fit,
        placement=solved.placement._replace(placer=placer),
        orienting=orienting_points(result.Y, X_hat, rows, plan),
        diagnostics=solved.diagnostics._replace(n_components=n_components),
    )


def _without_detail(solved: Solved, plan: Plan) -> Solved:
    """The map of all rows without detail, given the map from which the descent started."""
    if plan.sampled and starts_from_averages(plan):  # only a sample has been placed
        solved = solve(plan._replace(detail=0.0, callback=None))
    return solved._replace(diagnostics=solved.diagnostics._replace(neighbors_are_far=True))


def _map_of_averages(
    X_hat: Array, graph: Any, rows: np.ndarray, start: np.ndarray, plan: Plan
) -> Array:
    """Positions (n x 3) on a map of averages over neighbours.

    The map is solved for some rows from their positions `start`; others are placed against them.
    """
    averages = averages_over(X_hat, graph, plan.device_workers)
    enlarge = starts_from_averages(plan)
    plan = plan._replace(anchors=None, callback=None, max_iter=None)
    X_solved = to_numpy(averages[rows])
    fit = descend(X_solved, rows, plan, careful=False, start=start)
    if plan.sampled:
        placer = plan.source.to_device(landmark_placer(X_solved, fit.Y, fit.angle_fit, plan))
        size = 4 * TILE if on_host(X_hat) else plan.source.block
        Y = place_in_blocks(placer.place, averages, size, plan.device_workers)
    else:
        Y = plan.source.to_device(fit.Y)
    # An aligned map or a given start keeps its size.
    return resized(Y, _MIN_SIZE) if enlarge and size_of(Y) < _MIN_SIZE else Y


def _descend(
    X_hat: Array,
    start: Array,
    fit: Fit,
    affinities: Affinities,
    weights: tuple[float, float],
    sample: Sample,
    plan: Plan,
    number: Array | None,
) -> tuple[DescentResult, FarTerms]:
    """Result and far terms of the descent.

    If the map is aligned with another one and is about as good with the points of that map fixed, they are.
    number: number of each row among the points, if these were renumbered.
    """
    workers, n_before = plan.device_workers, len(fit.history)
    iterations = N_ITER if plan.anchors is None else 2 * N_ITER - SETTLED_AT
    plan.progress.phase("detail", iterations, "iteration")
    report = reporter(plan.progress, plan.callback)

    def for_callback(Y: Array) -> Array:
        """Positions in memory, in the order of the rows; unchanged if there is no callback."""
        return Y if plan.callback is None else to_numpy(Y if number is None else Y[number])

    def run(Y: Array, **options: Any) -> tuple[DescentResult, FarTerms]:
        angles = angle_term(X_hat, fit.angle_fit.calibration, plan.calibrated, sample)
        far_terms = FarTerms(X_hat, angles, pair_forces(X_hat, Y, sample), sample, workers)
        result = descend_with_detail(
            Y,
            affinities,
            weights,
            far_terms,
            workers=workers,
            report=lambda i, loss, Y: report(n_before + i, loss, for_callback(Y)),
            **options,
        )
        return result, far_terms

    free = run(start)
    if plan.anchors is None or free[0].stopped:
        return free
    start = start_on_other_map(plan.anchors, X_hat, workers)
    fixed = run(start, settled=True, fixed=plan.anchors.known)
    compared = np.sort(sample.rows[:_N_COMPARED])

    def quality(Y: Array) -> tuple[float, float]:
        correlation = correlation_among(X_hat[compared], Y[compared], workers)
        return correlation, settled_loss(affinities.settled, Y, workers)

    return fixed if is_about_as_good(quality(fixed[0].Y), quality(free[0].Y)) else free


def _all_projected(plan: Plan) -> Array:
    """X_hat of all rows in single precision, on the device of the computation, read in blocks."""
    rows = plan.source
    reducer, X_hat, start = rows.to_device(plan.reducer), None, 0
    for part in rows.each(lambda block, _: project_rows(reducer, block)):
        if X_hat is None:
            X_hat = rows.scratch((rows.shape[0], part.shape[1]))
        X_hat[start : start + len(part)] = part
        start += len(part)
    return X_hat


def _graph(X_hat: Array, plan: Plan) -> tuple[Any, Array | None]:
    """The graph of neighbours, given or computed.

    Large data are renumbered so that neighbours are close in memory; the order is returned, else None.
    """
    if not isinstance(plan.neighbors, int):
        return graph_like(plan.neighbors, X_hat), None
    neighbors: Any
    if on_host(X_hat):
        neighbors = nearest(X_hat, plan.neighbors, plan.rng, plan.workers)
    else:
        neighbors = tiles.nearest(X_hat, plan.neighbors, plan.rng)
    indices, order = neighbors.indices, neighbors.order
    if order is None or plan.anchors is not None:  # anchors are row numbers
        return graph_of(indices), None
    number = namespace(order).argsort(order)
    return graph_of(number[indices[order]]), order


def _angle_fit(X_hat: Array, Y: Array, landmarks: np.ndarray | None, plan: Plan) -> AngleFit:
    """Quality of Y over all triples, or over all points as apices and landmarks as legs."""
    xp, rows = namespace(X_hat), plan.source
    if landmarks is None:
        wide = widest(X_hat)
        loss = AngleLoss(xp.astype(X_hat, wide), line=plan.line, workers=plan.workers)
        return loss.judge(to_numpy(Y).astype(np.float64))
    legs = loss_sample(*(to_numpy(P[landmarks]) for P in (X_hat, Y))).for_points(len(Y), rows.tile)
    legs, size = rows.to_device(legs), rows.tile if on_host(Y) else rows.block
    parts = plan.device_workers.map(
        lambda t: legs.moments(X_hat[t], Y[t], t.start), blocks(len(Y), size)
    )
    moments = Moments(*(xp.concat(m) for m in zip(*parts, strict=True)))
    fit = angle_fit(moments, plan.line)
    point_loss = rows.empty((len(Y),), "float64")
    rows.store(fit.point_loss, point_loss, slice(None))
    return fit._replace(point_loss=point_loss)
