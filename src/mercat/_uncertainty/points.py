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
    filled_up,
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
from .._detail.neighbors import Search
from .._math.angles import Calibration, Moments, mean_square
from .._math.sphere import geodesic, normalize, tangent, tangent_frame
from .._solve.fitted_map import within_reach
from .._solve.initial import scaled
from .._solve.placement import LandmarkPlacer, placed_moments

ELSEWHERE = 0.3  # smallest distance of an alternative position, in radians ...
_STEPS_ELSEWHERE = 10  # ... after this number of additional steps
N_LEGS = 100  # number of landmarks used to judge the angles of a point
_ROWS_ON_DEVICE = 1 << 14  # rows per block on a device
_MIN_LOSS = 1e-6
_ANTIPODAL = (
    1e-9  # smallest 1 + cosine between positions: for opposite ones, all great circles are shortest
)
_RECORDS = ("spectral", "own", "rotation", "legs", "reference", "null")
# Columns of the results per point.
PLACE, AXES, ALTERNATIVE = slice(0, 3), slice(3, 9), slice(9, 12)
GAP, WINS, TORN, P_VALUE, N_COLUMNS = 12, 13, 14, 15, 16


class OtherMap(NamedTuple):
    """Another map of the data, rotated onto the map and scaled to its size."""

    placer: LandmarkPlacer
    # (20, 3): maps `monomials` of a position on the map to the approximate position on this one.
    warp: np.ndarray
    search: bool  # whether points are placed by a full search
    centre: np.ndarray  # (3,) of this map
    scale: float  # from the size of this map to that of the map

    def place(self, X_hat: Array, starts: Array, H: Array | None) -> Array:
        """Positions of points, scaled, from the best of the starts (b x n x 3); NaN for none.

        `H` are the inverse Hessians at the positions on the map, if known.
        """
        found = self.placed(X_hat, starts, H)
        centre = namespace(found).asarray(self.centre, **like(found))
        return scaled(found, centre, self.scale)

    def placed(self, X_hat: Array, starts: Array, H: Array | None) -> Array:
        """Positions as by `place`, before scaling."""
        return self.placer.place(X_hat) if self.search else self.placer.place_near(X_hat, starts, H)


def warped(maps: tuple[OtherMap, ...], Y: Array) -> Array:
    """Approximate positions of points on other maps (m x b x 3), from positions Y (b x 3) on the map."""
    xp, b = namespace(Y), Y.shape[0]
    warps = xp.stack([xp.asarray(m.warp, **like(Y)) for m in maps])
    # One narrow product per map: in a wide one, the result of a row may depend on its position.
    found = (filled_up(monomials(Y))[None, ...] @ warps)[:, :b, :]
    return xp.reshape(normalize(xp.reshape(found, (-1, 3))), (len(maps), b, 3))


class Taken(NamedTuple):
    """Points of the map: X_hat, positions, and their rows in the data."""

    X: np.ndarray
    Y: np.ndarray
    rows: np.ndarray

    def some(self, rows: np.ndarray) -> Taken:
        """Points of some rows; `self.rows` must be ascending."""
        at = np.searchsorted(self.rows, rows)
        return Taken(self.X[at], self.Y[at], rows)


class Halves(NamedTuple):
    """How the scatter of maps of halves of the data predicts that of maps of new data."""

    inflation: float  # ratio of the variances of positions
    stability: float  # of the maps of halves
    mean: np.ndarray  # (3,) of the positions on the map

    def drift(self, Y: Array) -> Array:
        """Expected displacement, in the tangent plane, of points at Y (b x 3) on maps of new data.

        To the extent that maps disagree, positions are random, and new ones are nearer the mean.
        """
        xp = namespace(Y)
        mean = xp.asarray(self.mean, **like(Y))
        return (1 - max(self.stability, 0.0)) * tangent(mean[None, :] - Y, Y)


