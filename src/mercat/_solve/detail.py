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
    Sharpened,
    settled_loss,
    sharpen,
    weight_of,
)
from .._detail.graphs import graph_like, graph_of
from .._detail.neighbors import EqualRows, nearest
from .._detail.new_points import detail_placer
from .._detail.terms import FarTerms, angle_term, pair_forces
from .._math.angles import AngleFit, Moments, angle_fit
from .._progress import reporter
from .._reduce.reducer import project_rows
from .anchors import settled_start, stays
from .diagnostics import correlation_among, parts_of
from .exact import Fit
from .fitted_map import FittedMap, loss_sample
from .initial import resized, size_of
from .losses import AngleLoss
from .pipeline import (
    CROWD,
    FROM_AVERAGES,
    Plan,
    Solved,
    begins_at_averages,
    crowd_of,
    descend,
    landmark_placer,
)
from .placement import place_in_blocks
from .status import Status

# Smallest root mean square arc from the centre at which the descent from averages starts. The map should be
# larger than the first bandwidth, or the first stages could hardly tell which parts of it are near each
# other.
_LEAST_SIZE = 0.5
_COMPARED = 1000  # points used to compare the angles of two maps


def add_detail(solved: Solved, plan: Plan) -> Solved:
    """Add neighbourhoods to a finished map, unless the callback has stopped the fit."""
    if solved.fit.status is Status.CALLBACK:
        return solved
    fit, workers = solved.fit, plan.device_workers
    X_hat = _all_projected(plan)
    only_landmarks = plan.sampled and begins_at_averages(plan)
    Y = None if only_landmarks else plan.source.to_device(fit.Y)
    plan.progress.phase("neighbours", None, "")
    graph, order = _graph(X_hat, plan)
    back, landmarks, sample = None, solved.landmarks, solved.sample
    if order is not None:
        X_hat, Y = X_hat[order], None if Y is None else Y[order]
        back = namespace(order).argsort(order)
        landmarks, rows = (to_numpy(back)[rows] for rows in (landmarks, sample.rows))
        sample = sample._replace(rows=rows)
    pulls, strength = affinities_of(X_hat, graph, workers)
    correlation = fit.angle_fit.correlation
    heaviest, weight = (weight_of(detail, correlation) for detail in (np.inf, plan.detail))
    # With little detail, the map stays near the plain one. With more, it starts from averages over
    # neighbours: they have less noise, which may have torn related points apart on the plain map.
    if plan.detail >= FROM_AVERAGES:
        rows = landmarks if plan.sampled else np.arange(len(X_hat))
        start = solved.placement.loss_sample.Y if Y is None else to_numpy(Y[rows])
        Y = _of_averages(X_hat, graph, rows, start, plan)
    sharp, far_terms = _sharpened(X_hat, Y, fit, pulls, (heaviest, weight), sample, plan, back)
    k = max(1, round(graph.nnz / len(X_hat)))
    parts = parts_of(pulls.settled)
    del graph, pulls  # to free memory of a device for what follows
    if back is not None:
        X_hat, sharp = X_hat[back], sharp._replace(Y=sharp.Y[back])
    sharp = sharp._replace(Y=sharp.Y[EqualRows(X_hat)(X_hat)])  # equal rows get the same position
    placer = FittedMap(
        plan.reducer,
        plan.source.to_memory(
            detail_placer(X_hat, sharp, solved.landmarks, k, strength, far_terms, weight, workers)
        ),
    )
    fit = Fit(
        sharp.Y,
        _judged(X_hat, sharp.Y, solved.landmarks if plan.sampled else None, plan),
        fit.history + sharp.history,
        Status.CALLBACK if sharp.stopped else fit.status,
    )
    crowd = np.sort(solved.sample.rows[:CROWD])
    return solved._replace(
        fit=fit,
        placement=solved.placement._replace(placer=placer),
        crowd=crowd_of(sharp.Y, X_hat, crowd, plan),
        diagnostics=solved.diagnostics._replace(parts=parts),
    )


