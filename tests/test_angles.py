"""The block form of the loss against its definition, and the definition against values by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from spheres import random_sphere

from mercat._math import angles as _angles
from mercat._math.angles import (
    ABSOLUTE,
    Calibration,
    Moments,
    apex_gradient,
    apex_sums,
    bearings,
    calibrate,
    data_moments,
    inverse_distances,
    legs_of,
    legs_with_ones,
    map_moments,
    mean_square,
    total,
)
from mercat._math.definition import (
    angle_gradient,
    angle_loss,
    spherical_triple_cosines,
    triple_cosines,
)
from mercat._math.sphere import normalize

CALIBRATIONS = [ABSOLUTE, Calibration(0.3, 0.6), Calibration(-0.2, 1.4)]


def all_triples(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n), 3)))


def block_moments(X: np.ndarray, Y: np.ndarray) -> Moments:
    legs = legs_of(X, X)
    return Moments(*data_moments(legs), *map_moments(apex_sums(legs, bearings(Y, Y, legs.mask))))


def block_gradient(X: np.ndarray, Y: np.ndarray, calibration: Calibration) -> np.ndarray:
    legs = legs_of(X, X)
    b = bearings(Y, Y, legs.mask)
    to_apices, to_legs = apex_gradient(legs, Y, Y, b, apex_sums(legs, b), calibration)
    return (to_apices + to_legs) / block_moments(X, Y).count.sum()


# ------------------------------------------------------------------ the definition, by hand


def test_cosines_of_a_right_triangle():
    X = np.array([[0.0, 0], [3, 0], [0, 4]])
    np.testing.assert_allclose(
        triple_cosines(X, np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])),
        [0, 3 / 5, 4 / 5],
        atol=1e-15,
    )


def test_spherical_angles_sum_to_more_than_pi():
    """A triangle on the sphere exceeds pi by its area: an octant has three right angles."""
    Y = normalize(np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]]))
    angles = np.arccos(spherical_triple_cosines(Y, np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])))
    # Girard: the area by the formula of Oosterom and Strackee.
    volume = abs(np.linalg.det(Y))
    area = 2 * np.arctan2(volume, 1 + Y[0] @ Y[1] + Y[1] @ Y[2] + Y[2] @ Y[0])
    np.testing.assert_allclose(angles.sum() - np.pi, area)


def test_three_formulas_of_a_spherical_angle_agree():
    """Law of cosines, normals of planes (the paper's) and tangents."""
    Y, triples = random_sphere(6), all_triples(6)
    i, j, k = triples.T
    a, b, c = (np.arccos(np.sum(Y[p] * Y[q], 1)) for p, q in ((j, k), (i, k), (i, j)))
    law = (np.cos(a) - np.cos(b) * np.cos(c)) / (np.sin(b) * np.sin(c))
    t = bearings(Y, Y, None)
    tangents = (t.B[0, i, j] * t.B[0, i, k] + t.B[1, i, j] * t.B[1, i, k]) * 1.0
    normals = spherical_triple_cosines(Y, triples)
    np.testing.assert_allclose(normals, law, atol=1e-9)
    np.testing.assert_allclose(tangents, law, atol=1e-7)


def test_loss_of_four_points_by_hand():
    """An octant against an equilateral triangle: every cosine is 0 on the sphere and 1/2 in the data."""
    X = np.array([[0.0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert angle_loss(X, np.eye(3), all_triples(3)) == pytest.approx(0.5)
    assert angle_loss(X, np.eye(3), all_triples(3), alpha=0.5, beta=3.0) == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_gradient_of_the_definition_matches_central_differences(calibration):
    rng = np.random.default_rng(0)
    X, Y, triples = rng.normal(size=(7, 4)), random_sphere(7), all_triples(7)
    numeric = np.zeros_like(Y)
    h = 1e-6
    for index in np.ndindex(Y.shape):
        up, down = Y.copy(), Y.copy()
        up[index] += h
        down[index] -= h
        losses = [angle_loss(X, normalize(P), triples, *calibration) ** 2 for P in (up, down)]
        numeric[index] = (losses[0] - losses[1]) / (2 * h)
    np.testing.assert_allclose(angle_gradient(X, Y, triples, *calibration), numeric, atol=1e-8)


# ------------------------------------------------------------------ blocks against the definition


@pytest.mark.parametrize("r", [1, 2, 5, 30])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_block_form_equals_the_definition(r, calibration):
    X, Y, triples = (
        np.random.default_rng(r).normal(size=(9, r)),
        random_sphere(9, r),
        all_triples(9),
    )
    loss = np.sqrt(mean_square(total(block_moments(X, Y)), calibration))
    assert loss == pytest.approx(angle_loss(X, Y, triples, *calibration), rel=1e-7)
    np.testing.assert_allclose(
        block_gradient(X, Y, calibration), angle_gradient(X, Y, triples, *calibration), atol=1e-9
    )


def test_moments_of_each_apex_equal_sums_over_its_triples():
    X, Y, triples = (
        np.random.default_rng(3).normal(size=(8, 3)),
        random_sphere(8, 3),
        all_triples(8),
    )
    a, b = triple_cosines(X, triples), spherical_triple_cosines(Y, triples)
    at = [np.bincount(triples[:, 0], w) for w in (np.ones_like(a), a, a * a, b, b * b, a * b)]
    for computed, expected in zip(block_moments(X, Y), at, strict=True):
        np.testing.assert_allclose(computed, expected, atol=1e-6)


def test_each_apex_with_its_own_legs_equals_the_definition():
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(20, 4)), random_sphere(20, 5)
    apices = np.array([3, 11, 17])
    own = np.array([[0, 1, 2, 5, 9], [4, 6, 7, 12, 19], [2, 3, 8, 10, 11]])
    triples = np.array(
        [
            (i, j, k)
            for i, row in zip(apices, own, strict=True)
            for j, k in itertools.permutations(row, 2)
        ]
    )
    legs = legs_of(X[apices], X[own])
    b = bearings(Y[apices], Y[own], legs.mask)
    s = apex_sums(legs, b)
    moments = total(Moments(*data_moments(legs), *map_moments(s)))
    calibration = Calibration(0.1, 0.7)
    assert np.sqrt(mean_square(moments, calibration)) == pytest.approx(
        angle_loss(X, Y, triples, *calibration), rel=1e-7
    )
    to_apices, to_legs = apex_gradient(legs, Y[apices], Y[own], b, s, calibration)
    gradient = np.zeros_like(Y)
    np.add.at(gradient, apices, to_apices)
    np.add.at(gradient, own, to_legs)
    np.testing.assert_allclose(
        gradient / moments.count, angle_gradient(X, Y, triples, *calibration), atol=1e-9
    )


def test_gradient_is_tangent():
    X, Y = np.random.default_rng(1).normal(size=(30, 5)), random_sphere(30, 1)
    gradient = block_gradient(X, Y, Calibration(0.2, 0.8))
    np.testing.assert_allclose(np.sum(gradient * Y, axis=1), 0, atol=1e-12)
    assert np.abs(gradient).max() > 1e-4


@pytest.mark.parametrize("change", ["rotate Y", "rotate X", "scale X", "translate X", "reflect Y"])
def test_rotation_scaling_and_translation_do_not_change_moments(change):
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(12, 4)), random_sphere(12, 2)
    before = total(block_moments(X, Y))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    X2, Y2 = {
        "rotate Y": (X, Y @ np.linalg.qr(rng.normal(size=(3, 3)))[0]),
        "reflect Y": (X, Y * [1, 1, -1]),
        "rotate X": (X @ turn, Y),
        "scale X": (7.5 * X, Y),
        "translate X": (X + 3, Y),
    }[change]
    np.testing.assert_allclose(total(block_moments(X2, Y2)), before, rtol=1e-6)


def test_permutation_of_points_permutes_the_gradient():
    X, Y = np.random.default_rng(4).normal(size=(15, 3)), random_sphere(15, 4)
    order = np.random.default_rng(0).permutation(15)
    np.testing.assert_allclose(
        block_gradient(X[order], Y[order], ABSOLUTE),
        block_gradient(X, Y, ABSOLUTE)[order],
        atol=1e-12,
    )


# ------------------------------------------------------------------ hazards


def test_a_duplicated_point_is_left_out_as_a_leg():
    """With x_0 = x_1, the triples that have a direction are those without the pair (0, 1)."""
    X, Y = np.random.default_rng(6).normal(size=(7, 3)), random_sphere(7, 6)
    X[1] = X[0]
    triples = all_triples(7)
    pairs = np.sort(np.stack([triples[:, [0, 1]], triples[:, [0, 2]]], axis=1), axis=2)
    valid = ~(pairs == [0, 1]).all(axis=2).any(axis=1)
    moments = total(block_moments(X, Y))
    assert moments.count == valid.sum()
    assert np.sqrt(mean_square(moments, ABSOLUTE)) == pytest.approx(
        angle_loss(X, Y, triples[valid]), rel=1e-6
    )
    np.testing.assert_allclose(
        block_gradient(X, Y, ABSOLUTE), angle_gradient(X, Y, triples[valid]), atol=1e-9
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("where", ["coincident", "antipodal"])
def test_gradient_is_bounded_where_the_map_has_no_direction(where, dtype):
    X, Y = np.random.default_rng(7).normal(size=(10, 3)), random_sphere(10, 7)
    Y[1] = Y[0] if where == "coincident" else -Y[0]
    gradient = block_gradient(X.astype(dtype), Y.astype(dtype), Calibration(0.1, 0.9))
    others = block_gradient(
        X.astype(dtype), random_sphere(10, 8).astype(dtype), Calibration(0.1, 0.9)
    )
    assert np.abs(gradient).max() < 30 * np.abs(others).max()


@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
@pytest.mark.parametrize("separation", [1e-1, 1e-3, 1e-5])
def test_distances_of_near_neighbours_are_accurate(on_host, dtype, separation, scale, monkeypatch):
    """By correction on the host, and in double precision on a device."""
    monkeypatch.setattr(_angles, "on_host", lambda array: on_host and isinstance(array, np.ndarray))
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 50))
    near = X + separation * rng.normal(size=X.shape)
    X, near = (scale * X).astype(dtype), (scale * near).astype(dtype)
    X[0] = near[0] = 0
    direct = np.linalg.norm(X[:, None].astype(np.float64) - near[None].astype(np.float64), axis=2)
    direct[0, 0] = np.inf  # coincident points have no direction
    computed = inverse_distances(X, near)
    assert computed.dtype == dtype
    np.testing.assert_allclose(computed, 1 / direct, rtol=1e-4 if dtype == np.float32 else 1e-8)


def test_a_block_without_coincident_points_has_no_mask():
    X = np.random.default_rng(8).normal(size=(6, 3))
    assert legs_of(X[:2], X[2:]).mask is None
    np.testing.assert_array_equal(legs_of(X[:2], X[1:]).mask, [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1]])


