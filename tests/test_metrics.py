"""Measures against values by hand, SciPy and scikit-learn, and their standard errors."""

import json
import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csc_array, csr_array
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, pearsonr, spearmanr
from sklearn import manifold
from sklearn.neighbors import KNeighborsClassifier

from mercat import Mercat, metrics
from mercat._math.sphere import geodesic
from mercat.metrics import (
    Report,
    Score,
    _nearest,
    _report,
    angle_preservation,
    centroid_preservation,
    continuity,
    density_preservation,
    distance_preservation,
    knn_accuracy,
    neighborhood_preservation,
    random_triplet_accuracy,
    report,
    trustworthiness,
)

PAIRED = [
    angle_preservation,
    density_preservation,
    distance_preservation,
    neighborhood_preservation,
    random_triplet_accuracy,
    continuity,
    trustworthiness,
]
BY_POINT = [
    angle_preservation,
    density_preservation,
    neighborhood_preservation,
    continuity,
    trustworthiness,
]


def unit(Y):
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def clouds(rng):
    """Two clusters of unequal density in 6 dimensions, and an imperfect map on the sphere."""
    X = rng.normal(size=(120, 6))
    X[:40] = 0.3 * X[:40] + 3
    return X, unit(X[:, :3] + 0.2 * rng.normal(size=(120, 3)))


def all_angles(X, angle):
    n = len(X)
    triples = [(i, j, k) for i in range(n) for j in range(n) for k in range(j) if i not in (j, k)]
    return np.array([angle(X[i], X[j], X[k]) for i, j, k in triples])


def euclidean_angle(x, y, z):
    a, b = y - x, z - x
    return np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))


def spherical_angle(x, y, z):
    """The paper's formula: the angle between the normals of two planes through the centre."""
    a, b = np.cross(x, y), np.cross(x, z)
    return np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))


# --- angle preservation ---------------------------------------------------------------------


def test_angles_match_scipy_on_all_triples(rng):
    X, Y = rng.normal(size=(12, 4)), unit(rng.normal(size=(12, 3)))
    in_X = all_angles(X, euclidean_angle)
    score = angle_preservation(X, Y)
    assert score == pytest.approx(pearsonr(in_X, all_angles(Y, spherical_angle))[0])
    assert score.standard_error == 0
    flat = angle_preservation(X, Y, geometry="euclidean")
    assert flat == pytest.approx(pearsonr(in_X, all_angles(Y, euclidean_angle))[0])


def test_angles_worked_by_hand():
    # A 3-4-5 triangle against the octant of the sphere, whose three angles are all right.
    X = np.array([[0.0, 0], [3, 0], [0, 4]])
    assert np.isnan(angle_preservation(X, np.eye(3)))
    # Against an isosceles right triangle with the right angle at another corner.
    Y = np.array([[1.0, 0], [0, 0], [0, 1]])
    in_X = [np.pi / 2, np.arctan2(4, 3), np.arctan2(3, 4)]
    in_Y = [np.pi / 4, np.pi / 2, np.pi / 4]
    assert angle_preservation(X, Y) == pytest.approx(pearsonr(in_X, in_Y)[0])


def test_angles_leave_out_coincident_and_antipodal_points(rng):
    X, Y = rng.normal(size=(10, 3)), unit(rng.normal(size=(10, 3)))
    X_more, Y_more = np.vstack([X, X[:1]]), np.vstack([Y, -Y[1:2]])

    def defined(i, j):
        return {i, j} != {0, 10} and {i, j} != {1, 10}

    triples = [
        (i, j, k)
        for i in range(11)
        for j in range(11)
        for k in range(j)
        if i not in (j, k) and defined(i, j) and defined(i, k)
    ]
    in_X = [euclidean_angle(*X_more[[i, j, k]]) for i, j, k in triples]
    in_Y = [spherical_angle(*Y_more[[i, j, k]]) for i, j, k in triples]
    assert angle_preservation(X_more, Y_more) == pytest.approx(pearsonr(in_X, in_Y)[0])


def test_angles_undefined_everywhere_are_nan():
    assert np.isnan(angle_preservation(np.ones((5, 2)), np.eye(5)))


