"""Tests of docs/promises.md, "Interruptible": stopping a fit, callbacks and progress."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from kernels import blas_threads
from processes import python
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from mercat import Mercat, Status, _progress
from mercat._data import threads
from mercat._data.source import rows_to_place
from mercat._data.threads import Workers
from mercat._progress import Progress

pytestmark = pytest.mark.usefixtures("two_blas_threads", "brief_descent")

PHASES = ["denoising", "solving", "placing", "neighbours", "detail"]


@pytest.fixture(autouse=True)
def listening():
    """Enable Ctrl-C, which shells disable for background processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def outside():
    """Check that threads and BLAS limits are restored."""
    before = set(threading.enumerate()), blas_threads()
    yield
    assert (set(threading.enumerate()), blas_threads()) == before


@pytest.fixture
def phases(monkeypatch):
    """Record the phase of each block of work, and call the function in `act` if there is one."""
    seen, act, begin = Counter(), [], Progress.phase

    def phase(self, name, total, unit):
        self.name = name
        begin(self, name, total, unit)

    def pulse(self):
        seen[self.name] += 1
        for action in act:
            action(self.name)

    monkeypatch.setattr(Progress, "phase", phase)
    monkeypatch.setattr(Progress, "pulse", pulse)
    return seen, act


def mercat(**parameters) -> Mercat:
    given = {"solver": "landmarks", "n_landmarks": 120, "detail": 0.1, "random_state": 0}
    return Mercat(**(given | parameters))


# ------------------------------------------------------------------ Ctrl-C


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_in_any_phase_leaves_the_model_unchanged(phase, n_jobs, digits, phases, outside):
    _, act = phases

    def interrupt(name):
        if name == phase:
            raise KeyboardInterrupt

    act.append(interrupt)
    model = mercat(n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits[:300])
    with pytest.raises(NotFittedError):
        model.transform(digits)
    act.clear()
    before = model.fit(digits[:200]).transform(digits[:50])
    act.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits[:300, :40])
    act.clear()
    np.testing.assert_array_equal(model.transform(digits[:50]), before)
    assert model.n_features_in_ == 64


