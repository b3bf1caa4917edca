"""Dask arrays: the same result as in memory, lazily, for any chunks and scheduler."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from mercat import Mercat
from mercat._data import source as _rows
from mercat._reduce import components
from mercat._solve import pipeline as _solvers

da = pytest.importorskip("dask.array", reason='needs Dask: pip install "dask[array,distributed]"')
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

N, D = 2300, 12
CHUNKS = {"one": (N,), "even": (500,) * 4 + (300,), "odd": (1, 777, 1000, 522), "empty": (0, N, 0)}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Use small blocks, so that there are several levels of sums and several batches of placed points."""
    monkeypatch.setattr(_rows, "VALUES_PER_BLOCK", 100 * D)
    monkeypatch.setattr(_solvers, "N_ORIENTING", 300)


def data(dtype=np.float64) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(N, D)) * np.arange(1, D + 1) + 3).astype(dtype)


def mercat(**parameters) -> Mercat:
    given = {"n_landmarks": 40, "random_state": 0, "tol": 0.01, "init": "pca", "n_spectral": 5}
    return Mercat(**(given | parameters))


def chunked(X, rows=CHUNKS["odd"]):
    return da.from_array(X, chunks=(rows, X.shape[1]))


# ------------------------------------------------------------------ the same as in memory


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_chunks_change_nothing(chunks, dtype):
    X = data(dtype)
    here, there = mercat().fit(X), mercat().fit(chunked(X, CHUNKS[chunks]))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    assert there.embedding_.dtype == here.embedding_.dtype
    assert there.embedding_.chunks == (CHUNKS[chunks], (3,))
    np.testing.assert_array_equal(there.landmarks_, here.landmarks_)
    np.testing.assert_array_equal(there.components_, here.components_)
    np.testing.assert_allclose(there.point_loss_, here.point_loss_, rtol=1e-4, atol=1e-6)
    assert there.loss_ == pytest.approx(here.loss_, rel=0.05)  # of a sample


def test_points_solved_together_are_not_placed_again(monkeypatch):
    monkeypatch.setattr(_solvers, "N_ORIENTING", N)
    X = data()
    here, there = mercat().fit(X), mercat().fit(chunked(X))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    np.testing.assert_array_equal(there.point_loss_, here.point_loss_)
    assert there.embedding_.chunks == (CHUNKS["odd"], (3,))
    assert (there.loss_, there.correlation_) == (here.loss_, here.correlation_)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"metric": "correlation"},
        {"n_spectral": None},
        {"n_spectral": "auto"},
        {"objective": "absolute", "init": np.random.default_rng(1).normal(size=(N, 3))},
        {"wide": True},
        {"wide": True, "n_spectral": "auto"},
    ],
    ids=str,
)
def test_parameters_mean_the_same(parameters, monkeypatch):
    parameters = dict(parameters)
    if parameters.pop("wide", False):
        monkeypatch.setattr(components, "_SMALL", 6)
    X = data()
    here, there = (mercat(**parameters).fit(rows) for rows in (X, chunked(X)))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_sparse_chunks_equal_sparse_data_in_memory():
    X = sp.csr_array(np.maximum(data() - 5, 0))
    lazy = chunked(X.toarray()).map_blocks(sp.csr_array, meta=sp.csr_array((0, D)))
    here = mercat().fit(X)
    np.testing.assert_allclose(mercat().fit(lazy).embedding_, here.embedding_, atol=1e-6)
    np.testing.assert_allclose(here.transform(lazy), here.embedding_, atol=1e-6)


def test_loss_of_a_large_set_is_that_of_a_sample(monkeypatch):
    from mercat._solve import pipeline as _solvers

    monkeypatch.setattr(_solvers, "N_ORIENTING", 1000)
    X = data()
    here, there = mercat().fit(X), mercat().fit(chunked(X))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)  # rotated by the same sample
    assert there.loss_ != here.loss_
    assert there.loss_ == pytest.approx(here.loss_, rel=0.05)


def test_few_points_are_solved_together():
    X = data()[:300]
    lazy = mercat().fit(chunked(X, (100, 200)))
    assert isinstance(lazy.embedding_, da.Array)
    assert lazy.embedding_.chunks == ((100, 200), (3,))
    np.testing.assert_array_equal(lazy.embedding_, mercat().fit_transform(X))


# ------------------------------------------------------------------ laziness


