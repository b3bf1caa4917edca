"""Inner loops in C for NumPy arrays; nothing else in Mercat is compiled.

Each function has a reference implementation in NumPy, which is used if there is no library (it was not built
at installation, or the variable MERCAT_NATIVE is 0) and with which tests compare it:

    if kernels.available():
        return kernels.attraction(...)

The library does not depend on Python. It is loaded at first use by `ctypes`, which releases the global
interpreter lock during calls.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import row_product

LANES = 16  # width of the widest instructions, in numbers
_PRODUCTS = 1 << 19  # numbers to select from at a time, which fit the cache of a core
_CACHE_LINE = 64  # bytes
MOST_APICES, _APICES_PER_BLOCK = 2048, 32  # see loss.c
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
    return _Library(handle, list(_build.LEVELS)[handle.mercat_cpu_level()], "")


def available() -> bool:
    """Whether the compiled kernels are used instead of NumPy."""
    return _wanted and _load().handle is not None


def describe() -> str:
    """Describe whether compiled kernels or NumPy are used."""
    if not _wanted:
        return "NumPy, as MERCAT_NATIVE is 0"
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


def _exactly(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The array in C order and of this type, copied if needed."""
    return np.ascontiguousarray(array, dtype=dtype)


# ------------------------------------------------------------------ the descent of detail


def attraction(P: Any, Y: np.ndarray, bandwidth: float, n_threads: int) -> np.ndarray:
    """See `_detail.descent.attraction` (n x 3)."""
    force = np.empty(Y.shape, dtype=np.float32)
    ends, columns = _exactly(P.indptr, np.int64), _exactly(P.indices, np.int32)
    arrays = ends, columns, _exactly(P.data, np.float32), _exactly(Y, np.float32)
    _load()("attraction", n_threads, len(Y), *arrays, 1 / bandwidth**2, force)
    return force


