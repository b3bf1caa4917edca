"""Dask arrays as input, lazy Dask arrays of unit vectors as output, for large data and clusters.

Fitting reads the data twice: once for the principal components, by sums over blocks of rows, and once for
a random sample of rows, which is solved in the calling process. Placement is a lazy graph with one task per
chunk, which runs on threads, processes or a cluster.

The blocks and the order of sums do not depend on the chunks, and the position of a row does not depend on
other rows. So the result is the same for any chunks, and equals the result for the same data in memory.

Examples
--------
>>> import dask.array as da
>>> import numpy as np
>>> from mercat import Mercat
>>> X = np.random.default_rng(0).normal(size=(3000, 5))
>>> Y = Mercat(n_landmarks=200, random_state=0).fit_transform(da.from_array(X, chunks=(700, 5)))
>>> Y
dask.array<..., shape=(3000, 3), dtype=float64, chunksize=(700, 3), ...>
>>> bool(np.allclose(Y, Mercat(n_landmarks=200, random_state=0).fit_transform(X)))
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from .._progress import Progress
from .arrays import blocks
from .checks import check_finite
from .source import FAN_IN, RowSource, merged, rows_to_sum
from .sparse import checked_csr
from .threads import Workers

# Rows of a chunk that are placed at a time. Each needs a few kB; with detail, rows that are placed together
# share the points read from memory to find their neighbours.
_ROWS_AT_ONCE = 1 << 14
T = TypeVar("T")


def check_chunks(X: Any) -> Any:
    """Check that the rows of a Dask array can be read independently; return it."""
    import dask.array as da

    if not isinstance(X, da.Array):
        raise TypeError(
            "X must be a dask.array, got a "
            f"{type(X).__module__}.{type(X).__qualname__}: for a data frame, pass "
            "X.to_dask_array(lengths=True)."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    if np.isnan(sum(X.chunks[0])) or np.isnan(sum(X.chunks[1])):
        raise ValueError(
            "X must have chunks of known size, got unknown ones: call X.compute_chunk_sizes() first."
        )
    if len(X.chunks[1]) > 1:
        raise ValueError(
            f"X must have all features in one chunk, got {len(X.chunks[1])} chunks of columns: "
            "pass X.rechunk({1: -1})."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got the type {X.dtype}.")
    return X


class DaskSource(RowSource):
    """Rows of a Dask array."""

    lazy = True

    def __init__(self, X: Any, workers: Workers) -> None:
        super().__init__(X, workers)
        self.sparse = scipy.sparse.issparse(X._meta)

    def check_values(self, names: Any = None) -> None:
        """Do nothing: each chunk is checked when it is read."""

    def take(self, indices: np.ndarray) -> Any:
        """Rows with these indices, in this order, in memory."""
        order = np.argsort(indices)
        found = _checked(_compute(self.X[indices[order]]), indices[order], self.shape[1])
        return found[np.argsort(order)]

    def take_all(self) -> Any:
        """All rows, in memory."""
        return _checked(_compute(self.X), range(self.shape[0]), self.shape[1])

    def part(self, indices: np.ndarray | None) -> RowSource:
        """Source of some rows, or of all rows for None, in memory."""
        return RowSource(self.take_all() if indices is None else self.take(indices), self.workers)

    def reduce(self, function: Callable[[Any], T], merge: Callable[[T, T], T]) -> T:
        """Merge the results of a function over all blocks, in the order of `RowSource.reduce`."""
        from dask.delayed import delayed

        size = rows_to_sum(self.shape[1], self.sparse)
        parts = self.X.rechunk({0: FAN_IN * size}).to_delayed().ravel()
        part_sum, merge_group = delayed(_part_sum, pure=True), delayed(_merge_group, pure=True)
        rows = [range(self.shape[0])[block] for block in blocks(self.shape[0], FAN_IN * size)]
        sums = [
            part_sum(part, some.start, (len(some), self.shape[1]), size, function, merge)
            for part, some in zip(parts, rows, strict=True)
        ]
        while len(sums) > 1:
            groups = [sums[group] for group in blocks(len(sums), FAN_IN)]
            sums = [merge_group(group, merge) for group in groups]
        result: T = _compute(sums[0])
        return result

    def results(
        self,
        function: Callable[[Any, int], Any],
        shape: tuple[int, ...],
        dtype: str,
        progress: Progress,
    ) -> Any:
        """Lazy array of function(rows, index of the first row); `shape` is the shape of a row's result."""
        del progress  # Dask shows its own
        from dask.delayed import delayed

        # One object shared by all tasks, instead of a copy in each.
        shared = delayed(function, pure=True, traverse=False)
        return self.X.map_blocks(
            _apply,
            function=shared,
            row_shape=shape,
            row_type=np.dtype(dtype),
            dtype=dtype,
            chunks=(self.X.chunks[0], *((size,) for size in shape)),
            drop_axis=None if shape else 1,
            meta=np.empty((0, *shape), dtype=dtype),
        )

    def like_input(self, results: Any) -> Any:
        """Results as a Dask array with the chunks of X."""
        import dask.array as da

        return da.from_array(results, chunks=(self.X.chunks[0], *results.shape[1:]))


