"""Where the rows of a data set lie, and how they are read: in blocks, summed in one fixed order.

Blocks and the order of sums depend on the shape of the data alone. So neither threads nor the chunks of
a Dask array (`_data/dask_source.py`) change a bit of a sum; and memory is bounded by blocks, so that a
`numpy.memmap` stays on disk.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from .._progress import Progress
from .arrays import TILE, blocks
from .checks import check_finite
from .threads import Workers

VALUES_A_BLOCK = 1 << 21
ROWS_A_BLOCK = 4096  # rows that a thread places at a time ...
VALUES_TO_PLACE = 1 << 24  # ... and about the most values of them
FAN_IN = 8  # results that are merged into one, and these again
T = TypeVar("T")


def rows_to_sum(d: int, sparse: bool) -> int:
    """Rows of a block that is summed up: so many values, or rows where most values are zero."""
    return ROWS_A_BLOCK if sparse else max(64, VALUES_A_BLOCK // max(d, 1))


def rows_to_place(d: int) -> int:
    """Rows that a thread places at a time: whole tiles, fewer of wide data, so that none takes long."""
    return min(ROWS_A_BLOCK, max(1, VALUES_TO_PLACE // (TILE * max(d, 1))) * TILE)


def merged(parts: Iterable[T], count: int, merge: Callable[[T, T], T]) -> T:
    """Merge `count` results, FAN_IN neighbours at a time, over and over, holding few of them at once."""
    iterator = iter(parts)
    while count > 1:
        iterator = _merge_groups(iterator, merge)
        count = -(-count // FAN_IN)
    return next(iterator)


def _merge_groups(parts: Iterator[T], merge: Callable[[T, T], T]) -> Iterator[T]:
    while group := tuple(itertools.islice(parts, 1)):
        yield functools.reduce(merge, itertools.chain(group, itertools.islice(parts, FAN_IN - 1)))


def blocks_from(start: int, n: int, size: int) -> list[slice]:
    """Slices that cover range(n) and end where start + i is a multiple of `size`."""
    first = min(-start % size, n)
    rest = [slice(b.start + first, b.stop + first) for b in blocks(n - first, size)]
    return [slice(0, first), *rest] if first else rest


class RowSource:
    """Rows of an array or a sparse matrix, in memory or mapped from disk, read on threads.

    `block` rows are placed at a time, `tile` of them judged by the same landmarks.
    """

    tile = TILE
    device: Any = None  # the torch device that computes, if one does
    lazy = False  # whether what is done to each row waits until its result is asked for

    def __init__(self, X: Any, workers: Workers) -> None:
        self.X, self.workers = X, workers
        self.shape: tuple[int, int] = X.shape
        self.block = rows_to_place(X.shape[1])
        self.dtype = X.dtype
        self.sparse: bool = scipy.sparse.issparse(X)

    @property
    def exact_in_single(self) -> bool:
        """Whether single precision holds each number of the data."""
        return bool(np.can_cast(self.dtype, np.float32))

    def check_values(self, names: Any = None) -> None:
        """Raise ValueError for NaN and infinity; `names` are those of the columns."""
        check_finite(self.X, names=names)

    def to_device(self, record: Any) -> Any:
        """An array, or a named tuple of them, to where the rows are computed with."""
        return record

    def scratch(self, shape: tuple[int, ...]) -> Any:
        """Room for positions, where the rows are computed with."""
        return np.empty(shape, dtype=np.float32)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Room for results, where their user expects them."""
        return np.empty(shape, dtype=dtype)

    def store(self, values: Any, out: Any, block: slice) -> None:
        """Put results of a block into their room."""
        out[block] = values

    def take(self, indices: np.ndarray) -> Any:
        """Some rows, in the order of their indices."""
        return self.X[indices]

    def take_all(self) -> Any:
        """All rows."""
        return self.X

    def reduce(self, function: Callable[[Any], T], merge: Callable[[T, T], T]) -> T:
        """The results of a function over all blocks, merged."""
        parts = blocks(self.shape[0], rows_to_sum(self.shape[1], self.sparse))
        results = self.workers.map(lambda part: function(self.X[part]), parts)
        return merged(results, len(parts), merge)

    def each(self, function: Callable[[Any, int], T]) -> Iterator[T]:
        """function(rows, number of the first) of each block, in order."""
        parts = blocks(self.shape[0], self.block)
        return self.workers.map(lambda part: function(self.X[part], part.start), parts)

    def results(
        self,
        function: Callable[[Any, int], Any],
        shape: tuple[int, ...],
        dtype: str,
        progress: Progress,
    ) -> Any:
        """function(rows, number of the first) of all rows, with results of `shape` a row."""
        progress.phase("placing", self.shape[0], "point")
        out, start = self.empty((self.shape[0], *shape), dtype), 0
        for part in self.each(function):
            self.store(part, out, slice(start, start := start + len(part)))
            progress.advance(len(part))
        return out

    def like_input(self, results: Any) -> Any:
        """Results in memory as the kind of array that the user has given."""
        return results
