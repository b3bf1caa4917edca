"""Rotation of an embedding into a standard orientation, for a readable map.

Rotations and reflections of the sphere change no angles or distances, but a map stretches regions far from
its equator and cuts along its seam. So most points go to the equator and the seam to the emptiest longitudes.
The remaining freedom is fixed by the principal components of the data, which do not depend on the seed.
The map of data in a plane has the orientation of the plane.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._data.checks import check_choice
from .sphere import fibonacci_grid, to_lonlat

_N_SEARCH = 2048  # axes are compared on at least this many points, the best one is refined on all
_N_AXES = 800  # polar axes compared, evenly spread over a hemisphere
_N_BINS = 720  # bins of longitude, of half a degree
# Weights of the principal components in the choice of the polar axis, relative to squared latitudes in
# radians: small for elongated data, and enough to decide for round data.
_AXIS_WEIGHTS = np.array([2.0, 1.0, 0.0]) / 3
# Weights of the components in the choice of north and east.
_SIGN_WEIGHTS = np.sqrt([1.0, 0.5, 0.25])
_MAX_SCORE = 3.0  # scores are clipped at this number of standard deviations
# Concentration of the von Mises kernel for the density of longitudes: sd 20 degrees.
_SEAM_KERNEL = 8.0
# Root mean square distance of points in a plane from their centre, in radians on the map.
_PLANE_SPREAD = 0.3
# A map is visible from one side if the cosine of the angle to its centre is at least this for 99 % of the
# points.
_MIN_COSINE = 0.5
# Weight of the distance between the seam and the points, for maps on which many longitudes are empty.
_CENTRING = 0.05


def latitude_penalty(Y: np.ndarray, axis: np.ndarray) -> float:
    """Sum of squared latitudes of unit vectors Y about a polar axis, as in the paper's appendix."""
    return float(np.sum(np.arcsin(np.clip(Y @ axis, -1, 1)) ** 2))


def equator_rotation(Y: np.ndarray, *, method: str = "refined") -> np.ndarray:
    """Rotation matrix R such that most points of ``Y @ R.T`` lie near the equator.

    Parameters
    ----------
    Y : array of shape (n, 3)
        Unit vectors.
    method : {"refined", "grid"}, default="refined"
        "grid" compares the paper's 41 x 41 rotations, in steps of pi / 40. "refined" compares 800 evenly
        spread polar axes and optimises the best one; this is much faster, and the result is never worse.

    Returns
    -------
    R : array of shape (3, 3)
        A proper rotation. The third row is the polar axis; the seam at longitude pi has the fewest points
        nearby.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0, 0.6, 0.8], [0.0, -0.6, 0.8], [0.0, 0.0, 1.0]])
    >>> bool(np.abs((Y @ equator_rotation(Y).T)[:, 2]).max() < 1e-6)
    True
    """
    check_choice("method", method, ("refined", "grid"))
    Y = np.asarray(Y, dtype=np.float64)
    axis = _grid_axis(Y) if method == "grid" else _refined_axis(Y)
    return _turn_seam(Y, _rotation_to_pole(axis))


