"""The kernels in C against their definitions in NumPy, and how they are built and found."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from processes import python
from spheres import random_sphere

from mercat import _kernels as kernels
from mercat._data.arrays import blocks, rows_alike
from mercat._data.threads import Workers
from mercat._detail.affinities import Strength, edge_lengths, longest_steps
from mercat._detail.descent import (
    _MOMENTUM,
    Forces,
    _moved,
    attraction,
    final_bandwidth,
)
from mercat._detail.graphs import graph_of
from mercat._detail.neighbors import in_lanes, in_order, nearest_in_cells
from mercat._detail.new_points import DetailPlacer
from mercat._detail.repulsion import Field, Kernel
from mercat._detail.terms import (
    AngleTerm,
    PairForces,
    _force_in_c,
    anchors_at,
    numbers_for_kernels,
    pairs_of,
)
from mercat._kernels import _build, _library, neighbors
from mercat._math.angles import Calibration, apex_gradient, data_moments, directions, legs_of
from mercat._math.distances import DistanceTerm, HalfRanks
from mercat._math.sphere import geodesic, normalize
from mercat._solve.energy import Energy
from mercat._solve.landmarks import PlacedTerm
from mercat._solve.losses import AngleLoss
from mercat._solve.placement import as_type, placed_moments, prepare_landmarks

LIBRARY = _library._load()
pytestmark = pytest.mark.skipif(
    LIBRARY.handle is None and not os.environ.get("CI"), reason=LIBRARY.reason
)
SIZES = [1, 2, 15, 16, 17, 33, 100]  # fewer than, as many as and more than the lanes of a vector
MANY = 1700  # several times the rows per thread
LEVELS = list(_build.LEVELS)[: 1 + LIBRARY.handle.mercat_cpu_level()] if LIBRARY.handle else ["any"]


@pytest.fixture(params=LEVELS)
def level(request, monkeypatch):
    """Each instruction set that this processor supports."""
    monkeypatch.setattr(_library, "_load", lambda: LIBRARY._replace(level=request.param))
    monkeypatch.setattr(_library, "_wanted", True)
    return request.param


def by_numpy(function, *arguments):
    """Result of the NumPy definition."""
    with kernels.switched(False):
        return function(*arguments)


def by_any_split(function, n: int) -> np.ndarray:
    """Result of a kernel for all n rows, after comparison with results in parts."""
    whole = function(slice(0, n))
    for size in (1, 7, 16, 50):
        parts = [function(block) for block in blocks(n, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    return whole


def by_any_number_of_threads(function) -> np.ndarray:
    """Result of a kernel on one thread, after comparison with several threads."""
    one = function(1)
    for n_threads in (2, 3, 300):
        np.testing.assert_array_equal(function(n_threads), one)
    return one


def a_graph(n: int, rng: np.random.Generator) -> sp.csr_array:
    """Rows with zero, one and many entries, and weights of all magnitudes down to subnormal numbers."""
    degree = rng.choice([0, 1, 2, 7, 16, 31, 64, 65], size=n)
    weight = np.exp(rng.uniform(-103, 3, size=degree.sum())).astype(np.float32)
    ends = np.concatenate([[0], np.cumsum(degree)])
    return sp.csr_array((weight, rng.integers(n, size=len(weight)), ends), shape=(n, n))


# ------------------------------------------------------------------ detail


@pytest.mark.parametrize("n", [*SIZES, MANY])
@pytest.mark.parametrize("bandwidth", [0.4, 0.012])
def test_attraction(level, n, bandwidth):
    rng = np.random.default_rng(n)
    P, Y = a_graph(n, rng), random_sphere(n, n).astype(np.float32)
    Y[n // 2 :] = Y[: n - n // 2]  # duplicates
    workers = Workers(1)
    expected = by_numpy(attraction, P, Y.astype(np.float64), bandwidth, workers)
    found = by_any_number_of_threads(lambda t: kernels.attraction(P, Y, bandwidth, t))
    size = 4 / bandwidth**2 * np.asarray(P.sum(axis=1)).reshape(n, 1)
    smallest = 4 / bandwidth**2 * np.finfo(np.float32).smallest_normal
    assert (np.abs(found - expected) <= 1e-5 * size + smallest).all()
    np.testing.assert_array_equal(attraction(P, Y, bandwidth, workers), found)


def test_attraction_takes_wide_indices_and_other_layouts(level):
    rng = np.random.default_rng(0)
    P, Y = a_graph(50, rng), random_sphere(50, 0).astype(np.float32)
    expected = kernels.attraction(P, Y, 0.1, 1)
    P.indices, P.indptr = P.indices.astype(np.int64), P.indptr.astype(np.int64)
    found = kernels.attraction(P, np.asfortranarray(Y), 0.1, 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [*SIZES, MANY])
@pytest.mark.parametrize("longest", [1e-3, 10.0])
def test_steps(level, n, longest):
    rng = np.random.default_rng(n)
    Y = random_sphere(n, n).astype(np.float32)
    velocity, *forces = (rng.normal(size=(n, 3)).astype(np.float32) for _ in range(4))
    for array in (velocity, *forces):
        array[0] = 0  # stays
    curvatures = (np.exp(rng.normal(size=(n, 1))).astype(np.float32) for _ in range(2))
    forces = Forces(*forces, *curvatures, (0.3, 2.0, 0.1))
    arguments = Y, velocity, forces, 0.7, longest, Workers(1)
    expected = by_numpy(_moved, *arguments)

    def step(n_threads: int) -> np.ndarray:
        *arrays, factors = forces
        moved = kernels.move(Y, velocity, arrays, factors, _MOMENTUM, 0.7, longest, n_threads)
        return np.column_stack(moved)

    found = by_any_number_of_threads(step)
    np.testing.assert_array_equal(np.column_stack(_moved(*arguments)), found)
    np.testing.assert_allclose(found, np.column_stack(expected), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), 1, rtol=1e-6)
    assert (np.linalg.norm(found[:, :3] - Y, axis=1) <= longest * 1.001).all()
    np.testing.assert_allclose(found[0, :3], Y[0], rtol=1e-6)


def special_places(n: int) -> np.ndarray:
    """Random points, poles, date line, equator, points next to them, and duplicates."""
    tiny = np.float32(1e-38)
    odd = [[0, 0, 1], [0, 0, -1], [-1, 0, 0], [-1, -tiny, 0], [-1, tiny, 0], [1, 0, 0], [0, 1, 0]]
    odd += [[0, -1, 0], [tiny, tiny, 1], [-1e-4, 1e-7, -1]]
    return np.concatenate([random_sphere(n, 0), odd, random_sphere(n, 0)]).astype(np.float32)


@pytest.mark.parametrize("n", [0, *SIZES, MANY])
def test_spreading(level, n):
    Y = special_places(n) if n else np.empty((0, 3), dtype=np.float32)
    kernel = Kernel(0.2, Workers(1))
    expected = by_numpy(kernel.field, Y.astype(np.float64))
    found = kernel.field(Y)
    largest = np.abs(expected.values).max()
    np.testing.assert_allclose(found.values, expected.values, atol=1e-4 * largest, rtol=0)
    grids = np.ones((-(-len(Y) // 100), 14 * 24), dtype=np.float32)
    grid = by_any_number_of_threads(lambda t: kernels.charge(Y, 10, 24, 100, grids, t))
    assert grid.sum() == pytest.approx(len(Y), rel=1e-6)


@pytest.mark.parametrize("bandwidth", [0.5, 0.11, 0.03])
def test_field_by_the_table(level, bandwidth):
    Y = special_places(300)
    expected = by_numpy(lambda: Kernel(bandwidth, Workers(1)).field(Y).values)
    kernel = Kernel(bandwidth, Workers(1))
    found = kernel.field(Y).values
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * expected.max())
    with Workers(3) as workers:
        np.testing.assert_array_equal(Kernel(bandwidth, workers).field(Y).values, found)


def test_fields_of_few_points_have_no_subnormal_numbers(level):
    """Products of subnormal numbers take ten times as long on some processors."""
    kernel = Kernel(0.02, Workers(1))
    kernel.field(np.tile(np.float32([1, 0, 0]), (50, 1)))
    for numbers in (kernel._table.values, kernel._table.scratch):
        size = np.abs(numbers[numbers != 0])
        assert size.min() > np.finfo(np.float32).tiny


def test_charges_of_distant_blocks_add_up(level):
    """Each block of points has a grid of which only some rows are used."""
    north, south = (np.tile(np.float32([0.6, 0, z]), (10_000, 1)) for z in (0.8, -0.8))
    kernel = Kernel(0.2, Workers(1))
    expected = by_numpy(kernel._charge, np.concatenate([north, south]))
    for _ in range(2):  # grids are reused
        found = kernel._charge(np.concatenate([north, south]))
        np.testing.assert_allclose(found, expected, rtol=2e-4)  # sums of ten thousand
        kernel._charge(np.concatenate([south, north]))


@pytest.mark.parametrize("n", [*SIZES, MANY])
def test_reading(level, n):
    Y = special_places(n)
    kernel = Kernel(0.2, Workers(1))
    field = kernel.field(Y)
    wide = Field(field.values.astype(np.float64), field.n_rows, field.n_columns)
    value, slope = by_numpy(wide.at, Y.astype(np.float64))
    found = by_any_split(lambda b: np.column_stack(field.at(Y[b])), len(Y))
    np.testing.assert_array_equal(np.column_stack(field.at(Y, 3)), found)
    np.testing.assert_allclose(found[:, 0], value, rtol=1e-5)
    steepest = np.abs(slope).max()
    # Next to a pole, the direction east depends on rounding; the length of the slope is compared.
    off = np.hypot(Y[:, 0], Y[:, 1]) > 1e-3
    np.testing.assert_allclose(found[off, 1:], slope[off], atol=2e-4 * steepest, rtol=0)
    lengths = np.linalg.norm(found[:, 1:], axis=1)
    assert np.isfinite(lengths).all()


def test_kernels_accept_non_finite_positions(level):
    Y = np.full((20, 3), np.nan, dtype=np.float32)
    Y[::3] = np.inf
    assert kernels.charge(Y, 10, 24, 20, np.empty((1, 14 * 24), np.float32), 1).shape == (14 * 24,)
    assert kernels.read_field(np.ones(14 * 24), Y, 10, 24, 1)[0].shape == (20,)


# ------------------------------------------------------------------ neighbours


@pytest.mark.parametrize(
    ("q", "n", "k"), [(1, 1, 1), (3, 63, 5), (7, 64, 63), (5, 700, 30), (2, 65, 1)]
)
@pytest.mark.parametrize("whole", [True, False])
def test_smallest(level, q, n, k, whole, monkeypatch):
    rng = np.random.default_rng(n)
    left, right = (rng.normal(size=(m, 9)).astype(np.float32) for m in (q, n))
    right[n // 2 :] = right[: n - n // 2]  # ties
    left[0] *= 1e-38  # subnormal products
    monkeypatch.setattr(neighbors, "_PRODUCTS", 1 << 19 if whole else 100)
    itself = np.arange(q) % n
    D = left @ right.T
    found = kernels.smallest(left, right, k, None)
    assert all(len(set(row)) == k for row in found.tolist())
    np.testing.assert_allclose(
        np.sort(np.take_along_axis(D, found, 1)), np.sort(D)[:, :k], rtol=1e-5, atol=1e-6
    )
    if k < n:
        found = kernels.smallest(left, right, k, itself)
        D[np.arange(q), itself] = np.inf
        assert not (found == itself[:, None]).any()
        np.testing.assert_allclose(
            np.sort(np.take_along_axis(D, found, 1)), np.sort(D)[:, :k], rtol=1e-5, atol=1e-6
        )


def test_smallest_says_when_there_are_not_enough(level):
    right = np.ones((5, 2), dtype=np.float32)
    right[2:] = np.inf, np.nan
    assert kernels.smallest(np.ones((1, 2), dtype=np.float32), right, 2, None) is not None
    assert kernels.smallest(np.ones((1, 2), dtype=np.float32), right, 3, None) is None


@pytest.mark.parametrize("r", [1, 5, 16, 33, 50])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_nearest_in_cells(level, r, k):
    rng = np.random.default_rng(r)
    points, queries = (rng.normal(size=(m, r)).astype(np.float32) for m in (100, 270))
    points[50:60] *= 1e-25  # equal distances
    queries[1] *= 1e-22  # squares are subnormal
    queries[2:9] = points[:7]
    queries[9:] = queries[9:] / 4 + points[20]  # most find neighbours in the same order
    sizes = np.array([1, 0, 16, 16, 67])  # one empty, two with partial lanes
    order = rng.permutation(100)
    X, starts, position = in_lanes(points[np.argsort(order)], order, sizes)
    assert starts.tolist() == [0, 16, 16, 32, 48, 128]
    np.testing.assert_array_equal(X[position // 16, :, position % 16], points)
    assert np.isinf(X).sum() == (128 - 100) * r
    cells = np.array([np.sort(rng.permutation(5)[:3]) for _ in queries])
    cells[0] = 0, 1, 2  # cells of 17 points
    itself = np.full(len(queries), -1)
    itself[2:9] = position[:7]
    arguments = X, starts[:-1], starts[1:], queries, itself, cells
    expected, distances = by_numpy(nearest_in_cells, *arguments, k)
    found, apart = nearest_in_cells(*arguments, k)
    np.testing.assert_array_equal(found < 0, expected < 0)
    np.testing.assert_array_equal(found == -1, np.isinf(apart))
    assert (found[0] >= 0).sum() == min(k, 17)
    assert not (found == itself[:, None]).any(axis=1)[2:9].any()
    np.testing.assert_allclose(apart, distances, rtol=1e-5, atol=1e-20)
    assert (np.diff(np.where(found < 0, 1e9, apart), axis=1) >= 0).all()
    in_order_of_index = found[:, :-1] < found[:, 1:]
    assert in_order_of_index[(apart[:, :-1] == apart[:, 1:]) & (found[:, 1:] >= 0)].all()
    for i in range(0, len(queries), 7):
        assert len(set(found[i][found[i] >= 0])) == (found[i] >= 0).sum()
        some = slice(i, i + 1)
        alone = nearest_in_cells(*arguments[:3], queries[some], itself[some], cells[some], k)
        np.testing.assert_array_equal(alone[0][0], found[i])
        np.testing.assert_array_equal(alone[1][0], apart[i])


@pytest.mark.parametrize("k", [1, 2, 16, 33])
def test_in_order(level, k):
    rng = np.random.default_rng(k)
    X = rng.integers(3, size=(50, 2)).astype(np.float32)  # many equal distances, exact in any order
    queries, found = X[:17], np.array([rng.permutation(50)[:k] for _ in range(17)])
    expected = by_numpy(in_order, X, queries, found)
    for got, want in zip(in_order(X, queries, found), expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("n", "r", "k"), [(2, 1, 1), (40, 3, 7), (300, 17, 30), (200, 5, 140)])
def test_longest_steps(level, n, r, k):
    rng = np.random.default_rng([n, k])
    X = rng.normal(size=(n, r)).astype(np.float32)
    X[n // 2 :] = X[: n - n // 2]  # duplicates
    others = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    graph, workers = graph_of(others), Workers(2)
    lengths = edge_lengths(X, graph, workers)
    expected = by_numpy(longest_steps, X, graph, lengths, workers)
    close(longest_steps(X, graph, lengths, workers), expected, np.float32)


# ------------------------------------------------------------------ angles


def awkward(b: int, m: int, r: int, dtype) -> tuple[np.ndarray, ...]:
    """Apices and legs with duplicates on the map and in the data, some distant and some tiny."""
    rng = np.random.default_rng([b, m, r])
    X = rng.normal(size=(b + m, r)) * np.exp(rng.uniform(-6, 6, size=(b + m, 1)))
    Y = random_sphere(b + m, m)
    X[b:][: b // 2] = X[: b // 2][:m]  # coinciding in the data ...
    Y[b:][: b // 3] = Y[: b // 3][:m]  # ... and on the map
    Y[-1] = -Y[0]
    Y[0] = [0, 0, -1]
    return tuple(a.astype(dtype) for a in (X[:b], X[b:], Y[:b], Y[b:]))


def close(found, expected, dtype) -> None:
    """Equal up to rounding, relative to the largest value of each row."""
    expected = np.asarray(expected)
    size = np.abs(expected).max(axis=-1, keepdims=True) if expected.ndim else np.abs(expected)
    tolerance = 2e-4 if dtype == np.float32 else 1e-11
    assert np.isfinite(found).all()
    assert (np.abs(found - expected) <= tolerance * (size + 1e-30)).all()


def angles_by_kernels(X_apex, X_legs, Y_apex, Y_legs, softening):
    legs = legs_of(X_apex, X_legs)
    b, s = directions(legs, Y_apex, Y_legs, softening)
    line = Calibration(0.1, 0.8)
    return legs, b, s, data_moments(legs), apex_gradient(legs, Y_apex, Y_legs, b, s, line)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("softening", [1e-3, None])
@pytest.mark.parametrize(
    ("b", "m", "r"), [(1, 1, 1), (2, 17, 3), (5, 16, 50), (33, 100, 7), (3, 40, 41)]
)
def test_angles(level, b, m, r, softening, dtype):
    arrays = awkward(b, m, r, dtype)
    wide = [a.astype(np.float64) for a in arrays]
    eps = float(np.finfo(dtype).eps) if softening is None else softening
    found = angles_by_kernels(*arrays, softening)
    expected = by_numpy(angles_by_kernels, *wide, eps)
    # In single precision, a few pairs coincide that are distinct in double precision.
    same = (found[0].inverse_distance == 0) == (expected[0].inverse_distance == 0)
    assert same.all()
    np.testing.assert_allclose(found[0].inverse_distance, expected[0].inverse_distance, rtol=2e-4)
    if softening is None:  # values within rounding of a jump may be on either side
        return
    for got, want in zip([*found[1], *found[2]], [*expected[1], *expected[2]], strict=True):
        close(got, want, dtype)
    rounding = (2e-6 if dtype == np.float32 else 1e-13) * m * m
    for got, want in zip(found[3], expected[3], strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=rounding)
    scale = m + np.abs(expected[4][1]).max()
    for got, want in zip(found[4], expected[4], strict=True):
        assert np.abs(got - want).max() <= (1e-3 if dtype == np.float32 else 1e-10) * scale


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("b", "m", "r", "n_legs"), [(1, 1, 1, 1), (2, 17, 3, 17), (33, 100, 7, 30), (9, 40, 41, 60)]
)
def test_moments_of_placed_points(level, b, m, r, n_legs, dtype):
    X_apex, X_legs, _, Y_legs = awkward(b, m, r, dtype)
    Y_apex = random_sphere(b, 1).astype(dtype)  # not at legs, where directions jump
    arguments = X_apex, Y_apex, X_legs, Y_legs, 17, n_legs, 7
    found, expected = placed_moments(*arguments), by_numpy(placed_moments, *arguments)
    rounding = 8 * np.finfo(dtype).eps * m * m
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_apex_does_not_depend_on_others(level, dtype):
    X_apex, X_legs, Y_apex, Y_legs = awkward(60, 37, 11, dtype)
    near = legs_of(X_apex, X_legs).inverse_distance
    ones = np.ones((60, 37), dtype=dtype)

    def part(rows: slice) -> np.ndarray:
        B, sine, frame, S, S12, t, _ = kernels.bearings(
            Y_apex[rows], Y_legs, ones[rows], 1e-3, near[rows]
        )
        force, _ = kernels.apex_gradient(
            Y_apex[rows], Y_legs, near[rows], (B, sine, frame), (S, S12, t), B + 1, (0.1, 0.8)
        )
        moments = kernels.data_moments(X_apex[rows], X_legs, near[rows])
        placed = placed_moments(X_apex[rows], Y_apex[rows], X_legs, Y_legs, rows.start, 20, 16)
        pairs = (a.transpose(1, 0, 2).reshape(len(sine), -1) for a in (B, frame))
        return np.column_stack([*pairs, sine, S.T, S12, t.T, force, *moments, *placed])

    by_any_split(part, 60)


@pytest.mark.parametrize("line", [None, Calibration(0.1, 0.8)])
@pytest.mark.parametrize(
    ("n", "r"), [(3, 1), (4, 50), (17, 3), (33, 16), (64, 7), (65, 17), (101, 50), (300, 2)]
)
def test_loss_of_all_points(level, n, r, line):
    X, more_X, Y, more_Y = awkward(n // 2, n - n // 2, r, np.float32)
    X, Y = np.concatenate([X, more_X]), np.concatenate([Y, more_Y])

    def evaluated(X, Y, n_jobs=1):
        with Workers(n_jobs) as workers:
            loss = AngleLoss(X, line=line, workers=workers)
            return loss.evaluate(Y, 1e-3), loss.judge(Y, 1e-3)

    (value, gradient), fit = evaluated(X, Y)
    (wanted, slope), wanted_fit = by_numpy(evaluated, X.astype(np.float64), Y.astype(np.float64))
    assert value == pytest.approx(wanted, rel=2e-4, abs=1e-6)
    assert np.abs(gradient - slope).max() <= 1e-4 * (1 / n + np.abs(slope).max())
    assert fit.loss == pytest.approx(wanted_fit.loss, rel=2e-4, abs=1e-3)
    assert fit.correlation == pytest.approx(wanted_fit.correlation, abs=2e-4)
    np.testing.assert_allclose(fit.point_loss, wanted_fit.point_loss, atol=2e-3)

    def on_threads(n_threads: int) -> np.ndarray:
        (value, gradient), fit = evaluated(X, Y, n_threads)
        return np.column_stack([gradient, fit.point_loss, np.full(n, value)])

    by_any_number_of_threads(on_threads)


def test_more_points_than_the_kernel_supports(level):
    n = kernels.MAX_APICES + 1
    X, Y = random_sphere(n, 0).astype(np.float32), random_sphere(n, 1).astype(np.float32)
    loss = AngleLoss(X, line=None, workers=Workers(1))
    all_but_one = AngleLoss(X[1:], line=None, workers=Workers(1))
    assert loss.judge(Y).loss == pytest.approx(all_but_one.judge(Y[1:]).loss, rel=1e-3)


@pytest.mark.parametrize("terms", [(), (PairForces(DistanceTerm(0.3, 1.4, 2.0), 0.7),)])
@pytest.mark.parametrize(
    ("b", "m", "r"), [(1, 1, 1), (2, 17, 3), (5, 16, 50), (33, 48, 50), (3, 40, 41), (1030, 48, 50)]
)
def test_far_forces(level, b, m, r, terms):
    X, X_anchors, Y, Y_anchors = awkward(b, m, r, np.float32)
    angles = AngleTerm(Calibration(0.1, 0.8), 0.3)

    def by_definition(X, X_anchors, Y, Y_anchors):
        anchors = anchors_at(X_anchors, Y_anchors, 1e-3)
        pairs = pairs_of(X, anchors)
        found = [term.force(pairs, Y, anchors) for term in (angles, *terms)]
        forces, curvatures, sums = zip(*found, strict=True)
        return sum(forces), sum(curvatures), np.concatenate(sums)

    wide = (a.astype(np.float64) for a in (X, X_anchors, Y, Y_anchors))
    expected = by_numpy(by_definition, *wide)
    anchors = anchors_at(X_anchors, Y_anchors, 1e-3)
    numbers = numbers_for_kernels(angles, terms, anchors)
    force, curvature, sums = _force_in_c(X, Y, anchors, numbers, 2)
    scale = 1 / angles.variance + np.abs(expected[0]).max()
    assert np.abs(force - expected[0]).max() <= 1e-4 * scale
    np.testing.assert_allclose(curvature, expected[1], rtol=1e-4)
    found = np.concatenate(sums[: 1 + len(terms)])
    np.testing.assert_allclose(found, expected[2], rtol=1e-6, atol=2e-6 * b * m * m)

    def part(rows: slice) -> np.ndarray:
        return np.hstack(_force_in_c(X[rows], Y[rows], anchors, numbers, 1)[:2])

    by_any_split(part, b)


def test_terms_without_kernels_use_numpy():
    class Other(DistanceTerm):
        pass

    anchors = anchors_at(*(random_sphere(9, k).astype(np.float32) for k in (0, 1)), 1e-3)
    angles, other = AngleTerm(Calibration(0.1, 0.8), 0.3), PairForces(Other(0.3, 1.4, 2.0), 1.0)
    assert numbers_for_kernels(angles, (other,), anchors) is None
    assert numbers_for_kernels(angles, (other._replace(term=DistanceTerm()),), anchors)


@pytest.mark.parametrize("terms", [(), (PairForces(DistanceTerm(0.3, 1.4, 2.0), 1.0),)])
def test_new_points_on_a_map_with_detail(level, terms):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(460, 9)).astype(np.float32)
    Y = normalize(X[:400, :3]).astype(np.float32)
    field = Kernel(final_bandwidth(400), Workers(1)).field(Y)
    anchors = anchors_at(X[:33], Y[:33], 1e-3)
    about = Strength(2.0, 0.4), field, 0.02, anchors, Calibration(0.1, 0.8), 0.3, 2.0, terms, 5.0
    placer = DetailPlacer(X[:400], Y, 7, *about)
    new = np.concatenate([X[400:], X[:2]])
    with rows_alike():
        expected = by_numpy(placer.place, new)
        found = by_any_split(lambda rows: placer.place(new[rows]), len(new))
    np.testing.assert_array_equal(found[-2:], Y[:2])
    np.testing.assert_allclose(found, expected, atol=1e-4)


# ------------------------------------------------------------------ placement


@pytest.mark.parametrize("m", SIZES)
def test_half_ranks(level, m):
    rng = np.random.default_rng(m)
    quantiles, ranks = np.sort(rng.lognormal(size=65)), np.linspace(0, 3, 65)
    quantiles[20:30], ranks[20:30] = quantiles[20], ranks[20]  # several are equal
    quantiles[0] = 0
    scale = HalfRanks(quantiles, ranks, 0.7)
    near = 1 / rng.lognormal(0, 2, size=(70, m)).astype(np.float32)
    near[:, 0], near[3], near[4] = 1 / quantiles[25], 0, 1e-3 / quantiles[-1]
    expected = by_numpy(scale.inverse, near)
    np.testing.assert_allclose(expected, scale.inverse(near.astype(np.float64)), rtol=1e-5)
    found = by_any_split(lambda rows: scale.inverse(near[rows]), len(near))
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    assert (found[3] == 0).all()


def landmarks_and_points(L: int, r: int, n_apices: int | None, n_legs: int):
    rng = np.random.default_rng([L, r])
    X = rng.normal(size=(L + 70, r)) * np.linspace(3, 0.3, r)
    Y = normalize(np.pad(X[:L], [(0, 0), (0, 3)])[:, :3] + 1e-3)
    landmarks = prepare_landmarks(X[:L], Y, Calibration(0.1, 0.7), n_apices, n_legs)
    points = X[L:].copy()
    points[:3] = X[1]  # duplicates of a landmark ...
    points[3:6] = points[6]  # ... and of each other
    return landmarks, points


@pytest.mark.parametrize(
    ("L", "r", "n_apices", "n_legs"),
    [(5, 1, None, 5), (40, 3, None, 17), (150, 50, 100, 80), (64, 16, 33, 33), (4, 2, None, 80)],
)
def test_placement(level, L, r, n_apices, n_legs):
    double, points = landmarks_and_points(L, r, n_apices, n_legs)
    landmarks = as_type(double, np.float32)
    points = points.astype(np.float32)
    with rows_alike():
        expected, found = by_numpy(landmarks.place, points), landmarks.place(points)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(found[:3], expected[:3])
    assert (found[3:6] == found[6]).all()
    # Rounding may lead to another equally good minimum.
    energy = Energy(points.astype(np.float64), double)
    at, best = (energy(Y.astype(np.float64))[0][3:] for Y in (found, expected))
    spread = np.ptp(energy.screen()[3:], axis=1)
    assert (np.abs(at - best) <= 1e-3 * spread).mean() > 0.9
    assert (at <= best + 0.05 * spread).all()
    # Both roughly agree on the points that have converged.
    there, here = (by_numpy(landmarks.place_roughly, points), landmarks.place_roughly(points))
    assert (there[1] == here[1]).mean() > 0.9


@pytest.mark.parametrize("ranked", [False, True])
def test_energies_of_distances(level, ranked):
    double, points = landmarks_and_points(150, 20, 100, 77)
    scale = HalfRanks(np.linspace(0, 3, 65) ** 1.5, np.linspace(0, 3, 65), 1.3) if ranked else None
    term = PlacedTerm(DistanceTerm(0.3, 1.4, 2.0), 50.0, scale)
    double, points = double._replace(terms=(term,)), points[6:]
    starts = random_sphere(2 * len(points), 0).reshape(-1, 2, 3)
    _, found = as_type(double, np.float32).place_from(
        points.astype(np.float32), starts.astype(np.float32), 0
    )
    energy = Energy(points, double)
    expected = np.minimum(*(energy(starts[:, k])[0] for k in (0, 1)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_position_of_a_point_does_not_depend_on_the_batch(level):
    landmarks, points = landmarks_and_points(150, 20, 100, 77)
    landmarks, X = as_type(landmarks, np.float32), points.astype(np.float32)
    scale = HalfRanks(np.linspace(0, 3, 65) ** 1.5, np.linspace(0, 3, 65), 1.3)
    term = PlacedTerm(DistanceTerm(0.3, 1.4, 2.0), 50.0, scale)
    landmarks = landmarks._replace(terms=(term,))
    Y = random_sphere(2 * len(X), 0).reshape(-1, 2, 3).astype(np.float32)

    def part(rows: slice) -> np.ndarray:
        found = landmarks.place(X[rows]), *landmarks.place_roughly(X[rows], Y[rows, 0])
        H = landmarks.inverse_hessians(X[rows], Y[rows, 0])
        near = landmarks.place_near(X[rows], Y[rows], H)
        found = *found, H.reshape(-1, 9), near, *landmarks.place_from(X[rows], Y[rows])
        return np.column_stack(found)

    assert np.isfinite(by_any_split(part, len(X))).all()


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_points_equal_to_landmarks_get_their_positions(level, far):
    """Also far from the origin, where inner products cancel; points that are merely near do not."""
    X = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float32) + np.float32(far)
    Y = random_sphere(40, 0)
    placer = as_type(prepare_landmarks(X.astype(np.float64), Y, Calibration(0.1, 0.7)), np.float32)
    among = np.concatenate([X[:1] + 1, X, X[:3] + np.float32(0.1)])
    expected = Y.astype(np.float32)
    np.testing.assert_array_equal(placer.place(among)[1:-3], expected)
    found, settled = placer.place_roughly(among)
    np.testing.assert_array_equal(found[1:-3], expected)
    assert settled[1:-3].all()
    starts = np.roll(Y, 1, axis=0).astype(np.float32)[:, None]
    np.testing.assert_array_equal(placer.place_from(X, starts)[0], expected)
    assert (geodesic(found[-3:], expected[:3]) > 1e-3).all()


# ------------------------------------------------------------------ threads

ON_THREADS = """
import json, os, threading
import numpy as np
from mercat import _kernels as kernels
rng = np.random.default_rng(0)
Y = rng.normal(size=(40_000, 3)).astype(np.float32)
around, least = rng.normal(size=Y.shape).astype(np.float32), np.ones((len(Y), 1), np.float32)