def test_angles_between_near_points_are_accurate(rng):
    # A patch of 1e-7 rad is as good as flat: its angles are those of its tangent plane.
    P = rng.normal(size=(20, 2))
    patch = unit(np.column_stack([1e-7 * P, np.ones(20)]))
    assert angle_preservation(P, patch) == pytest.approx(1, abs=1e-8)


# --- distances ------------------------------------------------------------------------------


def test_distances_match_scipy(clouds):
    X, Y = clouds
    i, j = np.triu_indices(len(X), 1)
    score = distance_preservation(X, Y)
    assert score == pytest.approx(spearmanr(pdist(X), geodesic(Y[i], Y[j]))[0])
    assert score.standard_error == 0
    flat = distance_preservation(X, Y[:, :2])
    assert flat == pytest.approx(spearmanr(pdist(X), pdist(Y[:, :2]))[0])


def test_distances_with_ties_match_scipy(rng):
    X, Y = rng.integers(3, size=(30, 2)), rng.integers(3, size=(30, 2))
    assert distance_preservation(X, Y) == pytest.approx(spearmanr(pdist(X), pdist(Y))[0])


def test_triplets_match_enumeration(rng):
    X, Y = rng.integers(4, size=(15, 2)), unit(rng.normal(size=(15, 3)))
    D = squareform(pdist(X))
    E = geodesic(Y[:, None], Y[None])
    agree = [
        np.sign(D[i, j] - D[i, k]) == np.sign(E[i, j] - E[i, k])
        for i in range(15)
        for j in range(15)
        for k in range(j)
        if i not in (j, k)
    ]
    assert random_triplet_accuracy(X, Y) == pytest.approx(np.mean(agree))


def test_standard_error_of_triplets_is_binomial(many):
    score = random_triplet_accuracy(*many, n_triplets=400)
    assert score.standard_error == pytest.approx(np.sqrt(score * (1 - score) / 400))


def test_random_tuples_are_distinct_and_uniform():
    from mercat.metrics._distance import _random_tuples

    i, j, k = _random_tuples(4, 3, 24_000, np.random.default_rng(0))
    assert np.all((i != j) & (j != k) & (k != i))
    _, counts = np.unique(100 * i + 10 * j + k, return_counts=True)
    assert len(counts) == 24  # 4 * 3 * 2 ordered triples
    assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))


def test_centroids_match_scipy(rng):
    X, Y = rng.normal(size=(50, 4)), unit(rng.normal(size=(50, 3)))
    labels = np.array(list("abcde"))[rng.integers(5, size=50)]
    C = np.array([X[labels == c].mean(0) for c in "abcde"])
    E = unit(np.array([Y[labels == c].mean(0) for c in "abcde"]))
    i, j = np.triu_indices(5, 1)
    expected = spearmanr(pdist(C), np.arccos(np.sum(E[i] * E[j], axis=1)))[0]
    assert centroid_preservation(X, Y, labels) == pytest.approx(expected)
    assert centroid_preservation(X, Y, pd.Categorical(labels)) == pytest.approx(expected)


def test_centroids_of_two_classes_have_no_order(rng):
    X = rng.normal(size=(10, 2))
    assert np.isnan(centroid_preservation(X, X, [0] * 5 + [1] * 5))


def test_centroid_of_antipodes_is_refused():
    Y = np.vstack([np.eye(3), -np.eye(3)])
    with pytest.raises(ValueError, match="sum to zero"):
        centroid_preservation(Y, Y, [0, 1, 2, 0, 1, 2])


# --- neighbourhoods -------------------------------------------------------------------------


def test_jaccard_worked_by_hand():
    X = np.array([[0.0], [1], [3], [7]])
    Y = np.array([[0.0], [7], [3], [1]])
    # Two nearest in X: {1,2} {0,2} {1,0} {2,1}; in Y: {3,2} {2,3} {3,0} {0,2}.
    assert neighborhood_preservation(X, Y, k=2) == pytest.approx(1 / 3)


def test_neighbors_on_the_sphere_are_geodesic(clouds):
    X, Y = clouds
    k = 10
    D = squareform(pdist(X))
    E = geodesic(Y[:, None], Y[None])
    np.fill_diagonal(D, np.inf)
    np.fill_diagonal(E, np.inf)
    jaccard = []
    for d, e in zip(D, E, strict=True):
        a, b = set(np.argsort(d)[:k]), set(np.argsort(e)[:k])
        jaccard.append(len(a & b) / len(a | b))
    assert neighborhood_preservation(X, Y, k=k) == pytest.approx(np.mean(jaccard))


