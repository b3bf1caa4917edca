"""Read untrusted files: declared sizes are checked first, and no code is run.

Memory is bounded in proportion to the size of the file. Compressed and sparse files can declare any size: a
file is refused if it declares more than `_MAX_EXPANSION` times its size and more than `_FREE` bytes. Errors
are ValueErrors that start with the path of the file.
"""

from __future__ import annotations

import errno
import gzip
import io
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._data.text import printable

# Compression ratios of real tables are 2 to 50, those of attacks are about 1000.
_MAX_EXPANSION = 200
_FREE = 1 << 26  # bytes to which any file may expand
_MAX_MEMBERS = 10_000
# Memory that a fit needs per row or column of a sparse matrix: 50 components in double precision.
_BYTES_PER_SIDE = 400
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """Kind of a path after following links: "a file", "a folder", "a pipe", ..., or "absent"."""
    try:
        kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "of an unknown kind")
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    # Files in these folders may declare any size, and reading them may block.
    of_kernel = os.path.realpath(path).startswith(("/proc/", "/sys/"))
    return "a part of the kernel" if kind == "a file" and of_kernel else kind


def check_file(path: str | os.PathLike[str], *, folder: bool = False) -> None:
    """Raise unless the path is a regular file, or a folder if `folder`.

    Pipes and devices have no size that could be checked, and opening one can block forever. Raises ValueError
    with the path and its kind, and OSError for absent files and circular links.
    """
    try:
        kind = kind_of_file(path)
    except ValueError as error:  # text that is not Unicode, or a null character
        raise ValueError(f"{str(path)!r} cannot be read: a file cannot have this name.") from error
    if kind == "absent":
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if kind == "a folder" and not folder:
        raise ValueError(f"{path} is a folder, not a file.")
    if kind not in ("a file", "a folder"):
        raise ValueError(f"{path} is {kind}, not a file: write its content to a file first.")


@contextmanager
def reading(
    path: str | os.PathLike[str], what: str = "a valid file of its format", *, folder: bool = False
) -> Iterator[None]:
    """Context that turns errors about the content of a file into ValueErrors that name the file.

    Checks the path first: see `check_file`. Errors about absent or unreadable files stay OSErrors, and
    MemoryErrors are unchanged, unless the content declares more than `allowance`.
    """
    check_file(path, folder=folder)
    try:
        yield
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) or (error.name or "mercat").startswith("mercat"):
            raise  # a package is not installed
        raise ValueError(f"{path} is not {what}: {short(error)}") from error
    except MemoryError as error:
        wanted = getattr(error, "_total_size", 0)  # bytes requested by a NumPy array
        if wanted > allowance(path):
            raise ValueError(f"{path} is not {what}: {short(error)}") from error
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{path} is not {what}: {short(error)}") from error
    except Exception as error:  # C libraries and parsers may raise any error
        reason = str(error).removeprefix(str(path))
        if isinstance(error, ValueError) and reason != str(error):
            if reason == printable(reason):
                raise
            raise ValueError(f"{path}{printable(reason)}") from error
        raise ValueError(f"{path} is not {what}: {short(error)}") from error


def short(error: Exception) -> str:
    """The first line of an error's message, with control characters escaped, or its type."""
    first = (str(error).strip().splitlines() or [""])[0]
    return printable(first[:200]) or type(error).__name__


def allowance(*paths: str | os.PathLike[str]) -> int:
    """Maximum number of bytes to which files or folders may expand."""
    roots = [Path(path) for path in paths]
    files = [file for root in roots for file in ([root] if root.is_file() else root.rglob("*"))]
    size = sum(file.stat().st_size for file in files if file.is_file())
    return max(_FREE, _MAX_EXPANSION * size)


def check_claim(path: str | os.PathLike[str], n_bytes: int, what: str = "") -> None:
    """Raise if a file declares far more data than its size."""
    if n_bytes > allowance(path):
        raise ValueError(
            f"{path}{what and f', {what}'} claims {n_bytes:,} bytes, more than {_MAX_EXPANSION} times the "
            "size of the file. If you trust it, save it uncompressed, or in another format."
        )


def expansion_message(path: str | os.PathLike[str]) -> str:
    """Message about a file whose compressed content is far larger than the file."""
    return (
        f"{path} decompresses to more than {_MAX_EXPANSION} times its size. If you trust it, save it "
        "uncompressed."
    )


# ------------------------------------------------------------------ gzip


