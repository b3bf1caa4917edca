"""Options that several commands share."""

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


_ParamType: Any = click.ParamType  # generic in some versions of click, and not in others


class FiniteNumber(_ParamType):
    """A number as a parameter of Mercat allows it."""

    name = "float"

    def __init__(self, declared: Number) -> None:
        self.declared = declared

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        if not self.declared.allows(number):
            self.fail(f"must be {self.declared.rule}, got {value!r}.", param, ctx)
        return number


class IntegerOr(_ParamType):
    """A whole number of at least `least`, or one of some words."""

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
            allowed = " or ".join([f"an integer of at least {self.least}", *self.words])
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
            "must be a number of threads, or -1 for all cores, got 0.", ctx, param
        )
    return value


def _one_character(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    delimiter = "\t" if value == "\\t" else value
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise click.BadParameter(
            rf"must be one character other than a quote, or \t for a tab, got {value!r}.",
            ctx,
            param,
        )
    return delimiter


def _only_one(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | None:
    if len(value) > 1:
        raise click.BadParameter(
            f"may be given once, got {', '.join(value)}. Keep others as metadata with --meta.",
            ctx,
            param,
        )
    return value[0] if value else None


def seed(help: str) -> Decorator:
    """--seed, of what is drawn at random."""
    return click.option(
        "--seed",
        "random_state",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help=help,
    )


def label(help: str) -> Decorator:
    """--label, of which a second one is refused: it would leave the first to be embedded."""
    return click.option("--label", metavar="COLUMN", multiple=True, callback=_only_one, help=help)


def data(name: str = "data", metavar: str = "DATA") -> Decorator:
    """The file of a table."""
    return click.argument(name, type=PATH, metavar=metavar)


READING: list[Decorator] = [
    label("Metadata, or a gene of an AnnData file, that colours the map; never embedded."),
    click.option(
        "--meta", metavar="COLUMN", multiple=True, help="Keep a column of numbers as metadata."
    ),
    click.option(
        "--feature", metavar="COLUMN", multiple=True, help="Embed a column that looks like an id."
    ),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Leave a column out altogether."),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        default="error",
        show_default=True,
        help="What to do about rows with missing numbers.",
    ),
    click.option(
        "--key",
        metavar="NAME",
        help="Which array of an .npz file; X, or which key of obsm or layers of an AnnData file "
        "(X_pca where there is one).",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=_one_character,
        help=r"What separates columns of text, if not as found; \t is a tab.",
    ),
    click.option("--header/--no-header", default=None, help="Whether the first line holds names."),
    click.option("--transpose", is_flag=True, help="Columns of the array are the points."),
]
PREPARING: list[Decorator] = [
    click.option("--log1p", is_flag=True, help="Take log(1 + x) of the numbers first."),
    click.option(
        "--scale", is_flag=True, help="Centre each column and divide it by its deviation."
    ),
]


def of_model(name: str, option: str = "", **settings: Any) -> Decorator:
    """The option of a parameter of Mercat, as it is declared; `settings` differ on the command line."""
    declared = PARAMETERS[name]
    option = option or "--" + name.replace("_", "-")
    found: dict[str, Any] = {"default": declared.default, "help": declared.help}
    found["show_default"] = declared.none if declared.default is None else True
    if isinstance(declared, Choice):
        found["type"] = click.Choice(declared.choices)
    elif isinstance(declared, Integer) and declared.words:
        words = {word: word for word in declared.words} | ({"none": None} if declared.none else {})
        found["type"] = IntegerOr(declared.least, **words)
    elif isinstance(declared, Integer):
        found["type"] = click.IntRange(min=declared.least)
    elif isinstance(declared, Number):
        found["type"] = FiniteNumber(declared)
    return click.option(option, name, **(found | settings))


# Parameters of Mercat that are options of every command that fits: a name here makes one more of them.
MODEL: dict[str, Decorator] = {
    name: of_model(name)
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
    "random_state": seed(PARAMETERS["random_state"].help),
    "n_jobs": of_model("n_jobs", type=int, callback=_nonzero),
}
METRIC = of_model(  # of the commands that measure
    "metric", type=click.Choice(["euclidean", "cosine", "correlation"])
)
NEIGHBORS = click.option(
    "-k",
    type=click.IntRange(min=1),
    help="Neighbours. [default: 50, or half of the points if that is less]",
)
EMBEDDING_KEY = click.option(
    "--embedding-key", metavar="NAME", help="Which array of EMBEDDING, if not X_mercat."
)
UNCERTAINTY = click.option(
    "--uncertainty",
    is_flag=True,
    help="Make 20 other maps, and tell how far the place of each point can be trusted.",
)
FORCE = click.option("--force", is_flag=True, help="Replace outputs that exist.")


def output(help: str, *, required: bool = False) -> Decorator:
    """-o FILE."""
    return click.option("-o", "--output", type=PATH, metavar="FILE", required=required, help=help)


def file(name: str, help: str) -> Decorator:
    """An option that names a file to write."""
    return click.option(name, type=PATH, metavar="FILE", help=help)


MAP: list[Decorator] = [
    output(f"Write the map: {', '.join(TABLES)}. By default, CSV to stdout."),
    file("--html", "Write the explorer, a page to open in a browser."),
    file("--png", f"Write a picture: {', '.join(PICTURES)}."),
]


def taken(arguments: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of these names, removed from the others."""
    return {name: arguments.pop(name) for name in names if name in arguments}


def read_options(arguments: dict[str, Any], **more: Any) -> ReadOptions:
    """Those arguments of a command that say how to read, removed from the others."""
    return ReadOptions(**taken(arguments, tuple(ReadOptions.__dataclass_fields__)), **more)