def test_many_duplicates_are_not_their_own_neighbors():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    # Nine copies at distance 0: a search for the nearest four may miss the point itself.
    assert neighborhood_preservation(X, X, k=3) == 1
    assert neighborhood_preservation(X, X, k=9) == 1


def test_neighborhood_denoises_the_data(rng):
    latent = rng.normal(size=(100, 2)) * 20
    X = np.hstack([latent, np.zeros((100, 98))]) + rng.normal(size=(100, 100)) * 3
    plain = neighborhood_preservation(X, latent, k=10)
    assert neighborhood_preservation(X, latent, k=10, n_spectral=2) > plain + 0.1
    assert neighborhood_preservation(X, latent, k=10, n_spectral="auto") > plain + 0.1


def test_trustworthiness_matches_sklearn(clouds):
    X, Y = clouds
    expected = manifold.trustworthiness(X, Y, n_neighbors=12)
    assert trustworthiness(X, Y, k=12) == pytest.approx(expected)
    flat = manifold.trustworthiness(X, Y[:, :2], n_neighbors=12)
    assert trustworthiness(X, Y[:, :2], k=12) == pytest.approx(flat)


def test_continuity_is_trustworthiness_with_swapped_arguments(clouds):
    X, Y = clouds
    expected = manifold.trustworthiness(Y, X, n_neighbors=12)
    assert continuity(X, Y, k=12) == pytest.approx(expected)


def test_knn_accuracy_matches_sklearn(clouds, rng):
    _, Y = clouds
    labels = np.array(["b", "a", "c"])[rng.integers(3, size=len(Y))]
    hits = []
    for i in range(len(Y)):
        others = np.arange(len(Y)) != i
        classifier = KNeighborsClassifier(4).fit(Y[others], labels[others])
        hits.append(classifier.predict(Y[i : i + 1])[0] == labels[i])
    assert knn_accuracy(Y, labels, k=4) == pytest.approx(np.mean(hits))


# --- density --------------------------------------------------------------------------------


def test_density_matches_its_definition(clouds):
    X, Y = clouds
    k = 7
    densities = []
    for D in (squareform(pdist(X)), geodesic(Y[:, None], Y[None])):
        radius = np.mean(np.sort(D, axis=1)[:, k])
        densities.append(np.sum(radius >= D, axis=1) - 1)
    assert density_preservation(X, Y, k=k) == pytest.approx(pearsonr(*densities)[0])


def test_density_worked_by_hand():
    # k = 1: distances 1, 1, 1, 2 in X, radius 1.25; densities 1, 2, 1, 0.
    X = np.array([[0.0], [1], [2], [4]])
    # Distances 1, 1, 2, 1 in Y, radius 1.25; densities 1, 1, 1, 1 ... and 0 for the one apart.
    Y = np.array([[0.0], [1], [5], [3]])
    assert density_preservation(X, Y, k=1) == pytest.approx(pearsonr([1, 2, 1, 0], [1, 1, 0, 0])[0])


def test_equal_densities_have_no_correlation():
    angle = 2 * np.pi * np.arange(40) / 40
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 1e4
    assert np.isnan(density_preservation(ring, ring, k=4))


# --- invariance -----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", PAIRED)
def test_moving_data_or_turning_the_sphere_changes_nothing(measure, clouds, rng):
    X, Y = clouds
    small = {"k": 10} if measure is neighborhood_preservation else {}
    score = measure(X, Y, **small)
    turn = ortho_group.rvs(3, random_state=1)
    assert measure(X, Y @ turn, **small) == pytest.approx(score, abs=1e-9)
    for moved in (1e3 * X + 1e4, 1e-200 * X, 1e200 * X, X @ ortho_group.rvs(6, random_state=2)):
        assert measure(moved, Y, **small) == pytest.approx(score, abs=1e-9)
    order = rng.permutation(len(X))
    again = measure(X[order], Y[order], **small)
    assert again == pytest.approx(score, abs=4 * score.standard_error + 1e-9)


@pytest.mark.parametrize("measure", PAIRED)
def test_a_perfect_embedding_scores_one(measure, clouds):
    X = clouds[0]
    assert measure(X, 5 * X - 2) == pytest.approx(1)