def test_placement_is_lazy():
    X, read = data(), []

    def note(block):
        read.append(len(block))
        return block

    lazy = chunked(X, (1000, 1300)).map_blocks(note, meta=np.empty((0, D)))
    model = mercat().fit(X)
    Y = model.transform(lazy)
    assert isinstance(Y, da.Array)
    assert read == []
    np.testing.assert_array_equal(Y[:10], model.embedding_[:10])
    assert read == [1000]  # the requested chunk
    read.clear()
    mercat().fit(lazy)
    assert sum(read) == 2 * N  # once for the components, once for the sample


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_number_of_tasks_is_linear_in_chunks(monkeypatch):
    from dask.delayed import Delayed

    from mercat._data import dask_source as module

    counts: dict[int, list[int]] = {}

    def count(collection):
        counts[n_chunks].append(len(dict(collection.__dask_graph__())))
        return compute(collection)

    compute = module._compute
    monkeypatch.setattr(module, "_compute", count)
    for n_chunks in (10, 20, 40):
        counts[n_chunks] = []
        rows = np.tile(data()[:100], (n_chunks, 1))
        model = mercat(n_landmarks=20, solver="landmarks").fit(chunked(rows, (100,) * n_chunks))
        for result in (model.embedding_, model.point_loss_):
            counts[n_chunks].append(len(dict(result.__dask_graph__())))
        assert not isinstance(model.embedding_, Delayed)
    ten, twenty, forty = (np.array(counts[n]) for n in (10, 20, 40))
    assert (forty - twenty <= 2.2 * (twenty - ten) + 4).all()
    assert (forty <= 40 * 8).all()


def test_shared_arrays_are_not_copied_into_each_task():
    import pickle

    Y = mercat().fit(chunked(data(), (100,) * 23)).embedding_
    values = dict(Y.__dask_graph__()).values()
    large = [v for v in values if len(pickle.dumps(v)) > 100_000 and "_apply" in str(v)]
    assert len(large) <= 1


# ------------------------------------------------------------------ clusters


def test_a_killed_worker_does_not_change_the_result(monkeypatch):
    X = data(np.float32)
    monkeypatch.setattr(_rows, "VALUES_PER_BLOCK", 1 << 21)  # workers have the usual blocks
    here = mercat().fit(X)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = mercat().fit(chunked(X, (50,) * 46)).embedding_
        futures = client.compute(list(lazy.to_delayed().ravel()))
        first = distributed.wait(futures, return_when="FIRST_COMPLETED").done.pop()
        processes = client.run(os.getpid)
        (holder,) = client.who_has([first])[first.key][:1]
        os.kill(processes[holder], signal.SIGKILL)
        found = np.concatenate(client.gather(futures))
    np.testing.assert_array_equal(found, here.embedding_)


def test_a_lost_scheduler_is_an_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    model = mercat().fit(data())
    before = model.embedding_
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
        client = distributed.Client(f"tcp://127.0.0.1:{port}", timeout=20)
        client._timeout = 1  # timeout of the search for a lost scheduler
        try:
            scheduler.kill()
            with pytest.raises(RuntimeError, match="scheduler"):
                model.fit(chunked(data()))
        finally:
            client.close(timeout=1)
    assert model.embedding_ is before


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.rechunk({1: 5}), ValueError, r"^X .*got 3 .*X\.rechunk"),
        (lambda X: X[X[:, 0] > 0], ValueError, r"^X .*compute_chunk_sizes"),
        (lambda X: X[:, 0], ValueError, "^X .*got 1"),
        (lambda X: X[:3], ValueError, "n_samples=3"),
        (lambda X: X.astype(object), ValueError, "^X .*object"),
        (lambda X: X.astype(complex), ValueError, "^X .*complex128"),
        (lambda X: X[0].to_delayed()[0], TypeError, "^X .*dask"),
    ],
)
def test_invalid_dask_arrays_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        mercat().fit(change(chunked(data())))


