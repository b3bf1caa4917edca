"""Names on a map: near the middle of their points, without overlaps, and not over dense regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math.sphere import normalize

Floats = NDArray[np.float64]

_CELL_SIZE = 3.0  # side of the cells in which points are counted, in typographic points
# Distances of candidate positions from the anchor, in heights of the name.
_DISTANCES = np.array([0.0, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0])
_DIRECTIONS = 24  # number of candidate positions at each distance
_COST_PER_HEIGHT = 0.012  # cost of the distance to the anchor, per height of the name
_COST_OF_HIDING = 2.0  # cost of hiding all points; proportional to the hidden fraction
_COST_PER_CROSSING = 0.05  # cost of each leader line through a name
_MAX_SWEEPS = 3  # maximum number of passes over all names
# Horizontal and vertical space between two names, in typographic points.
_GAP = np.array([2.0, 1.0])


def median_direction(Y: Floats) -> Floats:
    """Geometric median of the rows of Y, as a direction.

    Weiszfeld's iteration on chords; unlike the mean, it is robust to a few far points.
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


class PointCounts:
    """Points of the figure counted in cells, to find how many a box would hide."""

    def __init__(self, P: Floats, box: Floats) -> None:
        self.low, shape = box[0], np.maximum(np.ceil((box[1] - box[0]) / _CELL_SIZE), 1).astype(int)
        edges = [self.low[k] + _CELL_SIZE * np.arange(shape[k] + 1) for k in (0, 1)]
        counts = np.histogram2d(P[:, 0], P[:, 1], bins=edges)[0] / max(len(P), 1)
        self.sums = np.pad(counts.cumsum(axis=0).cumsum(axis=1), [(1, 0), (1, 0)])

    def hidden(self, centers: Floats, size: Floats) -> Floats:
        """Fraction of the points under boxes of this size."""
        last_cell = np.array(self.sums.shape) - 1
        low, high = (
            np.clip(
                np.rint((centers + side * size / 2 - self.low) / _CELL_SIZE), 0, last_cell
            ).astype(int)
            for side in (-1, 1)
        )
        S, (x0, y0), (x1, y1) = self.sums, low.T, high.T
        return np.asarray(S[x1, y1] - S[x0, y1] - S[x1, y0] + S[x0, y0])


def place(anchors: Floats, sizes: Floats, box: Floats, points: Floats) -> Floats:
    """Place names so that none overlaps another and few points are hidden.

    Parameters
    ----------
    anchors, sizes : ndarray of shape (k, 2)
        Ideal positions of the names, the most important one first, and their widths and heights.
    box : ndarray of shape (2, 2)
        Lower left and upper right corner of the box to stay within.
    points : ndarray of shape (n, 2)
        Points that should stay visible.

    Returns
    -------
    centers : ndarray of shape (k, 2)
        Centres of the names; NaN for those that do not fit.
    """
    counts, k = PointCounts(points, box), len(anchors)
    candidates = [_candidates(anchors[i], sizes[i], box) for i in range(k)]
    costs = [
        _COST_OF_HIDING * counts.hidden(candidates[i], sizes[i])
        + _COST_PER_HEIGHT * np.linalg.norm(candidates[i] - anchors[i], axis=1) / sizes[i, 1]
        for i in range(k)
    ]
    centers = np.full((k, 2), np.nan)
    for _ in range(_MAX_SWEEPS):  # the first finds a position for each, the others a better one
        before = centers.copy()
        for i in range(k):
            others = np.flatnonzero(~np.isnan(centers[:, 0]) & (np.arange(k) != i))
            gap = np.abs(candidates[i][:, None] - centers[others])
            free = ~(gap < (sizes[i] + sizes[others]) / 2 - 1e-9).all(axis=2).any(axis=1)
            if free.any():
                crossed = _crossings(anchors[i], candidates[i], centers[others], sizes[others])
                crossed = crossed + _crossings_of(
                    anchors[others], centers[others], candidates[i], sizes[i]
                )
                cost = np.where(free, costs[i] + _COST_PER_CROSSING * crossed, np.inf)
                centers[i] = candidates[i][np.argmin(cost)]
        if np.array_equal(before, centers, equal_nan=True):
            break
    return centers


