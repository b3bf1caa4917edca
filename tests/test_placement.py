"""Placement: the energy of a point against the definition, its minimum against a fine grid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from spheres import random_sphere

from mercat._data.arrays import namespace, rows_alike
from mercat._data.threads import Workers
from mercat._math.angles import ABSOLUTE, Calibration
from mercat._math.definition import spherical_triple_cosines, triple_cosines
from mercat._math.sphere import fibonacci_grid, geodesic, normalize, tangent_frame
from mercat._solve import landmarks as _landmarks
from mercat._solve import placement as _placement
from mercat._solve.bfgs import bfgs
from mercat._solve.energy import Energy
from mercat._solve.exact import solve_exact
from mercat._solve.initial import pca_positions, principal_scores
from mercat._solve.placement import as_type, placed_moments, prepare_landmarks


@pytest.fixture(scope="module")
def solved():
    """200 landmarks of a mixture in ten dimensions, and more points of the same."""
    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(6, 10))
    X = centers[rng.integers(6, size=500)] + rng.normal(size=(500, 10))
    with Workers(1) as workers:
        fit = solve_exact(
            X[:200],
            pca_positions(principal_scores(X[:200], 2)),
            line=None,
            max_iter=200,
            tol=1e-4,
            workers=workers,
            report=lambda *_: False,
        )
    return X[:200], X[200:], fit


def test_energy_is_the_sum_over_the_triples_of_the_point(monkeypatch):
    """Up to a constant: every ordered triple in which the new point takes part, landmarks fixed."""
    monkeypatch.setattr(_placement, "SMOOTH", 1e-12)
    rng = np.random.default_rng(1)
    X, Y, calibration = rng.normal(size=(12, 4)), random_sphere(12, 1), Calibration(0.3, 0.7)
    x = rng.normal(size=(1, 4))
    energy = Energy(x, prepare_landmarks(X, Y, calibration))
    triples = np.array([t for t in itertools.permutations(range(13), 3) if 12 in t])

    def by_definition(y):
        a = triple_cosines(np.vstack([X, x]), triples)
        b = spherical_triple_cosines(np.vstack([Y, y]), triples)
        return np.sum((a - calibration.alpha - calibration.beta * b) ** 2)

    candidates = random_sphere(5, 2)
    expected = np.array([by_definition(y) for y in candidates])
    computed = np.array([energy(y[None])[0][0] for y in candidates])
    np.testing.assert_allclose(computed - computed[0], expected - expected[0], atol=1e-5)


def test_gradient_matches_central_differences(monkeypatch):
    monkeypatch.setattr(_placement, "SMOOTH", 1e-12)
    rng = np.random.default_rng(3)
    energy = Energy(
        rng.normal(size=(6, 5)),
        prepare_landmarks(rng.normal(size=(20, 5)), random_sphere(20, 3), Calibration(0.2, 0.5)),
    )
    Y = random_sphere(6, 4)
    _, gradient = energy(Y)
    np.testing.assert_allclose(np.sum(gradient * Y, axis=1), 0, atol=1e-9)
    for axis in range(3):
        step = np.zeros((1, 3))
        step[0, axis] = 1e-6
        E = [
            energy((Y + s * step) / np.linalg.norm(Y + s * step, axis=1, keepdims=True))[0]
            for s in (1, -1)
        ]
        np.testing.assert_allclose(gradient[:, axis], (E[0] - E[1]) / 2e-6, rtol=1e-3, atol=1e-3)


def test_placement_finds_the_global_minimum(solved):
    """Against the best of a grid ten times finer than the candidates, to within that grid's spacing."""
    X, new, fit = solved
    new = new[:150]
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    Y = landmarks.place(new)
    energy = Energy(new, landmarks)
    found, _ = energy(Y)
    grid = fibonacci_grid(5000, np)
    best = np.full(len(new), np.inf)
    at = np.zeros_like(Y)
    for y in grid:
        E, _ = energy(np.repeat(y[None], len(new), axis=0))
        at[best > E] = y
        best = np.minimum(best, E)
    spread = energy(random_sphere(len(new)))[0].mean() - best.mean()
    assert np.mean(found - best) < 0.002 * spread
    elsewhere = geodesic(Y, at) > 3 * np.sqrt(4 * np.pi / len(grid))
    # Points at other positions are equally good there.
    assert np.all(found[elsewhere] - best[elsewhere] < 0.03 * spread)


def test_new_points_are_in_their_cluster(solved):
    X, new, fit = solved
    Y = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration).place(new)
    nearest_in_data = np.linalg.norm(new[:, None] - X[None], axis=2).argmin(axis=1)
    distance = geodesic(Y, fit.Y[nearest_in_data])
    typical = geodesic(fit.Y, np.roll(fit.Y, 1, axis=0))
    assert np.median(distance) < 0.2 * np.median(typical)


