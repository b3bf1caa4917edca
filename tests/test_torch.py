"""Torch devices: the same results as with NumPy, and clear errors.

Without torch, all but one of these tests are skipped; `make torch` installs its CPU build and runs them.
If torch finds a GPU, they also run on it.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercat import Mercat, metrics
from mercat._data.arrays import to_numpy
from mercat._data.open import open_source
from mercat._data.source import RowSource
from mercat._data.threads import Workers
from mercat._data.torch_source import (
    TorchSource,
    check_finite_tensor,
    check_tensor,
    find_device,
    upload_all,
)
from mercat._reduce.components import fit_components
from mercat._reduce.reducer import project_all
from mercat._solve.placement import placed_moments

torch = pytest.importorskip("torch", reason="needs torch: make torch")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

torch.set_num_threads(1)  # its threads wait actively, which slows other processes
DEVICES = ["cpu"]
DEVICES += ["cuda"] if torch.cuda.is_available() else []
DEVICES += ["mps"] if torch.backends.mps.is_available() else []


@pytest.fixture(params=DEVICES)
def device(request):
    return torch.device(request.param)


def data(n: int = 2500) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12)) + 3 * rng.normal(size=(5, 12))[rng.integers(5, size=n)]
    return X.astype(np.float32)


def mercat(**parameters) -> Mercat:
    return Mercat(**({"n_landmarks": 60, "random_state": 0, "n_spectral": 8} | parameters))


@pytest.fixture(scope="module")
def fitted() -> Mercat:
    return mercat().fit(data())


# ------------------------------------------------------------------ the same functions


@pytest.mark.parametrize("kind", ["float32", "float64", "uint8", "csr"])
@pytest.mark.parametrize("metric", ["euclidean", "correlation"])
def test_components_are_those_of_numpy(kind, metric, device):
    X = data()
    X = sp.csr_array(np.maximum(X, 0)) if kind == "csr" else np.abs(10 * X).astype(kind)
    with Workers(1) as workers:
        rows = TorchSource(X, workers, device)
        here = fit_components(RowSource(X, workers), 5, metric=metric)
        there = fit_components(rows, 5, metric=metric)
        np.testing.assert_allclose(there.components, here.components, atol=2e-3)
        np.testing.assert_allclose(there.mean, here.mean, rtol=1e-4, atol=1e-5)
        assert there.unit == pytest.approx(here.unit, rel=1e-4)
        X_hat = project_all(rows.to_device(here), rows.take(np.arange(50)), workers)
        expected = project_all(here, X[:50], workers)
    np.testing.assert_allclose(to_numpy(X_hat), expected, atol=1e-4)


def test_placement_matches_numpy(fitted, device):
    placer = fitted._placer
    X_hat, Y = placer.block(data())
    landmarks = upload_all(placer.against, device)
    there = torch.as_tensor(X_hat).to(device)
    apart = np.linalg.norm(to_numpy(landmarks.place(there)) - Y, axis=1)
    assert np.median(apart) < 1e-5
    assert np.mean(apart > 0.01) < 0.01  # two nearly equal minima
    here = placed_moments(X_hat, Y, placer.against.X, placer.against.Y, 7, 20, 16)
    Y_there = torch.as_tensor(Y).to(device)
    moments = placed_moments(there, Y_there, landmarks.X, landmarks.Y, 7, 20, 16)
    for expected, found in zip(here, moments, strict=True):
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-3, atol=1e-2)


def test_landmarks_among_the_points_keep_their_positions(fitted, device):
    model = mercat(device=device).fit(data())
    Y = model.transform(torch.as_tensor(data()[model.landmarks_]).to(device))
    np.testing.assert_allclose(to_numpy(Y), model.embedding_[model.landmarks_], atol=1e-5)


# ------------------------------------------------------------------ the same map


@pytest.mark.parametrize(
    "parameters",
    [{}, {"metric": "cosine"}, {"n_spectral": None}, {"objective": "absolute"}],
    ids=str,
)
def test_measures_agree_with_those_of_the_cpu(parameters, device):
    X = data()
    # With 200 landmarks, two arrangements preserve cosine distances equally well.
    parameters = parameters | {"n_landmarks": 300}
    here, there = mercat(**parameters).fit(X), mercat(**parameters, device=device).fit(X)
    assert there.correlation_ == pytest.approx(here.correlation_, abs=0.005)
    assert there.loss_ == pytest.approx(here.loss_, abs=0.005)
    for measure in (metrics.angle_preservation, metrics.distance_preservation):
        assert measure(X, there.embedding_) == pytest.approx(measure(X, here.embedding_), abs=0.005)


def test_few_points_are_solved_together(device):
    X = data(200)
    here, there = mercat().fit(X), mercat(device=device).fit(X)
    assert there.correlation_ == pytest.approx(here.correlation_, abs=0.005)
    np.testing.assert_allclose(there.transform(X[:20]), there.embedding_[:20], atol=1e-3)
    tensor = mercat(device=device).fit_transform(torch.as_tensor(X).to(device))
    assert tensor.device.type == device.type
    np.testing.assert_allclose(to_numpy(tensor), there.embedding_, atol=1e-3)


def test_arrays_give_arrays_and_tensors_give_tensors(device):
    X = data()
    model = mercat(device=device).fit(X)
    assert isinstance(model.embedding_, np.ndarray)
    assert model.embedding_.dtype == np.float32
    assert isinstance(model.point_loss_, np.ndarray)
    tensor = torch.as_tensor(X).to(device)
    same = mercat(device=device).fit(tensor)
    assert isinstance(same.embedding_, torch.Tensor)
    assert same.embedding_.device.type == device.type
    assert same.point_loss_.shape == (len(X),)
    assert isinstance(model.transform(tensor), torch.Tensor)
    assert isinstance(same.transform(X), np.ndarray)
    np.testing.assert_allclose(to_numpy(same.embedding_), model.embedding_, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1, rtol=1e-6)


def test_a_tensor_in_memory_without_a_device_is_an_array(fitted):
    Y = fitted.transform(torch.as_tensor(data()))
    assert isinstance(Y, np.ndarray)
    np.testing.assert_array_equal(Y, fitted.embedding_)


def test_blocks_hardly_matter(device, monkeypatch):
    X = data()
    whole = mercat(device=device).fit(X)
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "700")
    parts = mercat(device=device).fit(X)
    apart = np.linalg.norm(parts.embedding_ - whole.embedding_, axis=1)
    assert np.median(apart) < 1e-5
    assert np.mean(apart > 0.01) < 0.01


def test_new_arrays_are_created_on_the_device(device):
    """A tensor created without a device would be on the default device, here one without memory."""
    X = torch.as_tensor(data()).to(device)
    torch.set_default_device("meta")
    try:
        model = mercat(device=device, tol=0.1, init="pca").fit(X)
        assert bool(torch.isfinite(model.transform(X)).all())
    finally:
        torch.set_default_device(None)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("name", ["gpu", "xpu", "meta", 7.5])
def test_device_must_be_valid(name):
    with pytest.raises(ValueError, match=r"^device must"):
        mercat(device=name).fit(data())


def test_a_missing_device_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"^device='cuda' .*found 0"):
        mercat(device="cuda").fit(data())
    with pytest.raises(RuntimeError, match=r"^device='mps'"):
        mercat(device="mps").fit(data())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(RuntimeError, match=r"^device='cuda:1' .*found 1"):
        find_device("cuda:1", None)


def test_out_of_memory_suggests_how_to_use_less(monkeypatch):
    model = mercat(device="cpu").fit(data())

    def too_much(*_):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr("mercat._solve.placement.LandmarkPlacer.place", too_much)
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "4000")
    with pytest.raises(MemoryError, match=r"4000 rows.*MERCAT_DEVICE_ROWS to 1000"):
        model.transform(data())
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "many")
    with pytest.raises(ValueError, match=r"^MERCAT_DEVICE_ROWS .*got 'many'"):
        model.transform(data())


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "algorithm1", "objective": "absolute"},
        {"metric": "precomputed"},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_features_without_device_support_are_refused(parameters, monkeypatch):
    named = f"^{next(iter(parameters))}"
    for X in (np.ones((5, 5)), torch.ones((5, 5))):
        with pytest.raises(ValueError, match=named):
            mercat(device="cpu", **parameters).fit(X)
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "1000")  # a missing GPU is not queried
    with FakeTensorMode():
        there = torch.ones((5, 5), device="cuda:0")
        with pytest.raises(ValueError, match=named):
            mercat(**parameters).fit(there)


def test_detail_on_mps_is_refused(monkeypatch):
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "1000")
    with FakeTensorMode(), pytest.raises(ValueError, match=r"^detail .*0\.3.*mps"):
        mercat(detail=0.3).fit(torch.ones((5, 5), device="mps:0"))


def test_a_map_of_distances_places_tensors_in_memory_only():
    X = data(60)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    model = mercat(n_spectral=None, metric="precomputed").fit(D)
    Y = model.transform(torch.as_tensor(D))  # in host memory, as NumPy's
    np.testing.assert_array_equal(Y, model.transform(D))
    with pytest.raises(ValueError, match=r"^metric"):
        model.set_params(device="cpu").transform(torch.as_tensor(D))


def test_a_tensor_on_another_gpu_is_not_resident(monkeypatch):
    monkeypatch.setenv("MERCAT_DEVICE_ROWS", "1000")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    with FakeTensorMode(), Workers(1) as workers:
        X = torch.ones((5, 5), device="cuda:0")
        for name, at_home in {"cuda:0": True, "cuda": True, None: True, "cuda:1": False}.items():
            assert open_source(X, name, workers)._resident == at_home


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (torch.ones(9), "^X .*got 1"),
        (
            torch.ones((9, 3), dtype=torch.complex64),
            "^X .*complex64",
        ),
        (torch.eye(9).to_sparse(), "^X .*dense"),
    ],
)
def test_invalid_tensors_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        check_tensor(X)


def test_tensors_with_nan_are_refused():
    X = torch.ones((9, 3))
    check_finite_tensor(X)
    X[7, 1] = torch.nan
    with pytest.raises(ValueError, match=r"X .* nan in row 7, column 1"):
        check_finite_tensor(X)


def test_too_few_rows_and_other_features(fitted):
    with pytest.raises(ValueError, match="n_samples=3"):
        mercat(device="cpu").fit(torch.ones((3, 2)))
    model = mercat(device="cpu").fit(torch.as_tensor(data()))
    with pytest.raises(ValueError, match=r"11 features.*12"):
        model.transform(torch.as_tensor(data()[:, 1:]))


# ------------------------------------------------------------------ measures


def on(device, array):
    """A tensor of double precision, if the device has it."""
    return torch.tensor(
        array, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device
    )


def scores(X, Y, labels=None) -> dict[str, tuple[float, float]]:
    report = metrics.report(X, Y, labels, n_points=300)
    return {name: (float(score), score.standard_error) for name, score in report.items()}


@pytest.fixture(scope="module")
def measured(fitted) -> dict[str, tuple[float, float]]:
    return scores(data().astype(np.float64), fitted.embedding_, data()[:, 0] > 0)


def assert_same_scores(found, expected, device) -> None:
    tolerance = 1e-3 if device.type == "mps" else 1e-6  # mps has no float64
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == pytest.approx(expected[name], abs=tolerance, nan_ok=True), name


def test_measures_of_tensors_are_those_of_arrays(device, fitted, measured):
    X, Y = (on(device, array) for array in (data(), fitted.embedding_))
    assert_same_scores(scores(X, Y, X[:, 0] > 0), measured, device)


@pytest.mark.parametrize("moved", ["X", "Y"])
def test_measures_run_on_the_device_of_either_argument(device, fitted, measured, moved):
    pair = {"X": data().astype(np.float64), "Y": fitted.embedding_}
    pair[moved] = on(device, pair[moved])
    assert_same_scores(scores(**pair, labels=data()[:, 0] > 0), measured, device)


@pytest.mark.parametrize("rows", [1, 7, 1 << 20])
def test_nearest_points_and_counts_do_not_depend_on_the_block_of_a_device(
    device, fitted, monkeypatch, rows
):
    monkeypatch.setattr("mercat.metrics._nearest.NUMBERS_ON_DEVICE", rows * 2500)
    X = torch.tensor(data(), device=device)
    found = metrics.density_preservation(X, fitted.embedding_, n_points=50)
    expected = metrics.density_preservation(data(), fitted.embedding_, n_points=50)
    assert float(found) == pytest.approx(float(expected), abs=1e-3)


def test_neighbourhoods_of_denoised_tensors(device, fitted):
    X = torch.tensor(data(), device=device)
    found, expected = (
        metrics.neighborhood_preservation(x, fitted.embedding_, n_spectral=4, n_points=100)
        for x in (X, data())
    )
    assert float(found) == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_measures_of_tensors_do_not_depend_on_the_scale(device, fitted, scale):
    X = torch.tensor(data(), device=device)
    plain, scaled = (
        metrics.distance_preservation(x, fitted.embedding_) for x in (X, X * float(scale))
    )
    assert float(scaled) == pytest.approx(float(plain), abs=1e-5)


@pytest.mark.parametrize("which", ["X", "Y"])
def test_measures_name_invalid_tensors(device, which):
    pair = {name: torch.randn(20, 3, device=device) for name in ("X", "Y")}
    pair[which][3, 1] = torch.nan
    with pytest.raises(ValueError, match=f"^{which} .*nan in row 3, column 1"):
        metrics.angle_preservation(**pair)
    pair[which] = pair[which][:2]
    pair[which][:] = 1
    with pytest.raises(ValueError, match=rf"^{which} .*\(2, 3\)"):
        metrics.angle_preservation(**pair)


def test_cpu_tensors_may_require_grad_and_be_half_precision():
    X = torch.tensor(data(60))
    expected = mercat().fit_transform(X)
    assert isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(mercat().fit_transform(X.clone().requires_grad_()), expected)
    narrow = X.to(torch.bfloat16)
    np.testing.assert_array_equal(
        mercat().fit_transform(narrow), mercat().fit_transform(narrow.float())
    )
