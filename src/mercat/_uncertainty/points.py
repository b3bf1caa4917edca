"""Uncertainty of each point from other maps: scatter, alternative position, torn neighbours, p-value.

A `Judge` has everything needed for a row, on the device of the rows; each row is judged on its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import (
    TILE,
    Array,
    beside,
    blocks,
    in_tiles,
    like,
    namespace,
    on_host,
    row_dot,
    row_product,
    rows_alike,
    unstack,
    widest,
)
from .._data.source import RowSource
from .._math.angles import Calibration, Moments, mean_square
from .._math.sphere import geodesic, normalize, tangent_frame
from .._solve.fitted_map import within_reach
from .._solve.placement import LandmarkPlacer, placed_moments

ELSEWHERE = 0.3  # radians from which another minimum is another place ...
_STEPS_ELSEWHERE = 10  # ... after this many more steps
N_LEGS = 100  # landmarks that the angles of a point are judged by
_ROWS_THERE = 1 << 14  # rows that a device judges at a time
_LEAST_LOSS = 1e-6
_RECORDS = ("spectral", "own", "rotation", "legs", "reference", "null")
# Columns of what is found out about a point.
PLACE, AXES, ALTERNATIVE = slice(0, 3), slice(3, 9), slice(9, 12)
GAP, WINS, TORN, P_VALUE, N_COLUMNS = 12, 13, 14, 15, 16


class OtherMap(NamedTuple):
    """Another map of the data: what places points on it, and how it is turned onto the map.

    `warp` leads from a place on the map to about the same place on this one, before it is turned.
    """

    placer: LandmarkPlacer
    rotation: np.ndarray  # (3, 3)
    warp: np.ndarray  # (20, 3)
    search: bool  # whether a point is looked for all over this map

    def place(self, X_hat: Array, starts: Array) -> Array:
        """Places of points, turned onto the map, from where they may be on that (b x n x 3)."""
        if self.search:
            Y = self.placer.place(X_hat)
        else:
            xp = namespace(X_hat)
            warped = [_warped(starts[:, k, :], self.warp) for k in range(starts.shape[1])]
            Y, _ = self.placer.place_from(X_hat, xp.stack(warped, axis=1))
        return product(Y, self.rotation)


class Taken(NamedTuple):
    """Points of the map, denoised, their places on it, and the rows of the data that they are."""

    X: np.ndarray
    Y: np.ndarray
    rows: np.ndarray

    def some(self, rows: np.ndarray) -> Taken:
        """Those of some rows, where all rows are ascending."""
        at = np.searchsorted(self.rows, rows)
        return Taken(self.X[at], self.Y[at], rows)


class Legs(NamedTuple):
    """Landmarks that angles at a point are judged by, and the line that these are measured against."""

    X: np.ndarray
    Y: np.ndarray
    line: Calibration

    def unexplained(self, X_hat: Array, Y: Array) -> Array:
        """Share of the variance of the cosines at each point that the map does not explain."""
        moments = placed_moments(X_hat, Y, self.X, self.Y, 0, N_LEGS)
        return _unexplained(moments, self.line)


class Judge(NamedTuple):
    """All that it takes to judge a row, the same whatever rows come with it."""

    spectral: Any
    own: LandmarkPlacer  # of the map, before it is turned
    rotation: np.ndarray
    maps: tuple[OtherMap, ...]
    inflation: float  # of the scatter of maps of the same data, to that of maps of other data
    legs: Legs
    reference: Taken
    k: int  # true neighbours
    far: float
    null: np.ndarray  # (N,) what permuted data leave unexplained, ascending
    loss: float  # of the map

    def to_device(self, rows: RowSource) -> Judge:
        moved = {name: rows.to_device(getattr(self, name)) for name in _RECORDS}
        return self._replace(**moved, maps=tuple(rows.to_device(m) for m in self.maps))

    def judged(self, rows: Any, places: Array | None, others: Array | None, start: int) -> Array:
        """All columns (b x N_COLUMNS) of some rows, the first of them number `start`.

        `places` (b x 3) are theirs on the map, `others` (n_maps x b x 3) those on the other maps, if known.
        """
        with rows_alike():
            X_hat = within_reach(self.spectral, rows)
            parts = [
                self._judged(
                    X_hat[t, :],
                    None if places is None else places[t, :],
                    None if others is None else others[:, t, :],
                    start + t.start,
                )
                for t in blocks(X_hat.shape[0], TILE if on_host(X_hat) else _ROWS_THERE)
            ]
        return namespace(parts[0]).concat(parts)

    def _judged(self, X_hat: Array, Y: Array | None, others: Array | None, start: int) -> Array:
        xp, wide = namespace(X_hat), widest(X_hat)
        single = like(X_hat)
        turned = self.rotation.T
        if Y is None:
            Y = normalize(product(xp.astype(self.own.place(X_hat), wide), self.rotation))
        Y = xp.asarray(Y, **single)
        raw = product(Y, turned)
        other_minimum = product(self._other_minimum(X_hat, raw), self.rotation)
        if others is None:
            starts = xp.stack([Y, other_minimum], axis=1)
            found = xp.stack([m.place(X_hat, starts) for m in self.maps])
        else:
            found = xp.asarray(others, **single)
        places = xp.astype(Y, wide)
        axes = scatter(xp.astype(found, wide), places, self.inflation)
        alternative, wins = elsewhere(found, Y)
        alternative = xp.where((wins > 0)[:, None], alternative, other_minimum)
        wins = xp.where(xp.isnan(alternative[:, 0]), xp.nan, wins)
        gap = self.own.excess(X_hat, raw, product(alternative, turned))
        gap = gap / max(self.loss, _LEAST_LOSS) ** 2
        torn = torn_share(X_hat, Y, start, self.reference, self.k, self.far)
        unexplained = self.legs.unexplained(X_hat, Y)
        p = p_values(xp.astype(unexplained, wide), self.null)
        columns = [xp.astype(c, wide) for c in (gap, wins, torn, p)]
        return xp.concat(
            [
                places,
                xp.reshape(axes, (-1, 6)),
                xp.astype(alternative, wide),
                xp.stack(columns, axis=1),
            ],
            axis=1,
        )

    def _other_minimum(self, X_hat: Array, Y: Array) -> Array:
        """The best minimum of each point's loss that lies elsewhere (b x 3); NaN for none."""
        xp = namespace(X_hat)
        there, _ = self.own.place_roughly(X_hat, Y)
        away = geodesic(there, Y) > ELSEWHERE
        (rows,) = xp.nonzero(away)
        if rows.shape[0] > 0:  # few: most descents lead back
            start = xp.take(there, rows, axis=0)[:, None, :]
            there[rows, :] = self.own.place_from(
                xp.take(X_hat, rows, axis=0), start, _STEPS_ELSEWHERE
            )[0]
        away = away & (geodesic(there, Y) > ELSEWHERE)
        return xp.where(away[:, None], there, xp.nan)


