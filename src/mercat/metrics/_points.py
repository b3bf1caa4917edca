"""Points to measure on: what a distance and a direction are, in space and on the sphere."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from .._data.arrays import Array, blocks, is_torch, namespace, on_host, row_dot, to_numpy, widest
from .._data.checks import UNIT_TOLERANCE, check_choice, check_integer
from .._data.columns import are_measurements, is_missing
from .._math.sphere import geodesic, normalize, tangent_frame

Geometry: TypeAlias = Literal["auto", "sphere", "euclidean"]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Indices: TypeAlias = npt.NDArray[np.intp]

BLOCK = 2**22  # numbers in the largest array of a block, 32 MB
LEAST_FOR_ANGLES = 3  # points: an apex and two legs
N_POINTS = 5000  # at which measures are taken, unless told otherwise


@dataclass(frozen=True)
class Points:
    """Rows of `coordinates`, in Euclidean space or on the unit sphere.

    They are NumPy's, or a torch tensor: then all that grows with the number of points is computed where
    it lives.
    """

    coordinates: Array
    on_sphere: bool = False

    def __len__(self) -> int:
        return len(self.coordinates)

    @property
    def on_host(self) -> bool:
        return on_host(self.coordinates)

    def take(self, rows: Indices | slice) -> Array:
        """Some of the coordinates, in double precision."""
        if not isinstance(rows, slice):
            rows = brought_to(rows, self.coordinates)
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
        """Straight-line length of a distance: the order of points around one is the same."""
        return 2 * np.sin(distance / 2) if self.on_sphere else distance

    def directions(self, apices: Indices, legs: Indices) -> tuple[Array, Array]:
        """Unit directions from each apex (b,) to its legs (b, m), and where they exist.

        On the sphere a direction is the start of the geodesic, in a frame of the tangent
        plane at the apex: two coordinates. The difference is projected, not the leg itself,
        so that near points keep their digits. A leg that coincides with its apex, or with
        the apex's antipode, has no direction.
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


def brought_to(array: np.ndarray, coordinates: Array) -> Array:
    """An array of NumPy's where the coordinates live."""
    if on_host(coordinates):
        return array
    from .._data.torch_source import upload

    return upload(np.ascontiguousarray(array), coordinates.device)


def check_points(X: Any, name: str) -> Points:
    """Validated rows of Euclidean space, scaled by a power of two near 1.

    No measure sees the scale; squares of the scaled values neither over- nor underflow, and
    a power of two changes no digit.
    """
    X = _checked(X, name)
    xp = namespace(X)
    largest = max(float(xp.max(X)), -float(xp.min(X)))
    if largest > 0 and not 1e-10 < largest < 1e10:
        # In two steps: one power may lie beyond the numbers that it brings back.
        half = -int(np.frexp(largest)[1]) // 2
        X = X * 2.0**half * 2.0 ** (-int(np.frexp(largest)[1]) - half)
    return Points(X)


def _checked(X: Any, name: str) -> Array:
    """Finite numbers in two dimensions, three rows or more, in single or double precision."""
    if not is_torch(X):
        return check_array(
            X,
            dtype=[np.float64, np.float32],
            input_name=name,
            ensure_min_samples=LEAST_FOR_ANGLES,
            estimator=None,
        )
    from .._data.torch_source import check_finite_tensor, check_tensor

    X = check_tensor(X, name)
    check_finite_tensor(X, name)
    if X.shape[0] < LEAST_FOR_ANGLES or X.shape[1] < 1:
        raise ValueError(
            f"{name} must have {LEAST_FOR_ANGLES} rows and a column at least, got shape {tuple(X.shape)}."
        )
    return X if X.dtype.is_floating_point else X.float()


def check_embedding(Y: Any, geometry: Geometry) -> Points:
    """Validated embedding; `geometry` says where it lives, "auto" looks at the rows' lengths."""
    check_choice("geometry", geometry, get_args(Geometry))
    points = check_points(Y, "Y")
    if geometry == "euclidean":
        return points
    n_columns = points.coordinates.shape[1]
    unscaled = Points(_checked(Y, "Y")).take(slice(None))
    xp = namespace(unscaled)
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
    """Data and embedding, row by row."""
    data, embedding = check_points(X, "X"), check_embedding(Y, geometry)
    if len(data) != len(embedding):
        raise ValueError(
            f"X and Y must have the same number of rows, got {len(data)} and {len(embedding)}."
        )
    if data.on_host != embedding.on_host:  # to where one of them lives
        place = embedding.coordinates if data.on_host else data.coordinates
        data, embedding = (
            replace(p, coordinates=brought_to(p.coordinates, place)) if p.on_host else p
            for p in (data, embedding)
        )
    return data, embedding


def check_labels(labels: Any, n: int) -> Indices:
    """Labels as codes 0, 1, ... in sorted order of the classes."""
    labels = to_numpy(labels) if is_torch(labels) else np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(
            f"labels must hold one label a row, shape ({n},), got shape {labels.shape}."
        )
    if is_missing(labels).any():
        raise ValueError("labels must not be missing, got None or NaN.")
    classes, codes = np.unique(labels, return_inverse=True)
    if are_measurements(labels):
        raise ValueError(
            f"labels must be classes, got numbers of which {len(classes)} of {n} are different."
        )
    return codes.astype(np.intp)


def check_k(k: int, n: int) -> None:
    if not isinstance(k, numbers.Integral) or not 1 <= k < n:
        raise ValueError(
            f"k must be at least 1 and less than the number of points, {n}, got {k!r}."
        )


def sample_points(n: int, n_points: int | None, rng: np.random.Generator) -> Indices:
    """Which points to measure at: all of them, or `n_points` at random, in order."""
    if n_points is not None:
        check_integer("n_points", n_points, 2, none=True)
    if n_points is None or n_points >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, n_points, replace=False))
