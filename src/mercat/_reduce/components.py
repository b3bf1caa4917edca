"""Map X to X_hat: the leading principal components of dense or sparse data.

The rows are read and centred in blocks, without a copy of the data; a sparse matrix stays sparse. X_hat is in
units of the spread of the data, which prevents overflow and underflow.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from .._data.arrays import Array, blocks, like, namespace, to_numpy, widest
from .._data.sampling import reduce_and_sample, sample_of
from .._data.source import VALUES_PER_BLOCK, RowSource
from .rank import screenot_rank

_SMALL = 1500  # if n or d is at most this, a matrix of inner products is decomposed in full
_OVERSAMPLING = 10  # further columns of the randomised range finder
_POWER_ITERATIONS = 6
_MIN_INVERTIBLE = 2.0**-1000  # inverses of smaller numbers may overflow


class ComponentReducer(NamedTuple):
    """Maps a row of X to a row of X_hat: (x - mean) components^T / unit.

    `components` is None if the data are only centred and scaled.
    """

    mean: np.ndarray
    components: np.ndarray | None
    explained_variance: np.ndarray
    unit: float
    metric: str

    def project(self, X: Any) -> Array:
        """X_hat (b x r) of the rows of X (b x d), in double precision if the device supports it."""
        if self.metric == "euclidean" and not scipy.sparse.issparse(X):
            dense = X - self.mean  # in one pass
            return (dense if self.components is None else dense @ self.components.T) / self.unit
        rows, offset = prepare_rows(X, self.metric)
        if scipy.sparse.issparse(rows) and self.components is not None:
            product = rows @ self.components.T
            product -= np.outer(offset, self.components.sum(axis=1))
            product -= self.mean @ self.components.T
        else:
            dense = self._centred(rows, offset)
            product = dense if self.components is None else dense @ self.components.T
        return product / self.unit

    def gram(self, X: Any, _: np.ndarray) -> np.ndarray:
        """Inner products of the centred rows of X over all dimensions, in units of `unit` squared."""
        return Centred(self.mean, self.unit, self.metric, "float64").gram(X)

    def _centred(self, rows: Any, offset: Array) -> Array:
        """Prepared rows minus the mean, dense; in place if they are dense."""
        dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
        dense -= offset[:, None]
        dense -= self.mean
        return dense


def prepare_rows(X: Any, metric: str) -> tuple[Any, Array]:
    """Rows and offsets such that rows - offset 1^T has the geometry of the metric.

    The offset per row is returned separately so that a sparse matrix stays sparse.
    """
    sparse = scipy.sparse.issparse(X)
    xp = np if sparse else namespace(X)
    rows = X.astype(np.float64) if sparse else xp.astype(X, widest(X))
    offset = xp.zeros(X.shape[0], **({} if sparse else like(rows)))
    if metric == "euclidean":
        return rows, offset
    # Divide by the largest entry first, so that squares neither overflow nor underflow.
    largest = abs(rows).max(axis=1).toarray().ravel() if sparse else xp.max(xp.abs(rows), axis=1)
    if xp is np and (largest < _MIN_INVERTIBLE).any():
        scale = np.where(largest < _MIN_INVERTIBLE, 2.0**100, 1.0)
        rows, largest = _scale_rows(rows, scale), largest * scale
    rows = _scale_rows(rows, 1 / xp.where(largest > 0, largest, xp.ones_like(largest)))
    if metric == "correlation":
        offset = np.asarray(rows.mean(axis=1)).ravel() if sparse else xp.mean(rows, axis=1)
    if sparse:
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    else:
        squares = xp.sum(rows * rows, axis=1)
    length = squares - X.shape[1] * offset**2
    # A constant row has no direction under "correlation": rounding errors must not be mistaken for one. Such
    # rows become 0.
    has_direction = length > 50 * xp.finfo(length.dtype).eps * X.shape[1]
    length = xp.sqrt(xp.where(has_direction, length, xp.inf))
    return _scale_rows(rows, 1 / length), offset / length


def _scale_rows(rows: Any, factors: Array) -> Any:
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(factors) @ rows)
    return rows * factors[:, None]


class Scatter(NamedTuple):
    """Mergeable sums over rows: number of rows, mean, and squares about the mean.

    `squares` is a matrix (d x d), its trace, or None, in units of `unit` squared; `unit` is the largest
    absolute value.
    """

    n: int
    mean: np.ndarray
    unit: float
    squares: Any


def scatter(X: Any, metric: str, dtype: str, squares: str) -> Scatter:
    """Sums over a block of rows, in memory; `squares` is "matrix", "trace" or "none"."""
    n = X.shape[0]
    xp = np if scipy.sparse.issparse(X) else namespace(X)
    if not scipy.sparse.issparse(X) and _stays_single(dtype, metric):
        rows, offset = xp.astype(X, xp.float32), None
    else:
        rows, offset = prepare_rows(X, metric)
    largest = float(xp.max(xp.abs(rows)) if xp is not np else abs(rows).max()) if n else 0.0
    if not largest < 1e150:
        sparse = scipy.sparse.issparse(rows)
        sizes = abs(rows).max(axis=0).toarray() if sparse else xp.max(xp.abs(rows), axis=0)
        column = int(to_numpy(sizes).argmax())
        raise ValueError(
            f"X must hold numbers below 1e150 in absolute value, got {largest:.3g} in column {column}: "
            "rescale or drop the column."
        )
    sums = rows.sum(axis=0, dtype=np.float64) if xp is np else xp.sum(rows, axis=0, dtype=widest(X))
    mean = to_numpy(sums).ravel() / n
    if offset is not None:
        mean = mean - float(offset.sum()) / n
    if squares == "none":
        return Scatter(n, mean, largest, None)
    centred = Centred(mean, largest if largest > 0 else 1.0, metric, dtype)
    if squares == "trace":
        # Bound the memory for dense blocks with many columns.
        steps = blocks(n, max(1, VALUES_PER_BLOCK // X.shape[1]))
        dense_steps = (centred.dense(X[step, :]) for step in steps)
        return Scatter(n, mean, largest, sum(float((d * d).sum()) for d in dense_steps))
    dense = centred.dense(X)
    return Scatter(n, mean, largest, to_numpy(dense.T @ dense).astype(np.float64))


def merge_scatter(a: Scatter, b: Scatter) -> Scatter:
    """Merge the sums over two sets of rows."""
    n, unit = a.n + b.n, max(a.unit, b.unit)
    if n == 0:
        return a
    difference = b.mean - a.mean
    mean = a.mean + difference * (b.n / n)
    if a.squares is None or unit == 0:
        return Scatter(n, mean, unit, a.squares)
    difference = difference / unit
    between = (
        np.outer(difference, difference) if np.ndim(a.squares) == 2 else difference @ difference
    )
    squares = a.squares * (a.unit / unit) ** 2 + b.squares * (b.unit / unit) ** 2
    return Scatter(n, mean, unit, squares + between * (a.n * (b.n / n)))


def _stays_single(dtype: str, metric: str) -> bool:
    return metric == "euclidean" and dtype == "float32"


class Centred(NamedTuple):
    """The matrix (rows - mean) / unit of a block of rows, and products with it."""

    mean: np.ndarray
    unit: float
    metric: str
    dtype: str

    def dense(self, X: Any) -> Array:
        """The block as a dense array in the working precision."""
        sparse = scipy.sparse.issparse(X)
        xp = np if sparse else namespace(X)
        in_range = 1e-30 < self.unit < 1e30
        if not sparse and in_range and _stays_single(self.dtype, self.metric):
            single = xp.astype(X, xp.float32, copy=True)
            single -= xp.asarray(self.mean, **like(single))
            single /= self.unit
            return single
        rows, offset = prepare_rows(X, self.metric)
        dense = rows.toarray() if sparse else rows
        dense -= xp.asarray(self.mean, **like(dense))
        dense -= offset[:, None]
        dense /= self.unit
        return xp.astype(dense, getattr(xp, self.dtype) if self.dtype == "float32" else dense.dtype)

    def covariance_times(self, X: Any, Q: np.ndarray) -> np.ndarray:
        """Contribution of the block to the covariance, times Q (d x k), in memory."""
        if not scipy.sparse.issparse(X):
            dense = self.dense(X)
            product = dense.T @ (dense @ namespace(X).asarray(Q, **like(dense)))
            return to_numpy(product).astype(np.float64)
        rows, offset = prepare_rows(X, self.metric)
        P = rows @ Q - np.outer(offset, Q.sum(axis=0)) - self.mean @ Q
        product = rows.T @ P - np.outer(self.mean, P.sum(axis=0)) - offset @ P
        return np.asarray(product / self.unit**2)

    def gram(self, X: Any) -> np.ndarray:
        """Inner products of the rows of the block, in memory; a sparse block stays sparse."""
        if not scipy.sparse.issparse(X):
            dense = to_numpy(self.dense(X))
            return np.asarray(dense @ dense.T, dtype=np.float64)
        rows, offset = prepare_rows(X, self.metric)
        # The expanded product of x - o 1 - m and y - p 1 - m, with offsets o and p and the mean m.
        to_mean = rows @ self.mean - offset * self.mean.sum()
        sums = np.asarray(rows.sum(axis=1)).ravel()
        across = to_mean[:, None] + np.outer(sums, offset)
        product = (rows @ rows.T).toarray() - across - across.T
        product += np.outer(offset, offset) * X.shape[1] + self.mean @ self.mean
        return np.asarray(product / self.unit**2)

    def transposed_times(self, X: Any, V: np.ndarray) -> np.ndarray:
        """The transposed block times V (n x k), in memory; a sparse block stays sparse."""
        if not scipy.sparse.issparse(X):
            dense = to_numpy(self.dense(X))
            return np.asarray(dense.T @ V.astype(dense.dtype), dtype=np.float64)
        rows, offset = prepare_rows(X, self.metric)
        product = rows.T @ V - np.outer(self.mean, V.sum(axis=0)) - offset @ V
        return np.asarray(product / self.unit)


def fit_components(
    rows: RowSource, n_spectral: int | str | None, *, metric: str
) -> ComponentReducer:
    """Principal components: the first `n_spectral`, those above the noise ("auto"), or none (None)."""
    n, d = rows.shape
    dtype = "float32" if rows.exact_in_single and metric == "euclidean" else "float64"
    squares = "trace" if n_spectral is None else "matrix" if d <= _SMALL else "none"
    block_scatter = functools.partial(scatter, metric=metric, dtype=dtype, squares=squares)
    sums = reduce_and_sample(rows, block_scatter, merge_scatter)
    centred = Centred(sums.mean, sums.unit if sums.unit > 0 else 1.0, metric, dtype)
    if n_spectral is None:
        spread = float(np.sqrt(sums.squares / n))
        unit = centred.unit * spread if spread > 0 else 1.0
        return ComponentReducer(centred.mean, None, np.empty(0), unit, metric)
    if n_spectral == "auto":
        n_spectral = _signal_rank(rows, sums, centred)
    values, components = _leading_components(rows, sums, centred, int(n_spectral))
    # Directions without variance contain only rounding errors.
    kept = max(1, int(np.sum(values > 30 * np.finfo(dtype).eps * values[:1])))
    values, components = values[:kept], components[:kept]
    signs = components[np.arange(kept), np.abs(components).argmax(axis=1)]
    components = components * np.where(signs < 0, -1, 1)[:, None]
    spread = float(np.sqrt(values.sum() / n))
    with np.errstate(over="ignore"):
        variance = values / (n - 1) * centred.unit**2
    return ComponentReducer(
        centred.mean, components, variance, centred.unit * spread if spread > 0 else 1.0, metric
    )


def _leading_components(
    rows: RowSource, sums: Scatter, centred: Centred, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest squared singular values and their right singular vectors (k x d)."""
    n, d = rows.shape
    k = min(k, n, d)
    if d <= _SMALL:
        values, vectors = largest_eigenvectors(sums.squares, k)
        return values, vectors.T
    if n <= _SMALL:
        block = rows.take(np.arange(n))
        values, vectors = largest_eigenvectors(centred.gram(block), k)
        components = centred.transposed_times(block, vectors)
        length = np.linalg.norm(components, axis=0)
        return values, (components / np.where(length > 0, length, 1)).T

    def covariance_times(Q: np.ndarray) -> np.ndarray:
        return rows.reduce(functools.partial(centred.covariance_times, Q=Q), np.add)

    size = min(k + _OVERSAMPLING, n, d)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((d, size)))[0]
    for _ in range(_POWER_ITERATIONS):
        Q = np.linalg.qr(covariance_times(Q))[0]
    small = Q.T @ covariance_times(Q)
    values, vectors = largest_eigenvectors((small + small.T) / 2, k)
    return values, (Q @ vectors).T