def moved(n_threads):
    arrays = (around, around, around, least, least)
    return kernels.move(Y, around, arrays, (1.0, 1.0, 1.0), 0.8, 1.0, 0.1, n_threads)[0].tobytes()

def n_helpers():
    return len(os.listdir("/proc/self/task")) - threading.active_count()

alone = moved(1)
"""


def test_concurrent_loops_give_the_same_bits():
    """More loops than threads.c supports; those without helpers process all of their rows."""
    code = """
found = []
threads = [
    threading.Thread(target=lambda: found.extend(moved(k) for k in (2, 3, 8) * 10)) for _ in range(30)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([len(found), all(bits == alone for bits in found)]))
"""
    assert python(ON_THREADS + code) == [900, True]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_helper_threads_stay_alive_and_block_signals():
    code = """
before = n_helpers()
for _ in range(20):
    moved(4)
tasks = [f"/proc/self/task/{task}/status" for task in os.listdir("/proc/self/task")]
blocked = [line.split()[1] for t in tasks for line in open(t) if line.startswith("SigBlk")]
term = 1 << signal.SIGTERM - 1
print(json.dumps([n_helpers() - before, sum(bool(int(b, 16) & term) for b in blocked)]))
"""
    assert python("import signal\n" + ON_THREADS + code) == [3, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_starts_its_own_helper_threads():
    """Also if another thread of the parent is in a loop."""
    code = """
