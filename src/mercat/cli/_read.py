"""Read a table in the format given by its file name's suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .._extras import require
from .._files.untrusted import check_file, short
from . import _annotated, _arrays, _matrix_market
from ._columns import Frame, frame_table
from ._console import Console
from ._problems import BadInput, any_error_as_bad_input, as_bad_input, join_names
from ._table import ReadOptions, Table, check_missing
from ._text import read_text

TEXT, COLUMNAR, ANNOTATED = (".csv", ".tsv", ".txt"), (".parquet", ".feather"), (".h5ad", ".zarr")
# Options that apply to some formats only.
_ONLY_FOR = {
    "key": (".npz", *ANNOTATED),
    "delimiter": TEXT,
    "header": TEXT,
    "transpose": (".npy", ".npz", ".mtx"),
    "feature": (*TEXT, *COLUMNAR, ".npy", ".npz", ".mtx"),
}
ENDINGS = (*TEXT, ".npy", ".npz", *COLUMNAR, *ANNOTATED, ".mtx")


def ending(path: Path) -> str:
    """The suffix that determines the format, without .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_table(path: Path, options: ReadOptions, console: Console) -> Table:
    """Read a table from a file; rows with missing numbers raise an error or are dropped."""
    with any_error_as_bad_input(path):
        return _read_table(path, options, console)


def _read_table(path: Path, options: ReadOptions, console: Console) -> Table:
    kind = ending(path)
    check_readable(path, kind)
    for option, kinds in _ONLY_FOR.items():
        if getattr(options, option) != getattr(ReadOptions, option) and kind not in kinds:
            raise click.UsageError(f"--{option} is for {join_names(kinds, 9)} files, got {path}.")
    if kind in (*TEXT, *COLUMNAR):
        table = frame_table(read_frame(path, options, console), options, console)
    else:
        readers: dict[str, Callable[..., Table]] = {
            ".npy": _arrays.read_npy,
            ".npz": _arrays.read_npz,
            ".h5ad": _annotated.read_anndata,
            ".zarr": _annotated.read_anndata,
            ".mtx": _matrix_market.read_mtx,
        }
        table = readers[kind](path, options, console)
    return check_missing(table, options, console)


def files_read(path: Path) -> list[Path]:
    """A file and its companion files."""
    companions = _matrix_market.companions(path) if ending(path) == ".mtx" else ()
    return [path, *filter(None, companions)]


def check_readable(path: Path, kind: str) -> None:
    """Raise unless the file exists, its format is known, and pandas is installed."""
    if str(path) == "-":
        raise BadInput(
            "Data cannot be read from stdin (-): write them to a file first, as in `... > data.csv`."
        )
    if kind not in ENDINGS:
        raise BadInput(
            f"{path} must end in one of {join_names(ENDINGS, 20)}, which determines its format, "
            f"got {repr(kind) if kind else 'no ending'}."
        )
    check_exists(path, folder=kind == ".zarr")
    require("pandas", f"Reading {path}", "cli")


def check_exists(path: Path, *, folder: bool = False) -> None:
    """Raise unless the path is a regular file, or a folder if `folder`."""
    try:
        with as_bad_input():
            check_file(path, folder=folder)
    except BadInput as error:
        is_missing = isinstance(error.__cause__, FileNotFoundError)
        raise BadInput(f"{path} does not exist.") if is_missing else error from None


def read_frame(path: Path, options: ReadOptions, console: Console) -> Frame:
    """Read the columns of a text, Parquet or Feather file."""
    with as_bad_input():
        if ending(path) in TEXT:
            data, file = read_text(path, options, console)
            return Frame(path, data, file.names, file.locate)
        data = _columnar(path)
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{path} has two columns {twice!r}. Give each column its own name.")
    return Frame(
        path, data, names, lambda row, column: f"{path}, row {row}, column {names[column]!r}"
    )


def _columnar(path: Path) -> Any:
    """Read a Parquet or Feather file; an index becomes the first column."""
    import pandas as pd

    require("pyarrow", f"Reading {path}", "cli")
    reader = pd.read_parquet if ending(path) == ".parquet" else pd.read_feather
    try:
        frame = reader(path)
    except ImportError:  # a version of pyarrow that pandas does not support
        raise
    except Exception as error:  # pyarrow raises errors of many types
        raise BadInput(f"{path} is broken or truncated: {short(error)}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        index, name = frame.index.to_flat_index().map(str), frame.index.name
        frame = frame.reset_index(drop=True)
        frame.insert(0, "" if name in (None, *frame.columns) else str(name), index)
    return frame
