"""How far the places of points can be trusted, as the explorer draws it: ellipses and other places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import Column, Numbers
from ._embeddings import Embedding, to_octahedral

LEVEL = 0.9  # of the ellipses
NONE = -32768  # in place of a coordinate, where there is no other place
# What the columns are called, and where colours run from trusted to doubtful.
_NAMES = {
    "spread": ("spread (degrees)", "loss"),
    "alternative_wins": ("alternative wins", None),
    "alternative_gap": ("alternative gap", None),
    "torn": ("torn share", "torn"),
    "p_value": ("p value", "loss"),
}


@dataclass(frozen=True)
class Places:
    """For each point the axes of its ellipse, and another place."""

    axes: NDArray[np.float32]  # (n, 4): the longer one, and the length of the other
    alternative: NDArray[np.int16]
    columns: list[Column]


def read_places(uncertainty: Any, embeddings: list[Embedding]) -> Places | None:
    """A `mercat.Uncertainty` of the first embedding."""
    if uncertainty is None:
        return None
    n = len(embeddings[0].codes)
    parts = ("places", "axes", "alternative", "columns", "factor")
    if not all(hasattr(uncertainty, name) for name in parts):
        raise TypeError(
            "uncertainty must be what mercat.uncertainty returns, got a "
            f"{type(uncertainty).__name__}."
        )
    if embeddings[0].kind != "sphere":
        raise ValueError(
            "uncertainty needs a first embedding of unit vectors, got one in the plane."
        )
    axes, other = (
        np.asarray(getattr(uncertainty, name), dtype=np.float64) for name in ("axes", "alternative")
    )
    if axes.shape != (n, 2, 3):
        raise ValueError(f"uncertainty must be that of {n} points, got that of {len(axes)}.")
    axes = axes * uncertainty.factor(LEVEL)
    known = np.isfinite(other).all(axis=1)
    codes = np.full((n, 2), NONE, dtype=np.int16)
    codes[known] = to_octahedral(other[known])
    columns: list[Column] = []
    for name, values in uncertainty.columns().items():
        title, role = _NAMES[name]
        numbers = np.asarray(values, dtype=np.float64)
        columns.append(
            Numbers(title, np.degrees(numbers) if name == "spread" else numbers, role=role)
        )
    short = np.linalg.norm(axes[:, 1], axis=1, keepdims=True)
    return Places(np.hstack([axes[:, 0], short]).astype(np.float32), codes, columns)
