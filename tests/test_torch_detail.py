"""`detail` on torch devices: each step gives the same result as with NumPy, and the map is as good.

If Triton is installed, its interpreter runs the kernels, which are compared with their definitions.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from spheres import random_rows, random_sphere

from mercat import Mercat, metrics
from mercat._data.arrays import to_numpy
from mercat._data.threads import Workers
from mercat._detail import neighbors
from mercat._detail.affinities import affinities_of
from mercat._detail.descent import N_ITER, attraction
from mercat._detail.graphs import components_of, graph_like, graph_of
from mercat._detail.repulsion import Kernel
from mercat._detail.terms import FarTerms, angle_term, pair_forces
from mercat._math.angles import Calibration
from mercat._solve.diagnostics import count_components
from mercat._solve.status import Status

torch = pytest.importorskip("torch", reason="needs torch: make torch")
from mercat._detail import tiles  # noqa: E402

torch.set_num_threads(1)
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request):
    return torch.device(request.param)


def data(n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12)) + 3 * rng.normal(size=(5, 12))[rng.integers(5, size=n)]
    return X.astype(np.float32)


def recall(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)]))


def nearest_in_memory(X: np.ndarray, k: int) -> np.ndarray:
    with Workers(1) as workers:
        return neighbors.nearest(X, k, np.random.default_rng(0), workers).indices


# ------------------------------------------------------------------ the steps


def test_all_pairs_give_the_nearest_points(device):
    X = data(700)
    found = tiles.nearest(torch.as_tensor(X).to(device), 15, np.random.default_rng(0))
    np.testing.assert_array_equal(to_numpy(found.indices), nearest_in_memory(X, 15))
    apart = np.linalg.norm(X[to_numpy(found.indices)] - X[:, None], axis=2)
    np.testing.assert_allclose(to_numpy(found.distances), apart, rtol=1e-5)


def test_cells_give_nearly_all_of_the_nearest_points(device, monkeypatch):
    monkeypatch.setattr(tiles, "_ALL_PAIRS_UP_TO", 100)
    monkeypatch.setattr(tiles, "_POINTS_PER_CELL", 100)
    monkeypatch.setattr(tiles, "_MIN_TILES", 1)
    X = data(4000)
    found = tiles.nearest(torch.as_tensor(X).to(device), 15, np.random.default_rng(0))
    indices = to_numpy(found.indices)
    assert recall(indices, nearest_in_memory(X, 15)) > 0.95
    assert not (indices == np.arange(len(X))[:, None]).any()
    assert sorted(to_numpy(found.order)) == list(range(len(X)))
    again = tiles.nearest(torch.as_tensor(X).to(device), 15, np.random.default_rng(0))
    np.testing.assert_array_equal(to_numpy(again.indices), indices)


def test_duplicates_have_other_points_as_neighbours(device, monkeypatch):
    X = np.repeat(data(40), 10, axis=0)
    for up_to in (1000, 100):
        monkeypatch.setattr(tiles, "_ALL_PAIRS_UP_TO", up_to)
        monkeypatch.setattr(tiles, "_POINTS_PER_CELL", 50)
        found = tiles.nearest(torch.as_tensor(X).to(device), 20, np.random.default_rng(0))
        indices = to_numpy(found.indices)
        assert not (indices == np.arange(len(X))[:, None]).any()
        assert all(len(set(row)) == 20 for row in indices)
        np.testing.assert_array_equal(to_numpy(found.distances)[:, :9], 0)


def test_nearest_points_of_new_points(device):
    X = data(700)
    there = torch.as_tensor(X).to(device)
    found, distances = tiles.nearest_to(there, there[:50] + 0.01, 3)
    exact = np.linalg.norm(X[:50, None] + 0.01 - X[None], axis=2)
    np.testing.assert_array_equal(to_numpy(found), np.argsort(exact, axis=1)[:, :3])
    np.testing.assert_allclose(to_numpy(distances), np.sort(exact, axis=1)[:, :3], rtol=1e-4)


def pulls_of(X, graph, workers):
    return affinities_of(X, graph, workers)[0].settled


@pytest.mark.parametrize("ragged", [False, True])
def test_affinities_are_those_of_numpy(device, ragged):
    X = data(600)
    graph = graph_of(nearest_in_memory(X, 12))
    if ragged:
        graph = sp.csr_array(graph + graph.T)
    there = torch.as_tensor(X).to(device)
    with Workers(1) as workers:
        expected, _ = affinities_of(X, graph, workers)
        both, _ = affinities_of(there, graph_like(graph, there), workers)
    for found, here in zip(both, expected, strict=True):
        parts = (to_numpy(found.data), to_numpy(found.indices), to_numpy(found.indptr))
        summed = sp.csr_array(parts, shape=here.shape)
        assert abs(summed - here).max() < 1e-5 * abs(here).max()
        assert summed.sum() == pytest.approx(len(X), rel=1e-5)


def test_components_of_a_graph(device):
    links = sp.csr_array(
        (np.ones(5), ([0, 1, 2, 4, 6], [1, 2, 3, 5, 5])), shape=(8, 8), dtype=np.float32
    )
    symmetric = sp.csr_array(links + links.T)
    there = graph_like(symmetric, torch.zeros(1, device=device))
    assert to_numpy(components_of(there)).tolist() == [0, 0, 0, 0, 4, 4, 4, 7]
    assert count_components(there) == count_components(symmetric) == 3
    path = sp.diags_array([1.0], offsets=[1], shape=(3000, 3000), format="csr", dtype=np.float32)
    shuffled = np.random.default_rng(0).permutation(3000)
    path = sp.csr_array(path + path.T)[shuffled][:, shuffled]
    assert count_components(graph_like(path, torch.zeros(1, device=device))) == 1


@pytest.mark.parametrize("bandwidth", [0.4, 0.05])
def test_attraction_and_field_are_those_of_numpy(device, bandwidth):
    X, Y = data(600), random_sphere(600).astype(np.float32)
    graph = graph_of(nearest_in_memory(X, 12))
    there = torch.as_tensor(Y).to(device)
    with Workers(1) as workers:
        here = pulls_of(X, graph, workers)
        on_device = graph_like(here, there)
        force = attraction(on_device, there, bandwidth, workers)
        expected = attraction(here, Y, bandwidth, workers)
        np.testing.assert_allclose(to_numpy(force), expected, atol=1e-4 * abs(expected).max())
        field = Kernel(bandwidth, workers, there).field(there)
        value, slope = Kernel(bandwidth, workers).field(Y).at(Y)
        found = field.at(there)
    np.testing.assert_allclose(to_numpy(found[0]), value, rtol=1e-4)
    np.testing.assert_allclose(to_numpy(found[1]), slope, atol=1e-3 * abs(slope).max())


def test_far_terms_are_those_of_numpy(device):
    X, Y = data(600), random_sphere(600).astype(np.float32)
    with Workers(1) as workers:
        found = []
        for X_, Y_ in ((X, Y), (torch.as_tensor(X).to(device), torch.as_tensor(Y).to(device))):
            angles = angle_term(X_, Calibration(0.3, 0.5), True, random_rows(X_))
            terms = FarTerms(
                X_, angles, pair_forces(X_, Y_, random_rows(X_)), random_rows(X_), workers
            )
            force, curvature = terms.force(Y_, 1e-4)
            line = terms.pairs[0].term
            found.append((force, curvature, [*terms.angles.calibration, terms.angles.loss, *line]))
    (force, curvature, learned), there = found
    np.testing.assert_allclose(to_numpy(there[0]), force, atol=1e-3 * abs(force).max())
    np.testing.assert_allclose(to_numpy(there[1]), curvature, rtol=1e-3)
    np.testing.assert_allclose(there[2], learned, rtol=1e-3)


# ------------------------------------------------------------------ the map


def measures(X, Y) -> list[float]:
    chosen = metrics.angle_preservation, metrics.distance_preservation
    return [float(m(X, Y)) for m in (*chosen, metrics.neighborhood_preservation)]


def mercat(**parameters) -> Mercat:
    return Mercat(
        **({"n_landmarks": 100, "random_state": 0, "n_spectral": 8, "detail": 0.3} | parameters)
    )


pytestmark = pytest.mark.filterwarnings("ignore::mercat.TrustWarning")


@pytest.fixture(scope="module")
def here() -> Mercat:
    return mercat().fit(data())


@pytest.fixture(scope="module", params=DEVICES)
def there(request) -> Mercat:
    return mercat(device=request.param).fit(data())


def test_maps_with_detail_are_as_good_as_in_memory(here, there):
    X = data()
    np.testing.assert_allclose(
        measures(X, there.embedding_), measures(X, here.embedding_), atol=0.005
    )
    assert there.correlation_ == pytest.approx(here.correlation_, abs=0.005)
    assert there.loss_ == pytest.approx(here.loss_, abs=0.005)
    assert min(there.n_iter_, here.n_iter_) > N_ITER  # the landmarks' starts may differ
    assert isinstance(there.embedding_, np.ndarray)
    assert isinstance(there.point_loss_, np.ndarray)
    assert there.point_loss_.shape == (len(X),)


def test_the_same_seed_gives_the_same_map(there):
    again = mercat(device=there.device).fit(torch.as_tensor(data()).to(there.device))
    np.testing.assert_array_equal(to_numpy(again.embedding_), there.embedding_)
    assert isinstance(again.embedding_, torch.Tensor)
    assert isinstance(again.point_loss_, torch.Tensor)


def test_new_points_have_the_same_positions_as_in_memory(there):
    new = data()[:300] + np.float32(0.1)
    expected = Mercat(**there.get_params() | {"device": None})
    expected.__dict__.update({k: v for k, v in vars(there).items() if k != "device"})
    expected.device = None
    Y, expected = there.transform(new), expected.transform(new)
    apart = np.linalg.norm(Y - expected, axis=1)
    assert np.median(apart) < 1e-5
    assert np.mean(apart > 0.01) < 0.02
    np.testing.assert_allclose(there.transform(data()[:9]), there.embedding_[:9], atol=1e-6)


def test_a_map_with_detail_on_a_device_can_be_saved(there, tmp_path):
    import mercat as package

    package.save(there, tmp_path / "map.mercat")
    loaded = package.load(tmp_path / "map.mercat")
    new = data()[:50] + np.float32(0.1)
    np.testing.assert_array_equal(loaded.transform(new), there.transform(new))


@pytest.mark.parametrize("n", [60, 1500])
def test_given_graphs_and_equal_rows(device, n):
    X = data(n)
    X[7] = X[3]
    graph = sp.csr_array(graph_of(nearest_in_memory(X, 9)))
    model = mercat(device=device, neighbors=graph, n_landmarks=50).fit(X)
    np.testing.assert_array_equal(model.embedding_[7], model.embedding_[3])
    expected = mercat(neighbors=graph, n_landmarks=50).fit(X)
    np.testing.assert_allclose(
        measures(X, model.embedding_), measures(X, expected.embedding_), atol=0.02
    )


def test_a_callback_sees_arrays_and_stops_the_descent(device):
    seen = []

    def callback(iteration, loss, Y):
        seen.append(Y)
        return len(Y) == 1500 and len(seen) > 20

    model = mercat(device=device, callback=callback).fit(data())
    assert model.status_ is Status.CALLBACK
    assert all(isinstance(Y, np.ndarray) for Y in seen)
    assert np.isfinite(model.embedding_).all()


def test_rows_are_streamed_in_blocks(device, monkeypatch):
    """Only X_hat and one block of the data, or the landmarks, are on the device at a time."""
    from mercat._data.torch_source import TorchSource

    seen = []
    uploaded = TorchSource._uploaded

    def noted(self, rows):
        seen.append(len(rows))
        return uploaded(self, rows)

    monkeypatch.setattr(TorchSource, "_uploaded", noted)
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "400")
    X = data()
    model = mercat(device="cpu").fit(X)
    assert seen.count(400) >= 2 * (len(X) // 400)  # placed, and projected for detail
    monkeypatch.delenv("MERCAT_DEVICE_ROWS")
    whole = mercat(device="cpu").fit(X)
    np.testing.assert_allclose(
        measures(X, model.embedding_), measures(X, whole.embedding_), atol=0.005
    )


def test_out_of_memory_suggests_how_to_use_less(monkeypatch):
    def too_much(*_):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(tiles, "nearest", too_much)
    with pytest.raises(MemoryError, match=r"1500 rows.*n_detail to 375"):
        mercat(device="cpu", tol=0.1, init="pca").fit(data())


def test_detail_applies_to_a_sample_and_other_points_are_placed(device):
    X = data()
    model = mercat(device=device, n_detail=500).fit(torch.as_tensor(X).to(device))
    assert model._placer.against.X.shape[0] == 500
    assert model.embedding_.device.type == device.type
    expected = mercat(n_detail=500).fit(X)
    np.testing.assert_allclose(
        measures(X, to_numpy(model.embedding_)), measures(X, expected.embedding_), atol=0.01
    )


def test_new_arrays_are_created_on_the_device(device):
    """A tensor created without a device would be on the default device, here one without memory."""
    X = torch.as_tensor(data()).to(device)
    torch.set_default_device("meta")
    try:
        model = mercat(device=device, tol=0.1, init="pca").fit(X)
        assert bool(torch.isfinite(model.transform(X[:9] + 0.1)).all())
    finally:
        torch.set_default_device(None)


# ------------------------------------------------------------------ kernels


def test_triton_kernels_match_torch():
    """Runs in another process, since Triton selects its interpreter at import."""
    pytest.importorskip("triton", reason="needs Triton: make torch")
    done = subprocess.run(
        [sys.executable, "-m", "triton_kernels"],
        cwd=__file__.rpartition("/")[0],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