def test_a_point_equal_to_a_landmark_gets_its_position(solved):
    X, new, fit = solved
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    Y = landmarks.place(np.vstack([X[7:8], new[:3], X[150:151]]))
    np.testing.assert_array_equal(Y[[0, 4]], fit.Y[[7, 150]])


def test_single_precision_agrees_with_double(solved):
    X, new, fit = solved
    double = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    single = as_type(double, np.float32)
    Y = single.place(new.astype(np.float32))
    assert Y.dtype == np.float32
    energy = Energy(new, double)
    E, E_single = energy(double.place(new))[0], energy(Y.astype(np.float64))[0]
    assert np.mean(E_single - E) < 1e-3 * np.abs(E).mean()


def test_position_does_not_depend_on_other_points(solved):
    X, new, fit = solved
    landmarks = as_type(prepare_landmarks(X, fit.Y, fit.angle_fit.calibration), np.float32)
    new = new.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(new))
    with rows_alike():
        whole = landmarks.place(new)
        np.testing.assert_array_equal(landmarks.place(new[order]), whole[order])
        np.testing.assert_array_equal(landmarks.place(np.repeat(new, 3, axis=0))[::3], whole)
        for part in (slice(0, 1), slice(17, 18), slice(3, 260)):
            np.testing.assert_array_equal(landmarks.place(new[part]), whole[part])


def test_moments_of_placed_points_are_over_their_landmarks(solved):
    X, new, fit = solved
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    Y = landmarks.place(new[:3])
    moments = placed_moments(new[:3], Y, X, fit.Y, start=63, n_legs=32, tile=10)
    chosen = np.arange(6 * 32, 7 * 32) % 200
    pairs = np.array(list(itertools.permutations(chosen, 2)))
    triples = np.column_stack([np.full(len(pairs), 200), pairs])
    a = triple_cosines(np.vstack([X, new[1]]), triples)
    b = spherical_triple_cosines(np.vstack([fit.Y, Y[1]]), triples)
    expected = [len(a), a.sum(), (a * a).sum(), b.sum(), (b * b).sum(), (a * b).sum()]
    np.testing.assert_allclose([m[1] for m in moments], expected, rtol=1e-6)


def test_works_in_the_namespace_of_its_arrays(solved):
    """The block functions use nothing but the array API: a strict implementation runs them."""
    strict = pytest.importorskip("array_api_strict")
    X, new, fit = solved
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    foreign = prepare_landmarks(strict.asarray(X), strict.asarray(fit.Y), fit.angle_fit.calibration)
    Y = foreign.place(strict.asarray(new))
    assert namespace(Y).__name__.startswith("array_api_strict")
    np.testing.assert_allclose(np.asarray(Y), landmarks.place(new), atol=1e-6)


# ------------------------------------------------------------------ what the search stands on


def summed_by_hand(X, Y, apex, legs, softening):
    """S, M and t at an apex, leg by leg, from the definition of a softened bearing."""
    U, V = (frame[0] for frame in tangent_frame(Y[apex][None]))
    S, M, t = np.zeros((2, 2)), np.zeros((X.shape[1], 2)), np.zeros(2)
    for leg in legs:
        if np.array_equal(X[leg], X[apex]):
            continue  # has no direction
        a = (X[leg] - X[apex]) / np.linalg.norm(X[leg] - X[apex])
        c = np.array([U @ Y[leg], V @ Y[leg]])
        b = c / np.sqrt(c @ c + softening)
        S, M, t = S + np.outer(b, b), M + np.outer(a, b), t + b
    return S, M, t


def test_sums_over_all_landmarks_are_stored_at_the_first_few(monkeypatch):
    monkeypatch.setattr(_placement, "SMOOTH", 0.5)
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(12, 4)), random_sphere(12, 4)
    X[7] = X[2]  # one place in the data, two on the map
    alpha, beta = calibration = Calibration(0.3, 0.7)
    k = prepare_landmarks(X, Y, calibration, n_apices=5, n_apex_legs=3)
    assert k.X.shape == (5, 4)
    assert k.n_apex_legs == 3
    assert k.softening == pytest.approx(0.5 / 5 * Y[:5].var(axis=0).sum())
    np.testing.assert_array_equal(k.candidates[_placement._N_GRID :], Y)
    assert prepare_landmarks(X, Y, calibration, n_apices=50).X.shape == (12, 4)
    for l in range(5):
        S, M, t = summed_by_hand(X, Y, l, range(12), k.softening)
        S, M, t = (m * 5 / 12 for m in (S, M, t))  # as if over five legs
        sigma = [[k.sigma[0, l], k.sigma12[l]], [k.sigma12[l], k.sigma[1, l]]]
        np.testing.assert_allclose(sigma, 4 * beta**2 * S, atol=1e-12)
        np.testing.assert_allclose(k.P[:, l], -4 * beta * M.T, atol=1e-12)
        np.testing.assert_allclose(k.T[:, l], 4 * alpha * beta * t, atol=1e-12)


