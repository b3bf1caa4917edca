"""Output of commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import functools
import json
import logging
import math
import os
import sys
import threading
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
    """Prints results, notes and warnings, according to --quiet and --json."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.notes: list[str] = []

    @property
    def progress(self) -> bool:
        """Whether to show progress bars: only on a terminal."""
        return not self.quiet and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Print a note about a decision made for the user, unless quiet."""
        self.notes.append(text)
        if not self.quiet:
            echo(f"note: {printable(text)}", err=True)

    def warn(self, text: str) -> None:
        """Print a warning, even if quiet."""
        self.notes.append(text)
        echo(f"warning: {printable(text)}", err=True)

    def result(self, text: str, data: dict[str, Any]) -> None:
        """Print the result, as text, or as JSON with the notes."""
        if self.as_json:
            content = _jsonable(data | {"notes": self.notes})
            text = printable_json(
                json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
            )
        if text:
            echo(text)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Print each Python warning once; turn errors of the library into problems with exit codes."""
        printed: set[str] = set()

        def show(message: Any, category: Any, *_: Any) -> None:
            text = " ".join(str(message).split())
            if not issubclass(category, _FOR_DEVELOPERS) and text not in printed:
                printed.add(text)
                self.warn(text)

        with warnings.catch_warnings(), _forwarding_logs(self.warn):
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


def echo(text: str, *, err: bool = False) -> None:
    """Print lines of text with control characters escaped. All text for the terminal passes through here.

    Line ends are kept, so names within a line must be made `printable` before. Only a map that is piped to
    another program is written as it is: see `say_map`.
    """
    if err:
        click.echo(printable(text, lines=True), err=True)
        return
    with handling_stdout_errors():
        click.echo(printable(text, lines=True))


class _LogForwarder(logging.Handler):
    """Passes log messages of warnings and errors to a function."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self.write = write

    def emit(self, record: logging.LogRecord) -> None:
        self.write(record.getMessage())


@contextmanager
def _forwarding_logs(write: Callable[[str], None]) -> Iterator[None]:
    """Pass log messages of libraries, which may contain text of a file, to `write`."""
    handler, root = _LogForwarder(write), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _escaped_errors() -> Iterator[None]:
    """Escape control characters in error messages, including click's own."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = printable(error.message)
        raise


def show_traceback(kind: Any, error: BaseException, trace: Any) -> None:
    """Print a traceback with control characters escaped."""
    echo("".join(traceback.format_exception(kind, error, trace)), err=True)


def show_errors_safely() -> None:
    """Escape control characters in errors outside of commands: in threads, tasks and destructors."""

    def show_exception(info: Any) -> None:
        show_traceback(info.exc_type, info.exc_value, info.exc_traceback)

    sys.excepthook = show_traceback
    sys.unraisablehook = threading.excepthook = show_exception
    logging.lastResort = _LogForwarder(lambda text: echo(f"warning: {printable(text)}", err=True))


@contextmanager
def handling_stdout_errors() -> Iterator[None]:
    """Handle errors of stdout, such as a full disk."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader has closed the pipe; click exits quietly
            raise
        # The rest of the buffer must not fail again at exit.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        reason = error.strerror or error
        raise BadOutput(f"The result cannot be written to stdout: {reason}.") from error


class _Safe:
    """Handling of errors of stdout and escaping of messages for click commands, including --help."""

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        with handling_stdout_errors(), _escaped_errors():
            context: click.Context = super().make_context(*arguments, **keywords)  # type: ignore[misc]
            return context

    def invoke(self, context: click.Context) -> Any:
        with _escaped_errors():
            return super().invoke(context)  # type: ignore[misc]


class SafeCommand(_Safe, click.Command):
    """A command with error handling."""


class SafeGroup(_Safe, click.Group):
    """A group of commands with error handling."""


def command(*options: Callable[..., Any], epilog: str) -> Callable[..., click.Command]:
    """Decorator for a click command with --quiet and --json; its function takes a `Console` first."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run(quiet: bool, as_json: bool, **arguments: Any) -> None:
            console = Console(quiet=quiet, as_json=as_json)
            with console.reporting():
                function(console, **arguments)

        decorated: Any = run
        for option in reversed([*options, *_VERBOSITY]):
            decorated = option(decorated)
        return click.command(
            cls=SafeCommand,
            epilog=epilog,
            context_settings={"help_option_names": ["-h", "--help"]},
        )(decorated)

    return decorate


_VERBOSITY = [
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Do not show progress bars and notes."),
]


def _jsonable(value: Any) -> Any:
    """Convert to types of JSON: NumPy scalars to Python's, NaN to null."""
    if isinstance(value, dict):
        return {str(key): _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
