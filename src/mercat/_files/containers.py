"""HDF5 files and zarr folders, looked through before they are read.

Both can claim any size without storing it, and can point at other files of the machine; zarr can name
decoders that run code. `check_hdf5` and `check_zarr` refuse all of that, as ValueError.
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

# What turns bytes into numbers and text, and no more. (Zarr's "pickle" runs what it decodes.)
CODECS = {
    "adler32", "astype", "bitround", "blosc", "bool", "bytes", "bz2", "crc32", "crc32c",
    "delta", "endian", "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4",
    "lzma", "packbits", "pcodec", "quantize", "sharding_indexed", "shuffle", "transpose",
    "vlen-array", "vlen-bytes", "vlen-utf8", "zfpy", "zlib", "zstd",
}  # fmt: skip
_METADATA = ("zarr.json", ".zarray", ".zmetadata", ".zgroup", ".zattrs")


def check_hdf5(path: Path) -> None:
    """Raise where an HDF5 file claims too much, points outside of itself, or holds what no table has."""
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

    with reading(path, "a whole HDF5 file"):
        _check_heaps(path)
    with reading(path, "a whole HDF5 file"), h5py.File(path, "r") as file:
        external = file.id.links.visit(name_of_external, info=True)
        if external is not None:
            where = external.decode(errors="replace")
            raise ValueError(f"{path} points to another file, at {where}.")
        look_at("/", file)
        file.visititems(look_at)
        check_claim(path, sum(claims))


def _check_heaps(path: Path) -> None:
    """Raise where a heap of texts is broken: HDF5 would go round in it for ever.

    A heap begins with GCOL, a version and its size; then come texts, each with a number, a count and its
    size, up to one of number 0, which is the space that is left.
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
                    raise ValueError(f"{path} is not a whole HDF5 file: a heap of texts is broken.")
                at += step
            start = content.find(b"GCOL\x01\0\0\0", start + 8)


def _check_kind(path: Path, name: str, kind: Any) -> None:
    """Raise unless values are numbers, text, names of numbers, references, or records of these.

    h5py reads sequences of varying length, too, and one broken bit makes them of text: that ends the process.
    """
    from h5py import h5t

    if kind.get_class() == h5t.COMPOUND:
        for k in range(kind.get_nmembers()):
            _check_kind(path, name, kind.get_member_type(k))
    elif kind.get_class() not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM, h5t.REFERENCE):
        raise ValueError(f"{path} holds values of a kind that no table has, at {name}.")


def check_zarr(path: Path) -> None:
    """Raise where a zarr folder claims too much, points outside of itself, or names unknown decoders."""
    claimed = 0
    with reading(path, "a whole zarr folder", folder=True):
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
    """Bytes that arrays claim, anywhere in a file of metadata."""
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
    """Names of codecs, as version 2 (id) or 3 (name) of the format has them."""
    for codec in value if isinstance(value, list) else [value]:
        if isinstance(codec, dict):
            yield str(codec.get("id", codec.get("name")))
        elif codec is not None:
            yield str(codec)


def _item_size(dtype: Any) -> int:
    """Bytes of a value; 8 of one that numpy does not know, as text of any length."""
    try:
        return max(int(np.dtype(dtype).itemsize), 1)
    except TypeError:
        return 8
