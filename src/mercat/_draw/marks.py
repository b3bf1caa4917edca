"""The points of a figure: how large, how opaque, and in which order."""

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
    """Draw points at P, pale those on the far side, as triangles at the window's edge those beyond it.

    The latter only if they are to be `marked`.
    """
    n = len(P)
    far = np.zeros(n, dtype=bool) if far is None else far
    beyond = shown.beyond(P)
    area, opacity = style(n, shown.cover(P) * np.prod(ax.bbox.size * 72 / ax.figure.dpi))
    if isinstance(shades, Scale):  # whose colours are to be read: they do not shine through
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
    few = np.clip(50 / max(beyond.sum(), 1), 0.4, 1)  # many are smaller
    for marker, rows in _signposts(P, order[beyond[order]], shown) if marked else []:
        ax.scatter(
            *np.clip(P[rows], shown.first, shown.last).T,
            s=few * max(2 * area, 14),
            c=shades.rgba()[rows],
            marker=marker,
            linewidths=0.5 * few,
            edgecolors="black",
            zorder=3,
        )


def _order(shades: Coloring, far: NDArray[np.bool_], sort: bool) -> NDArray[np.intp]:
    """Rows in the order in which they are drawn: missing first, so that they cover nothing, the far side
    before the near one, and low values before high ones."""
    # In the order of the rows, the last class would lie upon all others.
    order = np.random.default_rng(0).permutation(len(far))
    keys: list[NDArray[Any]] = [~shades.missing[order], ~far[order]]
    if sort and isinstance(shades, Scale):
        keys = [shades.values[order], *keys]
    return np.asarray(order[np.lexsort(keys)])


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
