"""Positions of the points in one or more embeddings, on the sphere or in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.checks import check_unit, positions_of
from ._home import home

_MAX_COORDINATE = 32767  # largest 16-bit coordinate


@dataclass(frozen=True)
class Embedding:
    """Positions of all points as two 16-bit integers each, and the view that shows them all.

    kind: "sphere", in octahedral coordinates (within 0.004 degrees), or "plane", as fractions of the longer
    side.
    """

    name: str
    kind: str
    points: NDArray[np.float64]
    codes: NDArray[np.int16]
    home: Mapping[str, Any]


def read_embeddings(Y: Any) -> list[Embedding]:
    """Read one embedding, or a mapping from names to embeddings with the same number of rows.

    Each is an array of unit vectors or of positions in the plane, or a fitted model.
    """
    if not isinstance(Y, Mapping):
        positions = positions_of("Y", Y)
        if np.ndim(positions) == 2 and np.shape(positions)[1] == 2:
            return [_plane("Map", "Y", np.asarray(positions))]
        return [_sphere("Mercat", check_unit("Y", positions, some=True))]
    if not Y:
        raise ValueError("Y must hold at least one embedding, got an empty mapping.")
    embeddings = [_read(str(name), values) for name, values in Y.items()]
    names = [embedding.name for embedding in embeddings]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Names of embeddings must be unique, got {twice!r} more than once.")
    n = len(embeddings[0].codes)
    for embedding in embeddings:
        if len(embedding.codes) != n:
            raise ValueError(
                f"Y[{embedding.name!r}] must have one row per point ({n}), got {len(embedding.codes)}."
            )
    return embeddings


def _read(name: str, values: Any) -> Embedding:
    label = f"Y[{name!r}]"
    values = positions_of(label, values)
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 2:
        return _plane(name, label, array)
    return _sphere(name, check_unit(label, values, some=True))


def _sphere(name: str, points: NDArray[np.float64]) -> Embedding:
    return Embedding(name, "sphere", points, to_octahedral(points), home(points))


def _plane(name: str, label: str, values: NDArray[Any]) -> Embedding:
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{label} must hold numbers, got dtype {values.dtype}.")
    points = values.astype(np.float64)
    if len(points) == 0:
        raise ValueError(f"{label} must have at least one row, got none.")
    if not np.isfinite(points).all():
        raise ValueError(f"{label} must have no NaN or infinity.")
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    half = np.ptp(points, axis=0) / 2
    half_side = half.max() or 1.0
    codes = np.rint((points - middle) / half_side * _MAX_COORDINATE).astype(np.int16)
    # Degenerate sides get some height, so that the view has an area.
    half_sides = np.maximum(half / half_side, 0.05)
    return Embedding(
        name, "plane", points, codes, {"half": [round(float(x), 4) for x in half_sides]}
    )


def to_octahedral(Y: NDArray[np.float64]) -> NDArray[np.int16]:
    """Encode unit vectors in octahedral coordinates, two 16-bit integers each.

    Examples
    --------
    >>> import numpy as np
    >>> to_octahedral(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])).tolist()
    [[0, 0], [32767, 0]]
    """
    folded = Y / np.abs(Y).sum(axis=1, keepdims=True)
    square = folded[:, :2]
    sign = np.where(square < 0, -1.0, 1.0)
    square = np.where(folded[:, 2:] < 0, (1 - np.abs(square[:, ::-1])) * sign, square)
    return np.asarray(np.rint(square * _MAX_COORDINATE), dtype=np.int16)
