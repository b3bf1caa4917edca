"""Colours, panels and files with the parameters of scanpy, for `mercat.pl`.

scanpy is never imported, but its settings apply if it is loaded.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.checks import check_choice
from .colors import (
    Coloring,
    Scale,
    color_categories,
    color_numbers,
    make_coloring,
    read_column,
    rgba_of,
)
from .figure import grid, panel_size
from .maps import BESIDE, ON_DATA, Style, check_positive

logger = logging.getLogger(__name__)

_LEGEND_LOCATIONS = (
    BESIDE,
    ON_DATA,
    "none",
    "best",
    *(f"{side} {end}" for side in ("upper", "lower", "center") for end in ("left", "right")),
    "upper center",
    "lower center",
    "center",
    "right",
)
# Scanpy's default size of a dot is this divided by the number of cells.
_SCANPY_TOTAL_SIZE = 120_000
_SIZE_PER_AREA = 4  # scanpy's size of a dot, relative to ours
_MIN_SIZE, _MAX_SIZE = 0.25, 36.0  # range of the default size, in points squared
_SCANPY_PANEL, _PANEL = (6.4, 4.8), (5.0, 3.8)  # inches, if not set by the user
_LEGEND_SHARE = 0.36  # largest fraction of a panel's width for its legend
_FORMATS = (".svg", ".pdf", ".png")


def panel_keys(color: Any, ax: Any) -> tuple[list[str | None], bool]:
    """Column or gene of each panel, and whether `color` is a single one and not a list."""
    single = color is None or isinstance(color, str)
    keys: list[str | None] = [color] if single else list(color)
    if not keys:
        raise ValueError("color must name at least one column or gene, got an empty list.")
    if ax is not None and not single:
        raise ValueError(f"ax must be None for a list of colors, got {ax!r}.")
    return keys, single


def resolve_alias(**names: Any) -> Any:
    """Value of a parameter that has two names; raise ValueError if both are given."""
    (one, value), (other, other_value) = names.items()
    if value is not None and other_value is not None:
        raise ValueError(f"{one} and {other} must not both be given: they are the same.")
    return other_value if value is None else value


def per_panel(name: str, value: Any, n: int, *, whole: bool = False) -> list[Any]:
    """A list of n values, one per panel, from such a list or from one value.

    One value is repeated for all panels; if `whole`, it is accepted only for a single panel.
    """
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        if whole and n > 1:
            raise ValueError(f"{name} must be a list of {n}, one for each panel, got {value!r}.")
        return [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must be one value for all panels or a list of {n}, got a list of {len(value)}."
        )
    return list(value)


def all_per_panel(parameters: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """The parameters of each of n panels; each value is a list of one per panel, or one for all."""
    columns = [per_panel(name, value, n) for name, value in parameters.items()]
    return [dict(zip(parameters, values, strict=True)) for values in zip(*columns, strict=True)]


@dataclass(frozen=True)
class ColorOptions:
    """Parameters of scanpy that determine colours."""

    cmap: Any = None
    palette: Any = None
    groups: Sequence[str] | None = None
    na_color: Any = "lightgray"
    vmin: Any = None
    vmax: Any = None
    vcenter: Any = None

    def apply(self, column: Any, masked: NDArray[np.bool_] | None, n: int, stored: Any) -> Coloring:
        """The colours of n cells by the values of a column, or one colour for all if it is None.

        Cells where `masked` is True are coloured as missing. `stored` are scanpy's colours of the categories,
        by name.
        """
        rgba_of(self.na_color, "na_color")
        if column is None:
            return make_coloring(None, n)
        entries = replace(read_column(column, n), title=None, missing_color=self.na_color)
        if isinstance(entries, Scale):
            return self._scale(entries, masked)
        colored = color_categories(entries, stored if self.palette is None else self.palette)
        if masked is not None:
            colored = replace(
                colored, codes=np.where(masked, -1, colored.codes), missing_label="other"
            )
        return colored if self.groups is None else colored.only([str(name) for name in self.groups])

    def _scale(self, numbers: Scale, masked: NDArray[np.bool_] | None) -> Scale:
        import matplotlib

        values = numbers.values if masked is None else np.where(masked, np.nan, numbers.values)
        numbers = replace(
            numbers, values=values, missing_label="missing" if masked is None else "other"
        )
        palette = self.palette if isinstance(self.palette, str) else None
        cmap = self.cmap or palette or matplotlib.rcParams["image.cmap"]
        bounds = [_bound(name, getattr(self, name), values) for name in ("vmin", "vmax", "vcenter")]
        low, high = color_numbers(numbers, cmap, None).limits
        vmin, vmax, center = bounds
        low, high = low if vmin is None else vmin, high if vmax is None else vmax
        # All values are equal, or the given bound lies beyond them.
        if low >= high and (vmin is None or vmax is None):
            width = 0.1 * abs(low) or 0.1
            low, high = (low, low + width) if vmin is not None else (high - width, high)
        if low >= high:
            raise ValueError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
        if center is not None and not low < center < high:
            raise ValueError(f"vcenter must lie between {low:g} and {high:g}, got {center:g}.")
        return replace(color_numbers(numbers, cmap, None), limits=(low, high), center=center)


def _bound(name: str, bound: Any, values: NDArray[np.float64]) -> float | None:
    """A bound given as a number, a percentile such as "p99", or a function of the values."""
    known = values[~np.isnan(values)]
    if bound is None or len(known) == 0:
        return None
    try:
        if callable(bound):
            return float(bound(known))
        if isinstance(bound, str) and bound.startswith("p") and 0 <= float(bound[1:]) <= 100:
            return float(np.percentile(known, float(bound[1:])))
        return float(bound)
    except (TypeError, ValueError):
        raise ValueError(
            f'{name} must be a number, a percentile such as "p99", or a function, got {bound!r}.'
        ) from None


@dataclass(frozen=True)
class ScanpyStyle:
    """Style of dots, legends and frames in scanpy's plots."""

    n_cells: int
    size: float | None = None
    alpha: float | None = None
    sort_order: bool = True
    outline: bool = False
    legend_location: str | None = BESIDE
    fontsize: Any = None
    fontweight: Any = None
    fontoutline: float | None = None
    colorbar_location: str | None = "right"
    frame: bool | None = None

    def style(self, *, single: bool) -> Style:
        """Style of a panel; a `single` one has the scale that shows Mercator's stretch."""
        location = "none" if self.legend_location is None else self.legend_location
        check_choice("legend_loc", location, _LEGEND_LOCATIONS)
        if self.colorbar_location not in ("right", None):
            raise ValueError(
                f"colorbar_loc must be 'right' or None, got {self.colorbar_location!r}."
            )
        check_positive("size", self.size)
        check_positive("legend_fontoutline", self.fontoutline)
        width, height = panel_size() or _PANEL
        relative_area = width * height / np.prod(_SCANPY_PANEL)
        auto = float(
            np.clip(
                relative_area * _SCANPY_TOTAL_SIZE / _SIZE_PER_AREA / self.n_cells,
                _MIN_SIZE,
                _MAX_SIZE,
            )
        )
        return Style(
            size=auto if self.size is None else self.size / _SIZE_PER_AREA,
            alpha=1.0 if self.alpha is None else self.alpha,
            sort_order=self.sort_order,
            outline=self.outline,
            frame=bool(_setting("_frameon", True)) if self.frame is None else self.frame,
            stretch=single,
            legend_location=None if location == "none" else location,
            fontsize=self.fontsize,
            fontweight=self.fontweight,
            fontoutline=self.fontoutline,
            colorbar=self.colorbar_location is not None,
            legend_share=_LEGEND_SHARE,
        )


