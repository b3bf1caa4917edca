"""The public interface of `Mercat`."""

from __future__ import annotations

import functools
import itertools
import pickle
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from kernels import largest_distance
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from spheres import random_sphere

from mercat import Mercat, Status, embed
from mercat._data import source as _rows
from mercat._data.threads import Workers
from mercat._math.angles import ABSOLUTE
from mercat._math.definition import angle_loss, spherical_triple_cosines, triple_cosines
from mercat._math.sphere import to_lonlat
from mercat._reduce.reducer import denoise
from mercat._solve.losses import AngleLoss


@parametrize_with_checks(
    [
        Mercat(random_state=0),
        Mercat(random_state=0, solver="landmarks", n_landmarks=20),
        Mercat(random_state=0, metric="precomputed"),
        Mercat(random_state=0, n_spectral=None, objective="absolute", metric="correlation"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    if estimator.get_params() != Mercat(random_state=0).get_params():
        estimator.set_params(init="pca")  # one start: the checks are about the interface
    check(estimator.set_params(max_iter=5))


@pytest.fixture(scope="module")
def fitted(digits):
    return Mercat(random_state=0).fit(digits)


def procrustes_distance(Y1: np.ndarray, Y2: np.ndarray) -> float:
    """Root mean square distance of two embeddings after the best rotation or reflection."""
    U, _, Vt = np.linalg.svd(Y1.T @ Y2)
    return float(np.sqrt(np.mean(np.sum((Y1 @ (U @ Vt) - Y2) ** 2, axis=1))))


# ------------------------------------------------------------------ what is fitted


def test_a_fit_has_its_attributes(fitted, digits):
    n = len(digits)
    assert fitted.embedding_.shape == (n, 3)
    np.testing.assert_allclose(np.linalg.norm(fitted.embedding_, axis=1), 1, rtol=1e-12)
    assert sorted(fitted.landmarks_) == list(range(n))
    assert 0.1 < fitted.loss_ < 0.2
    assert 0.55 < fitted.correlation_ < 0.65
    alpha, beta = fitted.calibration_
    assert 0.2 < alpha < 0.5
    assert 0.1 < beta < 0.3
    assert len(fitted.history_) == fitted.n_iter_ > 4
    assert fitted.status_ is Status.CONVERGED
    assert fitted.components_.shape == (50, 64)
    assert fitted.mean_.shape == (64,)
    assert fitted.explained_variance_.shape == (50,)
    assert fitted.n_features_in_ == 64


def test_point_loss_averages_to_the_loss(fitted):
    assert fitted.point_loss_.shape == (1797,)
    assert np.sqrt(np.mean(fitted.point_loss_**2)) == pytest.approx(fitted.loss_, rel=1e-3)


def test_losses_equal_their_definition_over_triples():
    X = np.random.default_rng(0).normal(size=(15, 4))
    model = Mercat(random_state=0).fit(X)
    triples = np.array(list(itertools.permutations(range(15), 3)))
    loss = functools.partial(angle_loss, X, model.embedding_)
    assert model.loss_ == pytest.approx(loss(triples, *model.calibration_), rel=1e-6)
    for i in (0, 8):
        expected = loss(triples[triples[:, 0] == i], *model.calibration_)
        assert model.point_loss_[i] == pytest.approx(expected, rel=1e-5)
    a, b = triple_cosines(X, triples), spherical_triple_cosines(model.embedding_, triples)
    assert model.correlation_ == pytest.approx(np.corrcoef(a, b)[0, 1], rel=1e-6)


def test_landmarks_come_close_to_exact(digits):
    exact = Mercat(solver="exact", random_state=0).fit(digits[:1000])
    placed = Mercat(solver="landmarks", n_landmarks=550, random_state=0).fit(digits[:1000])
    assert abs(exact.correlation_ - placed.correlation_) < 0.01


@pytest.mark.parametrize(("detail", "most"), [(0, 2000), (0.1, 2000), (0.3, 1000)])
@pytest.mark.usefixtures("brief_descent")
def test_auto_is_exact_for_few_points_and_landmarks_for_many(detail, most):
    """With detail of at least 0.2, the start is a map of averages, with landmarks above 1000 points."""
    X = np.random.default_rng(0).normal(size=(most + 1, 3)) * [3, 2, 1]
    quick = {"detail": detail, "tol": 0.1, "init": "pca", "random_state": 0}
    for n, solver in ((most, "exact"), (most + 1, "landmarks")):
        model = Mercat(**quick).fit(X[:n])
        np.testing.assert_array_equal(
            model.embedding_, Mercat(solver=solver, **quick).fit(X[:n]).embedding_
        )
        assert len(model.landmarks_) == (n if solver == "exact" else 1000)


def test_calibrated_keeps_angles_better_than_absolute(digits):
    X = digits[:500]
    calibrated, absolute = (
        Mercat(objective=o, random_state=0).fit(X) for o in ("calibrated", "absolute")
    )
    assert calibrated.correlation_ > absolute.correlation_ + 0.02
    assert absolute.calibration_ == (0.0, 1.0)


def test_algorithm1_ends_above_the_exact_loss():
    X = np.random.default_rng(0).normal(size=(80, 3)) * [3, 2, 1]
    paper = Mercat(solver="algorithm1", objective="absolute", max_iter=200, random_state=0).fit(X)
    exact = Mercat(solver="exact", objective="absolute", random_state=0).fit(X)
    assert paper.status_ is Status.SCHEDULE
    assert paper.n_iter_ == 200
    assert exact.loss_ <= paper.loss_ < 1.5 * exact.loss_


def test_placed_points_preserve_the_papers_loss(digits):
    """The loss over all triples is within 6 % of the exact solution."""
    X = digits[:700]
    model = Mercat(objective="absolute", solver="landmarks", n_landmarks=400, random_state=0).fit(X)
    with Workers(1) as workers:
        loss = AngleLoss(denoise(X, 50), line=ABSOLUTE, workers=workers)
        value, _ = loss.evaluate(model.embedding_)
    exact = Mercat(objective="absolute", solver="exact", random_state=0).fit(X)
    assert np.sqrt(value) < 1.06 * exact.loss_


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_init_array_is_used_and_normalized(digits):
    X, start = digits[:200], random_sphere(200)
    one = Mercat(init=start, random_state=0, max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        Y1 = one.fit_transform(X)
    with pytest.warns(ConvergenceWarning):
        Y2 = clone(one).set_params(init=7 * start).fit_transform(X)
    np.testing.assert_allclose(Y1, Y2, atol=1e-12)
    with pytest.warns(ConvergenceWarning):
        from_pca = clone(one).set_params(init="pca").fit_transform(X)
    assert procrustes_distance(Y1, from_pca) > 0.2
    with pytest.warns(ConvergenceWarning):
        placed = clone(one).set_params(solver="landmarks", n_landmarks=100).fit(X)
    assert placed.status_ is Status.MAX_ITER


def test_map_is_rotated_to_the_equator_with_an_empty_seam(fitted):
    longitude, latitude = to_lonlat(fitted.embedding_)
    assert np.sqrt(np.mean(latitude**2)) < np.sqrt(np.mean(longitude**2)) + 0.05
    assert np.mean(np.abs(longitude) > np.pi - 0.2) < 0.01


# ------------------------------------------------------------------ transform


@pytest.mark.parametrize("n", [300, 1797])
def test_transform_of_the_training_data_is_the_embedding(n, digits):
    model = Mercat(random_state=0).fit(digits[:n])
    np.testing.assert_allclose(model.transform(digits[:n]), model.embedding_, atol=1e-6)


def test_transform_does_not_depend_on_the_batch(fitted, digits):
    new = digits + np.random.default_rng(0).normal(size=digits.shape)
    whole = fitted.transform(new)
    for part in (slice(0, 1), slice(700, 701), slice(3, 40), slice(100, 1200)):
        assert largest_distance(fitted.transform(new[part]), whole[part]) == 0
    order = np.random.default_rng(1).permutation(len(new))
    assert largest_distance(fitted.transform(new[order]), whole[order]) == 0


def test_new_points_are_near_similar_points(digits):
    model = Mercat(random_state=0).fit(digits[:1500])
    Y = model.transform(digits[1500:])
    nearest = np.linalg.norm(digits[1500:, None] - digits[None, :1500], axis=2).argmin(axis=1)
    angle = np.arccos(np.clip(np.sum(Y * model.embedding_[nearest], axis=1), -1, 1))
    random_pairs = np.arccos(np.clip(np.sum(Y * model.embedding_[:297], axis=1), -1, 1))
    assert np.median(angle) < 0.5 * np.median(random_pairs)


def test_extreme_outliers_are_refused(fitted):
    with pytest.raises(ValueError, match=r"^X .*1e\+12"):
        fitted.transform(np.full((1, 64), 1e100))


def test_transform_returns_blocks_in_order(monkeypatch, fitted, digits):
    in_blocks = fitted.transform(digits)
    assert len(digits) > 3 * _rows.rows_to_place(*digits.shape)
    monkeypatch.setattr(_rows, "rows_to_place", lambda n, d: 4096)
    whole = fitted.transform(digits)
    np.testing.assert_array_equal(in_blocks, whole)
    np.testing.assert_array_equal(whole[-3:], fitted.transform(digits[-3:]))


def test_transform_needs_a_fit(digits):
    with pytest.raises(NotFittedError):
        Mercat().transform(digits)


# ------------------------------------------------------------------ repeatable


@pytest.mark.parametrize("solver", ["exact", "landmarks", "algorithm1"])
def test_same_seed_same_bits_on_any_number_of_threads(solver, digits):
    X = digits[:400]
    parameters = {"solver": solver, "n_landmarks": 200, "random_state": 3}
    if solver == "algorithm1":
        parameters |= {"objective": "absolute", "max_iter": 10}
    models = [Mercat(n_jobs=n_jobs, **parameters).fit(X) for n_jobs in (1, 2, 4)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.embedding_, models[0].embedding_)
        np.testing.assert_array_equal(model.point_loss_, models[0].point_loss_)
        np.testing.assert_array_equal(model.transform(digits), models[0].transform(digits))


def test_other_landmarks_give_a_similar_map(digits):
    """Landmarks are chosen by the values of the rows, so scaling the data selects others."""
    one, two = (Mercat(solver="landmarks", random_state=0).fit(unit * digits) for unit in (1, 1.1))
    assert set(one.landmarks_) != set(two.landmarks_)
    assert spearmanr(pdist(one.embedding_[::4]), pdist(two.embedding_[::4])).statistic > 0.9


def test_random_state_may_be_a_generator_or_a_random_state(digits):
    for kind in (np.random.default_rng, np.random.RandomState):
        one, two = (embed(digits[:300], n_landmarks=100, random_state=kind(0)) for _ in range(2))
        np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------------ kinds of input


def test_memory_layouts_give_the_same_result(digits):
    X = digits[:150]
    expected = embed(X, random_state=0)
    read_only = X.copy()
    read_only.flags.writeable = False
    for given in (read_only, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(embed(given, random_state=0), expected)
    for given in (
        X.astype(np.int16),
        X.astype(np.uint8),
        X.astype(np.float16),
        X.astype(np.float32),
    ):
        assert procrustes_distance(embed(given, random_state=0), expected) < 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_output_has_the_type_of_the_input(dtype, digits):
    model = Mercat(random_state=0).fit(digits[:100].astype(dtype))
    expected = np.float32 if dtype == np.float32 else np.float64
    assert model.embedding_.dtype == expected
    assert model.transform(digits[:3].astype(dtype)).dtype == expected


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("solver", ["exact", "landmarks"])
def test_sparse_equals_dense(form, solver, digits):
    X, how = digits[:300], {"solver": solver, "n_landmarks": 150, "random_state": 0}
    model = Mercat(**how).fit(form(X))
    assert procrustes_distance(model.embedding_, embed(X, **how)) < 0.05
    np.testing.assert_allclose(model.transform(form(X)), model.embedding_, atol=1e-6)


def test_memmap_is_read_from_disk(digits, tmp_path):
    np.save(tmp_path / "X.npy", digits[:400])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    few = {"solver": "landmarks", "n_landmarks": 150, "random_state": 0}
    np.testing.assert_array_equal(embed(mapped, **few), embed(digits[:400], **few))


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.bool_])
def test_memmap_stays_on_disk(dtype, tmp_path, monkeypatch):
    """Memory is bounded by blocks and the result, for any size of the file."""
    monkeypatch.setattr(_rows, "VALUES_PER_BLOCK", 1 << 16)
    shape = (60_000, 200)
    X = np.memmap(tmp_path / "X", dtype, mode="w+", shape=shape)
    for block in np.array_split(X, 20):
        block[:] = np.random.default_rng(len(block)).normal(size=block.shape) > 1
        block[:] *= np.array(3, dtype=dtype)
    model = Mercat(n_landmarks=20, random_state=0, tol=0.5, init="pca", n_spectral=10, n_jobs=1)
    tracemalloc.start()
    try:
        model.fit(X)
        _, fit_peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        model.transform(X)
        _, transform_peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Less than one byte per value: no copy in any type.
    assert max(fit_peak, transform_peak) < X.size


def test_frames_in_and_out(digits):
    X = digits[:100]
    names = [f"pixel {i}" for i in range(64)]
    expected = embed(X, random_state=0)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = Mercat(random_state=0).fit(frame)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.embedding_, expected)
    model = Mercat(random_state=0).set_output(transform="pandas")
    out = model.fit_transform(pd.DataFrame(X, columns=names))
    assert (
        list(out.columns)
        == list(model.get_feature_names_out())
        == ["mercat0", "mercat1", "mercat2"]
    )


def test_object_columns_of_numbers_are_accepted():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("xyz"))
    expected = Mercat(random_state=0).fit_transform(frame)
    frame["z"] = frame["z"].astype(object)  # another layout in memory, and another rounding
    np.testing.assert_allclose(Mercat(random_state=0).fit_transform(frame), expected, atol=1e-6)


def test_pipelines_pickles_and_clones_give_the_same_map(digits):
    X = digits[:200]
    pipeline = make_pipeline(StandardScaler(), Mercat(random_state=0)).fit(X)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.transform(X), pipeline.transform(X))
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_metric_ignores_the_length_of_rows(metric, digits):
    X = digits[:150]
    scaled = X * np.random.default_rng(0).uniform(0.5, 2, size=(150, 1))
    one, two = (embed(A, metric=metric, random_state=0) for A in (X, scaled))
    assert procrustes_distance(one, two) < 1e-3
    assert procrustes_distance(one, embed(scaled, random_state=0)) > 0.05


