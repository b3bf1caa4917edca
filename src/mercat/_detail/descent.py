r"""Maps with detail: a descent that adds neighbourhoods to the map of angles.

With P the affinities of neighbours in the data (`_detail/affinities.py`) and
:math:`w_{ij} = 1 / (1 + |y_i - y_j|^2 / s^2)` the kernel on the sphere, the objective is

.. math:: \frac{\mathrm{mean}\,(a - \alpha - \beta b)^2}{\mathrm{var}(a)}
          + \frac{\mathrm{mean}\,(d - p - q \theta)^2}{\mathrm{var}(d)}
          + \lambda \, \mathrm{KL}(P \,\|\, Q), \qquad Q = w / \textstyle\sum w .

The terms of angles and distances (`terms.py`) are fractions of unexplained variance. All terms are
dimensionless means over the points. The curvature of the angle term is proportional to the variance that the
map of angles explains, its squared correlation. :math:`\lambda` is 15 `detail` / (2 + `detail`) times this
squared correlation (`weight_of`), so that a value of `detail` means about the same trade-off for few and many
points, and for data that fit the sphere well or badly.

Five choices keep the descent short, and classes connected:

- The bandwidth s decreases from a coarse value to about the distance between points. At first, attraction is
  exaggerated, so that classes form before they separate; with a bandwidth that is small from the start, or
  optimized, they break up.
- Every descent starts with the largest weight :math:`\lambda`, at which classes and loops form, and ends with
  the weight for `detail`.
- In the first half, the affinities depend on the paths between neighbours (`_detail/affinities.py`), so that
  loops and classes become connected.
- In each step, all points are compared with the same few anchors.
- Step lengths follow from the known curvatures of the terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import (
    Array,
    blocks,
    device_blocks,
    namespace,
    on_host,
    row_blocks,
    row_dot,
    same_device,
    to_numpy,
    widest,
)
from .._data.source import ROWS_PER_BLOCK
from .._data.threads import Workers
from .._kernels import device as device_kernels
from .._math.orientation import equator_rotation
from .._math.sphere import normalize, tangent
from .._progress import Report
from .affinities import Affinities
from .graphs import Graph, row_sums
from .repulsion import Field, Kernel
from .terms import FarTerms

N_ITER = 300
_N_STAGES = 10  # number of bandwidths
# Fraction of the iterations after which bandwidth, exaggeration and weight are constant.
_SETTLING = 0.65
SETTLED_AT = round(_SETTLING * N_ITER)
_FORMING = 0.5  # fraction of the iterations with the affinities along paths
_DECAY = 0.15  # fraction of the iterations, at the end, in which the steps decrease
_COARSEST, _FINEST = 0.25, 0.012  # bandwidths
NARROWING = 0.19  # final bandwidth times the fourth root of n
_EXAGGERATION = 40.0  # initial factor of the attraction
_MOMENTUM = 0.8
# Largest weight of neighbours, and the detail that gives half of it.
_MAX_WEIGHT, _HALF_DETAIL = 15.0, 2.0
_MIN_EXPLAINED = 0.05  # smallest squared correlation of angles used by `weight_of`
_HALF_STEP_WEIGHT = 0.03  # weight at which steps are half as long as at a high weight
LONGEST_STEP = 0.5  # longest step, in bandwidths
_FAR_INTERVAL = 5  # iterations between updates of the far terms, whose forces change slowly, ...
# ... unless there are few points, which move far per iteration.
_FEW, _FAR_INTERVAL_FOR_FEW = 3000, 2
_SOFTENING = 0.02  # softening of directions, as a fraction of the squared final bandwidth
_N_ROTATION = 10_000  # on a device, the rotation is determined from at least this many points


# ------------------------------------------------------------------ readable definition


def neighbor_loss(P: Any, Y: np.ndarray, bandwidth: float) -> float:
    """KL(P || Q) without the terms that depend on P alone, over all pairs; for tests. P is sparse."""
    chords = np.sum((Y[:, None, :] - Y[None, :, :]) ** 2, axis=2)
    w = 1 / (1 + chords / bandwidth**2)
    np.fill_diagonal(w, 0)
    i, j = P.nonzero()
    return float(np.log(w.sum()) - np.sum(P.data * np.log(w[i, j])) / P.sum())


# ------------------------------------------------------------------ forces, which are gradients times n


def attraction(P: Any, Y: Array, bandwidth: float, workers: Workers) -> Array:
    """n times the gradient (n x 3) of the part of `neighbor_loss` that contains P.

    Only the tangent component of the result is that of the gradient; the caller projects the rest away.
    """
    if not on_host(Y):
        return _attraction_on_device(P, Y, bandwidth)
    if kernels.available():
        return kernels.attraction(P, Y, bandwidth, workers.n_jobs)
    inverse_square = np.float32(1 / bandwidth**2)

    def part(block: slice) -> np.ndarray:
        start, stop = P.indptr[block.start], P.indptr[block.stop]
        columns = P.indices[start:stop]
        ends = P.indptr[block.start : block.stop + 1]
        difference = np.repeat(Y[block], np.diff(ends), axis=0)
        difference -= Y.take(columns, axis=0)
        w = np.einsum("ij,ij->i", difference, difference)
        w *= inverse_square
        w += 1
        np.divide(P.data[start:stop], w, out=w)
        shape = (block.stop - block.start, len(Y))
        toward = np.asarray(scipy.sparse.csr_array((w, columns, ends - start), shape=shape) @ Y)
        return toward * (-4 * inverse_square)

    return np.concatenate(list(workers.map(part, workers.shares(len(Y)))))


def _attraction_on_device(P: Graph, Y: Any, bandwidth: float) -> Any:
    """`attraction` with a graph of tensors."""
    if device_kernels.supports(Y):
        return device_kernels.attraction(P, Y, bandwidth)
    import torch

    force = []
    for block in device_blocks(Y, 16 * (P.nnz // len(Y) + 1)):
        ends = P.indptr[block.start : block.stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        neighbors = Y[P.indices[entries].long()]
        difference = Y[block].repeat_interleave(ends[1:] - ends[:-1], dim=0) - neighbors
        w = P.data[entries] / (1 + row_dot(difference, difference) / bandwidth**2)
        force.append(row_sums(w[:, None] * neighbors, ends - ends[0]))
    return (-4 / bandwidth**2) * torch.cat(force)


def repulsion(field: Field, Y: Array, workers: Workers) -> tuple[Array, Any]:
    """Gradient of the field at all points (n x 3), and the sum of the kernel over pairs.

    2 n gradient / pairs is n times the gradient of the other part of `neighbor_loss`.
    """
    n, xp = len(Y), namespace(Y)
    if on_host(Y) and kernels.available():
        values, gradient = field.at(Y, workers.n_jobs)
    else:
        slices = workers.shares(n) if on_host(Y) else row_blocks(Y, n, 32)
        parts = list(workers.map(lambda b: field.at(Y[b]), slices))
        values, gradient = parts[0] if len(parts) == 1 else map(xp.concat, zip(*parts, strict=True))
    # An array, not a float: conversion would wait for the device. The lower bound is for points that are all
    # far from each other, where interpolation errors dominate.
    return gradient, xp.clip(xp.sum(values, dtype=widest(Y)) - n, 1e-3 * n, None)


# ------------------------------------------------------------------ descent


class DescentResult(NamedTuple):
    """Result of a descent, with the last kernel."""

    Y: Array
    kernel: Kernel
    history: list[float]
    stopped: bool


def final_bandwidth(n: int, narrowing: float = NARROWING) -> float:
    """About the distance between points; several times that for very many points."""
    return float(max(narrowing / n**0.25, _FINEST))


def softening_of(n: int) -> float:
    """Softening of the directions between points and anchors, see `bearings`."""
    return _SOFTENING * final_bandwidth(n) ** 2


def weight_of(detail: float, correlation: float) -> float:
    """Factor of the neighbour term, given the correlation of the map of angles with the data."""
    explained = correlation**2 if np.isfinite(correlation) else 0.0
    relative = _MAX_WEIGHT / (1 + _HALF_DETAIL / detail)
    return float(relative * max(explained, _MIN_EXPLAINED))


class _Stage(NamedTuple):
    """Settings of an iteration of the descent."""

    bandwidth: float
    exaggeration: float  # factor of the attraction
    weight: float  # weight of the neighbour term
    step: float  # factor of the step length
    forming: bool  # whether to use the affinities along paths


def _schedule(n: int, weights: tuple[float, float], settled: bool) -> Iterator[_Stage]:
    """Settings of each iteration.

    settled: yield only those of the last part, with constant bandwidth, attraction and weight.
    """
    last, (first_weight, weight) = final_bandwidth(n), weights
    largest_step = weight / (weight + _HALF_STEP_WEIGHT)
    for i in range(SETTLED_AT if settled else 0, N_ITER):
        progress = min(i / (_SETTLING * N_ITER), 1.0)
        stage = min(int(progress * _N_STAGES), _N_STAGES - 1) / (_N_STAGES - 1)
        bandwidth = last if stage == 1 else _COARSEST * (last / _COARSEST) ** stage
        yield _Stage(
            bandwidth,
            _EXAGGERATION ** (1 - progress),
            first_weight ** (1 - progress) * weight**progress,
            largest_step * min((N_ITER - i) / (_DECAY * N_ITER), 1.0),
            i < _FORMING * N_ITER,
        )


def descend_with_detail(
    Y: Array,
    affinities: Affinities,
    weights: tuple[float, float],
    far_terms: FarTerms,
    *,
    workers: Workers,
    report: Report,
    settled: bool = False,
    fixed: np.ndarray | None = None,
) -> DescentResult:
    """Descend from Y (n x 3) by gradient steps with momentum, from a coarse to a fine bandwidth.

    weights: weights of the neighbour term at the start and at the end. settled: Y is at or near the end of
    such a descent; run only the last part. fixed: rows whose positions stay fixed.
    """
    n, xp = len(Y), namespace(Y)
    Y = xp.astype(_along_equator(Y), xp.float32)
    P: Any = None
    velocity = xp.zeros_like(Y)
    history: list[float] = []
    kernel = Kernel(_COARSEST, workers, Y)
    interval = _FAR_INTERVAL_FOR_FEW if n <= _FEW else _FAR_INTERVAL
    stopped = False
    for bandwidth, exaggeration, weight, step, forming in _schedule(n, weights, settled):
        if P is not (P := affinities.forming if forming else affinities.settled):
            stiffness = xp.clip(_row_totals(P, n), 1, None)
        if kernel.bandwidth != bandwidth:
            kernel = Kernel(bandwidth, workers, Y)
        if len(history) % interval == 0:
            far, far_curvature = far_terms.force(Y, softening_of(n))
        pull = attraction(P, Y, bandwidth, workers)
        push, pairs = repulsion(kernel.field(Y), Y, workers)
        factors = (
            weight * exaggeration,
            weight * 2 * n / pairs,
            4 * weight * exaggeration / bandwidth**2,
        )
        forces = Forces(pull, push, far, stiffness, far_curvature, factors)
        before = Y
        Y, velocity = _moved(Y, velocity, forces, step, LONGEST_STEP * bandwidth, workers)
        if fixed is not None:
            Y[fixed], velocity[fixed] = before[fixed], 0
        history.append(far_terms.angles.loss)
        if report(len(history), history[-1], Y):
            stopped = True
            break
    return DescentResult(Y, kernel, history, stopped)


def settled_loss(P: Any, Y: np.ndarray, workers: Workers) -> float:
    """`neighbor_loss` at the final bandwidth, with the approximate sums of the descent."""
    bandwidth = final_bandwidth(len(Y))
    Y = normalize(Y @ equator_rotation(Y).T).astype(np.float32)
    _, pairs = repulsion(Kernel(bandwidth, workers).field(Y), Y, workers)
    total = 0.0
    for block in blocks(len(Y), ROWS_PER_BLOCK):
        ends = P.indptr[block.start : block.stop + 1]
        edges = slice(ends[0], ends[-1])
        difference = np.repeat(Y[block], np.diff(ends), axis=0) - Y[P.indices[edges]]
        logs = np.log1p(row_dot(difference, difference) / bandwidth**2)
        total += float(P.data[edges] @ logs)
    return float(np.log(pairs) + total / P.sum())


def _along_equator(Y: Array) -> Array:
    """Rotate the map so that most points lie near the equator: grids are finer at the poles."""
    if on_host(Y):
        return normalize(Y @ equator_rotation(Y).T)
    xp = namespace(Y)
    sample = to_numpy(Y[:: max(1, len(Y) // _N_ROTATION), :])
    return normalize(Y @ xp.asarray(equator_rotation(sample).T, dtype=Y.dtype, **same_device(Y)))


def _row_totals(P: Any, n: int) -> Array:
    """Sum of each row of affinities (n x 1), in single precision."""
    if isinstance(P, Graph):
        return row_sums(P.data, P.indptr)[:, None]
    return np.asarray(P.sum(axis=1)).reshape(n, 1).astype(np.float32)


class Forces(NamedTuple):
    """n times the gradients of the terms at all points, and their approximate curvatures."""

    pull: Array  # (n, 3), from `attraction`
    push: Array  # (n, 3), from `repulsion`
    far: Array  # (n, 3), from `FarTerms`
    stiffness: Array  # (n, 1), curvature of the attraction, without its factor
    far_curvature: Array  # (n, 1), curvature of the far terms
    factors: tuple[float, Any, float]  # factors of pull, push and stiffness

    def at(self, rows: slice) -> tuple[Array, Array]:
        """Sum of the forces (b x 3), and its curvature (b x 1)."""
        of_pull, of_push, of_stiffness = self.factors
        force = of_pull * self.pull[rows] + of_push * self.push[rows] + self.far[rows]
        return force, of_stiffness * self.stiffness[rows] + self.far_curvature[rows]


def _moved(
    Y: Array, velocity: Array, forces: Forces, factor: float, longest: float, workers: Workers
) -> tuple[Array, Array]:
    """Points and velocities (n x 3) after a step with momentum, along -gradient / curvature."""
    xp, settings = namespace(Y), (_MOMENTUM, factor, longest)
    if on_host(Y) and kernels.available():
        *arrays, factors = forces
        return kernels.move(Y, velocity, arrays, factors, *settings, workers.n_jobs)
    if device_kernels.supports(Y, velocity):
        return device_kernels.move(Y, velocity, *forces.at(slice(0, len(Y))), *settings)

    def part(b: slice) -> tuple[Array, Array]:
        force, curvature = forces.at(b)
        step = _MOMENTUM * tangent(velocity[b], Y[b]) - factor * tangent(force, Y[b]) / curvature
        step = xp.astype(step, xp.float32)
        return normalize(Y[b] + limited(step, longest)), step

    parts = workers.shares(len(Y)) if on_host(Y) else row_blocks(Y, len(Y), 32)
    positions, velocities = zip(*workers.map(part, parts), strict=True)
    return xp.concat(positions), xp.concat(velocities)


def limited(step: Array, longest: float) -> Array:
    """Steps (n x 3), shortened to the length `longest` if longer."""
    xp = namespace(step)
    length = xp.sqrt(row_dot(step, step))[:, None]
    return step * (longest / xp.clip(length, longest, None))
