"""Read text tables, delimited by comma, semicolon or tab, with or without a header.

They are read by pandas. If something is wrong, Python's csv module reads the file again to locate the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from .._files import untrusted as _untrusted
from ._console import Console
from ._problems import BadInput, join_names, pluralize
from ._table import ReadOptions

_SAMPLE = 200  # lines from which the dialect is detected, ...
_SAMPLE_SIZE = 1 << 22  # ... or fewer if they have more than this number of characters
_DELIMITERS = ",;\t|"
_POINT, _COMMA = re.compile(r"[+-]?\d*\.\d+"), re.compile(r"[+-]?\d+,\d+")
_BINARY = {
    b"\x93NUM": ("a NumPy file", ".npy"),
    b"PK\x03\x04": ("a zip archive", ".npz, if it holds arrays"),
    b"PAR1": ("a Parquet file", ".parquet"),
    b"ARRO": ("a Feather file", ".feather"),
    b"\x89HDF": ("an HDF5 file", ".h5ad, if it is AnnData's"),
}
_ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class TextFile:
    """A text table and its dialect."""

    path: Path
    encoding: str
    delimiter: str
    decimal: str
    names: list[str]  # "" for a column without a name
    n_header: int  # lines before the first row

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line number and the cells of each row; raise BadInput for a malformed row."""
        with open_text(self.path, self.encoding) as file:
            reader = csv.reader(file, strict=True, **dialect(self.delimiter))
            try:
                for cells in reader:
                    if cells and reader.line_num > self.n_header:
                        yield reader.line_num, cells
            except csv.Error as error:
                raise BadInput(f"{self.path}, line {reader.line_num}: {error}.") from error

    def locate(self, row: int, column: int) -> str:
        """Location of a cell in the file, for messages."""
        line = next(itertools.islice(self.records(), row, None))[0]
        return f"{self.path}, line {line}, column {column_name(self.names, column)!r}"

    def check_lengths(self) -> None:
        """Raise at the first row whose number of cells differs from the number of columns."""
        n = len(self.names)
        records = self.records()
        for line, cells in records:
            if len(cells) != n:
                where = (
                    f", column {column_name(self.names, len(cells))!r}" if len(cells) < n else ""
                )
                last = next(records, None) is None and len(cells) < n
                hint = " It is the last line: the file may be truncated." if last else ""
                raise BadInput(
                    f"{self.path}, line {line}{where}: the line has {pluralize(len(cells), 'cell')}, but the "
                    f"table has {pluralize(n, 'column')}.{hint}"
                )


def dialect(delimiter: str) -> dict[str, Any]:
    """Options of the csv module; spaces before a cell are skipped unless they are the delimiter."""
    return {"delimiter": delimiter, "skipinitialspace": delimiter != " "}


def column_name(names: list[str], k: int) -> str:
    """The name of a column, or its number if it has none."""
    return names[k] or f"column {k + 1}"


def read_text(path: Path, options: ReadOptions, console: Console) -> tuple[Any, TextFile]:
    """Read the table as a frame with numbered columns, and its dialect."""
    import pandas as pd

    file = detect_dialect(path, options, console)
    try:
        with open_text(path, file.encoding) as stream:
            for _ in range(file.n_header):
                stream.readline()
            frame = pd.read_csv(
                stream,
                sep=file.delimiter,
                decimal=file.decimal,
                header=None,
                index_col=False,
                skipinitialspace=file.delimiter != " ",
                low_memory=False,
                float_precision="round_trip" if file.decimal == "." else None,
            )
    except pd.errors.EmptyDataError:
        raise BadInput(f"{path} has a header but no rows.") from None
    except pd.errors.ParserError as error:
        file.check_lengths()
        raise BadInput(f"{path}: {error}") from error
    # A row that is too short leaves the last column empty.
    if frame.shape[1] != len(file.names) or frame.iloc[:, -1].isna().any():
        file.check_lengths()
    return frame, file


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file, gzipped or not; errors while reading name the line."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    with _untrusted.opened(path, packed) as binary:
        try:
            yield io.TextIOWrapper(binary, encoding=encoding, newline="")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadInput(
                f"{path}, line {_count_readable_lines(path) + 1}: the file is broken or truncated ({error})."
            ) from error
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{path}, line {_first_undecodable_line(path, packed)}: {_not_text(error)}"
            ) from error


def _count_readable_lines(path: Path) -> int:
    """Number of readable lines of a broken gzip file."""
    lines = 0
    try:
        with _untrusted.opened(path, packed=True) as file:
            for _ in file:
                lines += 1
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return lines
    return lines


def _first_undecodable_line(path: Path, packed: bool) -> int:
    """The first line that is not UTF-8."""
    with _untrusted.opened(path, packed) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError:
                return number
    return 1


