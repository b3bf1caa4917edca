"""The points of a figure: their size, opacity and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .colors import Coloring, Scale
from .window import Window

if TYPE_CHECKING:
    from .maps import Style

Floats = NDArray[np.float64]

_MIN_TRIANGLE = 8.0  # smallest area of a triangle at the edge, in points squared
# More points than this are drawn as an image within vector formats.
_RASTER_FROM = 20_000


def draw(
    ax: Any,
    P: Floats,
    coloring: Coloring,
    style: Style,
    *,
    window: Window,
    marked: bool = True,
    far: NDArray[np.bool_] | None = None,
) -> None:
    """Draw points at P; those on the far side are pale.

    If `marked`, points beyond the window are triangles at its edge.
    """
    n = len(P)
    far = np.zeros(n, dtype=bool) if far is None else far
    beyond = window.beyond(P)
    area, opacity = marker_style(n, window.cover(P) * np.prod(ax.bbox.size * 72 / ax.figure.dpi))
    if isinstance(coloring, Scale):  # opaque, so that their colours can be read
        opacity = 1.0
    area = area if style.size is None else style.size
    rgba = coloring.rgba().copy()
    rgba[:, 3] *= opacity if style.alpha is None else style.alpha
    rgba[far, 3] *= 0.25
    order = _order(coloring, far, style.sort_order)
    inside = order[~beyond[order]]
    # A thin white line separates overlapping points if they are large enough.
    rim = {"linewidths": 0.3, "edgecolors": "white"} if area > 12 else {"linewidths": 0}
    raster_options: dict[str, Any] = {"rasterized": n > _RASTER_FROM}
    if style.outline:
        outlined = inside[~coloring.missing[inside] & ~far[inside]]
        for color, width, zorder in (("black", 1.7, 1.8), ("white", 1.1, 1.9)):
            ax.scatter(
                *P[outlined].T,
                s=area * width**2,
                color=color,
                linewidths=0,
                zorder=zorder,
                **raster_options,
            )
    ax.scatter(*P[inside].T, s=area, c=rgba[inside], zorder=2, **rim, **raster_options)
    shrinkage = np.clip(50 / max(beyond.sum(), 1), 0.4, 1)  # smaller if there are many
    for marker, rows in _edge_markers(P, order[beyond[order]], window) if marked else []:
        ax.scatter(
            *np.clip(P[rows], window.inner_low, window.inner_high).T,
            s=shrinkage * max(1.5 * area, _MIN_TRIANGLE),
            c=coloring.rgba()[rows],
            marker=marker,
            zorder=3,
            **rim,
        )


def _order(coloring: Coloring, far: NDArray[np.bool_], sort: bool) -> NDArray[np.intp]:
    """Rows in drawing order.

    Missing values come first, the far side before the near one, and low values before high ones.
    """
    # Random, because data are often sorted by class: the last class would cover the others.
    order = np.random.default_rng(0).permutation(len(far))
    keys: list[NDArray[Any]] = [~coloring.missing[order], ~far[order]]
    if sort and isinstance(coloring, Scale):
        keys = [coloring.values[order], *keys]
    return np.asarray(order[np.lexsort(keys)])


def _edge_markers(P: Floats, rows: NDArray[Any], window: Window) -> list[tuple[str, NDArray[Any]]]:
    """Rows beyond the window, by marker: a triangle that points to the side where they are farthest out."""
    excess_x, excess_y = (P[rows] - np.clip(P[rows], window.inner_low, window.inner_high)).T
    horizontal = np.abs(excess_x) > np.abs(excess_y)
    sides = {">": horizontal & (excess_x > 0), "<": horizontal & (excess_x < 0)}
    sides |= {"^": ~horizontal & (excess_y > 0), "v": ~horizontal & (excess_y < 0)}
    return [(marker, rows[side]) for marker, side in sides.items() if side.any()]


def marker_style(n: int, room: float) -> tuple[float, float]:
    """Area and opacity of the markers of n points in an area `room`; areas are in points squared.

    Without overlaps, the markers would cover half of the room. Their area is at most 36 (a diameter of about
    6 points), and at least 8000 / n, but not less than 0.25 or more than 4 (half a point and 2 points).
    Markers that this makes larger are transparent.
    """
    size_half_covered = 0.5 * room / max(n, 1)
    size = float(np.clip(size_half_covered, np.clip(8000 / max(n, 1), 0.25, 4.0), 36.0))
    alpha = 0.9 * min(1.0, size_half_covered / size) ** 0.4
    return size, float(max(alpha, 0.1))