@pytest.mark.parametrize("measure", PAIRED)
def test_float32_and_frames_give_the_same(measure, clouds):
    X, Y = (np.asarray(a, dtype=np.float32) for a in clouds)
    score = measure(X.astype(np.float64), Y.astype(np.float64), geometry="sphere")
    assert measure(pd.DataFrame(X), pd.DataFrame(Y)) == pytest.approx(score, abs=1e-6)


# --- sampling -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 5))
    X[:400] = 0.3 * X[:400] + 2
    return X, unit(X[:, :3] + 0.3 * rng.normal(size=(1200, 3)))


@pytest.mark.parametrize(
    ("measure", "few", "every"),
    [
        *[(measure, {"n_points": 400}, {"n_points": None}) for measure in BY_POINT],
        (angle_preservation, {"n_points": None, "n_legs": 6}, {"n_points": None, "n_legs": 200}),
        (distance_preservation, {"n_pairs": 5000}, {}),
        (random_triplet_accuracy, {"n_triplets": 2000}, {"n_triplets": 500_000}),
    ],
)
def test_standard_error_is_the_deviation_over_samples(measure, few, every, many):
    truth = measure(*many, **every)
    scores = [measure(*many, **few, random_state=seed) for seed in range(20)]
    errors = np.array([score.standard_error for score in scores])
    assert np.all(errors > 0)
    assert np.all(np.abs(np.array(scores) - truth) < 4 * np.hypot(errors, truth.standard_error))
    # The deviation of 20 scores is known to 16 %: between 1/2 and 2 at four times that.
    assert 0.5 < np.std(scores, ddof=1) / np.mean(errors) < 2
    assert measure(*many, **few, random_state=5) == scores[5]


def test_accuracy_on_a_sample_is_close_to_that_of_all_points(many):
    X, Y = many
    labels = np.arange(len(X)) < 400
    truth = knn_accuracy(Y, labels)
    some = knn_accuracy(Y, labels, n_points=300)
    assert truth.standard_error == 0 < some.standard_error
    assert abs(some - truth) < 4 * some.standard_error


def test_blocks_do_not_change_counts(clouds, monkeypatch):
    from mercat.metrics import _nearest

    X, Y = clouds
    whole = trustworthiness(X, Y), density_preservation(X, Y)
    monkeypatch.setattr(_nearest, "ROWS", 7)
    monkeypatch.setattr(_nearest, "COLUMNS", 11)
    assert (trustworthiness(X, Y), density_preservation(X, Y)) == pytest.approx(whole, abs=1e-12)


def test_blocks_do_not_change_distances(clouds, monkeypatch):
    from mercat.metrics import _points

    X, Y = clouds
    whole = distance_preservation(X, Y)
    monkeypatch.setattr(_points, "BLOCK", 100)
    assert distance_preservation(X, Y) == whole


# --- geometry and bad input -----------------------------------------------------------------


def test_auto_geometry_depends_on_the_norms_of_rows(clouds):
    X, Y = clouds
    on_sphere = distance_preservation(X, Y, geometry="sphere")
    in_space = distance_preservation(X, Y, geometry="euclidean")
    assert distance_preservation(X, Y) == on_sphere
    assert distance_preservation(X, 1.01 * Y) == pytest.approx(in_space, abs=1e-6)
    assert density_preservation(X, Y) != density_preservation(X, Y, geometry="euclidean")


@pytest.mark.parametrize("rounded", [lambda Y: Y.astype(np.float16), lambda Y: Y.round(3)])
def test_a_rounded_map_is_measured_on_the_sphere(clouds, rounded):
    X, Y = clouds
    assert angle_preservation(X, rounded(Y)) == pytest.approx(angle_preservation(X, Y), abs=1e-3)


@pytest.mark.parametrize("measure", PAIRED)
def test_bad_input_is_named(measure, clouds):
    X, Y = clouds
    with pytest.raises(ValueError, match=r"X and Y.*120 and 119"):
        measure(X, Y[:-1])
    with pytest.raises(ValueError, match=r"^Y .*0\.5"):
        measure(X, 1.5 * Y, geometry="sphere")
    with pytest.raises(ValueError, match=r'^Y .*geometry="sphere", got 2'):
        measure(X, Y[:, :2], geometry="sphere")
    with pytest.raises(ValueError, match=r"^geometry .*got 'ball'"):
        measure(X, Y, geometry="ball")
    with pytest.raises(ValueError, match=r"X .*NaN"):
        measure(np.where(X > 2, np.nan, X), Y)
    with pytest.raises(ValueError, match=r"Y .*infinity"):
        measure(X, np.where(Y > 0.9, np.inf, Y))


