"""The paper a map is drawn on: frame, graticule, the scale of stretch, the globe's shading."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._sphere import from_lonlat, normalize, to_lonlat
from .projections import inverse, project, rim

Floats = NDArray[np.float64]

#: Mercator maps end here at the latest, where they are as high as wide: 85.05 degrees.
MERCATOR_TOP = np.pi
#: ... and here at the earliest (45 degrees), so that the equator is never a mere strip.
MERCATOR_LEAST = float(np.arcsinh(1.0))
_MARGIN = 0.06  # around the map, of a map 2 pi wide: points on the edge are drawn whole

_LINE = {"color": "#B8C0C8", "linewidth": 0.5, "zorder": 1.0, "label": "_graticule"}
_TEXT = "#5A6570"
_SMALL = "x-small"


def default_center(Y: Floats, projection: str) -> tuple[float, float]:
    """Where to look when nobody says, in whole tens of degrees.

    Discs look at the mean direction of the points. Maps with a seam keep the equator and turn
    the seam to the middle of the widest gap, unless the far meridian is as empty.
    """
    if projection in ("lambert", "orthographic"):
        longitude, latitude = to_lonlat(normalize(Y.mean(axis=0, keepdims=True)))
        return _tens(longitude[0]), _tens(latitude[0])
    longitude, _ = to_lonlat(Y)
    # Points near the poles sit on every meridian, and do not mind where the cut is.
    weight = np.hypot(Y[:, 0], Y[:, 1])
    tens = np.rint(np.rad2deg(longitude) / 10).astype(int) % 36
    count = np.bincount(tens, weight, minlength=36)
    crowd = (np.roll(count, 1) + 2 * count + np.roll(count, -1)) / 4
    empty = crowd <= crowd.min() + 0.002 * len(Y)
    if empty[18] or empty.all():
        return 0.0, 0.0
    # The middle of the widest gap: the empty meridian that is farthest from a crowded one.
    steps = np.abs(np.arange(36)[:, None] - np.flatnonzero(~empty))
    gap = np.minimum(steps, 36 - steps).min(axis=1)
    seam = np.lexsort([crowd, -gap])[0]  # of two in the middle, the emptier one
    return float((10 * seam) % 360 - 180), 0.0


def aspect(projection: str, P: Floats) -> float:
    """Width of the map over its height."""
    width, height = np.diff(extent(projection, P), axis=0)[0]
    return float(width / height)


def _tens(angle: float) -> float:
    return float(10 * np.rint(np.rad2deg(angle) / 10)) + 0.0


def extent(projection: str, P: Floats) -> Floats:
    """Lower left and upper right corner of the map on which points lie at P."""
    edge = rim(projection)
    if edge is not None:
        return np.array([edge.min(axis=0), edge.max(axis=0)])
    bottom = -np.clip(-P[:, 1].min(), MERCATOR_LEAST, MERCATOR_TOP)
    top = np.clip(P[:, 1].max(), MERCATOR_LEAST, MERCATOR_TOP)
    return np.array([[-np.pi, bottom], [np.pi, top]])


def draw_frame(ax: Any, projection: str, center: Sequence[float], P: Floats) -> list[str]:
    """Set up the axes for a map on which points lie at P; returns what there is to note."""
    corners = extent(projection, P)
    if projection == "mercator":
        _draw_edges(ax, center, *corners[:, 1])
        _draw_stretch(ax, *corners[:, 1])
    else:
        _draw_rim(ax, projection, center)
    ax.plot(*graticule(projection, center).T, solid_capstyle="butt", **_LINE)
    margin = _MARGIN * corners[1, 0] / np.pi
    ax.set_xlim(corners[0, 0] - margin, corners[1, 0] + margin)
    ax.set_ylim(corners[0, 1] - margin, corners[1, 1] + margin)
    ax.set_aspect("equal")
    return [] if projection == "mercator" else [describe_center(center)]


def draw_plane(ax: Any, P: Floats) -> None:
    """Set up the axes for an embedding in the plane, whose units mean nothing."""
    low, high = P.min(axis=0), P.max(axis=0)
    margin = 0.03 * (high - low).max() or 1.0
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    _style_ticks(ax)


def graticule(projection: str, center: Sequence[float]) -> Floats:
    """Meridians and parallels of the data's own sphere on the map, broken by rows of NaN."""
    fine = np.deg2rad(np.linspace(-180, 180, 721))
    # Meridians stop short of the poles, where they would draw a knot.
    short = np.deg2rad(np.linspace(-88, 88, 353))
    lines = [
        from_lonlat(fine, np.full(len(fine), lat)) for lat in np.deg2rad(_parallels(projection))
    ]
    lines += [
        from_lonlat(np.full(len(short), lon), short) for lon in np.deg2rad(np.arange(0, 360, 30))
    ]
    pieces = []
    for line in lines:
        P = project(line, projection, center=center)
        P[~np.isfinite(P).all(axis=1)] = np.nan
        if projection == "orthographic":
            P[np.linalg.norm(inverse(P, projection, center=center) - line, axis=1) > 1e-6] = np.nan
        # A step that is long on the map but short on the sphere crosses the seam.
        jump = np.flatnonzero(np.linalg.norm(np.diff(P, axis=0), axis=1) > 1) + 1
        P = np.insert(P, jump, np.nan, axis=0)
        pieces += [P, np.full((1, 2), np.nan)]
    return np.concatenate(pieces)


