"""Directions, their sums and their gradients at a block of apices (angles.c)."""

from __future__ import annotations

import numpy as np

from .._data.arrays import row_product
from ._library import aligned_zeros, contiguous, round_up, run


def inverse_distances(
    X_apex: np.ndarray, X_legs: np.ndarray, trusted: float, negligible: float
) -> np.ndarray:
    """See `_math.angles.inverse_distances`, for legs (m x r) shared by the apices (b x r)."""
    dtype = X_apex.dtype
    X_apex, X_legs = contiguous(X_apex, dtype), contiguous(X_legs, dtype)
    (b, r), m = X_apex.shape, len(X_legs)
    result = np.asarray(row_product(X_apex, X_legs.T))
    norms = [np.vecdot(X, X) for X in (X_apex, X_legs)]
    run(
        f"inverse_distances_{dtype}",
        b, m, r, X_apex, X_legs, r, *norms, trusted, negligible, result,
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

    Returns B, inverse_sine and frame as `_math.angles.bearings` does, S, S12 and t as `apex_sums` does, and
    the weights (2 x b x m) of the sum M.
    """
    dtype, b, m = Y_apex.dtype, len(Y_apex), len(Y_legs)
    ones = np.ones(m, dtype=dtype)
    present = ones if mask is None else contiguous(mask, dtype)
    inverse_distance = ones if inverse_distance is None else contiguous(inverse_distance, dtype)
    shapes = (2, b, m), (b, m), (2, b, 3), (2, b), (b,), (2, b), (2, b, m)
    outputs = tuple(np.empty(shape, dtype=dtype) for shape in shapes)
    run(
        f"bearings_{dtype}",
        b, m, contiguous(Y_apex, dtype), contiguous(Y_legs.T, dtype), present, _stride(present),
        softening, inverse_distance, _stride(inverse_distance), *outputs,
    )  # fmt: skip
    return outputs


def _stride(array: np.ndarray) -> int:
    """Stride between rows; 0 if all share one row."""
    return array.shape[1] if array.ndim == 2 else 0


def apex_gradient(
    Y_apex: np.ndarray,
    Y_legs: np.ndarray,
    inverse_distance: np.ndarray,
    bearings: tuple[np.ndarray, ...],
    sums: tuple[np.ndarray, ...],
    products: np.ndarray,
    line: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """See `_math.angles.apex_gradient`: gradients at the apices (b x 3) and at the legs (m x 3).

    `bearings` are B, inverse_sine and frame; `sums` are S, S12 and t; `products` (2 x b x m) are the inner
    products of M with the differences between legs and apices in data space.
    """
    dtype = Y_apex.dtype
    b, m = inverse_distance.shape
    to_apices, to_legs = np.empty((b, 3), dtype=dtype), np.zeros((3, m), dtype=dtype)
    arrays = (contiguous(a, dtype) for a in (inverse_distance, *bearings, *sums, products))
    run(
        f"apex_gradient_{dtype}",
        b, m, contiguous(Y_apex, dtype), contiguous(Y_legs.T, dtype), *arrays,
        float(line[0]), float(line[1]), to_apices, to_legs,
    )  # fmt: skip
    return to_apices, to_legs.T


def data_moments(
    X_apex: np.ndarray, X_legs: np.ndarray, inverse_distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """See `_math.angles.data_moments`, for apices (b x r) that share their legs (m rows, first r columns)."""
    dtype = X_apex.dtype
    (b, r), (m, stride) = X_apex.shape, X_legs.shape
    width = round_up(min(m, r))
    scratch = aligned_zeros((round_up(max(m, r), 4) * width + width * width + r,), dtype)
    count, a, aa = (np.empty(b, dtype=dtype) for _ in range(3))
    run(
        f"data_moments_{dtype}",
        b, m, r, contiguous(X_apex, dtype), contiguous(X_legs, dtype), stride,
        contiguous(inverse_distance, dtype), width, scratch, count, a, aa,
    )  # fmt: skip
    return count, a, aa


def moments(
    X_apex: np.ndarray, Y_apex: np.ndarray, X: np.ndarray, Y: np.ndarray, start: int, n_legs: int,
    tile: int, negligible: float, softening: float,
) -> np.ndarray:  # fmt: skip
    """See `_solve.placement.placed_moments`: the six moments of b apices (6 x b, in double precision).

    Their legs are the landmarks X, placed at Y.
    """
    dtype = X_apex.dtype
    (b, r), m = X_apex.shape, min(n_legs, len(X))
    columns, rows = round_up(r, 4) * round_up(m), round_up(m, 4) * round_up(r)
    width = round_up(min(m, r))
    size = columns + (0 if r > m else rows) + (r + 8) * m + width * width
    result = np.empty((6, b))
    assert X.shape[1] == r
    arrays = (contiguous(a, dtype) for a in (X_apex, Y_apex, X, Y))
    run(
        f"moments_{dtype}",
        b, start, tile, n_legs, len(X), m, r, *arrays, negligible, softening,
        aligned_zeros((size,), dtype), result,
    )  # fmt: skip
    return result