def _part_sum(
    part: Any,
    start: int,
    shape: tuple[int, int],
    size: int,
    function: Callable[[Any], T],
    merge: Callable[[T, T], T],
) -> T:
    part = _checked(part, range(start, start + shape[0]), shape[1])
    steps = blocks(shape[0], size)
    with Workers(1):
        return merged((function(part[step]) for step in steps), len(steps), merge)


def _merge_group(group: list[T], merge: Callable[[T, T], T]) -> T:
    return merged(group, len(group), merge)


def _apply(
    rows: Any,
    *,
    function: Callable[[Any, int], Any],
    row_shape: tuple[int, ...],
    row_type: Any,
    block_info: Any = None,
) -> Any:
    (start, stop), (_, columns) = block_info[0]["array-location"]
    rows = _checked(rows, range(start, stop), columns)
    out = np.empty((rows.shape[0], *row_shape), dtype=row_type)
    with Workers(1):
        for step in blocks(rows.shape[0], _ROWS_AT_ONCE):
            out[step] = function(rows[step], start + step.start)
    return out


def _checked(part: Any, rows: Any, columns: int) -> Any:
    """Check rows in memory, whose indices are `rows`; convert sparse rows to CSR."""
    if np.shape(part) != (len(rows), columns):
        raise ValueError(
            f"X must have chunks of the shapes in X.chunks, got rows of shape {np.shape(part)} instead of "
            f"{(len(rows), columns)}."
        )
    if scipy.sparse.issparse(part):
        part = checked_csr(part, "X")
    check_finite(part, rows=rows)
    return part


def _compute(collection: Any) -> Any:
    """Compute with the current scheduler; raise RuntimeError if it does not respond.

    Errors of tasks, such as a missing file of a chunk, are raised unchanged.
    """
    try:
        return collection.compute()
    except Exception as error:
        if _from_scheduler(error):
            raise RuntimeError(
                "The Dask scheduler did not respond; nothing was fitted. Start a new Client, or close "
                f"the old one to compute on threads. ({type(error).__name__}: {error})"
            ) from error
        raise


def _from_scheduler(error: Exception) -> bool:
    """Whether an error is from the connection to a scheduler, not from a task."""
    kind = type(error)
    if kind.__module__.split(".")[0] == "distributed":
        return kind.__name__ != "KilledWorker"  # its message names the task
    if not isinstance(error, (OSError, TimeoutError)):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    module = "" if last is None else str(last.tb_frame.f_globals.get("__name__", ""))
    return module.split(".")[0] in ("distributed", "tornado", "asyncio")
