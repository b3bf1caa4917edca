"""Legends and colour bars beside the axes, and the room they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._data.text import well_formed
from .chart import is_narrow
from .colors import Categories, Coloring, Scale

_GAP = 10  # space between the tick labels of the axes and the legend, in points
# Height of a row of a legend at this font size ("small"), in points.
_ROW_HEIGHT, _ROW_FONT_SIZE = 13, 8.33
_MIN_LETTERS, _MAX_LETTERS = 8, 60  # range of the length of a shortened name
MAX_SHARE = 0.245  # largest fraction of the width of the figure for a legend
_RESERVED_WIDTH = 1.2  # width that a new figure has for a legend, in inches
_MAX_ENTRIES = 60  # maximum number of entries; one of them counts the names left out

Entry = tuple[str, Any]  # a name and its colour


def entries(coloring: Coloring) -> tuple[list[Entry], list[Entry]]:
    """The classes that occur, and an entry that counts missing values, if any."""
    names: list[Entry] = []
    if isinstance(coloring, Categories):
        colors = [coloring.colors[code] for code in coloring.present]
        names = list(zip(coloring.shown(), colors, strict=True))
    n_missing = int(coloring.missing.sum())
    label = f"{coloring.missing_label} ({n_missing:,})"
    return names, [(label, coloring.missing_color)] if n_missing else []


def draw(
    ax: Any,
    coloring: Coloring,
    *,
    new: bool = False,
    whole_figure: bool = False,
    font: Mapping[str, Any] | None = None,
    max_share: float = MAX_SHARE,
) -> None:
    """Draw a legend or colour bar to the right of the axes or of the whole figure.

    A legend takes at most `max_share` of the width of the figure. A new figure is widened up to that share;
    if this is not enough, long names are shortened, and entries that do not fit are counted.
    """
    transform = None if whole_figure else _right_of(ax)
    title = coloring.title
    font = _font(ax, font)
    if isinstance(coloring, Scale) and not coloring.missing.all():
        _draw_bar(ax, coloring, transform, font)
        title = None
    names, missing = entries(coloring)
    names = _shorten_names(names, _MAX_LETTERS)
    if not names and not missing:
        return
    height = (ax if transform else ax.figure).bbox.height * 72 / ax.figure.dpi
    rows = max(int(height / _row_height(font)) - bool(title), 1)
    columns = -(-min(len(names) + len(missing), _MAX_ENTRIES) // rows)
    at_bottom = isinstance(coloring, Scale) and title is None
    legend: Any = None

    def redraw(columns: int, letters: int) -> bool:
        """Redraw the legend with these numbers of columns and letters; return whether it is narrow enough."""
        nonlocal legend
        if legend is not None:
            legend.remove()
        shown_entries = _truncate(_shorten_names(names, letters), missing, rows * columns)
        title_text = title and shortened([title], letters)[0]
        legend = _draw_list(ax, shown_entries, columns, title_text, at_bottom, transform, font)
        return not _too_wide(legend, ax, new, max_share)

    while not redraw(columns, _MAX_LETTERS) and columns > 1:
        columns -= 1
    if _too_wide(legend, ax, new, max_share):
        # The most letters that fit, by bisection: measuring a legend is slow.
        fits, too_many = _MIN_LETTERS, 1 + max(len(text) for text in (*dict(names), title or ""))
        while fits + 1 < too_many:
            letters = (fits + too_many) // 2
            fits, too_many = (letters, too_many) if redraw(1, letters) else (fits, letters)
        redraw(1, fits)
    if new:
        wider = legend.get_window_extent().width / ax.figure.dpi - _RESERVED_WIDTH
        ax.figure.set_figwidth(ax.figure.get_figwidth() + max(wider, 0))


def draw_inside(
    ax: Any, coloring: Coloring, loc: str, font: Mapping[str, Any] | None = None
) -> None:
    """Draw a legend at one of matplotlib's locations inside the axes; a colour bar is drawn beside them."""
    if isinstance(coloring, Scale):
        draw(ax, coloring, font=font)
        return
    names, missing = entries(coloring)
    font = _font(ax, font)
    rows = max(
        int(0.9 * ax.bbox.height * 72 / ax.figure.dpi / _row_height(font)) - bool(coloring.title), 1
    )
    if names or missing:
        legend = _draw_list(
            ax,
            _truncate(_shorten_names(names, _MAX_LETTERS), missing, rows),
            1,
            coloring.title,
            False,
            None,
            font,
            loc,
        )
        legend.set_frame_on(True)
        legend.get_frame().set(edgecolor="none", alpha=0.8)


