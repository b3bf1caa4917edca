"""Geometry of the sphere against values by hand and plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from spheres import random_sphere

from mercat._math import sphere as sphere

POLES_AND_AXES = np.vstack([np.eye(3), -np.eye(3)])


@pytest.mark.parametrize("Y", [random_sphere(200), POLES_AND_AXES], ids=["random", "axes"])
def test_tangent_frame_is_right_handed_and_orthonormal(Y):
    U, V = sphere.tangent_frame(Y)
    frames = np.stack([U, V, Y], axis=1)
    np.testing.assert_allclose(
        frames @ frames.transpose(0, 2, 1), np.broadcast_to(np.eye(3), frames.shape), atol=1e-12
    )
    np.testing.assert_allclose(np.cross(U, V), Y, atol=1e-12)


def test_normalize_handles_extreme_lengths_and_zero():
    Y = np.array([[3e200, 4e200, 0.0], [3e-200, 0.0, 4e-200], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(sphere.normalize(Y), [[0.6, 0.8, 0], [0.6, 0, 0.8], [1, 0, 0]])


def test_tangent_removes_the_radial_part_only():
    Y = random_sphere(50)
    W = np.random.default_rng(1).normal(size=(50, 3))
    T = sphere.tangent(W, Y)
    np.testing.assert_allclose(np.sum(T * Y, axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.cross(W - T, Y), 0, atol=1e-12)


@pytest.mark.parametrize("angle", [1e-12, 1e-6, 0.3, np.pi / 2, 3.0, np.pi - 1e-9, np.pi])
def test_geodesic_is_the_angle_at_every_scale(angle):
    P = np.array([[1.0, 0.0, 0.0]])
    Q = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    np.testing.assert_allclose(sphere.geodesic(P, Q), angle, rtol=1e-6)


def test_lonlat_of_known_points_and_back():
    Y = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [0, -np.sqrt(0.5), -np.sqrt(0.5)]])
    longitude, latitude = sphere.to_lonlat(Y)
    np.testing.assert_allclose(longitude, [0, np.pi / 2, np.pi, 0, -np.pi / 2])
    np.testing.assert_allclose(latitude, [0, 0, 0, np.pi / 2, -np.pi / 4])
    Y = random_sphere(100)
    np.testing.assert_allclose(sphere.from_lonlat(*sphere.to_lonlat(Y)), Y, atol=1e-12)


def test_fibonacci_grid_covers_the_sphere_evenly():
    grid = sphere.fibonacci_grid(512, np)
    np.testing.assert_allclose(np.linalg.norm(grid, axis=1), 1)
    spacing = np.sqrt(4 * np.pi / 512)
    nearest_to_anywhere = np.arccos((random_sphere(5000) @ grid.T).max(axis=1))
    assert nearest_to_anywhere.max() < spacing
    between = np.arccos(np.clip(grid @ grid.T - 3 * np.eye(512), -1, 1)).min(axis=1)
    assert between.min() > spacing / 2
    longitude, _ = sphere.to_lonlat(grid)
    golden = np.mod(np.diff(longitude), 2 * np.pi)
    np.testing.assert_allclose(golden, np.pi * (3 - np.sqrt(5)))


def test_tangent_frame_is_orthonormal_next_to_the_poles():
    """There, a division by 1 - z or 1 + z would lose all digits."""
    near = np.array([[1e-9, 2e-9, 1], [-3e-7, 1e-9, 1], [1e-9, 2e-9, -1], [0, 0, 1], [0, 0, -1]])
    Y = sphere.normalize(near)
    frames = np.stack([*sphere.tangent_frame(Y), Y], axis=1)
    np.testing.assert_allclose(
        frames @ frames.swapaxes(1, 2), np.eye(3)[None].repeat(5, 0), atol=1e-14
    )
    np.testing.assert_allclose(np.linalg.det(frames), 1)


def test_leading_dimensions_are_kept():
    P, Q = random_sphere(4), random_sphere(5, 1)
    angles = sphere.geodesic(P[:, None], Q[None])
    np.testing.assert_allclose(angles, np.arccos(P @ Q.T))
    np.testing.assert_allclose(sphere.geodesic(P, Q[:4]), np.diag(angles))
    longitude, latitude = sphere.to_lonlat(P.reshape(2, 2, 3))
    np.testing.assert_allclose(sphere.from_lonlat(longitude, latitude), P.reshape(2, 2, 3))


def test_squared_spacing_is_the_total_variance_per_point():
    Y = random_sphere(50)
    assert sphere.squared_spacing(Y) == pytest.approx(Y.var(axis=0).sum() / 50)
    cap = sphere.from_lonlat(0.01 * np.cos(np.arange(100)), 0.01 * np.sin(np.arange(100)))
    assert sphere.squared_spacing(cap) == pytest.approx(1e-6, rel=0.02)
