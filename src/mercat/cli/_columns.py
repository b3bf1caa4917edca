"""Sort the columns of a data frame into features to embed and metadata."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._data.columns import MAX_CLASSES
from .._data.text import well_formed
from ._console import Console
from ._problems import BadInput, join_names, pluralize, unknown_column
from ._table import Locate, ReadOptions, Table

_ID_NAMES = {"id", "ids", "index", "idx", "row", "rowid", "rownames", "key", "uuid", "barcode"}
_CLASS_NAMES = {"label", "labels", "class", "target", "cluster", "group", "category", "type", "y"}
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?", re.ASCII
)
# Numbers with a thousands separator, decimal comma, currency or percent sign; no dates.
_FORMATTED = re.compile(
    r"[-+\u2212]?\s?[$€£]?\s?(\d{1,3}([.,'\u2019\s]\d{3})+|\d+)([.,]\d+)?\s?[%$€£]?"
)


@dataclass(frozen=True)
class Frame:
    """The columns of a file, their names, and a function that locates a cell in the file."""

    path: Path
    data: Any  # a pandas DataFrame
    names: list[str]  # "" for a column without a name
    locate: Locate

    def column(self, name: str) -> Any:
        """The column with this name."""
        return self.data.iloc[:, self.names.index(name)]


@dataclass
class _Sorting:
    """State while columns are sorted."""

    frame: Frame
    options: ReadOptions
    console: Console
    features: list[int] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    ids: str | None = None
    numbered: str | None = None  # the first column that numbers the rows or looks like an id
    # An example of each column of formatted numbers.
    formatted: dict[str, str] = field(default_factory=dict)


def frame_table(frame: Frame, options: ReadOptions, console: Console) -> Table:
    """Convert a frame to a table of features and metadata."""
    import pandas as pd

    check_names(frame.names, frame.path, options)
    sorting = _Sorting(frame, options, console)
    for k, name in enumerate(frame.names):
        if name not in options.drop:
            _sort_column(sorting, k, name, frame.data.iloc[:, k])
    missing = [name for name in options.expected or () if name not in frame.names]
    if missing:
        raise BadInput(missing_columns_message(frame.path, missing, len(options.expected or ())))
    if sorting.ids is None:
        sorting.ids = _ids(sorting)
    _note_likely_classes(sorting)
    _warn_of_formatted_numbers(sorting)
    feature_indices = sorting.features
    if not feature_indices:
        options.fail(_no_numbers(frame))
    numbers = frame.data.iloc[:, feature_indices]
    X = numbers.to_numpy(dtype=_common_type(numbers), na_value=np.nan)
    return Table(
        path=frame.path,
        X=np.ascontiguousarray(X),
        features=[frame.names[k] for k in feature_indices],
        meta=pd.DataFrame(sorting.meta, index=pd.RangeIndex(len(frame.data))),
        ids=sorting.ids,
        locate=lambda row, column: frame.locate(row, feature_indices[column]),
    )


def missing_columns_message(path: Path, missing: list[str], n_expected: int) -> str:
    """Message about columns of the model that a table lacks."""
    return (
        f"{path} lacks {len(missing):,} of the {pluralize(n_expected, 'column')} that the model was fitted "
        f"to: {join_names(missing)}."
    )


def check_names(
    columns: Iterable[str], path: Path, options: ReadOptions, features: Iterable[str] = ()
) -> None:
    """Raise a usage error if an option names an unknown column or feature."""
    columns, features = list(columns), list(features)
    for option, name in options.named_columns():
        known = columns + features if option in ("--feature", "--drop") else columns
        if name not in known:
            raise unknown_column(option, name, known, path)


def _sort_column(sorting: _Sorting, k: int, name: str, column: Any) -> None:
    from pandas.api import types

    options = sorting.options
    numeric = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    expected = options.expected
    if name == "":
        _sort_unnamed(sorting, k, column)
    elif name in options.metadata_names:
        sorting.meta[name] = plain(column, sorting.frame.path, name)
    elif expected is not None:
        if name in expected and not numeric:
            raise BadInput(_not_a_number(sorting, k, name, column))
        if name in expected:
            sorting.features.append(k)
        else:
            sorting.meta[name] = plain(column, sorting.frame.path, name)
    elif not numeric:
        if name in options.feature or _mostly_numbers(column):
            options.fail(_not_a_number(sorting, k, name, column))
        elif example := _formatted_number(column):
            sorting.formatted[name] = example
        sorting.meta[name] = plain(column, sorting.frame.path, name)
    elif name not in options.feature and _is_id(name, column):
        sorting.meta[name] = plain(column, sorting.frame.path, name)
        sorting.numbered = sorting.numbered or name
        sorting.console.note(
            f"Column {name!r} numbers the rows and is kept as metadata; --feature {name} embeds it."
        )
    else:
        sorting.features.append(k)


def _sort_unnamed(sorting: _Sorting, k: int, column: Any) -> None:
    """Use a first column without a name as the index, as pandas and R write it."""
    if k == 0:
        name = unique_name("index", sorting.frame.names)
        sorting.meta[name] = plain(column, sorting.frame.path, name)
        sorting.ids = name
    elif not column.isna().all():
        raise BadInput(f"{sorting.frame.path}: column {k + 1} has values but no name. Give it one.")
    # An empty column: each line ends in a delimiter.


def unique_name(name: str, used: Container[str]) -> str:
    """Append underscores to the name until it is unique."""
    while name in used:
        name += "_"
    return name


def _ids(sorting: _Sorting) -> str | None:
    """Find the column that names the rows: text named like an id, else row numbers, else other text."""
    row_numbers = sorting.numbered
    text = [name for name in sorting.meta if name not in (row_numbers, *sorting.formatted)]
    id_like = [name for name in text if name.lower() in _ID_NAMES]
    candidates = [*id_like, *([row_numbers] if row_numbers else []), *text]
    return next(
        (n for n in candidates if n == row_numbers or _is_unique_text(sorting.meta[n])), None
    )


def _is_id(name: str, column: Any) -> bool:
    """Whether a column of distinct integers numbers the rows or is named like an id."""
    if column.dtype.kind not in "iu" or len(column) < 3 or column.isna().any():
        return False
    if not column.is_unique:
        return False
    values = column.to_numpy()
    is_counting = bool(values[0] in (0, 1) and (np.diff(values) == 1).all())
    lowercase = name.lower()
    return is_counting or lowercase in _ID_NAMES or lowercase.endswith(("_id", " id", ".id", "-id"))


def _note_likely_classes(sorting: _Sorting) -> None:
    """Note integer columns with few distinct values: they may be classes."""
    if sorting.options.expected is not None:
        return
    data, names = sorting.frame.data, sorting.frame.names
    integer_columns = [k for k in sorting.features if data.iloc[:, k].dtype.kind in "iu"]
    is_only_one = len(integer_columns) == 1 < len(sorting.features)
    for k in integer_columns:
        may_be_class = is_only_one or names[k].lower() in _CLASS_NAMES
        if may_be_class and names[k] not in sorting.options.feature:
            n_distinct = data.iloc[:, k].nunique()
            if 2 <= n_distinct <= min(MAX_CLASSES, len(data) // 10):
                sorting.console.note(
                    f"Column {names[k]!r}, integers with {n_distinct} distinct values, is embedded. If they "
                    f"are classes, use --label {names[k]} or --meta {names[k]}."
                )


def _warn_of_formatted_numbers(sorting: _Sorting) -> None:
    """Warn about text columns that look like formatted numbers."""
    if not sorting.formatted:
        return
    names = list(sorting.formatted)
    examples = [f"{name} ({example!r})" for name, example in sorting.formatted.items()]
    one = len(names) == 1
    sorting.console.warn(
        f"{'Column' if one else 'Columns'} {join_names(examples)} {'looks' if one else 'look'} like numbers "
        f"but {'is' if one else 'are'} text, kept as metadata and not embedded. To embed "
        f"{'it' if one else 'them'}, write plain numbers such as 1234.5, without currency or percent signs "
        f"and without thousands separators; to keep the text, use --meta {names[0]}."
    )


def _formatted_number(column: Any) -> str | None:
    """An example of a formatted number, if at least half of a text column is formatted numbers."""
    import pandas as pd

    if column.dtype != object and not pd.api.types.is_string_dtype(column):
        return None
    present = column.dropna().astype(str).str.strip()
    looks_formatted = present.map(lambda text: _FORMATTED.fullmatch(text) is not None)
    if len(present) == 0 or looks_formatted.mean() < 0.5:
        return None
    return str(present[looks_formatted].iloc[0])


def _is_unique_text(column: Any) -> bool:
    """Whether the text of each row is unique."""
    text = column.dtype == object or str(column.dtype).startswith("str")
    return bool(text and len(column) > 2 and column.notna().all() and column.is_unique)


def _mostly_numbers(column: Any) -> bool:
    """Whether at least half of a text column's values are numbers, but not all."""
    import pandas as pd

    if column.dtype != object and not pd.api.types.is_string_dtype(column):
        return False
    present = column.dropna()
    numbers = pd.to_numeric(present, errors="coerce").notna().sum()
    return bool(len(present) / 2 <= numbers < len(present))


