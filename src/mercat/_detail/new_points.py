"""New points on a map with detail: each is placed by its own descent among the points of the map."""

from __future__ import annotations

import functools
import threading
from typing import NamedTuple

import numpy as np

from .. import _kernels as kernels
from .._data.arrays import Array, in_tiles, namespace, on_host, same_device
from .._data.threads import Workers
from .._math.angles import Calibration
from .._math.sphere import normalize, tangent
from . import tiles
from .affinities import DECAY, Strength, edge_shares
from .descent import (
    LONGEST_STEP,
    NARROWING,
    DescentResult,
    final_bandwidth,
    limited,
    repulsion,
    softening_of,
)
from .neighbors import EqualRows, NearestToNew
from .repulsion import Field, Kernel
from .terms import (
    Anchors,
    AngleTerm,
    FarTerms,
    PairForces,
    Pairs,
    Term,
    anchors_at,
    n_anchors,
    numbers_for_kernels,
    pairs_of,
    products_of,
)

_STEPS = 30  # number of steps of a point ...
_N_STARTS = 32  # ... and number of its nearest neighbours, from one of which it starts
# Points per tile, in C and in NumPy; tiles are padded, so a single point takes as long as a tile.
_TILE_IN_C, _TILE_IN_NUMPY = 16, 64
_SEARCH_LOCK = threading.Lock()  # so that threads that place points build the search only once


class _Fields(NamedTuple):
    """Fields of a `DetailPlacer`. Defaults are for model files of version 0.1, which lack these fields."""

    X: Array  # (n, r) data of the points of the map
    Y: Array  # (n, 3) their positions
    k: int  # number of neighbours
    strength: Strength
    field: Field
    repulsion: float  # factor of the gradient of the field
    anchors: Anchors
    calibration: Calibration
    variance: float  # variance of the cosines of the data
    weight: float  # weight of the neighbour term
    terms: tuple[PairForces, ...] = ()  # over pairs
    decay: float = 0.0  # decay of the shares of neighbours
    narrowing: float = 0.23  # see `final_bandwidth`


