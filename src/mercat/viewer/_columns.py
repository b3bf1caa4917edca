"""Columns of a frame as stored by the viewer: numbers, dates, or codes into a list of labels."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.columns import (
    HEX,
    MAX_CLASSES,
    ColoredColumn,
    declared_categories,
    is_missing,
    natural_key,
)

_LARGEST_EXACT = 2**53  # JavaScript's numbers are 64-bit floats
_TEXT_TYPES = (str, bool, np.bool_)
_NUMBER_TYPES = (int, float, np.integer, np.floating)
# Kinds of a pandas index, by pandas' names, that are shown as a column.
_INDEX_KINDS = ("string", "integer", "floating", "datetime64", "categorical")
_DATE_TYPES = (datetime.date, np.datetime64)  # a datetime is a date, too


def _n_distinct(values: NDArray[Any]) -> int:
    return len(np.unique(values[~np.isnan(values)]))


@dataclass(frozen=True)
class Numbers:
    """A numeric column; NaN is a missing value."""

    name: str
    values: NDArray[Any]
    role: str | None = None

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return _n_distinct(self.values)


@dataclass(frozen=True)
class Dates:
    """A column of dates or times, in milliseconds since 1970 (UTC); NaN is a missing value."""

    name: str
    values: NDArray[np.float64]

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return _n_distinct(self.values)


@dataclass(frozen=True)
class Categories:
    """A text column: code 0 is a missing value, code k is label k - 1."""

    name: str
    codes: NDArray[Any]
    labels: list[str]
    colors: tuple[str, ...] = ()  # colours of the labels, if chosen by the user

    @property
    def n_distinct(self) -> int:
        """Number of labels that occur."""
        return len(np.unique(self.codes[self.codes > 0]))

    @property
    def names_points(self) -> bool:
        """Whether the labels are nearly unique names of points instead of classes."""
        return self.n_distinct > max(MAX_CLASSES, int(np.count_nonzero(self.codes)) // 2)


Column = Numbers | Dates | Categories


def read_frame(frame: Any, n: int) -> list[Column]:
    """Read the columns of a pandas or polars frame, or of a mapping from names to columns.

    Parameters
    ----------
    frame : DataFrame, mapping or None
        Each column has `n` values: numbers, text, categories, booleans or dates.
    n : int
        Number of points.
    """
    if frame is None:
        return []
    columns = [(str(name), values) for name, values in _items(frame)]
    twice = [name for name, count in Counter(name for name, _ in columns).items() if count > 1]
    if twice:
        raise ValueError(f"Column names of frame must be unique, got {twice[0]!r} more than once.")
    return [_read_column(name, values, n) for name, values in columns]


def _items(frame: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(frame, Mapping):
        return frame.items()
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        # By position: a name that two columns have would return a frame.
        columns = [(name, frame.iloc[:, k]) for k, name in enumerate(frame.columns)]
        return [*_row_names(frame), *columns]
    if hasattr(frame, "iter_columns"):
        return [(column.name, column) for column in frame.iter_columns()]
    raise TypeError(
        "frame must be a pandas or polars DataFrame or a mapping from names to columns, "
        f"got {type(frame).__name__}."
    )


def _row_names(frame: Any) -> list[tuple[str, Any]]:
    """The index of a pandas frame as a column, if it has a name or holds text."""
    index = frame.index
    kind = getattr(index, "inferred_type", None)
    if kind not in _INDEX_KINDS or (index.name is None and kind != "string"):
        return []
    name = "name" if index.name is None else str(index.name)
    is_taken = name in [str(column) for column in frame.columns]
    return [] if is_taken else [(name, index.to_series())]


def _read_column(name: str, values: Any, n: int) -> Column:
    if isinstance(values, ColoredColumn):
        return _with_colors(_read_column(name, values.values, n), values.colors)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        got = type(values).__name__
        raise TypeError(f"Column {name!r} of frame must be a sequence, got {got}.")
    declared = declared_categories(values)
    if declared:
        codes, labels = declared
        return _merge_equal(name, _check_shape(name, codes, n) + 1, labels)
    array = _check_shape(name, _as_array(values), n)
    if array.dtype.kind in "OT":
        array = _from_objects(name, np.asarray(array, dtype=object))
    if array.dtype.kind in "iu" and len(array):
        _check_exact(name, (int(array.min()), int(array.max())))
    if array.dtype.kind in "iuf":
        return Numbers(name, array)
    if array.dtype.kind == "M":
        return Dates(name, _milliseconds(array))
    if array.dtype.kind in "bUO":
        return _categorize(name, array)
    raise _type_error(name, f"dtype {array.dtype}")


def _milliseconds(times: NDArray[Any]) -> NDArray[np.float64]:
    """Times in milliseconds since 1970, as in JavaScript."""
    exact = times.astype("datetime64[us]")
    numbers = exact.astype(np.int64) / 1000
    return np.asarray(np.where(np.isnat(exact), np.nan, numbers), dtype=np.float64)


def _with_colors(column: Column, colors: Mapping[str, str]) -> Column:
    """The column with these colours, if each of its labels has a valid hexadecimal colour."""
    if not isinstance(column, Categories):
        return column
    label_colors = tuple(colors.get(label, "") for label in column.labels)
    are_valid = all(re.fullmatch(HEX, color) for color in label_colors)
    return replace(column, colors=label_colors) if are_valid else column


def _as_array(values: Any) -> NDArray[Any]:
    # pandas' times with a time zone
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:
        in_utc = (values.dt if hasattr(values, "dt") else values).tz_convert("UTC")
        return np.asarray(in_utc.to_numpy(dtype="datetime64[us]"))
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__"):
        return np.asarray(values)
    # One by one, since NumPy would turn ["a", nan] into two strings.
    return np.fromiter(values, dtype=object)


def _check_shape(name: str, array: NDArray[Any], n: int) -> NDArray[Any]:
    if array.ndim != 1:
        shape = array.shape
        raise ValueError(f"Column {name!r} of frame must have one dimension, got shape {shape}.")
    if len(array) != n:
        raise ValueError(
            f"Column {name!r} of frame must have one value per point ({n}), got {len(array)}."
        )
    return array


def _type_error(name: str, got: str) -> TypeError:
    return TypeError(f"Column {name!r} of frame must hold numbers, text or dates, got {got}.")


def _from_objects(name: str, array: NDArray[np.object_]) -> NDArray[Any]:
    """Convert Python objects to text (dtype object, with None for missing values), numbers or times."""
    missing = is_missing(array)
    present = array[~missing].tolist()
    types = {type(value) for value in present}
    if all(issubclass(kind, _TEXT_TYPES) for kind in types):
        text = np.full(len(array), None, dtype=object)
        text[~missing] = [str(value) for value in present]
        return text
    if all(issubclass(kind, _NUMBER_TYPES) and kind is not bool for kind in types):
        _check_exact(name, (value for value in present if isinstance(value, int)))
        if not missing.any():
            return np.array(present)
        numbers = np.full(len(array), np.nan)
        numbers[~missing] = present
        return numbers
    if all(issubclass(kind, _DATE_TYPES) for kind in types):
        times = np.full(len(array), np.datetime64("NaT"), dtype="datetime64[us]")
        times[~missing] = [_utc(value) for value in present]
        return times
    other_types = sorted(
        kind.__name__
        for kind in types
        if not issubclass(kind, (*_TEXT_TYPES, *_NUMBER_TYPES, *_DATE_TYPES))
    )
    has_dates = any(issubclass(kind, _DATE_TYPES) for kind in types)
    mixture = "dates and other values together" if has_dates else "text and numbers together"
    raise _type_error(name, f"values of type {other_types[0]}" if other_types else mixture)


def _utc(value: Any) -> Any:
    """Convert a time to UTC and drop its zone; a time without a zone is unchanged."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def _check_exact(name: str, integers: Iterable[int]) -> None:
    largest = max(map(abs, integers), default=0)
    if largest > _LARGEST_EXACT:
        raise ValueError(
            f"Column {name!r} of frame must hold integers of at most 2**53 in absolute value to be shown "
            f"exactly, got {largest}; convert it to text."
        )


def _categorize(name: str, array: NDArray[Any]) -> Categories:
    codes = np.zeros(len(array), dtype=np.int64)
    present = ~is_missing(array)
    if not present.any():
        return Categories(name, codes, [])
    distinct, inverse = np.unique(array[present].astype(str), return_inverse=True)
    labels = sorted(distinct.tolist(), key=natural_key)
    code_of = {label: k for k, label in enumerate(labels, start=1)}
    codes[present] = np.array([code_of[label] for label in distinct.tolist()])[inverse]
    return Categories(name, codes, labels)


def _merge_equal(name: str, codes: NDArray[np.intp], labels: list[str]) -> Categories:
    """Merge categories with the same text, such as 1 and "1", into one label."""
    unique = list(dict.fromkeys(labels))
    code_of = {label: k for k, label in enumerate(unique, start=1)}
    new_codes = np.array([0, *(code_of[label] for label in labels)])
    return Categories(name, new_codes[codes], unique)
