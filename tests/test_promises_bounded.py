"""Tests of docs/promises.md, "Bounded": memory, threads and files."""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest
from fingerprints import fingerprint
from kernels import blas_threads
from processes import python

from mercat import Mercat, _estimator, embed, uncertainty
from mercat._data.threads import n_threads
from mercat._solve import rotated as mercat_rotated

pytestmark = pytest.mark.usefixtures("two_blas_threads", "brief_descent")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


# ------------------------------------------------------------------ memory


def max_memory(n, d, r=50, n_jobs=1, solved=1000, detail=0.0) -> float:
    """The formula of docs/promises.md: maximum bytes in addition to the data.

    `solved` is the number of points that are solved together: n_landmarks, or n for solver="exact".
    """
    width = d if d <= 1500 else r + 10
    pairs = solved**2 if solved <= 2048 else 0
    threads = 16e6 + 24 * max(min(n * d, 2**21), 512 * d)
    neighbors = min(6e8, 14_000 * n) + 4000 * n if detail else 0
    sums = (2 * n_jobs + 4) * 8 * d * width + 16_000 * d
    return 50e6 + 100 * n + 64 * pairs + sums + n_jobs * threads + neighbors


MEASURE = """
import json, sys
import numpy as np
from mercat import Mercat
from mercat._detail import descent

given = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
descent.N_ITER = 30
quick = {"random_state": 0, "max_iter": 300, "tol": 0.05, "init": "pca"}
Mercat(n_jobs=1, **quick).fit(rng.normal(size=(50, 5)))
X = rng.standard_normal((given["n"], given["d"]), dtype=given["dtype"])
X *= np.float32(0.8) ** np.minimum(np.arange(given["d"]), 60).astype(np.float32)

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

before = status("VmRSS")
model = Mercat(n_jobs=given["n_jobs"], detail=given["detail"], solver=given["solver"], **quick).fit(X)
model.transform(X[:5000])
print(json.dumps(status("VmHWM") - before))
"""


@linux
@pytest.mark.parametrize(
    "case",
    [
        {"n": 50_000, "d": 10},
        {"n": 3000, "d": 1400, "n_jobs": 2},
        {"n": 2000, "d": 4000},
        {"n": 1200, "d": 20, "solver": "exact"},
        {"n": 5000, "d": 20, "detail": 0.1},
    ],
    ids=str,
)
def test_memory_stays_within_the_formula(case):
    import json

    given = {"n_jobs": 1, "detail": 0.0, "solver": "auto", "dtype": "float32"} | case
    peak = python(MEASURE, json.dumps(given))
    exact = given["solver"] == "exact" or given["n"] <= 2000
    solved = given["n"] if exact else 1000
    bound = max_memory(
        given["n"], given["d"], n_jobs=given["n_jobs"], solved=solved, detail=given["detail"]
    )
    assert peak < bound


@linux
def test_the_search_of_a_map_with_detail_copies_its_points_once():
    """So that workers with 1 GB can place on a map of a million points: docs/howto/large-data.md."""
    size, before, peak = python("""
import json
import numpy as np
from mercat._detail.neighbors import EqualRows, NearestToNew

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

X = np.random.default_rng(0).standard_normal((200_000, 50), dtype=np.float32)
NearestToNew(X[:21_000], 30)(X[:16])
before = status("VmRSS")
search, twins = NearestToNew(X, 30), EqualRows(X)
search(X[:1000]), twins(X[:1000])
print(json.dumps([X.nbytes, before, status("VmHWM")]))
""")
    assert peak - before < 2 * size


