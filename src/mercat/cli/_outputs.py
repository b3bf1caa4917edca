"""Write the outputs of a command: all or none of them, and nothing is overwritten by accident."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._anndata.keys import UNCERTAINTY_COLUMNS
from .._data.columns import is_grouping
from .._data.text import printable, well_formed
from .._extras import require
from .._files.atomic import PartlyWritten, check_target, whole_files
from .._math.sphere import to_lonlat
from ._columns import parse_dates
from ._console import Console, echo, handling_stdout_errors
from ._problems import BadOutput, join_names
from ._read import ANNOTATED, COLUMNAR, ending, files_read
from ._table import Table

TABLES = (".csv", ".tsv", ".parquet", ".feather", ".npy", ".h5ad", ".zarr")
PAGES = (".html", ".htm")
PICTURES = (".png", ".pdf", ".svg")
COORDINATES = ("x", "y", "z", "longitude", "latitude", "loss")
SPREAD = "spread_degrees"  # AnnData and the library have it in radians


@dataclass(frozen=True)
class Embedded:
    """Points on the sphere and the table they came from."""

    table: Table
    Y: np.ndarray
    loss: np.ndarray | None
    label: str | None
    summary: dict[str, Any] = field(default_factory=dict)
    uns_params: dict[str, Any] = field(default_factory=dict)  # for `uns` of an AnnData file
    uncertainty: Any = None  # result of `mercat.uncertainty`

    @property
    def color(self) -> str | None:
        """The column to colour by."""
        return color_column(self.table, self.label)


def color_column(table: Table, label: str | None) -> str | None:
    """The label, or the first categorical column of metadata."""
    if label is not None:
        return label
    for name, column in table.meta.items():
        if name != table.ids and is_grouping(column.nunique(), len(column)):
            return str(name)
    return None


class Outputs:
    """Output files of a command: checked before the work, written together after it."""

    def __init__(self, *, force: bool, inputs: Iterable[Path]) -> None:
        self.force = force
        self.inputs = [file for path in inputs for file in files_read(path)]
        self._planned: dict[str, Path] = {}

    def plan(self, name: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
        """Register an output file under a name, or raise if it cannot be written later; None is ignored."""
        if path is None:
            return
        if endings and ending(path) not in endings:
            given_ending = ending(path) or "no ending"
            raise click.BadParameter(
                f"{path} must end in {join_names(endings)}, got {given_ending}."
            )
        for other in self.inputs:
            if _is_same(path, other):
                raise BadOutput(f"{path} is an input of this command and is not overwritten.")
            if ending(other) == ".zarr" and _resolve(path).is_relative_to(_resolve(other)):
                raise BadOutput(f"{path} is part of {other}, which is an input of this command.")
        if any(_is_same(path, other) for other in self._planned.values()):
            raise click.UsageError(f"Two outputs have the same name, {path}.")
        try:
            target = check_target(path)
        except OSError as error:
            raise BadOutput(str(error)) from error
        if target.exists() and not self.force:
            raise BadOutput(f"{path} exists. Use --force to replace it.")
        if not os.access(target.parent, os.W_OK):
            raise BadOutput(f"{path} cannot be written: the folder {target.parent} is read-only.")
        self._planned[name] = path

    def write(self, **writers: Callable[[Path], Any]) -> dict[str, str]:
        """Write the planned files, each by a function of its path; if one fails, none is changed.

        Returns the path of each.
        """
        being_written = None
        try:
            with whole_files(list(self._planned.values())) as parts:
                for part, (name, path) in zip(parts, self._planned.items(), strict=True):
                    being_written = path
                    writers[name](part)
                being_written = None
        except PartlyWritten as error:
            raise BadOutput(f"Only some of the outputs were written: {error}.") from error
        except OSError as error:
            location = being_written or error.filename2 or error.filename
            reason = error.strerror or error
            raise BadOutput(f"Nothing was written: {location}: {reason}.") from error
        return {name: str(path) for name, path in self._planned.items()}


def _is_same(path: Path, other: Path) -> bool:
    return _resolve(path) == _resolve(other)


def _resolve(path: Path) -> Path:
    """The path with symbolic links resolved."""
    return Path(os.path.realpath(path))


# ------------------------------------------------------------------ tables


def check_columns(
    table: Table, output: Path | None, html: Path | None, *, loss: bool, uncertainty: bool = False
) -> None:
    """Raise if a column of metadata has the name of a column of the outputs.

    Also raise if the uncertainty is wanted and the only output is a .npy file, which cannot store it.
    """
    names: tuple[str, ...] = COORDINATES
    if uncertainty:
        names += (SPREAD, *UNCERTAINTY_COLUMNS[1:])
    if output is not None and ending(output) in (".npy", *ANNOTATED):
        names = ()
    if uncertainty and html is None and output is not None and ending(output) == ".npy":
        raise click.UsageError(
            f"--uncertainty needs a table, an AnnData file or --html, got only {output}: a .npy file cannot "
            "store it."
        )
    if html is not None:
        from ..viewer._encode import POINT_LOSS
        from ..viewer._uncertainty import COLUMNS

        if loss:
            names += (POINT_LOSS,)
        if uncertainty:
            names += COLUMNS
    clashes = [name for name in table.meta.columns if name in names]
    if clashes:
        raise click.UsageError(
            f"The column {clashes[0]!r} of {table.path} has the name of an output column: ignore it with "
            f"--drop {shlex.quote(clashes[0])}, or rename it."
        )


def embedding_frame(embedded: Embedded) -> Any:
    """A frame of ids, unit vectors, longitude and latitude in degrees, loss, uncertainty, other metadata."""
    import pandas as pd

    table, Y = embedded.table, embedded.Y
    longitude, latitude = np.degrees(to_lonlat(Y))
    values = [*Y.T, longitude, latitude, embedded.loss]
    columns = {k: v for k, v in zip(COORDINATES, values, strict=True) if v is not None}
    if embedded.uncertainty is not None:
        numbers = embedded.uncertainty.columns()
        columns |= {SPREAD: np.degrees(numbers.pop("spread")), **numbers}
    id_columns = [table.ids] if table.ids in table.meta.columns else []
    others = [name for name in table.meta.columns if name not in id_columns]
    frame = pd.DataFrame(columns)
    return pd.concat([table.meta[id_columns], frame, table.meta[others]], axis=1)


def write_table(embedded: Embedded, path: Path) -> None:
    """Write the embedding in the format of the path's suffix."""
    kind = ending(path)
    if kind == ".npy":
        with path.open("wb") as file:
            np.save(file, embedded.Y, allow_pickle=False)
    elif kind in ANNOTATED:
        _write_anndata(embedded, path)
    elif kind == ".parquet":
        embedding_frame(embedded).to_parquet(path, index=False)
    elif kind == ".feather":
        embedding_frame(embedded).to_feather(path)
    else:
        separator = "\t" if kind == ".tsv" else ","
        embedding_frame(embedded).to_csv(path, index=False, sep=separator)


