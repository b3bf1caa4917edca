r"""From neighbours to affinities: how much each edge of the graph of neighbours pulls.

An edge weighs the same for all neighbours of a point, and in all

.. math:: p_{ij} = p_{ji} \propto \frac{1}{k r_i^2} + \frac{1}{k r_j^2}

with r the mean distance of a point to its k neighbours: what is crowded in the data pulls more and stays
crowded on the map.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import blocks
from .._data.threads import Workers

_SMALLEST_RADIUS = 0.1  # of the mean: among duplicates distances vanish


def radii(X: np.ndarray, graph: Any, workers: Workers) -> np.ndarray:
    """Mean distance of each point to its neighbours (n)."""

    def part(block: slice) -> np.ndarray:
        ends = graph.indptr[block.start : block.stop + 1]
        others = graph.indices[ends[0] : ends[-1]]
        degree = np.diff(ends)
        difference = np.repeat(X[block], degree, axis=0)
        difference -= X[others]
        distance = np.sqrt(np.einsum("er,er->e", difference, difference)).astype(np.float64)
        return np.asarray(np.add.reduceat(distance, ends[:-1] - ends[0]) / degree)

    return np.concatenate(list(workers.map(part, blocks(len(X), 1024))))


class Strength(NamedTuple):
    """How much a point pulls at its neighbours: by the inverse square of its radius."""

    unit: float  # the mean radius
    factor: float  # that makes the sum over all points n / 2

    def __call__(self, radius: np.ndarray) -> np.ndarray:
        return self.factor / np.maximum(radius / self.unit, _SMALLEST_RADIUS) ** 2


def strength_of(radius: np.ndarray) -> Strength:
    """Such that the affinities of points of these radii have the sum n."""
    raw = Strength(float(radius.mean()) or 1.0, 1.0)
    return raw._replace(factor=len(radius) / (2 * float(raw(radius).sum())))


def affinities(graph: Any, strength: np.ndarray) -> scipy.sparse.csr_array:
    """Symmetric weights of the edges of a graph: each point's strength, shared by its edges."""
    degree = np.diff(graph.indptr)
    weight = np.repeat((strength / degree).astype(np.float32), degree)
    one_way = scipy.sparse.csr_array((weight, graph.indices, graph.indptr), shape=graph.shape)
    both = scipy.sparse.csr_array(one_way + one_way.T)
    both.sort_indices()
    return both
