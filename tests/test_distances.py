"""The distance term: definition, gradients, and when it is used."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import rankdata
from spheres import random_sphere

from mercat import Mercat
from mercat import _kernels as kernels
from mercat._data.threads import Workers
from mercat._math.angles import inverse_distances
from mercat._math.distances import N_STEPS, DistanceTerm, half_ranks
from mercat._math.sphere import from_lonlat, tangent
from mercat._math.terms import fitted_to, on_scale
from mercat._solve import exact, placement
from mercat._solve.energy import Energy
from mercat._solve.landmarks import PlacedTerm
from mercat._solve.losses import AngleLoss, Objective, PairLoss
from mercat._solve.placement import prepare_landmarks
from mercat.metrics import distance_preservation


def arcs_of(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.arccos(np.clip(Y @ Z.T, -1, 1))


def distances_of(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X[:, None] - Z[None], axis=2)


def slope(function, Y: np.ndarray, direction: np.ndarray, h: float = 1e-5) -> float:
    """Central difference along tangent directions."""
    ends = []
    for sign in (1, -1):
        moved = Y + sign * h * direction
        ends.append(function(moved / np.linalg.norm(moved, axis=1, keepdims=True)))
    return (ends[0] - ends[1]) / (2 * h)


@pytest.mark.parametrize("native", [False, True])
def test_sums_are_those_of_the_definition(native):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, 4)), rng.normal(size=(33, 4))
    Z[5] = X[2]  # coincide: distance 0
    Y, W = random_sphere(7, 1), random_sphere(33, 2)
    W[3], W[4] = Y[1], -Y[1]  # coincident and antipodal
    line = DistanceTerm(0.3, 0.7, 1.0)
    d, arc = distances_of(X, Z), arcs_of(Y, W)
    residual = d - line.p - line.q * arc
    near = inverse_distances(X, Z).astype(np.float32)
    with kernels.switched(native):
        squares, _, sums = line.residuals(near, Y.astype(np.float32), W.astype(np.float32))
    np.testing.assert_allclose(squares, np.sum(residual**2, axis=1), rtol=1e-3)
    expected = [np.sum(v, axis=1) for v in (d, arc, d * d, arc * arc, d * arc)]
    np.testing.assert_allclose(sums, expected, rtol=1e-3)


def test_line_is_the_least_squares_fit():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), random_sphere(60)
    X[:, :2] += 3 * Y[:, :2]
    off = ~np.eye(60, dtype=bool)
    d, arc = distances_of(X, X)[off], arcs_of(Y, Y)[off]
    slope, intercept = np.polyfit(arc, d, 1)
    assert fitted_to(DistanceTerm(), X, Y) == pytest.approx((intercept, slope, d.var()), rel=1e-3)
    sums = [v.sum() for v in (d, arc, d * d, arc * arc, d * arc)]
    _, share = DistanceTerm().fitted(np.array(sums), len(d))
    assert share == pytest.approx(1 - np.corrcoef(d, arc)[0, 1] ** 2, rel=1e-6)


def test_arcs_that_decrease_with_distances_have_slope_zero():
    d, arc = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    sums = np.array([v.sum() for v in (d, arc, d * d, arc * arc, d * arc)])
    line, share = DistanceTerm().fitted(sums, 3)
    assert (line.q, share) == (0, 1)


def test_gradient_over_all_pairs_matches_differences():
    """By the envelope theorem, fitting the coefficients at each position does not change the gradient."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(50, 5)), random_sphere(50, 3)
    X[:, :3] += 2 * Y
    with Workers(2) as workers:
        angles = AngleLoss(X, line=None, workers=workers)
        objective = Objective(angles, [PairLoss(angles, DistanceTerm(), 0.4)])
        value, gradient = objective.evaluate(Y, 1e-9)
        direction = tangent(rng.normal(size=Y.shape), Y)
        found = slope(lambda Z: objective.evaluate(Z, 1e-9)[0], Y, direction)
        assert np.sum(gradient * direction) == pytest.approx(found, rel=1e-3)
        alone = angles.evaluate(Y, 1e-9)[0]
    off = ~np.eye(50, dtype=bool)
    correlation = np.corrcoef(distances_of(X, X)[off], arcs_of(Y, Y)[off])[0, 1]
    assert value - alone == pytest.approx(0.4 * angles.variance * (1 - correlation**2), rel=1e-6)


# ------------------------------------------------------------------ distances half replaced by ranks


