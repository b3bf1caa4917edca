"""A table as read from a file: features to embed and metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._files.untrusted import allowance
from ._console import Console
from ._problems import BadInput, counted, listed

Place = Callable[[int, int], str]  # of row and column; describes where the cell is in the file


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
    def kept_apart(self) -> set[str]:
        """Columns that are always metadata."""
        return {*self.meta, *([self.label] if self.label else [])}

    def named(self) -> list[tuple[str, str]]:
        """Pairs of an option and a column that it names."""
        return [
            *(("--label", name) for name in [self.label] if name),
            *(("--meta", name) for name in self.meta),
            *(("--feature", name) for name in self.feature),
            *(("--drop", name) for name in self.drop),
        ]

    def refuse(self, fault: str) -> None:
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
    place : callable
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
    place: Place
    adata: Any = None
    key: str | None = None
    uns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    def named(self) -> str:
        """Number and names of the embedded columns, for messages."""
        names = f" ({listed(self.features, 6)})" if self.features else ""
        return f"{counted(self.X.shape[1], 'column')}{names}"

    def kept(self) -> str:
        """Names of the columns of metadata, for messages."""
        names = [f"{c} (names the rows)" if c == self.ids else str(c) for c in self.meta.columns]
        return listed(names, 20)

    def rows(self, kept: np.ndarray) -> Table:
        """Select rows by number."""
        return replace(
            self,
            X=self.X[kept],
            meta=self.meta.iloc[kept].reset_index(drop=True),
            place=lambda row, column: self.place(int(kept[row]), column),
            adata=None if self.adata is None else self.adata[kept],
        )

    def columns(self, kept: list[int]) -> Table:
        """Select features, in this order."""
        if kept == list(range(self.X.shape[1])):
            return self
        return replace(
            self,
            X=self.X[:, kept],
            features=None if self.features is None else [self.features[k] for k in kept],
            place=lambda row, column: self.place(row, kept[column]),
        )

    def without(self, names: Iterable[str]) -> Table:
        """Drop features by name."""
        left_out = set(names)
        features = self.features or []
        if not left_out & set(features):
            return self
        return self.columns([k for k, name in enumerate(features) if name not in left_out])

    def dense(self, most: float = 4e9) -> np.ndarray:
        """X as a dense array; raise BadInput if that would be too large."""
        if not self.is_sparse:
            return np.asarray(self.X)
        n, d = self.X.shape
        if n * d * self.X.dtype.itemsize > min(most, allowance(self.path)):
            raise BadInput(
                f"{self.path} is sparse, and {n:,} x {d:,} numbers are too many for a dense array: measure "
                "principal components, or fewer rows, instead."
            )
        return np.asarray(self.X.toarray())


def checked(table: Table, options: ReadOptions, console: Console) -> Table:
    """Check the table for missing numbers: raise an error or drop rows, according to the options."""
    from .._data.checks import not_finite

    n, d = table.X.shape
    if n == 0 or (d == 0 and not options.faults):
        size = f"{counted(n, 'row')} and {counted(d, 'column')} of numbers"
        options.refuse(f"{table.path} has {size}: nothing to embed.")
    rows, columns = not_finite(table.X)
    if len(rows) == 0:
        return table
    infinite = ~np.isnan(np.asarray(table.X[rows, columns])).ravel()
    if infinite.any():
        first = int(np.argmax(infinite))
        options.refuse(f"{table.place(rows[first], columns[first])}: the number is infinite.")
    if infinite.all():
        return table
    rows, columns = rows[~infinite], columns[~infinite]
    bad_rows = np.unique(rows)
    if options.missing == "drop":
        kept = np.setdiff1d(np.arange(n), bad_rows)
        if len(kept) == 0:
            raise BadInput(f"{table.path} has no row without a missing number.")
        console.note(
            f"{len(bad_rows):,} of {counted(n, 'row')} have missing numbers and are left out."
        )
        return table.rows(kept)
    bad_columns = np.unique(columns)
    features = table.features
    names = bad_columns if features is None else [features[k] for k in bad_columns]
    or_drop = "" if features is None else ", or columns with --drop"
    options.refuse(
        f"{table.place(rows[0], columns[0])}: the number is missing. Numbers are missing in "
        f"{len(bad_rows):,} of {counted(n, 'row')}, in "
        f"{'column' if len(bad_columns) == 1 else 'columns'} {listed(names)}. "
        f"Leave the rows out with --missing drop{or_drop}."
    )
    return table
