"""Validated points, with distances and directions between them, in Euclidean space or on the sphere."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import check_array

from .._data.arrays import Array, blocks, is_torch, namespace, on_host, row_dot, to_numpy, widest
from .._data.checks import (
    UNIT_TOLERANCE,
    check_choice,
    check_columns,
    check_finite,
    check_integer,
    check_no_text,
    positions_of,
)
from .._data.columns import are_measurements, is_missing
from .._data.sparse import checked_csr
from .._math.sphere import geodesic, normalize, tangent_frame

Geometry: TypeAlias = Literal["auto", "sphere", "euclidean"]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Indices: TypeAlias = npt.NDArray[np.intp]

BLOCK = 2**22  # numbers in the largest array of a block, 32 MB
MIN_POINTS = 3  # points: an apex and two legs
N_POINTS = 5000  # default size of the sample of points
# Rows of a sparse matrix are compared densely if they have fewer columns than this many times their entries.
_DENSE_IS_FASTER = 10


@dataclass(frozen=True)
class Points:
    """Rows of `coordinates`, in Euclidean space or on the unit sphere.

    With a torch tensor, everything that grows with the number of points is computed on its device.
    """

    coordinates: Array
    on_sphere: bool = False

    def __len__(self) -> int:
        return int(self.coordinates.shape[0])

    @property
    def on_host(self) -> bool:
        return on_host(self.coordinates)

    def take(self, rows: Indices | slice) -> Array:
        """Coordinates of these rows, in the widest precision of the device (double, except on mps)."""
        if not isinstance(rows, slice):
            rows = on_device_of(rows, self.coordinates)
        xp = namespace(self.coordinates)
        return xp.astype(self.coordinates[rows], widest(self.coordinates))

    def distances(self, i: Indices, j: Indices) -> Floats:
        """Distance between the points i and the points j, arc length on the sphere."""
        i, j = np.broadcast_arrays(i, j)
        out = np.empty(i.size)
        for block in blocks(i.size, max(1, BLOCK // self.coordinates.shape[1])):
            P, Q = self.take(i.flat[block]), self.take(j.flat[block])
            if self.on_sphere:
                distances = geodesic(P, Q)
            else:
                P -= Q
                distances = namespace(P).sqrt(row_dot(P, P))
            out[block] = to_numpy(distances)
        return out.reshape(i.shape)

    def chord(self, distance: Floats) -> Floats:
        """Straight-line length of a distance, which sorts neighbours in the same order."""
        return 2 * np.sin(distance / 2) if self.on_sphere else distance

    def directions(self, apices: Indices, legs: Indices) -> tuple[Array, Array]:
        """Unit directions from each apex (b,) to its legs (b, m), and a mask of those that exist.

        On the sphere, a direction has two coordinates: it is the initial direction of the geodesic, in a
        frame of the tangent plane at the apex. The difference is projected, not the leg itself, for precision
        at short distances. A leg that coincides with its apex or with the apex's antipode has no direction.
        """
        P, D = self.take(apices), self.take(legs)
        xp = namespace(P)
        D -= P[:, None, :]
        if self.on_sphere:
            D = D @ xp.permute_dims(tangent_frame(P), (1, 2, 0))
        length = xp.sqrt(row_dot(D, D))
        # Antipodes project to rounding error, coincident points to zero.
        exists = length > (1e-12 if self.on_sphere else 0.0)
        D /= xp.where(exists, length, xp.ones_like(length))[:, :, None]
        return D, exists


class SparsePoints(Points):
    """Rows of a CSR matrix, in Euclidean space. Only the rows taken at a time are dense."""

    @property
    def on_host(self) -> bool:
        return True

    def take(self, rows: Indices | slice) -> Array:
        if isinstance(rows, slice):
            return self.coordinates[rows].toarray()
        return self.coordinates[rows.ravel()].toarray().reshape(*rows.shape, -1)

    def distances(self, i: Indices, j: Indices) -> Floats:
        per_row = max(1, self.coordinates.nnz // len(self))
        if self.coordinates.shape[1] < _DENSE_IS_FASTER * per_row:
            return super().distances(i, j)
        i, j = np.broadcast_arrays(i, j)
        out = np.empty(i.size)
        for block in blocks(i.size, max(1, BLOCK // per_row)):
            difference = self.coordinates[i.flat[block]] - self.coordinates[j.flat[block]]
            out[block] = np.sqrt(row_squares(difference))
        return out.reshape(i.shape)

    def directions(self, apices: Indices, legs: Indices) -> tuple[Array, Array]:
        rows = self.coordinates[np.concatenate([apices, legs.ravel()])]
        filled = rows[:, np.unique(rows.indices)]  # other columns are zero in these rows
        numbers = np.arange(len(apices) + legs.size)
        a, b = numbers[: len(apices)], numbers[len(apices) :].reshape(legs.shape)
        return Points(filled.toarray()).directions(a, b)


def row_squares(X: Any) -> Floats:
    """Squared length of each row of a sparse matrix."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def on_device_of(array: np.ndarray, coordinates: Array) -> Array:
    """Move a NumPy array to the device of the coordinates."""
    if on_host(coordinates):
        return array
    from .._data.torch_source import upload

    return upload(np.ascontiguousarray(array), coordinates.device)