def test_ctrl_c_in_transform_leaves_the_model_unchanged(digits, phases, outside):
    _, act = phases
    model = mercat(n_jobs=2).fit(digits[:300])
    expected = model.transform(digits)
    act.append(lambda name: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        model.transform(digits)
    act.clear()
    np.testing.assert_array_equal(model.transform(digits), expected)


def test_ctrl_c_at_any_moment_leaves_no_thread_behind():
    """Signals at random times, during one fit after another."""
    interrupted, left, limits, same = python(
        """
import json, signal, threading, time
import numpy as np
from kernels import blas_threads
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits
from mercat import Mercat
from mercat._detail import descent

descent.N_ITER = 30
X = load_digits().data[:300]
model = Mercat(solver="landmarks", n_landmarks=120, detail=0.1, n_jobs=2, random_state=0)
start = time.perf_counter()
expected, limits = model.fit_transform(X), blas_threads()
took, interrupted, same = time.perf_counter() - start, 0, True
signal.signal(signal.SIGALRM, signal.default_int_handler)
for moment in np.linspace(0.02, 1, 10):
    again = Mercat(**model.get_params())
    try:
        signal.setitimer(signal.ITIMER_REAL, moment * took)
        again.fit(X)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
        same &= not hasattr(again, "embedding_")
    else:
        same &= bool((again.embedding_ == expected).all())
left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
print(json.dumps([interrupted, left, blas_threads() == limits, same]))
""",
        env={"OPENBLAS_NUM_THREADS": "2"},
    )
    assert interrupted > 0
    assert left == []
    assert limits
    assert same


class _Interrupted(threading.Event):
    """An event whose wait is interrupted by Ctrl-C."""

    def wait(self, timeout=None):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return super().wait(timeout)


def test_a_fit_after_ctrl_c_waits_until_blas_is_released(monkeypatch):
    before, waited_for = blas_threads(), threading.Event()

    def let_go_late(held, leave, libraries):
        with threadpool_limits(limits=1, user_api="blas"):
            leave.wait()
            waited_for.wait()

    with monkeypatch.context() as patch:
        patch.setattr(threads, "_hold_blas", let_go_late)
        patch.setattr(
            threads, "threading", SimpleNamespace(Event=_Interrupted, Thread=threading.Thread)
        )
        with pytest.raises(KeyboardInterrupt), Workers(2):
            pass
    holder = threads._single_threaded_blas._holder
    monkeypatch.setattr(holder, "join", lambda: waited_for.set() or threading.Thread.join(holder))
    with Workers(2):
        pass
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_another_limit_on_blas_is_overridden_at_the_next_block(n_jobs):
    """The limit is the caller's own threadpool_limits, whose thread then controls OpenBLAS."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    alone = Mercat(random_state=0, n_jobs=n_jobs).fit(X).embedding_
    before = blas_threads()
    with threadpool_limits(limits=2, user_api="blas"):
        with Workers(n_jobs) as workers:
            assert blas_threads() == {1}
            with threadpool_limits(limits=2, user_api="blas"):
                assert blas_threads() == {2}
                assert list(workers.map(lambda _: blas_threads(), range(4))) == [{1}] * 4
        assert blas_threads() == {2}
        raised = []

        def callback(iteration, loss, Y):
            threadpool_limits(limits=2, user_api="blas")
            raised.append(blas_threads())

        again = Mercat(random_state=0, n_jobs=n_jobs, callback=callback).fit(X).embedding_
        assert raised[0] == {2}
        assert blas_threads() == {2}
    np.testing.assert_array_equal(again, alone)
    assert blas_threads() == before


def test_an_interrupted_blas_limit_is_released_by_the_next_fit():
    before, blas = blas_threads(), threads._SingleThreadedBlas()
    blas.__enter__()
    blas._n_running = 0  # as if interrupted between the count and the notification of the thread

    def use():
        with blas:
            pass

    fit = threading.Thread(target=use, daemon=True)
    fit.start()
    fit.join(timeout=20)
    assert not fit.is_alive()
    assert blas_threads() == before


def test_ctrl_c_while_blas_is_being_limited_releases_it(monkeypatch, outside):
    main, hold = threading.main_thread(), threads._hold_blas

    def hold_late(held, leave, libraries):
        signal.pthread_kill(main.ident, signal.SIGINT)
        hold(held, leave, libraries)

    holder = threads._SingleThreadedBlas()
    monkeypatch.setattr(threads, "_hold_blas", hold_late)
    with pytest.raises(KeyboardInterrupt):
        holder.__enter__()
    holder._holder.join(timeout=30)
    assert not holder._holder.is_alive()
    monkeypatch.setattr(threads, "_hold_blas", hold)
    with holder:
        assert blas_threads() == {1}


def test_a_second_ctrl_c_still_restores_the_threads_of_blas(monkeypatch, outside):
    workers = Workers(2)
    workers.__enter__()

    def interrupted(**_):
        raise KeyboardInterrupt

    pool = workers._pool
    monkeypatch.setattr(pool, "shutdown", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.__exit__()
    monkeypatch.undo()
    pool.shutdown()


# ------------------------------------------------------------------ a callback's stop


@pytest.mark.parametrize("solver", ["exact", "landmarks"])
@pytest.mark.parametrize("detail", [0.0, 0.1])
def test_a_stop_in_the_solver_gives_the_map_so_far(solver, detail, digits, outside):
    model = mercat(solver=solver, detail=detail, callback=lambda i, loss, Y: i == 4)
    model.fit(digits[:300])
    assert model.status_ is Status.CALLBACK
    assert model.n_iter_ == 4
    assert np.abs(np.linalg.norm(model.embedding_, axis=1) - 1).max() < 1e-12
    assert np.isfinite(model.point_loss_).all()
    np.testing.assert_allclose(model.transform(digits[:300]), model.embedding_, atol=1e-6)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")  # of a map that is not finished
def test_a_stop_in_the_detail_gives_the_map_so_far(digits, outside):
    plain = mercat(detail=0.0).fit(digits[:300])
    model = mercat(callback=lambda i, loss, Y: i == plain.n_iter_ + 3).fit(digits[:300])
    assert model.status_ is Status.CALLBACK
    assert model.n_iter_ == plain.n_iter_ + 3
    np.testing.assert_array_equal(model.transform(digits[:300]), model.embedding_)
    whole = mercat().fit(digits[:300])
    assert whole.n_iter_ > model.n_iter_
    assert np.abs(whole.embedding_ - model.embedding_).max() > 1e-3


WAYS = {
    "exact": {"solver": "exact", "detail": 0.0},
    "landmarks": {"detail": 0.0},
    "detail": {},
    "algorithm1": {
        "solver": "algorithm1", "objective": "absolute", "detail": 0.0, "max_iter": 20
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit, ValueError])
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_of_a_callback_ends_the_fit(way, kind, digits, outside):
    """Including StopIteration, which stops SciPy's minimiser."""
    mine, begun = kind("mine"), 0
    if way == "detail":
        begun = mercat(detail=0.0).fit(digits[:300]).n_iter_

    def refuse(i, loss, Y):
        if i == begun + 3:
            raise mine

    model = mercat(callback=refuse, **WAYS[way])
    with pytest.raises(kind) as caught:
        model.fit(digits[:300])
    assert caught.value is mine
    assert not hasattr(model, "embedding_")


@pytest.mark.parametrize("way", WAYS)
def test_a_callback_receives_a_copy(way, digits):
    def scribble(i, loss, Y):
        Y[:] = 7

    expected = mercat(**WAYS[way]).fit(digits[:300])
    model = mercat(callback=scribble, **WAYS[way]).fit(digits[:300])
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    np.testing.assert_array_equal(model.transform(digits), expected.transform(digits))


# ------------------------------------------------------------------ signs of life


def test_every_phase_shows_progress(digits, phases):
    seen, _ = phases
    mercat(n_jobs=2).fit(digits[:600])
    assert set(seen) == set(PHASES)


@pytest.mark.parametrize(("d", "rows"), [(1, 4096), (4096, 4096), (8192, 2048), (10**6, 512)])
def test_a_block_of_wide_data_has_fewer_rows(d, rows):
    assert rows_to_place(1_000_000, d) == rows


@pytest.mark.parametrize("verbose", [True, False])
def test_progress_updates_the_elapsed_time(verbose, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with Progress(verbose) as progress:
        progress.phase("denoising", None, "")
        capsys.readouterr()  # discard the first output
        shown = []
        for _ in range(8):
            now[0] += 0.3
            progress.pulse()
            shown.append(capsys.readouterr().err != "")
    assert sum(shown) == (4 if verbose else 0)  # every second pulse: not more often than needed
