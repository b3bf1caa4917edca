"""Sparse CSR matrices: SciPy arrays in memory, tensors on a device; and sums over their rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import Array, blocks, namespace, on_host
from .._data.threads import Workers

_ROWS_PER_BLOCK = 4096


class Graph(NamedTuple):
    """A sparse CSR matrix (n x n) of tensors, possibly with duplicate entries, which add up."""

    indices: Array
    indptr: Array
    data: Array

    @property
    def nnz(self) -> int:
        return int(self.indices.shape[0])


def graph_of(indices: Array) -> Any:
    """Graph (n x n) with an edge from each point to each of its neighbours (n x k)."""
    n, k = indices.shape
    if on_host(indices):
        dtype = np.int32 if 2 * n * k < 2**31 else np.int64  # with room for the transpose
        ends = np.arange(0, n * k + 1, k, dtype=dtype)
        data = np.ones(n * k, np.float32)
        return scipy.sparse.csr_array((data, indices.ravel().astype(dtype), ends), shape=(n, n))
    import torch

    ends = torch.arange(0, n * k + 1, k, device=indices.device)
    return Graph(indices.reshape(-1), ends, indices.new_ones(1, dtype=torch.float32).expand(n * k))


def graph_like(graph: scipy.sparse.csr_array, array: Array) -> Any:
    """The graph on the device of an array; unchanged if the array is in memory."""
    if on_host(array):
        return graph
    import torch

    parts = graph.indices.astype(np.int64), graph.indptr.astype(np.int64), graph.data
    return Graph(*(torch.as_tensor(part, device=array.device) for part in parts))


class Rows:
    """Sums over the rows of a ragged array, and repetition of values per row.

    ends: offsets of the rows (n + 1), like `indptr` of CSR matrices.
    """

    def __init__(self, ends: Array) -> None:
        self.ends, self.xp = ends, namespace(ends)
        self.degree = ends[1:] - ends[:-1]
        self._width = 0  # length of all rows of a tensor, if equal
        if not on_host(ends) and bool((self.degree == self.degree[0]).all()):
            self._width = int(self.degree[0])

    def sums(self, values: Array) -> Array:
        """Sum of the values of each row."""
        if on_host(values):
            return np.add.reduceat(values, self.ends[:-1])
        if self._width:
            return values.reshape(-1, self._width, *values.shape[1:]).sum(1)
        import torch

        return torch.segment_reduce(values, "sum", offsets=self.ends, axis=0)

    def spread(self, values: Array) -> Array:
        """Repeat the value of each row for each of its entries."""
        return self.xp.repeat(values, self._width or self.degree, axis=0)


def row_sums(values: Array, ends: Array) -> Array:
    """Sums over the rows of a ragged array with these offsets."""
    return Rows(ends).sums(values)


def with_transposes(graph: Any, weights: Sequence[np.ndarray], workers: Workers) -> list[Any]:
    """Sum of a SciPy graph and its transpose, for each of several weights of its edges."""
    number = np.arange(graph.nnz, dtype=graph.indices.dtype)
    outgoing = scipy.sparse.csr_array((number, graph.indices, graph.indptr), shape=graph.shape)
    incoming = scipy.sparse.csr_array(outgoing.T)

    def weighted(edges: Any, weight: np.ndarray) -> Any:
        parts = weight[edges.data], edges.indices, edges.indptr
        return scipy.sparse.csr_array(parts, shape=edges.shape)

    def part(rows: slice) -> list[Any]:
        here, there = outgoing[rows], incoming[rows]
        here.sort_indices()
        return [weighted(here, weight) + weighted(there, weight) for weight in weights]

    parts = list(workers.map(part, blocks(graph.shape[0], _ROWS_PER_BLOCK)))
    stack = functools.partial(scipy.sparse.vstack, format="csr")
    return list(workers.map(stack, zip(*parts, strict=True)))


def with_its_transpose(graph: Graph) -> Graph:
    """Sum of a graph of tensors and its transpose; in each row, the entries of the graph come first."""
    import torch

    indices, ends, data = graph
    n, edges = len(ends) - 1, len(indices)
    device = indices.device
    order = indices.to(torch.int32).argsort(stable=True)
    rows = torch.arange(n, device=device, dtype=torch.int32)
    rows = torch.repeat_interleave(rows, ends[1:] - ends[:-1], output_size=edges)
    incoming = torch.zeros(n + 1, dtype=torch.int64, device=device)
    torch.cumsum(torch.bincount(indices, minlength=n), 0, out=incoming[1:])
    columns = torch.empty(2 * edges, dtype=torch.int32, device=device)
    weights = torch.empty(2 * edges, dtype=data.dtype, device=device)
    number = torch.arange(edges, device=device)
    at = number + incoming[rows]  # after the incoming entries of the rows before
    columns[at], weights[at] = indices.to(torch.int32), data
    at = number + ends[indices[order] + 1]  # after the own entries of this row and those before
    columns[at], weights[at] = rows[order], data[order]
    return Graph(columns, ends + incoming, weights)


def components_of(graph: Graph) -> Any:
    """Smallest index in the connected component of each point, for a symmetric graph of tensors.

    Each point, and the root of its tree, takes the smallest label among its neighbours. Labels are then
    replaced by the labels of the points they name until nothing changes (pointer jumping).
    """
    import torch

    n = len(graph.indptr) - 1
    label = torch.arange(n, device=graph.indptr.device)
    rows = torch.repeat_interleave(label, graph.indptr[1:] - graph.indptr[:-1])
    columns = graph.indices.long()
    while True:
        least = label.scatter_reduce(0, rows, label[columns], "amin")
        hooked = label.scatter_reduce(0, label, least, "amin")  # roots of the trees
        hooked = torch.minimum(hooked, least)
        while not torch.equal(shorter := hooked[hooked], hooked):
            hooked = shorter
        if torch.equal(hooked, label):
            return label
        label = hooked
