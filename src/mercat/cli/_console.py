"""What a command says: results on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import functools
import json
import logging
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from .._data.text import printable, printable_json
from .._extras import MissingExtra
from ._problems import BadInput, BadOutput, Interrupted, MissingPackage, Problem

_FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning)


class Console:
    """Says results, notes and warnings, as loud as the user wants it."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.notes: list[str] = []

    @property
    def progress(self) -> bool:
        """Whether to show progress bars: to a person, not to a log."""
        return not self.quiet and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Tell of a decision that was made for the user."""
        self.notes.append(text)
        if not self.quiet:
            say(f"note: {printable(text)}", err=True)

    def warn(self, text: str) -> None:
        """Tell of something that may be wrong, even when quiet."""
        self.notes.append(text)
        say(f"warning: {printable(text)}", err=True)

    def result(self, text: str, data: dict[str, Any]) -> None:
        """The result, as text or as JSON with the notes."""
        if self.as_json:
            content = _jsonable(data | {"notes": self.notes})
            text = printable_json(
                json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
            )
        if text:
            say(text)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Python's warnings as sentences, each once; the library's errors as problems with exit codes."""
        said: set[str] = set()

        def show(message: Any, category: Any, *_: Any) -> None:
            text = " ".join(str(message).split())
            if not issubclass(category, _FOR_DEVELOPERS) and text not in said:
                said.add(text)
                self.warn(text)

        with warnings.catch_warnings(), _logged(self.warn):
            warnings.simplefilter("default")
            warnings.showwarning = show  # type: ignore[assignment]
            try:
                yield
            except MissingExtra as error:
                raise MissingPackage(str(error)) from error
            except ValueError as error:
                raise BadInput(str(error)) from error
            except MemoryError as error:
                raise Problem(f"Not enough memory: {error}") from error
            except KeyboardInterrupt:
                raise Interrupted("Interrupted.") from None


def say(text: str, *, err: bool = False) -> None:
    """Print lines: the one way by which text, whoever wrote it, reaches the terminal.

    What a terminal would obey is shown as text; ends of lines are kept, and whoever puts a name of a file
    into a line has made it `printable` before. The map itself, which is data, goes to stdout as it is where
    that is no terminal: see `say_map`.
    """
    if err:
        click.echo(printable(text, lines=True), err=True)
        return
    with printing():
        click.echo(printable(text, lines=True))


@contextmanager
def _logged(tell: Callable[[str], None]) -> Iterator[None]:
    """What libraries log of a file, which would otherwise go to stderr as it is."""

    class Teller(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    teller, root = Teller(logging.WARNING), logging.getLogger()
    root.addHandler(teller)
    try:
        yield
    finally:
        root.removeHandler(teller)


@contextmanager
def _told_safely() -> Iterator[None]:
    """Errors, also click's own, whose text a terminal can be shown."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = printable(error.message)
        raise


def show_traceback(kind: Any, error: BaseException, trace: Any) -> None:
    """As Python shows an error that nobody has foreseen, safe for a terminal."""
    say("".join(traceback.format_exception(kind, error, trace)), err=True)


@contextmanager
def printing() -> Iterator[None]:
    """For what goes to stdout, which may be a disk that is full."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader has seen enough; click ends quietly
            raise
        # What is left in the buffer must not fail again when Python ends.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        why = error.strerror or error
        raise BadOutput(f"The result cannot be written to stdout: {why}.") from error


class _Helped:
    """A click command whose help goes to stdout, too, and whose messages about files are safe to show."""

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        with printing(), _told_safely():
            context: click.Context = super().make_context(*arguments, **keywords)  # type: ignore[misc]
            return context

    def invoke(self, context: click.Context) -> Any:
        with _told_safely():
            return super().invoke(context)  # type: ignore[misc]


class HelpedCommand(_Helped, click.Command):
    """A command whose help may meet a full disk."""


class HelpedGroup(_Helped, click.Group):
    """A group of commands, the same."""


def command(*options: Callable[..., Any], epilog: str) -> Callable[..., click.Command]:
    """A click command with --quiet and --json whose function takes a `Console` first."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run(quiet: bool, as_json: bool, **arguments: Any) -> None:
            console = Console(quiet=quiet, as_json=as_json)
            with console.listening():
                function(console, **arguments)

        decorated: Any = run
        for option in reversed([*options, *_LOUDNESS]):
            decorated = option(decorated)
        return click.command(
            cls=HelpedCommand,
            epilog=epilog,
            context_settings={"help_option_names": ["-h", "--help"]},
        )(decorated)

    return decorate


_LOUDNESS = [
    click.option(
        "--json", "as_json", is_flag=True, help="Print the result as JSON, for programs to read."
    ),
    click.option("-q", "--quiet", is_flag=True, help="No progress bars and no notes."),
]


def _jsonable(value: Any) -> Any:
    """What JSON can hold: NumPy's numbers as Python's, NaN as null."""
    if isinstance(value, dict):
        return {str(key): _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