def _font(ax: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Matplotlib's properties of the text."""
    return {"size": "x-small" if is_narrow(ax) else "small", **(given or {})}


def _row_height(font: Mapping[str, Any]) -> float:
    """Height of a row of a legend, in points."""
    from matplotlib.font_manager import FontProperties

    return float(_ROW_HEIGHT * FontProperties(**font).get_size_in_points() / _ROW_FONT_SIZE)


def _too_wide(legend: Any, ax: Any, new: bool, max_share: float) -> bool:
    """Whether a legend would take more than `max_share` of the final width of the figure."""
    width = legend.get_window_extent().width
    added = max(width - _RESERVED_WIDTH * ax.figure.dpi, 0) if new else width
    whole = (ax.figure if new else ax).bbox.width + added
    return bool(width > max_share * whole)


def _title(text: str) -> str:
    return shortened([well_formed(text)])[0]


def _shorten_names(names: list[Entry], max_letters: int) -> list[Entry]:
    short = shortened([name for name, _ in names], max_letters)
    return [(name, color) for name, (_, color) in zip(short, names, strict=True)]


def shortened(names: Sequence[str], max_letters: int = _MAX_LETTERS) -> list[str]:
    """Shorten names to `max_letters`: at the end, or in the middle if names have the same beginning."""
    dots, half = "\N{HORIZONTAL ELLIPSIS}", max_letters // 2
    starts = Counter(name[: max_letters - 1] for name in names if len(name) > max_letters)

    def shorten(name: str) -> str:
        if len(name) <= max_letters:
            return name
        if starts[name[: max_letters - 1]] > 1:
            return name[:half] + dots + name[half + 1 - max_letters :]
        return name[: max_letters - 1] + dots

    return [shorten(name) for name in names]


def _truncate(names: list[Entry], missing: list[Entry], max_entries: int) -> list[Entry]:
    """At most `max_entries` entries, including the missing values and a count of the names left out."""
    max_entries = min(max_entries, _MAX_ENTRIES)
    if len(names) + len(missing) <= max_entries:
        return names + missing
    n_kept = max(max_entries - len(missing) - 1, 0)
    return [*names[:n_kept], (f"and {len(names) - n_kept:,} more", "none"), *missing]


def _draw_list(
    ax: Any,
    entries: list[Entry],
    columns: int,
    title: str | None,
    at_bottom: bool,
    transform: Any,
    font: Mapping[str, Any],
    loc: str | None = None,
) -> Any:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=5, color=color, markeredgewidth=0)
        for _, color in entries
    ]
    # Matplotlib leaves out names that begin with an underscore, so names are set afterwards.
    placeholders = ["."] * len(entries)
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
            handles, placeholders, loc=loc, **style | {"borderpad": 0.4, "borderaxespad": 0.4}
        )
    elif transform is None:
        legend = ax.figure.legend(handles, placeholders, loc="outside center right", **style)
    else:
        style |= {"bbox_to_anchor": (1, 0 if at_bottom else 0.5), "bbox_transform": transform}
        legend = ax.legend(
            handles, placeholders, loc="lower left" if at_bottom else "center left", **style
        )
    for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
        text.set(text=name, parse_math=False)
    if title:
        legend.set_title(_title(title), prop={"size": font["size"]})
        legend.get_title().set_parse_math(False)
    return legend


def _draw_bar(ax: Any, coloring: Scale, transform: Any, font: Mapping[str, Any]) -> None:
    style: dict[str, Any] = {"extend": coloring.extend}
    if coloring.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        style["ticks"] = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
        style["format"] = ConciseDateFormatter(style["ticks"])  # type: ignore[no-untyped-call]
    figure = ax.figure
    if transform is None:
        bar = figure.colorbar(coloring.mappable(), ax=figure.axes, shrink=0.7, aspect=25, **style)
    else:
        # Height of the row of missing values.
        row_height = _ROW_HEIGHT * ax.figure.dpi / 72 / ax.bbox.height
        bottom = 0.04 + (min(1.2 * row_height, 0.4) if coloring.missing.any() else 0)
        cax = ax.inset_axes((1, bottom, 0.022, 0.96 - bottom), transform=transform)
        bar = figure.colorbar(coloring.mappable(), cax=cax, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=font["size"], length=2.5, width=0.5)
    bar.ax.yaxis.get_offset_text().set(size=font["size"], ha="left")
    if coloring.title:
        bar.set_label(_title(coloring.title), fontsize=font["size"], parse_math=False)


def _right_of(ax: Any) -> Any:
    """Transform from coordinates of the axes, shifted to the right of the text at their right edge."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.figure
    boxes = [child.get_tightbbox() for child in ax.child_axes]
    right_end = max([box.x1 for box in boxes if box is not None], default=ax.bbox.x1)
    points = max(right_end - ax.bbox.x1, 0) * 72 / figure.dpi + _GAP
    return ax.transAxes + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def make_room(ax: Any) -> None:
    """Move the axes to their final position, with room for the legend and the note.

    A layout engine makes room for the legend. Without one, the axes are shrunk so that neither other axes
    nor the edge of the figure cut the legend or a note.
    """
    root = ax.figure.figure  # the figure of a subfigure
    engine = root.get_layout_engine()
    if engine is not None:
        for _ in range(4):  # the axes move as their tick labels do
            before = ax.bbox.get_points()
            engine.execute(root)
            ax.apply_aspect()
            if abs(ax.bbox.get_points() - before).max() < 1:
                return
        return
    original = ax.get_position(original=True)
    for _ in range(4):  # a narrower map is also lower, which moves the text around it
        ax.apply_aspect()
        extent = ax.get_tightbbox().transformed(ax.figure.transSubfigure.inverted())
        right, below = max(extent.x1 - original.x1, 0), max(0.01 - extent.y0, 0)
        box = ax.get_position(original=True)
        width = max(box.width - right, 0.1 * original.width)
        height = max(box.height - below, 0.1 * original.height)
        ax.set_position([box.x0, box.y1 - height, width, height])
    ax.apply_aspect()
