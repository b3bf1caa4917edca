"""Rotate maps to the orientation of the data, for pictures."""

from __future__ import annotations

import numpy as np


def facing(flat: np.ndarray, X: np.ndarray, *, mirror: bool = True) -> np.ndarray:
    """Rotate a planar map onto planar data X, and mirror it if that helps and is allowed.

    This changes no angle and no distance.
    """
    left, _, right = np.linalg.svd((X - X.mean(axis=0)).T @ flat)
    if not mirror:
        left = left * [1, np.linalg.det(left @ right)]
    return flat @ (left @ right).T
