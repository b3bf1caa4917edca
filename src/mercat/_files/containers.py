"""Checks of HDF5 files and zarr folders before they are read.

Both can declare more data than they store, and refer to other files; zarr can name codecs that run code.
`check_hdf5` and `check_zarr` raise ValueError in these cases.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .chunks import inflated_size, item_size, name_of, unpacked_size, whole_chunks
from .untrusted import (
    allowance,
    check_claim,
    check_file,
    check_integers,
    expansion_message,
    reading,
)

# Codecs that neither run code nor enlarge the data, unlike zarr's "pickle" and "astype", and compressors
# whose decompressed size `unpacked_size` computes.
CODECS = {
    "adler32", "blosc", "bool", "bytes", "bz2", "crc32", "crc32c", "endian", "fletcher32", "gzip",
    "jenkins_lookup3", "lz4", "sharding_indexed", "shuffle", "transpose", "vlen-array", "vlen-bytes",
    "vlen-utf8", "zlib", "zstd",
}  # fmt: skip
_METADATA = ("zarr.json", ".zarray", ".zmetadata", ".zgroup", ".zattrs")
# HDF5 filters that do not compress.
_SHUFFLE, _CHECKSUM = 2, 3
_ZLIB, _ZLIB_RATIO = 1, 1032  # filter number, and largest compression ratio


def check_hdf5(path: Path) -> None:
    """Raise if an HDF5 file declares too much data, refers to other files, or has unexpected types."""
    import h5py

    declared_sizes: list[int] = []  # sizes of the datasets, in bytes
    addresses: set[Any] = set()  # addresses of the objects seen so far

    def link_error(name: bytes, link: Any) -> str | None:
        if link.type == h5py.h5l.TYPE_HARD and link.u not in addresses:
            addresses.add(link.u)
            return None
        place = name.decode(errors="replace")
        if link.type == h5py.h5l.TYPE_EXTERNAL:
            return f"{path} contains a link to another file, at {place}."
        return f"{path} contains an internal link, at {place}."

    def check_item(name: str, item: Any) -> None:
        for k in range(h5py.h5a.get_num_attrs(item.id)):
            _check_kind(path, name, h5py.h5a.open(item.id, index=k).get_type())
        check_integers(f"{path}: the shape of {name}", item.attrs.get("shape", ()))
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise ValueError(f"{path} stores values in another file, at {name}.")
            _check_kind(path, name, item.id.get_type())
            shape = item.shape or ()
            n_values = whole_chunks(shape, item.chunks or shape)
            declared_sizes.append(n_values * item.dtype.itemsize)
            _check_filters(path, name, item)

    with reading(path, "a valid HDF5 file"):
        _check_heaps(path)
    with reading(path, "a valid HDF5 file"), h5py.File(path, "r") as file:
        addresses.add(h5py.h5o.get_info(file.id).addr)
        if error := file.id.links.visit(link_error, info=True):
            raise ValueError(error)
        check_item("/", file)
        file.visititems(check_item)
        check_claim(path, sum(declared_sizes))


def _check_filters(path: Path, name: str, item: Any) -> None:
    """Raise if the chunks of a dataset are compressed more than once, or too strongly by zlib.

    The compression ratio of zlib is at most 1032, so only chunks that make up a large part of the file can
    decompress to too much data. That of lzf is at most 88, and the other filters of HDF5 decompress to the
    declared sizes, which are checked.
    """
    plist = item.id.get_create_plist()
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    compressors = [number for number in filters if number not in (_SHUFFLE, _CHECKSUM)]
    if len(compressors) > 1:
        raise ValueError(f"{path} contains data that are compressed more than once, at {name}.")
    max_size = allowance(path)
    if compressors != [_ZLIB] or _ZLIB_RATIO * item.id.get_storage_size() <= max_size:
        return
    large_chunks: list[Any] = []

    def collect(chunk: Any) -> None:
        if _ZLIB_RATIO * chunk.size > max_size:
            large_chunks.append(chunk.chunk_offset)

    if hasattr(item.id, "chunk_iter"):  # requires HDF5 1.12.3 or later
        item.id.chunk_iter(collect)
    for offset in large_chunks:
        mask, content = item.id.read_direct_chunk(offset)
        if not mask and inflated_size(content, max_size) > max_size:
            raise ValueError(expansion_message(path))


def _check_heaps(path: Path) -> None:
    """Raise if a heap of strings is corrupt, which sends HDF5 into an infinite loop.

    A heap starts with GCOL, a version and its size, followed by strings, each with its number, a reference
    count and its size. The number 0 marks the free space at the end.
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

    Sequences of variable length are refused: a flipped bit turns them into sequences of strings, which crash
    h5py.
    """
    from h5py import h5t

    if kind.get_class() == h5t.COMPOUND:
        for k in range(kind.get_nmembers()):
            _check_kind(path, name, kind.get_member_type(k))
    elif kind.get_class() not in (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM, h5t.REFERENCE):
        raise ValueError(f"{path} contains values of an unsupported type, at {name}.")


class _Layout(NamedTuple):
    """How an array of a zarr folder is stored."""

    n_bytes: int  # size in whole chunks
    codecs: list[Any]  # codecs in the order of encoding
    n_inner: int  # number of inner chunks of a shard, else 0


def check_zarr(path: Path) -> None:
    """Raise if a zarr folder declares or contains too much data, contains links, or names unknown codecs."""
    layouts: dict[Path, list[_Layout]] = {}
    chunks = []
    with reading(path, "a valid zarr store", folder=True):
        for part in path.rglob("*"):
            if part.is_symlink():
                raise ValueError(f"{path} contains a symbolic link, at {part.relative_to(path)}.")
            check_file(part, folder=True)
            if part.name in _METADATA and part.is_file():
                metadata = json.loads(part.read_bytes())
                _check_metadata(path, metadata)
                for folder, node in _nodes(part, metadata):
                    if ".." in folder.relative_to(path).parts:
                        raise ValueError(f"{path} refers to a folder outside of it, {folder}.")
                    layouts.setdefault(folder, []).extend(_layouts(node))
            elif part.is_file():
                chunks.append(part)
        sizes = (max(layout.n_bytes for layout in group) for group in layouts.values() if group)
        check_claim(path, sum(sizes))
        _check_unpacked(path, chunks, layouts)


def _check_unpacked(path: Path, chunks: list[Path], layouts: dict[Path, list[_Layout]]) -> None:
    """Raise if the chunks decompress to too much data."""
    max_size, size = allowance(path), 0
    for part in chunks:
        candidates = [layout for folder in part.parents for layout in layouts.get(folder, ())]
        if candidates and part.stat().st_size:
            with (
                part.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                size += max(
                    unpacked_size(content, layout.codecs, layout.n_inner, max_size)
                    for layout in candidates
                )
            if size > max_size:
                raise ValueError(expansion_message(path))


def _check_metadata(path: Path, metadata: Any) -> None:
    """Raise if metadata contain an unknown codec or a fractional shape at any depth."""
    for node in _dictionaries(metadata):
        if isinstance(node.get("shape"), list):
            check_integers(f"{path}: a shape", node["shape"])
        for key in ("filters", "compressor", "codecs", "index_codecs"):
            codecs = node.get(key)
            for codec in codecs if isinstance(codecs, list) else [codecs]:
                if codec is not None and name_of(codec) not in CODECS:
                    raise ValueError(
                        f"{path} needs the codec {name_of(codec)[:40]!r}, which is not supported."
                    )


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _dictionaries(entry)


def _nodes(file: Path, metadata: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders of arrays and groups with their metadata, from a file that may describe several of them."""
    if file.name == ".zmetadata":
        for key, node in metadata["metadata"].items():
            yield (file.parent / key).parent, node
    else:
        yield from _nodes_below(file.parent, metadata)


def _nodes_below(folder: Path, node: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    yield folder, node
    for key, child in ((node.get("consolidated_metadata") or {}).get("metadata") or {}).items():
        yield from _nodes_below(folder / key, child)


def _layouts(node: dict[str, Any]) -> Iterator[_Layout]:
    """The layout of an array, in version 2 (dtype) or 3 (data_type) of the format."""
    if "shape" in node and "dtype" in node and "chunks" in node:
        n_bytes = whole_chunks(node["shape"], node["chunks"]) * item_size(node["dtype"])
        yield _Layout(
            n_bytes, [*(node.get("filters") or []), *filter(None, [node.get("compressor")])], 0
        )
    if "shape" in node and "data_type" in node and "chunk_grid" in node:
        chunks, codecs = node["chunk_grid"]["configuration"]["chunk_shape"], node["codecs"]
        inner = [
            c["configuration"]["chunk_shape"] for c in codecs if name_of(c) == "sharding_indexed"
        ]
        n_inner = math.prod(-(-n // m) for n, m in zip(chunks, *inner, strict=True)) if inner else 0
        n_bytes = whole_chunks(node["shape"], chunks) * item_size(node["data_type"])
        yield _Layout(n_bytes, codecs, n_inner)