class _Unpacked(io.RawIOBase):
    """Decompress a gzip file, up to the allowed size."""

    def __init__(self, path: Path) -> None:
        self._path, self._stream, self._max_size = path, gzip.GzipFile(path), allowance(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read1(len(buffer))
        buffer[: len(content)] = content
        if self._stream.tell() > self._max_size:
            raise ValueError(expansion_message(self._path))
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def opened(path: Path, packed: bool | None = None) -> BinaryIO:
    """Open a file, decompressing it if its name ends in .gz, or if `packed`."""
    if path.suffix == ".gz" if packed is None else packed:
        return io.BufferedReader(_Unpacked(path), 1 << 16)
    return path.open("rb")


# ------------------------------------------------------------------ arrays


def read_npy(path: Path) -> np.ndarray:
    """Read an .npy file."""
    with reading(path), path.open("rb") as file:
        return read_array(file, path.stat().st_size, str(path))


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file."""
    with reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > _MAX_MEMBERS:
            raise ValueError(f"{path} has {len(members):,} parts, more than {_MAX_MEMBERS:,}.")
        check_claim(path, sum(member.file_size for member in members))
        arrays: dict[str, np.ndarray] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"{path} has two arrays {name!r}.")
            with archive.open(member) as stream:
                arrays[name] = read_array(stream, member.file_size, f"{path}, array {name!r}")
        return arrays


def read_array(stream: Any, size: int, where: str) -> np.ndarray:
    """Read an .npy array of numbers, text or dates from a stream of `size` bytes.

    The header is compared with the size before memory is allocated.
    """
    try:
        magic = np.lib.format.read_magic(stream)
        shape, fortran, dtype = _HEADERS[magic](stream)
    except Exception as error:  # tokenize, ast and dtypes have many ways to fail
        raise ValueError(f"{where} is broken or truncated: {short(error)}") from error
    if dtype.hasobject:
        raise ValueError(
            f"{where} is not an array of numbers or text; pickled objects are not loaded, since they can "
            "run code."
        )
    n_bytes = size - stream.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(
            f"{where} is broken or truncated: it claims the shape {_brief(shape)} of {dtype}, but "
            f"has {n_bytes:,} bytes of values."
        )
    if n_bytes == 0 and math.prod(shape) > 0:
        raise ValueError(f"{where} claims values of 0 bytes, of type {dtype}.")
    flat = np.empty(math.prod(shape), dtype=dtype)
    _read_into(flat, stream, where)
    if dtype.kind == "U":
        _check_text(flat, where)
    if not dtype.isnative:
        flat = flat.byteswap(inplace=True).view(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if fortran else "C")


def _brief(shape: tuple[int, ...]) -> str:
    text = str(shape)
    return text if len(text) < 60 else f"{text[:60]}..."


def _read_into(flat: np.ndarray, stream: Any, where: str) -> None:
    buffer: Any = flat.view(np.uint8) if flat.size else b""
    rest = memoryview(buffer)
    while len(rest):
        content = stream.read(min(len(rest), 1 << 20))
        if not content:
            raise ValueError(f"{where} is broken or truncated: {len(rest):,} bytes are missing.")
        rest[: len(content)] = content
        rest = rest[len(content) :]
    stream.read(1)  # at the end, zipfile verifies the checksum


def _check_text(flat: np.ndarray, where: str) -> None:
    codes = flat.astype(flat.dtype.newbyteorder("="), copy=False).view(np.uint32)
    if np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))):
        raise ValueError(f"{where} holds text that is not Unicode.")


def check_integers(where: str, values: Any) -> None:
    """Raise unless all values are integers, since SciPy would truncate fractional indices and sizes."""
    values = np.asarray(values)
    if values.size and values.dtype.kind not in "iu":
        flat = values.ravel()
        fractions = flat[flat != np.floor(flat)] if values.dtype.kind == "f" else flat
        wrong = (fractions if fractions.size else flat)[0]
        raise ValueError(f"{where} must be integers, got {str(wrong)[:40]!r}.")


def most_sides(*paths: str | os.PathLike[str]) -> int:
    """Maximum number of rows plus columns of a sparse matrix, and of columns of a text table, in files.

    Empty rows and columns take no space in a sparse or compressed file, but they need memory in a fit.
    An uncompressed text table never has more columns than this.
    """
    return allowance(*paths) // _BYTES_PER_SIDE


def check_sides(path: str | os.PathLike[str], shape: tuple[int, ...], *beside: Path | None) -> None:
    """Raise if a sparse matrix has far more rows or columns than expected for the size of its file.

    Files `beside` it, with names of rows and columns, count as part of it.
    """
    most = most_sides(path, *filter(None, beside))
    if sum(shape) > most:
        sizes = " x ".join(f"{size:,}" for size in shape)
        raise ValueError(
            f"{path} claims {sizes} rows and columns, more than the {most:,} that a sparse file of its size "
            "may have. Remove the empty ones."
        )
