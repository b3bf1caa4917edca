"""Denoising against NumPy's SVD, scikit-learn's PCA and the authors' ScreeNOT."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA

from mercat._data import source as _rows
from mercat._data.threads import Workers
from mercat._reduce import components
from mercat._reduce.components import fit_components
from mercat._reduce.distances import fit_distances
from mercat._reduce.rank import screenot_rank, screenot_threshold
from mercat._reduce.reducer import denoise, project_all, project_rows


def low_rank(n: int, d: int, rank: int = 6, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) * np.arange(rank, 0, -1) @ rng.normal(size=(rank, d))
    return X + noise * rng.normal(size=(n, d)) + 5 * rng.normal(size=d)


def fit(X, n_spectral=5, metric="euclidean", n_jobs=2):
    with Workers(n_jobs) as workers:
        return fit_components(_rows.RowSource(X, workers), n_spectral, metric=metric)


SHAPES = {"tall": (300, 40), "wide": (60, 200), "large": (130, 120)}


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "float32", "fortran", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_components_equal_those_of_pca(shape, kind, monkeypatch):
    """By all three methods: covariance, Gram matrix and randomised (forced by a low limit)."""
    if shape == "large":
        monkeypatch.setattr(components, "_SMALL", 30)
    monkeypatch.setattr(_rows, "VALUES_PER_BLOCK", 4000)
    X = low_rank(*SHAPES[shape])
    if kind == "uint8":
        X = np.clip(4 * X + 100, 0, 255).astype(np.uint8)
    dense = X.astype(np.float64)
    given = {
        "csr": sp.csr_array,
        "csc": lambda A: sp.csr_array(sp.csc_array(A)),
        "float32": lambda A: A.astype(np.float32),
        "fortran": np.asfortranarray,
    }.get(kind, lambda A: A)(X)
    spectral = fit(given)
    pca = PCA(5, svd_solver="full").fit(dense)
    signs = np.sign(np.sum(pca.components_ * spectral.components, axis=1))
    tolerance = 1e-3 if kind in ("float32", "uint8") else 1e-5
    np.testing.assert_allclose(
        spectral.components, signs[:, None] * pca.components_, atol=tolerance
    )
    np.testing.assert_allclose(spectral.mean, dense.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spectral.explained_variance, pca.explained_variance_, rtol=1e-3)
    with Workers(1) as workers:
        X_hat = project_all(spectral, given, workers) * spectral.unit
    np.testing.assert_allclose(
        X_hat, pca.transform(dense) * signs, atol=5 * tolerance * np.abs(dense).max()
    )


def gives_up(*_, **__):
    raise np.linalg.LinAlgError("Internal Error.")


def finds_too_few(matrix, **__):
    return np.ones(1), np.eye(len(matrix))[:, :1]


@pytest.mark.parametrize("failure", [gives_up, finds_too_few])
def test_components_are_found_if_the_iterative_solver_fails(failure, monkeypatch):
    """If many eigenvalues are equal, LAPACK may find too few of them and report no error."""
    X = np.random.default_rng(0).normal(size=(50, 6))
    expected = fit(X, 3)
    monkeypatch.setattr("scipy.linalg.eigh", failure)
    found = fit(X, 3)
    np.testing.assert_allclose(found.components, expected.components, atol=1e-12)
    np.testing.assert_allclose(found.explained_variance, expected.explained_variance)


def test_signs_are_fixed_by_the_largest_entry():
    components = fit(low_rank(200, 30)).components
    largest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(5), largest] > 0).all()


def test_x_hat_has_unit_spread_at_any_scale():
    X = low_rank(200, 30)
    for scale in (1e-30, 1.0, 1e30):
        with Workers(1) as workers:
            X_hat = project_all(fit(scale * X), scale * X, workers)
        assert np.sqrt(np.mean(np.sum(X_hat**2, axis=1))) == pytest.approx(1, rel=1e-6)


def test_huge_single_precision_does_not_overflow():
    X = (low_rank(100, 20) * 1e36).astype(np.float32)
    with Workers(1) as workers:
        assert np.isfinite(project_all(fit(X), X, workers)).all()


def test_directions_without_variance_are_dropped():
    X = np.random.default_rng(0).normal(size=(50, 2)) @ np.random.default_rng(1).normal(
        size=(2, 10)
    )
    assert fit(X, n_spectral=8).components.shape == (2, 10)
    assert fit(np.ones((10, 4))).components.shape == (1, 4)


def test_n_spectral_none_only_shifts_and_scales():
    X = low_rank(50, 7)
    X_hat = denoise(X, None)
    ratio = pdist(X) / pdist(X_hat)
    np.testing.assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_metrics_are_euclidean_distances_of_prepared_rows(metric, sparse):
    X = np.abs(low_rank(60, 20)) * (np.random.default_rng(0).random((60, 20)) < 0.5)
    given = sp.csr_array(X) if sparse else X
    spectral = fit(given, n_spectral=20, metric=metric)
    with Workers(1) as workers:
        X_hat = project_all(spectral, given, workers) * spectral.unit
    np.testing.assert_allclose(pdist(X_hat) ** 2 / 2, pdist(X, metric), atol=1e-6)


def test_zero_rows_go_to_the_origin_of_the_metric():
    X = np.vstack([np.eye(4), np.zeros((1, 4)), np.full((1, 4), 7.0)])
    rows, offset = components.prepare_rows(X, "correlation")
    np.testing.assert_allclose((rows - offset[:, None])[4:], 0, atol=1e-12)


def test_sparse_is_never_made_dense(monkeypatch):
    """Only means and thin products are dense: no block of the matrix is converted to an array."""
    X = sp.random_array((3000, 2000), density=0.01, rng=np.random.default_rng(0), format="csr")
    monkeypatch.setattr(components, "_SMALL", 100)
    monkeypatch.setattr(sp.csr_array, "toarray", None)
    spectral = fit(X)
    assert project_rows(spectral, X[:10]).shape == (10, 5)


@pytest.mark.parametrize("n", [1, 5, 511, 513])
def test_projection_of_a_row_does_not_depend_on_the_others(n):
    X = low_rank(1100, 30)
    spectral = fit(X)
    whole = project_rows(spectral, X)
    np.testing.assert_array_equal(project_rows(spectral, X[7 : 7 + n]), whole[7 : 7 + n])


def test_threads_do_not_change_the_bits(monkeypatch):
    monkeypatch.setattr(_rows, "VALUES_PER_BLOCK", 2000)
    X = low_rank(500, 30)
    one, four = fit(X, n_jobs=1), fit(X, n_jobs=4)
    np.testing.assert_array_equal(one.components, four.components)


# ------------------------------------------------------------------ ScreeNOT


@pytest.mark.parametrize(("n", "d", "rank"), [(200, 100, 3), (80, 300, 8), (150, 150, 0)])
@pytest.mark.parametrize("k", [10, 25])
def test_threshold_equals_that_of_the_authors_implementation(n, d, rank, k):
    screenot = pytest.importorskip("screenot")
    X = (
        low_rank(n, d, max(rank, 1), noise=1.0)
        if rank
        else np.random.default_rng(0).normal(size=(n, d))
    )
    X = X - X.mean(axis=0)
    _, expected, expected_rank = screenot.adaptiveHardThresholding(X, k)
    values = np.linalg.svd(X, compute_uv=False)
    threshold = screenot_threshold(values, (n, d), max_rank=k)
    assert threshold == pytest.approx(expected, abs=2e-5)
    assert np.sum(values > threshold) == expected_rank


def test_threshold_scales_with_the_data():
    """The authors' bisection has an absolute tolerance; ours is relative."""
    values = np.linalg.svd(np.random.default_rng(0).normal(size=(100, 60)), compute_uv=False)
    expected = screenot_threshold(values, (100, 60))
    for scale in (1e-20, 1e20):
        assert screenot_threshold(scale * values, (100, 60)) == pytest.approx(scale * expected)