def canonical_frame(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Orthogonal matrix Q such that ``Y @ Q.T`` has a standard orientation, independent of the seed.

    Most points lie along the equator, as with `equator_rotation`; among axes that are about equally good, the
    first principal component runs along the equator. The seam at longitude pi has the fewest points nearby,
    and lies opposite the median longitude if wide ranges are empty. The components, with signs fixed by
    their third moments, increase to the north and east. Q may therefore mirror the sphere.

    If the data are symmetric, so that no axis or sign is preferred, small changes of the data may lead to
    another frame of this kind.

    Parameters
    ----------
    Y : array of shape (n, 3)
        Unit vectors.
    scores : array of shape (n, 3)
        Scores of the same points on the first principal components, of any scale and sign.
    """
    Y = np.asarray(Y, dtype=np.float64)
    # Column k: direction in which component k increases on the sphere.
    ascent = Y.T @ _signed_scores(scores) / len(Y)
    strength = np.sum(ascent**2)
    penalty = (ascent * _AXIS_WEIGHTS) @ ascent.T / strength if strength > 0 else np.zeros((3, 3))
    R = _turn_seam(Y, _rotation_to_pole(_refined_axis(Y, penalty)), _CENTRING)
    mirrored = _signed_squares(R[1:] @ ascent * _SIGN_WEIGHTS) < 0
    R[1:][mirrored] *= -1
    return R


def frame_of_plane(Y: np.ndarray, plane: np.ndarray) -> np.ndarray | None:
    """Orthogonal matrix Q such that ``Y @ Q.T`` has the orientation of points in a plane (n x 2).

    The first coordinate increases to the east, the second to the north. None for a map that extends too far
    around the sphere to be visible from one side.
    """
    Y = np.asarray(Y, dtype=np.float64)
    centred = np.asarray(plane, dtype=np.float64) - np.mean(plane, axis=0)
    spread = np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    if not spread > 0:
        return None
    target = np.insert(_PLANE_SPREAD * centred / spread, 0, 1.0, axis=1)
    Q = orthogonal_onto(Y, target / np.linalg.norm(target, axis=1, keepdims=True))
    return Q if np.quantile(Y @ Q[0], 0.01) > _MIN_COSINE else None


def _signed_scores(scores: np.ndarray) -> np.ndarray:
    """Standard scores, clipped to limit outliers, with signs fixed by the data.

    Signs make the third moments of a component with itself and the others positive; each is in units of its
    standard error, so that the clearest one decides.
    """
    centred = np.asarray(scores, dtype=np.float64) - np.mean(scores, axis=0)
    deviation = centred.std(axis=0)
    z = np.clip(centred / np.where(deviation > 0, deviation, 1), -_MAX_SCORE, _MAX_SCORE)
    moments = z[:, :, None] * (z**2 - 1)[:, None, :]
    error = moments.std(axis=0)
    clarity = moments.mean(axis=0) / np.where(error > 0, error, 1)
    return np.asarray(z * np.where(_signed_squares(clarity) < 0, -1, 1))


def _signed_squares(t: np.ndarray) -> np.ndarray:
    """Row sums of signed squares."""
    return np.asarray(np.sum(t * np.abs(t), axis=1))


def orthogonal_onto(Y: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Orthogonal matrix R, possibly a reflection, that brings ``Y @ R.T`` closest to the target.

    >>> import numpy as np
    >>> R = orthogonal_onto(np.eye(3), np.eye(3)[[1, 0, 2]])
    >>> bool(np.allclose(np.eye(3) @ R.T, np.eye(3)[[1, 0, 2]]))
    True
    """
    U, _, Vt = np.linalg.svd(np.asarray(target, np.float64).T @ np.asarray(Y, np.float64))
    return np.asarray(U @ Vt)


def _grid_axis(Y: np.ndarray) -> np.ndarray:
    """Search the paper's grid over R_alpha R_beta.

    The third row is the axis. (With Y R as printed, it would be the third *column*, which does not depend on
    beta, and the search would miss most axes.)
    """
    alpha, beta = np.meshgrid(
        np.linspace(-np.pi / 2, np.pi / 2, 41), np.linspace(0, np.pi, 41), indexing="ij"
    )
    axes = np.stack(
        [np.sin(alpha) * np.cos(beta), -np.sin(alpha) * np.sin(beta), np.cos(alpha)], axis=-1
    ).reshape(-1, 3)
    return np.asarray(axes[np.argmin([latitude_penalty(Y, axis) for axis in axes])])


def _refined_axis(Y: np.ndarray, penalty: np.ndarray | None = None) -> np.ndarray:
    """The axis a that minimises the mean squared latitude plus a' penalty a, with a matrix `penalty`."""
    penalty = np.zeros((3, 3)) if penalty is None else penalty
    sample = Y[:: max(1, len(Y) // _N_SEARCH)]
    # For small latitudes, the solution is the axis of least inertia.
    inertia = np.linalg.eigh(sample.T @ sample)[1][:, :1].T
    axes = np.concatenate([inertia, fibonacci_grid(2 * _N_AXES, np)[:_N_AXES]])
    penalties = np.sum((axes @ penalty) * axes, axis=1) * len(sample)
    latitudes = [latitude_penalty(sample, axis) for axis in axes]
    best = axes[np.argmin(latitudes + penalties)]

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        length = np.linalg.norm(z)
        axis = z / length
        sine = np.clip(Y @ axis, -1, 1)
        latitude = np.arcsin(sine)
        slope = Y.T @ (latitude / np.sqrt(np.maximum(1 - sine**2, 1e-12))) / len(Y) + penalty @ axis
        slope = 2 * (slope - (slope @ axis) * axis) / length
        return float(np.mean(latitude**2) + axis @ penalty @ axis), slope

    refined = minimize(function, best, jac=True, method="L-BFGS-B").x
    refined /= np.linalg.norm(refined)
    return np.asarray(refined if function(refined)[0] <= function(best)[0] else best)


def _rotation_to_pole(axis: np.ndarray) -> np.ndarray:
    """Shortest rotation that takes the axis, or its opposite if closer, to the north pole."""
    x, y, z = axis if axis[2] >= 0 else -axis
    return np.array(
        [
            [1 - x * x / (1 + z), -x * y / (1 + z), -x],
            [-x * y / (1 + z), 1 - y * y / (1 + z), -y],
            [x, y, z],
        ]
    )


def _turn_seam(Y: np.ndarray, R: np.ndarray, centring: float = 0.0) -> np.ndarray:
    """Rotate about the pole so that the emptiest longitudes are at +-pi.

    `centring` is the weight of the mean distance from the points, which decides between empty longitudes.
    """
    rotated = Y @ R.T
    longitude, _ = to_lonlat(rotated)
    # Points near the poles are close to every meridian and count less.
    weight = np.hypot(rotated[:, 0], rotated[:, 1]) / len(Y)
    counts = np.histogram(longitude, bins=_N_BINS, range=(-np.pi, np.pi), weights=weight)[0]
    centers = (np.arange(_N_BINS) + 0.5) * (2 * np.pi / _N_BINS) - np.pi
    distance = np.abs((centers - centers[0] + np.pi) % (2 * np.pi) - np.pi)
    kernel = np.exp(_SEAM_KERNEL * (np.cos(distance) - 1)) + centring * (np.pi - distance)
    density = np.fft.irfft(np.fft.rfft(counts) * np.fft.rfft(kernel), _N_BINS)
    turn = np.pi - centers[np.argmin(density)]
    c, s = np.cos(turn), np.sin(turn)
    return np.asarray(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ R)
