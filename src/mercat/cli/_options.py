"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .._parameters import PARAMETERS, Choice, Integer, Number
from ._outputs import PICTURES, TABLES
from ._table import ReadOptions

Decorator = Callable[..., Any]
PATH: Any = click.Path(path_type=Path)


_ParamType: Any = click.ParamType  # generic in some versions of click only


class BoundedNumber(_ParamType):
    """A number within the bounds of a parameter of Mercat."""

    name = "float"

    def __init__(self, parameter: Number) -> None:
        self.parameter = parameter

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        if not self.parameter.allows(number):
            self.fail(f"must be {self.parameter.rule}, got {value!r}.", param, ctx)
        return number


class IntegerOr(_ParamType):
    """An integer of at least `least`, or one of several words, each of which stands for a value."""

    name = "integer"

    def __init__(self, least: int, **words: Any) -> None:
        self.least, self.words = least, words

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        del param, ctx
        return "|".join(["N", *self.words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value in self.words:
            return self.words[value]
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least:
            allowed = f"an integer of at least {self.least}, or {' or '.join(self.words)}"
            self.fail(f"must be {allowed}, got {value!r}.", param, ctx)
        return number

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        del ctx, param
        return [
            click.shell_completion.CompletionItem(w) for w in self.words if w.startswith(incomplete)
        ]


def _nonzero(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if value == 0:
        raise click.BadParameter(
            "must be a non-zero number of threads, or -1 for all cores, got 0.", ctx, param
        )
    return value


def _one_character(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    delimiter = "\t" if value == "\\t" else value
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise click.BadParameter(
            rf"must be one character other than a quotation mark, or \t for a tab, got {value!r}.",
            ctx,
            param,
        )
    return delimiter


def _only_one(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
    if len(value) > 1:
        raise click.BadParameter(
            f"may be given only once, got {', '.join(value)}. Keep other columns as metadata with --meta.",
            ctx,
            param,
        )
    return value[0] if value else None


def seed(help: str) -> Decorator:
    """--seed."""
    return click.option(
        "--seed",
        "random_state",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help=help,
    )


def label(help: str) -> Decorator:
    """--label, at most once: of two columns, click would keep the second, and the first would be embedded."""
    return click.option("--label", metavar="COLUMN", multiple=True, callback=_only_one, help=help)


LABEL = label("Colour the map by this column, or gene of an AnnData file; it is not embedded.")


def data(name: str = "data", metavar: str = "DATA") -> Decorator:
    """The path of a table."""
    return click.argument(name, type=PATH, metavar=metavar)


# Options for reading a table, except --label, whose meaning depends on the command.
READING: list[Decorator] = [
    click.option(
        "--meta", metavar="COLUMN", multiple=True, help="Keep a numeric column as metadata."
    ),
    click.option(
        "--feature",
        metavar="COLUMN",
        multiple=True,
        help="Use a column that looks like an id as data.",
    ),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Ignore a column."),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        default="error",
        show_default=True,
        help="What to do with rows with missing numbers.",
    ),
    click.option(
        "--key",
        metavar="NAME",
        help="What to read: an array in an .npz file; or X, or a key of obsm or layers, in an AnnData file "
        "[default: X_pca if present, else X].",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=_one_character,
        help=r"Delimiter of text files; \t is a tab. [default: detected]",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line contains names. [default: detected]",
    ),
    click.option("--transpose", is_flag=True, help="Treat columns as points."),
]
PREPARING: list[Decorator] = [
    click.option("--log1p", is_flag=True, help="Transform the data by log(1 + x) first."),
    click.option(
        "--scale", is_flag=True, help="Standardize each column to mean 0 and standard deviation 1."
    ),
]


def model_option(name: str, option: str = "", **settings: Any) -> Decorator:
    """Option for a parameter of Mercat, with its declared default and help; `settings` override these."""
    parameter = PARAMETERS[name]
    option = option or "--" + name.replace("_", "-")
    click_settings: dict[str, Any] = {"default": parameter.default, "help": parameter.help}
    click_settings["show_default"] = parameter.none if parameter.default is None else True
    if isinstance(parameter, Choice):
        click_settings["type"] = click.Choice(parameter.choices)
    elif isinstance(parameter, Integer) and parameter.words:
        words = {word: word for word in parameter.words} | (
            {"none": None} if parameter.none else {}
        )
        click_settings["type"] = IntegerOr(parameter.least, **words)
    elif isinstance(parameter, Integer):
        click_settings["type"] = click.IntRange(min=parameter.least)
    elif isinstance(parameter, Number):
        click_settings["type"] = BoundedNumber(parameter)
    return click.option(option, name, **(click_settings | settings))


# Parameters of Mercat that are options of all commands that fit a map.
MODEL: dict[str, Decorator] = {
    name: model_option(name)
    for name in (
        "objective",
        "detail",
        "neighbors",
        "n_detail",
        "n_spectral",
        "metric",
        "n_landmarks",
    )
} | {
    "n_detail": model_option("n_detail", show_default="all rows"),
    "random_state": seed("Seed for the neighbour search in large data and for --uncertainty."),
    "n_jobs": model_option("n_jobs", type=int, callback=_nonzero),
}
METRIC = model_option(  # for commands that compute measures
    "metric", type=click.Choice(["euclidean", "cosine", "correlation"])
)
NEIGHBORS = click.option(
    "-k",
    type=click.IntRange(min=1),
    help="Number of neighbours. [default: 50, at most half of the points]",
)
EMBEDDING_KEY = click.option(
    "--embedding-key",
    metavar="NAME",
    help="Where the map is in EMBEDDING: an array in an .npz file, or a key of obsm in an AnnData file. "
    "[default: Y, embedding or X_mercat]",
)
UNCERTAINTY = click.option(
    "--uncertainty",
    is_flag=True,
    help="Compute the uncertainty of each position, from 20 other maps.",
)
FORCE = click.option("--force", is_flag=True, help="Overwrite existing outputs.")


def output(help: str, *, required: bool = False) -> Decorator:
    """-o FILE."""
    return click.option("-o", "--output", type=PATH, metavar="FILE", required=required, help=help)


def file_option(name: str, help: str) -> Decorator:
    """An option for a file to write."""
    return click.option(name, type=PATH, metavar="FILE", help=help)


MAP: list[Decorator] = [
    output(f"Write the map: {', '.join(TABLES)}. By default, CSV to stdout."),
    file_option("--html", "Write the explorer, a page to open in a browser."),
    file_option("--png", f"Write a picture: {', '.join(PICTURES)}."),
]


def pop_arguments(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Pop the arguments with these names."""
    return {name: arguments.pop(name) for name in names if name in arguments}


def pop_read_options(arguments: dict[str, Any], **more: Any) -> ReadOptions:
    """Pop the options for reading a file."""
    return ReadOptions(**pop_arguments(arguments, tuple(ReadOptions.__dataclass_fields__)), **more)
