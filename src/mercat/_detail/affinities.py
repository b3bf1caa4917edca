r"""Affinities: the weight of each edge of the neighbour graph.

Each edge has a share; the shares of a point's edges sum to 1. One half is divided equally, and the other half
in proportion to weights that decay with the distance d,

.. math:: g_{ij} = \frac{1}{2k} + \frac{1}{2} \, \frac{w_{ij}}{\sum_j w_{ij}}, \qquad
          w_{ij} = \exp(-5 \, d_{ij}^2 / \langle d_i^2 \rangle)

where :math:`\langle d_i^2 \rangle` is the mean over the k neighbours of the point. The equal half keeps the
neighbourhood together, the other half keeps the order within it. If the data have many dimensions, all
neighbours are about equally far and get about equal shares; along a thin structure, such as a loop, the
nearest ones get most, so that it stays connected. The affinities are

.. math:: p_{ij} = p_{ji} \propto \frac{g_{ij}}{r_i^2} + \frac{g_{ji}}{r_j^2}

where r is the mean distance of a point to its neighbours, weighted by the shares. Points in dense regions of
the data have larger affinities, so dense regions stay dense on the map.

In the first half of the descent, while the shapes of classes and loops form, the shares are all

.. math:: g_{ij} \propto \exp(-5 \, s_{ij}^2 / \langle d_i^2 \rangle)

where s is the longest step on the best path from i to j through other neighbours of i (`longest_steps`).
Along a loop, or over a surface, all steps are short, however far apart the points are. To a neighbour on
another loop, one step is long. So loops and classes become connected even if some neighbours belong to other
loops or classes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .. import _kernels as kernels
from .._data.arrays import Array, namespace, on_host, row_blocks, row_dot, same_device, widest
from .._data.threads import Workers
from .._kernels import device as device_kernels
from .graphs import Graph, Rows, row_sums, with_its_transpose, with_transposes

# Rate at which shares decay, per squared distance relative to its mean over the neighbours.
DECAY = 5.0
_N_AVERAGINGS = 2  # number of averaging rounds
_MIN_RADIUS = 0.1  # relative to the mean radius; needed because distances between duplicates are 0


def averages_over(X: Array, graph: Any, workers: Workers) -> Array:
    """Replace each point by the mean of itself and its neighbours (CSR graph), `_N_AVERAGINGS` times."""
    xp = namespace(X)

    def part(rows: slice) -> Array:
        ends = graph.indptr[rows.start : rows.stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        count = 1 + (ends[1:] - ends[:-1])[:, None]
        if not on_host(X):
            sums = row_sums(X[graph.indices[entries]], ends - ends[0])
            return (X[rows] + sums) / xp.astype(count, X.dtype)
        ones = np.ones(ends[-1] - ends[0], dtype=X.dtype)
        shape = (rows.stop - rows.start, len(X))
        edges = scipy.sparse.csr_array((ones, graph.indices[entries], ends - ends[0]), shape=shape)
        return np.asarray((X[rows] + edges @ X) / count.astype(X.dtype))

    numbers = 3 * (graph.nnz // len(X) + 1) * X.shape[1]
    for _ in range(_N_AVERAGINGS):
        X = xp.concat(list(workers.map(part, row_blocks(X, 4096, numbers))))
    return X


def edge_lengths(X: Array, graph: Any, workers: Workers) -> Array:
    """Distance in the data along each edge of a CSR graph."""
    xp = namespace(X)
    mean_degree = graph.nnz // len(X) + 1

    def part(block: slice) -> Array:
        ends = graph.indptr[block.start : block.stop + 1]
        difference = xp.repeat(X[block], ends[1:] - ends[:-1], axis=0)
        difference -= X[graph.indices[ends[0] : ends[-1]]]
        if on_host(X):
            return np.sqrt(np.einsum("er,er->e", difference, difference))
        return xp.sqrt(row_dot(difference, difference))

    parts = row_blocks(X, 1024, 3 * mean_degree * X.shape[1])
    return xp.concat(list(workers.map(part, parts)))


def longest_steps(X: Array, graph: Any, lengths: Array, workers: Workers) -> Array:
    """Longest step on the best path to the neighbour, for each edge of a CSR graph.

    Paths lead from the point through any of its neighbours; the best one has the shortest longest step (a
    minimax path). Rows of more than `MAX_EDGES` edges keep the lengths of their edges.
    """
    if on_host(X) and kernels.available():
        return kernels.longest_steps(X, graph, lengths, workers.n_jobs)
    xp, dtype = namespace(X), lengths.dtype
    degrees = graph.indptr[1:] - graph.indptr[:-1]
    width = int(xp.max(degrees))
    if device_kernels.supports(X, lengths) and device_kernels.edges_fit(width):
        return device_kernels.longest_steps(X, graph, lengths, width)
    width = min(width, kernels.MAX_EDGES)
    own, column = (xp.arange(size, **same_device(X)) for size in (len(X), width))

    def part(rows: slice) -> Array:
        ends, degree = graph.indptr[rows.start : rows.stop + 1], degrees[rows]
        short = (degree <= kernels.MAX_EDGES)[:, None]
        inside = (column < degree[:, None]) & short
        at = xp.where(inside, ends[:-1, None] + column, xp.zeros_like(ends[:-1, None]))
        # Rows are padded with the point itself, which does not improve any path.
        neighbors = xp.where(inside, graph.indices[at], own[rows][:, None])
        difference = X[neighbors] - X[rows][:, None, :]
        steps = row_dot(difference, difference)
        between = steps[:, :, None] + steps[:, None, :]
        between -= 2 * (difference @ xp.matrix_transpose(difference))
        while True:
            through = xp.min(xp.maximum(steps[:, :, None], between), axis=1)
            if not bool(xp.any(through < steps)):
                break
            steps = xp.minimum(steps, through)
        found = xp.asarray(lengths[int(ends[0]) : int(ends[-1])], copy=True)
        found[at[inside] - ends[0]] = xp.astype(xp.sqrt(steps[inside]), dtype)
        return found

    return xp.concat(list(workers.map(part, row_blocks(X, 256, 4 * width * (width + X.shape[1])))))


def edge_shares(lengths: Array, ends: Array, decay: float) -> Array:
    """Share of each edge in its row, from the edge lengths; the shares of each row sum to 1.

    Row i has the edges ends[i] to ends[i + 1]. A decay of 0 means equal shares.
    """
    rows = Rows(ends)
    equal = rows.spread(1 / _degrees(rows, lengths))
    return 0.5 * (equal + _decaying(lengths, lengths, rows, decay))


def path_shares(steps: Array, lengths: Array, ends: Array, decay: float) -> Array:
    """Share of each edge in its row, decaying with the longest step on the path to the neighbour."""
    return _decaying(steps, lengths, Rows(ends), decay)


def _decaying(steps: Array, lengths: Array, rows: Rows, decay: float) -> Array:
    """Shares in each row that decay with the squared steps, in units of the mean squared length."""
    xp = namespace(lengths)
    mean = rows.sums(xp.astype(lengths, widest(lengths)) ** 2) / _degrees(rows, lengths)
    squares = xp.astype(steps, widest(steps)) ** 2
    squares /= rows.spread(xp.where(mean > 0, mean, xp.ones_like(mean)))
    weights = xp.exp(-decay * squares)
    return weights / rows.spread(rows.sums(weights))


def _degrees(rows: Rows, values: Array) -> Array:
    """Number of entries of each row, as floating-point numbers on a device."""
    return rows.degree if on_host(values) else rows.xp.astype(rows.degree, widest(values))


def in_row_blocks(
    shares: Callable[..., Array], *values: Array, ends: Array, decay: float, workers: Workers
) -> Array:
    """`edge_shares` or `path_shares` in blocks of rows."""

    def part(rows: slice) -> Array:
        row_ends = ends[rows.start : rows.stop + 1]
        entries = slice(row_ends[0], row_ends[-1])
        return shares(*(v[entries] for v in values), row_ends - row_ends[0], decay)

    numbers = 16 * (len(values[0]) // (len(ends) - 1) + 1)
    parts = workers.map(part, row_blocks(ends[1:], 4096, numbers))
    return namespace(values[0]).concat(list(parts))


def radii(lengths: Array, shares: Array, ends: Array) -> Array:
    """Mean distance of each point to its neighbours (n), weighted by the shares."""
    return row_sums(shares * lengths, ends)


class Affinities(NamedTuple):
    """Affinities during a descent: symmetric sparse matrices that sum to n."""

    forming: Any  # affinities along paths of short steps
    settled: Any  # affinities of all neighbours


class Strength(NamedTuple):
    """Weight of a point in the affinities: the inverse square of its radius."""

    unit: float  # mean radius
    factor: float  # normalizes the sum over all points to n / 2

    def __call__(self, radius: Array) -> Array:
        xp = namespace(radius)
        return self.factor / xp.clip(radius / self.unit, _MIN_RADIUS, None) ** 2


def strength_of(radius: Array) -> Strength:
    """Strength for points with these radii, normalized so that the affinities sum to n."""
    raw = Strength(float(radius.mean()) or 1.0, 1.0)
    return raw._replace(factor=len(radius) / (2 * float(raw(radius).sum())))


def affinities(graph: Any, shares: Sequence[Array], strength: Array, workers: Workers) -> list[Any]:
    """Symmetric edge weights of a graph, for each of the shares: strength of each point times the share."""
    xp, strengths = namespace(strength), Rows(graph.indptr).spread(strength)
    weights = (xp.astype(strengths * share, xp.float32) for share in shares)
    if on_host(strength):
        return with_transposes(graph, [*weights], workers)
    return [with_its_transpose(Graph(graph.indices, graph.indptr, weight)) for weight in weights]


def affinities_of(X: Array, graph: Any, workers: Workers) -> tuple[Affinities, Strength]:
    """Affinities of points X (n x r) with a graph of neighbours, and their strengths."""
    lengths = edge_lengths(X, graph, workers)
    steps = longest_steps(X, graph, lengths, workers)
    by_rows = functools.partial(in_row_blocks, ends=graph.indptr, decay=DECAY, workers=workers)
    shares = by_rows(edge_shares, lengths)
    radius = radii(lengths, shares, graph.indptr)
    strength = strength_of(radius)
    along_paths = by_rows(path_shares, steps, lengths)
    del steps, lengths  # to free memory of a device
    forming, settled = affinities(graph, (along_paths, shares), strength(radius), workers)
    return Affinities(forming, settled), strength
