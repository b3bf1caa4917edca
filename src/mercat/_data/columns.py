"""What a column says of its classes: which they are, in the order that its owner chose or a reader would.

And which of its values are missing, and which colours its owner chose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Whole numbers with no more distinct values than this are names of groups, with more they count.
MAX_INTEGER_CATEGORIES = 20
# A column of more kinds of values than this colours no map without being asked for.
MOST_KINDS = 50
HEX = "#[0-9A-Fa-f]{6}"  # a colour that may stand in a page


@dataclass(frozen=True)
class Painted:
    """A column of a frame, and the colours that its owner chose, "#rrggbb" by label."""

    values: Any
    colors: Mapping[str, str]


def declared(values: Any) -> tuple[NDArray[np.intp], list[str]] | None:
    """Codes, -1 for missing, and names in the order of a pandas Categorical or a polars Enum."""
    library = type(values).__module__.partition(".")[0]
    dtype = getattr(values, "dtype", None)
    if library == "pandas" and hasattr(dtype, "categories"):
        codes = values.codes if hasattr(values, "codes") else values.cat.codes
    elif library == "polars" and type(dtype).__name__ == "Enum":
        codes = values.to_physical().cast(int).fill_null(-1)
    else:
        return None
    return np.asarray(codes, dtype=np.intp), [str(name) for name in values.dtype.categories]


def is_missing(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the values are None, NaN, or what pandas says instead."""
    if entries.dtype.kind == "f":
        return np.asarray(np.isnan(entries))
    if entries.dtype.kind != "O":
        return np.zeros(len(entries), dtype=bool)
    # pandas' NA and NaT have no truth value and no equal: their types' names tell them.
    return np.array(
        [
            entry is None
            or (isinstance(entry, float | np.floating) and entry != entry)
            or type(entry).__name__ in ("NAType", "NaTType")
            for entry in entries
        ],
        dtype=bool,
    )


def are_measurements(known: NDArray[Any]) -> bool:
    """Whether values, none of them missing, are no classes: fractions, of which most are different."""
    if known.dtype.kind != "f" or not (known != np.floor(known)).any():
        return False
    return len(np.unique(known)) > max(len(known) // 2, 2)


def few(integers: NDArray[Any]) -> NDArray[Any] | None:
    """The distinct ones, in order, of whole numbers that are names of groups; None if they count."""
    distinct = np.unique(integers)
    return distinct if len(distinct) <= MAX_INTEGER_CATEGORIES else None


def groups(kinds: int, n: int) -> bool:
    """Whether n values of so many kinds are groups, by which a map is coloured without being asked."""
    return 2 <= kinds <= min(MOST_KINDS, n // 2)


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts "cluster 9" before "cluster 10"."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
