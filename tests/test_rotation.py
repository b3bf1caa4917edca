"""The rotation towards the equator, and the canonical orientation."""

from __future__ import annotations

import numpy as np
import pytest
from spheres import random_sphere

import mercat
from mercat import Mercat, datasets
from mercat._math.orientation import (
    canonical_frame,
    equator_rotation,
    frame_of_plane,
    latitude_penalty,
)
from mercat._math.sphere import from_lonlat, to_lonlat


def blob(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=3) * 2 + rng.normal(size=(n, 3)) * rng.uniform(0.2, 2, 3)
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


def penalty_after(Y: np.ndarray, R: np.ndarray) -> float:
    return float(np.sum(to_lonlat(Y @ R.T)[1] ** 2))


@pytest.mark.parametrize("method", ["refined", "grid"])
def test_rotation_is_proper_and_its_third_row_is_the_pole(method):
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


def test_uniform_points_and_few_points_have_a_rotation():
    for Y in (random_sphere(1000), random_sphere(4), np.repeat([[0.0, 0.0, 1.0]], 5, axis=0)):
        R = equator_rotation(Y)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)


def test_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"^method .*got 'best'"):
        equator_rotation(random_sphere(5), method="best")


def skewed_cloud(n=1500, seed=0):
    """Points of six dimensions with a long and a short side, each with a tail."""
    rng = np.random.default_rng(seed)
    return (rng.gamma(2.0, size=(n, 6)) - 2) * [4, 2.5, 1.5, 0.8, 0.8, 0.8]


def degrees_apart(A, B):
    return np.rad2deg(np.arccos(np.clip(np.sum(A * B, axis=1), -1, 1)))


def test_the_frame_does_not_depend_on_rotation_or_reflection():
    X = skewed_cloud()
    Y = X[:, :3] / [4, 4, 8] + [0, 0, 2.0]
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    upright = Y @ canonical_frame(Y, X[:, :3]).T
    rng = np.random.default_rng(1)
    for k in range(6):
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0] * (1 if k % 2 else -1)
        flips = rng.choice([-1, 1], 3) * rng.uniform(0.1, 10, 3)
        turned = (Y @ Q) @ canonical_frame(Y @ Q, X[:, :3] * flips + rng.normal(size=3)).T
        assert degrees_apart(turned, upright).max() < 1


def test_the_frame_has_most_points_on_the_equator_and_tails_in_the_north_and_east():
    X = skewed_cloud()
    Y = X[:, :3] / [4, 4, 8] + [0, 0, 2.0]
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    frame = canonical_frame(Y, X[:, :3])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)
    _, east, north = frame @ Y.T
    assert penalty_after(Y, frame) < 1.02 * penalty_after(Y, equator_rotation(Y))
    assert np.corrcoef(east, X[:, 0])[0, 1] > 0.8
    assert np.corrcoef(north, X[:, 1])[0, 1] > 0.8
    longitude, _ = to_lonlat(Y @ frame.T)
    assert np.abs(np.median(longitude)) < np.deg2rad(2)


def test_the_first_component_decides_between_equally_good_equators():
    """A round map has no longest direction; the data determine east."""
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 4000), 0.3 * np.sqrt(rng.random(4000))
    disc = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    Y = np.column_stack([np.sqrt(1 - radius**2), disc])
    scores = np.column_stack([disc @ [0.6, 0.8], disc @ [-0.8, 0.6], radius])
    _, east, _ = canonical_frame(Y, scores) @ Y.T
    assert abs(np.corrcoef(east, scores[:, 0])[0, 1]) > 0.99


@pytest.mark.parametrize("n_spectral", [50, None])
@pytest.mark.parametrize("turn", [np.eye(2), [[0, 1], [-1, 0]], [[-1, 0], [0, 1]]])
def test_a_map_of_planar_data_has_the_orientation_of_the_data(turn, n_spectral):
    X = datasets.smiley(400, random_state=0)[0] @ np.array(turn)
    _, east, north = Mercat(n_spectral=n_spectral, random_state=0).fit_transform(X).T
    assert np.corrcoef(east, X[:, 0])[0, 1] > 0.95
    assert np.corrcoef(north, X[:, 1])[0, 1] > 0.95


def test_a_map_around_the_sphere_is_not_oriented_as_a_plane():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert frame_of_plane(np.insert(circle, 2, 0.0, axis=1), circle) is None
    assert frame_of_plane(np.insert(0.0 * circle, 0, 1.0, axis=1), 0.0 * circle) is None
    cap = np.insert(0.6 * circle, 0, 0.8, axis=1)
    np.testing.assert_allclose(cap @ frame_of_plane(cap, circle).T, cap, atol=1e-9)


def test_symmetric_data_have_a_frame():
    equal = np.repeat([[0.0, 0.0, 1.0]], 5, axis=0)
    for Y, scores in (
        (random_sphere(1000), np.random.default_rng(0).normal(size=(1000, 3))),
        (random_sphere(4), np.zeros((4, 3))),
        (equal, np.zeros((5, 3))),
    ):
        frame = canonical_frame(Y, scores)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("detail", [0.0, 0.3])
def test_other_seeds_landmarks_and_subsamples_give_the_same_orientation(detail):
    X = skewed_cloud(600)
    few = {"solver": "landmarks", "n_landmarks": 250, "detail": detail}
    model = Mercat(random_state=0, **few).fit(X)
    kept = np.sort(np.random.default_rng(0).choice(len(X), 570, replace=False))
    for parameters, rows in (
        ({"random_state": 1}, slice(None)),
        ({"random_state": 0, "n_landmarks": 400}, slice(None)),
        ({"random_state": 0}, kept),
    ):
        Y = Mercat(**few | parameters).fit_transform(X[rows])
        first = model.embedding_[rows]
        U, _, V = np.linalg.svd(Y.T @ first)
        aligned = np.median(degrees_apart(Y @ U @ V, first))  # rotated and mirrored by hand
        assert aligned < 10
        assert np.median(degrees_apart(Y, first)) < aligned + 1


@pytest.mark.parametrize("detail", [0.0, 0.3])
def test_a_mirrored_map_places_new_points_and_can_be_saved(tmp_path, detail):
    X = skewed_cloud(400)
    handed = set()
    for mirror in (1, *(1 - 2 * np.eye(6))):
        few = {"solver": "landmarks", "n_landmarks": 100}
        model = Mercat(random_state=0, detail=detail, **few).fit(X * mirror)
        handed.add(round(np.linalg.det(model._rotation)))
        placed = model.transform(X * mirror)
        assert np.median(degrees_apart(placed, model.embedding_)) < 1
        mercat.save(model, tmp_path / "m.mercat")
        again = mercat.load(tmp_path / "m.mercat").transform(X * mirror)
        np.testing.assert_array_equal(again, placed)
    assert handed == {-1, 1}  # some of the maps were mirrored
