"""Read an embedding and its metadata from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._annotated import load
from ._arrays import load_npz
from ._columns import frame_table, plain, unique_name
from ._console import Console
from ._outputs import COORDINATES
from ._problems import BadInput, any_error_as_bad_input, join_names, pluralize
from ._read import ANNOTATED, COLUMNAR, TEXT, check_readable, ending, read_frame, read_table
from ._table import ReadOptions, Table

_NAMES = [["x", "y", "z"], ["x", "y"]]


@dataclass(frozen=True)
class Embedding:
    """Coordinates (n, p), the loss of each point if known, and metadata."""

    path: Path
    Y: np.ndarray
    loss: np.ndarray | None
    meta: Any
    loss_name: str = "loss"  # the column of the file that holds the loss
    uns: Mapping[str, Any] = field(default_factory=dict)  # `uns` of an AnnData file
    prepared: str = ""  # how the data of the map were prepared, if the file records it


def read_embedding(path: Path, key: str | None, console: Console) -> Embedding:
    """Read an embedding written by `mercat embed` or another program."""
    with any_error_as_bad_input(path):
        return _read_embedding(path, key, console)


def _read_embedding(path: Path, key: str | None, console: Console) -> Embedding:
    kind = ending(path)
    check_readable(path, kind)
    if kind in (*TEXT, *COLUMNAR):
        embedding = _from_frame(path, console)
    elif kind in ANNOTATED:
        embedding = _from_anndata(path, key)
    else:
        embedding = _from_arrays(path, kind, key, console)
    if embedding.Y.ndim != 2 or len(embedding.Y) == 0 or embedding.Y.dtype.kind not in "fiu":
        raise BadInput(f"{path} must hold one point per row, got shape {embedding.Y.shape}.")
    wrong = np.flatnonzero(~np.isfinite(embedding.Y).all(axis=1))
    if len(wrong):
        raise BadInput(f"{path}, row {wrong[0]}: a coordinate is missing or infinite.")
    return embedding


def _from_frame(path: Path, console: Console) -> Embedding:
    """Take the columns x, y, z, or x, y, else all numeric columns."""
    import pandas as pd

    frame = read_frame(path, ReadOptions(), console)
    coordinates = next((c for c in _NAMES if set(c) <= set(frame.names)), None)
    if coordinates is None:
        table = frame_table(frame, ReadOptions(), console)
        if table.X.shape[1] > 3:
            raise BadInput(
                f"{path} has no columns x, y, z but {table.X.shape[1]} numeric columns "
                f"({join_names(table.features or [])}), too many for a map. Does it hold the data?"
            )
        console.note(f"The coordinates are the columns {join_names(table.features or [])}.")
        return Embedding(path, table.X, None, table.meta)
    for name in coordinates:
        column = frame.column(name)
        if column.dtype.kind not in "fiu" or column.isna().any():
            wrong = np.asarray(pd.to_numeric(column, errors="coerce").isna())
            where = frame.locate(int(np.argmax(wrong)), frame.names.index(name))
            raise BadInput(f"{where}: the coordinate is missing or not a number.")
    Y = np.stack([frame.column(name).to_numpy() for name in coordinates], axis=1)
    loss = frame.column("loss").to_numpy() if "loss" in frame.names else None
    if loss is not None and loss.dtype.kind not in "fiu":
        loss = None
    index = unique_name("index", frame.names)
    metadata = {
        name or index: plain(frame.data.iloc[:, k], path, name)
        for k, name in enumerate(frame.names)
        if name not in COORDINATES and (name or k == 0)  # others are delimiters at ends of lines
    }
    return Embedding(path, Y, loss, pd.DataFrame(metadata, index=pd.RangeIndex(len(Y))))


def _from_anndata(path: Path, key: str | None) -> Embedding:
    import pandas as pd

    from .._anndata.keys import KEY, loss_column, map_of, short_name, sphere_of

    adata = load(path)
    key = key or KEY
    if sphere_of(key) in adata.obsm:
        # The key of a flat map stands for the unit vectors that it shows.
        key = sphere_of(key)
    if key not in adata.obsm:
        keys = join_names(adata.obsm.keys()) or "none"
        raise BadInput(f"{path} has no obsm {key!r}. --embedding-key takes one of: {keys}.")
    obs = adata.obs
    name = map_of(adata, key)
    loss_name = loss_column(name)
    loss = obs[loss_name].to_numpy() if loss_name in obs else None
    meta = {str(c): plain(obs[c], path, str(c)) for c in obs.columns if c != loss_name}
    ids = unique_name(str(obs.index.name or "index"), meta)
    names = {ids: np.asarray(adata.obs_names, dtype=object)}
    frame = pd.DataFrame(names | meta, index=pd.RangeIndex(adata.n_obs))
    entry = adata.uns.get(short_name(name))
    prepared = entry.get("prepared") if isinstance(entry, Mapping) else None
    Y = np.asarray(adata.obsm[key])
    return Embedding(path, Y, loss, frame, loss_name, adata.uns, str(prepared or ""))


def _from_arrays(path: Path, kind: str, key: str | None, console: Console) -> Embedding:
    from .._anndata.keys import KEY, sphere_of

    if kind == ".npz" and key is None:
        arrays = load_npz(path)
        names = ("Y", "embedding", sphere_of(KEY), KEY)
        key = next((name for name in names if name in arrays), None)
    table = read_table(path, ReadOptions(key=key), console)
    return Embedding(path, table.dense(), None, table.meta)


def check_rows(table: Table, embedding: Embedding) -> None:
    """Raise unless the rows of both belong to the same points."""
    n, m = table.X.shape[0], len(embedding.Y)
    if n != m:
        raise BadInput(f"{table.path} has {pluralize(n, 'row')}, but {embedding.path} has {m:,}.")
    if table.ids is None or table.ids not in embedding.meta:
        return
    ours, theirs = table.meta[table.ids].astype(str), embedding.meta[table.ids].astype(str)
    differ = np.flatnonzero(ours.to_numpy() != theirs.to_numpy())
    if len(differ):
        row = differ[0]
        raise BadInput(
            f"The rows of {table.path} and {embedding.path} are not in the same order: row {row} is "
            f"{ours[row]!r} in the first and {theirs[row]!r} in the second (column {table.ids!r})."
        )
