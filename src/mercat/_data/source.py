"""Rows of a data set, read in blocks and summed in a fixed order.

Blocks and the order of sums depend only on the shape of the data. So sums are the same to the bit for any
number of threads and any chunks of a Dask array (`_data/dask_source.py`). Memory is bounded by the blocks:
a `numpy.memmap` stays on disk.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from .._progress import Progress
from .arrays import TILE, blocks
from .checks import check_finite
from .threads import Workers

VALUES_PER_BLOCK = 1 << 21  # rows x columns of a block of dense data that is summed
ROWS_PER_BLOCK = 4096  # rows of a block of sparse data; the most that a thread places at a time
VALUES_TO_PLACE = 1 << 24  # about the maximum number of values that a thread places at a time
BLOCKS_TO_PLACE = 32  # minimum if blocks have more than one tile, so that all threads have work
FAN_IN = 8  # results merged into one at each node of a tree
T = TypeVar("T")


def rows_to_sum(d: int, sparse: bool) -> int:
    """Number of rows per block for sums: limited by the number of values, or fixed for sparse data."""
    return ROWS_PER_BLOCK if sparse else max(64, VALUES_PER_BLOCK // max(d, 1))


def rows_to_place(n: int, d: int) -> int:
    """Number of rows that a thread places at a time: whole tiles, fewer for few rows or wide data."""
    tiles = min(n // (TILE * BLOCKS_TO_PLACE), VALUES_TO_PLACE // (TILE * max(d, 1)))
    return min(ROWS_PER_BLOCK, max(1, tiles) * TILE)


def merged(parts: Iterable[T], count: int, merge: Callable[[T, T], T]) -> T:
    """Merge `count` results in a tree, FAN_IN at a time, keeping few of them in memory."""
    iterator = iter(parts)
    while count > 1:
        iterator = _merge_groups(iterator, merge)
        count = -(-count // FAN_IN)
    return next(iterator)


def _merge_groups(parts: Iterator[T], merge: Callable[[T, T], T]) -> Iterator[T]:
    while first := tuple(itertools.islice(parts, 1)):
        yield functools.reduce(merge, itertools.chain(first, itertools.islice(parts, FAN_IN - 1)))


def blocks_from(start: int, n: int, size: int) -> list[slice]:
    """Slices covering range(n).

    All but the last end at an index b for which start + b is a multiple of `size`.
    """
    first = min(-start % size, n)
    rest = [slice(b.start + first, b.stop + first) for b in blocks(n - first, size)]
    return [slice(0, first), *rest] if first else rest


class RowSource:
    """Rows of an array or a sparse matrix, in memory or memory-mapped, processed on threads.

    `block` is the number of rows placed at a time, `tile` the number evaluated against the same landmarks.
    """

    tile = TILE
    device: Any = None  # torch device to compute on, if any
    lazy = False  # whether results are computed only on request
    on_disk = False  # whether rows are read from a file and need not fit in memory
    sample: Any = None  # sample of the rows, see `_data/sampling.py`

    def __init__(self, X: Any, workers: Workers) -> None:
        self.X, self.workers = X, workers
        self.shape: tuple[int, int] = X.shape
        self.block = rows_to_place(*X.shape)
        self.dtype = X.dtype
        self.sparse: bool = scipy.sparse.issparse(X)

    @property
    def exact_in_single(self) -> bool:
        """Whether float32 represents every value exactly."""
        return bool(np.can_cast(self.dtype, np.float32))

    def check_values(self, names: Any = None) -> None:
        """Raise ValueError for NaN and infinity; `names` are the column names."""
        check_finite(self.X, names=names)

    def memory_advice(self) -> AbstractContextManager[None]:
        """Context for computations on all rows at once; on a device, out-of-memory errors give advice."""
        return nullcontext()

    def to_device(self, record: Any) -> Any:
        """Move an array, or a named tuple of arrays, to the computing device."""
        return record

    def to_memory(self, record: Any) -> Any:
        """Move the arrays of a named tuple to host memory."""
        return record

    def scratch(self, shape: tuple[int, ...]) -> Any:
        """Uninitialised array for positions, on the computing device."""
        return np.empty(shape, dtype=np.float32)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Uninitialised array for results, of the kind and on the device of X."""
        return np.empty(shape, dtype=dtype)

    def store(self, values: Any, out: Any, block: slice) -> None:
        """Write the results of a block into `out`."""
        out[block] = values

    def take(self, indices: np.ndarray) -> Any:
        """Rows with these indices, in this order."""
        return self.X[indices]

    def take_all(self) -> Any:
        """All rows."""
        return self.X

    def part(self, indices: np.ndarray | None) -> RowSource:
        """Source of some rows, in memory; the source itself for None."""
        return self if indices is None else RowSource(self.take(indices), self.workers)

    def reduce(self, function: Callable[[Any], T], merge: Callable[[T, T], T]) -> T:
        """Merge the results of a function over all blocks."""
        parts = blocks(self.shape[0], rows_to_sum(self.shape[1], self.sparse))
        results = self.workers.map(lambda part: function(self.X[part]), parts)
        return merged(results, len(parts), merge)

    def each(self, function: Callable[[Any, int], T]) -> Iterator[T]:
        """Yield function(rows, index of the first row) for each block, in order."""
        parts = blocks(self.shape[0], self.block)
        return self.workers.map(lambda part: function(self.X[part], part.start), parts)

    def results(
        self,
        function: Callable[[Any, int], Any],
        shape: tuple[int, ...],
        dtype: str,
        progress: Progress,
    ) -> Any:
        """Apply function(rows, index of the first row) to all rows; a row's result has the shape `shape`."""
        progress.phase("placing", self.shape[0], "point")
        out, start = self.empty((self.shape[0], *shape), dtype), 0
        for part in self.each(function):
            self.store(part, out, slice(start, start := start + len(part)))
            progress.advance(len(part))
        return out

    def like_input(self, results: Any) -> Any:
        """Results as the same kind of array as X."""
        return results
