"""The angle loss of all points as apices and as legs, and its gradient (loss.c)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._library import aligned_zeros, by_rows_and_columns, contiguous, run

MAX_APICES, _APICES_PER_BLOCK = 2048, 32  # see loss.c


class Apices(NamedTuple):
    """Points that are apices and legs of each other, in the layout of loss.c."""

    X: np.ndarray  # (n, r), padded with zeros
    Xt: np.ndarray  # (r, n), padded with zeros
    inverse_distance: np.ndarray  # (n, n)
    n_components: int


def apices_of(X: np.ndarray, inverse_distance: np.ndarray) -> Apices:
    """Points X (n x r), at most `MAX_APICES`, and their inverse distances (n x n)."""
    assert len(X) <= MAX_APICES, len(X)  # the size of the arrays in C
    inverse_distance = contiguous(inverse_distance, np.float32)
    return Apices(*by_rows_and_columns(X), inverse_distance, X.shape[1])


def loss_sums(
    apices: Apices, Y: np.ndarray, softening: float, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`map_moments` (3 x n) at Y (n x 3), and the arguments of `loss_forces`: positions and sums."""
    n, (padded, width) = len(Y), apices.X.shape
    positions = aligned_zeros((3, padded))
    positions[:, :n] = Y.T
    M, sums, moments = (aligned_zeros(shape) for shape in ((n, 2, width), (n, 7), (3, n)))
    run(
        "loss_sums", n_threads, n, apices.n_components, width, padded, apices.X,
        apices.inverse_distance, positions, softening, M, sums, moments,
    )  # fmt: skip
    return moments, positions, M, sums


def loss_forces(
    apices: Apices, found: tuple[np.ndarray, ...], softening: float, line: tuple[float, float],
    n_threads: int,
) -> np.ndarray:  # fmt: skip
    """Sum of `_math.angles.apex_gradient` over all points (n x 3), given the results of `loss_sums`."""
    n, (padded, width) = len(apices.inverse_distance), apices.X.shape
    to_apices = np.empty((n, 3), dtype=np.float32)
    to_legs = np.empty((-(-n // _APICES_PER_BLOCK), 3, padded), dtype=np.float32)
    run(
        "loss_forces", n_threads, n, apices.n_components, width, padded, apices.Xt,
        apices.inverse_distance, found[0], softening, float(line[0]), float(line[1]), *found[1:],
        to_apices, to_legs,
    )  # fmt: skip
    return np.asarray(to_apices + to_legs[:, :, :n].sum(axis=0, dtype=np.float64).T)