def _not_text(error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return f"the byte {byte:#04x} is not UTF-8 text. Save the file as UTF-8."


# ------------------------------------------------------------------ detection of the dialect


def detect_dialect(path: Path, options: ReadOptions, console: Console) -> TextFile:
    """Detect encoding, delimiter, decimal sign and names from the first lines of a file and the options."""
    with path.open("rb") as raw:
        start = raw.read(4)
    if start in _BINARY:
        what, name = _BINARY[start]
        raise BadInput(f"{path} is {what}, not text. Name it {name}.")
    encoding = _ENCODINGS.get(start[:2], "utf-8-sig")
    with open_text(path, encoding) as stream:
        lines = _first_lines(stream)
    if not any(line.strip() for line in lines):
        raise BadInput(f"{path} is empty.")
    if any("\0" in line for line in lines):
        raise BadInput(f"{path} is not a text file: it holds zero bytes.")
    first_line = next(line for line in lines if line.strip())
    delimiter = options.delimiter or _delimiter(path, first_line)
    _check_width(path, 1 + max(line.count(delimiter) for line in lines))
    reader = csv.reader(lines, **dialect(delimiter))
    try:
        rows = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}.") from error
    first_cells = rows[0][1]
    has_header = _has_header(first_cells) if options.header is None else options.header
    if not has_header:
        if options.header is None:
            console.note(
                f"The first line of {path} has only numbers and is read as a row; --header reads it as names."
            )
        names = [f"c{k}" for k in range(1, len(first_cells) + 1)]
        return TextFile(path, encoding, delimiter, _decimal(rows, delimiter, console), names, 0)
    if _is_counting(first_cells):
        console.note(
            f"The first line of {path} is 0, 1, 2, ... and is read as names; --no-header reads it as a row."
        )
    names = [name.strip() for name in first_cells]
    if _has_row_names(first_cells, [cells for _, cells in rows[1:]]):
        names = ["", *names]
    _check_unique(path, names)
    decimal = _decimal(rows[1:], delimiter, console)
    return TextFile(path, encoding, delimiter, decimal, names, rows[0][0])


def _first_lines(stream: TextIO) -> list[str]:
    """The first lines, at least two of them with text."""
    lines: list[str] = []
    size = n_text = 0
    for line in itertools.islice(stream, _SAMPLE):
        lines.append(line)
        size, n_text = size + len(line), n_text + bool(line.strip())
        if size > _SAMPLE_SIZE and n_text > 1:
            break
    return lines


def _check_width(path: Path, n_columns: int) -> None:
    """Raise if a compressed table has far more columns than expected for its size."""
    most = _untrusted.most_sides(path)
    if n_columns > most:
        raise BadInput(
            f"{path} has {n_columns:,} columns, more than the {most:,} that a file of its size may have. If "
            "you trust it, unpack it first."
        )


def _delimiter(path: Path, line: str) -> str:
    if ".tsv" in path.suffixes and "\t" in line:
        return "\t"
    unquoted = re.sub(r'"[^"]*("|$)', "", line)  # a name may continue on the next line
    return max(_DELIMITERS, key=unquoted.count)  # the comma if there are none


def _has_header(cells: list[str]) -> bool:
    """Whether the first line has names: not all cells are numbers, or they count up, as written by pandas."""
    return _numbers(cells) is None or _is_counting(cells)


def _has_row_names(header: list[str], rows: list[list[str]]) -> bool:
    """Whether rows start with a name for which the header has no cell, as written by R."""
    if not rows or any(len(cells) != len(header) + 1 for cells in rows):
        return False
    first = [cells[0] for cells in rows]
    is_numbered = first == [str(k) for k in range(1, len(first) + 1)]
    return is_numbered or (_numbers(first) is None and len(set(first)) == len(first))


def _numbers(cells: list[str]) -> list[float] | None:
    """All cells as numbers; the first may be empty, above an index."""
    try:
        return [float(cell.replace(",", ".")) for cell in (cells[1:] if cells[0] == "" else cells)]
    except ValueError:
        return None


def _is_counting(cells: list[str]) -> bool:
    numbers = _numbers(cells) or []
    start = numbers[0] if len(numbers) > 2 else -1
    return start in (0, 1) and numbers == [start + k for k in range(len(numbers))]


def _decimal(rows: list[tuple[int, list[str]]], delimiter: str, console: Console) -> str:
    cells = [cell.strip() for _, row in rows for cell in row]
    if delimiter == "," or any(_POINT.fullmatch(cell) for cell in cells):
        return "."
    if not any(_COMMA.fullmatch(cell) for cell in cells):
        return "."
    console.note("Numbers such as 1,5 are read with a decimal comma.")
    return ","


def _check_unique(path: Path, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = [k + 1 for k, name in enumerate(names) if name == twice[0]]
        raise BadInput(
            f"{path}, line 1: {len(places)} columns have the name {twice[0]!r}, number {join_names(places)}. "
            "Give each column a unique name."
        )
