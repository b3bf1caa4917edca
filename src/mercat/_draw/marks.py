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

# More points than this are drawn as an image within vector formats.
_RASTER_FROM = 20_000


def draw(
    ax: Any,
    P: Floats,
    shades: Coloring,
    look: Style,
    *,
    shown: Window,
    marked: bool = True,
    far: NDArray[np.bool_] | None = None,
) -> None:
    """Draw points at P; those on the far side are pale.

    If `marked`, points beyond the window are triangles at its edge.
    """
    n = len(P)
    far = np.zeros(n, dtype=bool) if far is None else far
    beyond = shown.beyond(P)
    area, opacity = style(n, shown.cover(P) * np.prod(ax.bbox.size * 72 / ax.figure.dpi))
    if isinstance(shades, Scale):  # opaque, so that their colours can be read
        opacity = 1.0
    area = area if look.size is None else look.size
    rgba = shades.rgba().copy()
    rgba[:, 3] *= opacity if look.alpha is None else look.alpha
    rgba[far, 3] *= 0.25
    order = _order(shades, far, look.sort_order)
    inside = order[~beyond[order]]
    # A thin rim separates touching points if they are large enough.
    rim = {"linewidths": 0.3, "edgecolors": "white"} if area > 12 else {"linewidths": 0}
    common: dict[str, Any] = {"rasterized": n > _RASTER_FROM}
    if look.outline:
        around = inside[~shades.missing[inside] & ~far[inside]]
        for color, width, zorder in (("black", 1.7, 1.8), ("white", 1.1, 1.9)):
            ax.scatter(
                *P[around].T, s=area * width**2, color=color, linewidths=0, zorder=zorder, **common
            )
    ax.scatter(*P[inside].T, s=area, c=rgba[inside], zorder=2, **rim, **common)
    shrink = np.clip(50 / max(beyond.sum(), 1), 0.4, 1)  # smaller if there are many
    for marker, rows in _edge_markers(P, order[beyond[order]], shown) if marked else []:
        ax.scatter(
            *np.clip(P[rows], shown.first, shown.last).T,
            s=shrink * max(2 * area, 14),
            c=shades.rgba()[rows],
            marker=marker,
            linewidths=0.5 * shrink,
            edgecolors="black",
            zorder=3,
        )


def _order(shades: Coloring, far: NDArray[np.bool_], sort: bool) -> NDArray[np.intp]:
    """Rows in drawing order.

    Missing values come first, the far side before the near one, and low values before high ones.
    """
    # In the order of the rows, the last class would cover all others.
    order = np.random.default_rng(0).permutation(len(far))
    keys: list[NDArray[Any]] = [~shades.missing[order], ~far[order]]
    if sort and isinstance(shades, Scale):
        keys = [shades.values[order], *keys]
    return np.asarray(order[np.lexsort(keys)])


def _edge_markers(P: Floats, rows: NDArray[Any], shown: Window) -> list[tuple[str, NDArray[Any]]]:
    """Rows beyond the window, by the triangle that points to the side where they are farthest outside."""
    right, up = (P[rows] - np.clip(P[rows], shown.first, shown.last)).T
    across = np.abs(right) > np.abs(up)
    sides = {">": across & (right > 0), "<": across & (right < 0)}
    sides |= {"^": ~across & (up > 0), "v": ~across & (up < 0)}
    return [(marker, rows[side]) for marker, side in sides.items() if side.any()]


def style(n: int, room: float) -> tuple[float, float]:
    """Area and opacity of the markers of n points in an area `room`; areas are in points squared.

    Without overlaps, the markers would cover half of the room. Their diameter is at most 6 points, and at
    least 2 points if they are few, or half a point if they are many; if that is too large, they are
    transparent.
    """
    fair = 0.5 * room / max(n, 1)
    size = float(np.clip(fair, np.clip(8000 / max(n, 1), 0.25, 4.0), 36.0))
    alpha = 0.9 * min(1.0, fair / size) ** 0.4
    return size, float(max(alpha, 0.1))
