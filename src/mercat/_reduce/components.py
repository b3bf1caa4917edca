"""X to X_hat: the leading principal components, from dense, sparse or precomputed data.

The rows are read in blocks, centred on the way and never copied whole; a sparse matrix stays sparse.
X_hat is in units of the spread of the data, which prevents overflow and underflow.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from .._data.arrays import Array, blocks, like, namespace, to_numpy, widest
from .._data.source import VALUES_A_BLOCK, RowSource
from .rank import screenot_rank

_SMALL = 1500  # the smaller side up to which a Gram matrix is decomposed in full
_OVERSAMPLING = 10
_POWER_ITERATIONS = 6
_INVERTIBLE = 2.0**-1000  # a number whose inverse is finite; many smaller ones have none


class ComponentReducer(NamedTuple):
    """The way from a row of X to a row of X_hat: (x - mean) components^T / unit.

    `components` is None where the data are taken as they are.
    """

    mean: np.ndarray
    components: np.ndarray | None
    explained_variance: np.ndarray
    unit: float
    metric: str

    def project(self, X: Any) -> Array:
        """X_hat (b x r) of the rows of X (b x d), in double precision where the device has it."""
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
        """Inner products of the rows of X about the mean, over all dimensions, in units."""
        return Centred(self.mean, self.unit, self.metric, "float64").gram(X)

    def _centred(self, rows: Any, offset: Array) -> Array:
        """Prepared rows about the mean, dense, in their own place."""
        dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
        dense -= offset[:, None]
        dense -= self.mean
        return dense


def prepare_rows(X: Any, metric: str) -> tuple[Any, Array]:
    """Rows whose Euclidean geometry is that of the metric, less an offset a row: rows - offset 1^T.

    The offset is kept apart so that a sparse matrix stays sparse.
    """
    sparse = scipy.sparse.issparse(X)
    xp = np if sparse else namespace(X)
    rows = X.astype(np.float64) if sparse else xp.astype(X, widest(X))
    offset = xp.zeros(X.shape[0], **({} if sparse else like(rows)))
    if metric == "euclidean":
        return rows, offset
    # The largest entry first, so that squares neither overflow nor vanish.
    largest = abs(rows).max(axis=1).toarray().ravel() if sparse else xp.max(xp.abs(rows), axis=1)
    if xp is np and (largest < _INVERTIBLE).any():
        lift = np.where(largest < _INVERTIBLE, 2.0**100, 1.0)
        rows, largest = _scale_rows(rows, lift), largest * lift
    rows = _scale_rows(rows, 1 / xp.where(largest > 0, largest, xp.ones_like(largest)))
    if metric == "correlation":
        offset = np.asarray(rows.mean(axis=1)).ravel() if sparse else xp.mean(rows, axis=1)
    if sparse:
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    else:
        squares = xp.sum(rows * rows, axis=1)
    length = squares - X.shape[1] * offset**2
    # A constant row has no direction under "correlation": rounding must not give it one.
    direction = length > 50 * xp.finfo(length.dtype).eps * X.shape[1]
    length = xp.sqrt(xp.where(direction, length, xp.inf))
    return _scale_rows(rows, 1 / length), offset / length


def _scale_rows(rows: Any, factors: Array) -> Any:
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(factors) @ rows)
    return rows * factors[:, None]


class Scatter(NamedTuple):
    """Sums over rows that can be merged: their number, their mean, the squares about it.

    `squares` is a matrix (d x d), its trace, or None, as it was asked for, in units of `unit` squared, the
    largest number that was met.
    """

    n: int
    mean: np.ndarray
    unit: float
    squares: Any


def scatter(X: Any, metric: str, dtype: str, squares: str) -> Scatter:
    """The sums over a block of rows, in memory; `squares` is "matrix", "trace" or "none"."""
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
            f"X must hold numbers below 1e150 in size, got {largest:.3g} in column {column}: divide it by "
            "its unit, or leave it out."
        )
    sums = rows.sum(axis=0, dtype=np.float64) if xp is np else xp.sum(rows, axis=0, dtype=widest(X))
    mean = to_numpy(sums).ravel() / n
    if offset is not None:
        mean = mean - float(offset.sum()) / n
    if squares == "none":
        return Scatter(n, mean, largest, None)
    centred = Centred(mean, largest if largest > 0 else 1.0, metric, dtype)
    if squares == "trace":
        # A dense block of many columns: as many rows at a time as there are values in a block.
        steps = blocks(n, max(1, VALUES_A_BLOCK // X.shape[1]))
        dense_steps = (centred.dense(X[step, :]) for step in steps)
        return Scatter(n, mean, largest, sum(float((d * d).sum()) for d in dense_steps))
    dense = centred.dense(X)
    return Scatter(n, mean, largest, to_numpy(dense.T @ dense).astype(np.float64))


def merge_scatter(a: Scatter, b: Scatter) -> Scatter:
    """The sums over the rows of both."""
    n, unit = a.n + b.n, max(a.unit, b.unit)
    if n == 0:
        return a
    apart = b.mean - a.mean
    mean = a.mean + apart * (b.n / n)
    if a.squares is None or unit == 0:
        return Scatter(n, mean, unit, a.squares)
    apart = apart / unit
    between = np.outer(apart, apart) if np.ndim(a.squares) == 2 else apart @ apart
    squares = a.squares * (a.unit / unit) ** 2 + b.squares * (b.unit / unit) ** 2
    return Scatter(n, mean, unit, squares + between * (a.n * (b.n / n)))


def _stays_single(dtype: str, metric: str) -> bool:
    return metric == "euclidean" and dtype == "float32"


class Centred(NamedTuple):
    """The matrix (rows - mean) / unit of a block of rows, in products or whole."""

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
        """The block's share of the covariance, times Q (d x k), in memory."""
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
        # The product of x - o 1 - m and y - p 1 - m, with offsets o and p and the mean m, multiplied out.
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
    rows: RowSource, n_spectral: int | str | None, *, metric: str, rng: np.random.Generator
) -> ComponentReducer:
    """Principal components of rows: the leading `n_spectral`, those above the noise ("auto"), or None."""
    n, d = rows.shape
    dtype = "float32" if rows.exact_in_single and metric == "euclidean" else "float64"
    squares = "trace" if n_spectral is None else "matrix" if d <= _SMALL else "none"
    block_scatter = functools.partial(scatter, metric=metric, dtype=dtype, squares=squares)
    found = rows.reduce(block_scatter, merge_scatter)
    centred = Centred(found.mean, found.unit if found.unit > 0 else 1.0, metric, dtype)
    if n_spectral is None:
        spread = float(np.sqrt(found.squares / n))
        unit = centred.unit * spread if spread > 0 else 1.0
        return ComponentReducer(centred.mean, None, np.empty(0), unit, metric)
    if n_spectral == "auto":
        n_spectral = _signal_rank(rows, found, centred, rng)
    values, components = _leading_components(rows, found, centred, int(n_spectral), rng)
    # Directions without variance carry nothing but rounding.
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
    rows: RowSource, found: Scatter, centred: Centred, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest squared singular values and their right singular vectors (k x d)."""
    n, d = rows.shape
    k = min(k, n, d)
    if d <= _SMALL:
        values, vectors = largest_eigenvectors(found.squares, k)
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
    Q = np.linalg.qr(rng.standard_normal((d, size)))[0]
    for _ in range(_POWER_ITERATIONS):
        Q = np.linalg.qr(covariance_times(Q))[0]
    small = Q.T @ covariance_times(Q)
    values, vectors = largest_eigenvectors((small + small.T) / 2, k)
    return values, (Q @ vectors).T


def largest_eigenvectors(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a symmetric matrix, none below 0, and their vectors in columns."""
    size = len(matrix)
    try:
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(size - k, size - 1))
    except np.linalg.LinAlgError:  # LAPACK's search for a few gives up on some matrices
        values, vectors = (found[..., size - k :] for found in np.linalg.eigh(matrix))
    return np.maximum(values[::-1], 0), vectors[:, ::-1]


def _signal_rank(
    rows: RowSource, found: Scatter, centred: Centred, rng: np.random.Generator
) -> int:
    """How many components stand above the noise, by ScreeNOT.

    Where both sides are large, a sample of rows stands for all of them.
    """
    n, d = rows.shape
    if d <= _SMALL:
        values = scipy.linalg.eigvalsh(found.squares)
        return screenot_rank(np.sqrt(np.maximum(values[-min(n, d) :], 0)), (n, d))
    chosen = np.sort(rng.choice(n, _SMALL, replace=False)) if n > _SMALL else np.arange(n)
    sample = rows.take(chosen)
    mean = scatter(sample, centred.metric, centred.dtype, "none").mean
    values = scipy.linalg.eigvalsh(centred._replace(mean=mean).gram(sample))
    return screenot_rank(np.sqrt(np.maximum(values, 0)), (len(chosen), d))
