"""Sizes of arrays in HDF5 and zarr, and sizes of their chunks after decompression, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_BLOCK = 1 << 17  # largest block of Zstandard, in bytes
_BYTES_AT_ONCE = 1 << 20  # decompressed at a time
_EMPTY = 2**64 - 1  # offset that marks a chunk as absent from a shard


def name_of(codec: Any) -> str:
    """Name of a codec, in version 2 (id) or 3 (name) of the format."""
    name = codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec
    return str(name).removeprefix("numcodecs.")


def whole_chunks(shape: Sequence[int], chunks: Sequence[int]) -> int:
    """Number of values of an array, rounded up to whole chunks, as readers allocate them."""
    if len(shape) != len(chunks):
        raise ValueError(f"it has an array of shape {shape!s:.60} in chunks of {chunks!s:.60}.")
    _count(chunks)
    return _count([-(-n // max(m, 1)) * max(m, 1) for n, m in zip(shape, chunks, strict=True)])


def _count(shape: Sequence[int]) -> int:
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError(f"it has an array of shape {shape!s:.60}.")
    return math.prod(shape)


def item_size(dtype: Any) -> int:
    """Bytes per value of a type in the metadata of zarr; 8 for values of any length, such as strings."""
    if isinstance(dtype, dict):  # version 3 of the format
        configuration = dtype.get("configuration") or {}
        if "length_bytes" in configuration:
            return max(_count([configuration["length_bytes"]]), 1)
        dtype = configuration.get("fields", dtype.get("name"))
    if isinstance(dtype, list):  # fields of a record: name, type and perhaps shape
        return sum(item_size(kind) * _count(*shape or [()]) for _, kind, *shape in dtype)
    if bits := re.fullmatch(r"r(\d+)", str(dtype)):
        return -(-int(bits[1]) // 8)
    try:
        return max(int(np.dtype(dtype).itemsize), 1)
    except (TypeError, ValueError):
        return 8


def unpacked_size(content: Any, codecs: list[Any], n_inner: int, most: int) -> int:
    """Decompressed size of a chunk in bytes; for streams without a header, counting stops above `most`.

    `n_inner` is the number of inner chunks if the chunk is a shard.
    """
    if codecs and isinstance(codecs[-1], dict) and codecs[-1].get("name") == "crc32c":
        codecs = codecs[:-1]  # at the end of the chunk
    *inner, outer = [name_of(codec) for codec in codecs] or [""]
    if any(name in _SIZES or name == _SHARDS for name in inner):
        raise ValueError(
            f"its chunks are compressed more than once, by {', '.join([*inner, outer])[:80]}."
        )
    if outer == _SHARDS:
        return _size_of_shard(content, codecs[-1]["configuration"], n_inner, most)
    return _SIZES[outer](content, most) if outer in _SIZES else len(content)


def _size_of_shard(content: Any, about: dict[str, Any], n_inner: int, most: int) -> int:
    """Sum over the inner chunks, whose offsets and sizes are in an index at the end of the shard."""
    plain = [name_of(codec) for codec in about["index_codecs"]] == ["bytes", "crc32c"]
    start = len(content) - 16 * n_inner - 4
    if not plain or about.get("index_location", "end") != "end" or start < 0:
        raise ValueError("it has a shard without a plain index at its end.")
    index = np.frombuffer(content[start:-4], "<u8").reshape(-1, 2).tolist()
    size = 0
    for offset, length in index:
        if offset != _EMPTY and size <= most:
            size += unpacked_size(content[offset : offset + length], about["codecs"], 0, most)
    return size


def _size_of_blosc(content: Any, most: int) -> int:
    """Decompressed size of a Blosc chunk, from its second four bytes."""
    del most
    return int.from_bytes(content[4:8], "little")


def _size_of_lz4(content: Any, most: int) -> int:
    """Decompressed size of an LZ4 chunk, from its first four bytes."""
    del most
    return int.from_bytes(content[:4], "little")


def _size_of_zstandard(content: Any, most: int) -> int:
    """Sum over the frames of the size in their header, or else of the sizes of their blocks (RFC 8878)."""
    del most
    at = size = 0
    while at < len(content):
        magic = _integer(content, at, 4)
        if magic & ~15 == 0x184D2A50:  # a skippable frame
            at += 8 + _integer(content, at + 4, 4)
            continue
        if magic != 0xFD2FB528:
            raise ValueError("a chunk is not valid Zstandard data.")
        flags = _integer(content, at + 4, 1)
        single = flags >> 5 & 1
        at += 6 - single + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        declared = _integer(content, at, width) + (256 if width == 2 else 0)
        at, blocks = _after_blocks(content, at + width)
        at += flags & 4  # a checksum
        size += declared if width else blocks
    return size


def _after_blocks(content: Any, at: int) -> tuple[int, int]:
    """End of the blocks of a frame, and the maximum number of bytes to which they decompress."""
    size, last = 0, False
    while not last:
        head = _integer(content, at, 3)
        last, kind, length = bool(head & 1), head >> 1 & 3, head >> 3
        size += _BLOCK if kind == 2 else length  # compressed; otherwise raw, or one repeated byte
        at += 3 + (1 if kind == 1 else length)
    return at, size


def _integer(content: Any, at: int, width: int) -> int:
    if at + width > len(content):
        raise ValueError("a chunk is truncated.")
    return int.from_bytes(content[at : at + width], "little")


def _size_of_stream(opened: Callable[[Any], Any]) -> Callable[[Any, int], int]:
    """Function that decompresses a stream piece by piece and counts its bytes."""

    def size_of(content: Any, most: int) -> int:
        size = 0
        with opened(io.BytesIO(content[:])) as stream:
            while size <= most and (piece := stream.read(_BYTES_AT_ONCE)):
                size += len(piece)
        return size

    return size_of


def inflated_size(content: Any, most: int) -> int:
    """Decompressed size of a zlib chunk in bytes; counting stops above `most`."""
    decoder, size, rest = zlib.decompressobj(), 0, content[:]
    while rest and size <= most and not decoder.eof:
        size += len(decoder.decompress(rest, _BYTES_AT_ONCE))
        rest = decoder.unconsumed_tail
    return size


_SHARDS = "sharding_indexed"
_SIZES: dict[str, Callable[[Any, int], int]] = {
    "blosc": _size_of_blosc,
    "lz4": _size_of_lz4,
    "zstd": _size_of_zstandard,
    "zlib": inflated_size,
    "gzip": _size_of_stream(gzip.open),
    "bz2": _size_of_stream(bz2.open),
}
