"""Nearest points and affinities, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from sklearn.neighbors import NearestNeighbors

from mercat._data.threads import Workers
from mercat._detail.affinities import (
    DECAY,
    affinities,
    edge_lengths,
    edge_shares,
    longest_steps,
    path_shares,
    radii,
    strength_of,
)
from mercat._detail.graphs import graph_of
from mercat._detail.neighbors import EqualRows, NearestToNew, Search, check_neighbors, nearest
from mercat._kernels import switched


def run(function, *arguments, n_jobs=1):
    with Workers(n_jobs) as workers:
        return function(*arguments, workers)


def truth(X: np.ndarray, k: int) -> np.ndarray:
    return NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)


@pytest.mark.parametrize(("n", "k"), [(10, 3), (31, 1), (33, 10), (64, 20), (1000, 15)])
def test_nearest_equal_scikit_learn(n, k):
    X = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
    found = run(nearest, X, k, np.random.default_rng(0)).indices
    np.testing.assert_array_equal(found, truth(X, k))


def test_equal_rows_finds_the_first_equal_row_or_none():
    X = np.array([[0, 1], [2, 3], [2, 3], [-0.0, 5], [1, 0]], dtype=np.float32)
    queries = np.array([[2, 3], [0, 5], [7, 7], [1, 0], [0, 1], [3, 2]], dtype=np.float32)
    np.testing.assert_array_equal(EqualRows(X)(queries), [1, 3, -1, 4, 0, -1])
    X = np.random.default_rng(0).integers(0, 4, size=(300, 3)).astype(np.float32)
    truth = (X[:, None] == X).all(axis=2).argmax(axis=1)
    np.testing.assert_array_equal(EqualRows(X)(X), truth)


def test_nearest_of_points_far_from_others():
    """Distances that inner products hardly resolve are ordered by differences."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 4)), 100 + 1e-1 * rng.normal(size=(50, 4))])
    X = (X - X.mean(axis=0)).astype(np.float32)
    found = run(nearest, X, 49, np.random.default_rng(0)).indices
    assert (found[:50] < 50).all()
    assert (found[50:] >= 50).all()
    np.testing.assert_array_equal(found[50:, :3], truth(X.astype(float), 3)[50:])


def test_duplicates_are_neighbors_but_not_of_themselves():
    X = np.zeros((20, 3), dtype=np.float32)
    found = run(nearest, X, 5, np.random.default_rng(0)).indices
    assert all(len(set(row)) == 5 and i not in row for i, row in enumerate(found))
    assert (np.diff(found, axis=1) > 0).all()  # equal distances: in order of index


def test_cells_find_nearly_all_neighbors_repeatably(monkeypatch):
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 1000)
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(6, 10))[rng.integers(6, size=9000)] * 3 + rng.normal(size=(9000, 10))
    ).astype(np.float32)
    found = [run(nearest, X, 15, np.random.default_rng(1), n_jobs=j).indices for j in (1, 2, 4)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert not (found[0] == np.arange(9000)[:, None]).any()
    recall = np.mean(
        [len(set(a) & set(b)) / 15 for a, b in zip(found[0], truth(X, 15), strict=True)]
    )
    assert recall > 0.97


@pytest.mark.parametrize("most", [200, 3])
def test_noise_is_searched_in_enough_cells(monkeypatch, most):
    """One cluster of 30 dimensions: the neighbours of a point lie in many cells."""
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 10)
    monkeypatch.setattr("mercat._detail.neighbors._POINTS_PER_CELL", (50, 50))
    monkeypatch.setattr("mercat._detail.neighbors._MIN_CELLS", 3)
    monkeypatch.setattr("mercat._detail.neighbors._MAX_CELLS", most)
    X = np.random.default_rng(0).normal(size=(4000, 30)).astype(np.float32)
    found = run(nearest, X, 15, np.random.default_rng(1)).indices
    recall = np.mean([len(set(a) & set(b)) / 15 for a, b in zip(found, truth(X, 15), strict=True)])
    assert recall > 0.94 if most == 200 else recall < 0.5


