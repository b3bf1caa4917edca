"""`mercat info`: describe this installation, a model, or how a data file is read."""

from __future__ import annotations

import os
import platform
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from .. import __version__
from .. import _kernels as kernels
from .._data.text import printable
from .._extras import not_installed
from .._files.untrusted import kind_of_file, reading
from . import _options
from ._console import Console, command
from ._measures import dominance_warning
from ._problems import BadInput, as_bad_input, join_names, pluralize
from ._read import ENDINGS, check_exists, ending, read_table

EPILOG = """\b
Examples:
  mercat info
  mercat info map.mercat
  mercat info cells.csv --json
"""
_ZIP = b"PK\x03\x04"
_REQUIRED = ["numpy", "scipy", "scikit-learn"]
_OPTIONAL = {
    "pandas": "cli",
    "pyarrow": "cli",
    "matplotlib": "plot",
    "anywidget": "viewer",
    "anndata": "anndata",
    "torch": "torch",
    "dask": "dask",
    "umap-learn": "peers",
    "openTSNE": "peers",
    "pacmap": "peers",
}


@command(
    click.argument("path", type=_options.PATH, metavar="[FILE]", required=False),
    _options.label(
        "Column, or gene of an AnnData file, for the colours of a map; it is not embedded."
    ),
    *_options.READING,
    epilog=EPILOG,
)
def info(console: Console, path: Path | None, **arguments: Any) -> None:
    """Describe a file, or this installation.

    FILE is a model, or a data file, whose columns are shown as they would be read.
    """
    if path is None:
        data = _installation()
    elif _is_model(path):
        data = _model(path)
    elif ending(path) in ENDINGS:
        data = _data(path, console, arguments)
    else:
        check_exists(path, folder=True)
        raise BadInput(
            f"{path} must be a model, or a data file that ends in one of {join_names(ENDINGS, 20)}."
        )
    console.result(_as_text(data), data)


def _installation() -> dict[str, Any]:
    packages = {name: version(name) or "?" for name in _REQUIRED}
    for name, extra in _OPTIONAL.items():
        packages[name] = version(name) or not_installed(extra)
    return {
        "mercat": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "kernels": kernels.describe(),
        "packages": packages,
    }


def version(distribution: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _is_model(path: Path) -> bool:
    with as_bad_input():
        if kind_of_file(path) != "a file" or not zipfile.is_zipfile(path):
            return False
    with reading(path), open(path, "rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            return False  # an .h5ad file that contains a model, and ends like a ZIP file
    from .._files.model import HEADER

    with as_bad_input(), reading(path), zipfile.ZipFile(path) as archive:
        return HEADER in archive.namelist()


def _model(path: Path) -> dict[str, Any]:
    from .._files.model import read_model

    model, notes = read_model(path)
    return {
        "model": str(path),
        "points": len(model.embedding_),
        "columns": model.n_features_in_,
        "prepared": notes.get("prepared") or "no",
        "loss": round(float(model.loss_), 6),
        "correlation": round(float(model.correlation_), 6),
        "status": str(model.status_),
        "parameters": {
            k: v for k, v in model.get_params().items() if k not in ("verbose", "callback")
        },
        "features": notes.get("features") or [],
    }


def _data(path: Path, console: Console, arguments: dict[str, Any]) -> dict[str, Any]:
    faults: list[str] = []
    table = read_table(path, _options.pop_read_options(arguments, faults=faults), console)
    kinds = {
        name: pluralize(column.nunique(), "different value") for name, column in table.meta.items()
    }
    from .._solve.diagnostics import SHARED

    dominance = {} if faults else {m: dominance_warning(table.X, table.features, m) for m in SHARED}
    sentences = {metric: sentence for metric, sentence in dominance.items() if sentence}
    return {
        **({"dominating": sentences} if sentences else {}),
        "data": str(path),
        "points": table.X.shape[0],
        "columns": table.X.shape[1],
        "sparse": table.is_sparse,
        "ids": table.ids,
        "metadata": kinds,
        "features": table.features or [],
        "faults": faults,
    }


def _as_text(data: dict[str, Any]) -> str:
    """One name and value per line, nested ones indented."""
    lines = []
    for name, value in data.items():
        if isinstance(value, dict) and value:
            entries = {printable(str(key)): printable(str(entry)) for key, entry in value.items()}
            width = max(map(len, entries))
            lines += [name, *(f"  {key:{width}}  {entry}" for key, entry in entries.items())]
        elif name == "faults":
            lines += [name, *(f"  {printable(fault)}" for fault in value)] if value else []
        elif isinstance(value, list | dict):
            nothing = "not named" if name == "features" else "none"
            lines.append(f"{name:11} {join_names(value, 20) or nothing}")
        else:
            lines.append(f"{name:11} {'none' if value is None else printable(str(value))}")
    return "\n".join(lines)