def scatter(found: Array, Y: Array, inflation: float) -> Array:
    """Axes (b x 2 x 3) of the scatter about places Y (b x 3) of points on other maps (m x b x 3).

    An axis is a tangent vector at Y as long as the root mean square deviation along it, the longer one first.
    """
    xp = namespace(found)
    frame = tangent_frame(Y)
    u, v = unstack(tangent_coordinates(Y, frame, found))
    uu, vv, uv = (inflation * xp.mean(p, axis=0) for p in (u * u, v * v, u * v))
    middle, half = (uu + vv) / 2, xp.hypot((uu - vv) / 2, uv)
    angle = xp.atan2(uv, (uu - vv) / 2) / 2
    c, s = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    U, V = unstack(frame)
    long = xp.sqrt(middle + half)[:, None] * (c * U + s * V)
    short = xp.sqrt(xp.maximum(middle - half, xp.zeros_like(half)))[:, None] * (c * V - s * U)
    return xp.stack([long, short], axis=1)


def elsewhere(found: Array, Y: Array) -> tuple[Array, Array]:
    """The most frequent position of a point on maps where it is far from Y, and the share of these maps.

    Of the positions (m x b x 3) far from Y, the one with most others nearby defines a group, whose mean is
    returned (b x 3), NaN if there is none.
    """
    xp, m = namespace(found), found.shape[0]
    away = geodesic(found, Y[None, ...]) > ELSEWHERE
    near = xp.sum(found[:, None, ...] * found[None, ...], axis=-1) > math.cos(ELSEWHERE)
    near = near & away[None, ...]
    company = xp.where(away, xp.sum(xp.astype(near, xp.int64), axis=1), -1)
    most = xp.argmax(company, axis=0)
    stands = xp.arange(m, **beside(found))[:, None] == most[None, :]
    group = xp.astype(xp.any(near & stands[:, None, :], axis=0) & away, found.dtype)
    size = xp.sum(group, axis=0)
    mean = normalize(xp.sum(group[..., None] * found, axis=0))
    return xp.where((size > 0)[:, None], mean, xp.nan), size / m