def move(
    Y: np.ndarray, velocity: np.ndarray, forces: Sequence[np.ndarray], factors: Sequence[float],
    momentum: float, factor: float, longest: float, n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """See `_detail.descent._moved`: positions and velocities (n x 3) after a step.

    `forces` are the arrays and `factors` the factors of `_detail.descent.Forces`, in order.
    """
    velocity, moved = velocity.astype(np.float32, order="C"), np.empty(Y.shape, dtype=np.float32)
    arrays = (_exactly(a, np.float32) for a in (Y, *forces))
    settings = (float(number) for number in (*factors, momentum, factor, longest))
    _load()("move", n_threads, len(Y), *arrays, *settings, velocity, moved)
    return moved, velocity


def charge(
    Y: np.ndarray, n_rows: int, n_columns: int, block: int, grids: np.ndarray, n_threads: int
) -> np.ndarray:
    """See `_detail.repulsion.Kernel._charge`: the sum of the grids of blocks of points, flattened."""
    result = np.empty(grids.shape[1], dtype=np.float32)
    Y = _exactly(Y, np.float32)
    _load()("charge", n_threads, len(Y), Y, n_rows, n_columns, block, grids, result)
    return result


def read_field(
    field: np.ndarray, Y: np.ndarray, n_rows: int, n_columns: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.repulsion.Field.at`: value (n) and gradient (n x 3) at positions Y."""
    value, slope = np.empty(len(Y), dtype=np.float32), np.empty((len(Y), 3), dtype=np.float32)
    Y, field = _exactly(Y, np.float32), _exactly(field, np.float32)
    _load()("read_field", n_threads, len(Y), Y, n_rows, n_columns, field, value, slope)
    return value, slope


def fill_table(
    rho: np.ndarray, power: np.ndarray, alias: np.ndarray, table: Any, rows: slice
) -> None:
    """Fill a `_detail.repulsion.Table` at some latitudes; see repulsion.c."""
    n_frequencies, half = table.low.shape
    _load()(
        "fill_table", rows.start, rows.stop, half, n_frequencies, rho, power, alias,
        table.low, table.high, table.offset, table.values,
    )  # fmt: skip


def filter_spectrum(table: Any, spectrum: np.ndarray, n_threads: int) -> None:
    """Convert the spectrum of a charge to that of its field, in place; see repulsion.c."""
    n_frequencies, half = table.low.shape
    n_groups = len(table.starts) - 1
    assert table.scratch.size >= n_groups * (2 * LANES + 4) * 2 * half, table.scratch.size
    _load()(
        "filter", n_threads, n_groups, table.starts, half, n_frequencies, table.low, table.high,
        table.offset, table.values, table.factors, table.scale, spectrum.view(np.float32),
        table.scratch,
    )  # fmt: skip


class Anchors(NamedTuple):
    """Anchors of a descent in the layout of descent.c."""

    legs: np.ndarray  # (14, m) positions, frames and sums
    X: np.ndarray  # (m, r), padded with zeros
    Xt: np.ndarray  # (r, m), padded with zeros


def anchors_of(X: np.ndarray, Y: np.ndarray, frame: np.ndarray, sums: Any) -> Anchors:
    """Anchors X (m x r) at Y (m x 3) with their tangent frames (2 x m x 3) and their sums."""
    legs = [*Y.T, *frame[0].T, *frame[1].T, *sums.S, sums.S12, *sums.t]
    return Anchors(np.stack(legs).astype(np.float32), *_by_rows_and_columns(X))


def angle_forces(
    X: np.ndarray, Y: np.ndarray, near: np.ndarray, K: np.ndarray, anchors: Anchors,
    alpha: float, beta: float, softening: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Forces of angles on points at Y (b x 3), summed over triples; see `_detail.terms.AngleTerm`.

    Also returns the sums of squared inverse sines (b) and the moments (3 x b).
    """
    (b, m), r, (padded, width) = near.shape, X.shape[1], anchors.X.shape
    scratch = aligned_zeros((14 * padded + 4 * width,))
    found = tuple(np.empty(shape, dtype=np.float32) for shape in ((b, 3), (b,), (3, b)))
    arrays = (_exactly(a, np.float32) for a in (X, Y, near, K))
    settings = float(alpha), float(beta), float(softening)
    _load()("angle_forces", b, m, r, width, padded, *arrays, *anchors, *settings, scratch, *found)
    return found[0], found[1], found[2]


def _by_rows_and_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X (m x r) and its transpose, padded with zeros to multiples of `LANES`."""
    m, r = X.shape
    shape = -(-m // LANES) * LANES, -(-r // LANES) * LANES
    by_rows, by_columns = aligned_zeros(shape), aligned_zeros(shape[::-1])
    by_rows[:m, :r] = X
    by_columns[:r, :m] = X.T
    return by_rows, by_columns


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros from the beginning of a cache line on, where instructions read them faster."""
    size, width = math.prod(shape), np.dtype(dtype).itemsize
    buffer = np.zeros(size + _CACHE_LINE // width, dtype=dtype)
    start = -_address(buffer) % _CACHE_LINE // width
    return buffer[start : start + size].reshape(shape)


# ------------------------------------------------------------------ neighbours


def smallest(
    left: np.ndarray, right: np.ndarray, k: int, itself: np.ndarray | None
) -> np.ndarray | None:
    """Columns (q x k) of the k smallest entries of each row of left @ right.T, in any order.

    The column `itself` of each row is left out. None if a row has fewer than k finite entries.
    """
    q, n = len(left), len(right)
    if itself is None:
        itself = np.full(q, -1)
    itself = _exactly(itself, np.int64)
    values = np.full((q, k), np.inf, dtype=np.float32)
    indices = np.full((q, k), -1, dtype=np.int64)
    for start in range(0, n, max(LANES, _PRODUCTS // q)):
        part = right[start : start + max(LANES, _PRODUCTS // q)]
        D = _exactly(row_product(left, part.T), np.float32)
        _load()("smallest", q, len(part), D, start, itself, k, values, indices)
    return None if (indices[:, 0] < 0).any() else indices


def in_order(
    X: np.ndarray, queries: np.ndarray, found: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.neighbors.in_order`."""
    found = found.astype(np.int64, order="C")
    distances = np.empty(found.shape, dtype=np.float32)
    X, queries = _exactly(X, np.float32), _exactly(queries, np.float32)
    _load()("in_order", *found.shape, X.shape[1], X, queries, found, distances)
    return found, distances


# ------------------------------------------------------------------ angles at a block of apices


def take(*arrays: Any) -> bool:
    """Whether the kernels are used for these arrays: NumPy arrays, all of float32 or all of float64."""
    first = arrays[0]
    return (
        isinstance(first, np.ndarray)
        and first.dtype in (np.float32, np.float64)
        and all(isinstance(a, np.ndarray) and a.dtype == first.dtype for a in arrays)
        and available()
    )


def inverse_distances(
    X_apex: np.ndarray, X_legs: np.ndarray, negligible: float, threshold: float
) -> np.ndarray:
    """See `_math.angles.inverse_distances`, for legs (m x r) shared by the apices (b x r)."""
    dtype = X_apex.dtype
    X_apex, X_legs = _exactly(X_apex, dtype), _exactly(X_legs, dtype)
    (b, r), m = X_apex.shape, len(X_legs)
    result = np.asarray(row_product(X_apex, X_legs.T))
    norms = [np.vecdot(X, X) for X in (X_apex, X_legs)]
    _load()(
        f"inverse_distances_{dtype}",
        b, m, r, X_apex, X_legs, r, *norms, negligible, threshold, result,
    )  # fmt: skip
    return result


def bearings(
    Y_apex: np.ndarray,
    Y_legs: np.ndarray,
    mask: np.ndarray | None,
    softening: float,
    inverse_distance: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Directions from apices (b x 3) to shared legs (m x 3), with their sums.

    B, inverse_sine and frame are those of `_math.angles.bearings`; S, S12 and t those of `apex_sums`. The
    last result are the weights of the sum M.
    """
    dtype, b, m = Y_apex.dtype, len(Y_apex), len(Y_legs)
    ones = np.ones(m, dtype=dtype)
    present = ones if mask is None else _exactly(mask, dtype)
    near = ones if inverse_distance is None else _exactly(inverse_distance, dtype)
    shapes = (2, b, m), (b, m), (2, b, 3), (2, b), (b,), (2, b), (2, b, m)
    found = tuple(np.empty(shape, dtype=dtype) for shape in shapes)
    _load()(
        f"bearings_{dtype}",
        b, m, _exactly(Y_apex, dtype), _exactly(Y_legs.T, dtype), present, _stride(present),
        softening, near, _stride(near), *found,
    )  # fmt: skip
    return found


def _stride(array: np.ndarray) -> int:
    """Stride between rows; 0 if all share one row."""
    return array.shape[1] if array.ndim == 2 else 0


def turning_forces(
    Y_apex: np.ndarray,
    Y_legs: np.ndarray,
    inverse_distance: np.ndarray,
    bearings: tuple[np.ndarray, ...],
    sums: tuple[np.ndarray, ...],
    products: np.ndarray,
    line: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """See `_math.angles.apex_gradient`: forces on the apices (b x 3) and on the legs (m x 3).

    `bearings` are B, inverse_sine and frame; `sums` are S, S12 and t; `products` (2 x b x m) are those of M
    with the differences between legs and apices in the data.
    """
    dtype = Y_apex.dtype
    b, m = inverse_distance.shape
    to_apices, to_legs = np.empty((b, 3), dtype=dtype), np.zeros((3, m), dtype=dtype)
    arrays = (_exactly(a, dtype) for a in (inverse_distance, *bearings, *sums, products))
    _load()(
        f"turning_forces_{dtype}",
        b, m, _exactly(Y_apex, dtype), _exactly(Y_legs.T, dtype), *arrays,
        float(line[0]), float(line[1]), to_apices, to_legs,
    )  # fmt: skip
    return to_apices, to_legs.T


def data_moments(
    X_apex: np.ndarray, X_legs: np.ndarray, inverse_distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See `_math.angles.data_moments`, for legs (m x at least r) shared by the apices (b x r)."""
    dtype = X_apex.dtype
    (b, r), (m, stride) = X_apex.shape, X_legs.shape
    width = -(-min(m, r) // LANES) * LANES
    size = -(-max(m, r) // 4) * 4 * width + width * width + r
    found = tuple(np.empty(b, dtype=dtype) for _ in range(3))
    _load()(
        f"data_moments_{dtype}",
        b, m, r, _exactly(X_apex, dtype), _exactly(X_legs, dtype), stride,
        _exactly(inverse_distance, dtype), width, aligned_zeros((size,), dtype), *found,
    )  # fmt: skip
    return found[0], found[1], found[2]


class Apices(NamedTuple):
    """Points that are apices and legs of each other, in the layout of loss.c."""

    X: np.ndarray  # (n, r), padded with zeros
    Xt: np.ndarray  # (r, n), padded with zeros
    inverse_distance: np.ndarray  # (n, n)
    n_components: int


def apices_of(X: np.ndarray, inverse_distance: np.ndarray) -> Apices:
    """Points X (n x r), at most `MOST_APICES`, and their inverse distances (n x n)."""
    assert len(X) <= MOST_APICES, len(X)  # C has room for as many
    near = _exactly(inverse_distance, np.float32)
    return Apices(*_by_rows_and_columns(X), near, X.shape[1])


def loss_sums(
    apices: Apices, Y: np.ndarray, softening: float, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`map_moments` (3 x n) at Y (n x 3), and what `loss_forces` takes: positions and sums."""
    n, (padded, width) = len(Y), apices.X.shape
    positions = aligned_zeros((3, padded))
    positions[:, :n] = Y.T
    M, sums, moments = (aligned_zeros(shape) for shape in ((n, 2, width), (n, 7), (3, n)))
    _load()(
        "loss_sums", n_threads, n, apices.n_components, width, padded, apices.X,
        apices.inverse_distance, positions, softening, M, sums, moments,
    )  # fmt: skip
    return moments, positions, M, sums


def loss_forces(
    apices: Apices, found: tuple[np.ndarray, ...], softening: float, line: tuple[float, float],
    n_threads: int,
) -> np.ndarray:  # fmt: skip
    """Sum of `_math.angles.apex_gradient` over all points (n x 3), given what `loss_sums` found."""
    n, (padded, width) = len(apices.inverse_distance), apices.X.shape
    to_apices = np.empty((n, 3), dtype=np.float32)
    to_legs = np.empty((-(-n // _APICES_PER_BLOCK), 3, padded), dtype=np.float32)
    _load()(
        "loss_forces", n_threads, n, apices.n_components, width, padded, apices.Xt,
        apices.inverse_distance, found[0], softening, float(line[0]), float(line[1]), *found[1:],
        to_apices, to_legs,
    )  # fmt: skip
    return np.asarray(to_apices + to_legs[:, :, :n].sum(axis=0, dtype=np.float64).T)


# ------------------------------------------------------------------ distances


def arc_residuals(
    inverse_distance: np.ndarray,
    Y: np.ndarray,
    others: np.ndarray,
    p: float,
    q: float,
    least_sine: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See `_math.distances.DistanceTerm.residuals`."""
    b, m = inverse_distance.shape
    found = tuple(np.empty(shape, dtype=np.float32) for shape in ((b,), (b, 3), (5, b)))
    arrays = (_exactly(a, np.float32) for a in (inverse_distance, Y, others.T))
    _load()("arc_residuals", b, m, *arrays, float(p), float(q), least_sine, *found)
    return found[0], found[1], found[2]


# ------------------------------------------------------------------ placement


class Landmarks(NamedTuple):
    """A `_solve.placement.LandmarkPlacer` in the layout of placement.c."""

    legs: np.ndarray  # (9, L) frames and sigmas
    Y_apex: np.ndarray  # (3, m)
    X_apex: np.ndarray  # (m, r), padded with zeros
    Xt_apex: np.ndarray  # (r, m), padded with zeros
    candidates: np.ndarray  # (3, G)


def landmarks_of(
    frame: np.ndarray, sigma: np.ndarray, sigma12: np.ndarray, X: np.ndarray, Y: np.ndarray,
    candidates: np.ndarray,
) -> Landmarks:  # fmt: skip
    """Pack frames (2 x L x 3) and sigmas (2 x L, L) of landmarks, and X and Y of the legs of an apex."""
    legs = [*frame[0].T, *frame[1].T, *sigma, sigma12]
    return Landmarks(
        np.stack(legs).astype(np.float32),
        _exactly(Y.T, np.float32),
        *_by_rows_and_columns(X),
        _exactly(candidates.T, np.float32),
    )


def _settings(numbers: tuple[float, ...], count: int) -> np.ndarray:
    assert len(numbers) == count, numbers  # C reads as many
    return np.array(numbers, dtype=np.float32)


def place(
    landmarks: Landmarks, X: np.ndarray, K: np.ndarray, near: np.ndarray, E: np.ndarray,
    settings: tuple[float, ...], steps: tuple[int, int, int],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Positions (b x 3) of points X (b x r), and whether they have settled; see placement.c."""
    (b, r), m, L = X.shape, near.shape[1], K.shape[2]
    padded, width = landmarks.X_apex.shape
    scratch = aligned_zeros((7 * padded + 2 * width,))
    Y, settled = np.empty((b, 3), dtype=np.float32), np.empty(b, dtype=np.int8)
    _load()(
        "place",
        b, L, m, r, width, padded, E.shape[1], *steps, _settings(settings, 14),
        *landmarks, *(_exactly(a, np.float32) for a in (X, K, near)), E, scratch, Y, settled,
    )  # fmt: skip
    return Y, settled.astype(bool)


def place_from(
    landmarks: Landmarks, X: np.ndarray, K: np.ndarray, near: np.ndarray, starts: np.ndarray,
    settings: tuple[float, ...], steps: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Positions (b x 3) of points X (b x r) from starts (b x n x 3), and their energies; see placement.c."""
    (b, r), m, L = X.shape, near.shape[1], K.shape[2]
    padded, width = landmarks.X_apex.shape
    scratch = aligned_zeros((7 * padded + 2 * width,))
    Y, E = np.empty((b, 3), dtype=np.float32), np.empty(b, dtype=np.float32)
    _load()(
        "place_from",
        b, L, m, r, width, padded, starts.shape[1], steps, _settings(settings, 12),
        *landmarks[:4], *(_exactly(a, np.float32) for a in (X, K, near, starts)), scratch, Y, E,
    )  # fmt: skip
    return Y, E
