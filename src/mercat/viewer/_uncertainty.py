"""Uncertainty of positions as drawn by the explorer: ellipses and alternative positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.checks import check_uncertainty
from ._columns import Column, Numbers
from ._embeddings import Embedding, to_octahedral

LEVEL = 0.9  # probability content of the ellipses
NO_POSITION = -32768  # coordinate of points without an alternative position
# Names of the columns, and roles that give them colours from trusted to doubtful.
_NAMES = {
    "spread": ("spread (degrees)", "loss"),
    "alternative_wins": ("alternative wins", None),
    "alternative_gap": ("alternative gap", None),
    "torn": ("torn neighbours", "torn"),
    "p_value": ("p value", "loss"),
}
COLUMNS = tuple(name for name, _ in _NAMES.values())


@dataclass(frozen=True)
class UncertaintyArrays:
    """Axes of the ellipse and alternative position of each point."""

    axes: NDArray[np.float32]  # (n, 4): the longer axis, and the length of the other
    alternative: NDArray[np.int16]
    columns: list[Column]


def read_uncertainty(uncertainty: Any, embeddings: list[Embedding]) -> UncertaintyArrays | None:
    """Read a `mercat.Uncertainty` of the first embedding."""
    if uncertainty is None:
        return None
    n = len(embeddings[0].codes)
    check_uncertainty(uncertainty, n)
    if embeddings[0].kind != "sphere":
        raise ValueError(
            "uncertainty requires the first embedding to consist of unit vectors, got one in the plane."
        )
    axes, alternative = (
        np.asarray(getattr(uncertainty, name), dtype=np.float64) for name in ("axes", "alternative")
    )
    axes = axes * uncertainty.factor(LEVEL)
    has_alternative = np.isfinite(alternative).all(axis=1)
    codes = np.full((n, 2), NO_POSITION, dtype=np.int16)
    codes[has_alternative] = to_octahedral(alternative[has_alternative])
    columns: list[Column] = []
    for name, values in uncertainty.columns().items():
        title, role = _NAMES[name]
        numbers = np.asarray(values, dtype=np.float64)
        columns.append(
            Numbers(title, np.degrees(numbers) if name == "spread" else numbers, role=role)
        )
    shorter = np.linalg.norm(axes[:, 1], axis=1, keepdims=True)
    return UncertaintyArrays(np.hstack([axes[:, 0], shorter]).astype(np.float32), codes, columns)