@linux
@pytest.mark.parametrize("n_fits", [50, pytest.param(200, marks=pytest.mark.nightly)])
def test_repeated_fits_do_not_leak_memory(n_fits):
    grown, data, threads = python(
        """
import json, sys, threading, warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from mercat import Mercat

warnings.simplefilter("ignore", ConvergenceWarning)
X = np.random.default_rng(0).normal(size=(20, 1600)) * 0.5 ** np.minimum(np.arange(1600), 60)
resident = lambda: 4096 * int(open("/proc/self/statm").read().split()[1])

def fit(i):
    parameters = {"n_spectral": 3, "max_iter": 3, "init": "pca", "random_state": i, "n_jobs": 1 + i % 2}
    model = Mercat(detail=0.1 * (i % 100 == 0), **parameters).fit(X)
    if i % 10 == 0:
        model.transform(X[:2])

for i in range(20):
    fit(i)
before = resident()
for i in range(int(sys.argv[1])):
    fit(i)
print(json.dumps([resident() - before, X.nbytes, threading.active_count()]))
""",
        n_fits,
    )
    assert grown < n_fits * data / 2  # half of the total if each fit leaked a copy of X
    assert threads == 1


# ------------------------------------------------------------------ threads


COUNT = """
import json, os, threading, time
from kernels import blas_threads
from sklearn.datasets import load_digits
from mercat import Mercat

def threads():
    tasks = os.listdir("/proc/self/task")
    return {int(t): open(f"/proc/self/task/{t}/stat").read().rpartition(")")[2].split() for t in tasks}

def ticks():
    return {task: int(fields[11]) + int(fields[12]) for task, fields in threads().items()}

def others_sleep():
    return all(s[0] != "R" for task, s in threads().items() if task != threading.get_native_id())

counts, python_threads = set(), set()

def count(iteration, loss, Y):
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("mercat")]
    counts.add(len(ours))
    python_threads.update(thread.native_id for thread in threading.enumerate())
    assert blas_threads() == {1}

X, found = load_digits().data, []
for n_jobs in (1, 2):
    counts.clear(), python_threads.clear()
    model = Mercat(n_jobs=n_jobs, callback=count, random_state=0).fit(X[:50])
    while not others_sleep():  # threads that BLAS has started look for work for a moment
        time.sleep(0.001)
    before = ticks()
    model.fit(X[:700])
    spent = {task: now - before.get(task, 0) for task, now in ticks().items()}
    others = sorted(t for task, t in spent.items() if task not in python_threads)
    helpers = others[len(others) + 1 - n_jobs :]  # of the kernels: one less than threads
    found.append([max(counts), sum(others) - sum(helpers), sum(spent.values())])
print(json.dumps(found))
"""


@linux
def test_at_most_n_jobs_threads_are_used():
    one, two = python(COUNT, env={"OPENBLAS_NUM_THREADS": "4"})
    assert one[0] == 0  # the fit runs on the thread of the caller
    assert two[0] == 2
    for _, others, spent in (one, two):
        assert others <= 0.1 * spent  # BLAS has threads, and they were idle


def test_workers_of_joblib_share_the_cores():
    found = python(
        """
import json
from joblib import Parallel, delayed
from mercat._data.threads import n_threads
found = {"here": n_threads(-1)}
for backend in ("loky", "threading", "multiprocessing"):
    parallel = Parallel(n_jobs=2, backend=backend)
    found[backend] = parallel(delayed(n_threads)(k) for k in (-1, -1, None, 2, 3))
print(json.dumps(found))
""",
        env={"LOKY_MAX_CPU_COUNT": "2"},
    )
    there = [1, 1, 1, 2, 3]
    assert found == {"here": 2, "loky": there, "threading": there, "multiprocessing": there}


@pytest.mark.parametrize("processes", [True, False])
def test_workers_of_dask_share_the_cores(processes):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=processes, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert client.gather(client.map(n_threads, [-1, -2, 2])) == [1, 1, 2]
    assert n_threads(1) == 1


# ------------------------------------------------------------------ processes