def largest_eigenvectors(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a symmetric matrix, clipped at 0, and eigenvectors in columns."""
    size = len(matrix)
    # The LAPACK routine for a subset fails for some matrices, or finds too few of many equal eigenvalues.
    try:
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(size - k, size - 1))
    except np.linalg.LinAlgError:
        values = vectors = np.empty(0)
    if len(values) < k:
        values, vectors = (part[..., size - k :] for part in np.linalg.eigh(matrix))
    return np.maximum(values[::-1], 0), vectors[:, ::-1]


def _signal_rank(rows: RowSource, sums: Scatter, centred: Centred) -> int:
    """Number of components above the noise, by ScreeNOT.

    If n and d are both large, a sample of the rows is used.
    """
    n, d = rows.shape
    if d <= _SMALL:
        values = scipy.linalg.eigvalsh(sums.squares)
        return screenot_rank(np.sqrt(np.maximum(values[-min(n, d) :], 0)), (n, d))
    chosen = np.sort(sample_of(rows, _SMALL).rows) if n > _SMALL else np.arange(n)
    sample = rows.take(chosen)
    mean = scatter(sample, centred.metric, centred.dtype, "none").mean
    values = scipy.linalg.eigvalsh(centred._replace(mean=mean).gram(sample))
    return screenot_rank(np.sqrt(np.maximum(values, 0)), (len(chosen), d))
