"""Legends and colour bars beside the axes, and the room they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._data.text import well_formed
from .chart import is_narrow
from .colors import Categories, Coloring, Scale

_GAP = 10  # points between the axes' own decorations and the legend
_ROW = 13  # height of a row of a legend, in points
_SHORTEST, _LONGEST = 8, 60  # minimum and maximum number of letters of a shortened name
SHARE = 0.245  # largest fraction of the width of the figure for a legend
_EXPECTED = 1.2  # inches: width that a new figure has for a legend
_SMALL_TEXT = 8.33  # points: font size in such a row
_MOST = 60  # maximum number of entries of a legend; one of them counts the names left out

Entry = tuple[str, Any]  # a name and its colour


def entries(shades: Coloring) -> tuple[list[Entry], list[Entry]]:
    """The classes that occur, and an entry that counts missing values, if any."""
    names: list[Entry] = []
    if isinstance(shades, Categories):
        colors = [shades.colors[code] for code in shades.present]
        names = list(zip(shades.shown(), colors, strict=True))
    n_missing = int(shades.missing.sum())
    rest = f"{shades.rest} ({n_missing:,})"
    return names, [(rest, shades.missing_color)] if n_missing else []


def draw(
    ax: Any,
    shades: Coloring,
    *,
    new: bool = False,
    whole_figure: bool = False,
    font: Mapping[str, Any] | None = None,
    share: float = SHARE,
) -> None:
    """Draw a legend or colour bar to the right of the axes or of the whole figure.

    A legend takes at most `share` of the width of the figure. A new figure is widened up to that; beyond,
    long names are shortened, and entries that do not fit are counted.
    """
    beside = None if whole_figure else _beside(ax)
    title = shades.title
    font = _font(ax, font)
    if isinstance(shades, Scale) and not shades.missing.all():
        _draw_bar(ax, shades, beside, font)
        title = None
    names, rest = entries(shades)
    names = _cut(names, _LONGEST)
    if not names and not rest:
        return
    height = (ax if beside else ax.figure).bbox.height * 72 / ax.figure.dpi
    rows = max(int(height / _row(font)) - bool(title), 1)
    columns = -(-min(len(names) + len(rest), _MOST) // rows)
    at_bottom = isinstance(shades, Scale) and title is None
    legend: Any = None

    def listed(columns: int, letters: int) -> bool:
        """Redraw it with these numbers of columns and letters; return whether it is narrow enough."""
        nonlocal legend
        if legend is not None:
            legend.remove()
        shown = _fitting(_cut(names, letters), rest, rows * columns)
        head = title and shortened([title], letters)[0]
        legend = _draw_list(ax, shown, columns, head, at_bottom, beside, font)
        return not _too_wide(legend, ax, new, share)

    while not listed(columns, _LONGEST) and columns > 1:
        columns -= 1
    if _too_wide(legend, ax, new, share):
        # The most letters that fit, by bisection: measuring a legend is slow.
        fits, too_many = _SHORTEST, 1 + max(len(text) for text in (*dict(names), title or ""))
        while fits + 1 < too_many:
            letters = (fits + too_many) // 2
            fits, too_many = (letters, too_many) if listed(1, letters) else (fits, letters)
        listed(1, fits)
    if new:
        wider = legend.get_window_extent().width / ax.figure.dpi - _EXPECTED
        ax.figure.set_figwidth(ax.figure.get_figwidth() + max(wider, 0))


def draw_inside(ax: Any, shades: Coloring, loc: str, font: Mapping[str, Any] | None = None) -> None:
    """Draw a legend at one of matplotlib's locations inside the axes; a colour bar is drawn beside them."""
    if isinstance(shades, Scale):
        draw(ax, shades, font=font)
        return
    names, rest = entries(shades)
    font = _font(ax, font)
    rows = max(int(0.9 * ax.bbox.height * 72 / ax.figure.dpi / _row(font)) - bool(shades.title), 1)
    if names or rest:
        legend = _draw_list(
            ax, _fitting(_cut(names, _LONGEST), rest, rows), 1, shades.title, False, None, font, loc
        )
        legend.set_frame_on(True)
        legend.get_frame().set(edgecolor="none", alpha=0.8)


