"""The points of a figure: how large, how opaque, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .colors import Coloring
from .window import Window

Floats = NDArray[np.float64]

# More points than this are drawn as an image within vector formats.
_RASTER_FROM = 20_000


def draw(
    ax: Any,
    P: Floats,
    shades: Coloring,
    *,
    shown: Window,
    marked: bool = True,
    far: NDArray[np.bool_] | None = None,
    size: float | None = None,
    alpha: float | None = None,
) -> None:
    """Draw points at P, pale those on the far side, as triangles at the window's edge those beyond it.

    The latter only if they are to be `marked`.
    """
    n = len(P)
    far = np.zeros(n, dtype=bool) if far is None else far
    beyond = shown.beyond(P)
    auto_size, auto_alpha = style(n, shown.cover(P) * np.prod(ax.bbox.size * 72 / ax.figure.dpi))
    area = auto_size if size is None else size
    rgba = shades.rgba().copy()
    rgba[:, 3] *= auto_alpha if alpha is None else alpha
    rgba[far, 3] *= 0.25
    # Drawn in the order of the rows, the last class would lie upon all others.
    order = np.random.default_rng(0).permutation(n)
    # Missing first, so that they cover nothing, and the far side before the near one.
    order = order[np.lexsort([~shades.missing[order], ~far[order]])]
    inside = order[~beyond[order]]
    # A thin rim tells touching points apart where they are large enough to have one.
    rim = {"linewidths": 0.3, "edgecolors": "white"} if area > 12 else {"linewidths": 0}
    ax.scatter(*P[inside].T, s=area, c=rgba[inside], rasterized=n > _RASTER_FROM, zorder=2, **rim)
    for marker, rows in _signposts(P, order[beyond[order]], shown) if marked else []:
        ax.scatter(
            *np.clip(P[rows], shown.first, shown.last).T,
            s=max(2 * area, 14),
            c=shades.rgba()[rows],
            marker=marker,
            linewidths=0.5,
            edgecolors="black",
            zorder=3,
        )


def _signposts(P: Floats, rows: NDArray[Any], shown: Window) -> list[tuple[str, NDArray[Any]]]:
    """Rows beyond the window by the triangle that points to them: to the side where they are farther."""
    right, up = (P[rows] - np.clip(P[rows], shown.first, shown.last)).T
    across = np.abs(right) > np.abs(up)
    sides = {">": across & (right > 0), "<": across & (right < 0)}
    sides |= {"^": ~across & (up > 0), "v": ~across & (up < 0)}
    return [(marker, rows[side]) for marker, side in sides.items() if side.any()]


def style(n: int, room: float) -> tuple[float, float]:
    """Area in points squared and opacity of one of n points that share some room, in the same.

    The points would cover half of the room if none overlapped. They are at most 6 points across,
    and at least two if there are few, or about half a point; where that is too large, they grow
    transparent.
    """
    fair = 0.5 * room / max(n, 1)
    size = float(np.clip(fair, np.clip(8000 / max(n, 1), 0.25, 4.0), 36.0))
    alpha = 0.9 * min(1.0, fair / size) ** 0.4
    return size, float(max(alpha, 0.1))
