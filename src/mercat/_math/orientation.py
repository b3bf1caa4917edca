"""Turning an embedding so that it reads well as a map, and always in the same way.

Rotations and mirror images of the sphere change no angle and no distance, but a map stretches what lies far
from its equator and cuts along its seam. So the crowd goes to the equator and the seam to the emptiest
longitudes. What that leaves open, the principal components of the data decide, which no seed changes. Data in
a plane are a picture already: their map stands as they do.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .._data.checks import check_choice
from .sphere import fibonacci_grid, to_lonlat

_N_SEARCH = 2048  # points on which axes are compared; the best is refined on all
_N_AXES = 800
_N_BINS = 720
# How much the directions of the first components count beside latitudes (radians squared) for the axis:
# little for a crowd with a longer side, and enough to decide for a round one.
_ALONG = np.array([2.0, 1.0, 0.0]) / 3
_FIRST = np.sqrt([1.0, 0.5, 0.25])  # how much each component counts for what is north and east
_FARTHEST = 3.0  # standard deviations beyond which a score counts no more
_GAP = 8.0  # concentration of the kernel by which longitudes are empty: some 20 degrees wide
_SEEN = 0.3  # spread of points in a plane, as seen from the centre of the sphere
_IN_SIGHT = 0.5  # least cosine of an angle to the middle of a map that is seen from one side
_AMID = 0.05  # how much the seam is drawn away from the crowd where wide stretches are empty


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


def canonical_frame(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Orthogonal matrix Q such that ``Y @ Q.T`` reads well as a map and does not depend on chance.

    The crowd lies along the equator, as by `equator_rotation`; of axes that are about as good, one is taken
    that has the first principal component along the equator. The seam at longitude pi lies where the fewest
    points are, opposite the median longitude where wide stretches are empty. North and east are where the
    components, each with the sign of its third moments, are positive: Q may mirror the sphere.

    Where the data are symmetric, so that no axis or sign is better than another, the result is still a
    frame of that kind, but small changes of the data may choose another one.

    Parameters
    ----------
    Y : array of shape (n, 3)
        Unit vectors.
    scores : array of shape (n, 3)
        Scores of the same points on the first principal components, of any scale and sign.
    """
    Y = np.asarray(Y, dtype=np.float64)
    toward = (
        Y.T @ _signed_scores(scores) / len(Y)
    )  # column k: where component k grows on the sphere
    strength = np.sum(toward**2)
    along = (toward * _ALONG) @ toward.T / strength if strength > 0 else np.zeros((3, 3))
    R = _turn_seam(Y, _rotation_to_pole(_refined_axis(Y, along)), _AMID)
    mirrored = _signed_squares(R[1:] @ toward * _FIRST) < 0
    R[1:][mirrored] *= -1
    return R


def frame_of_plane(Y: np.ndarray, plane: np.ndarray) -> np.ndarray | None:
    """Orthogonal matrix Q such that ``Y @ Q.T`` stands on a map as points in a plane (n x 2) do.

    East is where their first coordinate is higher, north where the second is. None for a map that bends too
    far around the sphere to be seen from one side.
    """
    Y = np.asarray(Y, dtype=np.float64)
    centred = np.asarray(plane, dtype=np.float64) - np.mean(plane, axis=0)
    spread = np.sqrt(np.mean(np.sum(centred**2, axis=1)))
    if not spread > 0:
        return None
    target = np.insert(_SEEN * centred / spread, 0, 1.0, axis=1)
    Q = orthogonal_onto(Y, target / np.linalg.norm(target, axis=1, keepdims=True))
    return Q if np.quantile(Y @ Q[0], 0.01) > _IN_SIGHT else None


