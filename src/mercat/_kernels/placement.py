"""Placement of points against landmarks (placement.c)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._library import aligned_zeros, by_rows_and_columns, exactly, run


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
        exactly(Y.T, np.float32),
        *by_rows_and_columns(X),
        exactly(candidates.T, np.float32),
    )


def _settings(numbers: tuple[float, ...], count: int) -> np.ndarray:
    assert len(numbers) == count, numbers  # C reads as many
    return np.array(numbers, dtype=np.float32)


def _sizes(landmarks: Landmarks, X: np.ndarray, K: np.ndarray, near: np.ndarray) -> tuple[int, ...]:
    """Numbers of points, landmarks, apex legs and columns, and the padded ones of columns and apex legs."""
    padded, width = landmarks.X_apex.shape
    return len(X), K.shape[2], near.shape[1], X.shape[1], width, padded


def _scratch(landmarks: Landmarks) -> np.ndarray:
    padded, width = landmarks.X_apex.shape
    return aligned_zeros((7 * padded + 2 * width,))


def place(
    landmarks: Landmarks, X: np.ndarray, K: np.ndarray, near: np.ndarray, seen: np.ndarray,
    E: np.ndarray, settings: tuple[float, ...], steps: tuple[int, int, int],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Positions (b x 3) of points X (b x r), and whether they have settled; see placement.c."""
    Y, settled = np.empty((len(X), 3), dtype=np.float32), np.empty(len(X), dtype=np.int8)
    arrays = (exactly(a, np.float32) for a in (X, K, near, seen))
    run(
        "place", *_sizes(landmarks, X, K, near), E.shape[1], *steps, _settings(settings, 14),
        *landmarks, *arrays, E, _scratch(landmarks), Y, settled,
    )  # fmt: skip
    return Y, settled.astype(bool)


def place_from(
    landmarks: Landmarks, X: np.ndarray, K: np.ndarray, near: np.ndarray, seen: np.ndarray,
    starts: np.ndarray, settings: tuple[float, ...], steps: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Positions (b x 3) of points X (b x r) from starts (b x n x 3), and their energies; see placement.c."""
    Y, E = np.empty((len(X), 3), dtype=np.float32), np.empty(len(X), dtype=np.float32)
    arrays = (exactly(a, np.float32) for a in (X, K, near, seen, starts))
    run(
        "place_from", *_sizes(landmarks, X, K, near), starts.shape[1], steps, _settings(settings, 12),
        *landmarks[:4], *arrays, _scratch(landmarks), Y, E,
    )  # fmt: skip
    return Y, E