def test_precomputed_distances_must_be_in_memory():
    with pytest.raises(ValueError, match=r"^metric='precomputed'"):
        mercat(metric="precomputed").fit(da.zeros((2000, 2000)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_located(value):
    X = data()
    model = mercat().fit(X)
    X[801, 3] = value
    with pytest.raises(ValueError, match=rf"^X .*{value} in row 801, column 3"):
        mercat().fit(chunked(X))
    lazy = model.transform(chunked(X))
    with pytest.raises(ValueError, match=rf"^X .*{value} in row 801, column 3"):
        lazy.compute()


@pytest.mark.parametrize("change", [lambda part: part[:-1], lambda part: part[:, 1:]])
def test_chunks_of_other_shapes_than_declared_are_refused(change):
    """Dask would return a map of fewer points."""

    def spoil(block, block_info=None):
        last = block_info and block_info[0]["chunk-location"][0] == 3
        return change(block) if last else block

    X = chunked(data())
    spoilt, model = X.map_blocks(spoil, meta=np.empty((0, D)), dtype=X.dtype), mercat().fit(X)
    with pytest.raises(ValueError, match=r"^X must have chunks of the shapes in X\.chunks"):
        model.transform(spoilt).compute()
    with pytest.raises(ValueError, match="shape"):  # Dask's own, as it joins the chunk to others
        mercat().fit(spoilt)


def test_number_of_features_is_checked():
    model = mercat().fit(data())
    with pytest.raises(ValueError, match=r"11 features.*12"):
        model.transform(chunked(data()[:, 1:]))


# ------------------------------------------------------------------ detail


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_detail_of_all_rows_gives_the_bits_of_data_in_memory():
    X = data(np.float32)
    here, there = mercat(detail=0.3).fit(X), mercat(detail=0.3).fit(chunked(X))
    assert isinstance(there.embedding_, da.Array)
    assert there.embedding_.chunks == (CHUNKS["odd"], (3,))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    np.testing.assert_array_equal(there.point_loss_, here.point_loss_)
    new = X[:50] + np.float32(0.5)
    np.testing.assert_array_equal(there.transform(chunked(new, (20, 30))), here.transform(new))


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("kind", ["array", "memory map", "dask"])
def test_detail_applies_to_a_sample_and_other_points_are_placed(kind, tmp_path, monkeypatch):
    X, parameters = data(np.float32), {"detail": 0.3}
    expected = mercat(n_detail=600, **parameters).fit(X)
    rows = X
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif kind == "dask":
        rows = chunked(X)
    if kind == "array":
        parameters["n_detail"] = 600
    else:  # data that may exceed memory are sampled by default
        monkeypatch.setattr("mercat._validation._MAX_DETAIL_ROWS", 600)
    model = mercat(**parameters).fit(rows)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    assert model._placer.against.X.shape[0] == 600
    np.testing.assert_array_equal(model.transform(X), expected.embedding_)
    assert model.point_loss_.shape == (N,)
    assert set(model.landmarks_) <= set(range(N))


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_backed_anndata_gives_the_bits_of_data_in_memory(kind, tmp_path):
    anndata = pytest.importorskip("anndata")
    X = np.maximum(data(np.float32) - 5, 0)
    X = sp.csr_matrix(X) if kind == "sparse" else X
    anndata.AnnData(X).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    values = backed.X.group if kind == "sparse" else backed.X
    lazy = anndata.experimental.read_elem_lazy(values, chunks=(500, D))
    for n_detail in (None, 600):
        model = mercat(detail=0.3, n_detail=n_detail)
        expected = model.fit_transform(X)
        np.testing.assert_array_equal(model.fit_transform(lazy), expected)
    if kind == "sparse":
        with pytest.raises(TypeError, match=r"^X .*X\.to_memory.*read_elem_lazy"):
            mercat().fit(backed.X)


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_points_outside_the_sample_are_placed_one_task_per_chunk():
    lazy = mercat(detail=0.3, n_detail=600).fit(chunked(data()))
    assert isinstance(lazy.embedding_, da.Array)
    assert lazy.embedding_.numblocks == (len(CHUNKS["odd"]), 1)
    np.testing.assert_array_equal(lazy.embedding_[5:9], lazy.embedding_.compute()[5:9])


@pytest.mark.parametrize(
    "parameters", [{"metric": "precomputed"}, {"neighbors": sp.eye_array(60, k=1, format="csr")}]
)
def test_n_detail_with_distances_or_a_graph_is_refused(parameters):
    X = data()[:60]
    if "metric" in parameters:
        X = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(ValueError, match=r"^n_detail .*60.*got 50"):
        mercat(detail=0.3, n_detail=50, n_spectral=None, **parameters).fit(X)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("detail", [0.0, 0.3])
@pytest.mark.parametrize("reads", [1, len(CHUNKS["odd"]) + 1])
def test_ctrl_c_while_data_are_read_leaves_the_model_unchanged(detail, reads):
    X, left = chunked(data()), [reads]

    def interrupt(block):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return block

    lazy = X.map_blocks(interrupt, meta=np.empty((0, D)), dtype=X.dtype)
    model = mercat(detail=detail, n_detail=600)
    with dask.config.set(scheduler="synchronous"), pytest.raises(KeyboardInterrupt):
        model.fit(lazy)
    assert left[0] <= 0
    assert not hasattr(model, "embedding_")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("mercat")]


@pytest.mark.parametrize("cluster", [False, True])
def test_errors_in_the_graph_are_raised_unchanged(cluster):
    def read(block, block_info=None):
        if block_info and block_info[0]["chunk-location"][0] == 2:
            raise FileNotFoundError(2, "No such file", "chunk 2")
        return block

    lazy = chunked(data()).map_blocks(read, meta=np.empty((0, D)))
    if not cluster:
        with pytest.raises(FileNotFoundError, match="chunk 2"):
            mercat().fit(lazy)
        return
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as workers,
        distributed.Client(workers),
        pytest.raises(FileNotFoundError, match="chunk 2"),
    ):
        mercat().fit(lazy)