def _font(ax: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Matplotlib's properties of the text."""
    return {"size": "x-small" if is_narrow(ax) else "small", **(given or {})}


def _row(font: Mapping[str, Any]) -> float:
    """Height of a row of a legend, in points."""
    from matplotlib.font_manager import FontProperties

    return float(_ROW * FontProperties(**font).get_size_in_points() / _SMALL_TEXT)


def _too_wide(legend: Any, ax: Any, new: bool, share: float) -> bool:
    """Whether a legend would take more than `share` of the final width of the figure."""
    width = legend.get_window_extent().width
    grown = max(width - _EXPECTED * ax.figure.dpi, 0) if new else width
    whole = (ax.figure if new else ax).bbox.width + grown
    return bool(width > share * whole)


def _title(text: str) -> str:
    return shortened([well_formed(text)])[0]


def _cut(names: list[Entry], most: int) -> list[Entry]:
    short = shortened([name for name, _ in names], most)
    return [(name, color) for name, (_, color) in zip(short, names, strict=True)]


def shortened(names: Sequence[str], most: int = _LONGEST) -> list[str]:
    """Shorten names to `most` letters: at the end, or in the middle for names that start alike."""
    dots, half = "\N{HORIZONTAL ELLIPSIS}", most // 2
    starts = Counter(name[: most - 1] for name in names if len(name) > most)

    def short(name: str) -> str:
        if len(name) <= most:
            return name
        if starts[name[: most - 1]] > 1:
            return name[:half] + dots + name[half + 1 - most :]
        return name[: most - 1] + dots

    return [short(name) for name in names]


def _fitting(names: list[Entry], rest: list[Entry], most: int) -> list[Entry]:
    """At most this many entries, `rest` included; one of them counts the names left out."""
    most = min(most, _MOST)
    if len(names) + len(rest) <= most:
        return names + rest
    kept = max(most - len(rest) - 1, 0)
    return [*names[:kept], (f"and {len(names) - kept:,} more", "none"), *rest]


def _draw_list(
    ax: Any,
    entries: list[Entry],
    columns: int,
    title: str | None,
    at_bottom: bool,
    beside: Any,
    font: Mapping[str, Any],
    loc: str | None = None,
) -> Any:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=5, color=color, markeredgewidth=0)
        for _, color in entries
    ]
    # Matplotlib leaves out names that begin with an underscore, so names are set afterwards.
    blank = ["."] * len(entries)
    style = {
        "ncols": columns,
        "prop": dict(font),
        "frameon": False,
        "alignment": "left",
        "handletextpad": 0.2,
        "columnspacing": 0.7,
        "borderpad": 0,
        "borderaxespad": 0,
        "labelspacing": 0.35,
    }
    if loc is not None:
        legend = ax.legend(
            handles, blank, loc=loc, **style | {"borderpad": 0.4, "borderaxespad": 0.4}
        )
    elif beside is None:
        legend = ax.figure.legend(handles, blank, loc="outside center right", **style)
    else:
        style |= {"bbox_to_anchor": (1, 0 if at_bottom else 0.5), "bbox_transform": beside}
        legend = ax.legend(
            handles, blank, loc="lower left" if at_bottom else "center left", **style
        )
    for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, parse_math=False)
    if title:
        legend.set_title(_title(title), prop={"size": font["size"]})
        legend.get_title().set_parse_math(False)
    return legend


def _draw_bar(ax: Any, shades: Scale, beside: Any, font: Mapping[str, Any]) -> None:
    style: dict[str, Any] = {"extend": shades.extend}
    if shades.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        style["ticks"] = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        style["format"] = ConciseDateFormatter(style["ticks"])  # type: ignore[no-untyped-call]
    figure = ax.figure
    if beside is None:
        bar = figure.colorbar(shades.mappable(), ax=figure.axes, shrink=0.7, aspect=25, **style)
    else:
        row = _ROW * ax.figure.dpi / 72 / ax.bbox.height  # of missing values
        bottom = 0.04 + (min(1.2 * row, 0.4) if shades.missing.any() else 0)
        box = ax.inset_axes((1, bottom, 0.022, 0.96 - bottom), transform=beside)
        bar = figure.colorbar(shades.mappable(), cax=box, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=font["size"], length=2.5, width=0.5)
    bar.ax.yaxis.get_offset_text().set(size=font["size"], ha="left")
    if shades.title:
        bar.set_label(_title(shades.title), fontsize=font["size"], parse_math=False)


def _beside(ax: Any) -> Any:
    """Coordinates of the axes, shifted to the right of the text along their right edge."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.figure
    written = [child.get_tightbbox() for child in ax.child_axes]
    reach = max([box.x1 for box in written if box is not None], default=ax.bbox.x1)
    points = max(reach - ax.bbox.x1, 0) * 72 / figure.dpi + _GAP
    return ax.transAxes + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def settle(ax: Any) -> None:
    """Give the axes their final position.

    A layout engine makes room for the legend. Without one, the axes are shrunk so that neither other axes
    nor the edge of the figure cut the legend or a note.
    """
    root = ax.figure.figure  # the figure of a subfigure
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)
        ax.apply_aspect()
        return
    slot = ax.get_position(original=True)
    for _ in range(4):  # a narrower map is also lower, which moves the text around it
        ax.apply_aspect()
        drawn = ax.get_tightbbox().transformed(ax.figure.transSubfigure.inverted())
        right, under = max(drawn.x1 - slot.x1, 0), max(0.01 - drawn.y0, 0)
        own = ax.get_position(original=True)
        width = max(own.width - right, 0.1 * slot.width)
        height = max(own.height - under, 0.1 * slot.height)
        ax.set_position([own.x0, own.y1 - height, width, height])
    ax.apply_aspect()
