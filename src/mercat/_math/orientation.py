"""Turning an embedding so that it reads well as a map.

Rotations of the sphere change no angle and no distance, but a map stretches what lies far from its
equator and cuts along its seam. So the crowd goes to the equator and the seam to the emptiest longitudes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._data.checks import check_choice
from .sphere import fibonacci_grid, to_lonlat

_N_SEARCH = 2048  # points on which axes are compared; the best is refined on all
_N_AXES = 800
_N_BINS = 720


def latitude_penalty(Y: np.ndarray, axis: np.ndarray) -> float:
    """Sum of squared latitudes of unit vectors Y about a polar axis, as in the paper's appendix."""
    return float(np.sum(np.arcsin(np.clip(Y @ axis, -1, 1)) ** 2))


def equator_rotation(Y: np.ndarray, *, method: str = "refined") -> np.ndarray:
    """Rotation matrix R such that ``Y @ R.T`` favours the equator.

    Parameters
    ----------
    Y : array of shape (n, 3)
        Unit vectors.
    method : {"refined", "grid"}, default="refined"
        "grid" compares the paper's 41 x 41 rotations, in steps of pi / 40. "refined" compares 800 polar
        axes spread evenly and follows the best one down: never worse, and much faster.

    Returns
    -------
    R : array of shape (3, 3)
        A proper rotation. The third row is the polar axis; the seam at longitude pi lies where the
        fewest points are.

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


def _grid_axis(Y: np.ndarray) -> np.ndarray:
    """The paper's grid over R_alpha R_beta.

    Its third row is the axis. (As printed, Y R, the third *column* would be: it does not depend on beta,
    and the search would miss most axes.)
    """
    alpha, beta = np.meshgrid(
        np.linspace(-np.pi / 2, np.pi / 2, 41), np.linspace(0, np.pi, 41), indexing="ij"
    )
    axes = np.stack(
        [np.sin(alpha) * np.cos(beta), -np.sin(alpha) * np.sin(beta), np.cos(alpha)], axis=-1
    ).reshape(-1, 3)
    return np.asarray(axes[np.argmin([latitude_penalty(Y, axis) for axis in axes])])


def _refined_axis(Y: np.ndarray) -> np.ndarray:
    sample = Y[:: max(1, len(Y) // _N_SEARCH)]
    # The axis of least inertia solves the problem for small latitudes, in closed form.
    inertia = np.linalg.eigh(sample.T @ sample)[1][:, :1].T
    axes = np.concatenate([inertia, fibonacci_grid(2 * _N_AXES, np)[:_N_AXES]])
    best = axes[np.argmin([latitude_penalty(sample, axis) for axis in axes])]

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        length = np.linalg.norm(z)
        axis = z / length
        sine = np.clip(Y @ axis, -1, 1)
        latitude = np.arcsin(sine)
        slope = Y.T @ (latitude / np.sqrt(np.maximum(1 - sine**2, 1e-12)))
        slope = 2 * (slope - (slope @ axis) * axis) / length
        return float(np.mean(latitude**2)), slope / len(Y)

    refined = minimize(function, best, jac=True, method="L-BFGS-B").x
    refined /= np.linalg.norm(refined)
    return np.asarray(
        refined if latitude_penalty(Y, refined) <= latitude_penalty(Y, best) else best
    )


def _rotation_to_pole(axis: np.ndarray) -> np.ndarray:
    """The shortest rotation that takes the axis, or its opposite if nearer, to the north pole."""
    x, y, z = axis if axis[2] >= 0 else -axis
    return np.array(
        [
            [1 - x * x / (1 + z), -x * y / (1 + z), -x],
            [-x * y / (1 + z), 1 - y * y / (1 + z), -y],
            [x, y, z],
        ]
    )


def _turn_seam(Y: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Turn about the pole so that the emptiest longitudes are at +-pi."""
    longitude, _ = to_lonlat(Y @ R.T)
    counts = np.histogram(longitude, bins=_N_BINS, range=(-np.pi, np.pi))[0]
    centers = (np.arange(_N_BINS) + 0.5) * (2 * np.pi / _N_BINS) - np.pi
    # A kernel about 20 degrees wide with a slow tail: the middle of a wide gap beats its edges.
    kernel = 1 / (1 + ((centers - centers[0] + np.pi) % (2 * np.pi) - np.pi) ** 2 / 0.03)
    density = np.fft.irfft(np.fft.rfft(counts) * np.fft.rfft(kernel), _N_BINS)
    turn = np.pi - centers[np.argmin(density)]
    c, s = np.cos(turn), np.sin(turn)
    return np.asarray(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ R)