def _write_anndata(embedded: Embedded, path: Path) -> None:
    """Write the input, converted to AnnData if needed, with the fields that `mercat.tl.mercat` adds."""
    import anndata
    import pandas as pd

    from .._anndata.maps import write_map, write_uncertainty

    table, Y = embedded.table, embedded.Y
    if table.adata is not None:
        adata = table.adata.copy()
    else:
        names = (
            table.meta[table.ids].astype(str) if table.ids else pd.RangeIndex(len(Y)).astype(str)
        )
        obs = table.meta.drop(columns=[table.ids] if table.ids else []).set_index(pd.Index(names))
        obs.index.name = table.ids
        var = pd.DataFrame(index=table.features or [f"c{k + 1}" for k in range(table.X.shape[1])])
        adata = anndata.AnnData(table.X, obs=obs, var=var)
    write_map(adata, Y, embedded.loss, embedded.uns_params)
    if embedded.uncertainty is not None:
        write_uncertainty(adata, embedded.uncertainty)
    if ending(path) == ".h5ad":
        adata.write_h5ad(path)
        return
    path.unlink(missing_ok=True)  # zarr writes a folder
    with warnings.catch_warnings():
        # Warnings about the version of the format, which anndata chooses, and about its future defaults.
        about_format = "Writing zarr v2 data|zarr v3 autosharding|Consolidated metadata"
        warnings.filterwarnings("ignore", about_format, UserWarning)
        adata.write_zarr(path)


