"""Array API helpers for NumPy and torch arrays, and blocks of their rows."""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

Array = Any  # an array of any library that follows the array API standard
TILE = 512  # rows per tile, which are projected and placed by matrix products of a fixed shape
_VALUES_ON_DEVICE = 1 << 28  # values of a temporary tensor: 1 GiB in single precision
T = TypeVar("T")


def namespace(array: Array) -> Any:
    """The array API namespace of an array; NumPy itself for NumPy arrays."""
    if isinstance(array, np.ndarray):
        return np
    if type(array).__module__ == "torch":
        import array_api_compat.torch

        return array_api_compat.torch
    import array_api_compat

    return array_api_compat.array_namespace(array)


def on_host(array: Any) -> bool:
    """Whether this is a NumPy array."""
    return isinstance(array, (np.ndarray, np.generic))


def row_dot(a: Array, b: Array) -> Array:
    """Inner products over the last axis. (torch.vecdot runs one matrix product per row.)"""
    xp = namespace(a)
    return xp.vecdot(a, b) if on_host(a) else xp.sum(a * b, axis=-1)


def unstack(pair: Array) -> tuple[Array, Array]:
    """The two parts of an array whose first axis has length 2."""
    return pair[0, ...], pair[1, ...]


def inverse_sqrt(array: Array) -> Array:
    """1 / sqrt(array)."""
    xp = namespace(array)
    if hasattr(xp, "rsqrt"):
        return xp.rsqrt(array)
    root = xp.sqrt(array)
    return np.divide(1, root, out=root) if on_host(root) else 1 / root


_batch_invariant = contextvars.ContextVar("batch_invariant", default=False)


@contextmanager
def rows_alike() -> Iterator[None]:
    """Context in which `row_product` gives the same bits for a row in any batch."""
    token = _batch_invariant.set(True)
    try:
        yield
    finally:
        _batch_invariant.reset(token)


def row_product(A: Array, B: Array) -> Array:
    """A @ B. Within `rows_alike`, in double precision if single precision depends on the batch."""
    single = on_host(A) and A.dtype == np.float32
    if not (single and _batch_invariant.get()) or blas_is_batch_invariant():
        return A @ B
    return (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)


@functools.cache
def blas_is_batch_invariant() -> bool:
    """Whether equal rows give bit-identical rows in a matrix product in single precision.

    False for OpenBLAS on AVX2, whose kernels sum half of every twelve rows in another order. In double
    precision, equal rows get equal bits in all its kernels.
    """
    rng = np.random.default_rng(0)
    equal = np.repeat(rng.normal(size=(1, 50)), TILE, axis=0).astype(np.float32)
    product = equal @ rng.normal(size=(50, 128)).astype(np.float32)
    return bool((product == product[0]).all())


def like(array: Array) -> dict[str, Any]:
    """Keyword arguments to create an array with the same dtype and device."""
    return {"dtype": array.dtype, **same_device(array)}


def same_device(array: Array) -> dict[str, Any]:
    """Keyword arguments to create an array on the same device."""
    return {} if on_host(array) else {"device": array.device}


def widest(array: Array) -> Any:
    """float64, or float32 on devices without it."""
    xp = namespace(array)
    single = not on_host(array) and getattr(array.device, "type", "") == "mps"
    return xp.float32 if single else xp.float64


def to_numpy(array: Any) -> np.ndarray:
    """The array as a NumPy array in host memory; computes a Dask array."""
    return np.asarray(array.cpu() if is_torch(array) else array)


def is_torch(array: Any) -> bool:
    """Whether this is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_dask(array: Any) -> bool:
    """Whether this is a Dask collection; does not import Dask."""
    return hasattr(array, "__dask_graph__")


def blocks(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most `size` that cover range(n)."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def device_blocks(array: Array, values_per_row: int) -> list[slice]:
    """Slices of rows of a tensor, sized for temporary tensors with `values_per_row` values per row.

    Large ones start at multiples of `TILE`, since Triton recompiles kernels for unaligned addresses.
    """
    size = max(1, _VALUES_ON_DEVICE // max(1, values_per_row))
    return blocks(array.shape[0], size - size % TILE if size > TILE else size)


def row_blocks(array: Array, size: int, values_per_row: int) -> list[slice]:
    """`blocks` of `size` rows for arrays in memory; larger `device_blocks` for tensors."""
    return blocks(array.shape[0], size) if on_host(array) else device_blocks(array, values_per_row)


def filled_up(array: Array, size: int = TILE) -> Array:
    """The array padded with its last row to a multiple of `size` rows; unchanged on a device."""
    missing = -array.shape[0] % size if on_host(array) else 0
    if not missing:
        return array
    xp = namespace(array)
    return xp.concat([array, xp.repeat(array[-1:, ...], missing, axis=0)], axis=0)


def in_tiles(
    function: Callable[..., tuple[Array, ...]], *arrays: Array, size: int = TILE
) -> tuple[Array, ...]:
    """Apply a function of rows to tiles of exactly `size` rows; the last one is padded.

    Matrix products of a fixed shape give bit-identical results for a row, whatever the other rows are. On a
    device, where small tiles are slow, all rows are one tile.
    """
    xp = namespace(arrays[0])
    n = arrays[0].shape[0]
    results = []
    size = size if on_host(arrays[0]) else max(n, 1)
    for tile in blocks(n, size):
        results.append(function(*(filled_up(a[tile, ...], size) for a in arrays)))
    return tuple(xp.concat(parts, axis=0)[:n, ...] for parts in zip(*results, strict=True))
