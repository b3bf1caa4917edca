"""Random points on the sphere, and random samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercat._data.sampling import Sample, random_sample


def random_sphere(n: int, seed: int = 0) -> np.ndarray:
    """n unit vectors, uniform over the sphere."""
    Y = np.random.default_rng(seed).normal(size=(n, 3))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


def random_rows(X: Any) -> Sample:
    """All rows in a random order."""
    return random_sample(len(X), len(X), np.random.default_rng(0))
