"""Colours of points from columns of any kind.

A column becomes `Categories` or a `Scale` (numbers or dates along a colour map). Missing values are grey, and
counted in the legend.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._data.columns import declared_categories, few_values, is_missing, natural_key
from .._data.text import well_formed
from .palette import MISSING, OKABE_ITO, categorical

Floats = NDArray[np.float64]
_DATES = (np.datetime64, datetime.date)  # datetime and pandas' Timestamp are subclasses
_NUMBERS = (np.bool_, Real, Decimal)
_CONTAINERS = (list, tuple, set, frozenset, dict, np.ndarray)  # not accepted as values of a column


@dataclass
class Categories:
    """Groups by name; points with the code -1 are missing, or in no group, and labelled `missing_label`."""

    codes: NDArray[np.intp]
    names: list[str]
    title: str | None = None
    colors: Floats = field(default_factory=lambda: np.empty((0, 4)))
    missing_color: Any = MISSING
    missing_label: str = "missing"

    @property
    def missing(self) -> NDArray[np.bool_]:
        return self.codes < 0

    @property
    def present(self) -> list[int]:
        """Codes that occur, in the order of the names."""
        return np.flatnonzero(np.bincount(self.codes[self.codes >= 0])).tolist()

    def shown(self) -> list[str]:
        """Names that occur, as valid text."""
        return [well_formed(self.names[code]) for code in self.present]

    def members(self) -> list[NDArray[np.intp]]:
        """For each name that occurs, the rows that have it."""
        return [np.flatnonzero(self.codes == code) for code in self.present]

    def rgba(self) -> Floats:
        return np.vstack([self.colors, rgba_of(self.missing_color)])[self.codes]

    def hexes(self) -> list[str]:
        """The colours of all categories, "#rrggbb"."""
        from matplotlib.colors import to_hex

        return [to_hex(color) for color in self.colors]

    def only(self, groups: Sequence[str]) -> Categories:
        """Keep only these groups; points of all others are labelled "other"."""
        unknown = [name for name in groups if name not in self.names]
        if unknown:
            raise ValueError(f"groups must be among {self.names}, got {unknown[0]!r}.")
        is_kept = np.isin(np.arange(len(self.names)), [self.names.index(name) for name in groups])
        codes = np.where((self.codes >= 0) & is_kept[self.codes], self.codes, -1)
        return replace(self, codes=codes, missing_label="other")


@dataclass
class Scale:
    """Numbers between limits, along a matplotlib colour map; NaN stands for missing.

    The middle of the colour map is at `center`, if given. Dates are in matplotlib's days.
    """

    values: Floats
    title: str | None = None
    cmap: Any = None
    limits: tuple[float, float] = (0.0, 1.0)
    center: float | None = None
    missing_color: Any = MISSING
    missing_label: str = "missing"
    dates: bool = False

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)

    @property
    def extend(self) -> str:
        """Sides on which values exceed the limits: matplotlib's `extend` of a colour bar."""
        below = bool((self.values < self.limits[0]).any())
        above = bool((self.values > self.limits[1]).any())
        return {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]

    def mappable(self) -> Any:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize, TwoSlopeNorm

        low, high = self.limits
        norm = Normalize(low, high) if self.center is None else TwoSlopeNorm(self.center, low, high)
        return ScalarMappable(norm, self.cmap.with_extremes(bad=self.missing_color))

    def rgba(self) -> Floats:
        return cast(Floats, self.mappable().to_rgba(np.ma.masked_invalid(self.values)))


@dataclass
class Single:
    """One colour for all points."""

    colors: Floats
    title: None = None
    missing_color: Any = MISSING
    missing_label: str = "missing"

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.colors), dtype=bool)

    def rgba(self) -> Floats:
        return self.colors


Coloring = Categories | Scale | Single