def test_candidates_are_screened_by_their_energy_as_legs(monkeypatch):
    monkeypatch.setattr(_placement, "SMOOTH", 0.5)
    rng = np.random.default_rng(5)
    landmarks = prepare_landmarks(
        rng.normal(size=(20, 4)), random_sphere(20, 5), Calibration(0.3, 0.7)
    )
    energy = Energy(rng.normal(size=(6, 4)), landmarks)
    screened = energy.screen()
    for g in (0, 17, 127, 140):
        Y = landmarks.candidates[g : g + 1].repeat(6, axis=0)
        np.testing.assert_allclose(screened[:, g], energy._as_leg(Y)[0], rtol=1e-9)


def test_screened_landmarks_represent_all_landmarks(monkeypatch):
    rng = np.random.default_rng(5)
    X, Y = np.tile(rng.normal(size=(6, 4)), (5, 1)), np.tile(random_sphere(6, 5), (5, 1))
    points = rng.normal(size=(7, 4))
    all_of_them = Energy(points, prepare_landmarks(X, Y, Calibration(0.3, 0.7))).screen()
    monkeypatch.setattr(_landmarks, "N_SCREEN", 6)  # the others are the same again, four times
    few = Energy(points, prepare_landmarks(X, Y, Calibration(0.3, 0.7))).screen()
    np.testing.assert_allclose(few, all_of_them, rtol=1e-9)


def test_many_landmarks_are_sampled(solved):
    X, new, fit = solved
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    assert landmarks.at_candidates[0].shape == (
        2,
        _landmarks.N_SCREEN,
        len(landmarks.candidates),
    )
    energy = Energy(new[:9], landmarks)
    assert energy.apex_legs.inverse_distance.shape == (9, _placement.N_APEX_LEGS)


def test_energy_as_an_apex_is_softened(monkeypatch):
    monkeypatch.setattr(_placement, "SMOOTH", 0.5)
    rng = np.random.default_rng(6)
    X, Y, (alpha, beta) = rng.normal(size=(9, 4)), random_sphere(9, 6), Calibration(0.3, 0.7)
    x, y = rng.normal(size=(1, 4)), random_sphere(1, 7)
    landmarks = prepare_landmarks(X, Y, Calibration(alpha, beta))
    S, M, t = summed_by_hand(np.vstack([X, x]), np.vstack([Y, y]), 9, range(9), landmarks.softening)
    itself = np.trace(S)
    expected = beta**2 * (np.sum(S**2) - itself) - 2 * beta * (np.sum(M**2) - itself)
    expected += 2 * alpha * beta * (t @ t - itself)
    np.testing.assert_allclose(Energy(x, landmarks).energy_except_as_leg(y), expected)


@pytest.mark.parametrize("calibration", [ABSOLUTE, Calibration(0.3, 0.7)])
@pytest.mark.parametrize("rounding", [0.5, 50.0])
def test_the_gradient_of_a_softened_energy_is_exact_even_at_a_landmark(
    monkeypatch, rounding, calibration
):
    monkeypatch.setattr(_placement, "SMOOTH", rounding)
    rng = np.random.default_rng(8)
    landmarks = prepare_landmarks(rng.normal(size=(9, 4)), random_sphere(9, 8), calibration)
    energy = Energy(rng.normal(size=(9, 4)), landmarks)
    for Y in (random_sphere(9, 9), landmarks.Y):
        _, gradient = energy(Y)
        for axis in tangent_frame(Y):
            up, down = (energy(normalize(Y + h * axis))[0] for h in (1e-6, -1e-6))
            np.testing.assert_allclose(
                np.sum(gradient * axis, axis=1), (up - down) / 2e-6, atol=1e-6
            )


def test_points_do_not_collapse_onto_landmarks(solved):
    X, new, fit = solved
    Y = prepare_landmarks(X[:60], fit.Y[:60], fit.angle_fit.calibration).place(new)
    assert len(np.unique(Y.round(6), axis=0)) == len(np.unique(new, axis=0))


def test_rough_placement_settles_some_points_and_all_landmarks(solved):
    X, new, fit = solved
    landmarks = prepare_landmarks(X, fit.Y, fit.angle_fit.calibration)
    assert 0.2 < landmarks.place_roughly(new)[1].mean() < 1
    Y, settled = landmarks.place_roughly(X)
    np.testing.assert_array_equal(Y, fit.Y)
    assert settled.all()


def test_a_flat_energy_does_not_move_a_point():
    Y = random_sphere(4)
    moved, settled = bfgs(lambda P: (np.zeros(len(P)), np.zeros_like(P)), Y, 3, 0.05)
    np.testing.assert_allclose(moved, Y, rtol=1e-15)
    assert settled.all()
