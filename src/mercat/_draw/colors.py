"""What the points are coloured by: reads columns of any kind, and gives every point a colour.

A column becomes `Categories` (one colour each) or a `Scale` (numbers along a colour map).
Missing values stay what they are: drawn in grey, and named and counted in the legend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._data.columns import declared, few, is_missing, natural
from .palette import MISSING, OKABE_ITO, categorical

Floats = NDArray[np.float64]


@dataclass
class Categories:
    """Groups by name; code -1 stands for missing."""

    codes: NDArray[np.intp]
    names: list[str]
    title: str | None = None
    colors: Floats = field(default_factory=lambda: np.empty((0, 4)))

    @property
    def missing(self) -> NDArray[np.bool_]:
        return self.codes < 0

    @property
    def present(self) -> list[int]:
        """Codes that occur, in the order of the names."""
        return np.flatnonzero(np.bincount(self.codes[self.codes >= 0])).tolist()

    def shown(self) -> list[str]:
        """Names that occur."""
        return [self.names[code] for code in self.present]

    def members(self) -> list[NDArray[np.intp]]:
        """For each name that occurs, the rows that have it."""
        return [np.flatnonzero(self.codes == code) for code in self.present]

    def rgba(self) -> Floats:
        return np.vstack([self.colors, _rgba(MISSING)])[self.codes]


@dataclass
class Scale:
    """Numbers between limits, along a matplotlib colour map; NaN stands for missing."""

    values: Floats
    title: str | None = None
    cmap: Any = None
    limits: tuple[float, float] = (0.0, 1.0)

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)

    @property
    def extend(self) -> str:
        """On which sides values lie beyond the limits, in matplotlib's words for a bar."""
        below = bool((self.values < self.limits[0]).any())
        above = bool((self.values > self.limits[1]).any())
        return {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]

    def mappable(self) -> Any:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        return ScalarMappable(Normalize(*self.limits), self.cmap)

    def rgba(self) -> Floats:
        return cast(Floats, self.mappable().to_rgba(np.ma.masked_invalid(self.values)))


@dataclass
class Single:
    """One colour for all points."""

    colors: Floats
    title: None = None

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.zeros(len(self.colors), dtype=bool)

    def rgba(self) -> Floats:
        return self.colors


Coloring = Categories | Scale | Single


def coloring(
    color: Any,
    n: int,
    *,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    name: str = "color",
) -> Coloring:
    """Read `color` for n points and settle the colours; `plot.map` documents the arguments."""
    if color is None or isinstance(color, str):
        if palette is not None:
            raise ValueError("palette needs a color with a value for each point.")
        return Single(np.tile(_rgba(color or OKABE_ITO[0], "color"), (n, 1)))
    column = read(color, n, name)
    if isinstance(column, Categories):
        if limits is not None:
            raise ValueError("limits needs a color of numbers, got categories.")
        column.colors = _category_colors(column, palette)
        return column
    column.cmap = _colormap(palette)
    column.limits = _limits(column.values, limits)
    return column


def read(values: Any, n: int, name: str = "color") -> Categories | Scale:
    """A column of n values as `Categories` or `Scale`, their colours not yet settled."""
    title = getattr(values, "name", None)
    title = title if isinstance(title, str) and title else None
    given = declared(values)
    entries = given[0] if given else _entries(values, name)
    if entries.ndim != 1 or len(entries) != n:
        got = len(entries) if entries.ndim == 1 else f"shape {entries.shape}"
        raise ValueError(f"{name} must have one value for each of the {n} points, got {got}.")
    if given:
        return Categories(*given, title)
    missing = is_missing(entries)
    known = entries[~missing]
    kinds = {entries.dtype.type} if entries.dtype.kind != "O" else {type(entry) for entry in known}
    wrong = [kind.__name__ for kind in kinds if not issubclass(kind, (str, np.bool_, Real))]
    if wrong:
        raise ValueError(f"{name} must hold numbers or text, got {wrong[0]}.")
    if not kinds or any(issubclass(kind, (str, bool, np.bool_)) for kind in kinds):
        return _by_name(known, missing, title)
    numbers = np.full(n, np.nan)
    numbers[~missing] = known.astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"{name} must be finite or missing, got infinity.")
    whole = all(issubclass(kind, Integral) for kind in kinds)
    if whole and few(numbers[~missing]) is not None:
        return _by_name(numbers[~missing].astype(int), missing, title)
    return Scale(numbers, title)


