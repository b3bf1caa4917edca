"""Uncertainty on a map: outlines of regions, haze, and lines to alternative positions."""

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

_MOST_OUTLINES = 200  # with at most this many points, all have an outline; with more, ...
_FEW_OUTLINES = 15  # ... only this many, spread over the map
_MOST_HAZY = 3000  # maximum number of points whose regions make up the haze
_HAZE, _DARKEST = 0.15, 0.12  # mean opacity of the haze over the map; largest opacity of a region
# Regions wider than this fraction of the map have fainter outlines, down to this opacity.
_WIDE, _FAINTEST = 0.5, 0.12
_INK = "#333333"
# Values above this quantile have one colour if the largest is more than this many times the quantile.
_MOST, _FAR_ABOVE = 0.98, 1.5
_TITLES = {
    "loss": None,
    "spread": "spread (degrees)",
    "torn": "share of neighbours torn away",
    "p_value": "p-value",
    "alternative_wins": "share of maps that prefer the alternative",
    "alternative_gap": "loss gap of the alternative",
}


def values_and_title(model: Any, uncertainty: Any, by: Any) -> tuple[Floats, str | None]:
    """Numbers to colour by and their title; None for the loss."""
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
    """Limits of the colours without values far above the others; None if there are none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    most = float(np.quantile(finite, _MOST))
    few = finite.min() >= 0 and finite.max() > _FAR_ABOVE * most > 0
    return (float(finite.min()), most) if few else None


def draw_regions(
    ax: Axes,
    Y: Floats,
    uncertainty: Any,
    rows: Any,
    level: float,
    projection: str,
    center: Sequence[float],
) -> str:
    """Draw the regions of points, and lines to their alternative positions; return what they mean."""
    n = len(Y)
    many = n > _MOST_OUTLINES
    if many:
        hazy = np.random.default_rng(0).permutation(n)[:_MOST_HAZY]
        outlines = uncertainty.ellipses(level / 2, rows=np.sort(hazy))
        _draw_haze(ax, outlines, projection, center)
    if rows is None:
        rows = _spread_out(Y, _FEW_OUTLINES) if many else np.arange(n)
    rows = check_rows(rows, n)
    if rows.size:
        outlines = uncertainty.ellipses(level, rows=rows)
        _draw_outlines(ax, outlines, projection, center, 0.6 if len(rows) > 50 else 1.0)
    other = np.asarray(uncertainty.alternative, dtype=np.float64)[rows]
    known = np.isfinite(other).all(axis=1)
    if known.any():
        _draw_alternatives(ax, Y[rows[known]], other[known], projection, center)
    meanings = {
        f"ellipses: {level:.0%} regions": rows.size > 0,
        f"haze: {level / 2:.0%} regions": many,
        "dashed: alternative positions": known.any(),
    }
    return "; ".join(meaning for meaning, drawn in meanings.items() if drawn).capitalize()


def _spread_out(Y: Floats, k: int) -> NDArray[np.intp]:
    """k rows far from each other: the most central, then each the farthest from all before it."""
    chosen = [int(np.argmax(Y @ Y.mean(axis=0)))]
    nearest = np.sum((Y - Y[chosen[0]]) ** 2, axis=1)
    while len(chosen) < min(k, len(Y)):
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.sum((Y - Y[chosen[-1]]) ** 2, axis=1))
    return np.array(chosen)


def _draw_outlines(
    ax: Axes, outlines: Floats, projection: str, center: Sequence[float], width: float = 1.0
) -> None:
    """Draw outlines of regions, given by vertices (k x v x 3) on the sphere."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    closed = np.concatenate([outlines, outlines[:, :1]], axis=1)
    lines, owners = _runs(closed, projection, center)
    left, right, bottom, top = ax.axis()
    wide = _WIDE * max(right - left, top - bottom)
    opacity = [wide / max(wide, np.ptp(line, axis=0).max()) for line in lines]
    faintest = np.full(len(outlines), 1.0)
    np.minimum.at(faintest, owners, opacity)  # one for all parts of an outline
    colors = [to_rgba(_INK, max(faintest[k], _FAINTEST)) for k in owners]
    ax.add_collection(
        LineCollection(lines, colors=colors, linewidths=width, zorder=3), autolim=False
    )


def _draw_haze(ax: Axes, outlines: Floats, projection: str, center: Sequence[float]) -> None:
    """Draw regions as transparent areas: dark where many points may lie.

    All regions get the same amount of ink, so that large ones are faint.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    regions, _ = _runs(outlines, projection, center)
    left, right, bottom, top = ax.axis()
    ink = _HAZE * (right - left) * (top - bottom) / max(len(regions), 1)
    colors = [to_rgba(_INK, min(ink / max(_area(region), 1e-300), _DARKEST)) for region in regions]
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
        _runs(arcs, projection, center)[0],
        colors=_INK,
        linewidths=0.8,
        linestyles=[(0, (2, 3))],
        zorder=3,
    )
    ax.add_collection(lines, autolim=False)
    ends = project(others, projection, center=center)
    seen = ~(far_side(others, center=center) & lookup(projection).two_sided)
    limits = ax.axis()
    x, y = ends[seen].T
    ax.scatter(x, y, s=16, facecolors="none", edgecolors=_INK, linewidths=0.8, zorder=3)
    ax.axis(limits)


def _great_circle(a: Floats, b: Floats, t: Floats) -> Floats:
    angle = np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)
    if angle < 1e-9:
        return np.repeat(a[None, :], len(t), axis=0)
    return np.asarray((np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle))


def _runs(
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
    runs, owners = [], []
    for owner, (path, gone, breaks) in enumerate(zip(P, hidden, cut, strict=True)):
        for part in np.split(np.arange(v), np.flatnonzero(breaks) + 1):
            if len(part) > 1 and not gone[part[0]]:
                runs.append(path[part])
                owners.append(owner)
    return runs, np.array(owners, dtype=np.intp)