def test_a_block_keeps_its_own_distances():
    """The arrays from which the block was computed may be overwritten."""
    X = np.random.default_rng(8).normal(size=(6, 3))
    distances = inverse_distances(X[:2], X[2:])
    legs = legs_with_ones(X[:2], X[2:], distances)
    assert not np.shares_memory(legs.inverse_distance, distances)


def test_single_precision_is_kept():
    X, Y = np.random.default_rng(8).normal(size=(6, 3)).astype(np.float32), random_sphere(6)
    assert {m.dtype for m in block_moments(X, Y.astype(np.float32))} == {np.dtype(np.float32)}


def test_softening_shortens_near_directions_only():
    Y = normalize(np.array([[1.0, 0, 0], [1, 1e-3, 0], [0, 1, 0]]))
    b = bearings(Y[:1], Y, None, softening=1e-6)
    lengths = np.hypot(*b.B)[0]
    np.testing.assert_allclose(lengths, [0, np.sqrt(0.5), 1], atol=1e-4)


# ------------------------------------------------------------------ calibration


def test_calibration_is_the_least_squares_line():
    X, Y, triples = (
        np.random.default_rng(9).normal(size=(10, 6)),
        random_sphere(10, 9),
        all_triples(10),
    )
    a, b = triple_cosines(X, triples), spherical_triple_cosines(Y, triples)
    (alpha, beta), correlation = calibrate(total(block_moments(X, Y)))
    slope, intercept = np.polyfit(b, a, 1)
    assert (alpha, beta) == pytest.approx((intercept, slope), rel=1e-6)
    assert correlation == pytest.approx(np.corrcoef(a, b)[0, 1], rel=1e-6)
    loss = np.sqrt(mean_square(total(block_moments(X, Y)), Calibration(alpha, beta)))
    assert loss == pytest.approx(np.std(a) * np.sqrt(1 - correlation**2), rel=1e-6)


