"""Tests of docs/promises.md, "Honest": warnings about maps that should not be trusted."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from processes import environment
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

import mercat
from mercat import Mercat, TrustWarning, embed
from mercat._data.source import RowSource
from mercat._data.threads import Workers
from mercat._detail.affinities import affinities
from mercat._detail.graphs import graph_of
from mercat._detail.neighbors import nearest
from mercat._reduce.components import fit_components
from mercat._reduce.distances import fit_distances
from mercat._reduce.reducer import project_all
from mercat._solve.diagnostics import count_components, find_cut, find_dominance


def noise(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


def warned(X, **parameters) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Mercat(**({"random_state": 0} | parameters)).fit(X)
    assert {w.category for w in caught} <= {TrustWarning}
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"detail": 0.3},
        {"detail": 1.0},
        {"n_spectral": 10},
        {"n_spectral": "auto"},
        {"n_landmarks": 200},
        {"objective": "absolute"},
        {"metric": "cosine"},
    ],
    ids=str,
)
def test_good_data_do_not_warn(parameters, digits):
    assert warned(digits[:500], **parameters) == []


def test_noise_warns():
    (message,) = warned(noise(600, 100), n_spectral=None, init="pca", tol=0.02)
    assert re.search(r"correlation.*angles.* is 0\.3", message)
    assert "below 0.4" in message
    assert "n_spectral='auto'" in message
    assert "lower detail" not in message


def test_warning_advises_lower_detail():
    X, _ = make_blobs(600, 100, centers=50, random_state=0)  # too many directions for a map
    (message,) = warned(X, n_spectral=None, init="pca", tol=0.02, detail=0.3)
    assert "lower detail" in message


def test_detail_without_effect_warns():
    low, no_effect = warned(noise(400, 100), n_spectral=None, detail=0.3)
    assert "lower detail" not in low
    assert re.match(r"detail=0\.3 has no effect.*detail=0\b.*n_spectral='auto'", no_effect)
    assert warned(np.ones((50, 3)), detail=0.3) == warned(np.ones((50, 3)))


def test_three_distinct_points_do_not_warn():
    assert warned(np.repeat(np.eye(3), 5, axis=0)) == []


def test_components_that_drop_most_of_the_variance_warn(digits):
    (message,) = warned(digits, n_spectral=2)
    assert re.match("n_spectral=2 keeps 2[78]% of the variance", message)  # 27.9 %
    assert "Raise n_spectral" in message
    distances = cdist(digits[:300], digits[:300])
    assert "n_spectral=2 keeps" in warned(distances, metric="precomputed", n_spectral=2)[0]
    assert warned(digits, n_spectral=10) == []


def test_dropping_noise_does_not_warn():
    signal = np.zeros((400, 300))
    signal[:, :5] = 6 * noise(400, 5)
    X = signal + noise(400, 300)
    assert np.var(X[:, :5], axis=0).sum() < 0.45 * np.var(X, axis=0).sum()
    assert warned(X, n_spectral=5) == []
    assert "n_spectral=2" in warned(X, n_spectral=2)[0]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "precomputed"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_cut_matches_the_variance_of_other_components(metric, form, digits):
    X = form(digits[:400] + 3.0 * (digits[:400] > 8))
    with Workers(1) as workers:
        if metric == "precomputed":
            X = cdist(digits[:400], digits[:400])
            few, every = (fit_distances(X, k) for k in (4, 64))
        else:
            few, every = (fit_components(RowSource(X, workers), k, metric=metric) for k in (4, 64))
        indices = np.arange(400)
        cut = find_cut(few, X, project_all(few, X, workers), indices, indices)
    variance, rank = every.explained_variance, min(399, X.shape[1])
    assert cut.kept == pytest.approx(variance[:4].sum() / variance.sum(), rel=1e-6)
    assert cut.largest == pytest.approx(variance[4] / variance[4:].sum() * (rank - 4), rel=1e-6)


def test_rounding_errors_are_not_dropped_variance():
    """Rows of rank 1: outside the components is only rounding error, on which LAPACK did not converge."""
    X = np.random.default_rng(0).normal(size=(60, 2)) @ np.ones((2, 3)) * [1, 2, 3]
    with Workers(1) as workers:
        few = fit_components(RowSource(X, workers), 2, metric="euclidean")
        assert few.components.shape[0] < 3
        indices = np.arange(60)
        assert find_cut(few, X, project_all(few, X, workers), indices, indices) is None


@pytest.mark.parametrize("solver", ["exact", "landmarks"])
@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_column_that_dominates_row_lengths_warns(solver, metric, form):
    fit = functools.partial(warned, solver=solver, n_landmarks=100, metric=metric)
    X = np.abs(noise(300, 6))
    assert not any("Column" in message for message in fit(form(X)))
    X[:, 3] += 300
    messages = fit(form(X))
    assert any(m.startswith("Column 3 of X has more than 99% of the length") for m in messages)


def test_fraction_of_a_column_by_hand():
    X = np.array([[3.0, 0.0, 4.0], [3.0, 0.0, -4.0]])
    assert find_dominance(X, "euclidean") == (2, 1.0, 0.0)
    assert find_dominance(X, "cosine")[:2] == (2, pytest.approx(16 / 25))
    assert find_dominance(X, "precomputed") is None
    assert find_dominance(X[:, :1], "euclidean") is None
    assert find_dominance(np.ones((4, 3)), "euclidean") is None


@pytest.mark.parametrize("metric", ["manhattan", "hamming", "jaccard"])
def test_fractions_of_columns_of_sparse_rows(metric):
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, d = rng.integers(2, 9, 2)
        X = np.round(2 * rng.normal(size=(n, d))) * (rng.random((n, d)) < rng.random())
        dense, sparse = find_dominance(X, metric), find_dominance(sp.csr_array(X), metric)
        assert (dense is None) == (sparse is None)
        if dense is not None:
            # On ties, either column may be reported.
            assert sparse[1:] == pytest.approx(dense[1:], abs=1e-12)


@pytest.mark.parametrize("solver", ["exact", "landmarks"])
def test_a_dominating_column_warns(solver):
    fit = functools.partial(warned, solver=solver, n_landmarks=100)
    X = noise(300, 6)
    X[:, 3] *= 50
    (message,) = fit(X)
    assert message.startswith("Column 3 of X has more than 99% of the variance")
    assert "StandardScaler" in message
    (message,) = fit(pd.DataFrame(X, columns=[*"abc", "counts", *"ef"]))
    assert message.startswith("Column 'counts' has more than 99% of the variance")
    assert fit(X, metric="correlation") == []
    assert fit(X / X.std(axis=0)) == []
    (message,) = fit(X, n_spectral=None)  # without principal components
    assert message.startswith("Column 3 of X has more than 99% of the variance")
    X[:, [0, 1, 2, 4, 5]] = 7.0  # the other columns are constant, so nothing is hidden
    assert fit(X) == []


@pytest.mark.parametrize("n", [300, 2400])
def test_an_outlying_row_warns(n):
    X = noise(n, 6)
    X[17] += 1e6
    (message,) = warned(X)
    assert message.startswith("The typical distance between points is")
    assert "median" in message
    X[17] /= 1e4
    assert warned(X) == []
    # Three tight clusters are not an outlier problem.
    assert warned(np.repeat(np.eye(3), n // 3, axis=0) + 1e-6 * noise(n, 3)) == []


def test_too_few_landmarks_warn(digits):
    (message,) = warned(digits, solver="landmarks", n_landmarks=12)
    assert message.startswith("n_landmarks=12")
    assert "Raise n_landmarks" in message


@pytest.mark.usefixtures("brief_descent")
def test_a_given_graph_of_small_components_warns():
    X, _ = make_blobs(400, 5, centers=4, cluster_std=0.1, random_state=0)
    (message,) = warned(X, detail=0.3, neighbors=kneighbors_graph(X, 1))
    assert re.search(r"graph.* neighbors.* \d+ .*points on average.*or lower detail", message)
    assert warned(X) == []
    assert warned(X, detail=0.3, neighbors=10) == []
    assert warned(X, detail=0.3, neighbors=kneighbors_graph(X, 10)) == []  # four separate clusters


def test_a_graph_of_other_rows_warns(digits):
    graph = kneighbors_graph(digits[np.random.default_rng(0).permutation(500)], 15)
    message = warned(digits[:500], detail=1.0, neighbors=graph)[0]
    assert "the rows of neighbors are those of X, in the same order" in message


def test_neighbors_without_detail_warn(digits):
    with pytest.warns(UserWarning, match=r"neighbors .*detail"):
        Mercat(neighbors=5, random_state=0).fit(digits[:100])


def test_a_few_stray_points_do_not_warn():
    X = np.vstack([make_blobs(400, 5, centers=1, random_state=0)[0], np.full((3, 5), 500.0)])
    X[-3:] += 0.1 * noise(3, 5)
    assert warned(X, detail=0.1, neighbors=2, n_landmarks=400) == []


def test_connected_components_are_counted():
    X = np.repeat([[0.0], [100.0], [300.0]], [50, 30, 20], axis=0) + noise(100, 1)
    with Workers(1) as workers:
        graph = graph_of(nearest(X, 5, np.random.default_rng(0), workers).indices)
        (P,) = affinities(graph, [np.full(graph.nnz, 0.2)], np.ones(100), workers)
    assert count_components(P) == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda X: Mercat(n_spectral=2, random_state=0).fit(X),
        lambda X: Mercat(n_spectral=2, random_state=0).fit_transform(X),
        lambda X: embed(X, n_spectral=2, random_state=0),
    ],
    ids=["fit", "fit_transform", "embed"],
)
def test_the_warning_refers_to_the_calling_line(ask, digits):
    with pytest.warns(TrustWarning) as caught:
        ask(digits[:100])
    assert caught[0].filename == __file__
    assert mercat.TrustWarning is TrustWarning


def test_the_command_line_shows_a_warning_as_one_line(tmp_path, digits):
    np.save(tmp_path / "digits.npy", digits[:100])
    command = [
        sys.executable,
        "-m",
        "mercat.cli",
        "embed",
        "digits.npy",
        "-o",
        "map.csv",
        "--quiet",
    ]
    done = subprocess.run(
        [*command, "--n-spectral", "2"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: n_spectral=2 keeps ")
    assert (tmp_path / "map.csv").exists()


@pytest.mark.parametrize("X", [np.ones((30, 4)), np.eye(30), np.repeat(noise(2, 3), 20, axis=0)])
def test_equal_angles_warn_that_positions_are_meaningless(X):
    (message,) = warned(X)
    assert "All angles" in message
    assert "duplicate rows" in message