def make_coloring(
    color: Any,
    n: int,
    *,
    palette: Any = None,
    limits: tuple[Any, Any] | None = None,
    name: str = "color",
) -> Coloring:
    """Colours of n points; `plot.map` documents the arguments."""
    if color is None or isinstance(color, str):
        if palette is not None:
            raise ValueError("palette requires color to have one value for each point.")
        rule = "be a value for each point, or a colour that matplotlib knows"
        return Single(np.tile(rgba_of(color or OKABE_ITO[0], rule=rule), (n, 1)))
    column = read_column(color, n, name)
    if isinstance(column, Categories):
        if limits is not None:
            raise ValueError("limits requires color to be numeric, got categories.")
        return color_categories(column, palette)
    return color_numbers(column, palette, limits)


def color_categories(column: Categories, palette: Any) -> Categories:
    """Give the categories the colours of a palette."""
    return replace(column, colors=_category_colors(column, palette))


def color_numbers(column: Scale, palette: Any, limits: tuple[Any, Any] | None) -> Scale:
    """Give the numbers a colour map and its limits."""
    if column.dates and limits is not None:
        limits = tuple(to_days(limits))
    return replace(column, cmap=_colormap(palette), limits=_limits(column.values, limits))


def read_column(values: Any, n: int, name: str = "color") -> Categories | Scale:
    """A column of n values as `Categories` or `Scale`, without colours."""
    title = getattr(values, "name", None)
    title = title if isinstance(title, str) and title else None
    declared = declared_categories(values)
    entries = declared[0] if declared else _entries(values, name)
    if entries.ndim != 1 or len(entries) != n:
        got = len(entries) if entries.ndim == 1 else f"shape {entries.shape}"
        raise ValueError(f"{name} must have one value for each of the {n} points, got {got}.")
    if declared:
        return Categories(*declared, title)
    missing = np.isnat(entries) if entries.dtype.kind in "mM" else is_missing(entries)
    known = entries[~missing]
    kinds = {entries.dtype.type} if entries.dtype.kind != "O" else {type(entry) for entry in known}
    wrong = [kind.__name__ for kind in kinds if _is_unsupported(kind)]
    if wrong or entries.dtype.kind == "V":
        raise ValueError(f"{name} must hold numbers, dates or text, got {[*wrong, 'records'][0]}.")
    if kinds and all(issubclass(kind, _DATES) for kind in kinds):
        days = np.full(n, np.nan)
        days[~missing] = to_days(known)
        return Scale(days, title, dates=True)
    if kinds and all(issubclass(kind, (np.timedelta64, datetime.timedelta)) for kind in kinds):
        known, kinds = known.astype("timedelta64[us]") / np.timedelta64(1, "D"), {np.float64}
        title = f"{title or 'time'} (days)"
    numeric = all(issubclass(kind, _NUMBERS) for kind in kinds)
    if not kinds or not numeric or any(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return _by_name(known, missing, title)
    numbers = np.full(n, np.nan)
    numbers[~missing] = known.astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"{name} must be finite or missing, got infinity.")
    whole = all(issubclass(kind, Integral) for kind in kinds)
    if whole and few_values(numbers[~missing]) is not None:
        return _by_name(numbers[~missing].astype(int), missing, title)
    return Scale(numbers, title)


def _is_unsupported(kind: type) -> bool:
    """Whether objects of a type cannot be categories: containers, and objects without a string form."""
    no_string_form = all(
        getattr(kind, method) is getattr(object, method) for method in ("__repr__", "__str__")
    )
    return no_string_form or issubclass(kind, (*_CONTAINERS, np.complexfloating, complex))


def to_days(dates: Any) -> Floats:
    """Dates in matplotlib's days; dates with a time zone are converted to UTC."""
    from matplotlib.dates import date2num

    return np.asarray(date2num(dates), dtype=np.float64)  # type: ignore[no-untyped-call]