class Legs(NamedTuple):
    """Landmarks used to judge the angles at a point, and the calibration line."""

    X: np.ndarray
    Y: np.ndarray
    line: Calibration

    def unexplained(self, X_hat: Array, Y: Array) -> Array:
        """Fraction of the variance of the cosines at each point that the map does not explain."""
        one_tile = max(X_hat.shape[0], 1)
        moments = placed_moments(X_hat, Y, self.X, self.Y, 0, N_LEGS, one_tile)
        return _unexplained(moments, self.line)


class Judge(NamedTuple):
    """Computes the uncertainty of rows; the result of a row does not depend on other rows."""

    spectral: Any
    own: LandmarkPlacer  # of the map, before rotation
    rotation: np.ndarray
    maps: tuple[OtherMap, ...]
    halves: Halves | None  # if pairs of maps are compared with each other instead of with the map
    legs: Legs
    reference: Taken
    k: int  # number of true neighbours
    far: float
    null: np.ndarray  # (N,) fractions of unexplained variance for permuted data, ascending
    loss: float  # of the map

    def to_device(self, rows: RowSource) -> Judge:
        moved = {name: rows.to_device(getattr(self, name)) for name in _RECORDS}
        return self._replace(**moved, maps=tuple(rows.to_device(m) for m in self.maps))

    def judged(self, rows: Any, places: Array | None, others: Array | None, start: int) -> Array:
        """All columns (b x N_COLUMNS) of some rows, the first of which has the index `start`.

        `places` (b x 3) are the positions on the map, `others` (n_maps x b x 3) on the other maps, if known.
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
                for t in blocks(X_hat.shape[0], TILE if on_host(X_hat) else _ROWS_ON_DEVICE)
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
            found = self._on_other_maps(X_hat, Y, raw, other_minimum)
        else:
            found = xp.asarray(others, **single)
        places = xp.astype(Y, wide)
        axes = scatter(xp.astype(found, wide), places, self.halves)
        alternative, wins = elsewhere(found, Y)
        alternative = xp.where((wins > 0)[:, None], alternative, other_minimum)
        wins = xp.where(xp.isnan(alternative[:, 0]), xp.nan, wins)
        gap = self._excess(X_hat, raw, product(alternative, turned))
        gap = gap / max(self.loss, _MIN_LOSS) ** 2
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

    def _on_other_maps(self, X_hat: Array, Y: Array, raw: Array, other_minimum: Array) -> Array:
        """Positions on other maps (m x b x 3) of points at Y, or `raw` before rotation."""
        xp = namespace(X_hat)
        starts = [warped(self.maps, Y)]
        if bool(xp.any(xp.isfinite(other_minimum))):
            starts.append(warped(self.maps, other_minimum))
        H = self.own.inverse_hessians(X_hat, raw)
        if H is not None:
            R = xp.asarray(self.rotation, **like(H))
            H = R @ H @ R.T
        stacked = xp.stack(starts, axis=2)
        return xp.stack([m.place(X_hat, stacked[k, ...], H) for k, m in enumerate(self.maps)])

    def _excess(self, X_hat: Array, Y: Array, Z: Array) -> Array:
        """`excess` of points at Z, NaN for none."""
        xp = namespace(X_hat)
        found = xp.full_like(Z[:, 0], xp.nan)
        (rows,) = xp.nonzero(xp.isfinite(Z[:, 0]))
        if rows.shape[0] > 0:
            found[rows] = self.own.excess(*(xp.take(a, rows, axis=0) for a in (X_hat, Y, Z)))
        return found

    def _other_minimum(self, X_hat: Array, Y: Array) -> Array:
        """Best minimum of the loss of each point far from Y (b x 3); NaN if there is none."""
        xp = namespace(X_hat)
        there, _ = self.own.place_roughly(X_hat, Y)
        away = geodesic(there, Y) > ELSEWHERE
        (rows,) = xp.nonzero(away)
        if rows.shape[0] > 0:  # few rows, since most descents return to Y
            start = xp.take(there, rows, axis=0)[:, None, :]
            there[rows, :] = self.own.place_from(
                xp.take(X_hat, rows, axis=0), start, _STEPS_ELSEWHERE
            )[0]
        away = away & (geodesic(there, Y) > ELSEWHERE)
        return xp.where(away[:, None], there, xp.nan)


def scatter(found: Array, Y: Array, halves: Halves | None = None) -> Array:
    """Axes (b x 2 x 3) of the scatter of positions on maps of new data about Y (b x 3).

    An axis is a tangent vector at Y whose length is the root mean square deviation along it, longer one
    first. Positions on other maps (m x b x 3) are such positions; with `halves`, the scatter is predicted
    from the differences between each two.
    """
    xp = namespace(found)
    frame = tangent_frame(Y)
    if halves is None:
        u, v = unstack(tangent_coordinates(Y, frame, found))
        uu, vv, uv = (xp.mean(p, axis=0) for p in (u * u, v * v, u * v))
    else:
        u, v = unstack(differences(Y, frame, found))
        drift = halves.drift(Y)
        du, dv = (row_dot(drift, axis) for axis in unstack(frame))
        uu, vv, uv = (
            halves.inflation * xp.mean(p, axis=0) + q
            for p, q in ((u * u, du * du), (v * v, dv * dv), (u * v, du * dv))
        )
    middle, half = (uu + vv) / 2, xp.hypot((uu - vv) / 2, uv)
    angle = xp.atan2(uv, (uu - vv) / 2) / 2
    c, s = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    U, V = unstack(frame)
    long = xp.sqrt(middle + half)[:, None] * (c * U + s * V)
    short = xp.sqrt(xp.maximum(middle - half, xp.zeros_like(half)))[:, None] * (c * V - s * U)
    return xp.stack([long, short], axis=1)


def differences(Y: Array, frame: Array, found: Array) -> Array:
    """Displacements between maps 2 k and 2 k + 1 of points at Y (b x 3): coordinates (2 x m // 2 x b).

    Displacements on the sphere from positions `found` (m x b x 3) on the one map to those on the other, moved
    to Y along great circles; `frame` (2 x b x 3) spans the tangent planes at Y.
    """
    xp, m = namespace(found), found.shape[0]
    first, second = found[: m - m % 2 : 2, ...], found[1::2, ...]
    return tangent_coordinates(
        first, xp.stack([transported(v, Y, first) for v in unstack(frame)]), second
    )


def transported(vectors: Array, Y: Array, places: Array) -> Array:
    """Tangent vectors (b x 3) at Y, moved along great circles to places (m x b x 3)."""
    xp = namespace(Y)
    one_plus_cosine = xp.sum(places * Y, axis=-1) + 1
    along = xp.sum(places * vectors, axis=-1) / xp.clip(one_plus_cosine, _ANTIPODAL, None)
    return vectors - along[..., None] * (places + Y)


def elsewhere(found: Array, Y: Array) -> tuple[Array, Array]:
    """Most frequent position of each point on maps where it is far from Y, and fraction of these maps.

    Of the positions (m x b x 3) far from Y, the one with the most others nearby defines a group, whose mean
    is returned (b x 3), NaN if there is none.
    """
    xp, m = namespace(found), found.shape[0]
    place, wins = xp.full_like(Y, xp.nan), xp.zeros_like(Y[:, 0])
    away = geodesic(found, Y[None, ...]) > ELSEWHERE
    (rows,) = xp.nonzero(xp.any(away, axis=0))
    if rows.shape[0] == 0:
        return place, wins
    found, away = (xp.take(a, rows, axis=1) for a in (found, away))
    near = xp.sum(found[:, None, ...] * found[None, ...], axis=-1) > math.cos(ELSEWHERE)
    near = near & away[None, ...]
    n_near = xp.where(away, xp.sum(xp.astype(near, xp.int64), axis=1), -1)
    most = xp.argmax(n_near, axis=0)
    is_center = xp.arange(m, **beside(found))[:, None] == most[None, :]
    group = xp.astype(xp.any(near & is_center[:, None, :], axis=0) & away, found.dtype)
    place[rows, :] = normalize(xp.sum(group[..., None] * found, axis=0))
    wins[rows] = xp.sum(group, axis=0) / m
    return place, wins


def tangent_coordinates(center: Array, frame: Array, Y: Array) -> Array:
    """Coordinates (2 x .. x b), in radians, of Y (.. x b x 3) in tangent planes (2 x b x 3) at centres."""
    xp = namespace(Y)
    along = xp.stack([row_dot(Y, axis) for axis in unstack(frame)])
    sine = xp.sqrt(xp.sum(along * along, axis=0))
    distance = geodesic(Y, xp.broadcast_to(center, Y.shape))
    zero = sine == 0
    return along * xp.where(zero, xp.ones_like(sine), distance / xp.where(zero, 1.0, sine))


def torn_share(X_hat: Array, Y: Array, start: int, reference: Taken, k: int, far: float) -> Array:
    """Fraction of the k nearest reference points that are far away on the map, as in `torn_neighbors`."""
    xp = namespace(X_hat)
    k = min(k, reference.X.shape[0] - 1)
    n_near = max(k, int(far * reference.X.shape[0]))
    own = xp.full(X_hat.shape[:1], -1, dtype=xp.int64, **beside(X_hat))
    at = xp.asarray(reference.rows, **beside(X_hat)) - start
    (members,) = xp.nonzero((at >= 0) & (at < X_hat.shape[0]))
    own[at[members]] = members  # reference points among these

    search = Search(reference.X) if on_host(X_hat) else None

    def torn(X: Array, Y: Array, own: Array) -> tuple[Array]:
        (found,) = xp.nonzero(own >= 0)
        D_map = _squared_distances(Y, reference.Y)
        D_map[found, own[found]] = xp.inf
        if search is None:
            D = _squared_distances(X, reference.X)
            D[found, own[found]] = xp.inf
            there = D_map.gather(1, D.topk(k, dim=1, largest=False, sorted=False).indices)
        else:
            there = np.take_along_axis(D_map, search(X, k, own), axis=1)
        limit = xp.max(_smallest(D_map, n_near), axis=1)
        return (xp.mean(xp.astype(there > limit[:, None], X.dtype), axis=1),)

    return in_tiles(torn, X_hat, Y, own)[0]


def _squared_distances(X: Array, P: Array) -> Array:
    xp = namespace(X)
    D = row_product(X, xp.matrix_transpose(P))
    D *= -2
    D += row_dot(P, P)
    D += row_dot(X, X)[:, None]
    return D


def _smallest(D: Array, k: int) -> Array:
    """The k smallest entries of each row, unordered."""
    if on_host(D):
        return np.partition(D, k - 1, axis=1)[:, :k]
    return D.topk(k, dim=1, largest=False, sorted=False).values


def _unexplained(moments: Moments, line: Calibration) -> Array:
    xp = namespace(moments.b)
    count = xp.maximum(moments.count, xp.ones_like(moments.count))
    variance = moments.aa / count - (moments.a / count) ** 2
    tiny = xp.finfo(variance.dtype).smallest_normal
    return mean_square(moments, line) / xp.maximum(variance, xp.full_like(variance, tiny))


def p_values(unexplained: Array, null: Array) -> Array:
    """Fraction of the points of permuted data, including the point itself, that fit at least as well."""
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


def product(A: Array, B: Array) -> Array:
    """A @ B.T in the precision of A; a row does not depend on other rows."""
    xp = namespace(A)
    B = xp.matrix_transpose(xp.asarray(B, **like(A)))
    return in_tiles(lambda rows: (rows @ B,), A)[0]