def _candidates(anchor: Floats, size: Floats, box: Floats) -> Floats:
    """Candidate positions of a name: on its anchor and around it, nearest first."""
    angle = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    # Beside its anchor, a name must be moved by half of its width.
    ring = ring * np.array([size[1] + size[0] / 2, size[1]])
    offsets = (_DISTANCES[:, None, None] * ring).reshape(-1, 2)
    low = box[0] + size / 2
    high = np.maximum(box[1] - size / 2, low)
    return np.unique(np.clip(anchor + offsets, low, high), axis=0)


def _crossings(anchor: Floats, places: Floats, centers: Floats, sizes: Floats) -> Any:
    """For each position, the number of boxes crossed by the line from there to the anchor."""
    points = places[:, None] + np.linspace(0, 1, 12)[:, None] * (anchor - places)[:, None]
    return np.sum(_any_within(points[:, None], centers[:, None], sizes[:, None]), axis=1)


def _crossings_of(anchors: Floats, centers: Floats, places: Floats, size: Floats) -> Any:
    """For each position, the number of lines from centres to anchors that cross a box there."""
    points = centers[:, None] + np.linspace(0, 1, 12)[:, None] * (anchors - centers)[:, None]
    return np.sum(_any_within(points, places[:, None, None], size), axis=1)


def _any_within(points: Floats, centers: Floats, sizes: Floats) -> NDArray[np.bool_]:
    """Whether any of the positions along each line (the second to last axis) lies in a box."""
    return np.asarray(np.any(np.all(np.abs(points - centers) < sizes / 2, axis=-1), axis=-1))


def write(
    ax: Any,
    anchors: Floats,
    names: Sequence[str],
    points: Floats,
    *,
    faint: NDArray[np.bool_] | None = None,
    important: NDArray[Any] | None = None,
    halo: float = 2.5,
    **style: Any,
) -> tuple[list[Any], int]:
    """Write each name near its anchor (in data coordinates), with a line to the anchor if it was moved.

    Returns the artists, and the number of names that do not fit, the least `important` ones.
    """
    from matplotlib.patheffects import withStroke

    faint = np.zeros(len(names), dtype=bool) if faint is None else faint
    artists = [
        ax.annotate(
            name,
            anchor,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            color="#8A8F94" if pale else "#1A1A1A",
            parse_math=False,
            zorder=5,
            path_effects=[withStroke(linewidth=halo, foreground="white")],
            **{"fontsize": "small", "fontweight": "bold"} | style,
        )
        for name, anchor, pale in zip(names, anchors, faint, strict=True)
    ]
    points_per_pixel = 72 / ax.figure.dpi
    sizes = np.array([text.get_window_extent().size for text in artists]) * points_per_pixel + _GAP
    anchors_in_points, points_in_points = (
        ax.transData.transform(P) * points_per_pixel for P in (anchors, points)
    )
    order = np.arange(len(names)) if important is None else np.argsort(-important, kind="stable")
    centers = np.empty_like(anchors_in_points)
    box = ax.bbox.get_points() * points_per_pixel
    centers[order] = place(anchors_in_points[order], sizes[order], box, points_in_points)
    omitted = np.isnan(centers[:, 0])
    for text, offset, size in zip(list(artists), centers - anchors_in_points, sizes, strict=True):
        if np.isnan(offset[0]):
            text.remove()
            artists.remove(text)
            continue
        text.set_position(offset)
        if (np.abs(offset) > size / 2).any():
            artists.append(_draw_leader(ax, text, offset))
    return artists, int(omitted.sum())


def _draw_leader(ax: Any, text: Any, offset: Floats) -> Any:
    """Draw a thin line from the anchor to the name."""
    line = ax.annotate(
        "",
        text.xy,
        xytext=offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": "#333333", "linewidth": 0.7, "shrinkB": 0},
        zorder=4.9,
    )
    line.arrow_patch.set_patchB(None)
    return line
