"""A map on axes: frame, legend, points and names, in the order in which space is reserved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._data.text import well_formed
from ..projections import far_side, lookup, project
from . import chart, labels, legend, marks
from .colors import Categories, Coloring, Scale
from .figure import new_axes
from .window import MERCATOR_TOP, check_extent, choose_window, plane_window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Locations of a legend, in addition to matplotlib's locations inside the axes.
BESIDE, ON_DATA = "right margin", "on data"
# Points beyond a window chosen by the user are marked at its edge if they are at most this fraction of all.
_MAX_MARKED = 0.02


@dataclass(frozen=True)
class Style:
    """Appearance of a map, except its colours."""

    size: float | None = None  # points squared
    alpha: float | None = None
    sort_order: bool = True  # high values on top
    outline: bool = False
    frame: bool = True
    stretch: bool = True  # the scale along Mercator's right edge
    legend_location: str | None = BESIDE
    fontsize: Any = None  # font size of the legend and of names on the map
    fontweight: Any = None
    fontoutline: float | None = None  # points around names on the map
    colorbar: bool = True  # beside a map coloured by numbers
    legend_share: float = legend.MAX_SHARE  # largest fraction of the width for the legend
    advice: str = "extent=1.0 shows all"  # ends the note on points beyond the map

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        if self.alpha is not None and not (isinstance(self.alpha, Real) and 0 < self.alpha <= 1):
            raise ValueError(f"alpha must be above 0 and at most 1, got {self.alpha!r}.")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless the value is None or a positive number."""
    if value is not None and not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise ValueError(f"{name} must be a positive number, got {value!r}.")


def draw_map(
    Y: Floats,
    coloring: Coloring,
    style: Style,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    groups: Categories | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw unit vectors as a map, with the names of `groups`."""
    is_globe = lookup(projection).two_sided
    check_extent(extent)
    center = chart.default_center(Y, projection) if center is None else center
    P = project(Y, projection, center=center)
    window = choose_window(projection, P, extent)
    is_new = ax is None
    ax = new_axes(window.aspect) if ax is None else check_axes(ax)
    if title:
        ax.set_title(well_formed(title), parse_math=False)
    far = far_side(Y, center=center) & is_globe
    beyond = window.beyond(P)
    notes = chart.draw_frame(
        ax, projection, center, window, plain=not style.frame, stretch=style.stretch
    )
    if is_globe:
        notes.append(_count_note(far, "on the far side (pale)"))
    # Whether some points lie beyond the window and not only beyond Mercator's limit of latitude.
    is_cropped = bool((np.abs(P[beyond, 1]) < MERCATOR_TOP).any())
    marked = not is_cropped or extent == "data" or beyond.mean() <= _MAX_MARKED
    if beyond.any():
        where = "farther off" if is_cropped else "beyond 85.05°"
        where += ", at the edge (triangles)" if marked else ""
        reasons = [where]
        if is_cropped and style.advice:
            reasons.append(style.advice)
        notes.append(_count_note(beyond, "; ".join(reasons)))
    if style.legend_location == ON_DATA and isinstance(coloring, Categories):
        groups = coloring
        if coloring.missing.any():
            notes.append(_count_note(coloring.missing, f"{coloring.missing_label} (grey)"))
    chart.write_note(ax, notes)
    _draw_legend(ax, coloring, style, new=is_new)
    legend.make_room(ax)
    marks.draw(ax, P, coloring, style, window=window, marked=marked, far=far)
    if groups is not None and groups.present:
        # Names of groups beyond the map are at its edge, as points are.
        places = np.clip(P, window.inner_low, window.inner_high)
        _write_names(ax, groups, places, notes, style, shown=~beyond | marked, far=far)
    return ax


def draw_plane(
    P: Floats, coloring: Coloring, style: Style, ax: Axes, groups: Categories | None = None
) -> None:
    """Like `draw_map`, for an embedding in the plane."""
    window = plane_window(P)
    chart.draw_plane(check_axes(ax), window)
    legend.make_room(ax)
    marks.draw(ax, P, coloring, style, window=window)
    if groups is not None and groups.present:
        _write_names(ax, groups, P, [], style)


def check_axes(ax: Any) -> Axes:
    """Return `ax` if it is plain matplotlib Axes, else raise ValueError."""
    if getattr(ax, "name", None) != "rectilinear":
        raise ValueError(f"ax must be plain matplotlib Axes, got {ax!r}.")
    axes: Axes = ax
    return axes


def _draw_legend(ax: Axes, coloring: Coloring, style: Style, *, new: bool) -> None:
    location = style.legend_location
    if location is None or (location == ON_DATA and isinstance(coloring, Categories)):
        return
    if not style.colorbar and isinstance(coloring, Scale):
        return
    font = {"size": style.fontsize, "weight": style.fontweight}
    font = {name: value for name, value in font.items() if value is not None}
    if location in (BESIDE, ON_DATA):
        legend.draw(ax, coloring, new=new, font=font, max_share=style.legend_share)
    else:
        legend.draw_inside(ax, coloring, location, font=font)


def _write_names(
    ax: Axes,
    groups: Categories,
    points: Floats,
    notes: list[str],
    style: Style,
    **visible: NDArray[np.bool_],
) -> None:
    """Write the names of groups; a note below the map counts those that do not fit."""
    members = groups.members()
    names = legend.shortened(groups.shown())
    font_options = {
        "fontsize": style.fontsize,
        "fontweight": style.fontweight,
        "halo": style.fontoutline,
    }
    font = {name: value for name, value in font_options.items() if value is not None}
    options: dict[str, Any] = {**visible, **font}
    artists, n_lost = labels.write(ax, names, members, points, **options)
    if n_lost:
        for artist in artists:
            artist.remove()
        chart.write_note(ax, [*notes, _left_out_note(n_lost, len(members))])
        legend.make_room(ax)  # the note needs room, too, and may displace another name
        _, n_lost = labels.write(ax, names, members, points, **options)
        ax.set_xlabel("")  # remove the first note
        chart.write_note(ax, [*notes, _left_out_note(n_lost, len(members))] if n_lost else notes)


def _left_out_note(n: int, total: int) -> str:
    verb = "is" if n == 1 else "are"
    return f"{n:,} of {total:,} names {verb} left out for lack of space."


def _count_note(mask: NDArray[np.bool_], where: str) -> str:
    verb = "is" if mask.sum() == 1 else "are"
    return f"{mask.sum():,} of {len(mask):,} points {verb} {where}."
