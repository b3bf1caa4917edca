"""Uncertainty of each point from other maps: scatter, alternative position, torn neighbours, p-value.

A `PointEstimator` computes them for some rows, on the device of the rows; the result of a row does not depend
on other rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import (
    TILE,
    Array,
    blocks,
    filled_up,
    in_tiles,
    like,
    namespace,
    on_host,
    row_dot,
    row_product,
    rows_alike,
    same_device,
    unstack,
    widest,
)
from .._data.source import RowSource
from .._detail.neighbors import Search
from .._math.angles import Calibration, Moments, mean_square
from .._math.sphere import geodesic, normalize, tangent, tangent_frame
from .._solve.fitted_map import project_within_range
from .._solve.initial import scaled
from .._solve.placement import LandmarkPlacer, placed_moments

MIN_ALTERNATIVE_DISTANCE = 0.3  # minimum distance from the position on the map, in radians
_N_EXTRA_STEPS = 10  # extra steps of a descent that ends far from the position on the map
N_ANGLE_LANDMARKS = 100  # number of landmarks whose angles at a point are compared
_ROWS_ON_DEVICE = 1 << 14  # rows per block on a device
_MIN_LOSS = 1e-6  # smallest loss of a map that is a divisor
_MIN_DISAGREEMENT = 1e-6  # smallest disagreement of maps of noise that is a divisor
# Minimum of 1 + the cosine between positions: for opposite ones, all great circles are shortest.
_MIN_ONE_PLUS_COSINE = 1e-9
_FIELDS_ON_DEVICE = ("spectral", "placer", "rotation", "angle_sample", "reference", "null")
# Columns of the results per point.
PLACE, AXES, ALTERNATIVE = slice(0, 3), slice(3, 9), slice(9, 12)
GAP, WINS, TORN, P_VALUE, N_COLUMNS = 12, 13, 14, 15, 16


class OtherMap(NamedTuple):
    """Another map of the data, rotated onto the map and scaled to its size."""

    placer: LandmarkPlacer
    # (20, 3): maps `monomials` of a position on the map to the approximate position on this one.
    warp: np.ndarray
    full_search: bool  # whether points are placed by a full search instead of from starts
    centre: np.ndarray  # (3,) of this map
    scale: float  # factor from the size of this map to that of the map

    def place(self, X_hat: Array, starts: Array, H: Array | None) -> Array:
        """Scaled positions of points, from the best of their starts (b x n x 3; NaN for missing starts).

        `H` are the inverse Hessians at the positions on the map, if known.
        """
        Y = self.place_unscaled(X_hat, starts, H)
        centre = namespace(Y).asarray(self.centre, **like(Y))
        return scaled(Y, centre, self.scale)

    def place_unscaled(self, X_hat: Array, starts: Array, H: Array | None) -> Array:
        """Positions before scaling, with the same arguments as `place`."""
        if self.full_search:
            return self.placer.place(X_hat)
        return self.placer.place_near(X_hat, starts, H)


def warp_positions(maps: tuple[OtherMap, ...], Y: Array) -> Array:
    """Approximate positions of points on other maps (m x b x 3), from positions Y (b x 3) on the map."""
    xp, b = namespace(Y), Y.shape[0]
    warps = xp.stack([xp.asarray(m.warp, **like(Y)) for m in maps])
    # One narrow product per map: in a wide one, the result of a row may depend on its position.
    positions = (filled_up(monomials(Y))[None, ...] @ warps)[:, :b, :]
    return xp.reshape(normalize(xp.reshape(positions, (-1, 3))), (len(maps), b, 3))


class MapPoints(NamedTuple):
    """Some points of the map: X_hat, positions, and their rows in the data (ascending for `subset`)."""

    X: np.ndarray
    Y: np.ndarray
    rows: np.ndarray

    def subset(self, rows: np.ndarray) -> MapPoints:
        """The points of some of the rows."""
        indices = np.searchsorted(self.rows, rows)
        return MapPoints(self.X[indices], self.Y[indices], rows)


class HalfMapScatter(NamedTuple):
    """Predicts the scatter of maps of new data from that of maps of halves of the data."""

    factor: float  # factor of the mean products of the differences between two halves
    stability: float  # expected agreement of maps of new data
    mean: np.ndarray  # (3,) of the positions on the map

    @classmethod
    def expected(
        cls, agreement: float, by_chance: float, determined: float, mean: np.ndarray
    ) -> HalfMapScatter:
        """Scatter expected from the agreement of maps of halves, and of maps of halves of noise.

        `determined` is the ratio of the variances on maps of new data and of halves for positions that the
        data determine. Arbitrary positions, as those of noise, vary as much on any map: their ratio is one.
        """
        agreement, by_chance = max(agreement, 0.0), min(max(by_chance, 0.0), 1.0)
        structure = max(agreement - by_chance, 0.0) / max(1 - by_chance, _MIN_DISAGREEMENT)
        ratio = 1 - min(structure, 1.0) * (1 - determined)
        stability = 1 - ratio * (1 - agreement)
        # The mean squared distance between two maps is 2 (1 - stability) times the variance on one of them.
        # If one position is known, (1 - stability)^2 of it is `drift`, and 1 - stability^2 is left.
        return cls(ratio * (1 + stability) / 2, stability, mean)

    def drift(self, Y: Array) -> Array:
        """Expected displacement, in the tangent plane, of points at Y (b x 3) on maps of new data.

        Stability is the correlation between positions on two maps: if it is not one, those on new maps tend
        to be nearer the mean.
        """
        xp = namespace(Y)
        mean = xp.asarray(self.mean, **like(Y))
        return (1 - self.stability) * tangent(mean[None, :] - Y, Y)


class AngleSample(NamedTuple):
    """Landmarks that form angles at a point, and the calibration line."""

    X: np.ndarray
    Y: np.ndarray
    line: Calibration

    def unexplained(self, X_hat: Array, Y: Array) -> Array:
        """Fraction of the variance of the cosines at each point that the map does not explain."""
        one_tile = max(X_hat.shape[0], 1)
        moments = placed_moments(X_hat, Y, self.X, self.Y, 0, N_ANGLE_LANDMARKS, one_tile)
        return _unexplained(moments, self.line)


class PointEstimator(NamedTuple):
    """Computes the uncertainty of rows; the result of a row does not depend on other rows."""

    spectral: Any
    placer: LandmarkPlacer  # placer of the map, before rotation
    rotation: np.ndarray
    maps: tuple[OtherMap, ...]
    halves: HalfMapScatter | None  # None if other maps are compared with the map, not in pairs
    angle_sample: AngleSample
    reference: MapPoints
    k: int  # number of neighbours in the data
    # A neighbour is torn if it is farther away on the map than this fraction of all points.
    near_fraction: float
    null: np.ndarray  # (N,) fractions of unexplained variance for permuted data, ascending
    loss: float  # loss of the map

    def to_device(self, rows: RowSource) -> PointEstimator:
        moved = {name: rows.to_device(getattr(self, name)) for name in _FIELDS_ON_DEVICE}
        return self._replace(**moved, maps=tuple(rows.to_device(m) for m in self.maps))

    def results(self, rows: Any, Y: Array | None, others: Array | None, start: int) -> Array:
        """All columns (b x N_COLUMNS) of some rows, the first of which has the index `start`.

        Y (b x 3) are the positions on the map, `others` (n_maps x b x 3) those on the other maps, if known.
        """
        with rows_alike():
            X_hat = project_within_range(self.spectral, rows)
            parts = [
                self._results_of_block(
                    X_hat[t, :],
                    None if Y is None else Y[t, :],
                    None if others is None else others[:, t, :],
                    start + t.start,
                )
                for t in blocks(X_hat.shape[0], TILE if on_host(X_hat) else _ROWS_ON_DEVICE)
            ]
        return namespace(parts[0]).concat(parts)

    def _results_of_block(
        self, X_hat: Array, Y: Array | None, others: Array | None, start: int
    ) -> Array:
        xp, wide = namespace(X_hat), widest(X_hat)
        single = like(X_hat)
        inverse_rotation = self.rotation.T
        if Y is None:
            Y = normalize(product(xp.astype(self.placer.place(X_hat), wide), self.rotation))
        Y = xp.asarray(Y, **single)
        unrotated = product(Y, inverse_rotation)
        second_minimum = product(self._second_minimum(X_hat, unrotated), self.rotation)
        if others is None:
            others = self._positions_on_other_maps(X_hat, Y, unrotated, second_minimum)
        else:
            others = xp.asarray(others, **single)
        wide_Y = xp.astype(Y, wide)
        axes = scatter(xp.astype(others, wide), wide_Y, self.halves)
        alternative, wins = alternative_positions(others, Y)
        alternative = xp.where((wins > 0)[:, None], alternative, second_minimum)
        wins = xp.where(xp.isnan(alternative[:, 0]), xp.nan, wins)
        gap = self._excess(X_hat, unrotated, product(alternative, inverse_rotation))
        gap = gap / max(self.loss, _MIN_LOSS) ** 2
        torn = torn_fraction(X_hat, Y, start, self.reference, self.k, self.near_fraction)
        unexplained = self.angle_sample.unexplained(X_hat, Y)
        p = p_values(xp.astype(unexplained, wide), self.null)
        columns = [xp.astype(c, wide) for c in (gap, wins, torn, p)]
        return xp.concat(
            [
                wide_Y,
                xp.reshape(axes, (-1, 6)),
                xp.astype(alternative, wide),
                xp.stack(columns, axis=1),
            ],
            axis=1,
        )

    def _positions_on_other_maps(
        self, X_hat: Array, Y: Array, unrotated: Array, second_minimum: Array
    ) -> Array:
        """Positions on other maps (m x b x 3) of points at Y, which are at `unrotated` before rotation."""
        xp = namespace(X_hat)
        starts = [warp_positions(self.maps, Y)]
        if bool(xp.any(xp.isfinite(second_minimum))):
            starts.append(warp_positions(self.maps, second_minimum))
        H = None
        if not all(m.full_search for m in self.maps):
            H = self.placer.inverse_hessians(X_hat, unrotated)
        if H is not None:
            R = xp.asarray(self.rotation, **like(H))
            H = R @ H @ R.T
        stacked = xp.stack(starts, axis=2)
        return xp.stack([m.place(X_hat, stacked[k, ...], H) for k, m in enumerate(self.maps)])

    def _excess(self, X_hat: Array, Y: Array, Z: Array) -> Array:
        """Excess loss of points at Z compared with Y; NaN for missing positions."""
        xp = namespace(X_hat)
        excess = xp.full_like(Z[:, 0], xp.nan)
        (rows,) = xp.nonzero(xp.isfinite(Z[:, 0]))
        if rows.shape[0] > 0:
            excess[rows] = self.placer.excess(*(xp.take(a, rows, axis=0) for a in (X_hat, Y, Z)))
        return excess

    def _second_minimum(self, X_hat: Array, Y: Array) -> Array:
        """Best minimum of the loss of each point far from Y (b x 3); NaN if there is none."""
        xp = namespace(X_hat)
        Z, _ = self.placer.place_roughly(X_hat, Y)
        is_far = geodesic(Z, Y) > MIN_ALTERNATIVE_DISTANCE
        (rows,) = xp.nonzero(is_far)
        if rows.shape[0] > 0:  # few rows, since most descents return to Y
            start = xp.take(Z, rows, axis=0)[:, None, :]
            Z[rows, :] = self.placer.place_from(
                xp.take(X_hat, rows, axis=0), start, _N_EXTRA_STEPS
            )[0]
        is_far = is_far & (geodesic(Z, Y) > MIN_ALTERNATIVE_DISTANCE)
        return xp.where(is_far[:, None], Z, xp.nan)


def scatter(others: Array, Y: Array, halves: HalfMapScatter | None = None) -> Array:
    """Axes (b x 2 x 3) of the scatter of positions on maps of new data about Y (b x 3).

    An axis is a tangent vector at Y whose length is the root mean square deviation along it; the longer axis
    comes first. `others` (m x b x 3) are the positions on other maps. With `halves`, the scatter is predicted
    from the differences between pairs of maps.
    """
    xp = namespace(others)
    frame = tangent_frame(Y)
    if halves is None:
        u, v = unstack(tangent_coordinates(Y, frame, others))
        uu, vv, uv = (xp.mean(p, axis=0) for p in (u * u, v * v, u * v))
    else:
        u, v = unstack(differences(Y, frame, others))
        drift = halves.drift(Y)
        du, dv = (row_dot(drift, axis) for axis in unstack(frame))
        uu, vv, uv = (
            halves.factor * xp.mean(p, axis=0) + q
            for p, q in ((u * u, du * du), (v * v, dv * dv), (u * v, du * dv))
        )
    middle, half = (uu + vv) / 2, xp.hypot((uu - vv) / 2, uv)
    angle = xp.atan2(uv, (uu - vv) / 2) / 2
    c, s = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    U, V = unstack(frame)
    long = xp.sqrt(middle + half)[:, None] * (c * U + s * V)
    short = xp.sqrt(xp.maximum(middle - half, xp.zeros_like(half)))[:, None] * (c * V - s * U)
    return xp.stack([long, short], axis=1)


def differences(Y: Array, frame: Array, others: Array) -> Array:
    """Displacements between maps 2 k and 2 k + 1 of points at Y (b x 3): coordinates (2 x m // 2 x b).

    `others` (m x b x 3) are the positions on the maps. Displacements from one map to the other are moved to Y
    along great circles; `frame` (2 x b x 3) spans the tangent planes at Y.
    """
    xp, m = namespace(others), others.shape[0]
    first, second = others[: m - m % 2 : 2, ...], others[1::2, ...]
    return tangent_coordinates(
        first, xp.stack([transport(v, Y, first) for v in unstack(frame)]), second
    )


def transport(vectors: Array, Y: Array, Z: Array) -> Array:
    """Tangent vectors (b x 3) at Y, moved along great circles to positions Z (m x b x 3)."""
    xp = namespace(Y)
    one_plus_cosine = xp.sum(Z * Y, axis=-1) + 1
    along = xp.sum(Z * vectors, axis=-1) / xp.clip(one_plus_cosine, _MIN_ONE_PLUS_COSINE, None)
    return vectors - along[..., None] * (Z + Y)


def alternative_positions(others: Array, Y: Array) -> tuple[Array, Array]:
    """Most frequent of each point's positions far from Y (b x 3), and fraction of the maps with it (b).

    Of the positions on other maps (m x b x 3) that are far from Y, the one with the most others nearby
    defines a group, whose mean is returned; NaN if no position is far from Y.
    """
    xp, m = namespace(others), others.shape[0]
    alternative, wins = xp.full_like(Y, xp.nan), xp.zeros_like(Y[:, 0])
    is_far = geodesic(others, Y[None, ...]) > MIN_ALTERNATIVE_DISTANCE
    (rows,) = xp.nonzero(xp.any(is_far, axis=0))
    if rows.shape[0] == 0:
        return alternative, wins
    others, is_far = (xp.take(a, rows, axis=1) for a in (others, is_far))
    cosine = xp.sum(others[:, None, ...] * others[None, ...], axis=-1)
    near = (cosine > math.cos(MIN_ALTERNATIVE_DISTANCE)) & is_far[None, ...]
    n_near = xp.where(is_far, xp.sum(xp.astype(near, xp.int64), axis=1), -1)
    center = xp.argmax(n_near, axis=0)
    is_center = xp.arange(m, **same_device(others))[:, None] == center[None, :]
    group = xp.astype(xp.any(near & is_center[:, None, :], axis=0) & is_far, others.dtype)
    alternative[rows, :] = normalize(xp.sum(group[..., None] * others, axis=0))
    wins[rows] = xp.sum(group, axis=0) / m
    return alternative, wins


def tangent_coordinates(center: Array, frame: Array, Y: Array) -> Array:
    """Coordinates (2 x ... x b), in radians, of Y (... x b x 3) in tangent planes (2 x b x 3) at centres."""
    xp = namespace(Y)
    along = xp.stack([row_dot(Y, axis) for axis in unstack(frame)])
    sine = xp.sqrt(xp.sum(along * along, axis=0))
    distance = geodesic(Y, xp.broadcast_to(center, Y.shape))
    zero = sine == 0
    return along * xp.where(zero, xp.ones_like(sine), distance / xp.where(zero, 1.0, sine))


def torn_fraction(
    X_hat: Array, Y: Array, start: int, reference: MapPoints, k: int, near_fraction: float
) -> Array:
    """Fraction of the k nearest reference points that are far away on the map, as in `torn_neighbors`."""
    xp = namespace(X_hat)
    k = min(k, reference.X.shape[0] - 1)
    n_near = max(k, int(near_fraction * reference.X.shape[0]))
    itself = xp.full(X_hat.shape[:1], -1, dtype=xp.int64, **same_device(X_hat))
    at = xp.asarray(reference.rows, **same_device(X_hat)) - start
    (members,) = xp.nonzero((at >= 0) & (at < X_hat.shape[0]))
    itself[at[members]] = members  # index of a point among the reference points, else -1

    search = Search(reference.X) if on_host(X_hat) else None

    def torn(X: Array, Y: Array, itself: Array) -> tuple[Array]:
        (known,) = xp.nonzero(itself >= 0)
        D_map = _squared_distances(Y, reference.Y)
        D_map[known, itself[known]] = xp.inf
        if search is None:
            D = _squared_distances(X, reference.X)
            D[known, itself[known]] = xp.inf
            D_of_neighbors = D_map.gather(1, D.topk(k, dim=1, largest=False, sorted=False).indices)
        else:
            D_of_neighbors = np.take_along_axis(D_map, search(X, k, itself), axis=1)
        limit = xp.max(_smallest(D_map, n_near), axis=1)
        return (xp.mean(xp.astype(D_of_neighbors > limit[:, None], X.dtype), axis=1),)

    return in_tiles(torn, X_hat, Y, itself)[0]


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
    n_as_good = xp.searchsorted(xp.asarray(null, **like(unexplained)), unexplained, side="right")
    return (xp.astype(n_as_good, unexplained.dtype) + 1) / (null.shape[0] + 1)


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
