"""The field of all points on a grid (repulsion.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._library import LANES, contiguous, run


def charge(
    Y: np.ndarray, n_rows: int, n_columns: int, block: int, grids: np.ndarray, n_threads: int
) -> np.ndarray:
    """See `_detail.repulsion.Kernel._charge`: the sum of the grids of blocks of points, flattened."""
    result = np.empty(grids.shape[1], dtype=np.float32)
    Y, used = contiguous(Y, np.float32), np.empty((len(grids), 2), dtype=np.int64)
    run("charge", n_threads, len(Y), Y, n_rows, n_columns, block, grids, used, result)
    return result


def read_field(
    field: np.ndarray, Y: np.ndarray, n_rows: int, n_columns: int, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """See `_detail.repulsion.Field.at`: value (n) and gradient (n x 3) at positions Y."""
    value, slope = np.empty(len(Y), dtype=np.float32), np.empty((len(Y), 3), dtype=np.float32)
    Y, field = contiguous(Y, np.float32), contiguous(field, np.float32)
    run("read_field", n_threads, len(Y), Y, n_rows, n_columns, field, value, slope)
    return value, slope


def fill_table(
    rho: np.ndarray, power: np.ndarray, alias: np.ndarray, table: Any, rows: slice
) -> None:
    """Fill a `_detail.repulsion.Table` at some latitudes; see repulsion.c."""
    half, n_frequencies = table.low.shape[1], len(table.scale)
    run(
        "fill_table", rows.start, rows.stop, half, n_frequencies, rho, power, alias,
        table.low, table.high, table.offset, table.values,
    )  # fmt: skip


def filter_spectrum(table: Any, spectrum: np.ndarray, n_threads: int) -> None:
    """Convert the spectrum of a charge to that of its field, in place; see repulsion.c."""
    n_groups, half = table.low.shape
    assert table.scratch.size >= n_groups * 4 * LANES * 2 * half, table.scratch.size
    run(
        "filter", n_threads, half, len(table.scale), table.low, table.high, table.offset,
        table.values, table.factors, table.scale, spectrum.view(np.float32), table.scratch,
    )  # fmt: skip
