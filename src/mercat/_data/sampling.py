"""Pseudo-random samples of rows that depend only on the values of the rows.

Each row gets a pseudo-random key from its values, and the rows with the smallest keys are the sample. So the
sample is the same for any seed and any order of the rows, a smaller sample is a subset of a larger one, and
samples of two sets that share most rows share most rows. Maps of equal or similar data are then similar.
Equal rows have different keys within a block of rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from .arrays import Array, blocks, namespace, on_host, same_device, to_numpy
from .source import RowSource

T = TypeVar("T")
_VALUES_AT_ONCE = 1 << 15  # number of values hashed at a time; they fit in the cache of a core
_SAMPLE_SIZE = 10_000  # number of rows in the sample drawn by `reduce_and_sample`
# The increment and the multipliers of SplitMix64, as signed integers.
_INCREMENT = 0x9E3779B97F4A7C15 - (1 << 64)
_MULTIPLIERS = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)
_EXPONENT, _ONE = 0x7F800000, 0x3F800000  # bits of the exponent, and of 1, in single precision


class Sample(NamedTuple):
    """The rows with the smallest keys, in the order of their keys."""

    rows: np.ndarray  # indices
    keys: np.ndarray  # 64-bit integers
    n: int  # number of rows sampled from

    def subsample(self, step: int, size: int) -> np.ndarray:
        """Choose `size` of the rows, different ones in each step.

        Two samples that share most rows also share most rows of their subsamples.
        """
        keys = _mix(self.keys ^ _mix(np.array([step + 1])))
        return self.rows[np.argsort(keys, kind="stable")[:size]]


def sample_of(source: RowSource, size: int) -> Sample:
    """Sample of the rows by their values."""
    sample: Sample | None = source.sample
    if sample is None or len(sample.rows) < min(size, source.shape[0]):
        draw, merge = (functools.partial(f, size=size) for f in (_sample_of_block, _merge_samples))
        sample = source.reduce(draw, merge)
    return Sample(sample.rows[:size], sample.keys[:size], sample.n)


def reduce_and_sample(
    source: RowSource, function: Callable[[Any], T], merge: Callable[[T, T], T]
) -> T:
    """Like `source.reduce`, but draw a sample for `sample_of` in the same pass over the rows."""
    reduced: tuple[T, Sample] = source.reduce(
        functools.partial(_apply_and_sample, function=function),
        functools.partial(_merge_with_samples, merge=merge),
    )
    source.sample = reduced[1]
    return reduced[0]


def _apply_and_sample(rows: Any, function: Callable[[Any], T]) -> tuple[T, Sample]:
    return function(rows), _sample_of_block(rows, _SAMPLE_SIZE)


def _merge_with_samples(
    first: tuple[T, Sample], second: tuple[T, Sample], merge: Callable[[T, T], T]
) -> tuple[T, Sample]:
    return merge(first[0], second[0]), _merge_samples(first[1], second[1], _SAMPLE_SIZE)


def random_sample(n: int, size: int, rng: np.random.Generator) -> Sample:
    """Sample of n rows by random keys."""
    return Sample(rng.permutation(n)[:size], rng.integers(1 << 63, size=size), n)


def _merge_samples(first: Sample, second: Sample, size: int) -> Sample:
    keys = np.concatenate([first.keys, second.keys])
    order = np.argsort(keys, kind="stable")[:size]
    rows = np.concatenate([first.rows, second.rows + first.n])
    return Sample(rows[order], keys[order], first.n + second.n)


def _sample_of_block(rows: Any, size: int) -> Sample:
    """Sample of the rows of a block."""
    keys = row_keys(rows)
    xp = namespace(keys)
    order = xp.argsort(keys, stable=True)
    keys = keys[order]
    n = keys.shape[0]
    position = xp.arange(n, dtype=xp.int64, **same_device(keys))
    first = xp.where(_differs_from_previous(keys), position, xp.zeros_like(position))
    n_equal_before = position - _running_maximum(first)
    keys = _mix(keys + n_equal_before * _INCREMENT)
    chosen = xp.argsort(keys, stable=True)[:size]
    return Sample(to_numpy(order[chosen]), to_numpy(keys[chosen]), n)


def _differs_from_previous(keys: Array) -> Array:
    xp = namespace(keys)
    differs = xp.ones(keys.shape, dtype=xp.bool, **same_device(keys))
    differs[1:] = keys[1:] != keys[:-1]
    return differs


def _running_maximum(values: Array) -> Array:
    if on_host(values):
        return np.maximum.accumulate(values)
    return values.cummax(dim=0).values


def row_keys(rows: Any) -> Array:
    """Key of each row: a hash of its values in single precision.

    Equal rows have equal keys. Scaling a row by a power of two does not change its key.
    """
    if scipy.sparse.issparse(rows):
        return _keys_of_sparse(rows)
    factors = _column_factors(rows.shape[1], namespace(rows), same_device(rows))
    if not on_host(rows):
        return _keys_of_dense(rows, factors)
    size = max(1, _VALUES_AT_ONCE // max(rows.shape[1], 1))
    parts = [_keys_of_dense(rows[block], factors) for block in blocks(len(rows), size)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _keys_of_dense(rows: Array, factors: Array) -> Array:
    xp = namespace(rows)
    bits = _bits(rows)
    largest = xp.max(bits & _EXPONENT, axis=1)[:, None] if rows.shape[1] else bits[:, :1]
    shifted = bits - (largest - _ONE)
    shifted *= bits != 0
    shifted *= factors
    return xp.sum(shifted, axis=1)


def _keys_of_sparse(rows: Any) -> np.ndarray:
    bits, has_entries = _bits(rows.data), np.diff(rows.indptr) > 0
    starts, keys = rows.indptr[:-1][has_entries], np.zeros(rows.shape[0], dtype=np.int64)
    if len(starts):
        largest = np.maximum.reduceat(bits & _EXPONENT, starts)
        largest = np.repeat(largest, np.diff(rows.indptr)[has_entries])
        bits = np.where(bits == 0, bits, bits - largest + _ONE)
        factors = _column_factors(rows.shape[1], np, {})
        keys[has_entries] = np.add.reduceat(bits * factors[rows.indices], starts)
    return keys


def _bits(values: Array) -> Array:
    """Bit patterns of values in single precision, as 64-bit integers; 0 for 0.0 and -0.0."""
    if on_host(values):
        with np.errstate(over="ignore", under="ignore"):
            return (values.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    import torch

    return (values.to(torch.float32) + 0.0).view(torch.int32).to(torch.int64)


def _column_factors(d: int, xp: Any, device: dict[str, Any]) -> Array:
    """A pseudo-random odd factor for each column."""
    return _mix(xp.arange(1, d + 1, dtype=xp.int64, **device) * _INCREMENT) | 1


def _mix(keys: Array) -> Array:
    """SplitMix64's mixing function for 64-bit integers; the products overflow on purpose.

    The masks turn shifts of signed integers into logical shifts.
    """
    with np.errstate(over="ignore"):
        keys = (keys ^ ((keys >> 30) & ((1 << 34) - 1))) * _MULTIPLIERS[0]
        keys = (keys ^ ((keys >> 27) & ((1 << 37) - 1))) * _MULTIPLIERS[1]
    return keys ^ ((keys >> 31) & ((1 << 33) - 1))
