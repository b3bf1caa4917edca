"""`mercat evaluate`: how faithful a map is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from . import _options
from ._console import Console, command
from ._embedding import check_rows, read_embedding
from ._prepare import Preparation
from ._problems import BadInput, counted
from ._read import read_table

EPILOG = """\b
Examples:
  mercat evaluate cells.csv map.csv
  mercat evaluate cells.csv map.csv --label type --json
  mercat evaluate counts.h5ad umap.h5ad --embedding-key X_umap

\b
EMBEDDING is what `mercat embed` wrote, or a table of two or three columns of
numbers by another method. The rows must be those of DATA, in their order.
"""


@command(
    _options.data(),
    _options.data("embedding", "EMBEDDING"),
    _options.EMBEDDING_KEY,
    _options.NEIGHBORS,
    click.option(
        "--n-points",
        type=click.IntRange(min=10),
        default=5000,
        show_default=True,
        help="Points at which to measure.",
    ),
    _options.seed("The same seed measures at the same points."),
    _options.METRIC,
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
    n_points: int,
    random_state: int,
    metric: str,
    **arguments: Any,
) -> None:
    """Measure how faithful a map is.

    Compares the angles, distances, neighbours and density of EMBEDDING with those of DATA.
    """
    options = _options.read_options(arguments)
    table = read_table(data, options, console)
    found = read_embedding(embedding, embedding_key, console)
    check_rows(table, found)
    k = neighbors(k, len(found.Y), console)
    table = replace(table, X=table.dense())
    preparation = Preparation.fit(table, **arguments, metric=metric)
    from .. import metrics

    scores = metrics.report(
        in_metric(preparation.apply(table), metric),
        found.Y,
        labels(table, options.label, console),
        k=k,
        n_points=n_points,
        random_state=random_state,
    )
    console.result(repr(scores), {"n_points": len(found.Y), "measures": scores_as_data(scores)})


def scores_as_data(scores: Any) -> dict[str, dict[str, float]]:
    """Measures as JSON has them."""
    return {
        name: {"score": float(score), "standard_error": score.standard_error}
        for name, score in scores.items()
    }


def neighbors(k: int | None, n: int, console: Console) -> int:
    """-k; by default that of `metrics.report`, which is said where the points are few."""
    from ..metrics._neighborhood import N_COMPARED

    if k is None:
        k = max(1, min(N_COMPARED, (n - 1) // 2))
        if k < N_COMPARED:
            console.note(
                f"Neighbourhoods are of {counted(k, 'point')}, not {N_COMPARED}: less than half of the {n}."
            )
    if k >= n:
        raise BadInput(f"-k must be less than the number of points, {n}, got {k}.")
    return k


def in_metric(X: np.ndarray, metric: str) -> np.ndarray:
    """Rows whose Euclidean distances are those of the metric, as `Mercat` has them."""
    from .._spectral import prepare_rows

    if metric == "euclidean":
        return X
    rows, offset = prepare_rows(X, metric)
    return np.asarray(rows - offset[:, None])


def labels(table: Any, name: str | None, console: Console) -> Any:
    """The classes for the measures that need them; None where one is missing."""
    if name is None:
        return None
    column = table.meta[name]
    missing = column.isna().to_numpy()
    if column.dtype.kind == "f" and column.nunique() > len(column) // 2:
        console.note(f"{name!r} holds measurements, not classes: no measures of classes.")
        return None
    if (~missing).sum() < 3:
        raise BadInput(f"{table.path}: fewer than 3 rows have a label {name!r}.")
    if missing.any():
        console.note(
            f"{missing.sum():,} of {counted(len(column), 'row')} have no label {name!r} and do not count in "
            "the measures of classes."
        )
    if column.nunique() < 3:
        console.note(
            f"{name!r} has fewer than 3 classes: the distances of their centroids have nothing to correlate."
        )
    return column.astype(str).astype(object).where(~missing, None).to_numpy()
