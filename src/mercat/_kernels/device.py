"""Inner loops on a GPU in Triton (`_triton.py`), for tensors in single precision.

Each function has a reference implementation in torch, which is used on other devices, without Triton, or if
the variable MERCAT_TRITON is 0, and with which tests compare it:

    if device.take(Y):
        return device.attraction(...)

Triton compiles a kernel once for a kind of GPU and keeps the result on disk (TRITON_CACHE_DIR, by default
~/.triton/cache). `prepare` has it compile those that a fit will call, all at once and beside other work.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .._data.arrays import is_torch

UNIT = 2.0**32  # charges are counted in integers of this unit
_ROWS = 16  # points per program, for kernels with a tile of points and landmarks
_BLOCK = 256  # points per program, for others
_MOST_LEGS = 256  # landmarks in one tile
_wanted = os.environ.get("MERCAT_TRITON", "1") != "0"
_interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # by Triton itself, in memory: for tests


@functools.cache
def _kernels() -> Any:
    """The module of kernels, or None if Triton is not installed."""
    try:
        from . import _triton
    except ImportError:
        return None
    return _triton


def take(*tensors: Any) -> bool:
    """Whether the kernels are used for these tensors: in single precision, on a GPU."""
    return (
        _wanted
        and all(is_torch(t) and str(t.dtype) == "torch.float32" for t in tensors)
        and (_interpreted or all(t.is_cuda for t in tensors))
        and _kernels() is not None
    )


# What `prepare` compiles, by kernel: pointers to numbers (p; i and l of 32 and 64 bits), integers and floats.
_PLACING = {
    "inverse_distances": [("pnnpnfp", {"ROWS": 16, "LEGS": 64})],
    "weights": [("ppnpnfp", {"ROWS": 16, "LEGS": 64})],
    "placement_energy": [
        (
            "pnppnppppn" + "f" * 8 + "pp",
            {"ROWS": 8, "LEGS": 64, "APEX_LEGS": 128, "GRADIENT": gradient},
        )
        for gradient in (True, False)
    ],
}
_DESCENT = {
    "attraction": [("lippnfp", {"ROWS": 16, "WIDTH": 32})],
    "spread": [("ppnnfl", {"BLOCK": 256})],
    "read_field": [("ppppnnfffpp", {"BLOCK": 256})],
    "move": [("ppppnfffpp", {"BLOCK": 256})],
    "angle_force": [("ppppnppnfffppp", {"ROWS": 16, "LEGS": 64})],
    "arc_residuals": [("ppnpnfffppp", {"ROWS": 16, "LEGS": 64})],
}
_coming: dict[str, list[Future[None]]] = {}


def prepare(device: Any, *, detail: bool) -> None:
    """Start compiling the kernels of a fit on a torch device, unless they are compiled already."""
    if not _wanted or _interpreted or getattr(device, "type", "") != "cuda" or _kernels() is None:
        return
    wanted = {**_PLACING, **(_DESCENT if detail else {})}
    wanted = {name: variants for name, variants in wanted.items() if name not in _coming}
    if not wanted:
        return
    pool = ThreadPoolExecutor(8, thread_name_prefix="mercat-compile")
    for name, variants in wanted.items():
        _coming[name] = [pool.submit(_compile, device, name, *variant) for variant in variants]
    pool.shutdown(wait=False)


def _compile(device: Any, name: str, signature: str, sizes: dict[str, Any]) -> None:
    import torch

    kinds = {"p": torch.float32, "i": torch.int32, "l": torch.int64, "n": 100, "f": 0.5}
    with torch.cuda.device(device):
        kernel = getattr(_kernels(), name)
        compiled = kernel.warmup(*(kinds[s] for s in signature), grid=(1,), **sizes)
        if hasattr(compiled, "_init_handles"):
            compiled._init_handles()  # also compiles what calls it


def _programs(n: int, size: int) -> tuple[int, ...]:
    return (-(-n // size),)


def _run(kernel: str, grid: tuple[int, ...], device: Any, *arguments: Any, **sizes: Any) -> None:
    if not grid[0]:
        return
    for future in _coming.get(kernel, ()):
        future.exception()  # wait; errors are raised by the call of the kernel
    if device.type == "cuda":
        import torch

        with torch.cuda.device(device):
            getattr(_kernels(), kernel)[grid](*arguments, **sizes)
    else:
        getattr(_kernels(), kernel)[grid](*arguments, **sizes)


def attraction(P: Any, Y: Any, bandwidth: float) -> Any:
    """See `_detail.descent.attraction`."""
    Y = Y.contiguous()
    force = Y.new_empty(Y.shape)
    _run(
        "attraction", _programs(len(Y), _ROWS), Y.device,
        P.indptr, P.indices, P.data, Y, len(Y), 1 / bandwidth**2, force, ROWS=_ROWS, WIDTH=32,
    )  # fmt: skip
    return force


def spread(row: Any, column: Any, n_columns: int, size: int) -> Any:
    """Spread a unit charge for each position on a grid, flattened; see `_detail.repulsion`."""
    import torch

    charge = torch.zeros(size, dtype=torch.int64, device=row.device)
    _run(
        "spread", _programs(len(row), _BLOCK), row.device,
        row, column, len(row), n_columns, UNIT, charge, BLOCK=_BLOCK,
    )  # fmt: skip
    return charge.double() / UNIT


def read_field(
    field: Any, Y: Any, row: Any, column: Any, n_columns: int, scales: tuple[float, float, float]
) -> tuple[Any, Any]:
    """Value (n) and gradient (n x 3) of a flattened field at points Y; see `_detail.repulsion.Field`.

    `scales` are the rows and columns of the grid per radian, and the smallest cosine of a latitude.
    """
    value, slope = Y.new_empty(len(Y)), Y.new_empty((len(Y), 3))
    _run(
        "read_field", _programs(len(Y), _BLOCK), Y.device,
        field, Y.contiguous(), row, column, len(Y), n_columns, *scales, value, slope, BLOCK=_BLOCK,
    )  # fmt: skip
    return value, slope


def move(
    Y: Any, velocity: Any, force: Any, curvature: Any, momentum: float, factor: float, longest: float
) -> tuple[Any, Any]:  # fmt: skip
    """See `_detail.descent._moved`: positions and velocities (n x 3) after a step."""
    arrays = [a.contiguous() for a in (Y, velocity, force, curvature)]
    moved, faster = Y.new_empty(Y.shape), Y.new_empty(Y.shape)
    _run(
        "move", _programs(len(Y), _BLOCK), Y.device,
        *arrays, len(Y), momentum, factor, longest, moved, faster, BLOCK=_BLOCK,
    )  # fmt: skip
    return moved, faster


def takes_legs(m: int) -> bool:
    """Whether m landmarks fit into a tile."""
    return m <= _MOST_LEGS


def _tile(m: int) -> int:
    """Number of landmarks per tile; one kernel is compiled for each power of two."""
    return max(64, 1 << (m - 1).bit_length())


def _rows(m: int) -> int:
    """Number of points per tile with m landmarks."""
    return max(1, 1024 // _tile(m))


def inverse_distances(X: Any, legs: Any, negligible: float) -> Any:
    """See `_math.angles.inverse_distances`, for legs (m x r) shared by all points."""
    X = X.contiguous()
    (n, r), m = X.shape, len(legs)
    near = X.new_empty((n, m))
    grid = (*_programs(n, _ROWS), -(-m // 64))
    _run(
        "inverse_distances", grid, X.device,
        X, n, r, legs.T.contiguous(), m, negligible, near, ROWS=_ROWS, LEGS=64,
    )  # fmt: skip
    return near


def arc_residuals(
    near: Any, Y: Any, others: Any, line: tuple[float, float], least_sine: float
) -> tuple[Any, Any, Any]:
    """See `_math.distances.DistanceTerm.residuals`."""
    n, m = near.shape
    squares, gradient, sums = Y.new_empty(n), Y.new_empty((n, 3)), Y.new_empty((5, n))
    rows = _rows(m)
    _run(
        "arc_residuals", _programs(n, rows), Y.device,
        near.contiguous(), Y.contiguous(), n, others.T.contiguous(), m,
        *line, least_sine, squares, gradient, sums, ROWS=rows, LEGS=_tile(m),
    )  # fmt: skip
    return squares, gradient, sums


def weights(Y: Any, near: Any, others: Any, softening: float) -> Any:
    """Directions from points at Y to others (m x 3), divided by distances in the data (2 x n x m)."""
    n, m = near.shape
    found = Y.new_empty((2, n, m))
    _run(
        "weights", (*_programs(n, _ROWS), -(-m // 64)), Y.device,
        Y.contiguous(), near.contiguous(), n, others.T.contiguous(), m, softening, found,
        ROWS=_ROWS, LEGS=64,
    )  # fmt: skip
    return found


def angle_force(
    Y: Any, near: Any, products: Any, K: Any, anchors: Any, frame: Any, line: tuple[float, float]
) -> tuple[Any, Any, Any]:
    """Forces of angles on points at Y (n x 3), summed over triples; see `_detail.terms.AngleTerm`.

    Also returns the sums of squared inverse sines (n) and the moments (3 x n), the last without |M|^2.
    """
    import torch

    (n, m), s = near.shape, anchors.sums
    legs = torch.cat([frame.mT.reshape(6, m), s.S, s.S12[None], s.t]).contiguous()
    force, steepness, moments = Y.new_empty((n, 3)), Y.new_empty(n), Y.new_empty((3, n))
    rows = _rows(m)
    _run(
        "angle_force", _programs(n, rows), Y.device,
        *(a.contiguous() for a in (Y, near, products, K)), n, anchors.Y.T.contiguous(), legs, m,
        float(anchors.softening), *line, force, steepness, moments, ROWS=rows, LEGS=_tile(m),
    )  # fmt: skip
    return force, steepness, moments


def placement_energy(
    Y: Any, K: Any, legs: Any, others: Any, near: Any, products: Any, ab: Any,
    settings: tuple[float, ...],
) -> tuple[Any, Any]:  # fmt: skip
    """Energy (n) of points at Y and its tangent gradient (n x 3); see `_solve.placement._Energy`.

    `legs` (9 x L) are frames, sigma and sigma12 of the landmarks; `others` (3 x m) are the places of the legs
    of an apex, `near` inverse distances to them (n x m), `products` those of the sums M at an apex with what
    leads to its legs, `ab` (n) their squared lengths. Without products there is no gradient, and the energy
    is that without a leg's.
    """
    n, m = near.shape
    gradient = products is not None
    energy = Y.new_empty(n)
    slope = Y.new_empty((n, 3)) if gradient else energy
    rows = _rows(m)
    _run(
        "placement_energy", _programs(n, rows), Y.device,
        Y.contiguous(), n, K, legs, legs.shape[1], others, near,
        products.contiguous() if gradient else near, ab, m,
        *(float(v) for v in settings), energy, slope,
        ROWS=rows, LEGS=64, APEX_LEGS=_tile(m), GRADIENT=gradient,
    )  # fmt: skip
    return energy, slope
