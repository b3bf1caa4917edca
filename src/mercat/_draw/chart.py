"""Background of a map: frame, graticule, scale of Mercator's stretch, shading of the globe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._math.sphere import from_lonlat, normalize, to_lonlat
from ..projections import inverse, lookup, project
from .window import Window

Floats = NDArray[np.float64]

_LINE_STYLE = {"color": "#B8C0C8", "linewidth": 0.5, "zorder": 1.0, "label": "_graticule"}
_TEXT_COLOR = "#5A6570"
_SMALL_FONT = "x-small"
# Minimum distance of tick labels below a map, as a fraction of its width and in points.
_LABEL_GAP, _LABEL_WIDTH = 0.08, 27
_MAX_LINES = 1000  # maximum number of meridians and of parallels
# Labels of the scale of stretch, relative to the equator: the first row with three on the map is used.
_STRETCHES = (
    (1, 1.5, 2, 3, 5, 10),
    (1, 1.1, 1.25, 1.5, 2),
    (1, 1.02, 1.05, 1.1),
)
# The scale is left out if the largest stretch on the map is less than this multiple of the smallest.
_MIN_STRETCH = 1.03


def default_center(Y: Floats, projection: str) -> tuple[float, float]:
    """Default centre of a map, in multiples of ten degrees.

    Discs are centred on the mean direction of the points. Maps with a seam are centred on the equator, with
    the seam in the middle of the widest gap, unless the meridian of 180 degrees is as empty.
    """
    if lookup(projection).azimuthal:
        longitude, latitude = to_lonlat(normalize(Y.mean(axis=0, keepdims=True)))
        return _nearest_ten(longitude[0]), _nearest_ten(latitude[0])
    longitude, _ = to_lonlat(Y)
    # Points near the poles are close to every meridian and do not count.
    weight = np.hypot(Y[:, 0], Y[:, 1])
    tens = np.rint(np.rad2deg(longitude) / 10).astype(int) % 36
    count = np.bincount(tens, weight, minlength=36)
    smooth = (np.roll(count, 1) + 2 * count + np.roll(count, -1)) / 4
    empty = smooth <= smooth.min() + 0.002 * len(Y)
    if empty[18] or empty.all():
        return 0.0, 0.0
    # The middle of the widest gap: the empty meridian that is farthest from a crowded one.
    steps = np.abs(np.arange(36)[:, None] - np.flatnonzero(~empty))
    gap = np.minimum(steps, 36 - steps).min(axis=1)
    seam = np.lexsort([smooth, -gap])[0]  # of two middle meridians, the emptier one
    return float((10 * seam) % 360 - 180), 0.0


def _nearest_ten(angle: float) -> float:
    return float(10 * np.rint(np.rad2deg(angle) / 10)) + 0.0


def draw_frame(
    ax: Any,
    projection: str,
    center: Sequence[float],
    window: Window,
    *,
    plain: bool = False,
    stretch: bool = True,
) -> list[str]:
    """Set up the axes for the window of a map; returns notes.

    A `plain` map has no lines or tick labels; `stretch` draws the scale of Mercator's stretch.
    """
    geometry = lookup(projection)
    notes = [] if geometry.unbounded else [describe_center(center)]
    if plain:
        if geometry.two_sided:
            _draw_shading(ax)
        _set_limits(ax, window)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        return notes
    if not geometry.unbounded:
        _draw_rim(ax, projection, framed=not window.whole)
    if geometry.unbounded or not window.whole:
        _label_edges(ax, projection, center, window)
    elif not geometry.rim_is_point:
        _label_parallels(ax, projection, center)
    bottom, top = window.low[1], window.high[1]
    nearest = np.clip(0, bottom, top)  # to the equator, where the stretch is smallest
    ratio = max(np.cosh(bottom), np.cosh(top)) / np.cosh(nearest) if geometry.unbounded else 1
    if stretch and ratio >= _MIN_STRETCH and not is_narrow(ax):
        _draw_stretch(ax, bottom, top)
    ax.plot(*graticule(projection, center, window).T, solid_capstyle="butt", **_LINE_STYLE)
    _set_limits(ax, window)
    return notes


def _set_limits(ax: Any, window: Window) -> None:
    ax.set_xlim(window.low[0], window.high[0])
    ax.set_ylim(window.low[1], window.high[1])
    ax.set_aspect("equal")


def draw_plane(ax: Any, window: Window) -> None:
    """Set up the axes for an embedding in the plane, without units."""
    _set_limits(ax, window)
    ax.set_xticks([])
    ax.set_yticks([])
    _style_ticks(ax)


def graticule(projection: str, center: Sequence[float], window: Window) -> Floats:
    """Meridians and parallels in a window of the map.

    Rows of NaN separate the lines.
    """
    (west, south), (east, north) = _bounds(projection, center, window)
    longitudes = np.deg2rad(np.linspace(west, east, 1441))
    # Meridians end before the poles, where they would overlap.
    latitudes = np.deg2rad(np.linspace(max(south, -88), min(north, 88), 705))
    meridians = _multiples(window.step, west, min(east, west + 360 - window.step))
    lines = [
        from_lonlat(longitudes, np.full(len(longitudes), lat))
        for lat in np.deg2rad(_parallels(projection, window.step, south, north))
    ]
    lines += [from_lonlat(np.full(len(latitudes), lon), latitudes) for lon in np.deg2rad(meridians)]
    pieces = [np.full((1, 2), np.nan)]
    for line in lines:
        P = project(line, projection, center=center)
        P[~window.near(P)] = np.nan
        if lookup(projection).two_sided:
            P[np.linalg.norm(inverse(P, projection, center=center) - line, axis=1) > 1e-6] = np.nan
        if np.isnan(P).all():
            continue
        # A step that is long on the map but short on the sphere crosses the seam.
        jump = np.flatnonzero(np.linalg.norm(np.diff(P, axis=0), axis=1) > 1) + 1
        P = np.insert(P, jump, np.nan, axis=0)
        pieces += [P, pieces[0]]
    return np.concatenate(pieces)


def _bounds(projection: str, center: Sequence[float], window: Window) -> Floats:
    """Range of longitude and latitude of lines in a window, in degrees: the world, unless it is small."""
    world = np.array([[-180.0, -90.0], [180.0, 90.0]])
    if window.step >= 1:
        return world
    low, high = window.low - window.size / 2, window.high + window.size / 2
    u, v = np.meshgrid(*(np.linspace(low[k], high[k], 9) for k in (0, 1)))
    places = inverse(np.column_stack([u.ravel(), v.ravel()]), projection, center=center)
    places = places[np.isfinite(places[:, 0])]
    longitude, latitude = np.rad2deg(to_lonlat(places))
    middle, _ = np.rad2deg(to_lonlat(normalize(places.mean(axis=0, keepdims=True))))
    east = (longitude - middle + 180) % 360 - 180 + middle
    return np.array([[east.min(), latitude.min()], [east.max(), latitude.max()]])


def _multiples(step: float, low: float, high: float) -> Floats:
    """Multiples of a step from `low` to `high`; none if there are too many, as near a pole."""
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    if last - first > _MAX_LINES:
        return np.empty(0)
    return np.round(step * np.arange(first, last + 1), 9)


def _parallels(projection: str, step: float, south: float = -90, north: float = 90) -> Floats:
    """Latitudes of the parallels, without the poles."""
    levels = _multiples(step, max(south, step - 90), min(north, 90 - step))
    if lookup(projection).unbounded and step >= 15:  # Mercator enlarges areas towards the poles
        levels = np.union1d(levels, [-85, -75, 75, 85])
    return levels


def _label_edges(ax: Any, projection: str, center: Sequence[float], window: Window) -> None:
    """Name the parallels along the left edge and the meridians along the bottom."""
    spacing = window.step * (2 if _is_small(ax) else 1)
    v = np.linspace(window.low[1], window.high[1], 2001)
    left = inverse(np.column_stack([np.full(2001, window.low[0]), v]), projection, center=center)
    on_map = np.isfinite(left[:, 0])  # the window may extend beyond the rim of the map
    latitude = np.rad2deg(to_lonlat(left[on_map])[1])
    ends = latitude.min(initial=90), latitude.max(initial=-90)
    labels = crossings(v[on_map], latitude, _parallels(projection, spacing, *ends))
    positions, levels = _drop_close(*labels, 0.03 * window.size[1])
    ax.set_yticks(positions, [_degrees(level, "N", "S") for level in levels])

    u = np.linspace(window.low[0], window.high[0], 2001)
    bottom = inverse(np.column_stack([u, np.full(2001, window.low[1])]), projection, center=center)
    on_map = np.isfinite(bottom[:, 0])
    longitude, _ = to_lonlat(bottom[on_map])
    # Steps of more than half a turn are jumps from 180 to -180 degrees.
    degrees = np.rad2deg(np.unwrap(longitude))
    spacing *= 2 if window.whole else 1
    meridians = _multiples(spacing, degrees.min(initial=720), degrees.max(initial=-720))
    min_gap = max(_LABEL_GAP, _LABEL_WIDTH / (ax.bbox.width * 72 / ax.figure.dpi))
    positions, levels = _drop_close(
        *crossings(u[on_map], degrees, meridians), min_gap * window.size[0]
    )
    ax.set_xticks(positions, [_degrees((level + 180) % 360 - 180, "E", "W") for level in levels])
    _style_ticks(ax)


def _drop_close(
    positions: list[float], levels: list[float], min_gap: float
) -> tuple[list[float], list[float]]:
    """Leave out tick labels that would overlap the previous one, as near a rim, where lines are dense."""
    labels: list[tuple[float, float]] = []
    for position, level in sorted(zip(positions, levels, strict=True)):
        if not labels or position - labels[-1][0] >= min_gap:
            labels.append((position, level))
    return [position for position, _ in labels], [level for _, level in labels]


def crossings(x: Floats, y: Floats, levels: NDArray[Any]) -> tuple[list[float], list[float]]:
    """Positions along x where the curve y crosses a level, and these levels."""
    pairs: list[tuple[float, float]] = []
    for level in levels if len(y) else []:
        # Rounding must not hide a level that the curve starts or ends on.
        gap = np.where(np.abs(y - level) < 1e-9, 0.0, y - level)
        segments = np.flatnonzero((gap[:-1] == 0) | (gap[:-1] * gap[1:] < 0))
        pairs += [
            (float(x[k] + (x[k + 1] - x[k]) * gap[k] / (gap[k] - gap[k + 1])), float(level))
            for k in segments
            if gap[k] != gap[k + 1]
        ]
        if gap[-1] == 0:
            pairs.append((float(x[-1]), float(level)))
    return [position for position, _ in pairs], [level for _, level in pairs]


def _draw_stretch(ax: Any, bottom: float, top: float) -> None:
    """Draw the scale of Mercator's stretch along the right edge."""
    rows = [_stretches(row[::2] if _is_small(ax) else row, bottom, top) for row in _STRETCHES]
    heights, names = max(rows, key=lambda row: min(len(set(row[1])), 3))
    right = ax.secondary_yaxis("right")
    right.set_yticks(heights, names)
    right.set_ylabel("stretch", fontsize=_SMALL_FONT, color=_TEXT_COLOR)
    _style_ticks(right)


