"""Geometry of the unit sphere S^2, for points stored as unit vectors in R^3.

Every function takes and returns arrays of any library that follows the array API (NumPy, torch, ...). Unit
vectors have no poles and no seam; longitude and latitude are used for maps only.
"""

from __future__ import annotations

from typing import Any

from .._data.arrays import Array, namespace, row_dot


def normalize(Y: Array) -> Array:
    """Scale each row to unit length; a row of length zero becomes the first axis."""
    xp = namespace(Y)
    # Dividing by the largest entry first avoids overflow and underflow of squares.
    largest = xp.max(xp.abs(Y), axis=1, keepdims=True)
    zero = largest == 0
    Y = Y / xp.where(zero, xp.ones_like(largest), largest)
    axis = xp.zeros_like(Y)
    axis[:, 0] = 1
    Y = xp.where(zero, axis, Y)
    return Y / xp.sqrt(xp.sum(Y * Y, axis=1, keepdims=True))


def tangent_frame(Y: Array) -> Array:
    """Orthonormal tangent vectors U, V for each row, with (U, V, Y) right-handed.

    Without branches or singular points (Duff et al. 2017, *Building an orthonormal basis, revisited*).
    """
    xp = namespace(Y)
    x, y, z = Y[:, 0], Y[:, 1], Y[:, 2]
    one = xp.ones_like(z)
    sign = xp.where(z >= 0, one, -one)
    a = -1 / (sign + z)
    b = x * y * a
    U = xp.stack([1 + sign * x * x * a, sign * b, -sign * x], axis=1)
    V = xp.stack([b, sign + y * y * a, -y], axis=1)
    return xp.stack([U, V])


def tangent(vectors: Array, Y: Array) -> Array:
    """Component of each vector tangent to the sphere at the corresponding row of Y."""
    return vectors - row_dot(vectors, Y)[:, None] * Y


def geodesic(P: Array, Q: Array) -> Array:
    """Arc length between corresponding rows of P and Q, accurate for near and antipodal pairs.

    Computed from the chords to Q and to -Q, since the arc-cosine loses half of the digits for nearby points.
    """
    xp = namespace(P)
    near = xp.sqrt(xp.sum((P - Q) ** 2, axis=-1))
    far = xp.sqrt(xp.sum((P + Q) ** 2, axis=-1))
    return 2 * xp.atan2(near, far)


def to_lonlat(Y: Array) -> tuple[Array, Array]:
    """Longitude in (-pi, pi] and latitude in [-pi/2, pi/2] of unit vectors."""
    xp = namespace(Y)
    longitude = xp.atan2(Y[..., 1], Y[..., 0])
    latitude = xp.atan2(Y[..., 2], xp.sqrt(Y[..., 0] ** 2 + Y[..., 1] ** 2))
    return longitude, latitude


def from_lonlat(longitude: Array, latitude: Array) -> Array:
    """Unit vectors from longitude and latitude in radians."""
    xp = namespace(longitude)
    c = xp.cos(latitude)
    return xp.stack([c * xp.cos(longitude), c * xp.sin(longitude), xp.sin(latitude)], axis=-1)


def fibonacci_grid(n: int, xp: Any, **kwargs: Any) -> Array:
    """n points spread evenly over the sphere along a golden-angle spiral."""
    k = xp.arange(n, **kwargs) + 0.5
    latitude = xp.asin(1 - 2 * k / n)
    longitude = k * (3.141592653589793 * (3 - 5**0.5))
    return from_lonlat(longitude, latitude)


def squared_spacing(Y: Array) -> float:
    """Approximate squared distance between neighbouring unit vectors: their variance divided by their number.

    The variance is 1 for the whole sphere, and about the squared radius of a small cap.
    """
    xp = namespace(Y)
    deviation = Y - xp.mean(Y, axis=0)
    return float(xp.sum(deviation * deviation)) / int(Y.shape[0]) ** 2
