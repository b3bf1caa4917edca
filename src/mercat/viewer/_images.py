"""Thumbnails of points as stored by the viewer: raw pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_SIDE = 256  # pixels per side
_MAX_BYTES = 2**28  # bytes in total


@dataclass(frozen=True)
class Images:
    """pixels: (n, height, width, channels), from 0 to 255; one channel is grey, a fourth is opacity."""

    pixels: NDArray[np.uint8]


def read_images(images: Any, n: int) -> Images | None:
    """Read images of shape (n, height, width) or (n, height, width, channels): bytes, or floats in [0, 1]."""
    if images is None:
        return None
    array = np.asarray(images)
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or len(array) != n or array.shape[3] not in (1, 3, 4):
        raise ValueError(
            f"images must have shape ({n}, height, width), or with 1, 3 or 4 channels last, "
            f"got shape {np.shape(images)}."
        )
    if not 1 <= min(array.shape[1:3]) <= max(array.shape[1:3]) <= _MAX_SIDE:
        raise ValueError(
            f"images must have sides of 1 to {_MAX_SIDE} pixels, got {array.shape[1]} x {array.shape[2]}."
        )
    if array.size > _MAX_BYTES:
        raise ValueError(
            f"images must take at most {_MAX_BYTES >> 20} MiB, got {array.size >> 20}: make them smaller."
        )
    return Images(np.ascontiguousarray(_as_bytes(array)))


def _as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.dtype == bool:
        return array.astype(np.uint8) * np.uint8(255)
    top = 1.0 if array.dtype.kind == "f" else 255
    if array.dtype.kind not in "iuf":
        raise TypeError(f"images must hold numbers, got dtype {array.dtype}.")
    low, high = array.min(), array.max()
    if not (low >= 0 and high <= top):
        raise ValueError(
            f"images of dtype {array.dtype} must lie in [0, {top:g}], got values from {low} to {high}."
        )
    scaled = np.rint(array * 255) if array.dtype.kind == "f" else array
    return np.asarray(scaled, dtype=np.uint8)