def _parallels(projection: str) -> list[int]:
    north = [30, 60, 75, 85] if projection == "mercator" else [30, 60]
    return [-lat for lat in reversed(north)] + [0, *north]


def _draw_edges(ax: Any, center: Sequence[float], bottom: float, top: float) -> None:
    """Name the parallels along Mercator's left edge and the meridians along its bottom."""
    v = np.linspace(bottom, top, 2001)
    _, latitude = to_lonlat(inverse(np.column_stack([np.full(len(v), -np.pi), v]), center=center))
    small = _is_small(ax)
    parallels = [-75, -60, 0, 60, 75] if small else _parallels("mercator")
    at, levels = crossings(v, np.rad2deg(latitude), np.array(parallels))
    ax.set_yticks(at, [_degrees(level, "N", "S") for level in levels])
    u = np.linspace(-np.pi, np.pi, 2001)
    longitude, _ = to_lonlat(inverse(np.column_stack([u, np.full(len(u), bottom)]), center=center))
    # Steps of more than half a turn are jumps from 180 to -180 degrees.
    degrees = np.rad2deg(np.unwrap(longitude))
    at, levels = crossings(u, degrees, np.arange(-720, 721, 120 if small else 60))
    ax.set_xticks(at, [_degrees((level + 180) % 360 - 180, "E", "W") for level in levels])
    _style_ticks(ax)


def crossings(x: Floats, y: Floats, levels: NDArray[Any]) -> tuple[list[float], list[float]]:
    """Where along x the curve y takes one of the levels, and which one."""
    found: list[tuple[float, float]] = []
    for level in levels:
        # Rounding must not hide a level that the curve starts or ends on.
        gap = np.where(np.abs(y - level) < 1e-9, 0.0, y - level)
        hits = np.flatnonzero((gap[:-1] == 0) | (gap[:-1] * gap[1:] < 0))
        found += [
            (float(x[k] + (x[k + 1] - x[k]) * gap[k] / (gap[k] - gap[k + 1])), float(level))
            for k in hits
            if gap[k] != gap[k + 1]
        ]
        if gap[-1] == 0:
            found.append((float(x[-1]), float(level)))
    return [at for at, _ in found], [level for _, level in found]


def _draw_stretch(ax: Any, bottom: float, top: float) -> None:
    """Say along the right edge how many times larger than at the equator things are drawn."""
    factors = np.array([1, 2, 5] if _is_small(ax) else [1, 1.5, 2, 3, 5, 10])
    v = np.arccosh(factors)
    at = np.concatenate([-v[:0:-1], v])
    names = [
        f"\N{MULTIPLICATION SIGN}{factor:g}" for factor in np.concatenate([factors[:0:-1], factors])
    ]
    inside = (at >= bottom) & (at <= top)
    right = ax.secondary_yaxis("right")
    right.set_yticks(at[inside], [name for name, keep in zip(names, inside, strict=True) if keep])
    right.set_ylabel("stretch", fontsize=_SMALL, color=_TEXT)
    _style_ticks(right)


