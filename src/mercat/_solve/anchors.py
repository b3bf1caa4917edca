"""Staying near another map: where its points were, which of them serve as landmarks, how far to go.

The fit starts from the other map; points that are not on it are placed against those that are. From there to
the end of the descent angles improve little and points may drift far. So the map goes no farther on that way
than angles ask for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._data.threads import Workers
from .._math.angles import Calibration
from .._math.orientation import orthogonal_onto
from .._math.sphere import normalize
from .exact import Fit
from .losses import AngleLoss
from .placement import as_type, prepare_landmarks

LEAST_ANCHORS = 4
_STEPS = (0.0, 0.125, 0.25, 0.5, 0.75)  # of the way from the other map to the end of the descent
_MOST_LOST = 0.005  # correlation that a shorter way may cost


class Anchors(NamedTuple):
    """Positions (n, 3) of points on another map, NaN for others, and the rows that were its landmarks."""

    positions: np.ndarray
    landmarks: np.ndarray | None = None

    @property
    def known(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.positions[:, 0]))


def anchored_sample(anchors: Anchors, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to solve first: those of the other map, and as many new ones as there are new points.

    Landmarks of the other map stay landmarks, in their order: points are placed against the same ones.
    """
    n, known = len(anchors.positions), anchors.known
    old = anchors.landmarks
    if old is None:
        old = known[rng.permutation(len(known))]
    old = old[:n_landmarks]
    new = np.setdiff1d(np.arange(n), known, assume_unique=True)
    share = min(n_landmarks, len(new), round(len(old) * len(new) / len(known)))
    new = rng.choice(new, share, replace=False)
    place = np.concatenate(
        [np.arange(len(old)) / max(len(old), 1), (np.arange(share) + 0.5) / max(share, 1)]
    )
    return np.concatenate([old, new])[np.argsort(place, kind="stable")]


def anchored_start(
    X_hat: np.ndarray, positions: np.ndarray, line: Calibration | None, workers: Workers
) -> np.ndarray:
    """Positions of points, those without one placed against the others."""
    known = np.isfinite(positions[:, 0])
    if known.all():
        return positions
    X, Y = X_hat[known].astype(np.float64), positions[known]
    if line is None:
        line = AngleLoss(X, line=None, workers=workers).judge(Y).calibration
    placer = as_type(prepare_landmarks(X, Y, line), np.float32)
    start = positions.copy()
    start[~known] = placer.place(X_hat[~known].astype(np.float32))
    return start


def no_farther_than_needed(fit: Fit, start: np.ndarray, loss: AngleLoss) -> Fit:
    """The map on the way from a start to the end of a descent that is nearest to the start, and as good."""
    end = np.asarray(fit.Y, dtype=np.float64)
    end = end @ orthogonal_onto(end, start).T
    for step in _STEPS:
        Y = normalize((1 - step) * start + step * end).astype(fit.Y.dtype)
        found = loss.judge(Y)
        if found.correlation >= fit.angle_fit.correlation - _MOST_LOST:
            return fit._replace(Y=Y, angle_fit=found)
    return fit
