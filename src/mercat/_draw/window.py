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
MERCATOR_LEAST = float(np.arcsinh(1.0))

EXTENTS = ("data", "world")
_EDGE = 0.06  # around the world, 2 pi wide: points on its edge are drawn whole
_MARGIN = 0.03  # around the points, of each side
_LEAST = np.deg2rad(2.0)  # shortest side, for a single point
_SQUAT, _TALL = 0.25, 2.0  # range of height over width of a window of the data
# A window that would show this fraction of the world shows all of it, if the central box still fills it.
_MOST = 0.6
# The central box lies between these quantiles along each axis, if there are at least this many points, ...
_CENTRAL, _LEAST_CENTRAL = (0.01, 0.99), 100
# ... and fills at least this part of the window's width and of its height.
FILLED = 0.8
# Groups of points outside are shown, too, if the central box still fills this part. A group is five points or
# more within this fraction of its diagonal, and hardly any more within three times that distance.
_LEAST_FILLED = 0.4
_GROUP, _TOGETHER, _AROUND, _MOST_AROUND = 5, 0.04, 3, 1.25
_STEPS = (0.25, 0.5, 1, 2, 5, 10, 15, 30)
_CELLS = 24  # along each side, for the area that points cover


@dataclass(frozen=True)
class Window:
    """A rectangle of the plane; if `whole`, it shows the whole world.

    Points between `first` and `last`, inside its margin, are drawn in place, others at the edge.
    """

    low: Floats
    high: Floats
    whole: bool
    first: Floats
    last: Floats

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
        return np.asarray(((self.first - slack > P) | (self.last + slack < P)).any(axis=1))

    def near(self, P: Floats) -> NDArray[np.bool_]:
        """Mask of positions in the window, or outside by less than half its size."""
        reach = self.size / 2
        return np.asarray(((self.low - reach < P) & (self.high + reach > P)).all(axis=1))

    def cover(self, P: Floats) -> float:
        """Fraction of the window that the points cover, from 0 to 1.

        It is the area over which evenly distributed points would share small cells as often as these do. A
        few stray points do not count.
        """
        n = len(P)
        cells = (np.clip((P - self.low) / self.size, 0, 1 - 1e-9) * _CELLS).astype(int)
        counts = np.bincount(cells @ [_CELLS, 1])
        together = np.sum(counts * (counts - 1)) / max(n * (n - 1), 1)
        return float(1 / max(_CELLS**2 * together, 1))


def check_extent(extent: Any) -> None:
    """Raise unless this is a valid extent."""
    fraction = isinstance(extent, Real) and not isinstance(extent, bool)
    if not (0 < float(extent) <= 1 if fraction else extent in EXTENTS):
        raise ValueError(
            f"extent must be {' or '.join(map(repr, EXTENTS))}, or a fraction above 0 and at most 1, "
            f"got {extent!r}."
        )


def window(projection: str, P: Floats, extent: str | float = "data") -> Window:
    """The window of a map with points at P.

    It contains all points, with a margin, if the central box then fills at least `FILLED` of its width and
    height; otherwise, it contains fewer of the far points. It is extended for groups of far points, and if it
    would be too narrow. If it would show most of the world, it shows all of it.
    """
    world = _world(projection, P)
    if extent == "world":
        return world
    inside = np.clip(P, *ends(projection))
    if extent == "data":
        low, high = with_groups(inside, *(reach(inside, _most(s)) for s in (FILLED, _LEAST_FILLED)))
    else:
        low, high = _middle(inside, float(extent))
    width, height = np.maximum(high - low, _LEAST)
    room = np.array([max(width, height / _TALL), max(height, width * _SQUAT)]) / 2
    margin, center = 2 * _MARGIN * room, (low + high) / 2
    first, last = np.clip([center - room, center + room], *ends(projection))
    shown = Window(center - room - margin, center + room + margin, False, first, last)
    large = shown.size.prod() > _MOST * world.size.prod()
    full = len(P) < _LEAST_CENTRAL or (world.filled(inside) >= FILLED).all()
    if large and full:
        return world
    if shown.size[0] >= world.size[0]:  # all longitudes, but not the far north and south
        sides = zip(
            (world.low, world.high, world.first, world.last),
            (shown.low, shown.high, first, last),
            strict=True,
        )
        low, high, first, last = (np.array([of_world[0], own[1]]) for of_world, own in sides)
        return Window(low, high, True, first, last)
    return shown


