"""Legends and colour bars beside the axes, never upon them, and the room they need."""

from __future__ import annotations

from typing import Any

from ._color import Categories, Coloring, Scale
from ._palette import MISSING

# The most entries of a legend; what is left out is counted in its last line.
_MOST = 60
_GAP = 10  # points between the axes' own decorations and the legend


def draw(ax: Any, shades: Coloring, *, whole_figure: bool = False) -> None:
    """Draw what tells the colours, to the right of the axes or of the whole figure."""
    missing = shades.missing
    beside = _beside(ax)
    names, colors = _entries(shades) if isinstance(shades, Categories) else ([], [])
    bar = isinstance(shades, Scale) and not missing.all()
    if isinstance(shades, Scale) and bar:
        _draw_bar(ax, shades, None if whole_figure else beside)
    if missing.any():
        names.append(f"missing ({missing.sum():,})")
        colors.append(MISSING)
    if names:
        title = None if bar else shades.title
        _draw_list(ax, names, colors, title, bar, None if whole_figure else beside)


def _entries(shades: Categories) -> tuple[list[str], list[Any]]:
    codes = shades.present
    shown = codes if len(codes) <= _MOST else codes[: _MOST - 1]
    names = [shades.names[code] for code in shown]
    colors = [shades.colors[code] for code in shown]
    if len(shown) < len(codes):
        names.append(f"and {len(codes) - len(shown)} more")
        colors.append("none")
    return names, colors


def _draw_list(
    ax: Any, names: list[str], colors: list[Any], title: str | None, low: bool, beside: Any
) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=5, color=color, markeredgewidth=0)
        for color in colors
    ]
    style = {
        "fontsize": "small",
        "frameon": False,
        "handletextpad": 0.2,
        "columnspacing": 1.0,
        "borderpad": 0,
        "borderaxespad": 0,
        "labelspacing": 0.35,
    }
    height = ax.bbox.height if beside else ax.figure.bbox.height
    rows = max(int(height * 72 / ax.figure.dpi / 13), 1)
    style["ncols"] = -(-len(names) // rows)
    # Matplotlib leaves out names that begin with an underscore: they are set afterwards.
    blank = ["."] * len(names)
    if beside is None:
        legend = ax.figure.legend(handles, blank, loc="outside center right", **style)
    else:
        legend = ax.legend(
            handles,
            blank,
            loc="lower left" if low else "center left",
            bbox_to_anchor=(1, 0 if low else 0.5),
            bbox_transform=beside,
            **style,
        )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)
    if title:
        legend.set_title(title, prop={"size": "small"})
        legend.get_title().set_parse_math(False)


def _draw_bar(ax: Any, shades: Scale, beside: Any) -> None:
    style = {"extend": shades.extend}
    figure = ax.figure
    if beside is None:
        bar = figure.colorbar(shades.mappable(), ax=figure.axes, shrink=0.7, aspect=25, **style)
    else:
        bottom = 0.16 if shades.missing.any() else 0.04
        box = ax.inset_axes((1, bottom, 0.022, 0.96 - bottom), transform=beside)
        bar = figure.colorbar(shades.mappable(), cax=box, **style)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="small", length=2.5, width=0.5)
    if shades.title:
        bar.set_label(shades.title, fontsize="small", parse_math=False)


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
    axes give way, so that neither a neighbour nor the figure's edge cuts the legend.
    """
    figure = ax.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        ax.apply_aspect()
        return
    slot = ax.get_position(original=True)
    for _ in range(2):  # a narrower map is lower, too, and may want a narrower legend's place
        ax.apply_aspect()
        drawn = ax.get_tightbbox()
        over = drawn.x1 / figure.bbox.width - slot.x1
        own = ax.get_position(original=True)
        if over > 0:
            ax.set_position([own.x0, own.y0, max(own.width - over, 0.1 * slot.width), own.height])
    ax.apply_aspect()
