"""The BLAS at hand: its threads, and what it can promise of single rows."""

from __future__ import annotations

import functools

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

ALONE = (
    0.01  # radians: where a row goes alone and in a batch, if the BLAS does not treat rows alike
)


def blas_threads() -> set[int]:
    """The numbers of threads that its libraries may use."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@functools.cache
def rows_alike() -> bool:
    """Whether equal rows of a product get equal bits. (Not so by OpenBLAS for AVX2, in single precision.)"""
    rng = np.random.default_rng(0)
    equal = np.repeat(rng.normal(size=(1, 50)), 512, axis=0).astype(np.float32)
    with threadpool_limits(limits=1):
        product = equal @ rng.normal(size=(50, 128)).astype(np.float32)
    return bool((product == product[0]).all())


def apart(Y1: np.ndarray, Y2: np.ndarray) -> float:
    """The largest distance between the same rows."""
    return float(np.linalg.norm(Y1.astype(np.float64) - Y2, axis=1).max())


def most_apart() -> float:
    """How far apart the same row may go alone and in a batch."""
    return 0.0 if rows_alike() else ALONE