ended = False
def busy():
    while not ended:
        moved(3)
thread = threading.Thread(target=busy)
thread.start()
same = []
for _ in range(20):
    pid = os.fork()
    if not pid:
        signal.alarm(20)
        os._exit(0 if moved(4) == alone and n_helpers() == 3 else 1)
    same.append(os.waitpid(pid, 0)[1] == 0 and moved(4) == alone)
    if not same[-1]:
        break
ended = True
thread.join()
print(json.dumps(same))
"""
    code = code if sys.platform == "linux" else code.replace(" and n_helpers() == 3", "")
    preamble = "import signal, warnings\nwarnings.simplefilter('ignore')\n"  # on forks with threads
    assert python(preamble + ON_THREADS + code) == [True] * 20


# ------------------------------------------------------------------ building and finding


def test_library_is_rebuilt_when_the_source_changes(tmp_path):
    for path in _build.FOLDER.glob("*.[ch]"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert _build.library(tmp_path).name == _build.library().name
    with (tmp_path / "descent.c").open("a") as source:
        source.write("\n")
    assert _build.library(tmp_path).name != _build.library().name


def test_concurrent_builds_do_not_interfere(tmp_path):
    target = tmp_path / _build.library().name
    build = functools.partial(_build.build, target, extra=["-O0"])  # quickly
    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes()[:4] == _build.library().read_bytes()[:4]


def test_a_failing_compiler_builds_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(_build.CannotBuild, match="false"):
        _build.build(tmp_path / "kernels.so")
    monkeypatch.setenv("CC", str(tmp_path / "none"))
    with pytest.raises(_build.CannotBuild, match="cannot be run"):
        _build.build(tmp_path / "kernels.so")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(_build.CannotBuild, match="no C compiler"):
        _build.build(tmp_path / "kernels.so")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("value", "expected"), [("0", "MERCAT_NATIVE is 0"), ("1", "compiled")])
def test_environment_variable_disables_kernels(value, expected):
    code = "from mercat import _kernels; print(_kernels.available(), _kernels.describe())"
    environment = {**os.environ, "MERCAT_NATIVE": value}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    available, _, words = done.stdout.partition(" ")
    assert available == str(value == "1")
    assert expected in words
