"""Metrics without coordinates: Manhattan, Hamming, Jaccard, functions, and distances to landmarks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.spatial.distance import euclidean as euclidean_distance
from sklearn.neighbors import KNeighborsClassifier
from test_cli import call

import mercat
from mercat import Mercat
from mercat._data.source import RowSource
from mercat._data.threads import Workers
from mercat._reduce import metrics
from mercat._reduce.metrics import fit_metric, root_distances

NAMES = {"manhattan": "cityblock", "hamming": "hamming", "jaccard": "jaccard"}


def table(n: int = 120, seed: int = 0) -> np.ndarray:
    """Answers of three groups of people to twelve questions, as small integers."""
    rng = np.random.default_rng(seed)
    likely = np.random.default_rng(1).dirichlet(0.3 * np.ones(3), size=(3, 12))
    return np.array(
        [[rng.choice(3, p=p) for p in likely[k % 3]] for k in range(n)], dtype=np.float64
    )


def reducer(X, metric, n_spectral=None):
    with Workers(1) as workers:
        return fit_metric(RowSource(X, workers), n_spectral, metric=metric)


@pytest.mark.parametrize("metric", NAMES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_squared_lengths_are_the_distances_of_the_metric(metric, form):
    X = table()
    given = X.astype(bool) if metric == "jaccard" else X
    D = cdist(given, given, NAMES[metric])
    np.testing.assert_allclose(root_distances(form(X), X, metric) ** 2, D, atol=1e-12)
    fitted = reducer(form(X), metric)
    X_hat = fitted.project(form(X)) * fitted.scaling.spread * fitted.unit
    np.testing.assert_allclose(
        cdist(X_hat, X_hat, "sqeuclidean"), D, atol=1e-6
    )  # exact: nothing is lost


def test_empty_rows_have_distance_zero():
    X = np.array([[0.0, 0, 0], [0, 0, 0], [1, 0, 2]])
    expected = [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    np.testing.assert_array_equal(root_distances(X, X, "jaccard"), expected)


def test_a_sample_of_landmarks_places_all_rows_of_their_space(monkeypatch):
    monkeypatch.setattr(metrics, "_LANDMARKS_OF_FUNCTIONS", 30)
    X = np.random.default_rng(0).normal(size=(200, 5))
    fitted = reducer(X, euclidean_distance)
    assert fitted.points.shape == (30, 5)
    X_hat = fitted.project(X) * fitted.scaling.spread * fitted.unit
    np.testing.assert_allclose(cdist(X_hat, X_hat), cdist(X, X), atol=1e-8)


def test_functions_and_distances_to_landmarks_give_their_geometry(digits_few):
    X = digits_few
    plain = Mercat(random_state=0, n_spectral=None).fit(X)
    by_function = Mercat(random_state=0, n_spectral=None, metric=euclidean_distance).fit(X)
    assert by_function.loss_ == pytest.approx(plain.loss_, rel=1e-3)
    landmarks = Mercat(random_state=0, n_spectral=None, metric="precomputed")
    landmarks.fit(cdist(X, X[:80]))
    assert landmarks.correlation_ == pytest.approx(plain.correlation_, abs=0.02)
    Y = landmarks.transform(cdist(X, X[:80]))
    assert mercat.metrics.angle_preservation(X, Y) > 0.9 * mercat.metrics.angle_preservation(
        X, plain.embedding_
    )


@pytest.fixture(scope="module")
def digits_few():
    from sklearn.datasets import load_digits

    return load_digits().data[:150]


@pytest.mark.parametrize("metric", [*NAMES, euclidean_distance])
def test_maps_and_new_rows(metric):
    X = table()
    model = Mercat(metric=metric, random_state=0).fit(X)
    assert model.components_ is None
    Y = model.transform(X)
    assert np.median(np.degrees(np.arccos(np.clip((Y * model.embedding_).sum(1), -1, 1)))) < 3
    new = table(30, seed=5)
    placed = model.transform(new)
    np.testing.assert_array_equal(placed[4:9], model.transform(new[4:9]))  # for any batch
    kind = np.arange(120) % 3
    assert mercat.metrics.knn_accuracy(model.embedding_, kind) > 0.7
    voters = KNeighborsClassifier(9).fit(model.embedding_, kind)
    assert voters.score(placed, np.arange(30) % 3) > 0.7


@pytest.mark.parametrize("metric", NAMES)
def test_many_rows_and_detail(metric):
    X = table(1300)
    model = Mercat(metric=metric, solver="landmarks", random_state=0).fit(X)
    assert model.correlation_ > 0.4
    detailed = Mercat(metric=metric, random_state=0, detail=0.3).fit(X[:200])
    assert np.isfinite(detailed.embedding_).all()


@pytest.mark.parametrize("metric", NAMES)
def test_models_are_saved_and_loaded(metric, tmp_path):
    X = table()
    model = Mercat(metric=metric, random_state=0).fit(X)
    again = mercat.load(mercat.save(model, tmp_path / "map.mercat"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_models_of_distances_to_landmarks_are_saved_and_those_of_functions_refused(tmp_path):
    X = table()
    D = cdist(X, X[:50])
    model = Mercat(metric="precomputed", random_state=0).fit(D)
    again = mercat.load(mercat.save(model, tmp_path / "map.mercat"))
    np.testing.assert_array_equal(again.transform(D), model.transform(D))
    model = Mercat(metric=euclidean_distance, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"^metric "):
        mercat.save(model, tmp_path / "function.mercat")


@pytest.mark.parametrize(
    ("metric", "rule"),
    [
        (lambda a, b: -1.0, "got -1"),
        (lambda a, b: np.nan, "got nan"),
        (lambda a, b: 1e200 * abs(a[0] - b[0]), "below 1e150"),
        (lambda a, b: abs(a[0] - 2 * b[0]), "symmetric"),
        (lambda a, b: 1.0, "0 for equal rows"),
        ("chebyshev", "'euclidean'.*got 'chebyshev'"),
    ],
)
def test_bad_metrics_are_refused(metric, rule):
    with pytest.raises(ValueError, match=f"^metric .*{rule}"):
        Mercat(metric=metric).fit(table(20))


def test_distances_passed_as_data_are_noticed():
    X = np.random.default_rng(0).normal(size=(30, 4))
    D = cdist(X, X)
    for distances in (D, D.astype(np.float32), D + 1e-12 * np.tri(30, k=-1)):
        with pytest.warns(UserWarning, match=r"^X looks like a matrix of distances.*'precomputed'"):
            Mercat(random_state=0, n_jobs=1).fit(distances)


@pytest.mark.parametrize(
    "change",
    [
        lambda D: D + np.eye(30),
        lambda D: -D,
        lambda D: np.tril(D),
        lambda D: 1e-12 * np.tri(30) @ D * (1 - np.eye(30)),
        lambda D: np.where(np.quantile(D, 0.3) > D, D, 0),  # a graph
        lambda D: D[:, :-1],
        sparse.csr_array,
    ],
)
def test_other_data_do_not_look_like_distances(change):
    X = np.random.default_rng(0).normal(size=(30, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mercat.TrustWarning)
        Mercat(random_state=0, n_jobs=1).fit(change(cdist(X, X)))
        Mercat(random_state=0, n_jobs=1, metric="precomputed").fit(cdist(X, X))


def test_bad_distances_to_landmarks_are_refused():
    X = table()
    D = cdist(X, X[20:70])  # whose first rows are not the landmarks
    with pytest.raises(ValueError, match=r"^X .*symmetric"):
        Mercat(metric="precomputed").fit(D)
    with pytest.raises(ValueError, match=r"^X .*\(40, 120\)"):
        Mercat(metric="precomputed").fit(cdist(X[:40], X))


def test_a_column_that_determines_all_distances_is_reported():
    X = table()
    X[:, 2] *= 10_000
    with pytest.warns(mercat.TrustWarning, match=r"Column 2 .*99%"):
        Mercat(metric="manhattan", random_state=0).fit(X)


def test_the_command_line_accepts_the_metrics(tmp_path):
    np.savetxt(tmp_path / "answers.csv", table(), delimiter=",")
    code, _, said = call(
        "embed",
        tmp_path / "answers.csv",
        "--no-header",
        "--metric",
        "hamming",
        "-o",
        tmp_path / "map.csv",
    )
    assert code == 0, said


@pytest.mark.parametrize("metric", ["manhattan", "jaccard"])
def test_same_bits_on_any_number_of_threads(metric):
    X = table(1100)
    sampled = {"metric": metric, "solver": "landmarks", "random_state": 0}
    one, two = (Mercat(**sampled, n_jobs=k).fit(X) for k in (1, 2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(one.transform(X[:70]), two.transform(X[:70]))
