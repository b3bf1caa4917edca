"""Alignment of a fit with another map.

The fit starts from the other map; points that are not on it are placed against those that are. During the
descent, angles improve little while points may drift far. So the map moves only as far from the start as the
angles require: the landmarks together, and each placed point on its own, since other landmarks would move it
at random. A map with detail cannot stop halfway without tearing neighbours apart: its points stay fixed, and
new points move to places among them, unless the descent from scratch is clearly better.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import TILE, blocks
from .._data.threads import Workers
from .._detail.neighbors import Search
from .._math.angles import AngleFit, Calibration, Moments, mean_square
from .._math.orientation import orthogonal_onto
from .._math.sphere import normalize
from .exact import Fit
from .fitted_map import ScoredMap
from .losses import AngleLoss
from .placement import as_type, prepare_landmarks

MIN_ANCHORS = 4
# Fractions of the way from the other map to the end of the descent.
_STEPS = (0.0, 0.125, 0.25, 0.5, 0.75)
_MAX_CORRELATION_LOSS = 0.005  # largest decrease of the correlation by stopping early
# With detail, for keeping the points of the other map fixed: decrease of the correlation, and increase of the
# Kullback-Leibler divergence of neighbours.
_MAX_CORRELATION_LOSS_WITH_DETAIL, _MAX_DIVERGENCE_GAIN = 0.01, 0.2


class Anchors(NamedTuple):
    """Positions (n, 3) of points on another map, NaN for other points, and the rows of its landmarks."""

    positions: np.ndarray
    landmarks: np.ndarray | None = None

    def of_rows(self, rows: np.ndarray) -> Anchors:
        """Anchors of some rows, in their order."""
        anchors = Anchors(self.positions[rows])
        if len(anchors.known) < MIN_ANCHORS:
            raise ValueError(
                f"n_detail must leave at least {MIN_ANCHORS} points of the map in align_to, got "
                f"{len(rows)}, which leaves {len(anchors.known)}."
            )
        return anchors

    @property
    def known(self) -> np.ndarray:
        """Rows that are on the other map."""
        return np.flatnonzero(np.isfinite(self.positions[:, 0]))


def anchored_sample(anchors: Anchors, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to solve first: rows of the other map, and new rows in proportion to the number of new points.

    Landmarks of the other map stay landmarks, in their order: points are placed against the same ones.
    """
    n, known = len(anchors.positions), anchors.known
    old = anchors.landmarks
    if old is None:
        old = known[rng.permutation(len(known))]
    old = old[:n_landmarks]
    new = np.setdiff1d(np.arange(n), known, assume_unique=True)
    n_new = min(n_landmarks, len(new), round(len(old) * len(new) / len(known)))
    new = rng.choice(new, n_new, replace=False)
    # Interleave both evenly.
    key = np.concatenate(
        [np.arange(len(old)) / max(len(old), 1), (np.arange(n_new) + 0.5) / max(n_new, 1)]
    )
    return np.concatenate([old, new])[np.argsort(key, kind="stable")]


def anchored_start(
    X_hat: np.ndarray, positions: np.ndarray, line: Calibration | None, workers: Workers
) -> np.ndarray:
    """Positions of all points; those without a position are placed against the others."""
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


def closest_to_start(fit: Fit, start: np.ndarray, loss: AngleLoss) -> Fit:
    """The map closest to the start, on the way from it to the result of the fit, that is about as good."""
    end = np.asarray(fit.Y, dtype=np.float64)
    end = end @ orthogonal_onto(end, start).T
    for step in _STEPS:
        Y = normalize((1 - step) * start + step * end).astype(fit.Y.dtype)
        angle_fit = loss.judge(Y)
        if angle_fit.correlation >= fit.angle_fit.correlation - _MAX_CORRELATION_LOSS:
            return fit._replace(Y=Y, angle_fit=angle_fit)
    return fit


class AlignedMap(NamedTuple):
    """Places rows; those of another map stay as close to their old positions as their angles allow."""

    placement: ScoredMap
    old: np.ndarray  # positions (n, 3) on the other map, rotated onto this one; NaN if not on it
    slack: float  # how much the squared loss of a point may exceed that at its best position

    def block(self, rows: Any, start: int) -> tuple[np.ndarray, Moments]:
        """Positions of rows, and their moments as apices. The first row has the index `start`."""
        X_hat, Y = self.placement.placer.block(rows)
        sample, line = self.placement.loss_sample, self.placement.calibration
        moments = sample.moments(X_hat, Y, start)
        max_loss = mean_square(moments, line) + self.slack
        old = self.old[start : start + len(Y)].astype(Y.dtype)
        best_Y, best_moments = Y.copy(), [np.array(m) for m in moments]
        for step in reversed(_STEPS):
            trial_Y = normalize((1 - step) * old + step * Y)
            trial_Y = np.where(np.isfinite(trial_Y), trial_Y, Y)  # NaN: not on the other map
            trial_moments = sample.moments(X_hat, trial_Y, start)
            allowed = mean_square(trial_moments, line) <= max_loss
            best_Y[allowed] = trial_Y[allowed]
            for best, trial in zip(best_moments, trial_moments, strict=True):
                best[allowed] = trial[allowed]
        return best_Y, Moments(*best_moments)


def aligned_map(
    placement: ScoredMap, anchors: Anchors, landmarks: np.ndarray, Y: np.ndarray, fit: AngleFit
) -> AlignedMap:
    """Placement near another map that shares landmarks with this one; `Y` are the landmarks' positions here.

    The slack is the increase of the mean squared loss that lowers the correlation by
    `_MAX_CORRELATION_LOSS`.
    """
    old = anchors.positions
    known = np.isfinite(old[landmarks, 0])
    rotation = orthogonal_onto(np.asarray(Y, dtype=np.float64)[known], old[landmarks[known]])
    variance = fit.loss**2 / max(1 - fit.correlation**2, 1e-12)
    slack = 2 * _MAX_CORRELATION_LOSS * abs(fit.correlation) * variance
    return AlignedMap(placement, old @ rotation, slack)


def start_on_other_map(anchors: Anchors, X_hat: np.ndarray, workers: Workers) -> np.ndarray:
    """Positions on the other map; new points get the position of their nearest neighbour in the data."""
    start, known = anchors.positions.copy(), anchors.known
    new = np.flatnonzero(~np.isfinite(start[:, 0]))
    search = Search(X_hat[known])
    parts = workers.map(lambda b: search(X_hat[new[b]], 1)[:, 0], blocks(len(new), TILE))
    start[new] = anchors.positions[known[np.concatenate([np.empty(0, np.intp), *parts])]]
    return start


def is_about_as_good(fixed: tuple[float, float], free: tuple[float, float]) -> bool:
    """Whether a map with fixed points is about as good as a free one.

    Both maps are given by their correlation of angles and their loss of neighbours.
    """
    return (
        fixed[0] >= free[0] - _MAX_CORRELATION_LOSS_WITH_DETAIL
        and fixed[1] <= free[1] + _MAX_DIVERGENCE_GAIN
    )
