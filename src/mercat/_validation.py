"""Checks of a `Mercat` before it computes: parameters, supported combinations, and data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from ._data.checks import (
    MIN_MAP_POINTS,
    as_numbers,
    check_distances,
    check_unit,
    looks_like_distances,
    warn_caller,
)
from ._data.sampling import sample_of
from ._data.source import RowSource
from ._detail.neighbors import check_neighbors
from ._math.sphere import normalize
from ._parameters import PARAMETERS
from ._reduce.reducer import LINEAR
from ._solve.anchors import MIN_ANCHORS

_MAX_DETAIL_ROWS = 1_000_000  # rows of data that need not fit in memory


def check_parameters(model: Any) -> None:
    """Raise ValueError for a parameter that breaks its rule, or for two that contradict each other."""
    for name, parameter in PARAMETERS.items():
        value = getattr(model, name)
        if not (name == "neighbors" and scipy.sparse.issparse(value)):
            parameter.check(name, value)
    if model.solver == "algorithm1" and model.objective != "absolute":
        raise ValueError(
            "solver='algorithm1' minimises the paper's loss and needs objective='absolute', "
            f"got objective={model.objective!r}."
        )
    if model.solver == "algorithm1" and model.detail != 0:
        raise ValueError(f"solver='algorithm1' needs detail=0, got detail={model.detail!r}.")


def require_supported(
    model: Any, source: RowSource, *, fitting: bool, align_to: Any = None
) -> None:
    """Raise an error if a parameter is not supported for the location or the kind of the rows."""
    if source.lazy and model.device is not None:
        raise ValueError(
            f"device must be None for a Dask array, got {model.device!r}: its chunks are computed "
            "where Dask runs."
        )
    where = "a Dask array" if source.lazy else f"X on the device {str(source.device)!r}"
    remedy = "X.compute()" if source.lazy else "X in host memory and device=None"
    if source.device is not None or source.lazy:
        if model.detail != 0 and str(source.device).startswith("mps"):
            raise ValueError(
                f"detail above 0 needs NumPy or CUDA, got detail={model.detail!r} and {where}: pass {remedy}."
            )
        if model.metric == "precomputed":
            raise ValueError(
                f"metric='precomputed' needs the distances in memory, got {where}: pass {remedy}."
            )
        if model.metric not in LINEAR:
            raise ValueError(
                f"metric={model.metric!r} needs X in memory, got {where}: pass {remedy}."
            )
        if align_to is not None:
            raise ValueError(
                f"align_to must be None unless X is in host memory, got {where}: pass {remedy}."
            )
    if source.device is not None and model.solver == "algorithm1" and fitting:
        raise ValueError(f"solver='algorithm1' needs X in memory, got {where}: pass {remedy}.")
    if source.sparse and model.metric == "precomputed":
        raise TypeError(
            "metric='precomputed' needs a dense X, got a sparse matrix: pass X.toarray()."
        )


def check_data(model: Any, X: Any, source: RowSource, *, fitting: bool) -> None:
    """Check the number of rows of X, their values and the column names, which a fit stores."""
    n, least = source.shape[0], MIN_MAP_POINTS if fitting else 1
    if n < least:
        raise ValueError(f"X must have at least {least} rows, got n_samples={n}.")
    source.check_values(names=getattr(X, "columns", None))
    validate_data(model, X, reset=fitting, skip_check_array=True)
    if model.metric == "precomputed":
        check_distances(source.X, square=fitting)
    elif fitting and not source.on_disk and looks_like_distances(source.X):
        warn_caller(
            f"X looks like a matrix of distances, but its rows are compared with metric={model.metric!r}: "
            "pass metric='precomputed' if it holds distances.",
            UserWarning,
        )


def check_init(init: Any, n: int) -> str | np.ndarray:
    """Validate `init` for n points: return unit vectors (n x 3), or the name of a method."""
    if isinstance(init, str):
        return init
    positions = as_numbers("init", init)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ValueError(f"init must be {PARAMETERS['init'].rule}, got {positions.shape}.")
    if not np.isfinite(positions).all():
        raise ValueError("init must be finite, got NaN or infinity.")
    if not (np.abs(positions).max(axis=1) > 0).all():
        raise ValueError("init must have no row of zeros: a zero vector has no direction.")
    directions = np.asarray(normalize(positions))
    rank = int(np.linalg.matrix_rank(directions, tol=1e-6 * np.sqrt(len(positions))))
    if rank < 3:
        raise ValueError(
            f"init must span three dimensions, got rank {rank}: points on one great circle "
            "cannot leave it."
        )
    if len(positions) != n:
        raise ValueError(
            f"init must have a row for each of the {n} points of X, got {len(positions)}."
        )
    return directions


def check_positions(align_to: Any, n: int) -> np.ndarray:
    """Validate positions on another map: return unit vectors (n x 3), NaN for points that are not on it."""
    positions = as_numbers("align_to", align_to).copy()
    if positions.shape != (n, 3):
        raise ValueError(
            f"align_to must be a fitted Mercat or an array of shape ({n}, 3), got {positions.shape}."
        )
    known = ~np.isnan(positions).any(axis=1)
    if known.sum() < MIN_ANCHORS:
        raise ValueError(
            f"align_to must have positions of at least {MIN_ANCHORS} points, got {known.sum()}."
        )
    positions[known] = check_unit("align_to", positions[known])
    positions[~known] = np.nan
    return positions


def rows_with_detail(model: Any, source: RowSource) -> np.ndarray | None:
    """Rows of the sample to which `detail` is applied, or None for all rows."""
    n, size = source.shape[0], model.n_detail
    if size is None:
        size = _MAX_DETAIL_ROWS if source.lazy or source.on_disk else n
    if model.detail == 0 or n <= size:
        return None
    constraint = None
    if model.metric == "precomputed":
        constraint = "metric='precomputed'"
    elif scipy.sparse.issparse(model.neighbors):
        constraint = "a graph in neighbors"
    if constraint is not None:
        raise ValueError(
            f"n_detail must be at least the number of rows, {n}, with {constraint}, got {size}."
        )
    return np.sort(sample_of(source, size).rows)


def neighbors_of(model: Any, n: int) -> Any:
    """Number of neighbours, or graph, for a fit of n points; None without detail."""
    return check_neighbors(model.neighbors, n) if model.detail > 0 else None