def _stretches(
    factors: Sequence[float], bottom: float, top: float
) -> tuple[list[float], list[str]]:
    """Heights from `bottom` to `top` at which Mercator stretches by one of the factors, and these factors."""
    marks = [
        (float(side * np.arccosh(factor)), f"\N{MULTIPLICATION SIGN}{factor:g}")
        for factor in factors
        for side in ((1,) if factor == 1 else (-1, 1))
    ]
    marks = [(height, name) for height, name in marks if bottom <= height <= top]
    return [height for height, _ in marks], [name for _, name in marks]


def _is_small(ax: Any) -> bool:
    """Whether the tick labels of a full-size map would overlap."""
    return bool(min(ax.bbox.size) * 72 / ax.figure.dpi < 140)


def is_narrow(ax: Any) -> bool:
    """Whether the axes are too small for decorations."""
    return bool(ax.bbox.width * 72 / ax.figure.dpi < 200)


def _style_ticks(ax: Any) -> None:
    color = _LINE_STYLE["color"]
    ax.tick_params(
        labelsize=_SMALL_FONT, labelcolor=_TEXT_COLOR, color=color, length=2.5, width=0.5
    )
    for spine in ax.spines.values():
        spine.set(color=color, linewidth=0.6)


def _draw_rim(ax: Any, projection: str, *, framed: bool) -> None:
    """Draw the boundary of the map; without a frame, hide the axes."""
    from matplotlib.patches import Polygon

    edge = lookup(projection).rim()
    assert edge is not None
    if lookup(projection).two_sided:
        _draw_shading(ax)
    ax.add_patch(Polygon(edge, fill=False, edgecolor="#8A949E", linewidth=0.7, zorder=1.1))
    if not framed:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        ax.patch.set_visible(False)