def _signed_scores(scores: np.ndarray) -> np.ndarray:
    """Standard scores, clipped so that no outlier rules, with signs that the data give them.

    A component is positive where its third moments with itself and the others are: each in units of its
    standard error, so that the clearest one decides.
    """
    centred = np.asarray(scores, dtype=np.float64) - np.mean(scores, axis=0)
    deviation = centred.std(axis=0)
    z = np.clip(centred / np.where(deviation > 0, deviation, 1), -_FARTHEST, _FARTHEST)
    moments = z[:, :, None] * (z**2 - 1)[:, None, :]
    error = moments.std(axis=0)
    clarity = moments.mean(axis=0) / np.where(error > 0, error, 1)
    return np.asarray(z * np.where(_signed_squares(clarity) < 0, -1, 1))


def _signed_squares(t: np.ndarray) -> np.ndarray:
    """Sums of squares that keep their sign, along rows: the largest decides."""
    return np.asarray(np.sum(t * np.abs(t), axis=1))


def orthogonal_onto(Y: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Orthogonal matrix R, a rotation or with a reflection, that brings ``Y @ R.T`` nearest to the target.

    >>> import numpy as np
    >>> R = orthogonal_onto(np.eye(3), np.eye(3)[[1, 0, 2]])
    >>> bool(np.allclose(np.eye(3) @ R.T, np.eye(3)[[1, 0, 2]]))
    True
    """
    U, _, Vt = np.linalg.svd(np.asarray(target, np.float64).T @ np.asarray(Y, np.float64))
    return np.asarray(U @ Vt)


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


def _refined_axis(Y: np.ndarray, along: np.ndarray | None = None) -> np.ndarray:
    """The axis of least mean squared latitude, plus axis' along axis: what is to lie along the equator."""
    along = np.zeros((3, 3)) if along is None else along
    sample = Y[:: max(1, len(Y) // _N_SEARCH)]
    # The axis of least inertia solves the problem for small latitudes, in closed form.
    inertia = np.linalg.eigh(sample.T @ sample)[1][:, :1].T
    axes = np.concatenate([inertia, fibonacci_grid(2 * _N_AXES, np)[:_N_AXES]])
    along_axes = np.sum((axes @ along) * axes, axis=1) * len(sample)
    penalties = [latitude_penalty(sample, axis) for axis in axes]
    best = axes[np.argmin(penalties + along_axes)]

    def function(z: np.ndarray) -> tuple[float, np.ndarray]:
        length = np.linalg.norm(z)
        axis = z / length
        sine = np.clip(Y @ axis, -1, 1)
        latitude = np.arcsin(sine)
        slope = Y.T @ (latitude / np.sqrt(np.maximum(1 - sine**2, 1e-12))) / len(Y) + along @ axis
        slope = 2 * (slope - (slope @ axis) * axis) / length
        return float(np.mean(latitude**2) + axis @ along @ axis), slope

    refined = minimize(function, best, jac=True, method="L-BFGS-B").x
    refined /= np.linalg.norm(refined)
    return np.asarray(refined if function(refined)[0] <= function(best)[0] else best)


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


def _turn_seam(Y: np.ndarray, R: np.ndarray, amid: float = 0.0) -> np.ndarray:
    """Turn about the pole so that the emptiest longitudes are at +-pi.

    Of those about as empty, the ones farthest from the points on average, by the factor `amid`.
    """
    turned = Y @ R.T
    longitude, _ = to_lonlat(turned)
    # Points near the poles sit on every meridian, and do not mind where the cut is.
    weight = np.hypot(turned[:, 0], turned[:, 1]) / len(Y)
    counts = np.histogram(longitude, bins=_N_BINS, range=(-np.pi, np.pi), weights=weight)[0]
    centers = (np.arange(_N_BINS) + 0.5) * (2 * np.pi / _N_BINS) - np.pi
    apart = np.abs((centers - centers[0] + np.pi) % (2 * np.pi) - np.pi)
    kernel = np.exp(_GAP * (np.cos(apart) - 1)) + amid * (np.pi - apart)
    density = np.fft.irfft(np.fft.rfft(counts) * np.fft.rfft(kernel), _N_BINS)
    turn = np.pi - centers[np.argmin(density)]
    c, s = np.cos(turn), np.sin(turn)
    return np.asarray(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ R)
