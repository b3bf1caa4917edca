"""`mercat evaluate`: measure how faithful a map is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from . import _options
from ._console import Console, command
from ._embedding import check_rows, read_embedding
from ._measures import class_labels, dominance_warning, resolve_k, scores_as_data, to_metric
from ._prepare import Preparation
from ._read import read_table

EPILOG = """\b
Examples:
  mercat evaluate cells.csv map.csv
  mercat evaluate cells.csv map.csv --label type --json
  mercat evaluate counts.h5ad umap.h5ad --embedding-key X_umap

\b
EMBEDDING is a file written by `mercat embed`, or a table of two or three
numeric columns by another method, with the rows of DATA in the same order.
"""


@command(
    _options.data(),
    _options.data("embedding", "EMBEDDING"),
    _options.EMBEDDING_KEY,
    _options.NEIGHBORS,
    click.option(
        "--n-points",
        type=_options.IntegerOr(10, auto="auto"),
        default="auto",
        show_default=True,
        help="Number of sampled points; auto: all points of small data, at most 1000 of large data.",
    ),
    _options.seed("Seed for the sample of points."),
    _options.METRIC,
    _options.label("Column of DATA whose classes are measured; it is not compared."),
    *_options.READING,
    *_options.PREPARING,
    epilog=EPILOG,
)
def evaluate(
    console: Console,
    data: Path,
    embedding: Path,
    embedding_key: str | None,
    k: int | None,
    n_points: Any,
    random_state: int,
    metric: str,
    **arguments: Any,
) -> None:
    """Measure how faithful a map is.

    Compares the angles, distances, neighbours and density of EMBEDDING with those of DATA.
    """
    options = _options.pop_read_options(arguments)
    table = read_table(data, options, console)
    embedded = read_embedding(embedding, embedding_key, console)
    check_rows(table, embedded)
    k = resolve_k(k, len(embedded.Y), console)
    table = replace(table, X=table.dense())
    preparation = Preparation.fit(table, **arguments, metric=metric)
    if missing := preparation.missing_steps(embedded.prepared):
        console.warn(
            f"{embedding} is a map of data prepared by {' '.join(missing)}, but {data} is measured without: "
            f"pass {' '.join(missing)}, as to mercat embed."
        )
    from .. import metrics

    X = preparation.apply(table)
    if sentence := dominance_warning(X, table.features, metric):
        console.warn(sentence)
    scores = metrics.report(
        to_metric(X, metric),
        embedded.Y,
        class_labels(table, options.label, console),
        k=k,
        n_points=n_points,
        random_state=random_state,
        verbose=console.progress,
    )
    console.result(repr(scores), {"n_points": len(embedded.Y), "measures": scores_as_data(scores)})