def check_points(X: Any, name: str) -> Points:
    """Validate points of Euclidean space; scale very large or very small values by a power of two.

    The measures do not depend on the scale. Scaling keeps squares from overflowing and underflowing, and a
    power of two is exact.
    """
    X = _as_matrix(X, name)
    kind = SparsePoints if issparse(X) else Points
    largest = _largest(X)
    if largest > 0 and not 1e-10 < largest < 1e10:
        # In two steps: a single power may overflow.
        half = -int(np.frexp(largest)[1]) // 2
        X = X * 2.0**half * 2.0 ** (-int(np.frexp(largest)[1]) - half)
    return kind(X)


def _largest(X: Array) -> float:
    """Largest absolute value."""
    if issparse(X):
        return float(abs(X).max())
    xp = namespace(X)
    return max(float(xp.max(X)), -float(xp.min(X)))


def _as_matrix(X: Any, name: str) -> Array:
    """Check for a finite matrix of at least three rows; convert it to single or double precision."""
    if issparse(X):
        matrix = checked_csr(X, name)
        _check_shape(matrix, name)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers, got the type {matrix.dtype}.")
        matrix = matrix.astype(np.float64)
        check_finite(matrix, name)
        return matrix
    if not is_torch(X):
        check_columns(X, name)
        check_no_text(X, name)
        matrix = check_array(
            X,
            dtype=[np.float64, np.float32],
            input_name=name,
            ensure_all_finite=False,  # `check_finite` emits no warning for large values
            ensure_min_samples=MIN_POINTS,
            estimator=None,
        )
        check_finite(matrix, name, names=getattr(X, "columns", None))
        return matrix
    from .._data.torch_source import check_finite_tensor, check_tensor

    X = check_tensor(X, name)
    check_finite_tensor(X, name)
    _check_shape(X, name)
    return X if X.dtype.is_floating_point else X.float()


def _check_shape(X: Array, name: str) -> None:
    if X.shape[0] < MIN_POINTS or X.shape[1] < 1:
        raise ValueError(
            f"{name} must have at least {MIN_POINTS} rows and 1 column, got shape {tuple(X.shape)}."
        )


def check_embedding(Y: Any, geometry: Geometry) -> Points:
    """Validate an embedding; with `geometry="auto"`, three columns of unit vectors are on the sphere."""
    check_choice("geometry", geometry, get_args(Geometry))
    Y = positions_of("Y", Y)
    if issparse(Y):
        raise TypeError("Y must be dense, got a sparse matrix: pass Y.toarray().")
    points = check_points(Y, "Y")
    if geometry == "euclidean":
        return points
    n_columns = points.coordinates.shape[1]
    unscaled = Points(_as_matrix(Y, "Y")).take(slice(None))
    xp = namespace(unscaled)
    with np.errstate(over="ignore"):
        deviation = float(xp.max(xp.abs(xp.sqrt(row_dot(unscaled, unscaled)) - 1)))
    if n_columns == 3 and deviation <= UNIT_TOLERANCE:
        return Points(normalize(unscaled), on_sphere=True)
    if geometry == "auto":
        return points
    if n_columns != 3:
        raise ValueError(f'Y must have 3 columns with geometry="sphere", got {n_columns}.')
    raise ValueError(
        'Y must have rows of length 1 with geometry="sphere", '
        f"got a row whose length differs from 1 by {deviation:.3g}."
    )


def check_pair(X: Any, Y: Any, geometry: Geometry) -> tuple[Points, Points]:
    """Validate data and embedding with the same number of rows."""
    data, embedding = check_points(X, "X"), check_embedding(Y, geometry)
    if len(data) != len(embedding):
        raise ValueError(
            f"X and Y must have the same number of rows, got {len(data)} and {len(embedding)}."
        )
    if isinstance(data, SparsePoints):
        return data, replace(embedding, coordinates=to_numpy(embedding.coordinates))
    if data.on_host != embedding.on_host:  # one is on a device: move the other there
        on_device = embedding.coordinates if data.on_host else data.coordinates
        data, embedding = (
            replace(points, coordinates=on_device_of(points.coordinates, on_device))
            if points.on_host
            else points
            for points in (data, embedding)
        )
    return data, embedding


def check_labels(labels: Any, n: int) -> Indices:
    """Encode labels as 0, 1, ... in sorted order of the classes."""
    labels = to_numpy(labels) if is_torch(labels) else np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(
            f"labels must have one label per row, shape ({n},), got shape {labels.shape}."
        )
    if is_missing(labels).any():
        raise ValueError("labels must not be missing, got None or NaN.")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = " and ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise TypeError(
            f"labels must be numbers, or text, or of another type that can be sorted, got {kinds}."
        ) from None
    if are_measurements(labels):
        raise ValueError(
            f"labels must be classes, got numbers with {len(classes)} distinct values in {n} rows."
        )
    return codes.astype(np.intp)


def check_k(k: int, n: int) -> None:
    if not isinstance(k, numbers.Integral) or not 1 <= k < n:
        raise ValueError(
            f"k must be at least 1 and less than the number of points, {n}, got {k!r}."
        )


def sample_points(n: int, n_points: int | None, rng: np.random.Generator) -> Indices:
    """Indices of all points, or of `n_points` random ones, in increasing order."""
    if n_points is not None:
        check_integer("n_points", n_points, 2, none=True)
    if n_points is None or n_points >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, n_points, replace=False))