def test_precomputed_distances_give_the_map_of_the_points(digits):
    X = digits[:200]
    D = squareform(pdist(X))
    model = Mercat(metric="precomputed", random_state=0).fit(D)
    assert procrustes_distance(model.embedding_, embed(X, random_state=0)) < 0.02
    np.testing.assert_allclose(model.transform(D[:5]), model.embedding_[:5], atol=1e-6)
    assert model.components_ is None


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_n_spectral_is_the_number_of_components(digits):
    X = digits[:300]
    assert Mercat(n_spectral=3, random_state=0).fit(X).components_.shape == (3, 64)
    assert Mercat(n_spectral=None, random_state=0).fit(X).components_ is None
    auto = Mercat(n_spectral="auto", random_state=0).fit(X).components_
    assert 2 <= len(auto) < 50


# ------------------------------------------------------------------ progress and stopping


@pytest.mark.parametrize("solver", ["exact", "landmarks", "algorithm1"])
def test_callback_sees_each_iteration_and_may_stop(solver, digits):
    seen = []

    def callback(iteration, loss, Y):
        seen.append((iteration, loss, Y.shape))
        return iteration == 2

    model = Mercat(
        solver=solver, objective="absolute", n_landmarks=50, callback=callback, random_state=0
    )
    model.fit(digits[:120])
    assert model.status_ is Status.CALLBACK
    assert [s[0] for s in seen] == [1, 2]
    assert model.n_iter_ == 2
    np.testing.assert_array_equal([s[1] for s in seen], model.history_)
    assert {s[2] for s in seen} == {(50 if solver == "landmarks" else 120, 3)}
    assert model.embedding_.shape == (120, 3)