def test_order_puts_near_points_near_in_memory(monkeypatch):
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 100)
    X = np.random.default_rng(0).normal(size=(30_000, 2)).astype(np.float32)
    found = run(nearest, X, 10, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(found.order), np.arange(len(X)))
    # Cells lie in a chain, so that even points of neighbouring cells are rarely far from each other.
    step = np.linalg.norm(np.diff(X[found.order], axis=0), axis=1)
    assert np.median(step) < 0.25
    assert np.quantile(step, 0.99) < 1


def test_small_cells_search_more_cells(monkeypatch):
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 10)
    monkeypatch.setattr("mercat._detail.neighbors._POINTS_PER_CELL", (2, 2))
    monkeypatch.setattr("mercat._detail.neighbors._MIN_CELLS", 1)
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    found = run(nearest, X, 8, np.random.default_rng(1)).indices
    assert all(len(set(row)) == 8 and i not in row for i, row in enumerate(found))


def test_search_finds_the_nearest_of_new_points():
    rng = np.random.default_rng(0)
    X, queries = (
        rng.normal(size=(70, 3)).astype(np.float32),
        rng.normal(size=(9, 3)).astype(np.float32),
    )
    expected = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(queries, return_distance=False)
    np.testing.assert_array_equal(np.sort(Search(X)(queries, 4)), np.sort(expected))


@pytest.mark.parametrize("points_per_cell", [50, 2])
def test_cells_find_nearly_all_of_the_nearest_to_new_points(monkeypatch, points_per_cell):
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 1000)
    monkeypatch.setattr("mercat._detail.neighbors._POINTS_PER_CELL", (points_per_cell,) * 2)
    monkeypatch.setattr("mercat._detail.neighbors._MIN_CELLS", 2)
    rng = np.random.default_rng(0)
    X, queries = (rng.normal(size=(n, 4)).astype(np.float32) for n in (3000, 300))
    expected = NearestNeighbors(n_neighbors=15).fit(X).kneighbors(queries)
    search = NearestToNew(X, 15)
    found, distances = search(queries)
    recall = [len(set(a) & set(b)) / 15 for a, b in zip(found, expected[1], strict=True)]
    assert np.mean(recall) > 0.97
    assert min(recall) > 0.5
    same = found == expected[1]
    np.testing.assert_allclose(distances[same], expected[0][same], rtol=1e-5)
    for rows in (slice(0, 1), slice(100, 117), slice(3, 300)):  # for any other points
        again = search(queries[rows])
        np.testing.assert_array_equal(again[0], found[rows])
        np.testing.assert_array_equal(again[1], distances[rows])


# ------------------------------------------------------------------ affinities


def test_affinities_by_hand():
    """On a line at 0, 1, 3: nearest neighbours 1, 0, 1 at distances 1, 1, 2."""
    X = np.array([[0.0], [1.0], [3.0]])
    graph = graph_of(run(nearest, X, 1, np.random.default_rng(0)).indices)
    lengths = run(edge_lengths, X, graph)
    shares = edge_shares(lengths, graph.indptr, DECAY)
    np.testing.assert_allclose(shares, 1)
    radius = radii(lengths, shares, graph.indptr)
    np.testing.assert_allclose(radius, [1, 1, 2])
    strength = strength_of(radius)(radius)
    np.testing.assert_allclose(strength, np.array([1, 1, 0.25]) * (3 / 2 / 2.25))
    P, twice = (p.toarray() for p in run(affinities, graph, (shares, 2 * shares), strength))
    expected = np.array([[0, 2, 0], [2, 0, 0.25], [0, 0.25, 0]]) * (1.5 / 2.25)
    np.testing.assert_allclose(P, expected, rtol=1e-6)
    np.testing.assert_array_equal(twice, 2 * P)
    assert P.sum() == pytest.approx(3)


