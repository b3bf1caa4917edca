r"""Sums of a kernel over all pairs of points on the sphere, on a grid: O(n), deterministic.

The kernel is the Cauchy kernel of the chord, :math:`w = 1 / (1 + |y_i - y_j|^2 / s^2)` with bandwidth s. The
points are spread on a grid of longitudes and latitudes by cubic splines, their field is computed on the grid,
and interpolated at the points by the same splines. Between two latitudes, the kernel depends only on the
difference of longitudes :math:`\lambda`,

.. math:: w = \frac{s^2}{A - B \cos\lambda}, \qquad A = s^2 + 2 - 2 \sin\theta \sin\theta', \quad
          B = 2 \cos\theta \cos\theta',

and its Fourier coefficients form a geometric sequence, :math:`s^2 \rho^{|m|} / \sqrt{A^2 - B^2}` with
:math:`\rho = B / (A + \sqrt{A^2 - B^2})`: for each frequency, one real matrix maps the latitudes of the
charge to those of the field. By symmetry of the hemispheres, even and odd parts are computed separately, with
matrices of half the size. (The C kernels use a table for both hemispheres without negligible entries; most
entries are negligible.)

A meridian continues beyond the pole on the other side of the globe, so interpolation has no boundary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.fft

from .. import _kernels as kernels
from .._data.arrays import (
    Array,
    blocks,
    device_blocks,
    like,
    namespace,
    on_host,
    same_device,
    widest,
)
from .._data.threads import Workers
from .._kernels import device as device_kernels

_NODES_PER_BANDWIDTH = 2.0  # grid nodes per bandwidth
_MIN_ROWS = 12  # minimum number of rows of the grid
_POINTS_PER_BLOCK = 1 << 13, 1 << 17  # minimum and maximum: each block has its own grid
_NEGLIGIBLE = 1e-20  # smaller coefficients are set to 0: denormal numbers slow down the products
_MIN_COEFFICIENT = 1e-10  # relative to the largest one; smaller ones are not in the table
_GHOSTS = 2  # rows beyond each pole, used by interpolation
_ENTRIES_AT_ONCE = 1 << 24  # number of matrix entries computed at a time


class Kernel:
    """The kernel with one bandwidth, for sums over points.

    Parameters
    ----------
    bandwidth : float
        Chord length at which the kernel equals one half.
    workers : Workers
        Threads.
    near : array or None, default=None
        Array on whose device the kernel is stored; None means host memory.
    """

    def __init__(self, bandwidth: float, workers: Workers, near: Array | None = None) -> None:
        self.bandwidth = bandwidth
        self._workers = workers
        near = np.empty(0, dtype=np.float32) if near is None else near
        half = max(_MIN_ROWS, int(np.ceil(_NODES_PER_BANDWIDTH * np.pi / bandwidth))) // 2
        self.n_rows = 2 * half
        self.n_columns = scipy.fft.next_fast_len(4 * half, real=True)
        self.n_columns += self.n_columns % 2  # even: opposite meridians are on the grid
        in_c = on_host(near) and kernels.available()
        self._table = self._fill_table(half) if in_c else None
        # One grid per block of points, in memory that all fields share.
        self._grids = np.empty((0, 0))
        if self._table is None:
            self._even, self._odd = self._matrices(half, near)

    def _coefficients(self, half: int, near: Array) -> tuple[Array, Array]:
        """Coefficient of frequency 0, and ratio of successive ones, between half of the latitudes and all."""
        xp = namespace(near)
        latitude = xp.arange(self.n_rows, dtype=widest(near), **same_device(near)) + 0.5
        latitude = latitude * (np.pi / self.n_rows) - np.pi / 2
        here, there = latitude[:half, None], latitude[None, :]
        less = self.bandwidth**2 + 4 * xp.sin((here - there) / 2) ** 2  # A - B
        more = self.bandwidth**2 + 4 * xp.cos((here + there) / 2) ** 2  # A + B
        root = xp.sqrt(less * more)
        rho = (more - less) / (less + more + 2 * root)
        first = self.bandwidth**2 / (root * (1 - rho**self.n_columns)) * self.n_columns
        return first, rho

    def _fill_table(self, half: int) -> Table:
        """All coefficients that are not negligible, for the C kernels."""
        power, rho = self._coefficients(half, np.empty(0))
        count = self.n_columns // 2 + 1
        rho = np.maximum(rho, 1e-30)
        least = _MIN_COEFFICIENT * power.max()
        number = np.log(least / (2 * power)) / np.log(rho)  # number of frequencies to keep
        number = np.clip(np.ceil(number), 0, count).astype(np.int32)
        frequencies, lanes = np.arange(count), kernels.LANES
        groups = frequencies[::lanes]
        low, high = (np.empty((len(groups), half), dtype=np.int32) for _ in range(2))
        # Ranges from the first to the last latitude that has the first frequency of the group.
        for i, reach in enumerate(number):
            before, after = (np.maximum.accumulate(r) for r in (reach, reach[::-1]))
            low[:, i] = np.searchsorted(before, groups, side="right")
            high[:, i] = self.n_rows - np.searchsorted(after, groups, side="right")
        high = np.maximum(high, low)
        ends = lanes * np.cumsum(high - low, dtype=np.int64)
        # Factors of the elimination for the spline equations, which end differently for even and odd
        # frequencies.
        sign = np.where(np.arange(lanes) % 2, -1.0, 1.0)
        factors = np.empty((self.n_rows, lanes))
        factors[0] = 1 / (4 + sign)
        for j in range(1, self.n_rows):
            factors[j] = 1 / (4 - factors[j - 1] + (sign if j == self.n_rows - 1 else 0))
        overlap_of_columns = (2 + np.cos(2 * np.pi * frequencies / self.n_columns)) / 3
        table = Table(
            low,
            high,
            np.concatenate([[0], ends[:-1]]),
            kernels.aligned_zeros((int(ends[-1]),)),
            factors.astype(np.float32),
            (1 / overlap_of_columns**2).astype(np.float32),
            kernels.aligned_zeros((len(groups), 4, self.n_rows, lanes)),
        )
        alias = power * rho**self.n_columns
        rows = blocks(half, 8)
        list(self._workers.map(lambda b: kernels.fill_table(rho, power, alias, table, b), rows))
        return table

    def _matrices(self, half: int, near: Array) -> tuple[Array, Array]:
        """Matrices (frequency, latitude, latitude) for the even and odd parts of a field."""
        xp = namespace(near)
        first, rho = self._coefficients(half, near)
        n = self.n_columns
        count = n // 2 + 1

        def part(frequencies: slice) -> tuple[Array, Array]:
            m = xp.arange(frequencies.start, frequencies.stop, **like(rho))[:, None, None]
            # Including aliases: frequencies that are the same on a grid of n longitudes.
            K = first * (rho**m + rho ** (n - m))
            K = xp.where(_NEGLIGIBLE * n > K, xp.zeros_like(K), K)
            mirrored = xp.flip(K[:, :, half:], axis=2)
            return K[:, :, :half] + mirrored, K[:, :, :half] - mirrored

        parts = list(
            self._workers.map(part, blocks(count, max(1, _ENTRIES_AT_ONCE // (2 * half**2))))
        )
        even, odd = (
            xp.concat([xp.astype(K, near.dtype) for K in some]) for some in zip(*parts, strict=True)
        )
        return self._to_splines(even, 1), self._to_splines(odd, -1)

    def _to_splines(self, K: Array, mirror: int) -> Array:
        """Convert the kernel at the nodes into spline coefficients.

        Along a meridian, splines of neighbouring nodes overlap. Beyond the pole the same wave continues,
        rotated by half a circle, which changes the sign of odd frequencies; beyond the equator, its mirror
        image.
        """
        xp, (count, half) = namespace(K), K.shape[:2]
        overlap = np.diag(np.full(half, 4.0)) + np.eye(half, k=1) + np.eye(half, k=-1)
        overlap[-1, -1] += mirror
        columns = (2 + np.cos(2 * np.pi * np.arange(count) / self.n_columns)) / 3
        for sign, rows in ((1, slice(0, None, 2)), (-1, slice(1, None, 2))):
            overlap[0, 0] = 4 + sign
            inverse = xp.asarray(np.linalg.inv(overlap / 6), **like(K))
            scale = xp.asarray(columns[rows, None, None] ** -2, **like(K))
            K[rows, ...] = scale * (inverse @ K[rows, ...] @ inverse)
        return K

    def field(self, Y: Array) -> Field:
        """Field of points Y (n x 3): at each position, the sum of the kernel over all points."""
        charge = self._charge(Y).reshape(-1, self.n_columns)
        return Field(self._convolve(charge).reshape(-1), self.n_rows, self.n_columns)

    def _charge(self, Y: Array) -> Array:
        """Unit charges of the points, spread on the flattened grid."""
        size = (self.n_rows + 2 * _GHOSTS) * self.n_columns
        if not on_host(Y):
            charge = _spread_on_device(Y, self.n_rows, self.n_columns, size)
            return namespace(charge).astype(charge, namespace(charge).float32)

        least, most = _POINTS_PER_BLOCK
        block = min(max(least, -(-len(Y) // 16)), most)
        if not kernels.available():
            parts = self._workers.map(
                lambda b: _stencil(Y[b], self.n_rows, self.n_columns).spread(size),
                blocks(len(Y), block),
            )
            return sum(parts, start=np.zeros(size)).astype(np.float32)
        shape = -(-len(Y) // block), size
        if self._grids.shape != shape:
            self._grids = np.empty(shape, dtype=np.float32)
        n_threads = self._workers.n_jobs
        return kernels.charge(Y, self.n_rows, self.n_columns, block, self._grids, n_threads)

    def _convolve(self, padded: Array) -> Array:
        """Field of a charge, both including the rows beyond the poles."""
        xp = namespace(padded)

        def beyond(rows: Array) -> Array:
            return xp.roll(xp.flip(rows, axis=0), self.n_columns // 2, axis=1)

        charge = padded[_GHOSTS:-_GHOSTS, :]
        charge[:_GHOSTS, :] += beyond(padded[:_GHOSTS, :])
        charge[-_GHOSTS:, :] += beyond(padded[-_GHOSTS:, :])
        field = (
            self._by_halves(charge) if self._table is None else self._by_table(charge, self._table)
        )
        return xp.concat([beyond(field[:_GHOSTS, :]), field, beyond(field[-_GHOSTS:, :])])

    def _by_halves(self, charge: Array) -> Array:
        xp, half = namespace(charge), self.n_rows // 2
        north, south = charge[:half, :], xp.flip(charge[half:, :], axis=0)
        parts = (self._even, north + south), (self._odd, north - south)
        even, odd = self._workers.map(lambda part: _filter(*part), parts)
        return 0.5 * xp.concat([even + odd, xp.flip(even - odd, axis=0)])

    def _by_table(self, charge: np.ndarray, table: Table) -> np.ndarray:
        n_threads = self._workers.n_jobs
        spectrum = scipy.fft.rfft(charge, axis=1, workers=n_threads)
        kernels.filter_spectrum(table, spectrum, n_threads)
        return np.asarray(scipy.fft.irfft(spectrum, n=self.n_columns, axis=1, workers=n_threads))


class Table(NamedTuple):
    """The kernel between half of the latitudes and all of them, without negligible entries.

    Frequencies are in groups of `LANES`, which are side by side in memory. Row i of group g has the entries
    `low` to `high` (group x latitude each), stored in `values` from `offset`. `factors` and `scale` convert a
    field at the nodes into spline coefficients; `scratch` is memory for a field.
    """

    low: np.ndarray
    high: np.ndarray
    offset: np.ndarray
    values: np.ndarray
    factors: np.ndarray
    scale: np.ndarray
    scratch: np.ndarray


class Field(NamedTuple):
    """Values on the flattened grid, including the rows beyond the poles."""

    values: Array
    n_rows: int
    n_columns: int

    def is_complete(self) -> bool:
        """Whether there is a value for each node of the grid."""
        size = (self.n_rows + 2 * _GHOSTS) * self.n_columns
        return min(self.n_rows, self.n_columns) > 0 and len(self.values) == size

    def at(self, Y: Array, n_threads: int = 1) -> tuple[Array, Array]:
        """Value (b) and gradient (b x 3) of the field at Y (b x 3), independent of the batch."""
        if on_host(Y) and kernels.available():
            return kernels.read_field(self.values, Y, self.n_rows, self.n_columns, n_threads)
        xp, size = namespace(Y), (self.n_rows, self.n_columns)
        rows, columns, least = self.n_rows / np.pi, self.n_columns / (2 * np.pi), 1e-3 / self.n_rows
        if device_kernels.supports(Y, self.values):
            scales, places = (rows, columns, least), _places(Y, *size)
            return device_kernels.read_field(self.values, Y, *places, self.n_columns, scales)
        value, along, across = _stencil(Y, *size).read(self.values)
        x, y, z = Y[:, 0], Y[:, 1], Y[:, 2]
        cosine = xp.clip(xp.hypot(x, y), least, None)
        north = along * rows
        east = across * columns / cosine
        x, y = x / cosine, y / cosine
        slope = [-z * x * north - y * east, -z * y * north + x * east, cosine * north]
        return value, xp.stack(slope, axis=1)


def _places(Y: Array, n_rows: int, n_columns: int) -> tuple[Array, Array]:
    """Positions of points on the grid, in rows and columns."""
    xp = namespace(Y)
    x, y, z = Y[:, 0], Y[:, 1], Y[:, 2]
    row = (xp.atan2(z, xp.hypot(x, y)) + np.pi / 2) * (n_rows / np.pi) - 0.5 + _GHOSTS
    return row, xp.atan2(y, x) * (n_columns / (2 * np.pi))


def _stencil(Y: Array, n_rows: int, n_columns: int) -> _Stencil:
    """Grid rows and columns around each point, four each, and their weights."""
    xp = namespace(Y)
    row, column = _places(Y, n_rows, n_columns)
    row_below, column_below = xp.floor(row), xp.floor(column)
    around = xp.arange(-1, 3, dtype=xp.int64, **same_device(Y))[:, None]
    return _Stencil(
        (xp.astype(row_below, xp.int64) + around) * n_columns,
        (xp.astype(column_below, xp.int64) + around) % n_columns,
        *_cubic(xp.astype(row - row_below, xp.float32)),
        *_cubic(xp.astype(column - column_below, xp.float32)),
    )


class _Stencil(NamedTuple):
    """Grid rows and columns around n points (4 x n), with the weights of value and slope."""

    rows: Array
    columns: Array
    row_weight: Array
    row_slope: Array
    column_weight: Array
    column_slope: Array

    def corners(self) -> tuple[Array, Array]:
        """Indices of grid nodes (4 x 4 x n) and their weights."""
        index = self.rows[:, None, :] + self.columns[None, :, :]
        return index, self.row_weight[:, None, :] * self.column_weight[None, :, :]

    def spread(self, size: int) -> np.ndarray:
        """Unit charges of the points, spread on the flattened grid."""
        index, weight = self.corners()
        return np.bincount(index.ravel(), weight.ravel(), minlength=size)

    def read(self, field: Array) -> tuple[Array, Array, Array]:
        """Value of the flattened field at each point, and its slopes along rows and columns."""
        value, along, across = 0.0, 0.0, 0.0
        for i in range(4):
            around = field[self.rows[i, :] + self.columns]
            level = (around * self.column_weight).sum(0)
            value = value + self.row_weight[i, :] * level
            along = along + self.row_slope[i, :] * level
            across = across + self.row_weight[i, :] * (around * self.column_slope).sum(0)
        return value, along, across


def _spread_on_device(Y: Any, n_rows: int, n_columns: int, size: int) -> Any:
    """Unit charges of the points, spread on the flattened grid.

    Charges are added as integers: on a device, the order of additions differs between runs, and only integer
    sums do not depend on it.
    """
    import torch

    if device_kernels.supports(Y):
        return device_kernels.spread(*_places(Y, n_rows, n_columns), n_columns, size)
    charge = torch.zeros(size, dtype=torch.int64, device=Y.device)
    for block in device_blocks(Y, 64):
        index, weight = _stencil(Y[block], n_rows, n_columns).corners()
        parts = (weight.double() * device_kernels.UNIT).round().long()
        charge.index_add_(0, index.reshape(-1), parts.reshape(-1))
    return charge.double() / device_kernels.UNIT


def _filter(kernel: Array, charge: Array) -> Array:
    """Apply one matrix per frequency to the rows of a charge."""
    if not on_host(charge):
        import torch

        spectrum = torch.fft.rfft(charge, dim=1).T.contiguous()  # (frequency, row)
        filtered = torch.view_as_complex((kernel @ torch.view_as_real(spectrum)).contiguous())
        return torch.fft.irfft(filtered.T, n=charge.shape[1], dim=1)
    spectrum = scipy.fft.rfft(charge, axis=1).T
    pair = np.stack([spectrum.real, spectrum.imag], axis=2)
    pair = kernel @ pair
    result = scipy.fft.irfft((pair[..., 0] + 1j * pair[..., 1]).T, n=charge.shape[1], axis=1)
    return np.asarray(result)


def _cubic(t: Array) -> tuple[Array, Array]:
    """Weights (4 x n) of the nodes -1, 0, 1, 2 for value and slope at positions t in [0, 1).

    Cubic B-splines, twice differentiable across nodes.
    """
    xp, u = namespace(t), 1 - t
    value = [u * u * u, 4 - t * t * (6 - 3 * t), 4 - u * u * (6 - 3 * u), t * t * t]
    slope = [-u * u, t * (3 * t - 4), u * (4 - 3 * u), t * t]
    return xp.stack(value) / 6, xp.stack(slope) / 2
