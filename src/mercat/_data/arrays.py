"""Where arrays live and how blocks of work are spread.

Numeric code asks `namespace` for the library of its arrays. `Workers` runs a function over
blocks on threads, hands the results back in the order of the blocks, and holds BLAS to one
thread meanwhile: block sizes never depend on the number of threads, so neither do the bits.
"""

from __future__ import annotations

import contextvars
import functools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

Array = Any  # an array of any library that follows the array API standard
TILE = 512  # rows that are projected and placed in one set of matrix products
T = TypeVar("T")
R = TypeVar("R")


def namespace(array: Array) -> Any:
    """The array API namespace of an array, NumPy's own at no cost."""
    if isinstance(array, np.ndarray):
        return np
    if type(array).__module__ == "torch":
        import array_api_compat.torch

        return array_api_compat.torch
    import array_api_compat

    return array_api_compat.array_namespace(array)


def on_host(array: Any) -> bool:
    """Whether an array is NumPy's, and not on a device."""
    return isinstance(array, (np.ndarray, np.generic))


def row_dot(a: Array, b: Array) -> Array:
    """Inner products of rows, over the last axis. (Torch's own takes a matrix product a row.)"""
    xp = namespace(a)
    return xp.vecdot(a, b) if on_host(a) else xp.sum(a * b, axis=-1)


def row_dots(*pairs: tuple[Array, Array]) -> Array:
    """The sum of `row_dot` of pairs of arrays, as one sum where a compiler fuses it."""
    if not is_compiling(pairs[0][0]):
        return sum(row_dot(a, b) for a, b in pairs)
    return namespace(pairs[0][0]).sum(sum(a * b for a, b in pairs), axis=-1)


def unstack(pair: Array) -> tuple[Array, Array]:
    """The two parts of an array whose first axis has length 2."""
    return pair[0, ...], pair[1, ...]


def inverse_sqrt(array: Array) -> Array:
    """1 / sqrt(array)."""
    xp = namespace(array)
    if hasattr(xp, "rsqrt"):
        return xp.rsqrt(array)
    root = xp.sqrt(array)
    return np.divide(1, root, out=root) if on_host(root) else 1 / root


def thin_product(A: Array, B: Array) -> Array:
    """A @ B.T over few columns, written out where a compiler fuses it with what follows."""
    if not is_compiling(A):
        return A @ namespace(B).matrix_transpose(B)
    return sum(A[..., :, k, None] * B[..., None, :, k] for k in range(A.shape[-1]))


def is_compiling(array: Array) -> bool:
    """Whether torch traces what is done to an array."""
    if type(array).__module__ != "torch":
        return False
    from torch.compiler import is_compiling

    return bool(is_compiling())


def like(array: Array) -> dict[str, Any]:
    """Keywords that make a new array of the same type in the same place."""
    return {"dtype": array.dtype, **beside(array)}


def beside(array: Array) -> dict[str, Any]:
    """Keywords that make a new array in the same place."""
    return {} if on_host(array) else {"device": array.device}


def widest(array: Array) -> Any:
    """Double precision, or single on a device that has no other."""
    xp = namespace(array)
    single = not on_host(array) and getattr(array.device, "type", "") == "mps"
    return xp.float32 if single else xp.float64


def to_numpy(array: Array) -> np.ndarray:
    """An array in memory, wherever it was."""
    return np.asarray(array) if on_host(array) else np.asarray(array.cpu())


