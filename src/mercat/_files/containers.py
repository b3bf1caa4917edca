"""Checks of HDF5 files and zarr folders before they are read.

Both can declare data that they do not store, and refer to other files; zarr can name codecs that run code.
`check_hdf5` and `check_zarr` raise ValueError for all of these.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .untrusted import check_claim, check_file, reading

# Codecs that do not run code, unlike zarr's "pickle".
CODECS = {
    "adler32", "astype", "bitround", "blosc", "bool", "bytes", "bz2", "crc32", "crc32c",
    "delta", "endian", "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4",
    "lzma", "packbits", "pcodec", "quantize", "sharding_indexed", "shuffle", "transpose",
    "vlen-array", "vlen-bytes", "vlen-utf8", "zfpy", "zlib", "zstd",
}  # fmt: skip
_METADATA = ("zarr.json", ".zarray", ".zmetadata", ".zgroup", ".zattrs")


def check_hdf5(path: Path) -> None:
    """Raise if an HDF5 file declares too much data, refers to other files, or has unexpected types."""
    import h5py

    claims: list[int] = []

    def name_of_external(name: bytes, about: Any) -> bytes | None:
        return name if about.type == h5py.h5l.TYPE_EXTERNAL else None

    def look_at(name: str, item: Any) -> None:
        for k in range(h5py.h5a.get_num_attrs(item.id)):
            _check_kind(path, name, h5py.h5a.open(item.id, index=k).get_type())
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise ValueError(f"{path} takes its values from another file, at {name}.")
            _check_kind(path, name, item.id.get_type())
            claims.append(math.prod(item.shape or ()) * item.dtype.itemsize)

    with reading(path, "a valid HDF5 file"):
        _check_heaps(path)
    with reading(path, "a valid HDF5 file"), h5py.File(path, "r") as file:
        external = file.id.links.visit(name_of_external, info=True)
        if external is not None:
            where = external.decode(errors="replace")
            raise ValueError(f"{path} points to another file, at {where}.")
        look_at("/", file)
        file.visititems(look_at)
        check_claim(path, sum(claims))


def _check_heaps(path: Path) -> None:
    """Raise if a heap of strings is broken, which sends HDF5 into an infinite loop.

    A heap starts with GCOL, a version and its size; then come strings, each with a number, a count and its
    size, up to number 0, the free space.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(b"GCOL\x01\0\0\0")
        while start >= 0:
            end = start + int.from_bytes(content[start + 8 : start + 16], "little")
            at = start + 16
            while at + 16 <= min(end, len(content)):
                number = int.from_bytes(content[at : at + 2], "little")
                size = int.from_bytes(content[at + 8 : at + 16], "little")
                step = size if number == 0 else 16 + -(-size // 8) * 8
                if step < 16 or at + step > end:
                    raise ValueError(f"{path} is not a valid HDF5 file: a global heap is corrupt.")
                at += step
            start = content.find(b"GCOL\x01\0\0\0", start + 8)


def _check_kind(path: Path, name: str, kind: Any) -> None:
    """Raise unless values are numbers, strings, enums, references, or records of these.

    Sequences of varying length are refused: a flipped bit turns them into sequences of strings, which crash
    h5py.
    """
    from h5py import h5t

    if kind.get_class() == h5t.COMPOUND:
        for k in range(kind.get_nmembers()):
            _check_kind(path, name, kind.get_member_type(k))
    elif kind.get_class() not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM, h5t.REFERENCE):
        raise ValueError(f"{path} contains values of an unsupported type, at {name}.")


def check_zarr(path: Path) -> None:
    """Raise if a zarr folder declares too much data, refers to other files, or names unknown codecs."""
    claimed = 0
    with reading(path, "a valid zarr store", folder=True):
        inside = path.resolve()
        for part in path.rglob("*"):
            if not part.resolve().is_relative_to(inside):
                raise ValueError(f"{path} points to another file, at {part.relative_to(path)}.")
            check_file(part, folder=True)
            if part.name in _METADATA and part.is_file():
                about = json.loads(part.read_bytes())
                if part.name != ".zattrs":
                    claimed += _check_metadata(path, about)
        check_claim(path, claimed)


def _check_metadata(path: Path, about: Any) -> int:
    """Number of bytes that the arrays in a file of metadata declare."""
    claimed = 0
    for node in _dictionaries(about):
        for key in ("filters", "compressor", "codecs"):
            for name in _codecs(node.get(key)):
                if name.removeprefix("numcodecs.") not in CODECS:
                    raise ValueError(
                        f"{path} needs the decoder {name[:40]!r}, which is not trusted."
                    )
        if "shape" in node and ("dtype" in node or "data_type" in node):
            claimed += math.prod(node["shape"]) * _item_size(
                node.get("dtype", node.get("data_type"))
            )
    return claimed


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _dictionaries(entry)


def _codecs(value: Any) -> Iterator[str]:
    """Names of codecs, in version 2 (id) or 3 (name) of the format."""
    for codec in value if isinstance(value, list) else [value]:
        if isinstance(codec, dict):
            yield str(codec.get("id", codec.get("name")))
        elif codec is not None:
            yield str(codec)


def _item_size(dtype: Any) -> int:
    """Bytes per value; 8 for types unknown to NumPy, such as strings of any length."""
    try:
        return max(int(np.dtype(dtype).itemsize), 1)
    except TypeError:
        return 8
