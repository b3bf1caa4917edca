"""Errors of the command line, each with an exit code (click uses 2 for wrong usage)."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .._data.text import printable
from .._files.untrusted import short


class Problem(click.ClickException):
    """An error that is shown as one sentence."""

    exit_code = 1


class BadInput(Problem):
    """A file cannot be read or used."""

    exit_code = 3


class BadOutput(Problem):
    """A file exists or cannot be written."""

    exit_code = 4


class MissingPackage(Problem):
    """An optional package is not installed."""

    exit_code = 5


class Interrupted(Problem):
    """Ctrl-C."""

    exit_code = 130


@contextmanager
def as_bad_input() -> Iterator[None]:
    """Turn ValueError and OSError of the library, whose messages name the file, into BadInput."""
    try:
        yield
    except UnicodeError:
        raise  # its message does not name the file
    except ValueError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename is not None else "A file"
        raise BadInput(f"{where} cannot be read: {error.strerror or error}.") from error


@contextmanager
def any_error_as_bad_input(path: Path) -> Iterator[None]:
    """Turn any exception except problems, ImportError and MemoryError into BadInput that names the file."""
    try:
        with as_bad_input():
            yield
    except (click.ClickException, ImportError, MemoryError):
        raise
    except Exception as error:
        raise BadInput(
            f"{path} cannot be read as a table: {type(error).__name__}, {short(error)}"
        ) from error


def join_names(names: Iterable[Any], most: int = 8) -> str:
    """Join names for a message, at most `most` of them."""
    names = [printable(str(name)) for name in names]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def pluralize(n: int, noun: str) -> str:
    """A number and a noun: 1 row, 1,200 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def unknown_column(
    option: str,
    name: str,
    columns: Iterable[Any],
    path: Any,
    what: str = "column",
    genes: Iterable[Any] = (),
) -> click.BadParameter:
    """The error for an option that names an unknown column or gene."""
    columns = [str(column) for column in columns if column != ""]
    genes = [str(gene) for gene in genes]
    close = difflib.get_close_matches(name, [*columns, *genes], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    known = f"Its {what}s: {join_names(columns)}." if columns else "It has none with a name."
    known += f" It has {pluralize(len(genes), 'gene')}, too." if genes else ""
    what += " or gene" if genes else ""
    return click.BadParameter(
        f"{path} has no {what} {name!r}.{hint} {known}",
        param_hint=f"'{option}'",
    )