def test_a_failed_fit_leaves_the_model_unchanged(digits):
    def fails(iteration, loss, Y):
        raise RuntimeError("stop here")

    model = Mercat(callback=fails, random_state=0)
    with pytest.raises(RuntimeError, match="stop here"):
        model.fit(digits[:100])
    with pytest.raises(NotFittedError):
        model.transform(digits)
    model.set_params(callback=None).fit(digits[:100])
    before = model.transform(digits)
    with pytest.raises(RuntimeError):
        model.set_params(callback=fails).fit(digits[:200, :10])
    np.testing.assert_array_equal(model.transform(digits), before)
    assert model.n_features_in_ == 64


def test_verbose_shows_bars_on_stderr(digits, capsys):
    Mercat(verbose=True, solver="landmarks", random_state=0).fit(digits[:1100])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "solving" in captured.err
    assert "loss=" in captured.err
    assert "1100/1100" in captured.err
    Mercat(random_state=0).fit(digits[:100])
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "init",
    [
        np.zeros((20, 2)),
        np.ones((20, 3)),
        np.eye(3)[[0, 1] * 10],
        np.full((20, 3), np.nan),
        np.zeros((20, 3)),
        np.eye(3),
    ],
    ids=["of two columns", "a point", "a great circle", "NaN", "zeros", "of three rows"],
)
def test_invalid_init_is_refused(init):
    with pytest.raises(ValueError, match=r"^init "):
        Mercat(init=init).fit(np.random.default_rng(0).normal(size=(20, 4)))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan]] * 5), "NaN"),
        (np.array([[1.0, np.inf]] * 5), "infinity"),
        (np.ones((3, 2)), "n_samples=3"),
        (np.ones((5, 2)) * 1j, "[Cc]omplex"),
        (np.array([["a", "b"]] * 5), "^X must hold numbers, got text"),
        (np.ones(5), "[12]D array"),
        (np.ma.masked_less(np.arange(20.0).reshape(10, 2), 3), "^X .*masked"),
        (
            np.zeros((5, 2), dtype="datetime64[s]"),
            r"^X .*datetime64\[s\]",
        ),
        (
            np.arange(20.0).reshape(10, 2) * 1e200,
            r"^X .*1e150.*1\.9e\+201 in column 1",
        ),
    ],
)
def test_bad_data_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Mercat().fit(X)


