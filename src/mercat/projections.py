"""Map projections: from unit vectors to the plane and back.

=============== ================================ ===========================================
name            preserves                        the whole sphere becomes
=============== ================================ ===========================================
mercator        angles (conformal)               a strip of width 2 pi and infinite height
lambert         areas                            a disc of radius 2
equal_earth     areas                            a rounded oblong; its poles are lines
mollweide       areas                            an ellipse of half-axes 2 sqrt(2), sqrt(2)
orthographic    the view from space              two unit discs, one for each side
=============== ================================ ===========================================

Lengths are in units of the radius of the sphere. All projections can be centred anywhere (oblique maps):
the sphere is first rotated so that the centre faces the reader, with north up. Centres are in degrees.

Where a projection is singular:

- Mercator maps its poles to ``(0, inf)`` and ``(0, -inf)``;
- Lambert maps the point opposite to the centre to ``(2, 0)`` on its rim;
- Equal Earth draws its poles as lines, and maps points there to the middle of the line;
- orthographic maps both sides of the globe to the same disc: `far_side` distinguishes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._data.checks import check_choice, check_unit
from ._math.orientation import equator_rotation
from ._math.sphere import from_lonlat, to_lonlat

__all__ = ["NAMES", "equator_rotation", "far_side", "inverse", "project", "scale_factors"]

Floats = NDArray[np.float64]

# Positions at most this far beyond the rim (in radii) count as on it.
_RIM_TOLERANCE = 1e-9


class _Projection(ABC):
    """A projection with its centre at the first axis and north along the third.

    `forward` maps unit vectors to the plane, `backward` the plane to unit vectors (NaN off the map),
    `stretch` returns the half-axes of Tissot's indicatrix, larger one first, and `rim` the boundary of the
    map, None if it has none.
    """

    azimuthal = False  # the centre is a point rather than the equator
    rim_is_point = False  # the whole rim is one point of the sphere
    two_sided = False  # the far side lies under the near one

    @property
    def unbounded(self) -> bool:
        return self.rim() is None

    @abstractmethod
    def forward(self, W: Floats) -> Floats: ...

    @abstractmethod
    def backward(self, P: Floats) -> Floats: ...

    @abstractmethod
    def stretch(self, W: Floats) -> Floats: ...

    def rim(self) -> Floats | None:
        return None


class _Mercator(_Projection):
    """u = longitude, v = artanh(sin latitude); circles grow by sec(latitude)."""

    def forward(self, W: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            v = np.arcsinh(W[:, 2] / np.hypot(W[:, 0], W[:, 1]))
        return np.column_stack([np.arctan2(W[:, 1], W[:, 0]), v])

    def backward(self, P: Floats) -> Floats:
        u, v = P.T
        # cosh overflows near the poles, where its reciprocal is 0, as it should be.
        with np.errstate(over="ignore"):
            c = 1 / np.cosh(v)
        return np.column_stack([c * np.cos(u), c * np.sin(u), np.tanh(v)])

    def stretch(self, W: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            secant = 1 / np.hypot(W[:, 0], W[:, 1])
        return np.column_stack([secant, secant])


class _Lambert(_Projection):
    """Azimuthal: the distance from the centre becomes the length of the chord to it."""

    azimuthal = True
    rim_is_point = True

    def forward(self, W: Floats) -> Floats:
        sine = np.hypot(W[:, 1], W[:, 2])
        # 1 + x cancels on the far half and 1 - x on the near one: each has its own formula.
        near = np.sqrt(2 / (1 + np.maximum(W[:, 0], 0)))
        far = np.sqrt(2 * (1 - np.minimum(W[:, 0], 0))) / np.where(sine > 0, sine, 1)
        P = np.where(W[:, 0] >= 0, near, far)[:, None] * W[:, 1:]
        P[(W[:, 0] < 0) & (sine == 0)] = [2.0, 0.0]
        return P

    def backward(self, P: Floats) -> Floats:
        quarter = np.sum(P * P, axis=1) / 4
        outside = quarter > 1 + _RIM_TOLERANCE
        k = np.sqrt(np.clip(1 - quarter, 0, None))
        return _with_nan(np.column_stack([1 - 2 * quarter, k * P[:, 0], k * P[:, 1]]), outside)

    def stretch(self, W: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            radial = np.sqrt(2 / (1 + W[:, 0]))
        return np.column_stack([radial, 1 / radial])

    def rim(self) -> Floats:
        return 2 * _circle()


class _Orthographic(_Projection):
    """The globe seen from infinity: the first axis is dropped."""

    azimuthal = True
    two_sided = True

    def forward(self, W: Floats) -> Floats:
        return W[:, 1:].copy()

    def backward(self, P: Floats) -> Floats:
        depth = 1 - np.sum(P * P, axis=1)
        W = np.column_stack([np.sqrt(np.clip(depth, 0, None)), P])
        return _with_nan(W, depth < -_RIM_TOLERANCE)

    def stretch(self, W: Floats) -> Floats:
        return np.column_stack([np.ones(len(W)), np.abs(W[:, 0])])

    def rim(self) -> Floats:
        return _circle()


class _PseudoCylinder(_Projection):
    """Straight parallels: u = longitude * width(t), v = height(t) for a latitude-like t."""

    def forward(self, W: Floats) -> Floats:
        longitude, _ = to_lonlat(W)
        width, height, *_ = self._along_meridian(W)
        return np.column_stack([longitude * width, height])

    def stretch(self, W: Floats) -> Floats:
        longitude, _ = to_lonlat(W)
        cosine = np.hypot(W[:, 0], W[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            width, _, dwidth, dheight = self._along_meridian(W)
            east, shear, north = width / cosine, longitude * dwidth, dheight
            # Half-axes a >= b of the ellipse have a b = 1 (equal area) and a^2 + b^2 = square.
            square = east**2 + shear**2 + north**2
            a = (np.sqrt(square + 2) + np.sqrt(np.clip(square - 2, 0, None))) / 2
        a[cosine == 0] = np.inf
        return np.column_stack([a, 1 / a])

    def rim(self) -> Floats:
        latitude = np.linspace(-np.pi / 2, np.pi / 2, 181)
        width, height, *_ = self._along_meridian(from_lonlat(np.zeros(len(latitude)), latitude))
        east = np.column_stack([np.pi * width, height])
        west = east[::-1] * [-1, 1]
        return np.concatenate([east, west, east[:1]])

    @abstractmethod
    def _along_meridian(self, W: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """width, height, and their derivatives with respect to latitude."""


class _EqualEarth(_PseudoCylinder):
    """Savric, Patterson and Jenny (2019), *The Equal Earth map projection*."""

    _A = (1.340264, -0.081106, 0.000893, 0.003796)

    def _polynomial(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """The height, and its first and second derivative."""
        a, b, c, d = self._A
        s = t * t
        return (
            t * (a + s * (b + s * s * (c + s * d))),
            a + s * (3 * b + s * s * (7 * c + 9 * s * d)),
            t * (6 * b + s * s * (42 * c + 72 * s * d)),
        )

    def _along_meridian(self, W: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        t = np.arcsin(np.sqrt(0.75) * np.clip(W[:, 2], -1, 1))
        height, slope, second_derivative = self._polynomial(t)
        width = np.cos(t) / (np.sqrt(0.75) * slope)
        rate = np.sqrt(0.75) * np.hypot(W[:, 0], W[:, 1]) / np.cos(t)  # dt / dlatitude
        numerator = np.sin(t) * slope + np.cos(t) * second_derivative
        dwidth = -numerator / (np.sqrt(0.75) * slope**2) * rate
        return width, height, dwidth, slope * rate

    def backward(self, P: Floats) -> Floats:
        u, v = P.T
        top = float(self._polynomial(np.array(np.pi / 3))[0])
        t = np.clip(v, -top, top) / self._A[0]
        for _ in range(10):  # the height is close to linear: Newton's method needs about six
            height, slope, _ = self._polynomial(t)
            t = t + (np.clip(v, -top, top) - height) / slope
        slope = self._polynomial(t)[1]
        longitude = np.sqrt(0.75) * u * slope / np.cos(t)
        latitude = np.arcsin(np.clip(np.sin(t) / np.sqrt(0.75), -1, 1))
        outside = (np.abs(v) > top + _RIM_TOLERANCE) | (np.abs(longitude) > np.pi + _RIM_TOLERANCE)
        return _with_nan(from_lonlat(longitude, latitude), outside)


class _Mollweide(_PseudoCylinder):
    """u = (2 sqrt(2) / pi) longitude cos t, v = sqrt(2) sin t, 2 t + sin 2 t = pi sin latitude."""

    def _along_meridian(self, W: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        cosine = np.hypot(W[:, 0], W[:, 1])
        # In e = pi - 2 |t|, the distance from the pole, the equation is e - sin e = target.
        target = np.pi * cosine**2 / (1 + np.abs(W[:, 2]))
        e = np.cbrt(6 * target)
        # Convex, so from the second on, Newton's iterates decrease towards the root.
        for _ in range(8):
            slope = 2 * np.sin(e / 2) ** 2
            e = np.where(slope > 0, e - (e - np.sin(e) - target) / np.where(slope > 0, slope, 1), e)
        cos_t, sin_t = np.sin(e / 2), np.copysign(np.cos(e / 2), W[:, 2])
        rate = np.pi * cosine / (4 * np.where(cos_t > 0, cos_t, 1) ** 2)  # dt / dlatitude
        width_factor = 2 * np.sqrt(2) / np.pi
        return (
            width_factor * cos_t,
            np.sqrt(2) * sin_t,
            -width_factor * sin_t * rate,
            np.sqrt(2) * cos_t * rate,
        )

    def backward(self, P: Floats) -> Floats:
        u, v = P.T
        sin_t = np.clip(v / np.sqrt(2), -1, 1)
        e = 2 * np.arccos(np.abs(sin_t))
        cos_t = np.sin(e / 2)
        missing_sine = (e - np.sin(e)) / np.pi  # 1 - |sin latitude|
        cosine = np.sqrt(missing_sine * (2 - missing_sine))
        latitude = np.copysign(np.arctan2(1 - missing_sine, cosine), v)
        # At a pole every longitude is the same point.
        longitude = np.pi * u / (2 * np.sqrt(2) * np.where(cos_t > 0, cos_t, 1))
        outside = np.hypot(u / 2, v) > np.sqrt(2) + _RIM_TOLERANCE
        return _with_nan(from_lonlat(np.clip(longitude, -np.pi, np.pi), latitude), outside)


_PROJECTIONS: dict[str, _Projection] = {
    "mercator": _Mercator(),
    "lambert": _Lambert(),
    "equal_earth": _EqualEarth(),
    "mollweide": _Mollweide(),
    "orthographic": _Orthographic(),
}

#: Names of the projections, for `project`, `inverse` and `scale_factors`.
NAMES = tuple(_PROJECTIONS)


def project(
    Y: ArrayLike, projection: str = "mercator", *, center: Sequence[float] = (0.0, 0.0)
) -> Floats:
    """Project unit vectors to a map.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Unit vectors.
    projection : {"mercator", "lambert", "equal_earth", "mollweide", "orthographic"}, default="mercator"
        See the table at the top of :mod:`mercat.projections`.
    center : (longitude, latitude), default=(0, 0)
        Centre of the map in degrees; north is up.

    Returns
    -------
    P : ndarray of shape (n, 2)
        Horizontal and vertical positions, in units of the radius. Mercator's poles are at ``(0, inf)`` and
        ``(0, -inf)``.

    Examples
    --------
    >>> from mercat.projections import project
    >>> project([[1, 0, 0], [0, 1, 0], [0.6, 0, 0.8]])
    array([[0.        , 0.        ],
           [1.57079633, 0.        ],
           [0.        , 1.09861229]])
    >>> project([[0, 1, 0]], "lambert", center=(90, 0))
    array([[0., 0.]])
    """
    return lookup(projection).forward(check_unit("Y", Y) @ _rotation_to(center).T)


def inverse(
    P: ArrayLike, projection: str = "mercator", *, center: Sequence[float] = (0.0, 0.0)
) -> Floats:
    """Unit vectors of positions on a map.

    Parameters
    ----------
    P : array-like of shape (n, 2)
        Positions on the map, as returned by `project`.
    projection, center
        As in `project`.

    Returns
    -------
    Y : ndarray of shape (n, 3)
        Unit vectors; NaN for positions off the map. Mercator's map is periodic, so no position is off it. Of
        the two points at an orthographic position, the one on the near side is returned.

    Examples
    --------
    >>> from mercat.projections import inverse
    >>> inverse([[0, 0], [0.6, 0], [2, 0]], "orthographic")
    array([[1. , 0. , 0. ],
           [0.8, 0.6, 0. ],
           [nan, nan, nan]])
    """
    positions = np.asarray(P, dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1] != 2:
        raise ValueError(f"P must have shape (n, 2), got {positions.shape}.")
    return lookup(projection).backward(positions) @ _rotation_to(center)


def scale_factors(
    Y: ArrayLike, projection: str = "mercator", *, center: Sequence[float] = (0.0, 0.0)
) -> Floats:
    """Local scale factors of a map at each point.

    A small circle on the sphere becomes an ellipse on the map (Tissot's indicatrix). Conformal maps preserve
    circles, equal-area maps their area.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Unit vectors.
    projection, center
        As in `project`.

    Returns
    -------
    factors : ndarray of shape (n, 2)
        Larger and smaller half-axis of the ellipse for a circle of radius 1. For Mercator, both are
        sec(latitude); for equal-area maps, their product is 1; ``inf`` where the projection is singular.

    Examples
    --------
    >>> from mercat.projections import scale_factors
    >>> Y = [[1, 0, 0], [0.6, 0, 0.8]]
    >>> scale_factors(Y, "mercator")
    array([[1.        , 1.        ],
           [1.66666667, 1.66666667]])
    >>> scale_factors(Y, "lambert").prod(axis=1)
    array([1., 1.])
    """
    return lookup(projection).stretch(check_unit("Y", Y) @ _rotation_to(center).T)


def far_side(Y: ArrayLike, *, center: Sequence[float] = (0.0, 0.0)) -> NDArray[np.bool_]:
    """Mask of the points on the far side of a globe.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Unit vectors.
    center : (longitude, latitude), default=(0, 0)
        Centre of the globe in degrees.

    Returns
    -------
    far : ndarray of shape (n,)
        True for points more than 90 degrees from the centre.

    Examples
    --------
    >>> from mercat.projections import far_side
    >>> far_side([[1, 0, 0], [0, 1, 0], [-1, 0, 0]])
    array([False, False,  True])
    """
    # Tolerance for rounding: points on the rim are not far.
    return np.asarray(check_unit("Y", Y) @ _rotation_to(center)[0] < -1e-12)


def lookup(projection: str) -> _Projection:
    """The projection of this name; raises ValueError for unknown names."""
    check_choice("projection", projection, NAMES)
    return _PROJECTIONS[projection]


def _rotation_to(center: Any) -> Floats:
    """The rotation that maps the centre to the first axis and its east to the second."""
    try:
        longitude, latitude = (np.deg2rad(float(angle)) for angle in center)
    except (TypeError, ValueError):
        raise ValueError(f"center must be (longitude, latitude), got {center!r}.") from None
    if not (np.isfinite(longitude) and abs(latitude) <= np.pi / 2):
        raise ValueError(
            "center must be (longitude, latitude) in degrees, with a latitude from -90 to 90, "
            f"got {center!r}."
        )
    cl, sl, cp, sp = np.cos(longitude), np.sin(longitude), np.cos(latitude), np.sin(latitude)
    rotation = np.array([[cl * cp, sl * cp, sp], [-sl, cl, 0.0], [-cl * sp, -sl * sp, cp]])
    # cos(90 degrees) is 6e-17 in floating point: make right angles exact.
    rotation[np.abs(rotation) < 1e-15] = 0
    return rotation


def _circle() -> Floats:
    angle = np.linspace(0, 2 * np.pi, 361)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _with_nan(W: Floats, outside: NDArray[np.bool_]) -> Floats:
    W[outside] = np.nan
    return W
