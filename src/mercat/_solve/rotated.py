"""The rotation of a finished map, and positions and losses of rows on the rotated map."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.arrays import in_tiles, like, namespace, to_numpy, widest
from .._data.source import RowSource
from .._math.orientation import canonical_frame, frame_of_plane, orthogonal_onto
from .._math.sphere import normalize
from .anchors import Anchors
from .fitted_map import FittedMap, ScoredMap
from .pipeline import Solved


def rotation_of(solved: Solved, anchors: Anchors | None) -> np.ndarray:
    """The rotation of a map: to its canonical orientation, or onto another map."""
    if anchors is None:  # the frame may mirror the map, which also preserves angles
        Y, scores, plane = solved.orienting
        frame = None if plane is None else frame_of_plane(Y, plane)
        return canonical_frame(Y, scores) if frame is None else frame
    rows = anchors.known
    return orthogonal_onto(to_numpy(solved.fit.Y)[rows], anchors.positions[rows])


def place(placer: FittedMap, rotation: np.ndarray, dtype: str, rows: Any, _: int) -> Any:
    """Positions of rows on the rotated map."""
    return rotated(placer.block(rows)[1], rotation, dtype)


def judge(placement: ScoredMap, rows: Any, start: int) -> Any:
    """Losses of rows, the first of which has the index `start`."""
    return placement.point_loss(placement.block(rows, start)[1])


def rotated(Y: Any, rotation: np.ndarray, dtype: str) -> Any:
    """Positions rotated and normalised; the result of a row is bit-identical in any batch."""
    xp = namespace(Y)
    wide = xp.astype(Y, widest(Y))
    R = xp.asarray(rotation.T, **like(wide))
    (Y_rotated,) = in_tiles(lambda rows: (normalize(rows @ R),), wide)
    return xp.astype(Y_rotated, getattr(xp, dtype), copy=False)


def output_type(rows: RowSource) -> str:
    """float32 for data of float32 in any byte order, else float64."""
    dtype = rows.dtype.newbyteorder("=") if isinstance(rows.dtype, np.dtype) else rows.dtype
    return "float32" if str(dtype).endswith("float32") else "float64"