def tangent_coordinates(center: Array, frame: Array, Y: Array) -> Array:
    """Places Y (.. x b x 3) in the tangent planes (2 x b x 3) at centres (b x 3): 2 x .. x b, in radians."""
    xp = namespace(Y)
    along = xp.stack([row_dot(Y, axis) for axis in unstack(frame)])
    sine = xp.sqrt(xp.sum(along * along, axis=0))
    distance = geodesic(Y, xp.broadcast_to(center, Y.shape))
    zero = sine == 0
    return along * xp.where(zero, xp.ones_like(sine), distance / xp.where(zero, 1.0, sine))


def torn_share(X_hat: Array, Y: Array, start: int, reference: Taken, k: int, far: float) -> Array:
    """Share of the k nearest reference points that lie far away on the map, as `torn_neighbors` has it."""
    xp = namespace(X_hat)
    k = min(k, reference.X.shape[0] - 1)
    near = max(k, int(far * reference.X.shape[0]))
    rows = start + xp.arange(X_hat.shape[0], **beside(X_hat))

    def torn(X: Array, Y: Array, rows: Array) -> tuple[Array]:
        itself = xp.nonzero(rows[:, None] == reference.rows[None, :])
        D, D_map = _squared_distances(X, reference.X), _squared_distances(Y, reference.Y)
        D[itself] = D_map[itself] = xp.inf
        there = _at_smallest(D, k, D_map)
        limit = xp.max(_smallest(D_map, near), axis=1)
        return (xp.mean(xp.astype(there > limit[:, None], X.dtype), axis=1),)

    return in_tiles(torn, X_hat, Y, rows)[0]


def _squared_distances(X: Array, P: Array) -> Array:
    xp = namespace(X)
    D = row_product(X, xp.matrix_transpose(P))
    D *= -2
    D += row_dot(P, P)
    D += row_dot(X, X)[:, None]
    return D


def _smallest(D: Array, k: int) -> Array:
    """The k smallest entries of each row, in no order."""
    if on_host(D):
        return np.partition(D, k - 1, axis=1)[:, :k]
    return D.topk(k, dim=1, largest=False, sorted=False).values


def _at_smallest(D: Array, k: int, values: Array) -> Array:
    """Values in the columns of the k smallest entries of each row, in no order."""
    if on_host(D):
        columns = np.argpartition(D, k - 1, axis=1)[:, :k]
        return np.take_along_axis(values, columns, axis=1)
    return values.gather(1, D.topk(k, dim=1, largest=False, sorted=False).indices)


def _unexplained(moments: Moments, line: Calibration) -> Array:
    xp = namespace(moments.b)
    count = xp.maximum(moments.count, xp.ones_like(moments.count))
    variance = moments.aa / count - (moments.a / count) ** 2
    tiny = xp.finfo(variance.dtype).smallest_normal
    return mean_square(moments, line) / xp.maximum(variance, xp.full_like(variance, tiny))


def p_values(unexplained: Array, null: Array) -> Array:
    """Share of the points of permuted data, and the point itself, that fit at least as well."""
    xp = namespace(unexplained)
    at_least = xp.searchsorted(xp.asarray(null, **like(unexplained)), unexplained, side="right")
    return (xp.astype(at_least, unexplained.dtype) + 1) / (null.shape[0] + 1)


def monomials(Y: Array) -> Array:
    """Products of up to three coordinates (b x 20)."""
    xp = namespace(Y)
    x, y, z = Y[:, 0], Y[:, 1], Y[:, 2]
    one, second = xp.ones_like(x), [x * x, y * y, z * z, x * y, x * z, y * z]
    third = [x * s for s in second] + [y * y * y, y * y * z, y * z * z, z * z * z]
    return xp.stack([one, x, y, z, *second, *third], axis=1)


def _warped(Y: Array, warp: Array) -> Array:
    return normalize(product(monomials(Y), namespace(Y).matrix_transpose(warp)))


def product(A: Array, B: Array) -> Array:
    """A @ B.T in the precision of A, each row as alone."""
    xp = namespace(A)
    B = xp.matrix_transpose(xp.asarray(B, **like(A)))
    return in_tiles(lambda rows: (rows @ B,), A)[0]
