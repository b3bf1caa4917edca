"""First positions on the sphere: the first two principal components, wrapped around half of it."""

from __future__ import annotations

import numpy as np

from ._sphere import from_lonlat


def principal_plane(X_hat: np.ndarray) -> np.ndarray:
    """Scores on the first two principal components (n x 2), signs fixed."""
    centred = X_hat - X_hat.mean(axis=0)
    if centred.shape[1] < 2:
        centred = np.hstack([centred, np.zeros_like(centred)])
    if centred.shape[0] < centred.shape[1]:  # the same plane from the smaller Gram matrix
        values, vectors = np.linalg.eigh(centred @ centred.T)
        plane = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
    else:
        plane = centred @ np.linalg.eigh(centred.T @ centred)[1][:, [-1, -2]]
    farthest = plane[np.abs(plane).argmax(axis=0), [0, 1]]
    return np.asarray(plane * np.where(farthest < 0, -1, 1))


def wrapped_angles(X_hat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitude and colatitude of the paper: each component spread over [.2 pi, .8 pi]."""
    plane = principal_plane(X_hat)
    low, width = plane.min(axis=0), np.ptp(plane, axis=0)
    # A component without spread (one-dimensional data, equal points) goes to the middle.
    unit = np.where(width > 0, (plane - low) / np.where(width > 0, width, 1), 0.5)
    angles = 0.6 * np.pi * unit + 0.2 * np.pi
    return angles[:, 0], angles[:, 1]


def pca_positions(X_hat: np.ndarray) -> np.ndarray:
    """Initial unit vectors (n x 3)."""
    longitude, colatitude = wrapped_angles(X_hat)
    return np.asarray(from_lonlat(longitude, np.pi / 2 - colatitude))
