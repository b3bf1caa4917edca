"""The turn that favours the equator."""

from __future__ import annotations

import numpy as np
import pytest
from spheres import random_sphere

from mercat._math.orientation import equator_rotation, latitude_penalty
from mercat._math.sphere import from_lonlat, to_lonlat


def blob(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=3) * 2 + rng.normal(size=(n, 3)) * rng.uniform(0.2, 2, 3)
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


def penalty_after(Y: np.ndarray, R: np.ndarray) -> float:
    return float(np.sum(to_lonlat(Y @ R.T)[1] ** 2))


@pytest.mark.parametrize("method", ["refined", "grid"])
def test_is_a_proper_rotation_whose_pole_is_the_third_row(method):
    Y = blob(200, 0)
    R = equator_rotation(Y, method=method)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1)
    assert penalty_after(Y, R) == pytest.approx(latitude_penalty(Y, R[2]))


@pytest.mark.parametrize("seed", range(12))
def test_refined_is_at_least_as_good_as_the_papers_grid(seed):
    Y = blob(300, seed)
    grid = penalty_after(Y, equator_rotation(Y, method="grid"))
    refined = penalty_after(Y, equator_rotation(Y))
    assert refined <= grid * (1 + 1e-9)


def test_grid_equals_a_literal_search():
    Y = blob(50, 3)
    best = np.inf
    for alpha in np.arange(-20, 21) * np.pi / 40:
        for beta in np.arange(41) * np.pi / 40:
            ca, sa, cb, sb = np.cos(alpha), np.sin(alpha), np.cos(beta), np.sin(beta)
            R = np.array([[ca, 0, -sa], [0, 1, 0], [sa, 0, ca]]) @ np.array(
                [[cb, -sb, 0], [sb, cb, 0], [0, 0, 1]]
            )
            turned = Y @ R.T
            best = min(best, np.sum(np.abs(np.arccos(turned[:, 2]) - np.pi / 2) ** 2))
    assert penalty_after(Y, equator_rotation(Y, method="grid")) == pytest.approx(best)


def test_a_tilted_great_circle_goes_to_the_equator():
    longitude = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    tilt = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    Y = from_lonlat(longitude, np.zeros(100)) @ tilt
    np.testing.assert_allclose((Y @ equator_rotation(Y).T)[:, 2], 0, atol=1e-5)


def test_seam_lies_in_the_middle_of_the_gap():
    longitude = np.random.default_rng(1).uniform(1.0, 5.5, 2000)
    Y = from_lonlat(longitude, np.random.default_rng(2).uniform(-0.3, 0.3, 2000))
    turned, _ = to_lonlat(Y @ equator_rotation(Y).T)
    assert np.abs(turned).max() < np.pi - 0.7


def test_uniform_points_and_few_points_are_fine():
    for Y in (random_sphere(1000), random_sphere(4), np.repeat([[0.0, 0.0, 1.0]], 5, axis=0)):
        R = equator_rotation(Y)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)


def test_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"^method .*got 'best'"):
        equator_rotation(random_sphere(5), method="best")
