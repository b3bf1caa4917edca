"""Read files in the formats of their sources, without unpickling or downloading anything."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from .._extras import require
from .._files.containers import check_hdf5
from .._files.untrusted import opened, reading

Folder = str | os.PathLike[str] | None  # None means the environment variable MERCAT_DATA

# NumPy types by the third byte of an IDX file.
IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def find(folder: Folder, names: Sequence[str], advice: str) -> Path:
    """Return the first of `names` that exists in the folder, or raise an error with advice."""
    folder = folder if folder is not None else os.environ.get("MERCAT_DATA")
    if folder is None:
        raise FileNotFoundError(
            "No folder to read from: pass folder, or set the environment variable MERCAT_DATA. "
            f"{advice}"
        )
    for name in names:
        path = Path(folder).expanduser() / name
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} has none of {', '.join(names)}. {advice}")


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a text file, compressed if its name ends in .gz; invalid content raises ValueError."""
    with reading(path), opened(path) as binary:
        yield io.TextIOWrapper(binary, encoding="utf-8", newline="")


def read_json(path: Path) -> Any:
    with open_text(path) as file:
        return json.load(file)


def read_idx(path: Path) -> npt.NDArray[Any]:
    """Read an array in the IDX format of MNIST: type, shape, then the values, big-endian."""
    with reading(path), opened(path) as file:
        raw = file.read()
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in IDX_TYPES:
        raise ValueError(f"{path} is not an IDX file: it starts with {raw[:4]!r}.")
    n_axes = raw[3]
    start = 4 + 4 * n_axes
    with reading(path):
        shape = struct.unpack(f">{n_axes}I", raw[4:start])
        values = np.frombuffer(raw, dtype=IDX_TYPES[raw[2]], offset=start)
        if values.size != math.prod(shape):
            raise ValueError(
                f"{path} is truncated: it has {values.size} values for the shape {shape}."
            )
        return values.reshape(shape)


def read_arff(path: Path) -> npt.NDArray[np.float32]:
    """Read the rows of a dense, numeric ARFF file."""
    with open_text(path) as file:
        for line in file:
            if line.strip().lower() == "@data":
                return np.loadtxt(
                    file, dtype=np.float32, delimiter=",", comments="%", quotechar="'"
                )
    raise ValueError(f"{path} is not an ARFF file: it has no line @DATA.")


def read_table(path: Path) -> tuple[npt.NDArray[np.float32], list[str], list[str]]:
    """Read a matrix with row and column names, separated by tabs or commas.

    The header may lack a cell above the row names, as in files written by R.
    """
    with open_text(path) as file:
        content, delimiter = _delimited(file)
        lines = csv.reader(content, delimiter=delimiter)
        header = next(lines, [])
        names, rows = [], []
        for name, *values in lines:
            names.append(name)
            rows.append(np.array(values, dtype=np.float32))
    if not rows:
        raise ValueError(f"{path} has no rows.")
    columns = header if len(header) == len(rows[0]) else header[1:]
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"{path} has rows whose length differs from that of its header.")
    return np.array(rows), names, columns


def read_columns(path: Path, *names: str) -> list[list[str]]:
    """Read columns of a text table by name."""
    with open_text(path) as file:
        content, delimiter = _delimited(file)
        lines = csv.DictReader(content, delimiter=delimiter)
        missing = set(names) - set(lines.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path} must have the columns {', '.join(names)}, got {lines.fieldnames}."
            )
        rows = list(lines)
    return [[row[name] for row in rows] for name in names]


def _delimited(file: TextIO) -> tuple[Iterator[str], str]:
    """Lines of a file, and their delimiter."""
    first = file.readline()
    return itertools.chain([first], file), "\t" if "\t" in first else ","


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file after checking the sizes it declares; invalid content raises ValueError."""
    h5py = require("h5py", "Reading HDF5 files", "anndata")
    check_hdf5(path)
    with reading(path), h5py.File(path, "r") as file:
        yield file