@pytest.mark.parametrize("shape", [(400, 60), (100, 300)])
def test_auto_finds_the_rank_of_the_signal(shape):
    X = low_rank(*shape, rank=4, noise=0.5)
    assert fit(X, "auto").components.shape[0] == 4
    assert fit(sp.csr_array(X), "auto").components.shape[0] == 4


def test_auto_on_a_sample_of_rows_where_both_sides_are_large(monkeypatch):
    monkeypatch.setattr(components, "_SMALL", 100)
    assert fit(low_rank(400, 200, rank=4, noise=0.5), "auto").components.shape[0] == 4


def test_rank_is_at_least_two_if_there_are_two_values():
    assert screenot_rank(np.array([3.0, 2.0]), (10, 2)) == 2
    assert screenot_rank(np.array([3.0]), (10, 1)) == 1
    assert screenot_rank(np.zeros(5), (10, 5)) == 2


# ------------------------------------------------------------------ precomputed distances


def test_distances_give_the_same_geometry_as_the_points():
    X = low_rank(60, 5)
    D = squareform(pdist(X))
    spectral = fit_distances(D, 50)
    X_hat = spectral.project(D) * spectral.unit * spectral.spread
    assert X_hat.shape[1] == 5
    np.testing.assert_allclose(pdist(X_hat), pdist(X), rtol=1e-6)
    np.testing.assert_allclose(
        np.sort(spectral.explained_variance)[::-1], PCA().fit(X).explained_variance_
    )


def test_new_distances_give_the_positions_of_the_points():
    X = low_rank(70, 4)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    spectral = fit_distances(D[:60, :60], 50)
    X_hat = np.vstack([spectral.project(D[:60, :60]), spectral.project(D[60:, :60])])
    np.testing.assert_allclose(pdist(X_hat) * spectral.unit * spectral.spread, pdist(X), rtol=1e-6)


def test_auto_finds_the_rank_from_distances():
    X = low_rank(200, 40, rank=3, noise=0.3)
    assert fit_distances(squareform(pdist(X)), "auto").axes.shape[1] in (3, 4)
