"""Initial positions on the sphere from principal components."""

from __future__ import annotations

import numpy as np

from .._data.arrays import Array, namespace, row_dot
from .._math.sphere import from_lonlat, normalize

_MIN_SIZE = 1e-7  # smaller arcs are rounding errors of the arccosine


def principal_scores(X_hat: np.ndarray, k: int) -> np.ndarray:
    """Scores on the first k principal components (n x k), with fixed signs."""
    centred = X_hat - X_hat.mean(axis=0)
    if centred.shape[1] < k:
        centred = np.pad(centred, [(0, 0), (0, k - centred.shape[1])])
    if centred.shape[0] < centred.shape[1]:  # the same scores from the smaller Gram matrix
        values, vectors = np.linalg.eigh(centred @ centred.T)
        scores = (vectors * np.sqrt(np.maximum(values, 0)))[:, : -k - 1 : -1]
    else:
        scores = centred @ np.linalg.eigh(centred.T @ centred)[1][:, : -k - 1 : -1]
    farthest = scores[np.abs(scores).argmax(axis=0), np.arange(k)]
    return np.asarray(scores * np.where(farthest < 0, -1, 1))


def wrapped_angles(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitude and colatitude of the paper's start: each component is scaled to [.2 pi, .8 pi]."""
    plane = scores[:, :2]
    low, width = plane.min(axis=0), np.ptp(plane, axis=0)
    # A constant component (one-dimensional data, equal points) goes to the middle.
    unit = np.where(width > 0, (plane - low) / np.where(width > 0, width, 1), 0.5)
    angles = 0.6 * np.pi * unit + 0.2 * np.pi
    return angles[:, 0], angles[:, 1]


def pca_positions(scores: np.ndarray) -> np.ndarray:
    """The paper's initial unit vectors (n x 3), from scores on two or more principal components."""
    longitude, colatitude = wrapped_angles(scores)
    return np.asarray(from_lonlat(longitude, np.pi / 2 - colatitude))


def bent_positions(scores: np.ndarray, bend: float = 0.5) -> np.ndarray:
    """Directions in which a viewpoint, shifted along the third component, sees points in three components."""
    spread = np.sqrt(np.mean(np.sum(scores[:, :2] ** 2, axis=1)))
    unit = scores[:, :3] / (spread if spread > 0 else 1.0)
    return np.asarray(normalize(unit + np.array([0.0, 0.0, bend])))


def flat_positions(scores: np.ndarray, radius: float = 0.5) -> np.ndarray:
    """Two components wrapped onto the sphere from a tangent plane, with root mean square arc `radius`."""
    plane = scores[:, :2] - scores[:, :2].mean(axis=0)
    spread = np.sqrt(np.mean(np.sum(plane**2, axis=1)))
    plane = plane * (radius / (spread if spread > 0 else 1.0))
    distance = np.linalg.norm(plane, axis=1, keepdims=True)
    sinc = np.sinc(np.minimum(distance, np.pi) / np.pi)  # sin(distance) / distance
    return np.concatenate([plane * sinc, np.cos(np.minimum(distance, np.pi))], axis=1)


def size_of(Y: Array) -> float:
    """Root mean square arc of positions from their centre."""
    xp, arc = namespace(Y), _arcs_from(Y, centre_of(Y))[0]
    return float(xp.sqrt(xp.mean(arc * arc)))


def resized(Y: Array, size: float) -> Array:
    """Scale all arcs from the centre so that the map has this size; arcs are at most pi."""
    old_size = size_of(Y)
    return Y if old_size < _MIN_SIZE else scaled(Y, centre_of(Y), size / old_size)


def scaled(Y: Array, centre: Array, factor: float) -> Array:
    """Multiply all arcs from a centre (3) by a factor; arcs are at most pi."""
    xp = namespace(Y)
    arc, cosine = _arcs_from(Y, centre)
    direction = normalize(Y - cosine[:, None] * centre)
    arc = xp.clip(arc * factor, None, xp.pi)[:, None]
    return xp.cos(arc) * centre + xp.sin(arc) * direction


def centre_of(Y: Array) -> Array:
    """Mean direction (3) of positions."""
    return normalize(namespace(Y).mean(Y, axis=0)[None, :])[0, :]


def _arcs_from(Y: Array, centre: Array) -> tuple[Array, Array]:
    """Arcs (n) of positions from a centre, and their cosines."""
    xp, cosine = namespace(Y), row_dot(Y, centre[None, :])
    return xp.acos(xp.clip(cosine, -1, 1)), cosine


def start_positions(scores: np.ndarray) -> list[np.ndarray]:
    """Starts from scores on three components, which lead to different minima; the paper's is the first."""
    deviation = scores.std(axis=0)
    whitened = scores / np.where(deviation > 0, deviation, 1)
    return [
        pca_positions(scores),
        pca_positions(scores[:, [1, 2, 0]]),
        bent_positions(scores),
        bent_positions(scores[:, [0, 2, 1]]),
        bent_positions(scores[:, [1, 2, 0]]),
        bent_positions(whitened),
        flat_positions(scores),
    ]
