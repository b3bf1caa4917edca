"""Placement of points against landmarks (placement.c)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._library import aligned_zeros, contiguous, padded, round_up, run


class Landmarks(NamedTuple):
    """A `_solve.landmarks.Landmarks` in the layout of placement.c; matrices are `padded`."""

    sizes: np.ndarray  # landmarks, apex legs, screening landmarks, candidates, columns
    numbers: np.ndarray  # softening to slope, as in C
    table: np.ndarray  # (17, L) frames, sigmas, positions, squared norms, -P.x and T
    X_apex: np.ndarray  # (m, r)
    Xt_apex: np.ndarray  # (r, m)
    Xt: np.ndarray  # (r, L)
    Pt: np.ndarray  # (r, 2 L)
    candidates: np.ndarray  # (4, G) positions and quadratic parts
    bearings: np.ndarray  # (2 S, G) of the candidates at the screening landmarks
    ranks: np.ndarray  # (2, 65) quantiles and their ranks


def landmarks_of(
    X: np.ndarray, Y: np.ndarray, legs: tuple[np.ndarray, ...], P: np.ndarray,
    candidates: np.ndarray, screen: tuple[np.ndarray, np.ndarray], n_apex_legs: int,
    ranks: tuple[np.ndarray, np.ndarray] | None, numbers: tuple[float, ...],
) -> Landmarks:  # fmt: skip
    """Pack landmarks X (L x r) at Y (L x 3).

    `legs` are frames (2 x L x 3), sigma (2 x L), sigma12 (L), P . x and T (2 x L). `screen` are the bearings
    of the candidates at the screening landmarks (2 x S x G) and the quadratic parts (G).
    """
    frame, sigma, sigma12, p, T = legs
    (C1, C2), quadratic = screen
    m, norms = min(n_apex_legs, len(X)), np.vecdot(X, X)
    table = np.stack([*frame[0].T, *frame[1].T, *sigma, sigma12, *Y.T, norms, *-p, *T])
    ranks = (np.zeros(65), np.zeros(65)) if ranks is None else ranks
    # As C expects:
    assert P.shape == (2, *X.shape), P.shape
    assert len(numbers) == 10, numbers
    assert len(ranks[0]) == len(ranks[1]) == 65
    return Landmarks(
        np.array([len(X), m, *C1.shape, X.shape[1]], dtype=np.int64),
        np.array(numbers, dtype=np.float32),
        padded(table),
        padded(X[:m]),
        padded(X[:m].T),
        padded(X.T),
        padded(np.concatenate([padded(part.T) for part in P], axis=1)),
        padded(np.concatenate([candidates.T, quadratic[None]])),
        padded(np.concatenate([padded(C1), padded(C2)])),
        np.stack(ranks).astype(np.float32),
    )


def place(
    landmarks: Landmarks, X: np.ndarray, starts: np.ndarray | None, away_from: np.ndarray | None,
    H: np.ndarray | None, steps: tuple[int, int, int], limits: tuple[float, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Positions (b x 3) of points X (b x r), energies, and whether they have settled; see placement.c."""
    b, given = len(X), int(H is not None)
    starts = np.empty((b, 0, 3)) if starts is None else starts
    away_from = np.full((b, 3), np.nan) if away_from is None else away_from
    H = np.empty((0, 3, 3)) if H is None else H
    assert (X.shape[1], len(limits)) == (landmarks.sizes[4], 7)  # as C expects
    arrays = (contiguous(a, np.float32) for a in (np.array(limits), X, starts, away_from, H))
    Y, E = np.empty((b, 3), dtype=np.float32), np.empty(b, dtype=np.float32)
    settled, numbers = np.empty(b, dtype=np.int8), (starts.shape[1], given, *steps)
    run("place", b, *landmarks, *numbers, *arrays, _scratch(landmarks), Y, E, settled)
    return Y, E, settled.astype(bool)


def gradients(landmarks: Landmarks, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Gradients (b x n x 3) of the energies of points X (b x r) at n positions Y (b x n x 3) each."""
    assert X.shape[1] == landmarks.sizes[4]  # as C expects
    found = np.empty(Y.shape, dtype=np.float32)
    arrays = (contiguous(a, np.float32) for a in (X, Y))
    run("gradients", len(X), *landmarks, Y.shape[1], *arrays, _scratch(landmarks), found)
    return found


def _scratch(landmarks: Landmarks) -> np.ndarray:
    L, m, _, G, r = (round_up(int(size)) for size in landmarks.sizes)
    return aligned_zeros((6 * r + 8 * m + 12 * L + 4 * G,))
