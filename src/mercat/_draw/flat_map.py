"""A flat map for other programs, such as scanpy, which fit the axes to all points.

It is a Mercator map, cut where the fewest points are. Far points are moved inwards into a margin, in
unchanged order along each axis, so that most points fill the frame and none is cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..projections import project
from .chart import default_center
from .window import FILLED, MERCATOR_TOP, central_box

Floats = NDArray[np.float64]

_MATPLOTLIB_MARGIN = 0.05  # matplotlib's margin on each side, relative to the extent of the points
_MIN_MARGIN = 1e-3  # smallest margin, in radians


@dataclass(frozen=True)
class FlatMap:
    """Centre of a flat map, and the start of its margin.

    A coordinate u above `high` is drawn at ``high + margin * t / (1 + t)`` with t = (u - high) / margin.
    Coordinates below `low` are moved likewise, and all others are unchanged.
    """

    center: float  # its longitude, in degrees
    low: Floats
    high: Floats
    margin: Floats

    @classmethod
    def of(cls, Y: Floats) -> FlatMap:
        """The flat map for unit vectors (at least one)."""
        center, _ = default_center(Y, "mercator")
        P = _mercator(Y, center)
        inside = np.clip(P, -MERCATOR_TOP, MERCATOR_TOP)
        low, high = central_box(inside)
        margin = np.maximum(
            (1 / FILLED / (1 + 2 * _MATPLOTLIB_MARGIN) - 1) / 4 * (high - low), _MIN_MARGIN
        )
        # A side needs no margin if all points fit into the space around most of them.
        fits_low, fits_high = P.min(axis=0) >= low - 2 * margin, P.max(axis=0) <= high + 2 * margin
        return cls(
            center,
            np.where(fits_low, P.min(axis=0), low - margin),
            np.where(fits_high, P.max(axis=0), high + margin),
            margin,
        )

    def positions(self, Y: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Positions of unit vectors, and a mask of those moved inwards."""
        P = _mercator(Y, self.center)
        clipped = np.clip(P, self.low, self.high)
        excess = P - clipped
        with np.errstate(invalid="ignore"):
            shift = np.sign(excess) * self.margin * (1 - 1 / (1 + np.abs(excess) / self.margin))
        return clipped + shift, (excess != 0).any(axis=1)

    def to_dict(self) -> dict[str, Any]:
        """The flat map as a dict that an h5ad file can store."""
        return {
            "projection": "mercator",
            "center": self.center,
            "low": self.low,
            "high": self.high,
            "margin": self.margin,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> FlatMap:
        """The flat map of `to_dict`."""
        low, high, margin = (np.asarray(entry[name], float) for name in ("low", "high", "margin"))
        return cls(float(entry["center"]), low, high, margin)


def _mercator(Y: Floats, center: float) -> Floats:
    return project(Y, "mercator", center=(center, 0.0))