def panels(
    n: int, *, ncols: int | None, wspace: float | None, ax: Any, single: bool
) -> Sequence[Any]:
    """Axes for n panels; None if a single map creates its own figure."""
    if ncols is not None and not (isinstance(ncols, int) and ncols >= 1):
        raise ValueError(f"ncols must be an integer of at least 1, got {ncols!r}.")
    if ax is not None or (single and panel_size() is None):
        return [ax]
    return list(grid(n, ncols=ncols, wspace=wspace, size=panel_size() or _PANEL))


def save_and_show(
    axes: list[Any],
    basis: str,
    *,
    single: bool,
    show: bool | None,
    save: bool | str | os.PathLike[str] | None,
    return_fig: bool | None,
) -> Any:
    """Save and show the figure as requested; return figure, axes or None."""
    figure = axes[0].figure
    if save:
        path = _path(basis.removeprefix("X_"), save)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, bbox_inches="tight")
        logger.info("The figure is saved to %s.", path)
    if show:
        import matplotlib.pyplot as plt

        plt.show()
        return None
    if return_fig:
        return figure
    return axes[0] if single else np.array(axes, dtype=object)


def _path(basis: str, save: bool | str | os.PathLike[str]) -> Path:
    """The path where scanpy would save a figure, or the given path."""
    if isinstance(save, os.PathLike):
        return Path(save)
    end = save if isinstance(save, str) else ""
    if not end.endswith(_FORMATS):
        end += f"{_setting('plot_suffix', '')}.{_setting('file_format_figs', 'pdf')}"
    return Path(_setting("figdir", "figures")) / f"{basis}{end}"


def _setting(name: str, otherwise: Any) -> Any:
    """A setting of scanpy, if scanpy is loaded."""
    return getattr(getattr(sys.modules.get("scanpy"), "settings", None), name, otherwise)