def _most(filled: float) -> float:
    """Size of a box relative to the central one, if that fills this fraction of the window."""
    return 1 / filled / (1 + 2 * _MARGIN)


def with_groups(P: Floats, box: Corners, largest: Corners) -> Corners:
    """A box of points, enlarged up to the largest so that it contains groups of points outside."""
    (low, high), (lowest, highest) = box, largest
    far = ((low > P) | (high < P)).any(axis=1)
    candidates = far & ((lowest <= P) & (highest >= P)).all(axis=1)
    if candidates.sum() < _GROUP:
        return box
    radius = _TOGETHER * float(np.hypot(*np.subtract(*central_box(P))))
    around = _AROUND * radius
    close = P[((low + around > P) | (high - around < P)).any(axis=1)]  # all others are farther
    tree = cKDTree(close)
    near, others = (
        tree.query_ball_point(P[candidates], distance, return_length=True)
        for distance in (radius, around)
    )
    group = P[candidates][(near >= _GROUP) & (others <= _MOST_AROUND * near)]
    return (
        np.minimum(low, group.min(axis=0, initial=np.inf)),
        np.maximum(high, group.max(axis=0, initial=-np.inf)),
    )


def reach(P: Floats, most: float) -> Corners:
    """Corners of the box of all points, or of a box at most `most` times as large as the central one.

    Space that one side does not need is given to the opposite side.
    """
    low, high = central_box(P)
    below, above = low - P.min(axis=0), P.max(axis=0) - high
    spare = (most - 1) * (high - low)
    return (
        low - np.minimum(below, np.maximum(spare / 2, spare - above)),
        high + np.minimum(above, np.maximum(spare / 2, spare - below)),
    )


def central_box(P: Floats) -> Corners:
    """Corners of the box of the central 98 % of the points along each axis; of all, if they are few."""
    if len(P) < _LEAST_CENTRAL:
        return P.min(axis=0), P.max(axis=0)
    low, high = np.quantile(P, _CENTRAL, axis=0)
    return low, high


def _middle(P: Floats, fraction: float) -> Corners:
    """Corners of the box of the central fraction of the points along each axis."""
    few = int(len(P) * (1 - fraction) / 2 + 1e-9)
    ordered = np.partition(P, [few, len(P) - few - 1], axis=0)
    return ordered[few], ordered[len(P) - few - 1]


def plane(P: Floats) -> Window:
    """The window of an embedding in the plane."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = 0.03 * (high - low).max() or 1.0
    return Window(low - margin, high + margin, False, low, high)


def _world(projection: str, P: Floats) -> Window:
    low, high = ends(projection)
    if lookup(projection).unbounded:
        low[1] = -np.clip(-P[:, 1].min(), MERCATOR_LEAST, MERCATOR_TOP)
        high[1] = np.clip(P[:, 1].max(), MERCATOR_LEAST, MERCATOR_TOP)
    edge = _EDGE * high[0] / np.pi
    return Window(low - edge, high + edge, True, low, high)


def ends(projection: str) -> Floats:
    """Lower left and upper right corner of the whole map."""
    edge = lookup(projection).rim()
    if edge is None:
        return np.array([[-np.pi, -MERCATOR_TOP], [np.pi, MERCATOR_TOP]])
    return np.array([edge.min(axis=0), edge.max(axis=0)])
