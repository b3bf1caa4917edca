"""The descent of maps with detail: attraction, steps and forces of angles (descent.c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._library import aligned_zeros, by_rows_and_columns, contiguous, round_up, run

_ROWS_PER_BLOCK, _N_BLOCKS = 256, 256  # minimum and maximum, for any number of threads


def attraction(P: Any, Y: np.ndarray, bandwidth: float, n_threads: int) -> np.ndarray:
    """See `_detail.descent.attraction` (n x 3)."""
    force = np.empty(Y.shape, dtype=np.float32)
    ends, columns = contiguous(P.indptr, np.int64), contiguous(P.indices, np.int32)
    arrays = ends, columns, contiguous(P.data, np.float32), contiguous(Y, np.float32)
    run("attraction", n_threads, len(Y), *arrays, 1 / bandwidth**2, force)
    return force


def move(
    Y: np.ndarray, velocity: np.ndarray, forces: Sequence[np.ndarray], factors: Sequence[float],
    momentum: float, factor: float, longest: float, n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """See `_detail.descent._moved`: positions and velocities (n x 3) after a step.

    `forces` and `factors` are the arrays and the factors of `_detail.descent.Forces`, in order.
    """
    velocity, moved = velocity.astype(np.float32, order="C"), np.empty(Y.shape, dtype=np.float32)
    arrays = (contiguous(a, np.float32) for a in (Y, *forces))
    settings = (float(number) for number in (*factors, momentum, factor, longest))
    run("move", n_threads, len(Y), *arrays, *settings, velocity, moved)
    return moved, velocity


class Anchors(NamedTuple):
    """Anchors of a descent in the layout of descent.c."""

    legs: np.ndarray  # (14, m) positions, frames and sums
    X: np.ndarray  # (m, r), padded with zeros
    Xt: np.ndarray  # (r, m), padded with zeros
    factors: np.ndarray  # (r + 1, 3, m), padded with zeros, see descent.c


def anchors_of(
    X: np.ndarray, Y: np.ndarray, frame: np.ndarray, sums: Any, offset: np.ndarray
) -> Anchors:
    """Pack anchors X (m x r) at Y (m x 3), their frames (2 x m x 3), sums, and M . X at each (2m)."""
    legs = [*Y.T, *frame[0].T, *frame[1].T, *sums.S, sums.S12, *sums.t]
    rows, columns = by_rows_and_columns(X)
    (width, padded), m = columns.shape, len(X)
    factors = aligned_zeros((width + 1, 3, padded))
    factors[: X.shape[1], :, :m] = np.stack([*sums.M, X]).transpose(2, 0, 1)
    factors[width, :, :m] = [*offset.reshape(2, m), np.einsum("mr,mr->m", X, X)]
    return Anchors(np.stack(legs).astype(np.float32), rows, columns, factors)


def far_forces(
    X: np.ndarray, Y: np.ndarray, anchors: Anchors, numbers: tuple[float, ...], n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces of angles and distances on points X (n x r) at Y (n x 3), and their curvatures (n x 1).

    Also returns eight sums over the points; see descent.c.
    """
    (n, r), m, (padded, width) = X.shape, anchors.legs.shape[1], anchors.X.shape
    assert len(numbers) == 12, numbers  # as C expects
    force, curvature = np.empty((n, 3), dtype=np.float32), np.empty((n, 1), dtype=np.float32)
    grain = max(_ROWS_PER_BLOCK, -(-n // _N_BLOCKS))
    n_blocks, room = -(-n // grain), round_up(26 * padded + 8 * width + 12 * m + 68)
    scratch, sums = aligned_zeros((n_blocks, room)), np.zeros((n_blocks, 8))
    arrays = (
        np.array(numbers, dtype=np.float64),
        contiguous(X, np.float32),
        contiguous(Y, np.float32),
    )
    sizes = n, m, r, width, padded, grain, room
    run("far_forces", n_threads, *sizes, *arrays, *anchors, scratch, force, curvature, sums)
    return force, curvature, sums.sum(axis=0)


def settle(
    Y: np.ndarray, around: np.ndarray, weights: np.ndarray, stiffness: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray], anchors: Anchors, field: Any,
    numbers: tuple[float, ...], steps: int,
) -> np.ndarray:  # fmt: skip
    """Positions (b x 3) of new points after steps from Y, with neighbours at `around` (b x k x 3).

    See descent.c. `pairs` are X (b x r), inverse distances to the anchors (b x m) and K (b x 2m).
    """
    X, near, _ = pairs
    (b, k), (padded, width) = weights.shape, anchors.X.shape
    assert len(numbers) == 15, numbers  # as C expects
    positions = np.concatenate([Y, around.reshape(-1, 3)], dtype=np.float32)
    ends, columns = np.arange(0, b * k + 1, k), np.arange(b, b + b * k, dtype=np.int32)
    arrays = (contiguous(a, np.float32) for a in (weights, stiffness, *pairs))
    scratch = aligned_zeros((14 * padded + 4 * width + 23 * b,))
    values = contiguous(field.values, np.float32)
    run(
        "settle", b, near.shape[1], X.shape[1], width, padded, field.n_rows, field.n_columns, steps,
        np.array(numbers, dtype=np.float64), ends, columns, *arrays, *anchors[:3], values, scratch, positions,
    )  # fmt: skip
    return positions[:b]
