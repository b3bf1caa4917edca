"""Simultaneous descents from several starts on a device, against the solver."""

from __future__ import annotations

import numpy as np
import pytest

from mercat import Mercat
from mercat._data.threads import Workers
from mercat._math.angles import softening_for
from mercat._solve import starts, trials
from mercat._solve.exact import ROUGH, objective_of, solve_exact
from mercat._solve.initial import start_positions
from mercat._solve.losses import AngleLoss

torch = pytest.importorskip("torch")


def data(n: int = 120, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) + 2 * rng.normal(size=(4, 6))[rng.integers(4, size=n)]
    X[5] = X[40]
    X -= X.mean(axis=0)
    return (X / np.sqrt(np.mean(np.sum(X**2, axis=1)))).astype(np.float32)


def test_objectives_of_all_starts_are_those_of_each():
    X = data()
    starts = np.stack(start_positions(X[:, :3])).astype(np.float32)
    with Workers(1) as workers:
        here = AngleLoss(X, line=None, workers=workers)
        there = AngleLoss(torch.as_tensor(X), line=None, workers=workers)
        objectives = trials.Objectives(there, ROUGH, distances=True)
        values, gradients = objectives(torch.as_tensor(starts))
        for Y, value, gradient in zip(starts, values, gradients, strict=True):
            expected, slope = objective_of(here).evaluate(Y, softening_for(Y, ROUGH))
            assert float(value) == pytest.approx(expected, rel=1e-4)
            np.testing.assert_allclose(gradient.numpy(), slope, atol=1e-3 * abs(slope).max())


def test_trials_end_near_the_minimum_of_the_solver():
    X = data(200)
    starts = np.stack(start_positions(X[:, :3])).astype(np.float32)
    with Workers(1) as workers:
        there = AngleLoss(torch.as_tensor(X), line=None, workers=workers)
        objectives = trials.Objectives(there, ROUGH, distances=True)
        trial = trials.begin(objectives, torch.as_tensor(starts))
        before = trial.value.numpy()
        trial = trials.descended(objectives, trial, 32)
        here = AngleLoss(X, line=None, workers=workers)
        how = {"line": None, "max_iter": 500, "tol": 1e-3, "workers": workers, "sharing": here}
        ends = [
            solve_exact(X, Y, careful=False, report=lambda *_: False, **how).history[-1] ** 2
            for Y in starts
        ]
    assert (trial.value.numpy() < before).all()
    assert np.median(trial.value.numpy() / ends) == pytest.approx(1, abs=0.02)
    assert float(trial.value.min()) == pytest.approx(min(ends), rel=0.01)
    np.testing.assert_allclose(trial.Y.norm(dim=2).numpy(), 1, atol=1e-5)


def test_a_device_chooses_a_start_as_good_as_the_cpu(monkeypatch):
    X = data(3000)
    parameters = {"n_landmarks": 250, "random_state": 0, "device": "cpu"}
    there = Mercat(**parameters).fit(X)
    assert np.array_equal(there.embedding_, Mercat(**parameters).fit(X).embedding_)
    monkeypatch.setattr(starts.trials, "supports_terms", lambda: False)
    here = Mercat(**parameters).fit(X)
    assert there.correlation_ == pytest.approx(here.correlation_, abs=0.005)