def _label_parallels(ax: Any, projection: str, center: Sequence[float]) -> None:
    """Write the latitudes outside the left half of the rim."""
    edge = lookup(projection).rim()
    assert edge is not None
    left = edge[edge[:, 0] < -1e-6]
    left = left[np.argsort(left[:, 1])]
    _, latitude = to_lonlat(inverse(left * (1 - 1e-7), projection, center=center))
    heights, levels = crossings(left[:, 1], np.rad2deg(latitude), _parallels(projection, 30))
    for v, level in zip(heights, levels, strict=True):
        u = np.interp(v, left[:, 1], left[:, 0])
        if u > 0.25 * edge[:, 0].min():  # at the top or bottom, centred
            continue
        ax.annotate(
            _degrees(level, "N", "S"),
            (u, v),
            xytext=(-3, np.sign(v) * 2),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=_SMALL_FONT,
            color=_TEXT_COLOR,
            annotation_clip=True,
        )


def _draw_shading(ax: Any) -> None:
    """Shade the globe as a ball lit from the upper left."""
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
    """Write notes below the map, wrapped to about its width."""
    if not sentences:
        return
    ax.apply_aspect()
    label = ax.set_xlabel("", loc="left", fontsize=_SMALL_FONT, color=_TEXT_COLOR, parse_math=False)
    # A letter is about half as wide as the font is high.
    letters = ax.bbox.width * 72 / ax.figure.dpi / (0.52 * label.get_fontsize())
    label.set_text(textwrap.fill(" ".join(sentences), max(int(letters), 24)))


def describe_center(center: Sequence[float]) -> str:
    """Sentence about the centre of a map."""
    longitude = (center[0] + 180) % 360 - 180
    return f"Centre {_degrees(longitude, 'E', 'W')}, {_degrees(center[1], 'N', 'S')}."


def _degrees(angle: float, positive: str, negative: str) -> str:
    side = "" if angle in (0, 180, -180) else positive if angle > 0 else negative
    return f"{abs(round(angle, 6)):.10g}°{side}"
