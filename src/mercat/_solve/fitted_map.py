"""A finished map as rows meet it: what places them on it, and what judges where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import TILE, Array, namespace, rows_alike, widest
from .._data.source import blocks_from
from .._detail.descent import DetailPlacer
from .._math.angles import Calibration, Moments, mean_square
from .._reduce.reducer import Reducer, project_rows
from .placement import LandmarkPlacer, placed_moments

_LEGS_A_TILE, _LEGS_IN_ALL = 32, 2000  # landmarks that the loss of placed points is judged by
_FARTHEST = 1e12  # in units of the data's spread: beyond it squares leave single precision


class FittedMap(NamedTuple):
    """All that places a row of X on the finished map, the same for training rows and new ones.

    A point is placed against landmarks, or, on a map with detail, by its neighbours as well.
    """

    spectral: Reducer
    against: LandmarkPlacer | DetailPlacer

    def block(self, rows: Any) -> tuple[Array, Array]:
        """X_hat and positions of some rows, each to the bit as alone, before the map is turned."""
        with rows_alike():
            X_hat = within_reach(self.spectral, rows)
            return X_hat, self.against.place(X_hat)


def within_reach(spectral: Reducer, rows: Any) -> Array:
    """X_hat of some rows in single precision, which must hold their squares."""
    X_hat = project_rows(spectral, rows)
    xp = namespace(X_hat)
    farthest = float(xp.max(xp.abs(X_hat)))
    if not farthest < _FARTHEST:
        raise ValueError(
            f"X must lie within {_FARTHEST:g} times the spread of the training data, "
            f"got a point at {farthest:.3g} times."
        )
    return xp.astype(X_hat, xp.float32)


class LossSample(NamedTuple):
    """Landmarks as the legs of points: other ones for each tile, so that together they speak for all."""

    X: Array
    Y: Array
    n_legs: int  # a tile
    tile: int

    def moments(self, X_hat: Array, Y: Array, start: int) -> Moments:
        """Of points as apices, the first of them number `start`."""
        xp, wide = namespace(Y), widest(Y)
        judged = []
        for t in blocks_from(start, Y.shape[0], self.tile):
            first = (start + t.start) // self.tile * self.n_legs
            moments = placed_moments(X_hat[t, :], Y[t, :], self.X, self.Y, first, self.n_legs)
            judged.append([xp.astype(m, wide) for m in moments])
        return Moments(*(xp.concat(m) for m in zip(*judged, strict=True)))

    def share(self, n: int, tile: int = TILE) -> LossSample:
        """The same for n points in tiles: more legs for each where there are few."""
        return self._replace(n_legs=max(_LEGS_A_TILE, _LEGS_IN_ALL * tile // n), tile=tile)


def loss_sample(X_hat: np.ndarray, Y: np.ndarray) -> LossSample:
    """Landmarks at Y, for very many points."""
    return LossSample(X_hat.astype(np.float32), Y.astype(np.float32), _LEGS_A_TILE, TILE)


class ScoredMap(NamedTuple):
    """Places rows and judges them there."""

    placer: FittedMap
    loss_sample: LossSample
    calibration: Calibration

    def block(self, rows: Any, start: int) -> tuple[Array, Moments]:
        """Positions of rows, the first of them number `start`, and their moments as apices."""
        X_hat, Y = self.placer.block(rows)
        return Y, self.loss_sample.moments(X_hat, Y, start)

    def point_loss(self, moments: Moments) -> Array:
        """The loss at each point."""
        return namespace(moments.b).sqrt(mean_square(moments, self.calibration))
