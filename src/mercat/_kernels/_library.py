"""Load the compiled library, call its kernels, and prepare arrays for them.

It does not use Python's C API. It is loaded at first use by `ctypes`, which releases the global interpreter
lock during calls.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LANES = 16  # float32 values in the widest SIMD register
_CACHE_LINE = 64  # bytes
_wanted = os.environ.get("MERCAT_NATIVE", "1") != "0"


class _Library(NamedTuple):
    """The kernels for one instruction set, or the reason why there are none."""

    handle: Any
    level: str
    reason: str

    def __call__(self, name: str, *arguments: Any) -> None:
        """Run a kernel. Arrays are passed as pointers, integers as int64, floats as double."""
        function: Any = getattr(self.handle, f"mercat_{name}_{self.level}")
        if function.argtypes is None:
            # Types of the first call; C does not check their number and order.
            function.restype = None
            function.argtypes = [_C_TYPES[type(argument)] for argument in arguments]
        function(*(_address(a) if isinstance(a, np.ndarray) else a for a in arguments))


_C_TYPES = {np.ndarray: ctypes.c_void_p, int: ctypes.c_int64, float: ctypes.c_double}


def _address(array: np.ndarray) -> int:
    assert array.flags.c_contiguous
    return int(array.__array_interface__["data"][0])


@functools.cache
def _load() -> _Library:
    """Load the library; in a source tree, build it first if the source has changed."""
    from . import _build

    path = _build.library()
    if not path.exists():
        if not (Path(__file__).parents[3] / "pyproject.toml").exists():
            return _Library(None, "", "not compiled when Mercat was installed")
        try:
            _build.build(path)
        except _build.CannotBuild as error:
            return _Library(None, "", f"not compiled: {error}")
        for other in path.parent.glob(f"kernels-*{path.suffix}"):
            if other != path:
                other.unlink(missing_ok=True)
    try:
        handle = ctypes.CDLL(str(path))
    except OSError as error:
        return _Library(None, "", f"cannot be loaded: {error}")
    # cpu.c returns an index into LEVELS.
    return _Library(handle, list(_build.LEVELS)[handle.mercat_cpu_level()], "")


def run(name: str, *arguments: Any) -> None:
    """Run a kernel; see `_Library`."""
    _load()(name, *arguments)


def available() -> bool:
    """Whether the compiled kernels are used instead of NumPy."""
    return _wanted and _load().handle is not None


def describe() -> str:
    """Describe whether compiled kernels or NumPy are used."""
    if not _wanted:
        return "NumPy, because MERCAT_NATIVE is 0"
    found = _load()
    return f"NumPy: {found.reason}" if found.handle is None else f"compiled, for {found.level}"


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """Context that turns the kernels on or off in all threads, for tests and benchmarks."""
    global _wanted
    before, _wanted = _wanted, on
    try:
        yield
    finally:
        _wanted = before


def supports(*arrays: Any) -> bool:
    """Whether the kernels are used for these arrays: NumPy arrays, all of float32 or all of float64."""
    first = arrays[0]
    return (
        isinstance(first, np.ndarray)
        and first.dtype in (np.float32, np.float64)
        and all(isinstance(a, np.ndarray) and a.dtype == first.dtype for a in arrays)
        and available()
    )


def contiguous(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array in C order with this type, copied if needed."""
    return np.ascontiguousarray(array, dtype=dtype)


def by_rows_and_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X (m x r) and its transpose, both `padded`."""
    return padded(X), padded(X.T)


def padded(X: np.ndarray) -> np.ndarray:
    """X (m x r) in single precision, padded with zeros to multiples of `LANES`."""
    m, r = X.shape
    result = aligned_zeros((round_up(m), round_up(r)))
    result[:m, :r] = X
    return result


def round_up(size: int, step: int = LANES) -> int:
    """The smallest multiple of `step` that is at least `size`."""
    return -(-size // step) * step


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros aligned to a cache line, for faster SIMD access."""
    size, width = math.prod(shape), np.dtype(dtype).itemsize
    buffer = np.zeros(size + _CACHE_LINE // width, dtype=dtype)
    start = -_address(buffer) % _CACHE_LINE // width
    return buffer[start : start + size].reshape(shape)
