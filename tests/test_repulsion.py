"""The grid on the sphere, against sums over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from spheres import random_sphere

from mercat._data.threads import Workers
from mercat._detail.repulsion import Kernel, _cubic
from mercat._math.sphere import from_lonlat


def all_pairs(Y: np.ndarray, places: np.ndarray, bandwidth: float) -> tuple[np.ndarray, np.ndarray]:
    """The field of points Y at given positions and its tangent gradient, by definition."""
    chord = np.sum((places[:, None, :] - Y[None, :, :]) ** 2, axis=2)
    w = 1 / (1 + chord / bandwidth**2)
    gradient = (2 / bandwidth**2) * (w**2 @ Y)
    gradient -= np.sum(gradient * places, axis=1, keepdims=True) * places
    return w.sum(axis=1), gradient


def relative(found: np.ndarray, true: np.ndarray) -> float:
    return float(np.sqrt(np.sum((found - true) ** 2) / np.sum(true**2)))


@pytest.mark.parametrize("bandwidth", [0.4, 0.1, 0.03])
def test_field_equals_the_sum_over_all_pairs(bandwidth):
    n = int(12 / bandwidth**2)
    Y = random_sphere(min(n, 4000))
    with Workers(1) as workers:
        potential, slope = Kernel(bandwidth, workers).field(Y).at(Y)
    true, gradient = all_pairs(Y, Y, bandwidth)
    np.testing.assert_allclose(potential, true, rtol=0.006)
    assert relative(slope, gradient) < 0.06
    assert potential.sum() == pytest.approx(true.sum(), rel=0.002)


def test_field_between_points_approximates_the_sum_over_pairs():
    Y, places = random_sphere(300), random_sphere(500, seed=1)
    places = places[np.max(places @ Y.T, axis=1) < np.cos(0.05)]
    with Workers(1) as workers:
        potential, slope = Kernel(0.1, workers).field(Y).at(places)
    true, gradient = all_pairs(Y, places, 0.1)
    np.testing.assert_allclose(potential, true, rtol=3e-3)
    assert relative(slope, gradient) < 0.03


def test_field_is_exact_at_the_nodes():
    with Workers(1) as workers:
        kernel = Kernel(0.4, workers)
        latitude = (np.arange(kernel.n_rows) + 0.5) * np.pi / kernel.n_rows - np.pi / 2
        longitude = np.arange(kernel.n_columns) * 2 * np.pi / kernel.n_columns
        nodes = from_lonlat(*(a.ravel() for a in np.meshgrid(longitude, latitude)))
        Y = nodes[[0, 17, 100]]
        potential, _ = kernel.field(Y).at(nodes)
    np.testing.assert_allclose(potential, all_pairs(Y, nodes, 0.4)[0], rtol=2e-5)


def test_poles_are_not_special():
    rng = np.random.default_rng(0)
    for pole in ([0, 0, 1.0], [0, 0, -1.0]):
        Y = np.array(pole) + 0.1 * rng.normal(size=(500, 3))
        Y = np.concatenate([Y / np.linalg.norm(Y, axis=1, keepdims=True), [pole]])
        with Workers(1) as workers:
            potential, slope = Kernel(0.1, workers).field(Y).at(Y)
        true, gradient = all_pairs(Y, Y, 0.1)
        np.testing.assert_allclose(potential, true, rtol=0.01)
        assert relative(slope[:-1], gradient[:-1]) < 0.05
        assert np.isfinite(slope).all()


def test_gradient_is_that_of_the_potential():
    Y, place, h = random_sphere(400), random_sphere(40, seed=2), 1e-3
    with Workers(1) as workers:
        field = Kernel(0.2, workers).field(Y)
    _, slope = field.at(place)
    for axis in np.eye(3):
        step = axis - (place @ axis)[:, None] * place
        ahead, behind = (
            p / np.linalg.norm(p, axis=1, keepdims=True)
            for p in (place + h * step, place - h * step)
        )
        difference = (field.at(ahead)[0].astype(float) - field.at(behind)[0]) / (2 * h)
        np.testing.assert_allclose(np.sum(slope * step, axis=1), difference, atol=0.2)
    assert np.abs(slope).max() > 10  # the tolerance is small relative to the slopes


def test_kernel_is_symmetric_under_rotation_about_the_axis():
    Y = random_sphere(200)
    turn = 2 * np.pi / 7
    c, s = np.cos(turn), np.sin(turn)
    turned = Y @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    with Workers(1) as workers:
        kernel = Kernel(0.2, workers)
        one, other = (kernel.field(P).at(P)[0] for P in (Y, turned))
    np.testing.assert_allclose(one, other, rtol=0.01)


def test_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("mercat._detail.repulsion._POINTS_PER_BLOCK", (100, 100))
    Y = random_sphere(1000)
    found = []
    for n_jobs in (1, 2, 4):
        with Workers(n_jobs) as workers:
            found.append(Kernel(0.1, workers).field(Y).values)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_splines_reproduce_lines_and_their_slopes():
    t = np.linspace(0, 1, 11)[:-1]
    value, slope = _cubic(t)
    nodes = np.arange(-1.0, 3.0)
    for power in (0, 1):
        np.testing.assert_allclose(nodes**power @ value, t**power, atol=1e-12)
        np.testing.assert_allclose(nodes**power @ slope, power, atol=1e-12)
