"""The initial view of the explorer, which is filled by the data."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from .._draw.chart import default_center
from .._draw.window import choose_window, map_corners
from ..projections import project

MAPS = ("mercator", "equal_earth")
_WHOLE = [1.0, 0.0, 0.0]  # zoom and centre that show the whole globe or map


class Home(TypedDict):
    """Longitude, latitude and roll in radians; zoom and centre of the globe and of each map."""

    rotation: list[float]
    globe: list[float]
    map: dict[str, list[float]]


def home(Y: NDArray[np.float64]) -> Home:
    """Centre the view on the points and zoom the map so that it just shows them all.

    The globe is not zoomed: without its edge it would look like a flat disc. Points spread over most of the
    sphere get the whole map, not rotated. The centre is rounded to tens of degrees, so that an embedding
    around the origin keeps its equator horizontal.

    Examples
    --------
    >>> import numpy as np
    >>> nearby = np.array([[0.8, 0.6, 0], [0.8, -0.6, 0], [0.8, 0, 0.6], [0.8, 0, -0.6]])
    >>> home(nearby)["map"]["mercator"]
    [4.2758, 0.0, 0.0]
    >>> home(np.concatenate([np.eye(3), -np.eye(3)]))["map"]["mercator"]
    [1.0, 0.0, 0.0]
    """
    center = default_center(Y, "orthographic")
    maps = {projection: _fit(Y, projection, center) for projection in MAPS}
    if maps["mercator"] == _WHOLE:
        return {"rotation": [0.0, 0.0, 0.0], "globe": _WHOLE, "map": dict.fromkeys(MAPS, _WHOLE)}
    rotation = [*np.deg2rad(center).tolist(), 0.0]
    return {"rotation": rotation, "globe": _WHOLE, "map": maps}


def initial_view(embeddings: list[dict[str, Any]], projection: str) -> dict[str, list[float]]:
    """Initial view, from the first embedding on the sphere, if any."""
    homes = [embedding["home"] for embedding in embeddings if embedding["kind"] == "sphere"]
    if not homes:
        return {"rotation": [0.0, 0.0, 0.0], "globe": _WHOLE, "map": _WHOLE, "flat": _WHOLE}
    return {**homes[0], "map": homes[0]["map"][projection], "flat": _WHOLE}


def _fit(Y: NDArray[np.float64], projection: str, center: tuple[float, float]) -> list[float]:
    """Zoom and centre of a map; a zoom of 1 shows the whole map."""
    window = choose_window(projection, project(Y, projection, center=center))
    zoom = np.min(np.ptp(map_corners(projection), axis=0) / window.size)
    if window.whole or zoom <= 1:
        return _WHOLE
    middle = (window.low + window.high) / 2
    return [round(float(number), 4) + 0.0 for number in (zoom, *middle)]
