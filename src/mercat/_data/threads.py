"""Threads: `Workers` runs a function over blocks and returns the results in order.

Meanwhile, BLAS is limited to one thread. Block sizes depend on the number of threads only if the result of a
row does not depend on its block (`Workers.shares`), so results are bit-identical for any number of threads. C
kernels that take a number of threads use threads of their own (`_kernels/threads.c`).
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .arrays import blocks

T = TypeVar("T")
R = TypeVar("R")
_BLOCKS_PER_THREAD = 2
_MIN_ROWS, _MAX_ROWS = 1024, 1 << 14  # minimum and maximum per block


class _SingleThreadedBlas:
    """Context that limits BLAS to one thread while at least one fit is running in the process.

    The limit is global to the process: if each fit saved and restored it, the first to end would lift it
    for those still running. Moreover, threadpoolctl lets only the thread that set a limit lift it. So a
    separate thread sets the limit, waits, and lifts it after the last fit. If other code changes the limit
    meanwhile, `enforce` restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_running = 0
        self._holder: threading.Thread | None = None
        self._leave = threading.Event()
        self._libraries: list[Any] = []

    def enforce(self) -> None:
        """Restore the limit if other code has changed it."""
        for library in self._libraries:
            _set_threads(library, 1)

    def __enter__(self) -> None:
        with self._lock:
            if self._n_running == 0:
                if self._holder is not None and self._holder.is_alive():  # left over after Ctrl-C
                    self._leave.set()
                    self._holder.join()
                held, self._leave = threading.Event(), threading.Event()
                self._libraries = []
                arguments = (held, self._leave, self._libraries)
                self._holder = threading.Thread(target=_hold_blas, args=arguments, daemon=True)
                try:
                    self._holder.start()
                    held.wait()
                except BaseException:  # Ctrl-C: nothing else would lift the limit
                    self._leave.set()
                    raise
            self._n_running += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_running -= 1
            if self._n_running == 0 and self._holder is not None:
                self._leave.set()
                self._holder.join()


@functools.lru_cache(maxsize=1)
def _libraries(_n_modules: int) -> Any:
    """Libraries with thread pools; the search takes milliseconds and is repeated only after imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _hold_blas(held: threading.Event, leave: threading.Event, libraries: list[Any]) -> None:
    try:
        found = _libraries(len(sys.modules))
        blas = found.select(user_api="blas").lib_controllers
        before = [library.num_threads for library in blas]
        with found.limit(limits=1, user_api="blas"):
            for library in blas:
                _set_threads(library, 1)
            libraries += blas
            held.set()
            leave.wait()
        for library, number in zip(blas, before, strict=True):
            _set_threads(library, number)
    finally:
        held.set()


def _set_threads(library: Any, number: int) -> None:
    """Set the number of threads of a BLAS library, even if threadpoolctl reserves this for another thread."""
    if library.num_threads != number:
        getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


_single_threaded_blas = _SingleThreadedBlas()


def _reset_after_fork() -> None:
    """Reset a process forked during a fit, which has neither the threads nor the owner of the lock."""
    _single_threaded_blas.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`, as in joblib, except in workers.

    In workers of joblib, Dask and process pools, which already share the cores, -1 means one thread. Positive
    numbers are used unchanged.
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
    """Context in which `map` runs a function over blocks on `n_jobs` threads.

    Parameters
    ----------
    n_jobs : int
        Number of threads, at least 1. The result does not depend on it.
    pulse : callable, default=no function
        Called after each block, without arguments.
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
        finally:  # also after a second Ctrl-C
            _single_threaded_blas.__exit__()

    def shares(self, n: int) -> list[slice]:
        """Blocks of n rows, a few per thread, for functions whose results do not depend on the blocks."""
        size = -(-n // (_BLOCKS_PER_THREAD * self.n_jobs))
        return blocks(n, min(max(size, _MIN_ROWS), _MAX_ROWS))

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield function(item) for each item, in order, with a bounded number of pending results."""

        def run(item: T) -> R:
            _single_threaded_blas.enforce()
            return function(item)

        for result in self._results(run, items):
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