def is_torch(array: Any) -> bool:
    """Whether something is a torch tensor, found without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


_fusing = contextvars.ContextVar("fusing", default=False)


@contextmanager
def fusing(wanted: bool) -> Iterator[None]:
    """Within, `fused` functions are compiled, if wanted."""
    token = _fusing.set(wanted)
    try:
        yield
    finally:
        _fusing.reset(token)


def fused(function: Callable[..., T]) -> Callable[..., T]:
    """A function of records of arrays (or of arrays), compiled by torch for a device where that pays.

    The first axis of each array may have any length, and so may the axes that a record names in `points`.
    """
    compiled: list[Callable[..., T]] = []

    @functools.wraps(function)
    def call(*arguments: Any) -> T:
        if not _fusing.get():
            return function(*arguments)
        import torch

        if not compiled:
            compiled.append(torch.compile(function, dynamic=False))
        for argument in arguments:
            axes: Any = getattr(argument, "points", tuple)()
            for array, axis in [(argument, 0)] if is_torch(argument) else axes:
                torch._dynamo.maybe_mark_dynamic(array, axis)
        return compiled[0](*arguments)

    return call


def is_dask(array: Any) -> bool:
    """Whether something is a Dask collection, found without importing Dask."""
    return hasattr(array, "__dask_graph__")


def blocks(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most `size` that cover range(n)."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def filled_up(array: Array) -> Array:
    """An array with its last row repeated, up to a whole number of tiles; on a device, as it is."""
    missing = -array.shape[0] % TILE if on_host(array) else 0
    if not missing:
        return array
    xp = namespace(array)
    return xp.concat([array, xp.repeat(array[-1:, ...], missing, axis=0)], axis=0)


def in_tiles(function: Callable[..., tuple[Array, ...]], *arrays: Array) -> tuple[Array, ...]:
    """Apply a function of rows to tiles of exactly TILE rows; the last is filled up.

    Matrix products of one fixed shape give a row the same bits whatever rows come with it. On a device,
    which is idle under small tiles, all rows are one tile.
    """
    xp = namespace(arrays[0])
    n = arrays[0].shape[0]
    results = []
    size = TILE if on_host(arrays[0]) else max(n, 1)
    for tile in blocks(n, size):
        results.append(function(*(filled_up(a[tile, ...]) for a in arrays)))
    return tuple(xp.concat(parts, axis=0)[:n, ...] for parts in zip(*results, strict=True))


class _SingleThreadedBlas:
    """Holds BLAS to one thread while at least one fit is inside, in any thread.

    The limit is global to the process: were each fit to save and restore it on its own, one fit that ends
    would give its threads back to another that still runs. And threadpoolctl lets only the thread that set
    a limit lift it. So one thread of its own sets the limit, waits, and lifts it after the last fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._holder: threading.Thread | None = None
        self._leave = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                if self._holder is not None and self._holder.is_alive():  # left behind by Ctrl-C
                    self._leave.set()
                    self._holder.join()
                held, self._leave = threading.Event(), threading.Event()
                arguments = (held, self._leave)
                self._holder = threading.Thread(target=_hold_blas, args=arguments, daemon=True)
                try:
                    self._holder.start()
                    held.wait()
                except BaseException:  # Ctrl-C: nobody will come to lift the limit
                    self._leave.set()
                    raise
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._holder is not None:
                self._leave.set()
                self._holder.join()


def _hold_blas(held: threading.Event, leave: threading.Event) -> None:
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(limits=1, user_api="blas"):
            held.set()
            leave.wait()
    finally:
        held.set()


_single_threaded_blas = _SingleThreadedBlas()


def _forget_fits_of_parent() -> None:
    """A process forked off amid a fit has neither its threads nor whoever would free its lock."""
    _single_threaded_blas.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_fits_of_parent)


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: as joblib has it, but for workers.

    Workers of joblib, of a Dask cluster and of a pool of processes share the cores already: there "all
    cores" means one thread for each, and a number means that number, as threads may be started anywhere.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if n_jobs is not None and _in_worker():
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def _in_worker() -> bool:
    from joblib.parallel import get_active_backend

    if multiprocessing.current_process().daemon or get_active_backend()[0].nesting_level:
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


class Workers:
    """A context in which `map` spreads blocks over `n_jobs` threads.

    Parameters
    ----------
    n_jobs : int
        Number of threads, at least 1. It changes the speed, never the result.
    pulse : callable, optional
        Called whenever a block is done.
    """

    def __init__(self, n_jobs: int = 1, pulse: Callable[[], None] = lambda: None) -> None:
        self.n_jobs = n_jobs
        self._pulse = pulse
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        _single_threaded_blas.__enter__()
        try:
            if self.n_jobs > 1:
                self._pool = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="mercat")
        except BaseException:
            _single_threaded_blas.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if self._pool is not None:
                self._pool.shutdown(wait=True, cancel_futures=True)
                self._pool = None
        finally:  # also when Ctrl-C comes a second time
            _single_threaded_blas.__exit__()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield function(item) for each item, in order, with few results waiting at a time."""
        for result in self._results(function, items):
            self._pulse()
            yield result

    def _results(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        if self._pool is None:
            yield from map(function, items)
            return
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(self._pool.submit(function, item))
            if len(waiting) > 2 * self.n_jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
