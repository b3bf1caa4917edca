"""A finished map: placing rows on it, and computing their losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import TILE, Array, namespace, rows_alike, widest
from .._detail.new_points import DetailPlacer
from .._math.angles import Calibration, Moments, mean_square
from .._reduce.reducer import Reducer, project_rows
from .placement import LandmarkPlacer, placed_moments

# Number of landmarks that are legs in the loss of placed points: at least the first number in each tile, and
# about the second in all tiles together.
_LEGS_PER_TILE, _LEGS_IN_ALL = 32, 2000
# Largest coordinate, in units of the spread of the data; squares of larger ones might overflow.
_MAX_COORDINATE = 1e12


class FittedMap(NamedTuple):
    """Places rows of X on the finished map, whether training rows or new ones.

    A point is placed against landmarks and, on a map with detail, by its neighbours.
    """

    spectral: Reducer
    against: LandmarkPlacer | DetailPlacer

    def block(self, rows: Any) -> tuple[Array, Array]:
        """X_hat and positions of rows before the map is rotated; a row's are bit-identical in any batch."""
        with rows_alike():
            X_hat = project_within_range(self.spectral, rows)
            return X_hat, self.against.place(X_hat)


def project_within_range(reducer: Reducer, rows: Any) -> Array:
    """X_hat of rows in single precision; raise ValueError if their squares might overflow."""
    X_hat = project_rows(reducer, rows)
    xp = namespace(X_hat)
    largest = max(float(xp.max(X_hat)), -float(xp.min(X_hat)))
    if not largest < _MAX_COORDINATE:
        raise ValueError(
            f"X must lie within {_MAX_COORDINATE:g} times the spread of the training data, "
            f"got a point at {largest:.3g} times."
        )
    return xp.astype(X_hat, xp.float32)


class LossSample(NamedTuple):
    """Landmarks X at Y that are legs in the loss of placed points, different ones for each tile of points."""

    X: Array
    Y: Array
    n_legs: int  # number of legs per tile
    tile: int

    def moments(self, X_hat: Array, Y: Array, start: int) -> Moments:
        """Moments of points as apices, the first of which has the index `start`."""
        xp, wide = namespace(Y), widest(Y)
        moments = placed_moments(X_hat, Y, self.X, self.Y, start, self.n_legs, self.tile)
        return Moments(*(xp.astype(m, wide, copy=False) for m in moments))

    def for_points(self, n: int, tile: int = TILE) -> LossSample:
        """The sample for n points in tiles; fewer points get more legs each."""
        return self._replace(n_legs=max(_LEGS_PER_TILE, _LEGS_IN_ALL * tile // n), tile=tile)


def loss_sample(X_hat: np.ndarray, Y: np.ndarray) -> LossSample:
    """`LossSample` of landmarks at Y, with the number of legs for very many points."""
    return LossSample(X_hat.astype(np.float32), Y.astype(np.float32), _LEGS_PER_TILE, TILE)


class ScoredMap(NamedTuple):
    """Places rows and computes their losses."""

    placer: FittedMap
    loss_sample: LossSample
    calibration: Calibration

    def block(self, rows: Any, start: int) -> tuple[Array, Moments]:
        """Positions of rows, the first of which has the index `start`, and their moments as apices."""
        X_hat, Y = self.placer.block(rows)
        return Y, self.loss_sample.moments(X_hat, Y, start)

    def point_loss(self, moments: Moments) -> Array:
        """Loss of each point."""
        return namespace(moments.b).sqrt(mean_square(moments, self.calibration))