def test_affinities_of_many_points_are_symmetric_sums():
    """Rows of all lengths, with columns in any order, in several blocks."""
    rng, n = np.random.default_rng(0), 9000
    start, end = rng.integers(n, size=(2, 10 * n))
    graph = sp.csr_array((np.ones(10 * n, np.float32), (start, end)), shape=(n, n))
    graph.sum_duplicates()
    first = slice(*graph.indptr[:2])
    graph.indices[first] = graph.indices[first][::-1].copy()
    graph.has_sorted_indices = False
    shares, strength = rng.random(graph.nnz), rng.random(n)
    weight = (np.repeat(strength, np.diff(graph.indptr)) * shares).astype(np.float32)
    one_way = sp.csr_array((weight, graph.indices, graph.indptr), shape=(n, n))
    expected = sp.csr_array(one_way + one_way.T)
    expected.sort_indices()
    for n_jobs in (1, 3):
        (found,) = run(affinities, graph, [shares], strength, n_jobs=n_jobs)
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.data, expected.data)


def test_shares_are_half_equal_and_half_decay_with_the_squared_distance():
    rng = np.random.default_rng(0)
    lengths, ends = rng.gamma(4, size=(50, 30)), np.arange(0, 1501, 30)
    shares = edge_shares(lengths.ravel(), ends, 2.0).reshape(50, 30)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    by_hand = np.exp(-2 * lengths**2 / np.mean(lengths**2, axis=1, keepdims=True))
    by_hand = 0.5 / 30 + 0.5 * by_hand / by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, by_hand, rtol=1e-12)
    other_unit = edge_shares(1e3 * lengths.ravel(), ends, 2.0).reshape(50, 30)
    np.testing.assert_allclose(shares, other_unit, rtol=1e-9)


def test_shares_adapt_to_the_dimension_of_the_data():
    """Equal if all neighbours are about equally far; concentrated on the nearest along a thin structure."""
    rng = np.random.default_rng(0)
    line = np.abs(np.arange(-15, 16.0))[np.arange(-15, 16) != 0]
    cloud = np.linalg.norm(rng.normal(size=(30, 200)), axis=1)

    def nearest_ten(lengths):
        shares = edge_shares(lengths, np.array([0, 30]), DECAY)
        return shares[np.argsort(lengths)[:10]].sum()

    assert nearest_ten(line) > 0.6
    assert nearest_ten(cloud) < 0.45


def test_shares_of_rows_of_any_length():
    ends = np.array([0, 1, 3, 7, 17])
    lengths = np.random.default_rng(1).random(17)
    shares = edge_shares(lengths, ends, DECAY)
    np.testing.assert_allclose(np.add.reduceat(shares, ends[:-1]), 1)
    one = edge_shares(lengths[7:], np.array([0, 10]), DECAY)
    np.testing.assert_array_equal(shares[7:], one)  # a row does not depend on the others
    np.testing.assert_allclose(edge_shares(np.zeros(6), np.array([0, 6]), DECAY), 1 / 6)
    np.testing.assert_allclose(edge_shares(lengths[7:], np.array([0, 10]), 0.0), 1 / 10)


def on_both_paths(function):
    """Results with (if available) and without kernels."""
    with switched(True):
        first = function()
    with switched(False):
        return [first, function()]


def test_longest_steps_by_hand():
    """A chain at 0, 1, 2, 4 and a point at distance 3 from its start: steps 1, 1, 2 and 3."""
    X = np.array([[0.0, 0], [1, 0], [2, 0], [4, 0], [0, 3]], dtype=np.float32)
    links = np.ones((5, 5)) - np.eye(5)
    graph = sp.csr_array(links)
    for found in on_both_paths(lambda: longest_steps_of(X, graph)):
        np.testing.assert_allclose(found[:4], [1, 1, 2, 3], rtol=1e-6)
        np.testing.assert_allclose(found[12:16], [2, 2, 2, 3], rtol=1e-6)  # from the end
    # Paths lead through the neighbours of the point only.
    links[0, 1] = 0
    graph = sp.csr_array(links)
    for found in on_both_paths(lambda: longest_steps_of(X, graph)):
        np.testing.assert_allclose(found[:3], [2, 2, 3], rtol=1e-6)


def longest_steps_of(X, graph):
    return run(longest_steps, X, graph, run(edge_lengths, X, graph))


