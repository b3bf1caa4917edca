"""Draw the uncertainty of positions on a map: outlines of regions, haze, lines to alternative positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._data.checks import check_choice, check_rows
from ..projections import far_side, lookup, project

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_MAX_OUTLINES = 40  # up to this many points, all have an outline; ...
_N_OUTLINES = 15  # ... of more, only this many, spread over the map
_MAX_HAZE_POINTS = 3000  # maximum number of points whose regions make up the haze
_HAZE_OPACITY, _MAX_HAZE_OPACITY = 0.15, 0.12  # mean over the map, and maximum of a region
# Regions wider than this fraction of the map have fainter outlines, down to this opacity.
_MAX_WIDTH, _MIN_OUTLINE_OPACITY = 0.5, 0.12
_INK = "#333333"
# Values above this quantile get the same colour if the largest is more than this many times the quantile.
_LIMIT_QUANTILE, _OUTLIER_RATIO = 0.98, 1.5
_TITLES = {
    "loss": None,
    "spread": "spread (degrees)",
    "torn": "fraction of torn neighbours",
    "p_value": "p-value",
    "alternative_wins": "share of maps that prefer the alternative",
    "alternative_gap": "loss gap of the alternative",
}


def values_and_title(model: Any, uncertainty: Any, by: Any) -> tuple[Floats, str | None]:
    """Numbers to colour by, and their title, which is None for the loss."""
    if by is None:
        by = "loss" if uncertainty is None else "spread"
    if not isinstance(by, str):
        try:
            return np.asarray(by, dtype=np.float64), "by"
        except (TypeError, ValueError):
            raise ValueError(
                f"by must be one of {', '.join(map(repr, _TITLES))} or numbers, got {by!r}."
            ) from None
    check_choice("by", by, tuple(_TITLES))
    if by == "loss":
        return np.asarray(model.point_loss_, dtype=np.float64), None
    if uncertainty is None:
        raise ValueError(f"by={by!r} needs uncertainty, got None.")
    values = np.asarray(getattr(uncertainty, by), dtype=np.float64)
    return np.degrees(values) if by == "spread" else values, _TITLES[by]


def limits_of(values: Floats) -> tuple[float, float] | None:
    """Colour limits that leave out outliers; None if there are no outliers."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    high = float(np.quantile(finite, _LIMIT_QUANTILE))
    has_outliers = finite.min() >= 0 and finite.max() > _OUTLIER_RATIO * high > 0
    return (float(finite.min()), high) if has_outliers else None


def draw_regions(
    ax: Axes,
    Y: Floats,
    uncertainty: Any,
    rows: Any,
    level: float,
    projection: str,
    center: Sequence[float],
) -> str:
    """Draw the regions of points, and lines to their alternative positions; return the key to both."""
    n = len(Y)
    has_haze = n > _MAX_OUTLINES
    if has_haze:
        haze_rows = np.random.default_rng(0).permutation(n)[:_MAX_HAZE_POINTS]
        outlines = uncertainty.ellipses(level / 2, rows=np.sort(haze_rows))
        _draw_haze(ax, outlines, projection, center)
    if rows is None:
        rows = _spread_out(Y, _N_OUTLINES) if has_haze else np.arange(n)
    rows = check_rows(rows, n)
    if rows.size:
        outlines = uncertainty.ellipses(level, rows=rows)
        _draw_outlines(ax, outlines, projection, center, 0.6 if len(rows) > 50 else 1.0)
    other = np.asarray(uncertainty.alternative, dtype=np.float64)[rows]
    has_alternative = np.isfinite(other).all(axis=1)
    if has_alternative.any():
        _draw_alternatives(ax, Y[rows[has_alternative]], other[has_alternative], projection, center)
    meanings = {
        f"ellipses: {level:.0%} regions": rows.size > 0,
        f"haze: {level / 2:.0%} regions": has_haze,
        "dashed: alternative positions": has_alternative.any(),
    }
    return "; ".join(meaning for meaning, is_drawn in meanings.items() if is_drawn).capitalize()


def _spread_out(Y: Floats, k: int) -> NDArray[np.intp]:
    """k rows far from each other: the most central one, then always the one farthest from the rows so far."""
    rows = [int(np.argmax(Y @ Y.mean(axis=0)))]
    nearest = np.sum((Y - Y[rows[0]]) ** 2, axis=1)
    while len(rows) < min(k, len(Y)):
        rows.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.sum((Y - Y[rows[-1]]) ** 2, axis=1))
    return np.array(rows)


