r"""Sums of a kernel over all pairs of points on the sphere, by way of a grid: O(n), deterministic.

The kernel is Cauchy's of the chord, :math:`w = 1 / (1 + |y_i - y_j|^2 / s^2)` with bandwidth s. Points are
spread on a grid of longitudes and latitudes by cubic splines, the field of all of them is computed
there, and read where the points are, by the same splines. Between two latitudes the kernel depends
on the difference of longitudes :math:`\lambda` alone,

.. math:: w = \frac{s^2}{A - B \cos\lambda}, \qquad A = s^2 + 2 - 2 \sin\theta \sin\theta', \quad
          B = 2 \cos\theta \cos\theta',

whose Fourier coefficients are a geometric series, :math:`s^2 \rho^{|m|} / \sqrt{A^2 - B^2}` with
:math:`\rho = B / (A + \sqrt{A^2 - B^2})`: for each frequency one real matrix takes the latitudes of the
charge to those of the field. Both halves of the globe being alike, even and odd parts go separately,
through matrices of half the size. (The kernels in C take a table of both halves instead, without what is
negligible, which is most of it.)

A meridian goes on beyond the pole, on the other side of the globe, so that interpolation knows no edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft

from .. import _kernels as kernels
from .._data.arrays import blocks
from .._data.threads import Workers

_NODES_A_BANDWIDTH = 2.0  # the grid's fineness
_FEWEST_ROWS = 12
_POINTS_A_BLOCK = 1 << 13, 1 << 17  # at least and at most: each block fills a grid of its own
_NEGLIGIBLE = (
    1e-20  # smaller coefficients would only slow the products down, as denormal numbers do
)
_LEAST = 1e-10  # of the largest coefficient: smaller ones are left out of the table
_N_GROUPS = 32  # of frequencies, for threads
_GHOSTS = 2  # rows beyond each pole that interpolation reaches


class Kernel:
    """The kernel of one bandwidth, ready to sum over points.

    Parameters
    ----------
    bandwidth : float
        The chord at which the kernel has fallen to one half.
    workers : Workers
        Threads.
    """

    def __init__(self, bandwidth: float, workers: Workers) -> None:
        self.bandwidth = bandwidth
        self._workers = workers
        half = max(_FEWEST_ROWS, int(np.ceil(_NODES_A_BANDWIDTH * np.pi / bandwidth))) // 2
        self.n_rows = 2 * half
        self.n_columns = scipy.fft.next_fast_len(4 * half, real=True)
        self.n_columns += self.n_columns % 2  # the far side of the pole lies on the grid
        self._table = self._fill_table(half) if kernels.available() else None
        if self._table is None:
            self._even, self._odd = self._matrices(half)

    def _coefficients(self, half: int) -> tuple[np.ndarray, np.ndarray]:
        """From northern latitudes to all, the coefficient of frequency 0 and the ratio of one to the next."""
        latitude = (np.arange(self.n_rows) + 0.5) * (np.pi / self.n_rows) - np.pi / 2
        here, there = latitude[:half, None], latitude[None, :]
        less = self.bandwidth**2 + 4 * np.sin((here - there) / 2) ** 2  # A - B
        more = self.bandwidth**2 + 4 * np.cos((here + there) / 2) ** 2  # A + B
        root = np.sqrt(less * more)
        rho = (more - less) / (less + more + 2 * root)
        first = self.bandwidth**2 / (root * (1 - rho**self.n_columns)) * self.n_columns
        return first, rho

    def _fill_table(self, half: int) -> Table:
        """The coefficients of all frequencies that are not negligible, for the kernels in C."""
        power, rho = self._coefficients(half)
        count = self.n_columns // 2 + 1
        rho = np.maximum(rho, 1e-30)
        least = _LEAST * power.max()
        number = np.log(least / (2 * power)) / np.log(rho)  # of frequencies that are not, from 0 on
        number = np.clip(np.ceil(number), 0, count).astype(np.int32)
        frequencies = np.arange(count)
        low, high = (np.empty((count, half), dtype=np.int32) for _ in range(2))
        for i, reach in enumerate(
            number
        ):  # from both ends, to the first latitude that has the frequency
            before, after = (np.maximum.accumulate(r) for r in (reach, reach[::-1]))
            low[:, i] = np.searchsorted(before, frequencies, side="right")
            high[:, i] = self.n_rows - np.searchsorted(after, frequencies, side="right")
        high = np.maximum(high, low)
        offset = np.concatenate([[0], np.cumsum(high - low, dtype=np.int64).ravel()[:-1]])
        size = int((high - low).sum(dtype=np.int64))
        # Elimination of the equations of splines, whose ends differ for even and odd frequencies.
        sign = np.where(np.arange(kernels.LANES) % 2, -1.0, 1.0)
        factors = np.empty((self.n_rows, kernels.LANES))
        factors[0] = 1 / (4 + sign)
        for j in range(1, self.n_rows):
            factors[j] = 1 / (4 - factors[j - 1] + (sign if j == self.n_rows - 1 else 0))
        overlap_of_columns = (2 + np.cos(2 * np.pi * frequencies / self.n_columns)) / 3
        table = Table(
            low,
            high,
            offset,
            np.empty(size, dtype=np.float32),
            factors.astype(np.float32),
            (1 / overlap_of_columns**2).astype(np.float32),
            _groups((high - low).sum(axis=1)),
        )
        alias = power * rho**self.n_columns
        rows = blocks(half, 8)
        list(self._workers.map(lambda b: kernels.fill_table(rho, power, alias, table, b), rows))
        return table

    def _matrices(self, half: int) -> tuple[np.ndarray, np.ndarray]:
        """Matrices (frequency, latitude, latitude) for the even and the odd part of a field."""
        first, rho = self._coefficients(half)
        count = self.n_columns // 2 + 1
        even, odd = (np.empty((count, half, half), dtype=np.float32) for _ in range(2))

        def fill(rows: slice) -> None:
            ratio, power = rho[rows], first[rows].copy()
            # What a grid of finitely many longitudes cannot tell from the power itself.
            alias = power * ratio**self.n_columns
            inverse = 1 / np.maximum(ratio, 1e-30)
            for m in range(count):
                K = power + alias
                K[_NEGLIGIBLE * self.n_columns > K] = 0
                mirrored = K[:, : half - 1 : -1]
                np.add(K[:, :half], mirrored, out=even[m, rows], casting="same_kind")
                np.subtract(K[:, :half], mirrored, out=odd[m, rows], casting="same_kind")
                power *= ratio
                alias *= inverse

        list(self._workers.map(fill, blocks(half, 8)))
        self._to_splines(even, 1)
        self._to_splines(odd, -1)
        return even, odd

    def _to_splines(self, K: np.ndarray, mirror: int) -> None:
        """Make of the kernel at the nodes, in place, the coefficients of splines through it.

        Along a meridian splines of neighbouring nodes overlap; beyond the pole lies the same wave turned by
        half a circle, which changes the sign of odd frequencies, and beyond the equator the mirror image.
        """
        half = K.shape[1]
        overlap = np.diag(np.full(half, 4.0)) + np.eye(half, k=1) + np.eye(half, k=-1)
        overlap[-1, -1] += mirror
        inverses = []
        for sign in (1, -1):
            overlap[0, 0] = 4 + sign
            inverses.append(np.linalg.inv(overlap / 6))
        overlap_of_columns = (2 + np.cos(2 * np.pi * np.arange(len(K)) / self.n_columns)) / 3

        def part(frequencies: slice) -> None:
            for m in range(frequencies.start, frequencies.stop):
                inverse = (inverses[m % 2] / overlap_of_columns[m]).astype(np.float32)
                K[m] = inverse @ K[m] @ inverse

        list(self._workers.map(part, blocks(len(K), 16)))

    def field(self, Y: np.ndarray) -> Field:
        """The field of points Y (n x 3): at each place, the sum of the kernel to all of them."""
        size = (self.n_rows + 2 * _GHOSTS) * self.n_columns

        def spread(block: slice) -> np.ndarray:
            if kernels.available():
                return kernels.spread(Y[block], self.n_rows, self.n_columns, size)
            return _stencil(Y[block], self.n_rows, self.n_columns).spread(size)

        least, most = _POINTS_A_BLOCK
        size_of_block = min(max(least, len(Y) // 8), most)
        charge = np.zeros(size)
        for part in self._workers.map(spread, blocks(len(Y), size_of_block)):
            charge += part
        padded = charge.reshape(-1, self.n_columns).astype(np.float32)
        return Field(self._convolve(padded).ravel(), self.n_rows, self.n_columns)

    def _convolve(self, padded: np.ndarray) -> np.ndarray:
        """The field of a charge, both with the rows beyond the poles."""
        turn = self.n_columns // 2
        charge = padded[_GHOSTS:-_GHOSTS]
        charge[:_GHOSTS] += np.roll(padded[:_GHOSTS][::-1], turn, axis=1)
        charge[-_GHOSTS:] += np.roll(padded[-_GHOSTS:][::-1], turn, axis=1)
        field = (
            self._by_halves(charge) if self._table is None else self._by_table(charge, self._table)
        )
        before = np.roll(field[:_GHOSTS][::-1], turn, axis=1)
        after = np.roll(field[-_GHOSTS:][::-1], turn, axis=1)
        return np.concatenate([before, field, after])

    def _by_halves(self, charge: np.ndarray) -> np.ndarray:
        half = self.n_rows // 2
        north, south = charge[:half], charge[: half - 1 : -1]
        parts = (self._even, north + south), (self._odd, north - south)
        even, odd = self._workers.map(lambda part: _filter(*part), parts)
        field = np.concatenate([even + odd, (even - odd)[::-1]])
        field *= 0.5
        return field

    def _by_table(self, charge: np.ndarray, table: Table) -> np.ndarray:
        spectrum = np.ascontiguousarray(scipy.fft.rfft(charge, axis=1))
        filtered = self._workers.map(
            lambda some: kernels.filter_spectrum(table, some, spectrum), table.groups
        )
        list(filtered)
        return np.asarray(scipy.fft.irfft(spectrum, n=self.n_columns, axis=1))


class Table(NamedTuple):
    """The kernel between northern latitudes and all, by frequencies, without what is negligible.

    Row i of frequency m has entries `low` to `high` (frequency x latitude each), in `values` from `offset`
    on. `factors` and `scale` turn a field at the nodes into coefficients of splines. `groups` of frequencies
    are about the same work.
    """

    low: np.ndarray
    high: np.ndarray
    offset: np.ndarray
    values: np.ndarray
    factors: np.ndarray
    scale: np.ndarray
    groups: list[slice]


class Field(NamedTuple):
    """Values on the grid, flattened, with the rows beyond the poles."""

    values: np.ndarray
    n_rows: int
    n_columns: int

    def fits(self) -> bool:
        """Whether there is a value for each place of the grid."""
        size = (self.n_rows + 2 * _GHOSTS) * self.n_columns
        return min(self.n_rows, self.n_columns) > 0 and len(self.values) == size

    def at(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value (b) and gradient (b x 3) of the field at places Y (b x 3), each place on its own."""
        if kernels.available():
            return kernels.read_field(self.values, Y, self.n_rows, self.n_columns)
        value, along, across = _stencil(Y, self.n_rows, self.n_columns).read(self.values)
        x, y, z = Y.T
        cosine = np.maximum(np.hypot(x, y), 1e-3 / self.n_rows)
        north = along * np.float32(self.n_rows / np.pi)
        east = across * np.float32(self.n_columns / (2 * np.pi)) / cosine
        x, y = x / cosine, y / cosine
        slope = [-z * x * north - y * east, -z * y * north + x * east, cosine * north]
        return value, np.stack(slope, axis=1)


