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

LEAST_ANCHORS = 4
# Fractions of the way from the other map to the end of the descent.
_STEPS = (0.0, 0.125, 0.25, 0.5, 0.75)
_MOST_LOST = 0.005  # correlation that may be lost by stopping early
# With detail, correlation and neighbour divergence that may be lost if points stay.
_MOST_LOST_BY_STAYING, _MOST_TORN = 0.01, 0.2


class Anchors(NamedTuple):
    """Positions (n, 3) of points on another map, NaN for other points, and the rows of its landmarks."""

    positions: np.ndarray
    landmarks: np.ndarray | None = None

    def of_rows(self, rows: np.ndarray) -> Anchors:
        """Anchors of some rows, in their order."""
        found = Anchors(self.positions[rows])
        if len(found.known) < LEAST_ANCHORS:
            raise ValueError(
                f"n_detail must leave at least {LEAST_ANCHORS} points of the map in align_to, got "
                f"{len(rows)}, which leaves {len(found.known)}."
            )
        return found

    @property
    def known(self) -> np.ndarray:
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
    share = min(n_landmarks, len(new), round(len(old) * len(new) / len(known)))
    new = rng.choice(new, share, replace=False)
    place = np.concatenate(
        [np.arange(len(old)) / max(len(old), 1), (np.arange(share) + 0.5) / max(share, 1)]
    )
    return np.concatenate([old, new])[np.argsort(place, kind="stable")]


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


def no_farther_than_needed(fit: Fit, start: np.ndarray, loss: AngleLoss) -> Fit:
    """The map closest to the start, between it and the end of the descent, that is about as good."""
    end = np.asarray(fit.Y, dtype=np.float64)
    end = end @ orthogonal_onto(end, start).T
    for step in _STEPS:
        Y = normalize((1 - step) * start + step * end).astype(fit.Y.dtype)
        found = loss.judge(Y)
        if found.correlation >= fit.angle_fit.correlation - _MOST_LOST:
            return fit._replace(Y=Y, angle_fit=found)
    return fit


class HeldMap(NamedTuple):
    """Places rows, keeping those of another map as close to their old positions as their angles allow."""

    placement: ScoredMap
    old: np.ndarray  # positions (n, 3) on the other map, rotated onto this one; NaN if not on it
    slack: float  # squared loss that a point may have above that at its best position

    def block(self, rows: Any, start: int) -> tuple[np.ndarray, Moments]:
        """Positions of rows, the first of which has the index `start`, and their moments as apices."""
        X_hat, Y = self.placement.placer.block(rows)
        judge, line = self.placement.loss_sample, self.placement.calibration
        moments = judge.moments(X_hat, Y, start)
        allowed = mean_square(moments, line) + self.slack
        old = self.old[start : start + len(Y)].astype(Y.dtype)
        best, found = Y.copy(), [np.array(m) for m in moments]
        for step in reversed(_STEPS):
            near = normalize((1 - step) * old + step * Y)
            near = np.where(np.isfinite(near), near, Y)  # NaN: not on the other map
            there = judge.moments(X_hat, near, start)
            fits = mean_square(there, line) <= allowed
            best[fits] = near[fits]
            for kept, other in zip(found, there, strict=True):
                kept[fits] = other[fits]
        return best, Moments(*found)


def hold(
    placement: ScoredMap, anchors: Anchors, landmarks: np.ndarray, Y: np.ndarray, fit: AngleFit
) -> HeldMap:
    """Hold placed points near another map, which has positions for some landmarks (at Y) of this one.

    The slack is the increase of the mean squared loss that lowers the correlation by `_MOST_LOST`.
    """
    old = anchors.positions
    both = np.isfinite(old[landmarks, 0])
    turn = orthogonal_onto(np.asarray(Y, dtype=np.float64)[both], old[landmarks[both]])
    variance = fit.loss**2 / max(1 - fit.correlation**2, 1e-12)
    slack = 2 * _MOST_LOST * abs(fit.correlation) * variance
    return HeldMap(placement, old @ turn, slack)


def settled_start(anchors: Anchors, X_hat: np.ndarray, workers: Workers) -> np.ndarray:
    """Positions on the other map; new points get the position of their nearest neighbour in the data."""
    start, known = anchors.positions.copy(), anchors.known
    new = np.flatnonzero(~np.isfinite(start[:, 0]))
    search = Search(X_hat[known])
    parts = workers.map(lambda b: search(X_hat[new[b]], 1)[:, 0], blocks(len(new), TILE))
    start[new] = anchors.positions[known[np.concatenate([np.empty(0, np.intp), *parts])]]
    return start


def stays(held: tuple[float, float], free: tuple[float, float]) -> bool:
    """Whether a held map is about as good as a free one, by correlation of angles and neighbour loss."""
    return held[0] >= free[0] - _MOST_LOST_BY_STAYING and held[1] <= free[1] + _MOST_TORN
