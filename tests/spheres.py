"""Points on the sphere that many tests start from."""

from __future__ import annotations

import numpy as np


def random_sphere(n: int, seed: int = 0) -> np.ndarray:
    """n unit vectors, uniform over the sphere."""
    Y = np.random.default_rng(seed).normal(size=(n, 3))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)