def _by_name(known: NDArray[Any], missing: NDArray[np.bool_], title: str | None) -> Categories:
    texts = [str(entry) for entry in known.tolist()]
    names = sorted(set(texts), key=natural)
    lookup = {name: code for code, name in enumerate(names)}
    codes = np.full(len(missing), -1, dtype=np.intp)
    codes[~missing] = [lookup[text] for text in texts]
    return Categories(codes, names, title)


def _entries(values: Any, name: str) -> NDArray[Any]:
    """The column as a NumPy array: numbers where it can, objects where it must."""
    library = type(values).__module__.partition(".")[0]
    missing = {"pandas": "isna", "polars": "is_null"}.get(library)
    # Whole numbers some of which are missing would come as floats from a frame's column.
    if missing and len(values.shape) == 1 and getattr(values, missing)().any():
        values = values.to_list()
    try:
        # NumPy would make text of a list that has text and NaN.
        boxed = isinstance(values, list | tuple)
        entries = np.asarray(values, dtype=object if boxed else None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a column of values: {error}") from error
    return entries.astype(object) if entries.dtype.kind in "UT" else entries


def _category_colors(column: Categories, palette: Any) -> Floats:
    names = column.names
    if palette is None:
        return np.array([_rgba(color) for color in categorical(len(names))]).reshape(-1, 4)
    if isinstance(palette, Mapping):
        chosen = {str(name): color for name, color in palette.items()}
        absent = [names[code] for code in column.present if names[code] not in chosen]
        if absent:
            raise ValueError(
                f"palette must have a colour for each category, got none for {absent}."
            )
        colors = [chosen.get(name, MISSING) for name in names]
    else:
        colors = _listed(palette, len(names))
        if len(colors) < len(names):
            raise ValueError(
                f"palette must have at least {len(names)} colours, one for each category, "
                f"got {len(colors)}."
            )
    return np.array([_rgba(color, "palette") for color in colors[: len(names)]]).reshape(-1, 4)


def _listed(palette: Any, n: int) -> list[Any]:
    """The colours of a list as they are, n of a colour map: its own, or from one end to the other."""
    from matplotlib.colors import Colormap, ListedColormap

    if not isinstance(palette, str | Colormap):
        return list(palette)
    cmap = _colormap(palette)
    own = isinstance(cmap, ListedColormap) and cmap.N < 256  # made for categories, as "tab20"
    return list(cmap(np.arange(cmap.N) if own else np.linspace(0, 1, n)))


def _colormap(palette: Any) -> Any:
    import matplotlib
    from matplotlib.colors import Colormap

    if palette is not None and not isinstance(palette, str | Colormap):
        raise ValueError(
            "palette must be the name of a matplotlib colour map for numbers, or a Colormap, "
            f"got {palette!r}."
        )
    if isinstance(palette, Colormap):
        cmap = palette
    else:
        name = palette or "viridis"
        if name not in matplotlib.colormaps:
            raise ValueError(f"palette must be a matplotlib colour map, got {name!r}.")
        cmap = matplotlib.colormaps[name]
    return cmap.with_extremes(bad=MISSING)


def _limits(values: Floats, limits: tuple[float, float] | None) -> tuple[float, float]:
    if limits is None:
        known = values[~np.isnan(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if low < high:
            return low, high
        around = 0.1 * abs(low) or 0.1  # one number lies in the middle of its scale
        return low - around, high + around
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise ValueError(f"limits must be (low, high), got {limits!r}.") from None
    if not low < high:
        raise ValueError(f"limits must be (low, high) with low < high, got {limits!r}.")
    return low, high


def _rgba(color: Any, name: str = "color") -> Floats:
    from matplotlib.colors import to_rgba

    try:
        return np.array(to_rgba(color))
    except ValueError:
        raise ValueError(
            f"{name} must hold colours that matplotlib knows, got {color!r}."
        ) from None
