r"""Definition of the loss: how well Y on the sphere preserves the angles of X.

For an apex i and two legs j, k let :math:`a_{jk} = \cos\angle X_j X_i X_k`, and let
:math:`b_{jk} = \cos\angle Y_j Y_i Y_k` be the cosine of the angle between geodesics. The loss is the root
mean square of

.. math:: a_{jk} - \alpha - \beta\, b_{jk}

over all triples: the paper's loss for :math:`(\alpha, \beta) = (0, 1)`, the calibrated one for the
:math:`(\alpha, \beta)` of the least-squares fit, where it equals
:math:`\mathrm{sd}(a) \sqrt{1 - \mathrm{corr}(a, b)^2}`.

Plain NumPy over explicit triples. `angles.py` computes the same loss in blocks; tests compare the two.
"""

from __future__ import annotations

import numpy as np


def triple_cosines(X: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """Cosine of the angle at X[i] between X[j] and X[k], for rows (i, j, k) of `triples`.

    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> triple_cosines(X, np.array([[0, 1, 2]]))
    array([0.70710678])
    """
    i, j, k = triples.T
    p, q = X[j] - X[i], X[k] - X[i]
    lengths = np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1)
    return np.asarray(np.sum(p * q, 1) / lengths)


def spherical_triple_cosines(Y: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """Cosine of the angle at Y[i] between the geodesics to Y[j] and Y[k], by plane normals.

    >>> Y = np.eye(3)  # an octant: three right angles
    >>> spherical_triple_cosines(Y, np.array([[0, 1, 2]]))
    array([0.])
    """
    i, j, k = triples.T
    p, q = np.cross(Y[i], Y[j]), np.cross(Y[i], Y[k])
    lengths = np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1)
    return np.asarray(np.sum(p * q, 1) / lengths)


def angle_loss(
    X: np.ndarray, Y: np.ndarray, triples: np.ndarray, alpha: float = 0.0, beta: float = 1.0
) -> float:
    """Root mean square of a - alpha - beta b over explicit triples.

    `angle_gradient` is the gradient of its square.
    """
    residual = triple_cosines(X, triples) - alpha - beta * spherical_triple_cosines(Y, triples)
    return float(np.sqrt(np.mean(residual**2)))


def angle_gradient(
    X: np.ndarray, Y: np.ndarray, triples: np.ndarray, alpha: float = 0.0, beta: float = 1.0
) -> np.ndarray:
    """Gradient of the mean *squared* residual with respect to Y, tangent to the sphere.

    Let p, q be the unit tangents at Y[i] towards its legs and b = p . q. A small step of a leg at distance d
    moves its tangent by the component of the step across the geodesic, divided by sin d.
    """
    i, j, k = triples.T
    residual = triple_cosines(X, triples) - alpha - beta * spherical_triple_cosines(Y, triples)
    # Derivative of the mean squared residual with respect to b.
    slope = (-2 * beta / len(triples)) * residual[:, None]
    gradient = np.zeros_like(Y)
    for leg, other in ((j, k), (k, j)):
        cos_d = np.sum(Y[i] * Y[leg], 1, keepdims=True)
        tangent = Y[leg] - cos_d * Y[i]
        sin_d = np.linalg.norm(tangent, axis=1, keepdims=True)
        across = np.cross(Y[i], tangent / sin_d)
        toward = Y[other] - np.sum(Y[i] * Y[other], 1, keepdims=True) * Y[i]
        toward /= np.linalg.norm(toward, axis=1, keepdims=True)
        step = slope * np.sum(across * toward, 1, keepdims=True) * across / sin_d
        np.add.at(gradient, leg, step)
        np.add.at(gradient, i, -cos_d * step)
    return gradient
