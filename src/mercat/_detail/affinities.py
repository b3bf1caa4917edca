r"""From neighbours to affinities: how strongly each edge of the graph of neighbours pulls.

A point shares its pull among its edges: one half equally, one half by a Gaussian of the distance whose
perplexity is 5. The equal half keeps the neighbourhood together, the other half the order within it, so
that thin structures such as loops stay in one piece. With :math:`g_{ij}` these shares,

.. math:: p_{ij} = p_{ji} \propto \frac{g_{ij}}{r_i^2} + \frac{g_{ji}}{r_j^2}

where r is the mean distance of a point to its neighbours, by the same shares: what is dense in the data pulls
more and stays dense on the map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import blocks
from .._data.threads import Workers

PERPLEXITY = 5.0
_AVERAGED = 2  # rounds of averages over neighbours
_LEAST, _MOST, _HALVINGS = -4.0, 16.0, 16  # the search for the logarithm of a precision
_SMALLEST_RADIUS = 0.1  # of the mean: among duplicates distances vanish


def averages_over(X: np.ndarray, graph: Any, workers: Workers) -> np.ndarray:
    """Each point's mean with its neighbours in a graph in CSR format, again and again."""

    def part(rows: slice) -> np.ndarray:
        ends = graph.indptr[rows.start : rows.stop + 1]
        some = slice(ends[0], ends[-1])
        ones = np.ones(ends[-1] - ends[0], dtype=X.dtype)
        shape = (rows.stop - rows.start, len(X))
        edges = scipy.sparse.csr_array((ones, graph.indices[some], ends - ends[0]), shape=shape)
        count = 1 + np.diff(ends)[:, None]
        return np.asarray((X[rows] + edges @ X) / count.astype(X.dtype))

    for _ in range(_AVERAGED):
        X = np.concatenate(list(workers.map(part, blocks(len(X), 4096))))
    return X


def edge_lengths(X: np.ndarray, graph: Any, workers: Workers) -> np.ndarray:
    """Distance in the data along each edge of a graph in CSR format."""

    def part(block: slice) -> np.ndarray:
        ends = graph.indptr[block.start : block.stop + 1]
        difference = np.repeat(X[block], np.diff(ends), axis=0)
        difference -= X[graph.indices[ends[0] : ends[-1]]]
        return np.asarray(np.sqrt(np.einsum("er,er->e", difference, difference)))

    return np.concatenate(list(workers.map(part, blocks(len(X), 1024))))


def edge_shares(lengths: np.ndarray, ends: np.ndarray, perplexity: float) -> np.ndarray:
    """The share of each edge in its row's pull, from the lengths of the edges; each row sums to 1.

    The edges of row i are those from ends[i] to ends[i + 1]. A perplexity of 0 means equal shares.
    """
    degree = np.diff(ends)
    equal = np.repeat(1 / degree, degree)
    if perplexity == 0:
        return equal

    def row_sums(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, ends[:-1]))

    def rowwise(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, degree)

    squares = lengths.astype(np.float64) ** 2
    mean = row_sums(squares) / degree
    squares /= rowwise(np.where(mean > 0, mean, 1))
    squares -= rowwise(np.minimum.reduceat(squares, ends[:-1]))
    # Few edges have no room for the perplexity: then half their number.
    entropy = np.log(np.minimum(perplexity, np.maximum(degree / 2, 1)))
    low, high = np.full(len(degree), _LEAST), np.full(len(degree), _MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        weights = np.exp(-rowwise(np.exp(middle)) * squares)
        total = row_sums(weights)
        found = np.log(total) + np.exp(middle) * row_sums(weights * squares) / total
        low, high = np.where(found > entropy, middle, low), np.where(found > entropy, high, middle)
    weights = np.exp(-rowwise(np.exp((low + high) / 2)) * squares)
    return np.asarray(0.5 * (equal + weights / rowwise(row_sums(weights))))


def all_edge_shares(
    lengths: np.ndarray, ends: np.ndarray, perplexity: float, workers: Workers
) -> np.ndarray:
    """`edge_shares` in blocks of rows."""

    def part(rows: slice) -> np.ndarray:
        some = ends[rows.start : rows.stop + 1]
        return edge_shares(lengths[some[0] : some[-1]], some - some[0], perplexity)

    return np.concatenate(list(workers.map(part, blocks(len(ends) - 1, 4096))))


def radii(lengths: np.ndarray, shares: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Mean distance of each point to its neighbours (n), by their shares."""
    return np.asarray(np.add.reduceat(shares * lengths, ends[:-1]))


class Strength(NamedTuple):
    """How strongly a point pulls at its neighbours: by the inverse square of its radius."""

    unit: float  # the mean radius
    factor: float  # that makes the sum over all points n / 2

    def __call__(self, radius: np.ndarray) -> np.ndarray:
        return self.factor / np.maximum(radius / self.unit, _SMALLEST_RADIUS) ** 2


def strength_of(radius: np.ndarray) -> Strength:
    """Such that the affinities of points of these radii have the sum n."""
    raw = Strength(float(radius.mean()) or 1.0, 1.0)
    return raw._replace(factor=len(radius) / (2 * float(raw(radius).sum())))


def affinities(graph: Any, shares: np.ndarray, strength: np.ndarray) -> scipy.sparse.csr_array:
    """Symmetric weights of the edges of a graph: each point's strength, by the shares of its edges."""
    weight = (np.repeat(strength, np.diff(graph.indptr)) * shares).astype(np.float32)
    one_way = scipy.sparse.csr_array((weight, graph.indices, graph.indptr), shape=graph.shape)
    both = scipy.sparse.csr_array(one_way + one_way.T)
    both.sort_indices()
    return both
