"""Read Matrix Market files, and folders of 10x Genomics.

SciPy's parser is not used: a malformed number can crash the process.
"""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._files import untrusted as _untrusted
from ._arrays import apply_transpose, array_table
from ._console import Console
from ._problems import BadInput, as_bad_input
from ._table import ReadOptions, Table

_SYMMETRY = {b"general": 0, b"symmetric": 1, b"skew-symmetric": -1}
_FIELDS = {b"real": 3, b"double": 3, b"integer": 3, b"pattern": 2}  # columns of a sparse matrix


@dataclass(frozen=True)
class _Header:
    """The header of a Matrix Market file."""

    shape: tuple[int, int]
    n_entries: int
    width: int  # numbers per line
    sparse: bool
    sign: int  # sign of the entry across the diagonal; 0 for a matrix without symmetry
    n_lines: int  # before the first entry


def read_mtx(path: Path, options: ReadOptions, console: Console) -> Table:
    """Read a matrix; in folders of 10x Genomics, cells are the rows, named by their barcodes."""
    with as_bad_input(), _untrusted.reading(path, "a valid Matrix Market file"):
        X = _matrix(path)
    barcodes, genes = (_read_names(companion, max(X.shape)) for companion in companions(path))
    if options.transpose or not (barcodes or genes):
        return array_table(path, apply_transpose(X, options), options)
    if barcodes and genes and X.shape == (len(genes), len(barcodes)):
        console.note(f"{path} is a matrix of 10x Genomics: its columns, the cells, are the points.")
        return _cells(path, X, options, barcodes, genes)
    counts = " and ".join(
        f"{'more than ' * (len(names) > max(X.shape))}{min(len(names), max(X.shape)):,} {what}"
        for names, what in ((genes, "genes"), (barcodes, "barcodes"))
        if names
    )
    raise BadInput(
        f"{path} has {X.shape[0]:,} rows and {X.shape[1]:,} columns, but the files beside it name {counts}: "
        "a matrix of 10x Genomics has one row per gene and one column per barcode. One of the files is "
        "missing, incomplete, or belongs to another matrix. --transpose ignores them."
    )


def _matrix(path: Path) -> Any:
    import scipy.sparse

    with _untrusted.opened(path) as stream:
        header = _header(path, stream)
    entries = _entries(path, header)
    if not header.sparse:
        return _dense(header, entries[:, 0])
    rows, columns = (_indices(entries[:, k], header.shape[k]) for k in (0, 1))
    values = entries[:, 2] if header.width == 3 else np.ones(len(entries))
    if header.sign:
        off_diagonal = rows != columns
        mirrored = columns[off_diagonal], rows[off_diagonal]
        rows, columns = np.append(rows, mirrored[0]), np.append(columns, mirrored[1])
        values = np.append(values, header.sign * values[off_diagonal])
    return scipy.sparse.csr_array(
        scipy.sparse.coo_array((values, (rows, columns)), shape=header.shape)
    )


def _indices(column: np.ndarray, size: int) -> np.ndarray:
    """Row or column indices, counted from 0."""
    wrong = ~((column >= 1) & (column <= size) & (column == np.floor(column)))
    if wrong.any():
        entry = int(np.argmax(wrong))
        raise ValueError(
            f"an index must be an integer in 1..{size:,}, got {column[entry]:.17g} in entry {entry + 1:,}."
        )
    return np.asarray(column.astype(np.int64) - 1)


def _dense(header: _Header, values: np.ndarray) -> np.ndarray:
    """Build a dense matrix from its columns, or from the lower triangle of a symmetric one."""
    if not header.sign:
        return values.reshape(header.shape, order="F")
    X = np.zeros(header.shape)
    columns, rows = np.triu_indices(header.shape[0], k=header.sign < 0)
    X[columns, rows] = header.sign * values
    X[rows, columns] = values
    return X


