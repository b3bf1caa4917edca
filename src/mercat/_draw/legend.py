"""Legends and colour bars beside the axes, never upon them, and the room they need."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .chart import is_narrow
from .colors import Categories, Coloring, Scale
from .palette import MISSING

_GAP = 10  # points between the axes' own decorations and the legend
_ROW = 13  # points that a row of a legend is high
_SHORTEST = 8  # letters of a name that are left at least
_MOST = 60  # entries of a legend; those left out are counted in its last but one row

Entry = tuple[str, Any]  # a name and its colour


def entries(shades: Coloring) -> tuple[list[Entry], list[Entry]]:
    """The classes that occur, and one entry more that counts missing values where there are any."""
    names: list[Entry] = []
    if isinstance(shades, Categories):
        names = [(shades.names[code], shades.colors[code]) for code in shades.present]
    n_missing = int(shades.missing.sum())
    return names, [(f"missing ({n_missing:,})", MISSING)] if n_missing else []


def draw(ax: Any, shades: Coloring, *, new: bool = False, whole_figure: bool = False) -> None:
    """Draw what tells the colours, to the right of the axes or of the whole figure.

    A new figure is made wider for a wide legend; on given axes, a legend takes two fifths of
    their width at most: it counts the entries for which there is no room, and cuts long names.
    """
    beside = None if whole_figure else _beside(ax)
    title = shades.title
    if isinstance(shades, Scale) and not shades.missing.all():
        _draw_bar(ax, shades, beside)
        title = None
    names, rest = entries(shades)
    if not names and not rest:
        return
    height = (ax if beside else ax.figure).bbox.height * 72 / ax.figure.dpi
    rows = max(int(height / _ROW) - bool(title), 1)
    columns = -(-min(len(names) + len(rest), _MOST) // rows)
    low = isinstance(shades, Scale) and title is None
    legend = _draw_list(ax, _fitting(names, rest, rows * columns), columns, title, low, beside)
    longest = max((len(name) for name, _ in names), default=0)
    while not new and _too_wide(legend, ax) and (columns > 1 or longest > _SHORTEST):
        legend.remove()
        columns, longest = (columns - 1, longest) if columns > 1 else (1, longest - 1)
        short = _shortened([name for name, _ in names], longest)
        cut = [(name, color) for name, (_, color) in zip(short, names, strict=True)]
        legend = _draw_list(ax, _fitting(cut, rest, rows * columns), columns, title, low, beside)
    if new:
        wider = legend.get_window_extent().width / ax.figure.dpi - 1.2
        ax.figure.set_figwidth(ax.figure.get_figwidth() + max(wider, 0))


def _font_size(ax: Any) -> str:
    return "x-small" if is_narrow(ax) else "small"


def _too_wide(legend: Any, ax: Any) -> bool:
    return bool(legend.get_window_extent().width > 0.4 * ax.bbox.width)


def _shortened(names: list[str], most: int) -> list[str]:
    """Names of at most so many letters: of longer ones the end is left out, or the middle if ends differ."""
    dots, half = "\N{HORIZONTAL ELLIPSIS}", most // 2
    begun = Counter(name[: most - 1] for name in names if len(name) > most)

    def shortened(name: str) -> str:
        if len(name) <= most:
            return name
        if begun[name[: most - 1]] > 1:
            return name[:half] + dots + name[half + 1 - most :]
        return name[: most - 1] + dots

    return [shortened(name) for name in names]


def _fitting(names: list[Entry], rest: list[Entry], most: int) -> list[Entry]:
    """The entries, of which there are no more than this, with the rest at their end."""
    most = min(most, _MOST)
    if len(names) + len(rest) <= most:
        return names + rest
    kept = max(most - len(rest) - 1, 0)
    return [*names[:kept], (f"and {len(names) - kept:,} more", "none"), *rest]


def _draw_list(
    ax: Any, entries: list[Entry], columns: int, title: str | None, low: bool, beside: Any
) -> Any:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=5, color=color, markeredgewidth=0)
        for _, color in entries
    ]
    # Matplotlib leaves out names that begin with an underscore: they are set afterwards.
    blank = ["."] * len(entries)
    style = {
        "ncols": columns,
        "fontsize": _font_size(ax),
        "frameon": False,
        "alignment": "left",
        "handletextpad": 0.2,
        "columnspacing": 1.0,
        "borderpad": 0,
        "borderaxespad": 0,
        "labelspacing": 0.35,
    }
    if beside is None:
        legend = ax.figure.legend(handles, blank, loc="outside center right", **style)
    else:
        style |= {"bbox_to_anchor": (1, 0 if low else 0.5), "bbox_transform": beside}
        legend = ax.legend(handles, blank, loc="lower left" if low else "center left", **style)
    for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, parse_math=False)
    if title:
        legend.set_title(title, prop={"size": _font_size(ax)})
        legend.get_title().set_parse_math(False)
    return legend


def _draw_bar(ax: Any, shades: Scale, beside: Any) -> None:
    style = {"extend": shades.extend}
    figure = ax.figure
    if beside is None:
        bar = figure.colorbar(shades.mappable(), ax=figure.axes, shrink=0.7, aspect=25, **style)
    else:
        row = _ROW * ax.figure.dpi / 72 / ax.bbox.height  # that of the missing ones
        bottom = 0.04 + (min(1.2 * row, 0.4) if shades.missing.any() else 0)
        box = ax.inset_axes((1, bottom, 0.022, 0.96 - bottom), transform=beside)
        bar = figure.colorbar(shades.mappable(), cax=box, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=_font_size(ax), length=2.5, width=0.5)
    if shades.title:
        bar.set_label(shades.title, fontsize=_font_size(ax), parse_math=False)


def _beside(ax: Any) -> Any:
    """The axes' coordinates, moved to the right of what is written along the right edge."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.figure
    written = [child.get_tightbbox() for child in ax.child_axes]
    reach = max([box.x1 for box in written if box is not None], default=ax.bbox.x1)
    points = max(reach - ax.bbox.x1, 0) * 72 / figure.dpi + _GAP
    return ax.transAxes + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def settle(ax: Any) -> None:
    """Give the axes the place they will have when drawn.

    A figure with a layout engine makes room for the legend by itself. In one without, the
    axes give way, so that neither a neighbour nor the figure's edge cuts the legend or a note.
    """
    root = ax.figure.figure  # of a subfigure, the figure it is part of
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)
        ax.apply_aspect()
        return
    slot = ax.get_position(original=True)
    for _ in range(4):  # a narrower map is lower too, which moves what is written around it
        ax.apply_aspect()
        drawn = ax.get_tightbbox().transformed(ax.figure.transSubfigure.inverted())
        right, under = max(drawn.x1 - slot.x1, 0), max(0.01 - drawn.y0, 0)
        own = ax.get_position(original=True)
        width = max(own.width - right, 0.1 * slot.width)
        height = max(own.height - under, 0.1 * slot.height)
        ax.set_position([own.x0, own.y1 - height, width, height])
    ax.apply_aspect()