def _not_a_number(sorting: _Sorting, k: int, name: str, column: Any) -> str:
    import pandas as pd

    present = column.dropna()
    wrong = pd.to_numeric(present.astype(str), errors="coerce").isna()
    if not wrong.any():
        return f"{sorting.frame.path}: column {name!r} must hold numbers, got {column.dtype}."
    row = int(present.index[int(np.argmax(wrong.to_numpy()))])
    return (
        f"{sorting.frame.locate(row, k)}: {str(column.iloc[row])[:40]!r} is not a number, unlike "
        f"{len(present) - int(wrong.sum()):,} of the column's {len(present):,} values. Correct it, use "
        f"--meta {name} to keep the column as metadata, or --drop {name}."
    )


def _no_numbers(frame: Frame) -> str:
    if not frame.names or not len(frame.data):
        n, d = len(frame.data), len(frame.names)
        return f"{frame.path} has {pluralize(n, 'row')} and {pluralize(d, 'column')}: nothing to embed."
    example = str(frame.data.iloc[0, -1])[:40]
    return (
        f"{frame.path} has no numeric column to embed. Its columns are {join_names(frame.names)}, and its "
        f"first row ends in {example!r}. (--delimiter sets the delimiter, --feature embeds a column that "
        "looks like an id.)"
    )


