"""Threads: `Workers` runs a function over blocks and returns the results in the order of the blocks.

BLAS is held to one thread meanwhile. Block sizes never depend on the number of threads, so neither do the
results, to the bit.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


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