# ------------------------------------------------------------------ pages and pictures


def plan_map(outputs: Outputs, output: Path | None, html: Path | None, png: Path | None) -> None:
    """Plan the files of a map; raise if a package that they need is not installed."""
    if png is not None:
        require("matplotlib", "--png", "cli")
    if output is not None and ending(output) in ANNOTATED:
        require("anndata", f"Writing {output}", "cli,anndata")
    if output is not None and ending(output) == ".zarr":
        require("zarr", f"Writing {output}", "cli,anndata")
    if output is not None and ending(output) in COLUMNAR:
        require("pyarrow", f"Writing {output}", "cli")
    outputs.plan("embedding", output, TABLES)
    outputs.plan("page", html, PAGES)
    outputs.plan("picture", png, PICTURES)


def map_writers(embedded: Embedded) -> dict[str, Callable[[Path], None]]:
    """Functions that write the files of a map."""
    return {
        "embedding": lambda path: write_table(embedded, path),
        "page": lambda path: write_page(embedded, path),
        "picture": lambda path: write_picture(embedded, path),
    }


def echo_map(console: Console, embedded: Embedded, lines: list[str], files: dict[str, str]) -> None:
    """Print what was written; if nothing was, print the map itself."""
    lines = [*lines, *(f"{name:10} {printable(path)}" for name, path in files.items())]
    if files or console.as_json:
        if not files:
            console.note("The map itself was not written: use -o FILE.")
        console.result("\n".join(lines), {**embedded.summary, "files": files})
        return
    frame = embedding_frame(embedded)
    if sys.stdout.isatty():
        echo(frame.to_csv(index=False).removesuffix("\n"))
    else:
        with handling_stdout_errors():
            frame.to_csv(sys.stdout, index=False)
    if not console.quiet:
        echo("\n".join(lines), err=True)


def write_page(embedded: Embedded, path: Path, title: str | None = None) -> None:
    """Write the explorer; the title defaults to the name of the input file."""
    from .._anndata.columns import with_stored_colors
    from ..viewer import to_html

    table = embedded.table
    to_html(
        embedded.Y,
        {
            name: with_stored_colors(table.uns, parse_dates(column))
            for name, column in table.meta.items()
        },
        path,
        title=title or well_formed(table.path.stem),
        color=embedded.color,
        point_loss=embedded.loss,
        uncertainty=embedded.uncertainty,
    )


def write_picture(embedded: Embedded, path: Path) -> None:
    """Draw the map with matplotlib."""
    from .._anndata.columns import stored_palette
    from .._draw.colors import make_coloring
    from .._draw.maps import Style, draw_map

    pyplot = quiet_pyplot()
    table = embedded.table
    color = None if embedded.color is None else parse_dates(table.meta[embedded.color])
    palette = None if color is None else stored_palette(table.uns, color)
    coloring = make_coloring(color, len(embedded.Y), palette=palette)
    figure: Any = draw_map(embedded.Y, coloring, Style(advice="--html shows all")).figure
    try:
        figure.savefig(path, dpi=200, bbox_inches="tight")
    finally:
        pyplot.close(figure)


def quiet_pyplot() -> Any:
    """Import pyplot with the non-interactive backend."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