def _draw_outlines(
    ax: Axes, outlines: Floats, projection: str, center: Sequence[float], width: float = 1.0
) -> None:
    """Draw outlines of regions, given by vertices (k x v x 3) on the sphere."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    closed = np.concatenate([outlines, outlines[:, :1]], axis=1)
    lines, owners = _visible_parts(closed, projection, center)
    left, right, bottom, top = ax.axis()
    max_width = _MAX_WIDTH * max(right - left, top - bottom)
    opacity = [max_width / max(max_width, np.ptp(line, axis=0).max()) for line in lines]
    outline_opacity = np.full(len(outlines), 1.0)
    np.minimum.at(outline_opacity, owners, opacity)  # one for all parts of an outline
    colors = [to_rgba(_INK, max(outline_opacity[k], _MIN_OUTLINE_OPACITY)) for k in owners]
    ax.add_collection(
        LineCollection(lines, colors=colors, linewidths=width, zorder=3), autolim=False
    )


def _draw_haze(ax: Axes, outlines: Floats, projection: str, center: Sequence[float]) -> None:
    """Draw regions as transparent areas: dark where many points may lie.

    All regions get the same amount of ink, so that large ones are faint.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    regions, _ = _visible_parts(outlines, projection, center)
    left, right, bottom, top = ax.axis()
    ink = _HAZE_OPACITY * (right - left) * (top - bottom) / max(len(regions), 1)
    colors = [
        to_rgba(_INK, min(ink / max(_area(region), 1e-300), _MAX_HAZE_OPACITY))
        for region in regions
    ]
    haze = PolyCollection(
        regions, facecolors=colors, edgecolors="none", zorder=0.9, rasterized=True
    )
    ax.add_collection(haze, autolim=False)


def _area(polygon: Floats) -> float:
    """Area of a polygon (v x 2), by the shoelace formula."""
    x, y = polygon.T
    return float(0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def _draw_alternatives(
    ax: Axes, Y: Floats, others: Floats, projection: str, center: Sequence[float]
) -> None:
    """Draw dashed great circles from positions Y to others (k x 3), with rings at their ends."""
    from matplotlib.collections import LineCollection

    t = np.linspace(0, 1, 40)[:, None]
    arcs = np.array([_great_circle(a, b, t) for a, b in zip(Y, others, strict=True)])
    lines = LineCollection(
        _visible_parts(arcs, projection, center)[0],
        colors=_INK,
        linewidths=0.8,
        linestyles=[(0, (2, 3))],
        zorder=3,
    )
    ax.add_collection(lines, autolim=False)
    ends = project(others, projection, center=center)
    visible = ~(far_side(others, center=center) & lookup(projection).two_sided)
    limits = ax.axis()
    x, y = ends[visible].T
    ax.scatter(x, y, s=16, facecolors="none", edgecolors=_INK, linewidths=0.8, zorder=3)
    ax.axis(limits)


def _great_circle(a: Floats, b: Floats, t: Floats) -> Floats:
    angle = np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)
    if angle < 1e-9:
        return np.repeat(a[None, :], len(t), axis=0)
    return np.asarray((np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle))


def _visible_parts(
    paths: Floats, projection: str, center: Sequence[float]
) -> tuple[list[Floats], NDArray[np.intp]]:
    """Project paths on the sphere (k x v x 3), cut where they leave the map or cross its seam.

    Also returns the path that each part belongs to.
    """
    k, v, _ = paths.shape
    flat = paths.reshape(-1, 3)
    P = project(flat / np.linalg.norm(flat, axis=1, keepdims=True), projection, center=center)
    hidden = far_side(flat, center=center) & lookup(projection).two_sided
    hidden |= ~np.isfinite(P).all(axis=1)
    P, hidden = P.reshape(k, v, 2), hidden.reshape(k, v)
    # Steps are short on the sphere; those that are long on the map cross the seam.
    step = np.linalg.norm(np.diff(P, axis=1), axis=2)
    usual = np.median(step, axis=1, keepdims=True)
    cut = hidden[:, 1:] | hidden[:, :-1] | (step > np.maximum(10 * usual, 1.0))
    parts, owners = [], []
    for owner, (path, hidden_path, breaks) in enumerate(zip(P, hidden, cut, strict=True)):
        for part in np.split(np.arange(v), np.flatnonzero(breaks) + 1):
            if len(part) > 1 and not hidden_path[part[0]]:
                parts.append(path[part])
                owners.append(owner)
    return parts, np.array(owners, dtype=np.intp)
