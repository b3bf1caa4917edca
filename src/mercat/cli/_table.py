"""A table as read from a file: features to embed and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._files.untrusted import allowance
from ._console import Console
from ._problems import BadInput, join_names, pluralize

# Called with row and column; returns a description of where the cell is in the file.
Locate = Callable[[int, int], str]


@dataclass(frozen=True)
class ReadOptions:
    """Options of the command line for reading a file."""

    label: str | None = None
    meta: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: str = "error"
    key: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    transpose: bool = False
    expected: tuple[str, ...] | None = None  # features of the model, if it has names
    # If given, faults are collected here instead of raised: to describe a file without using it.
    faults: list[str] | None = None

    @property
    def metadata_names(self) -> set[str]:
        """Columns that the options declare as metadata."""
        return {*self.meta, *([self.label] if self.label else [])}

    def named_columns(self) -> list[tuple[str, str]]:
        """Pairs of an option and a column that it names."""
        return [
            *(("--label", name) for name in [self.label] if name),
            *(("--meta", name) for name in self.meta),
            *(("--feature", name) for name in self.feature),
            *(("--drop", name) for name in self.drop),
        ]

    def fail(self, fault: str) -> None:
        """Raise an error about the numbers, or append it to `faults` if they are collected."""
        if self.faults is None:
            raise BadInput(fault)
        self.faults.append(fault)


@dataclass(frozen=True)
class Table:
    """Points as rows, with metadata.

    Attributes
    ----------
    path : Path
        The file.
    X : array or sparse matrix of shape (n, d)
        The features.
    features : list of str or None
        Names of the columns of X, if the file has names.
    meta : DataFrame
        The other columns.
    ids : str or None
        The column of `meta` that names the rows.
    locate : callable
        Maps row and column of X to a description of their location in the file.
    adata : AnnData or None
        The whole object, if the file is AnnData.
    key : str or None
        Name of the array X, if the file has several.
    uns : mapping
        `uns` of an AnnData file, else empty.
    """

    path: Path
    X: Any
    features: list[str] | None
    meta: Any
    ids: str | None
    locate: Locate
    adata: Any = None
    key: str | None = None
    uns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    def describe_features(self) -> str:
        """Number and names of the embedded columns, for messages."""
        names = f" ({join_names(self.features, 6)})" if self.features else ""
        return f"{pluralize(self.X.shape[1], 'column')}{names}"

    def describe_metadata(self) -> str:
        """Names of the columns of metadata, for messages."""
        names = [f"{c} (names the rows)" if c == self.ids else str(c) for c in self.meta.columns]
        return join_names(names, 20)

    def select_rows(self, kept: np.ndarray) -> Table:
        """Select rows by number."""
        return replace(
            self,
            X=self.X[kept],
            meta=self.meta.iloc[kept].reset_index(drop=True),
            locate=lambda row, column: self.locate(int(kept[row]), column),
            adata=None if self.adata is None else self.adata[kept],
        )

    def select_features(self, indices: list[int]) -> Table:
        """Select features, in this order."""
        if indices == list(range(self.X.shape[1])):
            return self
        return replace(
            self,
            X=self.X[:, indices],
            features=None if self.features is None else [self.features[k] for k in indices],
            locate=lambda row, column: self.locate(row, indices[column]),
        )

    def drop_features(self, names: Iterable[str]) -> Table:
        """Drop features by name."""
        dropped = set(names)
        features = self.features or []
        if not dropped & set(features):
            return self
        return self.select_features([k for k, name in enumerate(features) if name not in dropped])

    def dense(self, max_bytes: float = 4e9) -> np.ndarray:
        """X as a dense array; raise BadInput if that would be too large."""
        if not self.is_sparse:
            return np.asarray(self.X)
        n, d = self.X.shape
        if n * d * self.X.dtype.itemsize > min(max_bytes, allowance(self.path)):
            raise BadInput(
                f"{self.path} is sparse, and {n:,} x {d:,} numbers are too many for a dense array: measure "
                "principal components, or fewer rows, instead."
            )
        return np.asarray(self.X.toarray())


def check_missing(table: Table, options: ReadOptions, console: Console) -> Table:
    """Raise BadInput for missing or infinite numbers, or drop rows with missing ones, by the options."""
    from .._data.checks import not_finite

    n, d = table.X.shape
    if n == 0 or (d == 0 and not options.faults):
        size = f"{pluralize(n, 'row')} and {pluralize(d, 'column')} of numbers"
        options.fail(f"{table.path} has {size}: nothing to embed.")
    rows, columns = not_finite(table.X)
    if len(rows) == 0:
        return table
    is_infinite = ~np.isnan(np.asarray(table.X[rows, columns])).ravel()
    if is_infinite.any():
        first = int(np.argmax(is_infinite))
        options.fail(f"{table.locate(rows[first], columns[first])}: the number is infinite.")
    if is_infinite.all():
        return table
    rows, columns = rows[~is_infinite], columns[~is_infinite]
    rows_with_missing = np.unique(rows)
    if options.missing == "drop":
        kept = np.setdiff1d(np.arange(n), rows_with_missing)
        if len(kept) == 0:
            raise BadInput(f"{table.path} has no row without a missing number.")
        console.note(
            f"{len(rows_with_missing):,} of {pluralize(n, 'row')} have missing numbers and are left out."
        )
        return table.select_rows(kept)
    columns_with_missing = np.unique(columns)
    features = table.features
    names: Any = columns_with_missing
    if features is not None:
        names = [features[k] for k in columns_with_missing]
    or_drop = "" if features is None else ", or columns with --drop"
    options.fail(
        f"{table.locate(rows[0], columns[0])}: the number is missing. Numbers are missing in "
        f"{len(rows_with_missing):,} of {pluralize(n, 'row')}, in "
        f"{'column' if len(columns_with_missing) == 1 else 'columns'} {join_names(names)}. "
        f"Leave the rows out with --missing drop{or_drop}."
    )
    return table
