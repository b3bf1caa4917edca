"""Classes of a column, in their declared or natural order; missing values; declared colours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Integers with at most this many distinct values are classes, others are numbers.
MAX_INTEGER_CATEGORIES = 20
# A column with more distinct values than this is not chosen to colour a map by default.
MAX_CLASSES = 50
HEX = "#[0-9A-Fa-f]{6}"  # pattern of colours that are safe in HTML


@dataclass(frozen=True)
class ColoredColumn:
    """A column of a data frame and its declared colours, "#rrggbb" by label."""

    values: Any
    colors: Mapping[str, str]


def declared_categories(values: Any) -> tuple[NDArray[np.intp], list[str]] | None:
    """Codes (-1 for missing) and names of a pandas Categorical or a polars Enum, in its order."""
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
    """Mask of the values that are None, NaN, or pandas' NA or NaT."""
    if entries.dtype.kind == "f":
        return np.asarray(np.isnan(entries))
    if entries.dtype.kind != "O":
        return np.zeros(len(entries), dtype=bool)
    # NA and NaT of pandas do not compare: recognise them by the names of their types.
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
    """Whether values without missing ones are measurements: not all integers, and mostly distinct."""
    if known.dtype.kind != "f" or not (known != np.floor(known)).any():
        return False
    return len(np.unique(known)) > max(len(known) // 2, 2)


def few_values(integers: NDArray[Any]) -> NDArray[Any] | None:
    """Sorted distinct values if integers are few enough to be classes; None if they are numbers."""
    distinct = np.unique(integers)
    return distinct if len(distinct) <= MAX_INTEGER_CATEGORIES else None


def is_grouping(kinds: int, n: int) -> bool:
    """Whether a column of n values, `kinds` of them distinct, may colour a map by default."""
    return 2 <= kinds <= min(MAX_CLASSES, n // 2)


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts "cluster 9" before "cluster 10"."""
    parts = re.split(r"([0-9]+)", text)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