def test_calibration_without_spread_is_defined():
    assert calibrate(Moments(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)) == (Calibration(0.0, 0.0), 0.0)
    assert calibrate(Moments(2.0, 1.0, 0.5, 1.0, 0.5, 0.5)) == (Calibration(0.5, 0.0), 0.0)


def test_correlation_stays_in_range_despite_rounding():
    for sign in (1, -1):
        moments = Moments(1.0, 0.0, 1.0, 0.0, 1.0, sign * (1 + 1e-9))
        assert calibrate(moments)[1] == sign


def test_squares_are_not_negative_despite_rounding():
    for aa in (1 - 1e-9, np.array([1 - 1e-9, 1.0])):
        squares = mean_square(Moments(1.0, 1.0, aa, 1.0, 1.0, 1.0), ABSOLUTE)
        np.testing.assert_array_equal(np.sqrt(squares), np.zeros_like(aa))
        assert not np.signbit(squares).any()


def test_loss_without_pairs_is_zero():
    nothing = Moments(*np.zeros((6, 2)))
    np.testing.assert_array_equal(mean_square(nothing, Calibration(0.3, 0.6)), [0, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("owned", [False, True])
def test_points_that_differ_by_rounding_have_no_direction(dtype, owned):
    X = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)
    eps = np.finfo(dtype).eps
    for factor, coincide in ((1 + eps, True), (1 + 100 * eps, False)):
        legs = X * dtype(factor)
        found = inverse_distances(X, np.stack([legs] * 6) if owned else legs)
        assert np.all((np.diag(found) == 0) == coincide)
        assert np.all(found[~np.eye(6, dtype=bool)] > 0)
