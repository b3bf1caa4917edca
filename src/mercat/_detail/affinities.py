r"""Affinities: the weight of each edge of the neighbour graph.

The edges of each point get shares that sum to 1: one half equal, one half decaying with the distance d,

.. math:: g_{ij} = \frac{1}{2k} + \frac{1}{2} \, \frac{w_{ij}}{\sum_j w_{ij}}, \qquad
          w_{ij} = \exp(-5 \, d_{ij}^2 / \langle d_i^2 \rangle)

where :math:`\langle d_i^2 \rangle` is the mean over the k neighbours of the point. The equal half keeps the
neighbourhood together, the other half keeps the order within it. Where the data have many dimensions, all
neighbours are about equally far and share about equally; along a thin structure, such as a loop, the nearest
ones get most, so that it stays in one piece. The affinities are

.. math:: p_{ij} = p_{ji} \propto \frac{g_{ij}}{r_i^2} + \frac{g_{ji}}{r_j^2}

where r is the mean distance of a point to its neighbours, weighted by the shares. Points in dense regions of
the data have larger affinities, so dense regions stay dense on the map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import Array, namespace, on_host, row_blocks, row_dot, widest
from .._data.threads import Workers
from .graphs import Graph, Rows, row_sums, with_its_transpose

DECAY = 5.0  # of the shares, per squared distance in units of its mean over the neighbours
_AVERAGED = 2  # number of averaging rounds
_SMALLEST_RADIUS = 0.1  # in units of the mean radius: distances between duplicates are 0


def averages_over(X: Array, graph: Any, workers: Workers) -> Array:
    """Replace each point by the mean of itself and its neighbours (CSR graph), `_AVERAGED` times."""
    xp = namespace(X)

    def part(rows: slice) -> Array:
        ends = graph.indptr[rows.start : rows.stop + 1]
        some = slice(int(ends[0]), int(ends[-1]))
        count = 1 + (ends[1:] - ends[:-1])[:, None]
        if not on_host(X):
            sums = row_sums(X[graph.indices[some]], ends - ends[0])
            return (X[rows] + sums) / xp.astype(count, X.dtype)
        ones = np.ones(ends[-1] - ends[0], dtype=X.dtype)
        shape = (rows.stop - rows.start, len(X))
        edges = scipy.sparse.csr_array((ones, graph.indices[some], ends - ends[0]), shape=shape)
        return np.asarray((X[rows] + edges @ X) / count.astype(X.dtype))

    numbers = 3 * (graph.nnz // len(X) + 1) * X.shape[1]
    for _ in range(_AVERAGED):
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


def edge_shares(lengths: Array, ends: Array, decay: float) -> Array:
    """Share of each edge in its row, from the edge lengths; the shares of each row sum to 1.

    Row i has the edges ends[i] to ends[i + 1]. A decay of 0 means equal shares.
    """
    xp, rows = namespace(lengths), Rows(ends)
    degree = rows.degree
    if not on_host(lengths):
        degree = xp.astype(degree, widest(lengths))
    squares = xp.astype(lengths, widest(lengths)) ** 2
    mean = rows.sums(squares) / degree
    squares /= rows.spread(xp.where(mean > 0, mean, xp.ones_like(mean)))
    weights = xp.exp(-decay * squares)
    return 0.5 * (rows.spread(1 / degree) + weights / rows.spread(rows.sums(weights)))


def all_edge_shares(lengths: Array, ends: Array, decay: float, workers: Workers) -> Array:
    """`edge_shares` in blocks of rows."""
    xp = namespace(lengths)

    def part(rows: slice) -> Array:
        some = ends[rows.start : rows.stop + 1]
        return edge_shares(lengths[some[0] : some[-1]], some - some[0], decay)

    numbers = 16 * (len(lengths) // (len(ends) - 1) + 1)
    return xp.concat(list(workers.map(part, row_blocks(ends[1:], 4096, numbers))))


def radii(lengths: Array, shares: Array, ends: Array) -> Array:
    """Mean distance of each point to its neighbours (n), weighted by the shares."""
    return row_sums(shares * lengths, ends)


class Strength(NamedTuple):
    """Weight of a point in the affinities: the inverse square of its radius."""

    unit: float  # mean radius
    factor: float  # normalizes the sum over all points to n / 2

    def __call__(self, radius: Array) -> Array:
        xp = namespace(radius)
        return self.factor / xp.clip(radius / self.unit, _SMALLEST_RADIUS, None) ** 2


def strength_of(radius: Array) -> Strength:
    """Strength for points with these radii, normalized so that the affinities sum to n."""
    raw = Strength(float(radius.mean()) or 1.0, 1.0)
    return raw._replace(factor=len(radius) / (2 * float(raw(radius).sum())))


def affinities(graph: Any, shares: Array, strength: Array) -> Any:
    """Symmetric edge weights of a graph: strength of each point times the share of the edge."""
    xp = namespace(shares)
    weight = xp.astype(Rows(graph.indptr).spread(strength) * shares, xp.float32)
    if not on_host(shares):
        return with_its_transpose(Graph(graph.indices, graph.indptr, weight))
    one_way = scipy.sparse.csr_array((weight, graph.indices, graph.indptr), shape=graph.shape)
    both = scipy.sparse.csr_array(one_way + one_way.T)
    both.sort_indices()
    return both