def test_fork_and_spawn_give_the_same_result():
    methods = ["fork", "spawn"] if sys.platform == "linux" else ["spawn"]
    here, *found = python(
        """
import json, multiprocessing, sys
from fingerprints import fingerprint
from mercat._data.threads import n_threads
found = [fingerprint(2, n=260)]
for method in sys.argv[1:]:
    with multiprocessing.get_context(method).Pool(2) as pool:
        threads = pool.map(n_threads, [-1, 2])
        found.append([threads, *pool.starmap(fingerprint, [(1, 0.0, 260), (2, 0.0, 260)])])
print(json.dumps(found))
""",
        *methods,
    )
    for method, (threads, *there) in zip(methods, found, strict=True):
        assert threads == [1, 2], method  # workers of a pool share the cores
        assert there == [here, here], method


@linux
def test_a_process_forked_during_a_fit_can_fit():
    """At the fork, another thread holds the lock of fits; it does not exist in the child."""
    code = python("""
import json, os, signal, threading
from fingerprints import fingerprint
from mercat._data.threads import _single_threaded_blas
holder = threading.Thread(target=_single_threaded_blas._lock.acquire)
holder.start()
holder.join()
child = os.fork()
if child == 0:
    signal.alarm(100)
    fingerprint(2, n=260)
    os._exit(0)
print(json.dumps(os.waitpid(child, 0)[1]))
""")
    assert code == 0


