"""`mercat view`: open a saved map in the explorer."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

import click

from .._data.text import printable
from . import _options
from ._console import Console, command
from ._embedding import Embedding, read_embedding
from ._outputs import PAGES, Embedded, Outputs, write_page
from ._problems import BadInput, unknown_column
from ._table import Table

EPILOG = """\b
Examples:
  mercat view map.csv
  mercat view map.csv -o map.html --label type
  mercat view mapped.h5ad --no-open

\b
EMBEDDING is a file written by `mercat embed` or `mercat transform`. Without
-o, the page is a temporary file that opens in the browser.
"""


@command(
    _options.data("embedding", "EMBEDDING"),
    _options.output("Write the page to this file instead of a temporary one."),
    _options.label("Column that colours the points initially."),
    click.option("--title", help="Title of the page. [default: the file's name]"),
    click.option(
        "--open/--no-open",
        "open_page",
        default=None,
        help="Open the page in the browser. [default: only without -o]",
    ),
    _options.EMBEDDING_KEY,
    _options.FORCE,
    epilog=EPILOG,
)
def view(
    console: Console,
    embedding: Path,
    output: Path | None,
    label: str | None,
    title: str | None,
    open_page: bool | None,
    embedding_key: str | None,
    force: bool,
) -> None:
    """Open a map in the explorer.

    Writes EMBEDDING as a page with a globe and a map, and opens it in the browser.
    """
    outputs = Outputs(force=force, inputs=[embedding])
    outputs.plan("page", output, PAGES)
    embedded = _embedded(read_embedding(embedding, embedding_key, console), label)
    open_page = output is None if open_page is None else open_page
    if output is None:
        output = Path(tempfile.mkdtemp(prefix="mercat-")) / f"{embedding.stem}.html"
        outputs.plan("page", output, PAGES)
    files = outputs.write(page=lambda path: write_page(embedded, path, title))
    if open_page:
        _open(output, console)
    console.result(printable(str(output)), {"n_points": len(embedded.Y), "files": files})


def _embedded(embedding: Embedding, label: str | None) -> Embedded:
    from .._data.checks import check_unit
    from ..viewer._encode import POINT_LOSS

    try:
        check_unit(str(embedding.path), embedding.Y, some=True)
    except ValueError as error:
        raise BadInput(f"{error} Use a file that `mercat embed` wrote.") from error
    if embedding.loss is not None and POINT_LOSS in embedding.meta:
        raise BadInput(
            f"{embedding.path} has a column {POINT_LOSS!r}, the name under which the page shows "
            f"{embedding.loss_name!r}: rename that column."
        )
    if embedding.loss is not None and label in ("loss", embedding.loss_name):
        label = POINT_LOSS  # the name on the page
    elif label is not None and label not in embedding.meta:
        columns = [
            *embedding.meta.columns,
            *([] if embedding.loss is None else [embedding.loss_name]),
        ]
        raise unknown_column("--label", label, columns, embedding.path, "metadata column")
    table = Table(
        embedding.path, embedding.Y, None, embedding.meta, None, lambda *_: "", uns=embedding.uns
    )
    return Embedded(table, embedding.Y, embedding.loss, label)


def _open(path: Path, console: Console) -> None:
    if not webbrowser.open(path.resolve().as_uri()):
        console.warn(f"No browser could be started. Open {path} in a browser.")
