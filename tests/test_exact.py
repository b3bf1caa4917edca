"""The exact solver: its objective against the definition, its results against known maps."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from spheres import random_sphere

from mercat import Mercat
from mercat._data.threads import Workers
from mercat._math.angles import ABSOLUTE, softening_for
from mercat._math.definition import (
    angle_gradient,
    angle_loss,
    spherical_triple_cosines,
    triple_cosines,
)
from mercat._math.sphere import from_lonlat, normalize, tangent
from mercat._solve import exact as _exact
from mercat._solve import losses as _losses
from mercat._solve.exact import last_softening, solve_exact
from mercat._solve.initial import flat_positions, pca_positions, principal_scores, resized
from mercat._solve.losses import AngleLoss
from mercat._solve.status import Status
from mercat.datasets import unif5
from mercat.metrics import angle_preservation, neighborhood_preservation


def solve(X, Y=None, **changes):
    parameters = {
        "line": None,
        "max_iter": 300,
        "tol": 1e-5,
        "report": lambda *_: False,
    } | changes
    with Workers(1) as workers:
        return solve_exact(
            X,
            pca_positions(principal_scores(X, 2)) if Y is None else Y,
            workers=workers,
            **parameters,
        )


@pytest.mark.parametrize("pairs_kept", [0, 1 << 22], ids=["recomputed", "kept"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_objective_equals_the_definition_over_all_triples(monkeypatch, calibrated, pairs_kept):
    """In several blocks, with distances and bearings stored or recomputed."""
    monkeypatch.setattr(_losses, "_PAIRS_KEPT", pairs_kept)
    monkeypatch.setattr(_losses, "_PAIRS_PER_BLOCK", 1)
    X, Y = np.random.default_rng(0).normal(size=(40, 6)), random_sphere(40)
    triples = np.array(list(itertools.permutations(range(40), 3)))
    with Workers(2) as workers:
        objective = AngleLoss(X, line=None if calibrated else ABSOLUTE, workers=workers)
        value, gradient = objective.evaluate(Y)
        found = objective.judge(Y)
    line = (0.0, 1.0)
    if calibrated:
        slope, intercept = np.polyfit(
            spherical_triple_cosines(Y, triples), triple_cosines(X, triples), 1
        )
        line = (intercept, slope)
    assert found.calibration == pytest.approx(line)
    assert found.loss == pytest.approx(angle_loss(X, Y, triples, *line))
    assert value == pytest.approx(found.loss**2)
    np.testing.assert_allclose(gradient, angle_gradient(X, Y, triples, *line), atol=1e-10)
    for i in (0, 17, 39):
        assert found.point_loss[i] == pytest.approx(
            angle_loss(X, Y, triples[triples[:, 0] == i], *line)
        )


def test_calibrated_gradient_matches_differences_of_the_calibrated_loss():
    """By the envelope theorem, fitting the coefficients at each position does not change the gradient."""
    X, Y = np.random.default_rng(1).normal(size=(9, 4)), random_sphere(9, 1)
    with Workers(1) as workers:
        objective = AngleLoss(X, line=None, workers=workers)
        _, gradient = objective.evaluate(Y)
        direction = np.random.default_rng(2).normal(size=Y.shape)
        direction -= np.sum(direction * Y, axis=1, keepdims=True) * Y
        h = 1e-6
        values = []
        for sign in (1, -1):
            moved = Y + sign * h * direction
            values.append(
                objective.evaluate(moved / np.linalg.norm(moved, axis=1, keepdims=True))[0]
            )
    assert np.sum(gradient * direction) == pytest.approx(
        (values[0] - values[1]) / (2 * h), rel=1e-5
    )


def test_points_that_fit_on_a_sphere_are_recovered():
    """A small cap of the sphere is nearly flat: angles between chords and between arcs are nearly equal."""
    rng = np.random.default_rng(3)
    truth = from_lonlat(rng.uniform(-0.15, 0.15, 80), rng.uniform(-0.15, 0.15, 80))
    fit = solve(truth, line=ABSOLUTE, tol=1e-7)
    assert fit.angle_fit.loss < 0.006
    assert fit.angle_fit.correlation > 0.9999


@pytest.mark.parametrize("calibrated", [False, True])
def test_loss_decreases_and_history_records_it(calibrated, digits):
    X = digits[:200]
    start = pca_positions(principal_scores(X, 2))
    with Workers(1) as workers:
        initial = np.sqrt(
            AngleLoss(X, line=None if calibrated else ABSOLUTE, workers=workers).evaluate(start)[0]
        )
    fit = solve(X, start, line=None if calibrated else ABSOLUTE)
    assert fit.angle_fit.loss < initial - 0.005
    assert fit.status in (Status.CONVERGED, Status.PRECISION)
    assert len(fit.history) >= 10
    assert fit.history[-1] < fit.history[0]
    np.testing.assert_allclose(np.linalg.norm(fit.Y, axis=1), 1)


def test_calibrated_correlation_exceeds_that_of_the_paper_loss(digits):
    X = digits[:300]
    assert solve(X).angle_fit.correlation > solve(X, line=ABSOLUTE).angle_fit.correlation + 0.02


def test_max_iter_and_callback_stop_the_descent(digits):
    X = digits[:100]
    few = solve(X, max_iter=3)
    assert (few.status, len(few.history)) == (Status.MAX_ITER, 3)
    seen = []

    def report(iteration, loss, Y):
        seen.append((iteration, loss, Y.shape))
        return iteration == 4

    stopped = solve(X, report=report)
    assert stopped.status is Status.CALLBACK
    assert [s[0] for s in seen] == [1, 2, 3, 4]
    assert [s[1] for s in seen] == stopped.history
    assert {s[2] for s in seen} == {(100, 3)}


def test_samples_stop_at_the_first_failed_line_search():
    """SciPy would restart along the gradient, as for a single map."""
    target, calls = random_sphere(30, 0), []

    class Misled:
        """A squared distance whose gradient has the wrong sign from the fifth evaluation on."""

        def evaluate(self, Y, softening):
            calls.append(float(np.sum((Y - target) ** 2)))
            gradient = tangent(2 * (Y - target), Y) * np.linspace(0.2, 1, 30)[:, None]
            return calls[-1], gradient if len(calls) <= 5 else -gradient

    start, ends = random_sphere(30, 1), []
    for once in (True, False):
        calls.clear()
        history: list[float] = []
        about = (Misled(), 1.0, start, 500, 1e-9, history, lambda *_: False)
        Y, status = _exact._descend(*about, 3, once)
        ends.append((len(calls), Y))
        assert status is Status.PRECISION
        assert np.sum((Y - target) ** 2) == pytest.approx(history[-1] ** 2)
        assert history[-1] ** 2 < calls[0]
    assert ends[0][0] < ends[1][0]
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_status_reads_as_a_sentence_that_the_guide_quotes():
    assert all(str(s).endswith(".") and str(s) == s.value for s in Status)
    guide = (Path(__file__).parents[1] / "docs" / "estimator.md").read_text("utf-8")
    assert all(f"| `Status.{s.name}` | {s.value} |" in guide for s in Status)


def test_status_says_whether_a_fit_converged():
    assert {s for s in Status if "the fit converged" in s.value} == {
        Status.CONVERGED,
        Status.PRECISION,
    }


def test_a_perfect_start_is_kept_despite_softening():
    """Two clumps on a line, whose points are much closer to each other than the softening."""
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1.0], 3) + 0.01 * rng.normal(size=6)
    along = 0.1 * x
    circle = np.column_stack([np.cos(along), np.sin(along), np.zeros(6)])
    fit = solve(np.column_stack([x, np.zeros(6)]), circle)
    assert fit.angle_fit.loss < 1e-6
    np.testing.assert_allclose(fit.Y, circle, atol=1e-12)


def test_shrinking_a_map_does_not_lower_the_loss():
    rng = np.random.default_rng(0)
    X, plane = rng.normal(size=(60, 8)), rng.normal(size=(60, 2))

    def value(radius: float) -> float:
        cap = normalize(np.column_stack([radius * plane, np.ones(60)]))
        with Workers(1) as workers:
            loss = AngleLoss(X, line=None, workers=workers)
            return loss.judge(cap, softening_for(cap, 0.1)).loss

    assert value(1e-3) == pytest.approx(value(1e-2), rel=1e-4)


def test_flat_start_is_a_scaled_plane_near_its_centre():
    scores = np.random.default_rng(0).normal(size=(50, 3)) * 0.01
    Y = flat_positions(np.concatenate([scores, [[9.0, 0, 0]]]))
    plane = scores[:, :2] - scores[0, :2]
    apart = Y[:50, :2] - Y[0, :2]
    scale = np.linalg.norm(apart) / np.linalg.norm(plane)
    np.testing.assert_allclose(apart, scale * plane, atol=2e-3 * np.abs(apart).max())
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1)


# ------------------------------------------------------------------ the size of a map


def rms_arc(Y: np.ndarray) -> float:
    centre = Y.mean(axis=0) / np.linalg.norm(Y.mean(axis=0))
    return float(np.sqrt(np.mean(np.arccos(np.clip(Y @ centre, -1, 1)) ** 2)))


def test_resized_positions_keep_their_directions_from_the_centre():
    Y = flat_positions(np.random.default_rng(0).normal(size=(50, 3)))
    centre = Y.mean(axis=0) / np.linalg.norm(Y.mean(axis=0))
    smaller = resized(Y, 0.2)
    assert rms_arc(Y) > 0.4
    np.testing.assert_allclose(np.linalg.norm(smaller, axis=1), 1)
    arcs = [np.arccos(np.clip(Z @ centre, -1, 1)) for Z in (Y, smaller)]
    np.testing.assert_allclose(arcs[1], arcs[0] * arcs[1][0] / arcs[0][0], rtol=1e-6)
    assert np.sqrt(np.mean(arcs[1] ** 2)) == pytest.approx(0.2)
    tangents = [Z - np.outer(Z @ centre, centre) for Z in (Y, smaller)]
    tangents = [T / np.linalg.norm(T, axis=1, keepdims=True) for T in tangents]
    np.testing.assert_allclose(tangents[1], tangents[0], atol=1e-9)
    np.testing.assert_array_equal(resized(Y[:1], 0.2), Y[:1])  # a point has no size


def test_maps_of_data_that_prefer_a_plane_have_one_size():
    """The objective hardly depends on the size: without a default size, it would vary between seeds."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 8)) * [5, 4, 1, 1, 1, 1, 1, 1]
    sizes = [rms_arc(Mercat(random_state=seed).fit_transform(X)) for seed in range(3)]
    np.testing.assert_allclose(sizes, 0.25, rtol=0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_maps_of_tight_clusters_have_the_usual_size(seed):
    """In single precision, directions within clusters of a small map would be softened."""
    X = unif5(random_state=seed)[0]
    assert rms_arc(Mercat(random_state=0).fit_transform(X)) == pytest.approx(0.25, rel=0.03)


def test_less_softening_preserves_angles_within_clusters(monkeypatch):
    X = unif5(random_state=2)[0]
    preserved = angle_preservation(X, Mercat(random_state=0).fit_transform(X))
    monkeypatch.setattr(_exact, "last_softening", lambda Y: 1.0)
    assert preserved > angle_preservation(X, Mercat(random_state=0).fit_transform(X)) + 0.005


def test_points_in_a_plane_have_nearly_exact_angles():
    """A small part of the sphere is flat."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2)) * [2, 1] @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    Y = Mercat(random_state=0).fit_transform(X)
    assert angle_preservation(X, Y) > 0.9999
    assert neighborhood_preservation(X, Y, k=20) > 0.999


def test_the_last_softening_is_less_in_clusters():
    rng = np.random.default_rng(4)
    plane = rng.normal(size=(600, 2))
    centres = 20 * rng.normal(size=(6, 2))
    assert last_softening(flat_positions(plane)) == 1
    assert last_softening(flat_positions(plane + centres[np.arange(600) % 6])) < 0.2
    assert last_softening(np.repeat(random_sphere(30), 20, axis=0)) > 0  # points that coincide


def test_data_on_a_sphere_fill_the_sphere():
    Y = random_sphere(300, 0)
    assert rms_arc(Mercat(random_state=0).fit_transform(Y)) > 1.4


def test_sums_of_a_part_are_estimated_from_all():
    X, Y = np.random.default_rng(0).normal(size=(300, 4)), random_sphere(300, 1)
    rows = np.random.default_rng(1).permutation(300)[:200]
    whole = AngleLoss(X, line=None, workers=Workers(1))
    part = AngleLoss(X[rows], line=None, workers=Workers(1), sharing=whole, rows=rows)
    alone = AngleLoss(X[rows], line=None, workers=Workers(1))
    assert part.variance == pytest.approx(alone.variance, rel=0.04)
    assert part.judge(Y[rows]).loss == pytest.approx(alone.judge(Y[rows]).loss, rel=0.02)
    assert part.judge(Y[rows]).loss != alone.judge(Y[rows]).loss
