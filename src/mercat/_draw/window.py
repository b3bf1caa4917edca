"""The part of the world that a map shows: all of it, or the part around most of the points."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ..projections import lookup

Floats = NDArray[np.float64]
Corners = tuple[Floats, Floats]  # lower left and upper right

#: Mercator maps end at most here, where they are as high as wide: 85.05 degrees.
MERCATOR_TOP = np.pi
#: ... and maps of the world extend at least to here (45 degrees).
MERCATOR_MIN_TOP = float(np.arcsinh(1.0))

EXTENTS = ("data", "world")
# Margin around a map of the world that is 2 pi wide, in units of the radius; proportional to the width on
# others.
_WORLD_MARGIN = 0.06
_MARGIN = 0.03  # margin on each side of the points, as a fraction of their extent
# Longest side of a window of points that coincide, up to this distance.
_SIDE_OF_ONE_POINT, _COINCIDE = np.deg2rad(2.0), 1e-7
# Range of height over width of a window of the data.
_MIN_HEIGHT_RATIO, _MAX_HEIGHT_RATIO = 0.25, 2.0
# A window that would show more than this fraction of the world shows all of it, if the central box fills
# enough of it.
_MAX_WORLD_FRACTION = 0.6
# The central box lies between these quantiles along each axis if there are at least this many points, ...
_CENTRAL_QUANTILES, _MIN_POINTS = (0.01, 0.99), 100
# ... and fills at least this fraction of the window's width and of its height.
FILLED = 0.8
# Groups of points outside are shown, too, if the central box still fills this fraction.
_FILLED_WITH_GROUPS = 0.4
# All points are shown if that makes the box of points at most this many times as wide and as high.
_MAX_GROWTH = FILLED / 0.7
# A point is in a group if at least this many points, itself included, lie within this fraction of the
# diagonal of the central box, ...
_GROUP_SIZE, _GROUP_RADIUS = 5, 0.04
# ... and within this multiple of that distance at most this multiple of their number.
_ISOLATION_RADIUS, _MAX_NEARBY = 3, 1.25
# Spacings of the graticule, in degrees.
_SMALL_STEPS = tuple(float(f"{k}e{e}") for e in range(-6, 0) for k in (1, 2, 5))
_STEPS = (*_SMALL_STEPS, 1, 2, 5, 10, 15, 30)
_CELLS = 24  # number of cells along each side, for the area that points cover


@dataclass(frozen=True)
class Window:
    """A rectangle of the plane; if `whole`, it shows the whole world.

    Points between `inner_low` and `inner_high`, which exclude its margin, are drawn at their positions,
    others at the edge.
    """

    low: Floats
    high: Floats
    whole: bool
    inner_low: Floats
    inner_high: Floats

    @property
    def size(self) -> Floats:
        return np.asarray(self.high - self.low)

    @property
    def aspect(self) -> float:
        """Width over height."""
        width, height = self.size
        return float(width / height)

    @property
    def step(self) -> float:
        """Spacing of the graticule in degrees, with at most eight lines per axis."""
        if self.whole:
            return 30
        fits = [step for step in _STEPS if np.rad2deg(self.size.max()) <= 8 * step]
        return fits[0] if fits else 30

    def filled(self, P: Floats) -> Floats:
        """Fractions of its width and height that the central box fills."""
        low, high = central_box(P)
        return np.asarray((high - low) / self.size)

    def beyond(self, P: Floats) -> NDArray[np.bool_]:
        """Mask of positions outside."""
        slack = 1e-9  # tolerance for rounding at the rim of the world
        return np.asarray(
            ((self.inner_low - slack > P) | (self.inner_high + slack < P)).any(axis=1)
        )

    def near(self, P: Floats) -> NDArray[np.bool_]:
        """Mask of positions in the window, or outside by less than half its size."""
        reach = self.size / 2
        return np.asarray(((self.low - reach < P) & (self.high + reach > P)).all(axis=1))

    def cover(self, P: Floats) -> float:
        """Fraction of the window that the points cover, from 0 to 1.

        It is the area over which evenly distributed points would share small cells as often as these do. A
        few outliers hardly change it.
        """
        n = len(P)
        cells = (np.clip((P - self.low) / self.size, 0, 1 - 1e-9) * _CELLS).astype(int)
        counts = np.bincount(cells @ [_CELLS, 1])
        same_cell = np.sum(counts * (counts - 1)) / max(n * (n - 1), 1)
        return float(1 / max(_CELLS**2 * same_cell, 1))


def check_extent(extent: Any) -> None:
    """Raise ValueError unless this is a valid extent."""
    fraction = isinstance(extent, Real) and not isinstance(extent, bool)
    if not (0 < float(extent) <= 1 if fraction else extent in EXTENTS):
        raise ValueError(
            f"extent must be {' or '.join(map(repr, EXTENTS))}, or a fraction above 0 and at most 1, "
            f"got {extent!r}."
        )


def choose_window(projection: str, P: Floats, extent: str | float = "data") -> Window:
    """The window of a map with points at P.

    It contains all points, with a margin, if the central box then fills at least `FILLED` of its width and
    height; otherwise, it contains fewer of the far points. It is extended for groups of far points, for all
    points if it grows little, and if it would be too narrow. If it would show most of the world, it shows all
    of it.
    """
    world = _world_window(projection, P)
    if extent == "world":
        return world
    inside = np.clip(P, *map_corners(projection))
    if extent == "data":
        low, high = with_groups(
            inside, *(largest_box(inside, _max_ratio(s)) for s in (FILLED, _FILLED_WITH_GROUPS))
        )
        lowest, highest = inside.min(axis=0), inside.max(axis=0)
        if (highest - lowest <= _MAX_GROWTH * (high - low)).all():
            low, high = lowest, highest
    else:
        low, high = _fraction_box(inside, float(extent))
    width, height = high - low
    if max(width, height) < _COINCIDE:
        width = height = _SIDE_OF_ONE_POINT
    width, height = (
        max(width, height / _MAX_HEIGHT_RATIO),
        max(height, width * _MIN_HEIGHT_RATIO),
    )
    half_size = np.array([width, height]) / 2
    margin, center = 2 * _MARGIN * half_size, (low + high) / 2
    inner_low, inner_high = np.clip(
        [center - half_size, center + half_size], *map_corners(projection)
    )
    window = Window(
        center - half_size - margin, center + half_size + margin, False, inner_low, inner_high
    )
    nearly_world = window.size.prod() > _MAX_WORLD_FRACTION * world.size.prod()
    world_filled = len(P) < _MIN_POINTS or (world.filled(inside) >= FILLED).all()
    if nearly_world and world_filled:
        return world
    if window.size[0] >= world.size[0]:  # all longitudes, but not the far north and south
        sides = zip(
            (world.low, world.high, world.inner_low, world.inner_high),
            (window.low, window.high, inner_low, inner_high),
            strict=True,
        )
        low, high, inner_low, inner_high = (
            np.array([of_world[0], of_data[1]]) for of_world, of_data in sides
        )
        return Window(low, high, True, inner_low, inner_high)
    return window


def _max_ratio(filled: float) -> float:
    """Size of the box of points relative to the central box, if that fills this fraction of the window."""
    return 1 / filled / (1 + 2 * _MARGIN)


def with_groups(P: Floats, box: Corners, largest: Corners) -> Corners:
    """A box of points, enlarged up to the largest so that it contains groups of points outside."""
    (low, high), (lowest, highest) = box, largest
    far = ((low > P) | (high < P)).any(axis=1)
    candidates = far & ((lowest <= P) & (highest >= P)).all(axis=1)
    if candidates.sum() < _GROUP_SIZE:
        return box
    radius = _GROUP_RADIUS * float(np.hypot(*np.subtract(*central_box(P))))
    isolation = _ISOLATION_RADIUS * radius
    # Points deeper inside the box are farther from all candidates.
    nearby = P[((low + isolation > P) | (high - isolation < P)).any(axis=1)]
    tree = cKDTree(nearby)
    n_near, n_around = (
        tree.query_ball_point(P[candidates], distance, return_length=True)
        for distance in (radius, isolation)
    )
    group = P[candidates][(n_near >= _GROUP_SIZE) & (n_around <= _MAX_NEARBY * n_near)]
    return (
        np.minimum(low, group.min(axis=0, initial=np.inf)),
        np.maximum(high, group.max(axis=0, initial=-np.inf)),
    )


def largest_box(P: Floats, max_ratio: float) -> Corners:
    """Corners of the box of all points, or of a box at most `max_ratio` times as large as the central one.

    Space that one side does not need is given to the opposite side.
    """
    low, high = central_box(P)
    below, above = low - P.min(axis=0), P.max(axis=0) - high
    spare = (max_ratio - 1) * (high - low)
    return (
        low - np.minimum(below, np.maximum(spare / 2, spare - above)),
        high + np.minimum(above, np.maximum(spare / 2, spare - below)),
    )


def central_box(P: Floats) -> Corners:
    """Corners of the box of the central 98 % of the points along each axis; of all, if they are few."""
    if len(P) < _MIN_POINTS:
        return P.min(axis=0), P.max(axis=0)
    low, high = np.quantile(P, _CENTRAL_QUANTILES, axis=0)
    return low, high


def _fraction_box(P: Floats, fraction: float) -> Corners:
    """Corners of the box of the central fraction of the points along each axis."""
    n_left_out = int(len(P) * (1 - fraction) / 2 + 1e-9)
    ordered = np.partition(P, [n_left_out, len(P) - n_left_out - 1], axis=0)
    return ordered[n_left_out], ordered[len(P) - n_left_out - 1]


def plane_window(P: Floats) -> Window:
    """The window of an embedding in the plane."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = 0.03 * (high - low).max() or 1.0
    return Window(low - margin, high + margin, False, low, high)


def _world_window(projection: str, P: Floats) -> Window:
    low, high = map_corners(projection)
    if lookup(projection).unbounded:
        low[1] = -np.clip(-P[:, 1].min(), MERCATOR_MIN_TOP, MERCATOR_TOP)
        high[1] = np.clip(P[:, 1].max(), MERCATOR_MIN_TOP, MERCATOR_TOP)
    edge = _WORLD_MARGIN * high[0] / np.pi
    return Window(low - edge, high + edge, True, low, high)


def map_corners(projection: str) -> Floats:
    """Lower left and upper right corner of the whole map."""
    edge = lookup(projection).rim()
    if edge is None:
        return np.array([[-np.pi, -MERCATOR_TOP], [np.pi, MERCATOR_TOP]])
    return np.array([edge.min(axis=0), edge.max(axis=0)])