def _common_type(frame: Any) -> Any:
    """float32 if it represents all columns exactly, else float64."""
    try:
        exact = all(np.can_cast(dtype, np.float32) for dtype in frame.dtypes)
    except TypeError:  # a type of pandas, such as Int64
        exact = False
    return np.float32 if exact else np.float64


def plain(column: Any, path: Path, name: str) -> Any:
    """Convert a column of metadata to numbers, text, categories or booleans; dates to text."""
    from pandas.api import types

    column = column.reset_index(drop=True)
    if str(column.dtype) == "category":
        _check_writable(column.cat.categories, path, name)
        return column
    if column.dtype == bool:
        return column
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        if types.is_extension_array_dtype(column):  # pandas types, which may contain NA
            column = column.astype(column.dtype.numpy_dtype if column.notna().all() else np.float64)
        too_large = column.dtype.kind in "iu" and len(column) and column.abs().max() > 2**53
        return column.astype(str) if too_large else column
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return column.astype(str).where(column.notna(), None)
    kinds = {type(value) for value in column.dropna()}
    if kinds & {list, dict, tuple, set, bytes, np.ndarray}:
        raise BadInput(
            f"{path}: column {name!r} holds {join_names(sorted(k.__name__ for k in kinds))}, neither numbers "
            f"nor text. Ignore it with --drop {name}."
        )
    column = column if kinds <= {str} else column.map(str, na_action="ignore")
    _check_writable(column.dropna(), path, name)
    return column


def parse_dates(column: Any) -> Any:
    """Convert a column of text that is all ISO 8601 dates or times; others are returned unchanged."""
    import pandas as pd

    known = column.dropna()
    if str(column.dtype) == "category" or not len(known) or not all(map(_is_date, known)):
        return column
    try:
        times = pd.to_datetime(column, format="ISO8601", utc=True)
    except (ValueError, OverflowError):  # such as 30 February
        return column
    return times.dt.tz_localize(None)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(value) is not None


def _check_writable(texts: Any, path: Path, name: str) -> None:
    """Raise if text is not valid UTF-8, as may happen in HDF5 files."""
    texts = [text for text in texts if isinstance(text, str)]
    if well_formed("".join(texts)) != "".join(texts):
        wrong = next(text for text in texts if well_formed(text) != text)
        raise BadInput(
            f"{path}: column {name!r} holds {wrong[:40]!r}, which is not valid UTF-8. Correct it, or ignore "
            f"the column with --drop {name}."
        )