@pytest.mark.parametrize("measure", [*PAIRED, report])
def test_a_fitted_model_is_measured_by_its_embedding(measure, clouds):
    X, Y = clouds
    model = Mercat()
    with pytest.raises(ValueError, match=r"^Y must be fitted, got Mercat without embedding_"):
        measure(X, model)
    model.embedding_ = Y
    assert measure(X, model) == measure(X, Y)


def test_measures_of_the_embedding_alone_take_models(clouds):
    labels = np.arange(120) % 4
    model = Mercat()
    model.embedding_ = clouds[1]
    for measure in (knn_accuracy, metrics.class_connectivity):
        assert measure(model, labels) == measure(clouds[1], labels)
    assert metrics.false_structure(model) == metrics.false_structure(clouds[1])
    some = np.where(labels > 2, None, labels)
    assert report(clouds[0], model, some) == report(*clouds, some)


@pytest.mark.parametrize("measure", [*PAIRED, metrics.torn_neighbors])
@pytest.mark.parametrize("form", [csr_array, coo_matrix, csc_array])
def test_sparse_data_are_measured_like_dense_ones(measure, form, rng):
    X = rng.gamma(1.0, size=(150, 30)) * (rng.random((150, 30)) < 0.2)
    Y = unit(X[:, :3] + 0.1 * rng.normal(size=(150, 3)))
    for scale in (1, 1e-200):
        np.testing.assert_allclose(measure(form(scale * X), Y), measure(X, Y), rtol=1e-9)


def test_a_report_takes_sparse_data(rng):
    X = rng.gamma(1.0, size=(1500, 40)) * (rng.random((1500, 40)) < 0.3)
    Y = unit(X[:, :3] + rng.normal(size=(1500, 3)))
    labels = np.where(X[:, 4] > 2, None, X[:, 4].astype(int))
    for options in {"labels": labels}, {"n_spectral": 5}, {"n_points": 30}:
        expected = report(X, Y, **options)
        found = report(csr_array(X), Y, **options)
        assert found == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_wide_sparse_data_are_measured_in_bounded_memory(rng):
    X = csr_array(
        (rng.random(40_000), (rng.integers(0, 2000, 40_000), rng.integers(0, 100_000, 40_000))),
        (2000, 100_000),
    )
    Y = rng.normal(size=(2000, 2))
    tracemalloc.start()
    try:
        report(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400e6  # X in full is 1.6 GB


def test_faulty_sparse_data_are_named(clouds):
    X, Y = clouds
    with pytest.raises(TypeError, match=r"^Y must be dense"):
        report(X, csr_array(Y))
    with pytest.raises(ValueError, match=r"^X must have at least 3 rows"):
        report(csr_array(X[:2]), Y[:2])
    with pytest.raises(ValueError, match=r"^X must have no NaN"):
        report(csr_array(np.where(X > 2, np.nan, X)), Y)
    with pytest.raises(ValueError, match=r"^X must hold real numbers"):
        report(csr_array(X * 1j), Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Y: neighborhood_preservation(X, Y, k=120), "^k .*120, got 120"),
        (lambda X, Y: density_preservation(X, Y, k=0), r"^k .*1"),
        (lambda X, Y: trustworthiness(X, Y, k=60), "^k .*120, got 60"),
        (lambda X, Y: continuity(X, Y, k=60), "^k .*120, got 60"),
        (lambda X, Y: knn_accuracy(Y, np.zeros(7)), r"^labels .*\(120,\).*\(7,\)"),
        (lambda X, Y: knn_accuracy(Y, [np.nan] * 120), "^labels .*missing"),
        (lambda X, Y: centroid_preservation(X, Y, [None] * 120), "^labels .*missing"),
    ],
)
def test_bad_parameters_are_named(call, message, clouds):
    with pytest.raises(ValueError, match=message):
        call(*clouds)