def test_concurrent_fits_in_threads_give_the_same_result(digits):
    settings = [
        (300, {"detail": 0.2, "n_jobs": 2}),
        (300, {"n_jobs": 1}),
        (300, {"n_jobs": 2, "metric": "cosine"}),
        (700, {"n_jobs": 2}),
    ]
    expected = [embed(digits[:n], random_state=0, **s) for n, s in settings]
    found = {}

    def fit(k):
        n, s = settings[k]
        found[k] = embed(digits[:n], random_state=0, **s)

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(len(settings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, Y in enumerate(expected):
        np.testing.assert_array_equal(found[k], Y)


def test_a_model_used_by_several_threads_has_the_state_of_one_fit(digits):
    """Concurrent fits and transforms do not mix."""
    data, rows = [digits[:100], digits[200:310]], digits[600:620]
    expected = [Mercat(random_state=0, n_jobs=1).fit(X) for X in data]
    places = [model.transform(rows) for model in expected]
    assert not np.array_equal(*places)
    model = Mercat(random_state=0, n_jobs=1).fit(data[0])
    wrong = []

    def fit(k):
        for _ in range(4):
            Y = model.fit_transform(data[k])
            wrong.extend([] if np.array_equal(Y, expected[k].embedding_) else [("fit", k)])

    def transform():
        while fitting.is_set():
            Y = model.transform(rows)
            wrong.extend([] if any(np.array_equal(Y, other) for other in places) else ["mixed"])

    fitting = threading.Event()
    fitting.set()
    fits = [threading.Thread(target=fit, args=(k,)) for k in (0, 1)]
    others = [threading.Thread(target=transform) for _ in range(2)]
    for thread in fits + others:
        thread.start()
    for thread in fits:
        thread.join()
    fitting.clear()
    for thread in others:
        thread.join()
    assert wrong == []


def test_a_model_is_consistent_while_it_is_refitted(digits):
    model = Mercat(random_state=0).fit(digits[:100])
    before, seen = model.transform(digits[:5]), []

    def look(i, loss, Y):
        seen.append(model.transform(digits[:5]))
        model.set_params(verbose=False, tol=0.5)
        model.mine = i

    model.set_params(callback=look, verbose=True, max_iter=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(digits[:100, :30])
    assert len(seen) == 4
    for Y in seen:
        np.testing.assert_array_equal(Y, before)
    assert model.n_features_in_ == 30
    assert (model.verbose, model.tol, model.mine) == (
        False,
        0.5,
        4,
    )  # values set during the fit are kept


def test_attributes_may_be_added_while_a_model_is_used(digits, tmp_path):
    """As by `set_output` in another thread."""
    model = Mercat(random_state=0).fit(digits[:100])

    class Meanwhile(str):
        def endswith(self, *_):
            vars(model)[f"added {len(vars(model))}"] = 1
            return False

    vars(model)[Meanwhile("mine")] = 1
    expected = model.embedding_.shape
    assert model.transform(digits[:100]).shape == expected
    assert model.score(digits[:100]) > 0
    assert len(uncertainty(model, digits[:100], n_maps=4).spread) == 100


def test_concurrent_fits_of_a_model_leave_the_state_of_one(digits):
    """Including attributes equal in both, such as n_features_in_, which a fit in between changed."""
    model = Mercat(random_state=0).fit(digits[:100])
    expected = model.transform(digits[:5])
    other = {"data": digits[:80, :40]}

    def fit_the_other(i, loss, Y):
        if other:
            inside = threading.Thread(target=model.fit, args=(other.pop("data"),))
            inside.start()
            inside.join()

    model.set_params(callback=fit_the_other).fit(digits[:100])
    assert not other
    assert model.n_features_in_ == model.components_.shape[1] == 64
    np.testing.assert_array_equal(model.transform(digits[:5]), expected)


def test_names_of_columns_are_those_of_the_last_fit(digits):
    pd = pytest.importorskip("pandas")
    model = Mercat(random_state=0).fit(pd.DataFrame(digits[:50]).add_prefix("pixel"))
    assert model.feature_names_in_[1] == "pixel1"
    assert not hasattr(model.fit(digits[:50]), "feature_names_in_")


def test_a_rotation_during_a_fit_does_not_mix_two_maps(digits, monkeypatch):
    """A fit that ends during the rotation takes effect after it."""
    fitted = Mercat(random_state=0).fit(digits[:80])
    model, turn = Mercat(random_state=0).fit(digits[:100]), _estimator.rotated

    def turn_late(*given):
        monkeypatch.setattr(_estimator, "rotated", turn)
        model.fit(digits[:80])
        return turn(*given)

    monkeypatch.setattr(_estimator, "rotated", turn_late)
    model.turn(np.eye(3), np.roll(np.eye(3), 1, axis=0))
    np.testing.assert_array_equal(model.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(model.transform(digits[:5]), fitted.transform(digits[:5]))


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_alignment_with_a_model_that_is_refitted_meanwhile(digits, monkeypatch):
    given = {"solver": "landmarks", "n_landmarks": 40, "random_state": 0}
    other, place = Mercat(**given).fit(digits[:60]), _estimator.place
    expected = Mercat(**given).fit(digits[:100], align_to=other).embedding_

    def place_late(*arguments):
        monkeypatch.setattr(_estimator, "place", place)
        other.fit(digits[200:350])
        return place(*arguments)

    monkeypatch.setattr(_estimator, "place", place_late)
    found = Mercat(**given).fit(digits[:100], align_to=other).embedding_
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("module", "name"), [(mercat_rotated, "canonical_frame"), (_estimator, "rotated")]
)
def test_blas_has_one_thread_until_the_end_of_a_fit(module, name, digits, monkeypatch):
    function, seen = getattr(module, name), []

    def look(*arguments):
        seen.append(blas_threads())
        return function(*arguments)

    monkeypatch.setattr(module, name, look)
    Mercat(random_state=0).fit(digits[:100])
    assert seen
    assert all(threads == {1} for threads in seen)


def test_nothing_is_written_to_disk():
    """As on a read-only file system: every write fails."""
    found = python(
        """
import errno, json, os, sys

def read_only(event, arguments):
    writes = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
    if event == "open" and isinstance(arguments[0], str) and arguments[0] != os.devnull:
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, f"Read-only file system: {arguments[0]}")
    if event in writes:
        raise OSError(errno.EROFS, f"Read-only file system: {event} {arguments[0]}")

sys.addaudithook(read_only)
from fingerprints import fingerprint
print(json.dumps(fingerprint(2, 0.1, n=260)))
""",
        env={"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert found == fingerprint(1, 0.1, n=260)
