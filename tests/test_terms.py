"""Terms over pairs: a term defined only here is used by the solver, the placement and the descent."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from spheres import random_rows, random_sphere

from mercat import Mercat
from mercat._data.threads import Workers
from mercat._detail.terms import anchors_at, pair_forces, pairs_of
from mercat._math.angles import inverse_distances
from mercat._math.sphere import tangent
from mercat._math.terms import PAIR_TERMS, Weighted, fitted_to
from mercat._solve.energy import Energy
from mercat._solve.landmarks import PlacedTerm
from mercat._solve.losses import AngleLoss, PairLoss
from mercat._solve.placement import prepare_landmarks


class SquareTerm(NamedTuple):
    """Squared distances in the data compared with squared chords on the map, u = p + q v."""

    p: float = 0.0
    q: float = 0.0
    variance: float = np.inf

    @property
    def curvature(self) -> float:
        return 8 * self.q**2

    def residuals(self, inverse_distance, Y, others, n_threads=1):
        apart = inverse_distance > 0
        u = apart / np.where(apart, inverse_distance, 1) ** 2
        v = 2 - 2 * Y @ others.T
        residual = u - self.p - self.q * v
        gradient = 4 * self.q * (residual @ others)
        sums = [np.sum(s, axis=1) for s in (u, v, u * u, v * v, u * v)]
        return np.sum(residual**2, axis=1), gradient, np.stack(sums)

    def fitted(self, sums, count):
        u, v, uu, vv, uv = np.asarray(sums, dtype=float) / count
        q = max((uv - u * v) / (vv - v * v), 0.0)
        variance = uu - u * u
        left = 1 - q * (uv - u * v) / variance
        return SquareTerm(u - q * v, q, variance), left


HEAVY = Weighted(SquareTerm(), weight=20.0, weight_with_detail=20.0)
N = 240


@contextmanager
def objective_of(*terms: Weighted) -> Iterator[None]:
    """Angles and these terms."""
    before = PAIR_TERMS[:]
    PAIR_TERMS[:] = terms
    try:
        yield
    finally:
        PAIR_TERMS[:] = before


def data() -> np.ndarray:
    """Points of which some are far from the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + 60, 12)) * np.linspace(2, 0.4, 12)
    return np.asarray(X * rng.lognormal(0, 0.7, size=(N + 60, 1)))


def slope(function, Y, direction, h=1e-4):
    ends = []
    for sign in (1, -1):
        moved = Y + sign * h * direction
        ends.append(function(moved / np.linalg.norm(moved, axis=1, keepdims=True)))
    return (ends[0] - ends[1]) / (2 * h)


@pytest.mark.parametrize("how", [{}, {"n_landmarks": 150, "solver": "landmarks"}, {"detail": 0.1}])
def test_a_new_term_changes_fitted_and_new_points(how):
    X = data()
    before = Mercat(random_state=0, **how).fit(X[:N])
    with objective_of(*PAIR_TERMS, HEAVY):
        after = Mercat(random_state=0, **how).fit(X[:N])

    def value(Y: np.ndarray) -> float:
        with Workers(1) as workers:
            return PairLoss(AngleLoss(X[:N], line=None, workers=workers), SquareTerm(), 1.0).value(
                Y
            )

    assert value(after.embedding_) < 0.9 * value(before.embedding_)
    # New points, placed with the term and without it on the same map.
    term = fitted_to(SquareTerm(), X[:N], after.embedding_)
    near = inverse_distances(X[N:], X[:N])
    of_new = [np.mean(term.residuals(near, after.transform(X[N:]), after.embedding_)[0])]
    placer = after._placer.against
    after._placer = after._placer._replace(against=placer._replace(terms=placer.terms[:1]))
    of_new += [np.mean(term.residuals(near, after.transform(X[N:]), after.embedding_)[0])]
    assert of_new[0] < 0.97 * of_new[1]


def test_its_gradient_over_all_pairs_matches_differences():
    X, Y = data()[:60], random_sphere(60, 1)
    with Workers(1) as workers:
        loss = PairLoss(AngleLoss(X, line=None, workers=workers), SquareTerm(), 0.5)
        direction = tangent(np.random.default_rng(2).normal(size=Y.shape), Y)
        found = slope(loss.value, Y, direction)
        value, gradient = loss.evaluate(Y)
    assert value == pytest.approx(loss.value(Y))
    assert np.sum(gradient * direction) == pytest.approx(found, rel=1e-3)


def test_its_gradient_at_placed_points_matches_differences():
    X, Y = data()[:60], random_sphere(60, 1)
    X[:, :3] += 5 * Y
    term = PlacedTerm(fitted_to(SquareTerm(), X, Y), 3.0)
    with Workers(1) as workers:
        calibration = AngleLoss(X, line=None, workers=workers).judge(Y).calibration
    landmarks = prepare_landmarks(X[10:], Y[10:], calibration, n_apex_legs=50, terms=(term,))
    energy = Energy(X[:10], landmarks)
    plain = Energy(X[:10], landmarks._replace(terms=()))
    direction = tangent(np.random.default_rng(2).normal(size=(10, 3)), Y[:10])
    found = slope(lambda Z: energy(Z)[0], Y[:10], direction)
    np.testing.assert_allclose(np.sum(energy(Y[:10])[1] * direction, axis=1), found, rtol=1e-3)
    of_term = slope(lambda Z: energy(Z)[0] - plain(Z)[0], Y[:10], direction)
    assert np.abs(of_term).min() > 0


def test_its_forces_in_the_descent_match_differences():
    X, Y = data()[:60], random_sphere(60, 1)
    with objective_of(HEAVY):
        (forces,) = pair_forces(X, Y, random_rows(X))
    anchors = anchors_at(X, Y, 1e-3)
    force = tangent(forces.force(pairs_of(X, anchors), Y, anchors)[0], Y)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    term = forces.term

    def value(Z: np.ndarray) -> float:
        residual = squares - term.p - term.q * (2 - 2 * Z @ Z.T)
        return float(HEAVY.weight_with_detail * np.mean(residual**2) / term.variance)

    direction = tangent(np.random.default_rng(2).normal(size=Y.shape), Y)
    assert np.sum(force * direction) / len(Y) == pytest.approx(slope(value, Y, direction), rel=1e-3)
