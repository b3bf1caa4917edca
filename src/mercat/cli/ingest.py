"""`mercat ingest`: place new cells on the map of a reference."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from . import _options
from ._annotated import load, read_anndata
from ._columns import plain
from ._console import Console, command
from ._outputs import Embedded, Outputs, check_columns, echo_map, map_writers, plan_map
from ._problems import BadInput, join_names, pluralize, unknown_column
from ._read import ANNOTATED, check_readable, ending
from ._table import ReadOptions

EPILOG = """\b
Examples:
  mercat embed atlas.h5ad -o atlas-map.h5ad
  mercat ingest atlas-map.h5ad new.h5ad -o new-map.h5ad --transfer cell_type
  mercat ingest atlas-map.h5ad new.h5ad --html new.html --transfer cell_type

\b
Both are AnnData files (.h5ad, .zarr), normalised and log-transformed in the
same way. Genes are matched by name; new cells are projected onto the
components of the reference. The column mercat_fit is near 0 for cells that
are unlike all cells of the reference.
"""

_POOR_FIT = 0.01  # cells with a lower fit are unlike any cell of the reference


@command(
    _options.data("reference", "REFERENCE"),
    _options.data("query", "QUERY"),
    *_options.MAP,
    _options.FORCE,
    click.option(
        "--transfer",
        multiple=True,
        metavar="COLUMN[=NAME]",
        help="Transfer this column of labels of REFERENCE, under a new name if given, with the fraction of "
        "neighbours that agree.",
    ),
    click.option(
        "-k",
        "n_neighbors",
        type=click.IntRange(min=1),
        default=15,
        show_default=True,
        help="Number of nearest reference cells used for labels and fit.",
    ),
    epilog=EPILOG,
)
def ingest(
    console: Console,
    reference: Path,
    query: Path,
    output: Path | None,
    html: Path | None,
    png: Path | None,
    force: bool,
    transfer: tuple[str, ...],
    n_neighbors: int,
) -> None:
    """Place new cells on the map of a reference.

    Places the cells of QUERY on the map that `mercat embed` or mercat.tl.mercat wrote into REFERENCE.
    """
    from .. import tl
    from .._anndata.keys import KEY, SHORT, loss_column, sphere_of

    outputs = Outputs(force=force, inputs=[reference, query])
    plan_map(outputs, output, html, png)
    for path in (reference, query):
        check_readable(path, ending(path))
        if ending(path) not in ANNOTATED:
            raise BadInput(f"{path} must be an AnnData file, {join_names(ANNOTATED)}.")
    table = read_anndata(query, ReadOptions(key="X"), console)
    cells = table.adata
    atlas = load(reference)
    labels = _labels(transfer, atlas, cells, (reference, query))
    with _logs_shown(console):
        tl.ingest(cells, atlas, obs=labels, n_neighbors=n_neighbors)
    loss_name = loss_column(KEY)
    for name in cells.obs.columns:
        if name not in table.meta and name != loss_name:
            table.meta[name] = plain(cells.obs[name].reset_index(drop=True), query, name)
    check_columns(table, output, html, loss=True)
    Y, fit = np.asarray(cells.obsm[sphere_of(KEY)]), cells.obs[f"{SHORT}_fit"].to_numpy()
    uns_params = {name: value for name, value in cells.uns[SHORT].items() if name != "n_beyond_map"}
    missing = uns_params["reference"]["missing_genes"]
    summary = {
        "reference": str(reference),
        "n_points": len(Y),
        "n_reference": uns_params["reference"]["n_obs"],
        "n_missing_genes": len(missing),
        "median_fit": float(np.median(fit)),
        "poor_fit": int((fit < _POOR_FIT).sum()),
    }
    embedded = Embedded(
        table,
        Y,
        cells.obs[loss_name].to_numpy(),
        next(iter(labels.values()), None),
        summary,
        uns_params,
    )
    files = outputs.write(**map_writers(embedded))
    lines = [
        f"{pluralize(len(Y), 'cell')} placed among {pluralize(summary['n_reference'], 'cell')} of "
        f"{reference}.",
        f"The median fit is {summary['median_fit']:.2f}; {pluralize(summary['poor_fit'], 'cell')} "
        f"{'is' if summary['poor_fit'] == 1 else 'are'} below {_POOR_FIT}, unlike any cell of the reference.",
    ]
    echo_map(console, embedded, lines, files)


def _labels(
    transfer: tuple[str, ...], atlas: Any, cells: Any, paths: tuple[Path, Path]
) -> dict[str, str]:
    """The columns of the reference to transfer, with their names in the query."""
    names = {}
    for option in transfer:
        name, new = option, option
        if option not in atlas.obs and "=" in option:
            name, _, new = option.rpartition("=")
        if name not in atlas.obs:
            raise unknown_column("--transfer", name, atlas.obs.columns, paths[0])
        if new in cells.obs and f"{new}_confidence" not in cells.obs:
            raise click.BadParameter(
                f"{paths[1]} already has a column {new!r}: use another name with --transfer {name}=NAME.",
                param_hint="'--transfer'",
            )
        names[name] = new
    return names


class _LogsToConsole(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        echo = self.console.warn if record.levelno >= logging.WARNING else self.console.note
        echo(record.getMessage())


@contextmanager
def _logs_shown(console: Console) -> Iterator[None]:
    """Show the log messages of `tl` as notes and warnings of the command."""
    logger, handler = logging.getLogger("mercat.tl"), _LogsToConsole(console)
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
