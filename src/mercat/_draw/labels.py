"""Names on a map: near points of their group, without overlaps, not over small groups or dense regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Side of the cells in which points are counted, in typographic points, and the maximum number of counts.
_CELL_SIZE, _MAX_COUNTS = 3.0, 2e7
_REGION = np.array([12.0, 12.0])  # box in which density is measured, in typographic points
_MAX_HIDDEN = 1 / 3  # largest fraction of any group that a name may hide
# Distances of candidate positions from the anchor, in heights of the name.
_DISTANCES = np.array([0.0, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0])
_DIRECTIONS = 24  # number of candidate positions at each distance
_COST_PER_HEIGHT = 0.012  # cost of the distance to the anchor, per height of the name
_COST_OF_HIDING = 1.5  # cost of hiding all points; proportional to the hidden fraction
_COST_OF_STRANGERS = (
    0.1  # cost of hiding only points of other groups; proportional to their fraction
)
_COST_PER_CROSSING = 0.05  # cost of each leader line through a name
_MAX_SWEEPS = 3  # maximum number of passes over all names
_MIN_LEADER = 5.0  # length in typographic points from which a line leads to the name
# Horizontal and vertical space between two names, in typographic points.
_GAP = np.array([2.0, 1.0])


class PointCounts:
    """Points of the figure counted in cells, by group, to find how many a box would hide.

    Points whose owner is -1 are in no group.
    """

    def __init__(self, P: Floats, owners: Integers, n_groups: int, box: Floats) -> None:
        size = box[1] - box[0]
        self.low = box[0]
        self.cell = max(_CELL_SIZE, float(np.sqrt(size.prod() * n_groups / _MAX_COUNTS)))
        self.shape = np.maximum(np.ceil(size / self.cell), 1).astype(int)
        cells = np.floor((P - self.low) / self.cell).astype(int)
        cells = np.clip(cells, 0, self.shape - 1) @ [self.shape[1], 1]
        self.sizes = np.bincount(owners[owners >= 0], minlength=n_groups)
        self.groups = np.array([self._sums(cells[owners == group]) for group in range(n_groups)])
        self.all = self._sums(cells)

    def _sums(self, cells: Integers) -> NDArray[np.int32]:
        """Number of points below and left of each corner of a cell."""
        counts = np.bincount(cells, minlength=self.shape.prod()).reshape(self.shape)
        return np.pad(counts.cumsum(axis=0).cumsum(axis=1), [(1, 0), (1, 0)]).astype(np.int32)

    def within(self, sums: NDArray[np.int32], centers: Floats, size: Floats) -> NDArray[Any]:
        """Number of points in all cells that boxes of this size touch; `sums` may be those of many groups."""
        low = np.floor((centers - size / 2 - self.low) / self.cell + 1e-9).astype(int)
        high = np.ceil((centers + size / 2 - self.low) / self.cell - 1e-9).astype(int)
        (x0, y0), (x1, y1) = (np.clip(corner, 0, self.shape).T for corner in (low, high))
        return np.asarray(
            sums[..., x1, y1] - sums[..., x0, y1] - sums[..., x1, y0] + sums[..., x0, y0]
        )

    def anchor(self, group: int, own: Floats) -> int:
        """Row of the point of a group nearest to its median, of those in its densest regions.

        Of these, regions with few points of other groups are preferred.
        """
        n_own = self.within(self.groups[group], own, _REGION)
        share = n_own / np.maximum(self.within(self.all, own, _REGION), 1)
        score = np.where(n_own >= n_own.max() / 2, n_own * share**2, 0)
        distance = np.linalg.norm(own - np.median(own, axis=0), axis=1)
        return int(np.argmin(np.where(score >= score.max() / 2, distance, np.inf)))

    def costs(self, group: int, centers: Floats, size: Floats) -> Floats:
        """Cost of the points hidden by the name of a group; infinite if it would hide too much of any."""
        hidden = self.within(self.groups, centers, size)
        n_hidden = self.within(self.all, centers, size)
        strangers = 1 - hidden[group] / np.maximum(n_hidden, 1)
        cost = _COST_OF_HIDING * n_hidden / max(self.all[-1, -1], 1)
        cost = cost + _COST_OF_STRANGERS * np.where(n_hidden, strangers, 0)
        too_much = (hidden > _MAX_HIDDEN * self.sizes[:, None]).any(axis=0)
        return np.where(too_much, np.inf, cost)


def place(anchors: Floats, sizes: Floats, box: Floats, counts: PointCounts) -> Floats:
    """Place names so that none overlaps another or hides a small group, and few points are hidden.

    Parameters
    ----------
    anchors, sizes : ndarray of shape (k, 2)
        Ideal positions of the names, the most important one first, and their widths and heights.
    box : ndarray of shape (2, 2)
        Lower left and upper right corner of the box to stay within.
    counts : PointCounts
        Points that should stay visible, in groups of the same order.

    Returns
    -------
    centers : ndarray of shape (k, 2)
        Centres of the names; NaN for those that do not fit.
    """
    k = len(anchors)
    candidates = [_candidates(anchors[i], sizes[i], box) for i in range(k)]
    costs = [
        counts.costs(i, candidates[i], sizes[i])
        + _COST_PER_HEIGHT * np.linalg.norm(candidates[i] - anchors[i], axis=1) / sizes[i, 1]
        for i in range(k)
    ]
    centers = np.full((k, 2), np.nan)
    for _ in range(_MAX_SWEEPS):  # the first finds a position for each, the others a better one
        before = centers.copy()
        for i in range(k):
            others = np.flatnonzero(~np.isnan(centers[:, 0]) & (np.arange(k) != i))
            gap = np.abs(candidates[i][:, None] - centers[others])
            free = np.isfinite(costs[i])
            free &= ~(gap < (sizes[i] + sizes[others]) / 2 - 1e-9).all(axis=2).any(axis=1)
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
    names: Sequence[str],
    members: Sequence[Integers],
    points: Floats,
    *,
    shown: NDArray[np.bool_] | None = None,
    far: NDArray[np.bool_] | None = None,
    halo: float = 2.5,
    **style: Any,
) -> tuple[list[Any], int]:
    """Write the names of groups of points (rows `members`), with a line to the group if a name was moved.

    Points that are not `shown` may be hidden. Names of groups on the far side are pale. Returns the artists,
    and the number of names that do not fit, those of the smallest groups.
    """
    from matplotlib.patheffects import withStroke

    far = np.zeros(len(points), dtype=bool) if far is None else far
    points_per_pixel = 72 / ax.figure.dpi
    box = ax.bbox.get_points() * points_per_pixel
    P = ax.transData.transform(points) * points_per_pixel
    # The largest groups first.
    by_size = sorted(zip(names, members, strict=True), key=lambda group: -len(group[1]))
    owners = np.full(len(P), -1)
    for k, (_, rows) in enumerate(by_size):
        owners[rows] = k
    seen = np.ones(len(P), dtype=bool) if shown is None else shown
    counts = PointCounts(P[seen], owners[seen], len(members), box)
    artists: list[Any] = []
    anchors: list[int] = []
    for k, (name, rows) in enumerate(by_size):
        pale = far[rows].mean() > 0.5
        near = rows[far[rows] == pale]
        anchors.append(near[counts.anchor(k, P[near])])
        text = ax.annotate(
            name,
            points[anchors[-1]],
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
        artists.append(text)
    sizes = np.array([text.get_window_extent().size for text in artists]) * points_per_pixel + _GAP
    centers = place(P[anchors], sizes, box, counts)
    for text, offset, size in zip(list(artists), centers - P[anchors], sizes, strict=True):
        if np.isnan(offset[0]):
            text.remove()
            artists.remove(text)
            continue
        text.set_position(offset)
        if (np.abs(offset) > size / 2 + _MIN_LEADER).any():
            artists.append(_draw_leader(ax, text, offset))
    return artists, int(np.isnan(centers[:, 0]).sum())


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