def _by_name(known: NDArray[Any], missing: NDArray[np.bool_], title: str | None) -> Categories:
    texts = [str(entry) for entry in known.tolist()]
    names = sorted(set(texts), key=natural_key)
    lookup = {name: code for code, name in enumerate(names)}
    codes = np.full(len(missing), -1, dtype=np.intp)
    codes[~missing] = [lookup[text] for text in texts]
    return Categories(codes, names, title)


def _entries(values: Any, name: str) -> NDArray[Any]:
    """The column as a NumPy array, of numbers if possible, else of objects."""
    library = type(values).__module__.partition(".")[0]
    null_mask_method = {"pandas": "isna", "polars": "is_null"}.get(library)
    # Data frames convert integers with missing values to floats.
    if null_mask_method and len(values.shape) == 1 and getattr(values, null_mask_method)().any():
        values = list(values)
    try:
        # NumPy converts a list of text and NaN to text.
        is_sequence = isinstance(values, list | tuple)
        entries = np.asarray(values, dtype=object if is_sequence else None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a column of values: {error}") from error
    return entries.astype(object) if entries.dtype.kind in "UT" else entries


def _category_colors(column: Categories, palette: Any) -> Floats:
    names = column.names
    if palette is None:
        return np.array([rgba_of(color) for color in categorical(len(names))]).reshape(-1, 4)
    if isinstance(palette, Mapping):
        by_name = {str(name): color for name, color in palette.items()}
        absent = [names[code] for code in column.present if names[code] not in by_name]
        if absent:
            raise ValueError(
                f"palette must have a colour for each category, got none for {absent}."
            )
        colors = [by_name.get(name, MISSING) for name in names]
    else:
        colors = _listed(palette, len(names))
        if len(colors) < len(names):
            raise ValueError(
                f"palette must have at least {len(names)} colours, one for each category, "
                f"got {len(colors)}."
            )
    return np.array(
        [rgba_of(color, "each colour of palette") for color in colors[: len(names)]]
    ).reshape(-1, 4)


def _listed(palette: Any, n: int) -> list[Any]:
    """The colours of a list, of a short colour map such as "tab20", or n evenly spaced ones of another."""
    from matplotlib.colors import Colormap, ListedColormap

    if not isinstance(palette, str | Colormap):
        return list(palette)
    cmap = _colormap(palette)
    has_own_colors = isinstance(cmap, ListedColormap) and cmap.N < 256
    return list(cmap(np.arange(cmap.N) if has_own_colors else np.linspace(0, 1, n)))


def _colormap(palette: Any) -> Any:
    import matplotlib
    from matplotlib.colors import Colormap

    if palette is not None and not isinstance(palette, str | Colormap):
        raise ValueError(
            "palette must be a Colormap or the name of a matplotlib colour map if color is numeric, "
            f"got {palette!r}."
        )
    if isinstance(palette, Colormap):
        cmap = palette
    else:
        name = palette or "viridis"
        if name not in matplotlib.colormaps:
            raise ValueError(f"palette must be a matplotlib colour map, got {name!r}.")
        cmap = matplotlib.colormaps[name]
    return cmap


def _limits(values: Floats, limits: tuple[Any, Any] | None) -> tuple[float, float]:
    if limits is None:
        known = values[~np.isnan(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if low < high:
            return low, high
        half_width = 0.1 * abs(low) or 0.1  # a single value is in the middle of its scale
        return low - half_width, high + half_width
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise ValueError(f"limits must be (low, high), got {limits!r}.") from None
    if not low < high:
        raise ValueError(f"limits must be (low, high) with low < high, got {limits!r}.")
    return low, high


def rgba_of(
    color: Any, name: str = "color", rule: str = "be a colour that matplotlib knows"
) -> Floats:
    """The four channels of a colour; a ValueError names the parameter and its rule."""
    from matplotlib.colors import to_rgba

    try:
        return np.array(to_rgba(color))
    except ValueError:
        raise ValueError(f"{name} must {rule}, got {color!r}.") from None
