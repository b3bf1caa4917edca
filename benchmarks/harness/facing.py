"""Rotate maps to the orientation of the data, for pictures."""

from __future__ import annotations

import numpy as np


def facing(flat: np.ndarray, X: np.ndarray, *, mirror: bool = True) -> np.ndarray:
    """A map in the plane turned, and mirrored if that helps and is allowed, as the planar X stands.

    This changes no angle and no distance.
    """
    left, _, right = np.linalg.svd((X - X.mean(axis=0)).T @ flat)
    if not mirror:
        left = left * [1, np.linalg.det(left @ right)]
    return flat @ (left @ right).T
