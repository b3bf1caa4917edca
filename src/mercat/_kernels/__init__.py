"""The inner loops in C, for NumPy arrays in memory; nothing else of Mercat is compiled.

Each function stands beside a definition in NumPy, which is what runs where there is no library (none was
built at installation, or the variable MERCAT_NATIVE is 0) and what tests compare with:

    if kernels.available():
        return kernels.attraction(...)

The library knows nothing of Python. It is loaded at first use by `ctypes`, which lets other threads run
meanwhile.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_wanted = os.environ.get("MERCAT_NATIVE", "1") != "0"


class _Library(NamedTuple):
    """The kernels of one level of instructions, or why there are none."""

    handle: Any
    level: str
    reason: str

    def __call__(self, name: str, *arguments: Any) -> None:
        """Run a kernel. Arrays go as pointers, integers as int64, floats as double: as C declares them."""
        function: Callable[..., None] = getattr(self.handle, f"mercat_{name}_{self.level}")
        function(*(_c_value(argument) for argument in arguments))


def _c_value(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        assert argument.flags.c_contiguous
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int64(argument)


@functools.cache
def _load() -> _Library:
    """Load the library, after building it where this is a source tree whose source has changed."""
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
    return _Library(handle, list(_build.LEVELS)[handle.mercat_cpu_level()], "")


def available() -> bool:
    """Whether the kernels run, and not NumPy."""
    return _wanted and _load().handle is not None


def describe() -> str:
    """Which path runs, in words."""
    if not _wanted:
        return "NumPy, as MERCAT_NATIVE is 0"
    found = _load()
    return f"NumPy: {found.reason}" if found.handle is None else f"compiled, for {found.level}"


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """Within, kernels run or do not, in all threads: for tests and benchmarks."""
    global _wanted
    before, _wanted = _wanted, on
    try:
        yield
    finally:
        _wanted = before


def _exactly(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array as C takes it: as it is, or a copy."""
    return np.ascontiguousarray(array, dtype=dtype)


# ------------------------------------------------------------------ the descent of detail


def attraction(P: Any, Y: np.ndarray, bandwidth: float, rows: slice) -> np.ndarray:
    """See `_detail.descent.attraction`: of some rows of the sparse matrix P (b x 3)."""
    ends = P.indptr[rows.start : rows.stop + 1].astype(np.int64)
    entries = slice(int(ends[0]), int(ends[-1]))
    columns, weights = (
        _exactly(P.indices[entries], np.int32),
        _exactly(P.data[entries], np.float32),
    )
    force = np.empty((len(ends) - 1, 3), dtype=np.float32)
    Y = _exactly(Y, np.float32)
    square = 1 / bandwidth**2
    ends -= ends[0]
    _load()("attraction", len(force), ends, columns, weights, Y, rows.start, square, force)
    return force


def spread(Y: np.ndarray, n_rows: int, n_columns: int, size: int) -> np.ndarray:
    """See `_detail.repulsion._Stencil.spread`: a unit charge for each point on a grid, flattened."""
    grid = np.zeros(size)
    _load()("spread", len(Y), _exactly(Y, np.float32), n_rows, n_columns, grid)
    return grid


def read_field(
    field: np.ndarray, Y: np.ndarray, n_rows: int, n_columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.repulsion.Field.at`: value (b) and gradient (b x 3) at places Y."""
    value, slope = np.empty(len(Y), dtype=np.float32), np.empty((len(Y), 3), dtype=np.float32)
    Y, field = _exactly(Y, np.float32), _exactly(field, np.float32)
    _load()("read_field", len(Y), Y, n_rows, n_columns, field, value, slope)
    return value, slope