FRAME = functools.partial(pd.DataFrame, columns=["height", "weight", "it's"])


@pytest.mark.parametrize(
    ("container", "column"), [(np.asarray, "2"), (sp.csr_array, "2"), (FRAME, """2 ("it's")""")]
)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_value_that_is_not_finite_is_named_by_its_row_and_column(container, column, value):
    X = np.random.default_rng(0).normal(size=(1500, 3))
    model = Mercat(random_state=0).fit(container(X))
    X[1203, 2] = X[1400, 0] = value
    message = f"got {value} in row 1203, column {column}:"
    for call in (model.transform, Mercat().fit):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(container(X))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["a", "b"] * 20, "object|str"),
        (pd.Categorical(["a", "b"] * 20), "category"),
        (pd.date_range("2020-01-01", periods=40), "datetime64"),
    ],
)
def test_a_column_without_numbers_is_named(column, kind):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("xyz"))
    frame["kind of cell"] = column
    with pytest.raises(ValueError, match=rf"^X .*'kind of cell' of type ({kind})"):
        Mercat().fit(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda D: D[:, 1:], "square"),
        (lambda D: D - 1, "Negative values"),
        (lambda D: D + np.triu(np.ones_like(D)), "symmetric"),
        (lambda D: D + np.eye(len(D)), "diagonal"),
    ],
)
def test_bad_distances_are_refused(change, message):
    D = squareform(pdist(np.random.default_rng(0).normal(size=(10, 3))))
    with pytest.raises(ValueError, match=message):
        Mercat(metric="precomputed").fit(change(D))