@pytest.mark.parametrize(
    ("measure", "name", "least"),
    [
        (angle_preservation, "n_legs", 2),
        (trustworthiness, "n_points", 2),
        (distance_preservation, "n_pairs", 2),
        (random_triplet_accuracy, "n_triplets", 2),
        (neighborhood_preservation, "n_spectral", 1),
    ],
)
@pytest.mark.parametrize("value", [-1, 0, 10.5, "10"])
def test_integer_parameters_of_the_measures_are_checked(measure, name, least, value, clouds):
    told = rf"^{name} .*{least}.*got {value!r}"
    with pytest.raises(ValueError, match=told):
        measure(*clouds, **{name: value})


@pytest.mark.parametrize("measure", PAIRED)
def test_seeds_are_checked(measure, clouds):
    with pytest.raises(ValueError, match=r"^random_state .*got 'x'"):
        measure(*clouds, random_state="x")


# --- scores and the report ------------------------------------------------------------------


def test_score_is_a_float_that_can_be_copied():
    score = Score(0.5, 0.01)
    copy = pickle.loads(pickle.dumps(score))
    assert (copy, copy.standard_error) == (0.5, 0.01)
    assert json.dumps(score) == "0.5"
    assert np.asarray([score, score]).dtype == np.float64
    assert repr(score) == "Score(0.5, standard_error=0.01)"


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Score(0.5), "0.5000"),
        (Score(0.5, 0.0123), "0.5000 ± 0.0123"),
        (Score(0.5, 0.000123), "0.50000 ± 0.00012"),
        (Score(1, 1e-17), "1.000000 ± 0.000000"),
        (Score(np.nan, np.nan), "nan"),
    ],
)
def test_score_prints_what_is_known(score, text):
    assert str(score) == text


def test_report_leaves_rows_without_a_label_out_of_the_measures_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    Y, labels = X[:, :2], np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=90)]
    whole = metrics.report(X, Y, labels)
    some = labels.copy()
    some[[3, 50, 70]] = None, np.nan, pd.NA
    found, known = metrics.report(X, Y, some), np.delete(np.arange(90), [3, 50, 70])
    assert found["knn_accuracy"] == knn_accuracy(Y[known], labels[known])
    assert found["centroid_preservation"] == centroid_preservation(
        X[known], Y[known], labels[known]
    )
    assert found["angle_preservation"] == whole["angle_preservation"]
    with pytest.raises(ValueError, match=r"^labels .*3 points, got 2"):
        metrics.report(X, Y, [None] * 88 + ["a", "b"])


def test_continuous_labels_are_refused():
    X = np.random.default_rng(0).normal(size=(90, 4))
    with pytest.raises(ValueError, match=r"^labels .*90 .*90"):
        metrics.report(X, X[:, :2], X[:, 0])
    assert knn_accuracy(X[:, :2], np.repeat([0.5, 1.5, 2.5], 30)) >= 0


@pytest.mark.parametrize("labels", [["a", 1, None], [np.datetime64("2020"), "a", None]])
def test_labels_of_several_types_are_named(labels):
    X, labels = np.random.default_rng(0).normal(size=(90, 4)), np.array(labels * 30, dtype=object)
    with pytest.raises(TypeError, match=r"^labels must be numbers, or text.*, got .* and str\.$"):
        metrics.report(X, X[:, :2], labels)


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-41, "f4"), (1e37, "f4"), (1e-320, "f8"), (1e306, "f8")]
)
def test_numbers_of_any_size_raise_no_warning(scale, dtype, clouds):
    X, Y = clouds
    X = X / np.abs(X).max()
    large = (X.astype(np.longdouble) * scale).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = metrics.report(large, Y, Y[:, 0] > 0)
        assert metrics.report(X, large[:, :3])["angle_preservation"] > 0.5
    for name, score in metrics.report(X, Y, Y[:, 0] > 0).items():
        assert scores[name] == pytest.approx(score, abs=0.02, nan_ok=True), name


