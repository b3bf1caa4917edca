"""`mercat embed`: map a table onto the sphere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .._parameters import DEFAULTS
from . import _options
from ._console import Console, command
from ._outputs import Embedded, Outputs, check_columns, echo_map, map_writers, plan_map
from ._prepare import Preparation
from ._problems import BadInput, pluralize
from ._read import ANNOTATED, ending, read_table
from ._table import Table

EPILOG = """\b
Examples:
  mercat embed cells.csv -o map.csv --label type
  mercat embed cells.csv --html map.html --png map.png --label type
  mercat embed counts.h5ad --key X --log1p -o mapped.h5ad
  mercat embed train.parquet -o train-map.parquet --save-model map.mercat
  mercat embed wide.csv.gz --drop date --scale > map.csv

\b
DATA ends in .csv, .tsv, .txt, .npy, .npz, .parquet, .feather, .h5ad, .zarr
or .mtx (text and .mtx also with .gz). Columns that are not numbers are
metadata.
"""


@command(
    _options.data(),
    *_options.MAP,
    _options.file_option("--save-model", "Write the model, for `mercat transform`."),
    _options.UNCERTAINTY,
    _options.FORCE,
    _options.LABEL,
    *_options.READING,
    *_options.PREPARING,
    *_options.MODEL.values(),
    epilog=EPILOG,
)
def embed(
    console: Console,
    data: Path,
    output: Path | None,
    html: Path | None,
    png: Path | None,
    save_model: Path | None,
    uncertainty: bool,
    force: bool,
    **arguments: Any,
) -> None:
    """Map a table onto the sphere.

    The rows of DATA become points, placed so that the angles between any three of them are preserved.
    """
    outputs = Outputs(force=force, inputs=[data])
    plan_map(outputs, output, html, png)
    outputs.plan("model", save_model)
    parameters = _options.pop_arguments(arguments, tuple(_options.MODEL))
    options = _options.pop_read_options(arguments)
    table = read_table(data, options, console)
    _check_n_rows(table)
    if len(table.meta.columns):
        console.note(f"Metadata, not embedded: {table.describe_metadata()}.")
    check_columns(table, output, html, loss=True, uncertainty=uncertainty)
    preparation = Preparation.fit(table, **arguments, metric=parameters["metric"])
    X = preparation.apply(table)
    from .._solve.trust import column_names

    with column_names(table.features):
        model, seconds = _fit(X, parameters, console)
    result = _uncertainty(model, X, parameters, console) if uncertainty else None
    summary = _summary(table, model, preparation, seconds)
    if result is not None:
        from .._uncertainty.record import median_spread

        spread = median_spread(result)
        summary |= {
            "stability": result.stability,
            "stability_by_chance": result.stability_by_chance,
            "median_spread_degrees": spread.degrees,
            "median_spread_map_sizes": spread.map_sizes,
        }
    uns_params = _uns_params(table, model, preparation)
    if output is not None and ending(output) in ANNOTATED and not preparation:
        from .._files.packed import pack

        uns_params["model"] = pack(model)  # for `mercat ingest` and mercat.tl.ingest
    embedded = Embedded(
        table, model.embedding_, model.point_loss_, options.label, summary, uns_params, result
    )
    files = outputs.write(
        **map_writers(embedded), model=lambda path: _save(path, model, table, preparation)
    )
    lines = [
        f"{pluralize(len(model.embedding_), 'point')} of {table.describe_features()}, in {seconds:.1f} s.",
        f"Correlation of angles{_in_components(model, summary)}: {model.correlation_:.3f} (loss "
        f"{model.loss_:.4f}). {model.status_}",
    ]
    if result is not None:
        lines.append(
            f"Stability over {pluralize(result.n_maps, 'other map')}: {result.stability:.3f} (by chance: "
            f"{result.stability_by_chance:.1f}). Median spread of a point: {spread.in_words}."
        )
    echo_map(console, embedded, lines, files)


def _check_n_rows(table: Table) -> None:
    from .._data.checks import MIN_MAP_POINTS

    n = table.X.shape[0]
    if n < MIN_MAP_POINTS:
        raise BadInput(
            f"{table.path} has {pluralize(n, 'row')}, but a map needs at least {MIN_MAP_POINTS}."
        )


def _in_components(model: Any, summary: dict[str, Any]) -> str:
    """Words for the number of principal components in which angles are measured; empty for all columns."""
    n_components = summary["n_components"]
    if model.n_spectral != "auto" and n_components == summary["n_features"]:
        return ""
    return f" in the {pluralize(n_components, 'principal component')} kept"


def _fit(X: Any, parameters: dict[str, Any], console: Console) -> tuple[Any, float]:
    from .. import Mercat

    start = time.perf_counter()
    model = Mercat(**parameters, verbose=console.progress).fit(X)
    model.set_params(verbose=False)
    n, n_landmarks = len(model.embedding_), parameters["n_landmarks"]
    if n_landmarks != DEFAULTS["n_landmarks"] and n_landmarks < n == len(model.landmarks_):
        console.note(
            f"All {n:,} points were solved together without landmarks: --n-landmarks {n_landmarks} has no "
            "effect on so few points."
        )
    return model, time.perf_counter() - start


def _uncertainty(model: Any, X: Any, parameters: dict[str, Any], console: Console) -> Any:
    from .. import uncertainty

    model.set_params(verbose=console.progress)
    try:
        return uncertainty(model, X, random_state=parameters["random_state"])
    finally:
        model.set_params(verbose=False)


def _summary(table: Table, model: Any, preparation: Preparation, seconds: float) -> dict[str, Any]:
    return {
        "n_points": table.X.shape[0],
        "n_features": table.X.shape[1],
        "n_components": _rank(model),
        "key": table.key,
        "prepared": str(preparation) if preparation else None,
        "loss": float(model.loss_),
        "correlation": float(model.correlation_),
        "status": str(model.status_),
        "seconds": round(seconds, 3),
    }


def _uns_params(table: Table, model: Any, preparation: Preparation) -> dict[str, Any]:
    from .._anndata.maps import describe_model

    prepared = {"prepared": str(preparation)} if preparation else {}
    return describe_model(model, use_rep=table.key or "X") | prepared


def _rank(model: Any) -> int:
    """Number of dimensions after reduction."""
    if model.components_ is not None:
        return len(model.components_)
    if model.metric == "precomputed":
        return len(model.explained_variance_)
    return int(model.n_features_in_)


def _save(path: Path, model: Any, table: Table, preparation: Preparation) -> None:
    from .._files.model import write_model

    write_model(
        model,
        path,
        {
            **preparation.notes(),
            "features": table.features,
            "key": table.key if table.adata is not None else None,
        },
    )