# ------------------------------------------------------------------ degenerate data


rng = np.random.default_rng(0)
DEGENERATE = {
    "all equal": np.ones((20, 5)),
    "two places": np.repeat([[0.0, 0], [1, 1]], 10, axis=0),
    "three places": np.repeat(np.eye(3), 5, axis=0),
    "duplicates": np.repeat(rng.normal(size=(15, 4)), 2, axis=0),
    "one dimension": rng.normal(size=(30, 1)),
    "a line in space": np.outer(rng.normal(size=30), [1.0, 2, 3]),
    "constant columns": np.hstack([rng.normal(size=(30, 2)), np.ones((30, 3))]),
    "an outlier": np.vstack([rng.normal(size=(30, 3)), [[1e9, 0, 0]]]),
    "tiny": 1e-30 * rng.normal(size=(30, 3)),
    "huge": 1e30 * rng.normal(size=(30, 3)),
    "integers": rng.integers(0, 2, size=(40, 3)),
} | {f"{n} points": rng.normal(size=(n, 3)) for n in range(4, 11)}


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("solver", ["exact", "landmarks", "algorithm1"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_give_a_finite_embedding(name, solver):
    X = DEGENERATE[name]
    parameters = {"solver": solver, "n_landmarks": 8, "random_state": 0}
    if solver == "algorithm1":
        parameters |= {"objective": "absolute", "max_iter": 20}
    model = Mercat(**parameters).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1, rtol=1e-6)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite([model.loss_, model.correlation_]).all()
    assert np.isfinite(model.point_loss_).all()


@pytest.mark.parametrize("n", [50, 800])
def test_points_on_a_line_are_mapped_exactly(n):
    x = np.sort(np.random.default_rng(1).normal(size=n))
    model = Mercat(random_state=0).fit(x[:, None])
    along = to_lonlat(model.embedding_)[0]
    assert abs(np.corrcoef(np.argsort(np.argsort(along)), np.arange(n))[0, 1]) > 0.9999
    assert model.loss_ < 1e-3


def test_very_few_points_have_a_nonnegative_slope():
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(4, 3))
        auto, pca = (Mercat(random_state=0, init=init).fit(X) for init in ("auto", "pca"))
        assert auto.calibration_[1] >= 0
        assert auto.loss_ <= pca.loss_ + 1e-6


# ------------------------------------------------------------------ import


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_loads_nothing_heavy():
    loaded = run_python("import sys, mercat; print(*sorted(sys.modules))").split()
    assert not {"numpy", "sklearn", "scipy", "torch", "matplotlib", "dask", "numba"} & set(loaded)
    code = "import sys, mercat.tl; from mercat import Mercat; print(*sorted(sys.modules))"
    heavy = {"torch", "matplotlib", "dask", "numba", "tqdm", "anndata", "mercat.viewer"}
    assert not heavy & set(run_python(code).split())


def test_names_are_listed():
    out = run_python(
        "import mercat; print(*dir(mercat)); mercat.Mercat; mercat.metrics; mercat.plot"
    )
    assert {"Mercat", "embed", "Status", "metrics", "plot", "datasets", "viewer"} <= set(
        out.split()
    )
    with pytest.raises(AttributeError, match="'nothing'"):
        __import__("mercat").nothing  # noqa: B018