def test_report_contains_the_scores_of_the_measures(clouds):
    X, Y = clouds
    labels = np.repeat([0, 1, 2], 40)
    table = report(X, Y, labels, k=20, n_spectral=3)
    for measure in PAIRED:
        given = {"k": 20, "n_spectral": 3} if measure is neighborhood_preservation else {}
        assert table[measure.__name__] == measure(X, Y, **given)
    assert table["knn_accuracy"] == knn_accuracy(Y, labels)
    assert table["centroid_preservation"] == centroid_preservation(X, Y, labels)
    assert table["torn_neighbors"] == pytest.approx(np.mean(metrics.torn_neighbors(X, Y)))
    assert set(table) < set(metrics.__all__)
    assert len(report(X, Y)) == len(table) - 2


def test_report_has_standard_errors_of_sampled_measures_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    table = report(X, X[:, :2])
    for measure in PAIRED:
        if measure(X, X[:, :2]).standard_error == 0:
            assert table[measure.__name__] == measure(X, X[:, :2])
            assert table[measure.__name__].standard_error == 0
        else:
            score = table[measure.__name__]
            assert abs(score - measure(X, X[:, :2])) < 5 * score.standard_error
    assert {name for name, score in table.items() if score.standard_error} == {
        "angle_preservation",
        "random_triplet_accuracy",
    }


def test_report_takes_a_sample_of_many_points_and_shows_progress(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6)) @ rng.normal(size=(6, 50)) + rng.normal(size=(6000, 50))
    table = report(X, Mercat(random_state=0).fit_transform(X), verbose=True)
    assert "measuring: 100%" in capsys.readouterr().err
    assert 0 < table["trustworthiness"].standard_error < 0.01
    assert 0 < table["angle_preservation"].standard_error < 0.01
    assert 0 < table["torn_neighbors"].standard_error < 0.02


@pytest.mark.parametrize("n", [4, 9, 20])
def test_report_of_few_points_takes_half_of_them_as_neighbours(clouds, n):
    X, Y = (part[:n] for part in clouds)
    labels = np.arange(n) % 2
    k = (n - 1) // 2
    table = report(X, Y, labels)
    assert table["neighborhood_preservation"] == neighborhood_preservation(X, Y, k=k)
    assert table["trustworthiness"] == trustworthiness(X, Y, k=k)
    assert table["continuity"] == continuity(X, Y, k=k)
    np.testing.assert_equal(table["density_preservation"], density_preservation(X, Y, k=k))
    assert table["knn_accuracy"] == knn_accuracy(Y, labels, k=k)


def test_report_converts_to_a_frame_json_and_html(clouds):
    table = Report(angle_preservation=Score(0.5, 0.1), trust=Score(0.25))
    frame = table.to_frame()
    assert frame.loc["angle_preservation"].tolist() == [0.5, 0.1]
    assert frame.columns.tolist() == ["score", "standard_error"]
    assert json.loads(json.dumps(table)) == {"angle_preservation": 0.5, "trust": 0.25}
    assert "<th>trust</th><td>0.2500</td>" in table._repr_html_()


def test_class_connectivity_by_hand():
    """On a line: a a a . b b . a a. The nearest neighbour of each is of its own group."""
    Y = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [20.0], [21.0]])
    labels = ["a", "a", "a", "b", "b", "a", "a"]
    assert metrics.class_connectivity(Y, labels, k=1) == pytest.approx((3 + 2) / 7)
    assert metrics.class_connectivity(Y, ["a", "a", "a", "b", "b", "c", "c"], k=1) == 1
    # With two neighbours the islands of a are joined to b, but not to each other.
    assert metrics.class_connectivity(Y, labels, k=2) == pytest.approx((3 + 2) / 7)
    assert metrics.class_connectivity(Y, labels, k=6) == 1
    # A point among points of other classes is a separate piece.
    assert metrics.class_connectivity(Y, ["a", "b", "a", "a", "b", "a", "b"], k=1) < 0.5


def test_class_connectivity_on_the_sphere_and_bad_input():
    turns = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.stack([np.cos(turns), np.sin(turns), np.zeros(60)], axis=1)
    halves = np.arange(60) < 30
    assert metrics.class_connectivity(ring, halves, k=2) == 1
    quarters = (np.arange(60) // 15) % 2
    assert metrics.class_connectivity(ring, quarters, k=2) == 0.5
    with pytest.raises(ValueError, match=r"^k .*1"):
        metrics.class_connectivity(ring, halves, k=0)
    with pytest.raises(ValueError, match=r"^labels "):
        metrics.class_connectivity(ring, halves[:5])


@pytest.mark.parametrize("measure", [metrics.neighborhood_preservation, metrics.trustworthiness])
@pytest.mark.parametrize("k", ["a", 2.5, None])
def test_neighbours_are_counted_in_whole_numbers(measure, k):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=rf"^k .*40, got {k!r}"):
        measure(X, X, k=k)