def test_longest_steps_are_those_of_the_minimum_spanning_tree():
    X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    X[40:60] = X[:20]  # duplicates
    X[-50:] += 100  # far from the origin and from the others
    links = np.random.default_rng(1).random((300, 300)) < 0.05
    links[7] = True  # more edges than the limit of the path search
    np.fill_diagonal(links, False)
    links = sp.csr_array(links.astype(np.float32))
    lengths = run(edge_lengths, X, links)
    for found in on_both_paths(lambda: longest_steps_of(X, links)):
        for i in (0, 3, 45, 260):
            row = slice(links.indptr[i], links.indptr[i + 1])
            around = X[np.concatenate([[i], links.indices[row]])].astype(float)
            expected = by_spanning_tree(around)
            np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-4)
        row = slice(links.indptr[7], links.indptr[8])
        np.testing.assert_array_equal(found[row], lengths[row])


def by_spanning_tree(points):
    """Longest edge on the path from the first point to each other point in the minimum spanning tree."""
    D = np.linalg.norm(points[:, None] - points, axis=2) + 1e-9  # SciPy treats 0 as no edge
    tree = minimum_spanning_tree(D)
    tree = (tree + tree.T).tocsr()
    order, before = breadth_first_order(tree, 0)
    longest = np.zeros(len(points))
    for j in order[1:]:
        longest[j] = max(longest[before[j]], tree[before[j], j])
    return longest[1:]


def test_shares_along_paths_stay_in_the_same_loop():
    """Neighbours at similar distances get shares if short steps lead to them."""
    steps, lengths = np.array([1.0, 1, 1, 4, 4]), np.array([1.0, 2, 3, 4, 4])
    shares = path_shares(steps, lengths, np.array([0, 5]), DECAY)
    by_hand = np.exp(-DECAY * steps**2 / np.mean(lengths**2))
    np.testing.assert_allclose(shares, by_hand / by_hand.sum())
    assert shares[:3].sum() > 0.99


def test_strength_of_duplicates_is_bounded():
    radius = np.array([0.0, 0.0, 1.0, 3.0])
    strength = strength_of(radius)(radius)
    assert np.isfinite(strength).all()
    assert strength[0] == pytest.approx(100 * strength[2])
    np.testing.assert_allclose(strength_of(np.zeros(4))(np.zeros(4)), 0.5)


def test_number_of_neighbors_is_at_most_a_third_of_the_points():
    assert check_neighbors(None, 1000) == 30
    assert check_neighbors(None, 400) == 20
    assert check_neighbors(None, 100) == 10
    assert check_neighbors(None, 27) == 9
    assert check_neighbors(None, 4) == 1
    assert check_neighbors(7, 21) == 7
    with pytest.raises(ValueError, match="6, got 7"):
        check_neighbors(7, 20)


def ring(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([np.ones(n - 1), [1.0]], offsets=[1, 1 - n]))


def test_bad_graphs_are_refused():
    assert check_neighbors(ring(5), 5).nnz == 5
    with pytest.raises(ValueError, match=r"\(6, 6\).*got \(5, 5\)"):
        check_neighbors(ring(5), 6)
    with pytest.raises(ValueError, match="diagonal in row 0"):
        check_neighbors(ring(5) + sp.eye_array(5), 5)
    for value in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match=r"^neighbors "):
            check_neighbors(ring(5) * value, 5)
    empty = sp.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"1 empty rows.* 2:"):
        check_neighbors(empty, 3)


def test_zeros_on_the_diagonal_are_no_self_loops():
    """As scanpy stores them; zeros elsewhere are the distances of duplicates, and edges."""
    graph = ring(5)
    graph.data[2] = 0
    rows, columns = graph.nonzero()
    rows = np.concatenate([[2], rows, np.arange(5)])
    columns = np.concatenate([[3], columns, np.arange(5)])
    with_zeros = sp.csr_array((np.r_[0.0, np.ones(4), np.zeros(5)], (rows, columns)))
    assert with_zeros.nnz == 10
    checked = check_neighbors(with_zeros, 5)
    np.testing.assert_array_equal(checked.indptr, graph.indptr)
    np.testing.assert_array_equal(checked.indices, graph.indices)
    with pytest.raises(ValueError, match="5 empty rows"):
        check_neighbors(sp.csr_array((np.zeros(5), (np.arange(5), np.arange(5)))), 5)