def _of_averages(
    X_hat: Array, graph: Any, rows: np.ndarray, start: np.ndarray, plan: Plan
) -> Array:
    """Positions (n x 3) on a map of averages over neighbours, solved for some rows from their start."""
    averages = averages_over(X_hat, graph, plan.device_workers)
    enlarge = begins_at_averages(plan)
    plan = plan._replace(anchors=None, callback=None, max_iter=None)
    few = to_numpy(averages[rows])
    fit = descend(few, rows, plan, careful=False, start=start)
    if plan.sampled:
        placer = plan.source.to_device(landmark_placer(few, fit.Y, fit.angle_fit, plan))
        size = 4 * TILE if on_host(X_hat) else plan.source.block
        Y = place_in_blocks(placer.place, averages, size, plan.device_workers)
    else:
        Y = plan.source.to_device(fit.Y)
    # An aligned map or a given start keeps its size.
    return resized(Y, _LEAST_SIZE) if enlarge and size_of(Y) < _LEAST_SIZE else Y


def _sharpened(
    X_hat: Array,
    start: Array,
    fit: Fit,
    pulls: Affinities,
    weights: tuple[float, float],
    sample: Sample,
    plan: Plan,
    back: Array | None,
) -> tuple[Sharpened, FarTerms]:
    """The result of the descent, or a map near another one if about as good; and its far terms.

    back: index of each row among the points, if points were renumbered.
    """
    workers, before = plan.device_workers, len(fit.history)
    iterations = N_ITER if plan.anchors is None else 2 * N_ITER - SETTLED_AT
    plan.progress.phase("detail", iterations, "iteration")
    report = reporter(plan.progress, plan.callback)

    def seen(Y: Array) -> Array:
        """Positions for a callback, in memory; nothing else needs them."""
        return Y if plan.callback is None else to_numpy(Y if back is None else Y[back])

    def end_of_descent(Y: Array, **how: Any) -> tuple[Sharpened, FarTerms]:
        angles = angle_term(X_hat, fit.angle_fit.calibration, plan.calibrated, sample)
        far_terms = FarTerms(X_hat, angles, pair_forces(X_hat, Y, sample), sample, workers)
        sharp = sharpen(
            Y,
            pulls,
            weights,
            far_terms,
            workers=workers,
            report=lambda i, loss, Y: report(before + i, loss, seen(Y)),
            **how,
        )
        return sharp, far_terms

    free = end_of_descent(start)
    if plan.anchors is None or free[0].stopped:
        return free
    near_other, rows = settled_start(plan.anchors, X_hat, workers), plan.anchors.known
    held = end_of_descent(near_other, settled=True, held=rows)
    some = np.sort(sample.rows[:_COMPARED])
    near, far = (
        (correlation_among(X_hat[some], Y[some], workers), settled_loss(pulls.settled, Y, workers))
        for Y in (held[0].Y, free[0].Y)
    )
    return held if stays(near, far) else free


def _all_projected(plan: Plan) -> Array:
    """X_hat of all rows in single precision, on the device of the computation, read in blocks."""
    rows = plan.source
    spectral, X_hat, start = rows.to_device(plan.reducer), None, 0
    for part in rows.each(lambda some, _: project_rows(spectral, some)):
        if X_hat is None:
            X_hat = rows.scratch((rows.shape[0], part.shape[1]))
        X_hat[start : start + len(part)] = part
        start += len(part)
    return X_hat


def _graph(X_hat: Array, plan: Plan) -> tuple[Any, Array | None]:
    """The graph of neighbours, given or computed.

    Large data are renumbered so that neighbours are close in memory; the order is returned.
    """
    if not isinstance(plan.neighbors, int):
        return graph_like(plan.neighbors, X_hat), None
    found: Any
    if on_host(X_hat):
        found = nearest(X_hat, plan.neighbors, plan.rng, plan.workers)
    else:
        found = tiles.nearest(X_hat, plan.neighbors, plan.rng)
    if found.order is None or plan.anchors is not None:  # anchors are known by their number
        return graph_of(found.indices), None
    number = namespace(found.order).argsort(found.order)
    return graph_of(number[found.indices[found.order]]), found.order


def _judged(X_hat: Array, Y: Array, landmarks: np.ndarray | None, plan: Plan) -> AngleFit:
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
    found = angle_fit(moments, plan.line)
    point_loss = rows.empty((len(Y),), "float64")
    rows.store(found.point_loss, point_loss, slice(None))
    return found._replace(point_loss=point_loss)