def h_of(X: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Distances on the scale of the data, in double precision."""
    scale = half_ranks(X)
    assert scale is not None
    inverse = scale.inverse(np.where(d > 0, 1 / np.where(d > 0, d, 1), 0))
    return np.where(inverse > 0, 1 / np.where(inverse > 0, inverse, 1), 0)


def test_targets_are_distances_plus_ranks():
    X = np.random.default_rng(0).normal(size=(150, 8)) * np.geomspace(5, 0.3, 8)
    d = pdist(X)
    ranks = rankdata(d) / len(d)
    expected = d / d.std() + ranks / ranks.std()
    assert np.abs(h_of(X, d) - expected).max() < 1 / N_STEPS / ranks.std()
    np.testing.assert_allclose(h_of(X, d), h_of(3 * X, 3 * d), rtol=1e-9)  # in any unit


@pytest.mark.parametrize("kind", ["normal", "twins", "whole numbers", "far away"])
def test_the_scale_increases_without_bound(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 4))
    if kind == "twins":
        X = np.repeat(X[:12], 8, axis=0)
    elif kind == "whole numbers":
        X = rng.integers(2, size=(90, 6)).astype(float)
    elif kind == "far away":
        X[0] *= 1e4
    d = np.concatenate([[0], np.geomspace(1e-6, 1e6, 4000), half_ranks(X).quantiles])
    h = h_of(X, np.sort(d))
    assert h[0] == 0
    assert (np.diff(h[np.sort(d) > 0]) >= 0).all()
    largest, scale = pdist(X).max(), half_ranks(X)
    beyond = h_of(X, np.array([1.0, 2.0]) * 2 * largest)
    assert np.diff(beyond) == pytest.approx(
        2 * largest / scale.deviation
    )  # beyond the largest distance, ranks are constant


def test_distances_that_differ_by_rounding_alone_have_one_rank():
    X = np.random.default_rng(0).integers(2, size=(200, 7)).astype(float)
    scale, d = half_ranks(X), np.sqrt(np.arange(1, 7))
    for step in (1e-7, -1e-7):
        np.testing.assert_allclose(h_of(X, d * (1 + step)), h_of(X, d), rtol=1e-5)
    all_d = pdist(X)
    expected = [np.mean(all_d < 1.001 * v) + np.mean(all_d[all_d > 0] < 0.999 * v) for v in d]
    ranks = np.interp(d, scale.quantiles, scale.ranks)
    assert np.corrcoef(ranks, expected)[0, 1] > 0.999
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 7)))[0].astype(np.float32)
    turned = half_ranks(X.astype(np.float32) @ rotation)
    np.testing.assert_allclose(np.interp(d, turned.quantiles, turned.ranks), ranks, rtol=1e-3)


def test_equal_distances_have_no_ranks():
    simplex = np.eye(130)
    assert half_ranks(simplex) is None
    assert half_ranks(np.ones((20, 3))) is None
    assert half_ranks(simplex[:1]) is None
    near = inverse_distances(simplex, simplex)
    assert on_scale(near, None) is near
    assert np.isfinite(Mercat(random_state=0).fit(simplex).embedding_).all()


def test_the_scale_does_not_depend_on_order_or_duplicates():
    rng = np.random.default_rng(2)
    X = rng.integers(9, size=(1200, 5)).astype(float)  # many rows begin alike
    scale = half_ranks(X)
    again = half_ranks(X[rng.permutation(1200)])
    np.testing.assert_allclose(again.quantiles, scale.quantiles, rtol=1e-12)
    some = half_ranks(X[:100])
    twice = half_ranks(np.concatenate([X[:100], X[:100]]))
    np.testing.assert_allclose(twice.quantiles, some.quantiles, rtol=0.02)


def test_gradient_with_ranks_matches_differences():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(60, 5)), random_sphere(60, 3)
    X[:, :3] += 2 * Y
    X[7] = X[8]
    with Workers(2) as workers:
        angles = AngleLoss(X, line=None, workers=workers)
        plain, ranked = (PairLoss(angles, DistanceTerm(), 0.4, ranked) for ranked in (False, True))
        value, gradient = ranked.evaluate(Y)
        direction = tangent(rng.normal(size=Y.shape), Y)
        found = slope(ranked.value, Y, direction)
        assert np.sum(gradient * direction) == pytest.approx(found, rel=1e-3)
        off = ~np.eye(60, dtype=bool)
        h = h_of(X, distances_of(X, X))[off]
        correlation = np.corrcoef(h, arcs_of(Y, Y)[off])[0, 1]
        assert value == pytest.approx(0.4 * angles.variance * (1 - correlation**2), rel=1e-6)
        assert abs(plain.value(Y) / value - 1) > 1e-3


def test_placed_points_use_the_ranks_of_the_landmarks():
    rng = np.random.default_rng(2)
    n = 40
    X, Y = rng.normal(size=(n, 5)), random_sphere(n, 4)
    X[:, :3] += 2 * Y
    scale = half_ranks(X)
    term = PlacedTerm(fitted_to(DistanceTerm(), X, Y, scale), 0.7, scale)
    with Workers(1) as workers:
        calibration = AngleLoss(X, line=None, workers=workers).judge(Y).calibration
    how = {"n_apex_legs": n, "softening_fraction": 1e-9, "terms": (term,)}
    landmarks = prepare_landmarks(X[1:], Y[1:], calibration, **how)
    energy, angles = (Energy(X[:1], k) for k in (landmarks, landmarks._replace(terms=())))
    p, q, variance = term.term
    off = ~np.eye(n, dtype=bool)
    h, arc = h_of(X, distances_of(X, X))[off], arcs_of(Y, Y)[off]
    assert (q, p) == pytest.approx(tuple(np.polyfit(arc, h, 1)), rel=1e-3)
    assert variance == pytest.approx(h.var(), rel=1e-3)
    residual = h_of(X, distances_of(X[:1], X[1:])) - p - q * arcs_of(Y[:1], Y[1:])
    expected = 2 * 0.7 * (n - 2) * np.sum(residual**2) / variance
    assert energy(Y[:1])[0] - angles(Y[:1])[0] == pytest.approx(expected, rel=1e-6)
    direction = tangent(rng.normal(size=(1, 3)), Y[:1])
    found = slope(lambda y: float(energy(y)[0][0]), Y[:1], direction)
    assert float(energy(Y[:1])[1][0] @ direction[0]) == pytest.approx(found, rel=1e-3)


def test_energy_of_a_placed_point_is_its_part_of_the_objective():
    """Moving one point changes the objective by the change of its energy against the others."""
    rng = np.random.default_rng(2)
    n = 40
    X, Y = rng.normal(size=(n, 5)), random_sphere(n, 4)
    X[:, :3] += 2 * Y
    with Workers(1) as workers:
        angles = AngleLoss(X, line=None, workers=workers)
        weight, line = 0.5, fitted_to(DistanceTerm(), X, Y)
        calibration = angles.judge(Y).calibration
        fixed = AngleLoss(X, line=calibration, workers=workers, sharing=angles)
    term = PlacedTerm(line, weight * angles.variance)
    landmarks = prepare_landmarks(
        X[1:], Y[1:], calibration, n_apex_legs=n, softening_fraction=1e-9, terms=(term,)
    )
    energy = Energy(X[:1], landmarks)

    def objective(y: np.ndarray) -> float:
        Z = np.concatenate([y, Y[1:]])
        off = ~np.eye(n, dtype=bool)
        residual = (distances_of(X, X) - line.p - line.q * arcs_of(Z, Z))[off]
        share = np.mean(residual**2) / line.variance
        with Workers(1):
            return fixed.evaluate(Z, 1e-12)[0] + weight * angles.variance * share

    direction = tangent(rng.normal(size=(1, 3)), Y[:1])
    of_energy = slope(lambda y: float(energy(y)[0][0]), Y[:1], direction)
    whole = slope(objective, Y[:1], direction)
    assert of_energy / (n * (n - 1) * (n - 2)) == pytest.approx(whole, rel=1e-3)
    _, gradient = energy(Y[:1])
    assert float(gradient[0] @ direction[0]) == pytest.approx(of_energy, rel=1e-3)


def test_points_are_placed_alike_with_and_without_kernels():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 8)) * np.linspace(2, 0.3, 8)
    model = Mercat(random_state=0).fit(X)
    placer = model._placer.against
    assert [type(t.term) for t in placer.terms] == [DistanceTerm]
    assert placer.terms[0].scale is not None
    new = rng.normal(size=(80, 8)).astype(np.float32) * np.float32(0.3)
    places = []
    for native in (True, False):
        with kernels.switched(native):
            places.append(placer.place(new))
    apart = np.arccos(np.clip(np.sum(places[0] * places[1], axis=1), -1, 1))
    assert np.quantile(apart, 0.9) < 0.01


def test_the_distance_term_improves_distances_at_a_small_cost_in_angles(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20)) * np.linspace(3, 0.5, 20)
    X[:8] *= 4  # far points
    model = Mercat(random_state=0).fit(X)
    kept = distance_preservation(X, model.embedding_)
    for module in (exact, placement):
        monkeypatch.setattr(module, "PAIR_TERMS", [])
    angles = Mercat(random_state=0).fit(X)
    assert kept > distance_preservation(X, angles.embedding_) + 0.005
    assert model.correlation_ > angles.correlation_ - 0.01


def test_maps_with_nearly_exact_angles_use_angles_only():
    """Chords of a cap are not proportional to its arcs, but the cap is still recovered."""
    rng = np.random.default_rng(3)
    truth = from_lonlat(rng.uniform(-0.6, 0.6, 300), rng.uniform(-0.6, 0.6, 300))
    model = Mercat(random_state=0).fit(truth)
    assert model.loss_ < 0.06
    assert model._placer.against.terms == ()


def test_the_paper_objective_and_few_points_use_angles_only():
    X = np.random.default_rng(0).normal(size=(150, 6))
    assert Mercat(random_state=0, objective="absolute").fit(X)._placer.against.terms == ()
    assert Mercat(random_state=0).fit(X[:100])._placer.against.terms == ()
    assert Mercat(random_state=0).fit(X)._placer.against.terms != ()