def _groups(work: np.ndarray) -> list[slice]:
    """Slices of frequencies that are about a thirtieth of the work each, of even numbers up to `LANES`."""
    groups, start = [], 0
    while start < len(work):
        stop = start + 2
        while (
            stop - start < kernels.LANES and work[start : stop + 2].sum() < work.sum() / _N_GROUPS
        ):
            stop += 2
        groups.append(slice(start, min(stop, len(work))))
        start = stop
    return groups


def _stencil(Y: np.ndarray, n_rows: int, n_columns: int) -> _Stencil:
    """Where points fall on the grid: four rows and four columns each, and their weights."""
    x, y, z = Y.T
    row = (np.arctan2(z, np.hypot(x, y)) + np.pi / 2) * (n_rows / np.pi) - 0.5 + _GHOSTS
    column = np.arctan2(y, x) * (n_columns / (2 * np.pi))
    row_below, column_below = np.floor(row), np.floor(column)
    around = np.arange(-1, 3)[:, None]
    return _Stencil(
        (row_below.astype(np.intp) + around) * n_columns,
        (column_below.astype(np.intp) + around) % n_columns,
        *_cubic((row - row_below).astype(np.float32)),
        *_cubic((column - column_below).astype(np.float32)),
    )


class _Stencil(NamedTuple):
    """Grid points around each of n points (4 x n) with weights of the value and of the slope."""

    rows: np.ndarray
    columns: np.ndarray
    row_weight: np.ndarray
    row_slope: np.ndarray
    column_weight: np.ndarray
    column_slope: np.ndarray

    def spread(self, size: int) -> np.ndarray:
        """A unit charge a point on the grid, flattened."""
        index = self.rows[:, None, :] + self.columns[None, :, :]
        weight = self.row_weight[:, None, :] * self.column_weight[None, :, :]
        return np.bincount(index.ravel(), weight.ravel(), minlength=size)

    def read(self, field: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value of the flattened field at each point, its slope along rows, and along columns."""
        value, along, across = (np.zeros(self.rows.shape[1], dtype=np.float32) for _ in range(3))
        for row, weight, slope in zip(self.rows, self.row_weight, self.row_slope, strict=True):
            around = field[row + self.columns]
            level = np.einsum("cn,cn->n", around, self.column_weight)
            value += weight * level
            along += slope * level
            across += weight * np.einsum("cn,cn->n", around, self.column_slope)
        return value, along, across


def _filter(kernel: np.ndarray, charge: np.ndarray) -> np.ndarray:
    """Apply one matrix a frequency to the rows of a charge."""
    spectrum = scipy.fft.rfft(charge, axis=1).T  # (frequency, row)
    pair = np.stack([spectrum.real, spectrum.imag], axis=2)
    pair = kernel @ pair
    result = scipy.fft.irfft((pair[..., 0] + 1j * pair[..., 1]).T, n=charge.shape[1], axis=1)
    return np.asarray(result)


def _cubic(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (4 x n) of the nodes -1, 0, 1, 2 at places t in [0, 1), of the value and of the slope.

    Cubic B-splines: twice differentiable across nodes.
    """
    u = 1 - t
    value = np.stack(
        [u * u * u, 4 - t * t * (6 - 3 * t), 4 - u * u * (6 - 3 * u), t * t * t]
    ) / np.float32(6)
    slope = np.stack([-u * u, t * (3 * t - 4), u * (4 - 3 * u), t * t]) / np.float32(2)
    return value, slope
