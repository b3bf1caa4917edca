"""Inner loops on a GPU in Triton (`_triton`), for tensors in single precision.

Each function has a reference implementation in torch, which is used on other devices, without Triton, if the
environment variable MERCAT_TRITON is 0, and in tests:

    if device.supports(Y):
        return device.attraction(...)

`inv_d` are inverse distances in the data, 0 for points that coincide.

Triton compiles a kernel once per type of GPU and keeps the result on disk (in TRITON_CACHE_DIR, by default
~/.triton/cache). `prepare` starts compiling all kernels of a fit in parallel, in the background.
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from .._data.arrays import is_torch

UNIT = 2.0**32  # charges are counted in integers of this unit
_ROWS = 16  # points per program, for kernels with a tile of points and landmarks
_NUMBERS = 1024  # entries of a tile of points and all landmarks
_BLOCK = 256  # points per program, for other kernels
_MAX_LEGS = 128  # landmarks in one tile
_ENERGIES = {"ROWS": 1, "num_warps": 1}  # one warp per point, so that sums need no barrier
_PATHS = {"WIDTH": 32, "PART": 64, "num_warps": 1}  # edges of a row, and columns at a time
_COPIES, _NODES = 64, 1 << 22  # maximum number of copies of a grid, and of their nodes in total
_wanted = os.environ.get("MERCAT_TRITON", "1") != "0"
_interpreted = os.environ.get("TRITON_INTERPRET") == "1"  # by Triton, on the CPU: for tests


@functools.cache
def _kernels() -> Any:
    """The module of kernels, or None if Triton is not installed."""
    try:
        from . import _triton
    except ImportError:
        return None
    return _triton


def supports(*tensors: Any) -> bool:
    """Whether the kernels are used for these tensors: in single precision, on a GPU."""
    return (
        _wanted
        and all(is_torch(t) and str(t.dtype) == "torch.float32" for t in tensors)
        and (_interpreted or all(t.is_cuda for t in tensors))
        and _kernels() is not None
    )


# What `prepare` compiles: pointers to float32 (p), int32 (i) and int64 (l), integers (n) and floats (f).
_PLACING = {
    "energy": [
        (
            "lnnpppnppppnppnn" + "f" * 8 + "pp",
            {**_ENERGIES, "LEGS": 128, "APEX_LEGS": 128},
        )
    ],
    "bfgs": [("nnnffffpppppp", {"BLOCK": 128})],
    "inverse_distances": [("pnnpnpppffp", {"ROWS": 16, "LEGS": 64})],
    "half_ranks": [("pnppfp", {"BLOCK": 256})],
    "linear_parts": [("pnnpnppppffnppp", {"ROWS": 16, "LEGS": 64})],
    "choose": [("npnpnflp", {"ROWS": 4, "PLACES": 512})],
    "weights": [("ppnpnfp", {"ROWS": 16, "LEGS": 64})],
    "moments": [("ppppnppnfp", {"ROWS": 1024 // legs, "LEGS": legs}) for legs in (64, 128)],
}
_DESCENT = {
    "attraction": [("lippnfp", {"ROWS": 16, "WIDTH": 32})],
    "longest_steps": [("llpnpp", _PATHS)],
    "spread": [("ppnnflnn", {"BLOCK": 256})],
    "read_field": [("ppppnnfffpp", {"BLOCK": 256})],
    "move": [("ppppnfffpp", {"BLOCK": 256})],
    "angle_force": [("pppppnppnfffppp", {"ROWS": 16, "LEGS": 64})],
    "arc_residuals": [("ppnpnfffppp", {"ROWS": 16, "LEGS": 64})],
}
_compiling: dict[str, list[Future[None]]] = {}


def prepare(device: Any, *, detail: bool) -> None:
    """Start compiling the kernels of a fit on a torch device, unless this has been done."""
    if not _wanted or _interpreted or getattr(device, "type", "") != "cuda" or _kernels() is None:
        return
    wanted = {**_PLACING, **(_DESCENT if detail else {})}
    wanted = {name: variants for name, variants in wanted.items() if name not in _compiling}
    if not wanted:
        return
    pool = ThreadPoolExecutor(8, thread_name_prefix="mercat-compile")
    for name, variants in wanted.items():
        _compiling[name] = [pool.submit(_compile, device, name, *variant) for variant in variants]
    pool.shutdown(wait=False)


def _compile(device: Any, name: str, signature: str, sizes: dict[str, Any]) -> None:
    import torch

    kinds = {"p": torch.float32, "i": torch.int32, "l": torch.int64, "n": 100, "f": 0.5}
    with torch.cuda.device(device):
        kernel = getattr(_kernels(), name)
        compiled = kernel.warmup(*(kinds[s] for s in signature), grid=(1,), **sizes)
        if hasattr(compiled, "_init_handles"):
            compiled._init_handles()  # also compiles the code that calls it


def _programs(n: int, size: int) -> tuple[int, ...]:
    return (-(-n // size),)


def _run(kernel: str, grid: tuple[int, ...], device: Any, *arguments: Any, **sizes: Any) -> None:
    if not grid[0]:
        return
    for future in _compiling.get(kernel, ()):
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


def edges_fit(width: int) -> bool:
    """Whether rows of this many edges fit into a tile."""
    return width <= 2 * _PATHS["WIDTH"]


def longest_steps(X: Any, graph: Any, lengths: Any, width: int) -> Any:
    """See `_detail.affinities.longest_steps`, for rows of at most `width` edges."""
    steps, sizes = lengths.new_empty(lengths.shape), dict(_PATHS)
    if width > sizes["WIDTH"]:
        sizes["WIDTH"] *= 2
    arrays = X.contiguous(), X.shape[1], lengths.contiguous(), steps
    _run(
        "longest_steps",
        (len(X),),
        X.device,
        graph.indptr,
        graph.indices.contiguous(),
        *arrays,
        **sizes,
    )
    return steps


def spread(row: Any, column: Any, n_columns: int, size: int) -> Any:
    """Spread a unit charge for each position on a grid, flattened; see `_detail.repulsion`."""
    import torch

    copies = max(1, min(_COPIES, _NODES // size))
    charge = torch.zeros((copies, size), dtype=torch.int64, device=row.device)
    _run(
        "spread", _programs(len(row), _BLOCK), row.device,
        row, column, len(row), n_columns, UNIT, charge, size, copies, BLOCK=_BLOCK,
    )  # fmt: skip
    return charge.sum(0).double() / UNIT


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


def legs_fit(m: int) -> bool:
    """Whether m landmarks fit into a tile."""
    return m <= _MAX_LEGS


def _tile(m: int) -> int:
    """Number of landmarks per tile; one kernel is compiled for each power of two."""
    return max(64, 1 << (m - 1).bit_length())


def _rows(m: int) -> int:
    """Number of points per tile with m landmarks."""
    return max(1, _NUMBERS // _tile(m))


def squared_norms(X: Any) -> Any:
    """|x|^2 of each row (n), in one pass."""
    import torch

    return torch.linalg.vector_norm(X, dim=1).square_()


def inverse_distances(
    X: Any, legs: Any, trusted: float, negligible: float, x_norms: Any = None
) -> Any:
    """See `_math.angles.inverse_distances`, for legs (m x r) shared by all points."""
    X = X.contiguous()
    (n, r), m = X.shape, len(legs)
    inv_d = X.new_empty((n, m))
    norms = squared_norms(X) if x_norms is None else x_norms, squared_norms(legs)
    _run(
        "inverse_distances", (*_programs(n, _ROWS), -(-m // 64)), X.device,
        X, n, r, legs.T.contiguous(), m, X @ legs.T, *norms, trusted, negligible, inv_d,
        ROWS=_ROWS, LEGS=64,
    )  # fmt: skip
    return inv_d


class Linear(NamedTuple):
    """Quantities of points X and landmarks that do not depend on the positions of the points."""

    K: Any  # (2, n, L)
    inv_d: Any  # (n, m) inverse distances to the legs of an apex
    min_inv_d: Any  # (n,) smallest inverse distance to any landmark; 0 for a point equal to one
    products: Any  # (n, 3 L) inner products of points with landmarks and with both parts of P
    x_norms: Any  # (n,)


def linear_parts(
    X: Any, legs: Any, P: Any, p: Any, T: Any, m: int, trusted: float, negligible: float
) -> Linear:
    """See `_solve.energy._linear_parts`, for landmarks (L x r), P (2 x L x r), p and T (2 x L)."""
    import torch

    X = X.contiguous()
    (n, r), n_legs = X.shape, len(legs)
    products = X @ torch.cat([legs, P[0], P[1]]).T
    x_norms = squared_norms(X)
    linear = Linear(
        X.new_empty((2, n, n_legs)), X.new_empty((n, m)), X.new_empty(n), products, x_norms
    )
    _run(
        "linear_parts", _programs(n, _ROWS), X.device,
        X, n, r, legs.T.contiguous(), n_legs, products, x_norms, squared_norms(legs),
        torch.cat([p, T]), trusted, negligible, m, *linear[:3], ROWS=_ROWS, LEGS=64,
    )  # fmt: skip
    return linear


def half_ranks(inv_d: Any, quantiles: Any, ranks: Any, slope: float) -> Any:
    """See `_math.distances.HalfRanks.inverse`."""
    inv_d = inv_d.contiguous()
    result, size = inv_d.new_empty(inv_d.shape), inv_d.numel()
    _run(
        "half_ranks", _programs(size, _BLOCK), inv_d.device,
        inv_d, size, quantiles, ranks, slope, result, BLOCK=_BLOCK,
    )  # fmt: skip
    return result


def arc_residuals(
    inv_d: Any, Y: Any, others: Any, line: tuple[float, float], least_sine: float
) -> tuple[Any, Any, Any]:
    """See `_math.distances.DistanceTerm.residuals`."""
    n, m = inv_d.shape
    squares, gradient, sums = Y.new_empty(n), Y.new_empty((n, 3)), Y.new_empty((5, n))
    rows = _rows(m)
    _run(
        "arc_residuals", _programs(n, rows), Y.device,
        inv_d.contiguous(), Y.contiguous(), n, others.T.contiguous(), m,
        *line, least_sine, squares, gradient, sums, ROWS=rows, LEGS=_tile(m),
    )  # fmt: skip
    return squares, gradient, sums


def weights(Y: Any, inv_d: Any, others: Any, softening: float) -> Any:
    """Directions from points at Y to others (m x 3), divided by distances in the data (2 x n x m)."""
    n, m = inv_d.shape
    result = Y.new_empty((2, n, m))
    _run(
        "weights", (*_programs(n, _ROWS), -(-m // 64)), Y.device,
        Y.contiguous(), inv_d.contiguous(), n, others.T.contiguous(), m, float(softening), result,
        ROWS=_ROWS, LEGS=64,
    )  # fmt: skip
    return result


def angle_force(
    X: Any,
    x_norms: Any,
    Y: Any,
    inv_d: Any,
    anchors: Any,
    frame: Any,
    offset: Any,
    line: tuple[float, float],
) -> tuple[Any, Any, Any]:
    """Forces of angles on points at Y (n x 3), summed over triples; see `_detail.terms.AngleTerm`.

    `offset` (2 m) are the inner products of the sums M at each anchor with its data. Also returns the sums of
    squared inverse sines (n) and the moments (3 x n).
    """
    import torch

    (n, m), s, others = inv_d.shape, anchors.sums, anchors.X
    legs = torch.cat([frame.mT.reshape(6, m), s.S, s.S12[None], s.t, offset.reshape(2, m)])
    products = X @ torch.cat([others, s.M[0], s.M[1]]).T
    W = weights(Y, inv_d, anchors.Y, anchors.softening)
    force, steepness, moments = Y.new_empty((n, 3)), Y.new_empty(n), Y.new_empty((3, n))
    rows = _rows(m)
    _run(
        "angle_force", _programs(n, rows), Y.device,
        Y.contiguous(), inv_d.contiguous(), products, W @ (others @ others.T), x_norms, n,
        anchors.Y.T.contiguous(), legs, m, float(anchors.softening), *line,
        force, steepness, moments, ROWS=rows, LEGS=_tile(m),
    )  # fmt: skip
    return force, steepness, moments


def moments(X: Any, Y: Any, legs: Any, others: Any, inv_d: Any, softening: float) -> Any:
    """See `_solve.placement.placed_moments`: sums (6 x n) of points at Y, over legs (m x r) at others."""
    n, m = inv_d.shape
    result = Y.new_empty((6, n))
    rows = _rows(m)
    _run(
        "moments", _programs(n, rows), Y.device,
        Y.contiguous(), inv_d, X @ legs.T, squared_norms(X), n, others.T.contiguous(),
        legs @ legs.T, m, softening, result, ROWS=rows, LEGS=_tile(m),
    )  # fmt: skip
    return result


class Places(NamedTuple):
    """Candidates for the start: positions (G x 3), and energies as a leg (n x G), not yet times `scale`."""

    Y: Any
    energies: Any
    scale: float
    n_kept: int
    cos_apart: float


class Steps(NamedTuple):
    """Settings of BFGS, see `_solve.bfgs`."""

    first: tuple[int, float]  # number of steps and length of the first one ...
    second: tuple[int, float]  # ... and of further steps of points that have not converged
    longest: float  # radians
    rounding: float  # relative rounding error of an energy
    short: float  # length of a step below which a point has converged, in radians


def place(
    linear: Linear, scaled: Any, legs: Any, apex: tuple[Any, Any], settings: tuple[float, ...],
    start: Any, steps: Steps,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Positions (n x 3) of points, whether each has converged, energies (n), and gradients (n x 3).

    `legs` (9 x L) are frames, sigma and sigma12 of the landmarks, `apex` are data and positions of the legs
    of an apex, `scaled` (n x m) the inverse distances to them on the scale of the distance term. `start` are
    `Places`, or positions (n x 3). See `_solve.bfgs.bfgs`.
    """
    import torch

    (n, m), n_legs = linear.inv_d.shape, legs.shape[1]
    X_legs, Y_legs = apex
    gram, Y_legs_by_axis = X_legs @ X_legs.T, Y_legs.T.contiguous()
    settings = tuple(float(v) for v in settings)

    def energy(rows: Any, inv_d: Any, Y: Any, as_leg: bool) -> tuple[Any, Any]:
        energies, gradient = Y.new_empty(len(Y)), torch.empty_like(Y)
        W = weights(Y, inv_d, Y_legs, settings[0])
        _run(
            "energy", _programs(len(Y), _ENERGIES["ROWS"]), Y.device,
            rows, len(Y), n, Y, linear.K, legs, n_legs, Y_legs_by_axis, linear.inv_d, scaled, linear.products,
            3 * n_legs, linear.x_norms, W @ gram, m, int(as_leg), *settings, energies, gradient,
            **_ENERGIES, LEGS=128, APEX_LEGS=_tile(m),
        )  # fmt: skip
        return energies, gradient

    def descend(rows: Any, inv_d: Any, Y: Any, number: int, first: float) -> tuple[Any, ...]:
        trial = torch.clone(Y, memory_format=torch.contiguous_format)
        gradient, state = torch.empty_like(trial), trial.new_empty((8, len(trial)))
        limits = first, steps.longest, steps.rounding, steps.short
        Y = torch.empty_like(trial)
        for step in range(1 + number):
            _run(
                "bfgs", _programs(len(Y), 128), Y.device,
                len(Y), step, number, *limits, trial, *energy(rows, inv_d, trial, True),
                Y, gradient, state, BLOCK=128,
            )  # fmt: skip
        return Y, state[7] > 0, state[0], gradient

    rows = torch.arange(n, device=X_legs.device)
    if isinstance(start, Places):
        size = len(start.Y)
        chosen = rows.new_empty((n, start.n_kept)), X_legs.new_empty((n, start.n_kept))
        _run(
            "choose", _programs(n, 4), X_legs.device,
            n, start.Y.T.contiguous(), size, start.energies, start.n_kept, start.cos_apart,
            *chosen, ROWS=4, PLACES=_tile(size),
        )  # fmt: skip
        energies = [energy(rows, linear.inv_d, start.Y[k], False)[0] for k in chosen[0].T]
        best = (torch.stack(energies, dim=1) + start.scale * chosen[1]).argmin(1, keepdim=True)
        start = start.Y[chosen[0].gather(1, best)[:, 0]]
    found = descend(rows, linear.inv_d, start, *steps.first)
    if not steps.second[0]:
        return found
    Y, settled, E, gradient = found
    (rows,) = torch.nonzero(~settled, as_tuple=True)
    more = descend(rows, linear.inv_d[rows], Y[rows], *steps.second)
    Y[rows], E[rows], gradient[rows] = more[0], more[2], more[3]
    return Y, settled.index_copy(0, rows, more[1]), E, gradient
