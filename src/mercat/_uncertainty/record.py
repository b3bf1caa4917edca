"""`Uncertainty`: error bars for the positions on a map."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import f as _f_distribution

from .._data.arrays import is_dask, like, namespace, to_numpy
from .._data.checks import check_integer, check_rows, check_unit
from .._math.orientation import orthogonal_onto
from .._math.sphere import geodesic
from .._solve.initial import resized, size_of

# Degrees of freedom of regions from very many comparisons, chosen empirically (benchmarks/calibration.py).
_MAX_DEGREES_OF_FREEDOM = 7


@dataclass(frozen=True, repr=False, eq=False)
class Uncertainty:
    """Uncertainty of the positions on a map, returned by `mercat.uncertainty`.

    Arrays have one row per point and are of the same kind as X: NumPy arrays, tensors on the device of X, or
    lazy Dask arrays.

    Attributes
    ----------
    places : array of shape (n, 3)
        Positions on the map, the centres of the ellipses.
    axes : array of shape (n, 2, 3)
        Half-axes of the ellipse of each point, the longer one first: tangent vectors whose lengths are the
        root mean square deviations of the position on another map in their directions, in radians.
    spread : array of shape (n,)
        Root mean square distance between the positions on the map and on another map, in radians. Compare it
        with the size of the map: a small map has small spreads.
    alternative : array of shape (n, 3)
        Another position of the point, at least 0.3 radians away: the most frequent one among the other maps,
        or else another minimum of its loss on the map; NaN if there is neither.
    alternative_gap : array of shape (n,)
        How much worse the point fits there: the difference of its mean squared residuals, relative to the
        mean squared residual of the map. Negative if it fits better.
    alternative_wins : array of shape (n,)
        Fraction of the other maps on which the point is at the alternative position; NaN without one.
    torn : array of shape (n,)
        Fraction of the nearest neighbours of each point in the reduced data that are far away on the map, as
        in :func:`mercat.metrics.torn_neighbors`; for more than 2000 points, among a random sample of at least
        1000.
    p_value : array of shape (n,)
        Fraction of points of data without structure (the reduced data, randomly rotated, with each column
        permuted) whose angles a map explains at least as well. Up to 2000 such points are used; the p-value
        is at least 1 / (1 + their number).
    stability : float
        Agreement of the other maps: 1 if they are equal, 0 if they have nothing in common. One minus the mean
        squared distance between the positions of a point on two maps, divided by that between two points on
        one map.
    stability_by_chance : float
        Stability of three such maps of normal noise with as many rows and columns as the reduced data. It
        varies by 0.1 to 0.2 with `random_state`.
    n_maps : int
        Number of other maps.
    n_comparisons : int
        Number of comparisons of two maps behind the ellipses: `n_maps`, or half of it if pairs of other maps
        are compared with each other.
    sizes : array of shape (n_maps,)
        Size of each other map before it was scaled, as a multiple of the size of the map.
    """

    places: Any
    axes: Any
    alternative: Any
    alternative_gap: Any
    alternative_wins: Any
    torn: Any
    p_value: Any
    stability: float
    stability_by_chance: float
    n_maps: int
    n_comparisons: int
    sizes: Any

    def __repr__(self) -> str:
        n = self.places.shape[0]
        text = (
            f"Uncertainty of {n} points from {self.n_maps} maps with stability {self.stability:.3f} "
            f"(by chance: {self.stability_by_chance:.1f})"
        )
        if is_dask(self.places):
            return text
        text += f"; median spread {median_spread(self).in_words}"
        low, high = np.min(self.sizes), np.max(self.sizes)
        return f"{text}; maps {low:.2g} to {high:.2g} times as large" if high > 0 else text

    @property
    def spread(self) -> Any:  # numpydoc ignore=RT01
        """Root mean square distance between the positions on the map and on another one, in radians."""
        return (self.axes * self.axes).sum(axis=(1, 2)) ** 0.5

    def columns(self) -> dict[str, Any]:
        """The attributes with one number per point.

        Returns
        -------
        columns : dict of str to array of shape (n,)
            "spread", "alternative_gap", "alternative_wins", "torn" and "p_value".
        """
        names = ("spread", "alternative_gap", "alternative_wins", "torn", "p_value")
        return {name: getattr(self, name) for name in names}

    def factor(self, level: float) -> float:
        """Number of standard deviations to which the region of a level extends.

        Parameters
        ----------
        level : float
            Probability in (0, 1), such as 0.9.

        Returns
        -------
        factor : float
            The quantile of a distribution with heavier tails than the normal one, chosen empirically: a
            t-distribution whose number of degrees of freedom grows with `n_comparisons`, up to 7.
        """
        if not isinstance(level, numbers.Real) or not 0 < level < 1:
            raise ValueError(f"level must be a number above 0 and below 1, got {level!r}.")
        degrees = 1 / (1 / self.n_comparisons + 1 / _MAX_DEGREES_OF_FREEDOM)
        return float(np.sqrt(2 * _f_distribution.ppf(level, 2, degrees)))

    def ellipses(self, level: float = 0.9, *, rows: Any = None, n_vertices: int = 48) -> Any:
        """Outlines of the regions that contain the positions on another map with a given probability.

        Parameters
        ----------
        level : float, default=0.9
            The probability.
        rows : array of int, optional
            The points; all by default.
        n_vertices : int, default=48
            Number of vertices per outline.

        Returns
        -------
        outlines : array of shape (n, n_vertices, 3)
            Unit vectors: ellipses in the tangent plane, mapped to the sphere along great circles.
        """
        check_integer("n_vertices", n_vertices, 3)
        scale = self.factor(level)
        rows = slice(None) if rows is None else check_rows(rows, len(self.places))
        center, axes = (to_numpy(a[rows]) for a in (self.places, self.axes))
        angle = np.arange(n_vertices) * (2 * np.pi / n_vertices)
        circle = scale * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        step = circle @ axes
        length = np.minimum(np.linalg.norm(step, axis=2, keepdims=True), np.pi)
        direction = step / np.where(length > 0, np.linalg.norm(step, axis=2, keepdims=True), 1)
        return np.cos(length) * center[:, None, :] + np.sin(length) * direction

    def aligned(self, Y: Any) -> np.ndarray:
        """Another map of the same points, rotated and scaled onto this one.

        Parameters
        ----------
        Y : array of shape (n, 3)
            Unit vectors, one per point.

        Returns
        -------
        Y : array of shape (n, 3)
        """
        places = np.asarray(to_numpy(self.places), dtype=np.float64)
        Y = check_unit("Y", to_numpy(Y))
        _check_one_per_point(Y, places)
        Y = resized(Y, size_of(places))
        return np.asarray(Y @ orthogonal_onto(Y, places).T)

    def contains(self, Y: Any, level: float = 0.9) -> Any:
        """Whether positions lie in the regions of a level.

        Parameters
        ----------
        Y : array of shape (n, 3)
            Unit vectors, one per point, such as the result of `aligned`.
        level : float, default=0.9
            The probability.

        Returns
        -------
        inside : array of bool of shape (n,)
        """
        center, axes = self.places, self.axes
        xp = np if is_dask(center) else namespace(center)
        if not is_dask(Y):
            Y = xp.asarray(
                check_unit("Y", to_numpy(Y)), **({} if is_dask(center) else like(center))
            )
        _check_one_per_point(Y, center)
        length = (axes * axes).sum(axis=2) ** 0.5
        distance = geodesic(Y, center)
        along = (axes * Y[:, None, :]).sum(axis=2)  # times sine and length
        tangent = Y - (Y * center).sum(axis=1)[:, None] * center
        sine = (tangent * tangent).sum(axis=1) ** 0.5
        unit = xp.where(sine > 0, distance / xp.where(sine > 0, sine, 1.0), 1.0)
        flat = length == 0
        deviation = xp.where(
            flat,
            xp.where(abs(along) > 0, xp.inf, 0.0),
            along * unit[:, None] / xp.where(flat, 1.0, length) ** 2,
        )
        return (deviation * deviation).sum(axis=1) <= self.factor(level) ** 2


def _check_one_per_point(Y: Any, places: Any) -> None:
    if Y.shape != places.shape:
        raise ValueError(
            f"Y must have a unit vector for each of the {len(places)} points, got the shape {Y.shape}."
        )


class MedianSpread(NamedTuple):
    """Median spread of the points of a map."""

    degrees: float
    map_sizes: float | None  # relative to the size of the map; None if all points coincide

    @property
    def in_words(self) -> str:
        degrees = f"{self.degrees:.2g} degrees"
        return degrees if self.map_sizes is None else f"{degrees}, {self.map_sizes:.2g} map sizes"


def median_spread(bars: Uncertainty) -> MedianSpread:
    """Median spread of the points, in degrees and map sizes."""
    median = float(np.median(to_numpy(bars.spread)))
    size = size_of(np.asarray(to_numpy(bars.places), dtype=np.float64))
    return MedianSpread(float(np.degrees(median)), median / size if size > 0 else None)
