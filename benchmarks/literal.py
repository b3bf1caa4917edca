"""The paper's Algorithm 1 without factorisation: all 64 x 64 cosines of an apex are computed.

The loss and its gradient by the chain rule, in NumPy, per batch of apices: a literal implementation without
the overhead of automatic differentiation.
"""

from __future__ import annotations

import time

import numpy as np

from mercat._solve.algorithm1 import N_LEGS, draw_legs
from mercat._solve.initial import pca_positions, principal_scores


def literal_step(X: np.ndarray, Y: np.ndarray, legs: np.ndarray) -> tuple[float, np.ndarray]:
    """Root mean squared difference of cosines over all apices, and its gradient (n x 3)."""
    n, m = legs.shape
    A = X[legs] - X[:, None]
    A /= np.linalg.norm(A, axis=2, keepdims=True)
    cross = np.cross(Y[:, None], Y[legs])
    length = np.linalg.norm(cross, axis=2, keepdims=True)
    N = cross / length
    difference = N @ N.transpose(0, 2, 1) - A @ A.transpose(0, 2, 1)  # n x m x m
    count = n * m * (m - 1)
    loss = np.sqrt(np.sum(difference**2) / count)
    toward = (2 / (loss * count)) * (difference @ N)  # gradient with respect to the normals
    toward -= np.sum(toward * N, axis=2, keepdims=True) * N
    toward /= length
    gradient = np.zeros_like(Y)
    np.add.at(gradient, legs, np.cross(toward, Y[:, None]))
    gradient += np.sum(np.cross(Y[legs], toward), axis=1)
    return float(loss), gradient


def seconds_per_step(X: np.ndarray, steps: int = 5, seed: int = 0) -> float:
    """Mean wall time per full-batch step on X."""
    rng = np.random.default_rng(seed)
    Y = pca_positions(principal_scores(X, 2))
    literal_step(X, Y, draw_legs(np.arange(len(X)), len(X), N_LEGS, rng))
    start = time.perf_counter()
    for _ in range(steps):
        literal_step(X, Y, draw_legs(np.arange(len(X)), len(X), N_LEGS, rng))
    return (time.perf_counter() - start) / steps
