"""Names written on a map: at the middle of their points, side by side where they would overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math.sphere import normalize

Floats = NDArray[np.float64]


def median_direction(Y: Floats) -> Floats:
    """The direction of the point that has the least sum of distances to the rows of Y.

    Weiszfeld's iteration on chords: unlike the mean it is not dragged by a few far points.
    """
    middle = normalize(Y.mean(axis=0, keepdims=True))
    for _ in range(30):
        distance = np.sqrt(np.sum((Y - middle) ** 2, axis=1, keepdims=True))
        weight = 1 / np.maximum(distance, 1e-6)
        moved = normalize(np.sum(weight * Y, axis=0, keepdims=True))
        if np.abs(moved - middle).max() < 1e-6:
            break
        middle = moved
    return np.asarray(middle[0])


def spread(centers: Floats, sizes: Floats, room: Floats) -> Floats:
    """Move boxes apart until none overlaps another, as little as it takes.

    Parameters
    ----------
    centers, sizes : ndarray of shape (k, 2)
        Middles of the boxes, and their widths and heights.
    room : ndarray of shape (2, 2)
        Lower left and upper right corner of the box to stay within.

    Returns
    -------
    centers : ndarray of shape (k, 2)
        The new middles. They still overlap where the room does not hold them all.
    """
    k = len(centers)
    centers = centers.copy()
    need = (sizes[:, None] + sizes[None]) / 2
    low = room[0] + sizes / 2
    high = np.maximum(room[1] - sizes / 2, low)
    # Of two boxes at the same place, the first goes down and to the left.
    order = np.sign(np.arange(k)[:, None] - np.arange(k)[None])[..., None]
    for _ in range(300):
        gap = centers[:, None] - centers[None]
        overlap = need - np.abs(gap)
        clash = (overlap > 1e-3).all(axis=2) & ~np.eye(k, dtype=bool)
        if not clash.any():
            break
        side = np.where(np.abs(gap) > 1e-9, np.sign(gap), order)
        push = np.where(clash[..., None], side * overlap, 0.0)
        # Along the axis that asks for the shorter way.
        vertical = overlap[..., 1] <= overlap[..., 0]
        push[..., 0] = np.where(vertical, 0, push[..., 0])
        push[..., 1] = np.where(vertical, push[..., 1], 0)
        centers = np.clip(centers + 0.51 * push.sum(axis=1), low, high)
    return centers


def write(
    ax: Any, anchors: Floats, names: list[str], faint: NDArray[np.bool_] | None = None
) -> None:
    """Write each name at its anchor (data coordinates), nudged apart, in points."""
    from matplotlib.patheffects import withStroke

    faint = np.zeros(len(names), dtype=bool) if faint is None else faint
    texts = [
        ax.annotate(
            name,
            anchor,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize="small",
            fontweight="bold",
            color="#8A8F94" if pale else "#1A1A1A",
            parse_math=False,
            zorder=5,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
        for name, anchor, pale in zip(names, anchors, faint, strict=True)
    ]
    points = 72 / ax.figure.dpi
    sizes = np.array([text.get_window_extent().size for text in texts]) * points + [2, 1]
    at = ax.transData.transform(anchors) * points
    moved = spread(at, sizes, ax.bbox.get_points() * points)
    for text, offset in zip(texts, moved - at, strict=True):
        text.set_position(offset)
        if np.hypot(*offset) > 9:
            _lead(ax, text, offset)


def _lead(ax: Any, text: Any, offset: Floats) -> None:
    """A thin line from where the name belongs to where it had to go."""
    line = ax.annotate(
        "",
        text.xy,
        xytext=offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": "#555555", "linewidth": 0.6, "shrinkB": 0},
        zorder=4.9,
    )
    line.arrow_patch.set_patchB(None)