class DetailPlacer(_Fields):
    """Places new points on a finished map, by their neighbours, the anchors and the field of all points."""

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the kernel with which the descent ended."""
        return final_bandwidth(len(self.Y), self.narrowing)

    @property
    def far_terms(self) -> list[Term]:
        """Terms of the objective that compare a point with the anchors."""
        return [AngleTerm(self.calibration, self.variance), *self.terms]

    def place(self, X: Array) -> Array:
        """Positions (b x 3) of points X (b x r), each by its own descent.

        A point that equals a point of the map in the data gets the position of that point.
        """
        xp = namespace(X)
        neighbors, distances = self._nearest(X)
        # For points far from the origin the search has rounding errors and may miss an equal point.
        equal = self._equal_rows(X)
        Y = self.Y[xp.where(equal < 0, neighbors[:, 0], equal)]
        (new,) = xp.nonzero((equal < 0) & (distances[:, 0] > 0))
        if len(new):
            rows = X[new], neighbors[new], distances[new]
            size = _TILE_IN_C if self._runs_in_c(X) else _TILE_IN_NUMPY
            Y[new] = in_tiles(self._descend, *rows, size=size)[0]
        return Y

    def _nearest(self, X: Array) -> tuple[Array, Array]:
        """Indices of the nearest points of the map (b x k), nearest first, and distances."""
        if not on_host(X):
            return tiles.nearest_to(self.X, X, self.k)
        with _SEARCH_LOCK:
            search = self._search
        return search(X)

    @functools.cached_property
    def _search(self) -> NearestToNew:
        return NearestToNew(self.X, self.k)

    @functools.cached_property
    def _equal_rows(self) -> EqualRows:
        return EqualRows(self.X)

    def __getstate__(self) -> None:
        """Return no state: the fields are pickled without it, and cached properties are left out."""

    def _descend(self, X: Array, neighbors: Array, distances: Array) -> tuple[Array]:
        """Positions (b x 3) after a fixed number of steps from the most central neighbour.

        From the mean of the neighbours, a point with neighbours in two groups would end between the groups.
        """
        xp, bandwidth = namespace(X), self.bandwidth
        b, k = distances.shape
        ends = xp.arange(0, b * k + 1, k, **same_device(X))
        shares = edge_shares(distances.reshape(-1), ends, self.decay).reshape(b, k)
        # Twice the strength: affinities are the sum of both directions.
        pull = 2 * self.strength(xp.sum(shares * distances, axis=1))[:, None]
        pull, shares = xp.astype(pull, xp.float32), xp.astype(shares, xp.float32)
        Y_neighbors = self.Y[neighbors]
        starts = Y_neighbors[:, :_N_STARTS]
        cosines = xp.einsum("bic,bjc->bij", starts, starts)
        energy = xp.log1p(2 / bandwidth**2 * xp.clip(1 - cosines, 0, None))
        energy = energy @ shares[:, :_N_STARTS, None]
        Y = starts[xp.arange(b, **same_device(X)), xp.argmin(energy[:, :, 0], axis=1)]
        pairs, terms = pairs_of(X, self.anchors), self.far_terms
        if self._runs_in_c(X):
            return (self._descend_in_c(pairs, Y, Y_neighbors, pull, shares),)
        for _ in range(_STEPS):
            difference = Y_neighbors - Y[:, None, :]
            w = 1 / (1 + xp.einsum("bkc,bkc->bk", difference, difference) / bandwidth**2)
            toward = xp.einsum("bk,bkc->bc", shares * xp.astype(w, xp.float32), Y_neighbors)
            force = self.repulsion * self.field.at(Y)[1] - (4 / bandwidth**2) * pull * toward
            force *= self.weight
            curvature = xp.clip(pull, 1, None) * (4 * self.weight / bandwidth**2)
            for term in terms:
                term_force, term_curvature, _ = term.force(pairs, Y, self.anchors)
                force += term_force
                curvature = curvature + term_curvature
            force = tangent(force, Y)
            step = limited(xp.astype(-force / curvature, xp.float32), LONGEST_STEP * bandwidth)
            Y = normalize(Y + step)
        return (Y,)

    def _runs_in_c(self, X: Array) -> bool:
        """Whether C kernels place these points."""
        return (
            kernels.supports(X, self.Y, self.anchors.X)
            and X.dtype == "float32"
            and self._numbers is not None
        )

    @functools.cached_property
    def _numbers(self) -> tuple[float, ...] | None:
        return numbers_for_kernels(
            AngleTerm(self.calibration, self.variance), self.terms, self.anchors
        )

    def _descend_in_c(
        self, pairs: Pairs, Y: Array, Y_neighbors: Array, pull: Array, shares: Array
    ) -> Array:
        """The steps of `_descend`."""
        bandwidth, far = self.bandwidth, self._numbers
        assert far is not None
        of_neighbors = self.weight, self.weight * self.repulsion, 4 * self.weight / bandwidth**2
        numbers = *far, 1 / bandwidth**2, *of_neighbors, LONGEST_STEP * bandwidth
        X, inverse_distance, _ = pairs
        compared = X, inverse_distance, products_of(X, self.anchors)
        arrays = Y, Y_neighbors, pull * shares, np.clip(pull, 1, None), compared
        anchors = self.anchors.for_kernels
        return kernels.settle(*arrays, anchors, self.field, numbers, _STEPS)


def detail_placer(
    X: Array,
    result: DescentResult,
    anchors: np.ndarray,
    k: int,
    strength: Strength,
    far_terms: FarTerms,
    weight: float,
    workers: Workers,
) -> DetailPlacer:
    """Placer of new points for a map of X (n x r); `anchors` are row numbers."""
    Y, kernel = result.Y, result.kernel
    bandwidth, rows = final_bandwidth(len(Y)), anchors[: n_anchors(len(Y))]
    if kernel.bandwidth != bandwidth:  # stopped early
        kernel = Kernel(bandwidth, workers, Y)
    field = kernel.field(Y)
    _, pairs = repulsion(field, Y, workers)
    return DetailPlacer(
        X,
        Y,
        k,
        strength,
        field,
        float(2 * len(Y) / pairs),
        anchors_at(X[rows], Y[rows], softening_of(len(Y))),
        far_terms.angles.calibration,
        far_terms.angles.variance,
        weight,
        far_terms.pairs,
        DECAY,
        NARROWING,
    )
