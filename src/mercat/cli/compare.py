"""`mercat compare`: compare Mercat with other methods on the user's data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._data.text import printable
from .._extras import install_command, require
from . import _options, _peers
from ._columns import parse_dates
from ._console import Console, command
from ._measures import class_labels, dominance_warning, resolve_k, scores_as_data, to_metric
from ._methods import METHODS, Method
from ._outputs import PAGES, Outputs, color_column
from ._peers import Outcome
from ._prepare import Preparation
from ._read import read_table
from ._report import LESS_IS_BETTER, MEANING, Subject, page
from ._table import Table

EPILOG = f"""\b
Examples:
  mercat compare cells.csv -o report.html --label type
  mercat compare mnist.npz -o report.html --label labels --sample 5000
  mercat compare cells.csv -o report.html --method pca --method umap

\b
The report says which methods are not installed and where to get them. The
default methods come with
  {install_command("peers")}
"""
_PEERS = {name: method for name, method in METHODS.items() if name != "mercat"}
_DEFAULT_METHODS = [name for name, method in _PEERS.items() if method.is_default]
_OPTIONS = {name: option for name, option in _options.MODEL.items() if name != "metric"} | {
    "random_state": _options.seed(
        "Seed for the methods, the measures and the random sample of rows."
    )
}


@command(
    _options.data(),
    _options.output("Where to write the report, one HTML page.", required=True),
    click.option(
        "--method",
        "methods",
        type=click.Choice(list(_PEERS)),
        multiple=True,
        help=f"A method to compare with; may be repeated. [default: {', '.join(_DEFAULT_METHODS)}]",
    ),
    click.option(
        "--sample",
        type=click.IntRange(min=10),
        help="Compare on a random sample of this many rows.",
    ),
    _options.NEIGHBORS,
    _options.METRIC,
    _options.FORCE,
    _options.label(
        "Colour the maps by this column, or gene of an AnnData file, and measure its classes."
    ),
    *_options.READING,
    *_options.PREPARING,
    *_OPTIONS.values(),
    epilog=EPILOG,
)
def compare(
    console: Console,
    data: Path,
    output: Path,
    methods: tuple[str, ...],
    sample: int | None,
    k: int | None,
    metric: str,
    force: bool,
    **arguments: Any,
) -> None:
    """Compare Mercat with other methods in one report.

    Embeds DATA with Mercat and other methods, and measures and draws the maps.
    """
    require("matplotlib", "mercat compare", "cli")
    outputs = Outputs(force=force, inputs=[data])
    outputs.plan("report", output, PAGES)
    parameters = _options.pop_arguments(arguments, tuple(_OPTIONS))
    seed, n_jobs = parameters["random_state"], parameters["n_jobs"]
    options = _options.pop_read_options(arguments)
    table = read_table(data, options, console)
    table = _sample(table, sample, seed, console)
    k = resolve_k(k, table.X.shape[0], console)
    table = replace(table, X=table.dense())
    preparation = Preparation.fit(table, **arguments, metric=metric)
    X = preparation.apply(table)
    if sentence := dominance_warning(X, table.features, metric):
        console.warn(sentence)
    X = to_metric(X, metric)
    settings = {name: v for name, v in parameters.items() if name not in ("random_state", "n_jobs")}
    selected = [(METHODS["mercat"], settings)]
    selected += [(_PEERS[name], {}) for name in methods or _DEFAULT_METHODS]
    outcomes = _run(
        selected, X, class_labels(table, options.label, console), k, seed, n_jobs, console
    )
    color = color_column(table, options.label)
    subject = Subject(data.stem, len(X), X.shape[1], color, str(preparation), metric, seed)
    color_values = None if color is None else parse_dates(table.meta[color])
    text = page(subject, outcomes, color_values, console.notes)
    files = outputs.write(report=lambda path: path.write_text(text, encoding="utf-8"))
    console.result(_as_text(outcomes, files), _as_data(outcomes, files))


def _sample(table: Table, sample: int | None, seed: int, console: Console) -> Table:
    n = table.X.shape[0]
    if sample is None or sample >= n:
        return table
    console.note(f"Comparing on {sample:,} of {n:,} rows, drawn at random.")
    return table.select_rows(np.sort(np.random.default_rng(seed).permutation(n)[:sample]))


def _run(
    selected: list[tuple[Method, dict[str, Any]]],
    X: np.ndarray,
    classes: Any,
    k: int,
    seed: int,
    n_jobs: int,
    console: Console,
) -> list[Outcome]:
    from tqdm import tqdm

    from .. import metrics

    outcomes = []
    bar = tqdm(selected, disable=not console.progress, unit="method")
    for method, parameters in bar:
        bar.set_description(method.title)
        outcome = _peers.attempt(method, X, seed, n_jobs, parameters)
        if outcome.Y is not None:
            scores = metrics.report(X, outcome.Y, classes, k=k, random_state=seed)
            outcome = replace(outcome, scores=scores)
        outcomes.append(outcome)
    return outcomes


def _as_text(outcomes: list[Outcome], files: dict[str, str]) -> str:
    successful = [o for o in outcomes if o.scores is not None]
    width = max(len(o.title) for o in outcomes)
    measures = list(successful[0].scores) if successful else []
    headings = [MEANING[name][0] + "*" * (name in LESS_IS_BETTER) for name in measures]
    lines = (
        [" ".join([" " * width, "      time", *(f"{head:>10}" for head in headings)])]
        if successful
        else []
    )
    for outcome in successful:
        scores = " ".join(f"{float(outcome.scores[name]):10.3f}" for name in measures)
        lines.append(f"{outcome.title:{width}} {outcome.seconds:8.1f} s {scores}")
    if LESS_IS_BETTER & set(measures):
        lines.append("* lower is better")
    lines += [f"{o.title:{width}} {printable(o.failure)}" for o in outcomes if o.failure]
    return "\n".join([*lines, *(f"{name} {printable(path)}" for name, path in files.items())])


def _as_data(outcomes: list[Outcome], files: dict[str, str]) -> dict[str, Any]:
    methods: dict[str, Any] = {}
    for o in outcomes:
        if o.failure:
            methods[o.title] = {"absent": o.failure}
        else:
            methods[o.title] = {"seconds": o.seconds, "measures": scores_as_data(o.scores)}
    return {"methods": methods, "files": files}