def _header(path: Path, stream: BinaryIO) -> _Header:
    banner = stream.readline(1000).lower().split()
    n_lines, line = 2, stream.readline(10_000)
    while line.startswith(b"%") or (line and not line.strip()):
        n_lines, line = n_lines + 1, stream.readline(10_000)
    if len(banner) != 5 or banner[:2] != [b"%%matrixmarket", b"matrix"]:
        raise ValueError("its first line is not the header of a matrix.")
    kind, field, symmetry = banner[2:]
    if kind not in (b"coordinate", b"array") or field not in _FIELDS or symmetry not in _SYMMETRY:
        got = b" ".join(banner[2:]).decode("latin-1")
        raise ValueError(f"it must hold real numbers, got {got}.")
    sparse, sign = kind == b"coordinate", _SYMMETRY[symmetry]
    sizes = [int(size) for size in line.split()]
    if len(sizes) != 2 + sparse or min(sizes) < 0 or (sign and sizes[0] != sizes[1]):
        raise ValueError(f"line {n_lines} is not a size, {line[:60]!r}.")
    n, d = sizes[:2]
    n_entries = sizes[2] if sparse else n * d if not sign else n * (n + sign) // 2
    width = _FIELDS[field] if sparse else 1
    _untrusted.check_claim(path, 8 * n_entries * width)
    if sparse:
        _untrusted.check_sides(path, (n, d), *companions(path))
    return _Header((n, d), n_entries, width, sparse, sign, n_lines)


def _entries(path: Path, header: _Header) -> np.ndarray:
    """The numbers, one row per line."""
    import pandas as pd

    if wrong := _find_wrong_line(path, header, 1):  # pandas counts columns in the first line
        raise ValueError(wrong)
    try:
        with _untrusted.opened(path) as stream:
            for _ in range(header.n_lines):
                stream.readline()
            frame = pd.read_csv(
                stream, sep=r"\s+", header=None, index_col=False, dtype=np.float64,
                nrows=header.n_entries + 1,
                float_precision="round_trip", na_values=[], keep_default_na=False,
            )  # fmt: skip
        entries = np.asarray(frame.to_numpy())
    except pd.errors.EmptyDataError:
        entries = np.empty((0, header.width))
    except ValueError as error:
        raise ValueError(_find_wrong_line(path, header) or str(error)) from error
    if entries.shape[1] != header.width or np.isnan(entries[:, : header.width - 1]).any():
        raise ValueError(
            _find_wrong_line(path, header) or "a line has too many or too few numbers."
        )
    if len(entries) != header.n_entries:
        declared = f"{header.n_entries:,}"
        count = f"more than {declared}" if len(entries) > header.n_entries else f"{len(entries):,}"
        raise ValueError(f"it has {count} entries, but declares {declared}.")
    return entries


def _find_wrong_line(path: Path, header: _Header, max_lines: float = math.inf) -> str | None:
    """Message about the first line with too few or too many numbers, among the first `max_lines` lines."""
    with _untrusted.opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            cells = line.split(None, header.width)
            if number <= header.n_lines or not cells:
                continue
            if max_lines <= 0:
                return None
            max_lines -= 1
            try:
                is_right = len([float(cell) for cell in cells]) == header.width
            except ValueError:
                is_right = False
            if not is_right:
                return f"line {number} must hold {header.width} numbers, got {line[:60].strip()!r}."
    return None


def _cells(
    path: Path, X: Any, options: ReadOptions, barcodes: list[list[str]], genes: list[list[str]]
) -> Table:
    import scipy.sparse

    cells = scipy.sparse.csr_array(X.T)
    features = [row[min(1, len(row) - 1)] for row in genes]
    names = {"barcode": np.array([row[0] for row in barcodes])}
    table = array_table(path, cells, options, names, features=features)
    return replace(table, ids="barcode").drop_features(options.drop)


def companions(path: Path) -> tuple[Path | None, Path | None]:
    """The files of barcodes and genes beside a matrix, if they exist."""
    return _companion(path, "barcodes"), _companion(path, "features") or _companion(path, "genes")


def _companion(path: Path, stem: str) -> Path | None:
    """STEM.tsv or STEM.tsv.gz in the folder of a matrix, with the same prefix, as in GEO."""
    start, matrix, _ = path.name.partition("matrix.mtx")
    stem = f"{start}{stem}" if matrix else stem
    candidates = (path.with_name(f"{stem}{end}") for end in (".tsv.gz", ".tsv"))
    return next((other for other in candidates if other.is_file()), None)


def _read_names(path: Path | None, n_names: int) -> list[list[str]] | None:
    """The first two cells of up to `n_names` + 1 lines of a tab-separated file; None without a file."""
    if path is None:
        return None
    with as_bad_input(), _untrusted.reading(path), _untrusted.opened(path) as binary:
        file = io.TextIOWrapper(binary, encoding="utf-8")
        lines = itertools.islice(file, n_names + 1)
        return [line.rstrip("\r\n").split("\t", 2)[:2] for line in lines]