def test_false_structure_by_hand():
    """Five points on a line, k = 2: the inner tenth of the interval around each contains only itself."""
    assert metrics.false_structure(np.arange(5.0)[:, None], k=2) == -1
    # Four pairs far apart: within 0.1 of the distance to the second neighbour lies the twin of each.
    pairs = np.repeat(np.arange(4) * 10.0, 2)[:, None] + np.tile([0, 0.5], 4)[:, None]
    assert metrics.false_structure(pairs, k=2) == pytest.approx(1 / 0.1 - 1)


@pytest.mark.parametrize("on_sphere", [False, True])
def test_false_structure_of_smooth_densities_is_none(on_sphere):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(4000, 2))
    if on_sphere:  # of a density that varies over the sphere
        Y = rng.normal(size=(4000, 3)) + np.array([1.0, 0, 0])
        Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    found = metrics.false_structure(Y)
    assert abs(found) < 0.05
    assert 0 < found.standard_error < 0.1
    clumps = np.repeat(Y[:400], 10, axis=0) + 0.003 * rng.normal(size=(4000, Y.shape[1]))
    if on_sphere:
        clumps /= np.linalg.norm(clumps, axis=1, keepdims=True)
    assert metrics.false_structure(clumps) > 0.5


def test_map_of_noise_shows_no_clumps():
    """With one landmark per small cap of the map, points used to gather around the landmarks."""
    X = np.random.default_rng(0).normal(size=(3000, 20))
    Y = Mercat(random_state=0, n_landmarks=300).fit_transform(X)
    assert metrics.false_structure(Y) < 0.1


def test_torn_neighbors_by_hand():
    X = np.arange(40.0)[:, None]
    assert metrics.torn_neighbors(X, X, k=3).max() == 0
    turned = X.copy()
    turned[20:] += 100
    torn = metrics.torn_neighbors(X, turned, k=2, far=0.1)
    assert torn[19] == torn[20] == 0.5
    assert torn[:18].max() == torn[22:].max() == 0
    shuffled = np.random.default_rng(0).permutation(X)
    assert metrics.torn_neighbors(X, shuffled, k=3, far=0.1).mean() > 0.6


@pytest.mark.parametrize("far", [0, 1, -0.1, 2])
def test_torn_neighbors_refuses_an_invalid_fraction(far):
    with pytest.raises(ValueError, match=r"^far "):
        metrics.torn_neighbors(np.eye(9), np.eye(9)[:, :2], k=2, far=far)


@pytest.mark.parametrize(
    ("n", "d"), [(1500, 20), (2000, 7000), (5000, 50), (20_000, 784), (100_000, 50), (10**6, 50)]
)
def test_reports_of_large_data_use_small_samples(n, d):
    """The cost of neighbours is points x rows x columns, about 3e9 for a fit."""
    sizes = _report._sizes(n, d, "auto")
    assert sizes.points == 150 or min(sizes.points, n) * n * d <= 3e9
    assert sizes.pairs * d <= 1e8
    assert sizes.triplets * d <= 1e8


def test_nearest_points_do_not_depend_on_blocks(monkeypatch):
    X = np.random.default_rng(0).normal(size=(90, 4)) + 1e3
    Y = X[:, :2] - 1e3
    whole = metrics.report(X, Y)
    monkeypatch.setattr(_nearest, "COLUMNS", 40)
    assert dict(metrics.report(X, Y)) == dict(whole)


def test_a_report_reuses_neighbours_for_classification():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(300, 5)), rng.integers(3, size=300).astype(object)
    Y = X[:, :2] + rng.normal(size=(300, 2))
    for missing in ([], [7, 100]):
        labels[missing] = None
        known = [k for k in range(300) if k not in missing]
        expected = metrics.knn_accuracy(Y[known], labels[known].astype(int))
        found = metrics.report(X, Y, labels)["knn_accuracy"]
        assert float(found) == float(expected)
        assert found.standard_error == expected.standard_error
