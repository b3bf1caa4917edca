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
# whose unpacked chunks `unpacked_size` measures.
CODECS = {
    "adler32", "blosc", "bool", "bytes", "bz2", "crc32", "crc32c", "endian", "fletcher32", "gzip",
    "jenkins_lookup3", "lz4", "sharding_indexed", "shuffle", "transpose", "vlen-array", "vlen-bytes",
    "vlen-utf8", "zlib", "zstd",
}  # fmt: skip
_METADATA = ("zarr.json", ".zarray", ".zmetadata", ".zgroup", ".zattrs")
# HDF5 filters that do not compress.
_SHUFFLE, _CHECKSUM = 2, 3
_ZLIB, _ZLIB_PACKS = 1, 1032  # filter number, and largest compression ratio


def check_hdf5(path: Path) -> None:
    """Raise if an HDF5 file declares too much data, refers to other files, or has unexpected types."""
    import h5py

    claims: list[int] = []
    linked: set[Any] = set()

    def wrong_link(name: bytes, about: Any) -> str | None:
        if about.type == h5py.h5l.TYPE_HARD and about.u not in linked:
            linked.add(about.u)
            return None
        what = "file" if about.type == h5py.h5l.TYPE_EXTERNAL else "part of itself"
        return f"{path} points to another {what}, at {name.decode(errors='replace')}."

    def check_item(name: str, item: Any) -> None:
        for k in range(h5py.h5a.get_num_attrs(item.id)):
            _check_kind(path, name, h5py.h5a.open(item.id, index=k).get_type())
        check_integers(f"{path}: the shape of {name}", item.attrs.get("shape", ()))
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise ValueError(f"{path} takes its values from another file, at {name}.")
            _check_kind(path, name, item.id.get_type())
            shape = item.shape or ()
            claims.append(whole_chunks(shape, item.chunks or shape) * item.dtype.itemsize)
            _check_filters(path, name, item)

    with reading(path, "a valid HDF5 file"):
        _check_heaps(path)
    with reading(path, "a valid HDF5 file"), h5py.File(path, "r") as file:
        linked.add(h5py.h5o.get_info(file.id).addr)
        if fault := file.id.links.visit(wrong_link, info=True):
            raise ValueError(fault)
        check_item("/", file)
        file.visititems(check_item)
        check_claim(path, sum(claims))


def _check_filters(path: Path, name: str, item: Any) -> None:
    """Raise if the chunks of a dataset are packed more than once or, by zlib, unpack to too much data.

    zlib packs at most 1032-fold, so only chunks that make up a large part of the file can unpack to too much.
    lzf packs at most 88-fold, and the other filters of HDF5 unpack to the declared sizes, which are checked.
    """
    plist = item.id.get_create_plist()
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    packing = [number for number in filters if number not in (_SHUFFLE, _CHECKSUM)]
    if len(packing) > 1:
        raise ValueError(f"{path} is packed more than once, at {name}.")
    most = allowance(path)
    if packing != [_ZLIB] or _ZLIB_PACKS * item.id.get_storage_size() <= most:
        return
    large: list[Any] = []

    def collect(chunk: Any) -> None:
        if _ZLIB_PACKS * chunk.size > most:
            large.append(chunk.chunk_offset)

    if hasattr(item.id, "chunk_iter"):  # requires HDF5 1.12.3 or later
        item.id.chunk_iter(collect)
    for offset in large:
        mask, content = item.id.read_direct_chunk(offset)
        if not mask and inflated_size(content, most) > most:
            raise ValueError(expansion_message(path))


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

    n_bytes: int  # in whole chunks
    codecs: list[Any]  # in the order of packing
    n_inner: int  # inner chunks per chunk, if it is a shard


def check_zarr(path: Path) -> None:
    """Raise if a zarr folder declares or packs too much data, contains links, or names unknown codecs."""
    layouts: dict[Path, list[_Layout]] = {}
    chunks = []
    with reading(path, "a valid zarr store", folder=True):
        for part in path.rglob("*"):
            if part.is_symlink():
                raise ValueError(f"{path} points to another file, at {part.relative_to(path)}.")
            check_file(part, folder=True)
            if part.name in _METADATA and part.is_file():
                about = json.loads(part.read_bytes())
                _check_metadata(path, about)
                for place, node in _nodes(part, about):
                    if ".." in place.relative_to(path).parts:
                        raise ValueError(f"{path} points to another file, at {place}.")
                    layouts.setdefault(place, []).extend(_layouts(node))
            elif part.is_file():
                chunks.append(part)
        check_claim(
            path, sum(max(each.n_bytes for each in found) for found in layouts.values() if found)
        )
        _check_unpacked(path, chunks, layouts)


def _check_unpacked(path: Path, chunks: list[Path], layouts: dict[Path, list[_Layout]]) -> None:
    """Raise if the chunks unpack to too much data."""
    most, size = allowance(path), 0
    for part in chunks:
        found = [layout for place in part.parents for layout in layouts.get(place, ())]
        if found and part.stat().st_size:
            with (
                part.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                size += max(
                    unpacked_size(content, each.codecs, each.n_inner, most) for each in found
                )
            if size > most:
                raise ValueError(expansion_message(path))


def _check_metadata(path: Path, about: Any) -> None:
    """Raise if metadata contain an unknown codec or a fractional shape at any depth."""
    for node in _dictionaries(about):
        if isinstance(node.get("shape"), list):
            check_integers(f"{path}: a shape", node["shape"])
        for key in ("filters", "compressor", "codecs", "index_codecs"):
            codecs = node.get(key)
            for codec in codecs if isinstance(codecs, list) else [codecs]:
                if codec is not None and name_of(codec) not in CODECS:
                    raise ValueError(
                        f"{path} needs the decoder {name_of(codec)[:40]!r}, which is not trusted."
                    )


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from _dictionaries(entry)


def _nodes(file: Path, about: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders of arrays and groups with their metadata, from a file that may describe several of them."""
    if file.name == ".zmetadata":
        for key, node in about["metadata"].items():
            yield (file.parent / key).parent, node
    else:
        yield from _nodes_below(file.parent, about)


def _nodes_below(place: Path, about: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    yield place, about
    for key, node in ((about.get("consolidated_metadata") or {}).get("metadata") or {}).items():
        yield from _nodes_below(place / key, node)


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
