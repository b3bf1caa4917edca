"""`mercat transform`: place new rows on a fitted map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._data.text import well_formed
from . import _options
from ._columns import missing_columns_message
from ._console import Console, command
from ._outputs import Embedded, Outputs, check_columns, echo_map, map_writers, plan_map
from ._prepare import Preparation
from ._problems import BadInput, as_bad_input, pluralize
from ._read import ANNOTATED, ending, read_table
from ._table import Table

EPILOG = """\b
Examples:
  mercat embed train.csv -o train-map.csv --save-model map.mercat
  mercat transform map.mercat new.csv -o new-map.csv
  mercat transform map.mercat new.csv --html new.html --label type

\b
--log1p and --scale are applied as they were to the training data. Columns are
matched by name.
"""


@command(
    _options.data("model", "MODEL"),
    _options.data(),
    *_options.MAP,
    _options.FORCE,
    _options.LABEL,
    *_options.READING,
    _options.MODEL["n_jobs"],
    epilog=EPILOG,
)
def transform(
    console: Console,
    model: Path,
    data: Path,
    output: Path | None,
    html: Path | None,
    png: Path | None,
    force: bool,
    n_jobs: int,
    **arguments: Any,
) -> None:
    """Place new rows on a map.

    Places each row of DATA on the map of MODEL, independently of the other rows.
    """
    from .._files.model import read_model

    outputs = Outputs(force=force, inputs=[model, data])
    plan_map(outputs, output, html, png)
    with as_bad_input():
        fitted, notes = read_model(model)
    features = _names(notes.get("features"), fitted.n_features_in_, model)
    if arguments["key"] is None and ending(data) in ANNOTATED:
        arguments["key"] = _key(notes.get("key"), model)
    expected = tuple(features) if features else None
    options = _options.pop_read_options(arguments, expected=expected)
    table = _match_columns(
        read_table(data, options, console), features, fitted.n_features_in_, model
    )
    if features and not table.features:
        console.note(f"The columns of {data} have no names: they are taken in the model's order.")
    check_columns(table, output, html, loss=False)
    preparation = Preparation.from_notes(notes, fitted.n_features_in_, model)
    fitted.set_params(n_jobs=n_jobs, verbose=console.progress)
    Y = fitted.transform(preparation.apply(table))
    prepared = str(preparation) if preparation else None
    summary = {"model": str(model), "n_points": len(Y), "prepared": prepared}
    uns_params = {name: value for name, value in summary.items() if value is not None}
    uns_params["model"] = well_formed(str(model))  # HDF5 holds no other text
    embedded = Embedded(table, Y, None, options.label, summary, uns_params)
    files = outputs.write(**map_writers(embedded))
    echo_map(console, embedded, [f"{pluralize(len(Y), 'point')} placed."], files)


def _names(features: Any, n_features: int, model: Path) -> list[str] | None:
    """Names of columns from the notes of a model file, None if it has none."""
    if features is None:
        return None
    names = isinstance(features, list) and all(isinstance(name, str) for name in features)
    if not names or len(set(features)) < len(features) or len(features) != n_features:
        raise BadInput(
            f"{model}: its features must be {n_features} different names, got {str(features)[:60]!r}."
        )
    return list(features)


def _key(key: Any, model: Path) -> str | None:
    """Name of the representation from the notes of a model file, None if it has none."""
    if key is None or isinstance(key, str):
        return key
    raise BadInput(f"{model}: its key must be a name, got {str(key)[:60]!r}.")


def _match_columns(table: Table, features: list[str] | None, n_features: int, model: Path) -> Table:
    """The table with the model's columns, in the model's order."""
    if features and table.features:
        positions = {name: k for k, name in enumerate(table.features)}
        missing = [name for name in features if name not in positions]
        if missing:
            raise BadInput(missing_columns_message(table.path, missing, len(features)))
        return table.select_features([positions[name] for name in features])
    if table.X.shape[1] != n_features:
        raise BadInput(
            f"{table.path} has {pluralize(table.X.shape[1], 'column')} of numbers, but {model} was fitted "
            f"to {n_features}."
        )
    return table
