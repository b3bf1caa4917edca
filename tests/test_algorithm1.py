"""The paper's Algorithm 1 against a literal version of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from spheres import random_sphere

from mercat._data.threads import Workers
from mercat._solve import algorithm1 as _algorithm1
from mercat._solve.algorithm1 import (
    _angle_gradient,
    _positions,
    batch_loss,
    draw_legs,
    solve_algorithm1,
)
from mercat._solve.initial import pca_positions, principal_scores
from mercat._solve.status import Status


def literal_loss(X, Y, apices, legs):
    """The m x m form: all cosines between all pairs of legs, by dot products and plane normals."""
    squares, count = 0.0, 0
    for i, S in zip(apices, legs, strict=True):
        A = X[S] - X[i]
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        N = np.cross(Y[i], Y[S])
        N /= np.linalg.norm(N, axis=1, keepdims=True)
        difference = (A @ A.T - N @ N.T)[np.triu_indices(len(S), 1)]
        squares, count = squares + np.sum(difference**2), count + len(difference)
    return np.sqrt(squares / count)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X, angles = (
        rng.normal(size=(30, 5)),
        np.stack([rng.uniform(0, 6, 30), rng.uniform(0.5, 2.5, 30)]),
    )
    apices = rng.permutation(30)[:8]
    return X, angles, apices, draw_legs(apices, 30, 6, rng)


def test_loss_and_gradient_equal_the_literal_form(problem):
    """In longitude and colatitude, by central differences of the literal loss."""
    X, angles, apices, legs = problem
    with Workers(1) as workers:
        loss, gradient = batch_loss(X, _positions(angles), apices, legs, workers)
    assert loss == pytest.approx(literal_loss(X, _positions(angles), apices, legs), rel=1e-9)
    slope = _angle_gradient(angles, gradient)
    h = 1e-6
    for index in [
        (0, apices[0]),
        (1, apices[1]),
        (0, legs[2, 3]),
        (1, legs[0, 0]),
        (0, 29),
        (1, 17),
    ]:
        up, down = angles.copy(), angles.copy()
        up[index] += h
        down[index] -= h
        numeric = (
            literal_loss(X, _positions(up), apices, legs)
            - literal_loss(X, _positions(down), apices, legs)
        ) / (2 * h)
        assert slope[index] == pytest.approx(numeric, abs=1e-8)


def test_blocks_of_apices_add_up(problem, monkeypatch):
    X, angles, apices, legs = problem
    with Workers(2) as workers:
        whole = batch_loss(X, _positions(angles), apices, legs, workers)
        monkeypatch.setattr(_algorithm1, "_APICES_PER_BLOCK", 3)
        parts = batch_loss(X, _positions(angles), apices, legs, workers)
    assert parts[0] == pytest.approx(whole[0])
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-12)


@pytest.mark.parametrize("n", [70, 500])
def test_legs_are_distinct_others(n):
    apices = np.arange(n)
    legs = draw_legs(apices, n, 64, np.random.default_rng(0))
    assert legs.shape == (n, 64)
    assert legs.min() >= 0
    assert legs.max() < n
    assert not (legs == apices[:, None]).any()
    assert all(len(set(row)) == 64 for row in legs)


def test_legs_are_drawn_uniformly():
    rng = np.random.default_rng(1)
    counts = sum(
        np.bincount(draw_legs(np.array([3]), 20, 5, rng)[0], minlength=20) for _ in range(4000)
    )
    assert counts[3] == 0
    expected = 4000 * 5 / 19
    assert np.abs(np.delete(counts, 3) - expected).max() < 5 * np.sqrt(expected)


def test_few_points_use_all_other_points_as_legs():
    legs = draw_legs(np.array([0, 2]), 4, 64, np.random.default_rng(0))
    np.testing.assert_array_equal(legs, [[1, 2, 3], [0, 1, 3]])


def start_of(X):
    return pca_positions(principal_scores(X, 2))


def run(X, **changes):
    parameters = {
        "max_iter": 60,
        "milestones": [30],
        "batch_size": None,
        "rng": np.random.default_rng(0),
        "report": lambda *_: False,
    } | changes
    with Workers(1) as workers:
        return solve_algorithm1(X, start_of(X), workers=workers, **parameters)


def test_first_adam_step_is_the_learning_rate(problem):
    """The first step of Adam is the learning rate times the sign of the gradient, if nonzero."""
    X = problem[0]
    steps = []
    run(X, max_iter=1, report=lambda i, loss, Y: steps.append(Y) and False)
    start = start_of(X)
    moved = steps[0]
    colatitude = np.arccos(moved[:, 2]) - np.arccos(start[:, 2])
    longitude = np.arctan2(moved[:, 1], moved[:, 0]) - np.arctan2(start[:, 1], start[:, 0])
    np.testing.assert_allclose(np.abs(colatitude), 0.01, rtol=1e-4)
    np.testing.assert_allclose(np.abs(longitude), 0.01, rtol=1e-4)


def test_learning_rate_decreases_at_milestones(problem):
    positions = []
    run(
        problem[0],
        max_iter=40,
        milestones=[20],
        report=lambda i, loss, Y: positions.append(Y) and False,
    )
    moves = np.array([np.abs(b - a).mean() for a, b in itertools.pairwise(positions)])
    assert moves[25:].mean() < 0.2 * moves[5:18].mean()


@pytest.mark.parametrize("batch_size", [None, 8])
def test_loss_falls(batch_size):
    X = np.random.default_rng(2).normal(size=(60, 3)) * [3, 2, 1]
    Y, history, status = run(X, batch_size=batch_size)
    assert status is Status.SCHEDULE
    assert len(history) == 60
    assert np.mean(history[-5:]) < 0.95 * history[0]
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1)


def test_callback_stops():
    Y, history, status = run(random_sphere(20), report=lambda i, loss, Y: i == 5)
    assert status is Status.CALLBACK
    assert len(history) == 5
    assert Y.shape == (20, 3)