def _is_small(ax: Any) -> bool:
    """Whether all the numbers of a full-size map would run into each other."""
    return bool(min(ax.bbox.size) * 72 / ax.figure.dpi < 140)


def _style_ticks(ax: Any) -> None:
    ax.tick_params(labelsize=_SMALL, labelcolor=_TEXT, color=_LINE["color"], length=2.5, width=0.5)
    for spine in ax.spines.values():
        spine.set(color=_LINE["color"], linewidth=0.6)


def _draw_rim(ax: Any, projection: str, center: Sequence[float]) -> None:
    from matplotlib.patches import Polygon

    edge = rim(projection)
    assert edge is not None
    if projection == "orthographic":
        _draw_shading(ax)
    ax.add_patch(Polygon(edge, fill=False, edgecolor="#8A949E", linewidth=0.7, zorder=1.1))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.patch.set_visible(False)
    if projection != "lambert":  # all of whose rim is one point of the sphere
        _name_parallels(ax, projection, center, edge)


def _name_parallels(ax: Any, projection: str, center: Sequence[float], edge: Floats) -> None:
    """Write the latitudes around the left half of the rim, outside of it."""
    left = edge[edge[:, 0] < -1e-6]
    left = left[np.argsort(left[:, 1])]
    _, latitude = to_lonlat(inverse(left * (1 - 1e-7), projection, center=center))
    at, levels = crossings(left[:, 1], np.rad2deg(latitude), np.array(_parallels(projection)))
    for v, level in zip(at, levels, strict=True):
        u = np.interp(v, left[:, 1], left[:, 0])
        if u > 0.25 * edge[:, 0].min():  # at the top or the bottom: neither left nor right of it
            continue
        ax.annotate(
            _degrees(level, "N", "S"),
            (u, v),
            xytext=(-3, np.sign(v) * 2),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=_SMALL,
            color=_TEXT,
            annotation_clip=True,
        )


def _draw_shading(ax: Any) -> None:
    """A ball lit from the upper left."""
    from matplotlib.patches import Circle

    grid = np.linspace(-1, 1, 301)
    u, v = np.meshgrid(grid, grid)
    depth = np.sqrt(np.clip(1 - u**2 - v**2, 0, None))
    light = np.clip(-0.42 * u + 0.48 * v + 0.77 * depth, 0, 1)
    dark, bright = np.array([0.84, 0.87, 0.90]), np.array([0.985, 0.99, 1.0])
    image = dark + (bright - dark) * light[..., None]
    ball = ax.imshow(
        image, extent=(-1, 1, -1, 1), origin="lower", interpolation="bilinear", zorder=0.1
    )
    ball.set_clip_path(Circle((0, 0), 1, transform=ax.transData))


def write_note(ax: Any, sentences: Sequence[str]) -> None:
    """Small print under the map, in lines about as long as the map is wide."""
    if not sentences:
        return
    ax.apply_aspect()
    label = ax.set_xlabel("", loc="left", fontsize=_SMALL, color=_TEXT, parse_math=False)
    # A letter is about half as wide as the font is high.
    letters = ax.bbox.width * 72 / ax.figure.dpi / (0.52 * label.get_fontsize())
    label.set_text(textwrap.fill(" ".join(sentences), max(int(letters), 24)))


def describe_center(center: Sequence[float]) -> str:
    longitude = (center[0] + 180) % 360 - 180
    return f"Centre {_degrees(longitude, 'E', 'W')}, {_degrees(center[1], 'N', 'S')}."


def _degrees(angle: float, positive: str, negative: str) -> str:
    side = "" if angle in (0, 180, -180) else positive if angle > 0 else negative
    return f"{abs(angle):g}°{side}"
