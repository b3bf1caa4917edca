"""What may come in at the door: the parameters of a `Mercat` and the data it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_array, validate_data

from ._data.arrays import is_dask, is_torch, to_numpy
from ._data.checks import (
    LEAST_POINTS,
    check_at_least_zero,
    check_choice,
    check_columns,
    check_distances,
    check_finite,
    check_fraction,
    check_integer,
    check_n_jobs,
    check_n_spectral,
)
from ._data.torch_source import check_tensor, find_device
from ._detail.neighbors import check_neighbors
from ._math.sphere import normalize

_MOST_DETAIL = 1e6  # angles have long had no say; squares still fit single precision


def validated(model: Any, X: Any, *, reset: bool) -> Any:
    """The data as they are computed with; for `reset`, those of a fit, whose columns are kept in mind."""
    precomputed = model.metric == "precomputed"
    if is_dask(X):
        return _validated_dask(model, X, reset=reset)
    device = find_device(model.device, X)
    if device is not None and is_torch(X):
        X = check_tensor(X)
        _check_number(X, reset)
        return validate_data(model, X, reset=reset, skip_check_array=True)
    if is_torch(X):
        X = to_numpy(check_tensor(X))
    check_columns(X)
    if np.ma.is_masked(X):
        raise ValueError("X must have no masked values: fill them or leave those rows out.")
    given = X
    X = check_array(
        X,
        accept_sparse=False if precomputed else "csr",
        dtype="numeric",
        ensure_min_samples=LEAST_POINTS if reset else 1,
        ensure_all_finite=False,  # looked at below, with a word on where
        estimator=model,
        input_name="X",
    )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got the type {X.dtype}.")
    check_finite(X, names=getattr(given, "columns", None))
    validate_data(model, given, reset=reset, skip_check_array=True)
    if precomputed:
        if X.dtype.kind == "b" or X.dtype.itemsize > 8:
            X = X.astype(np.float64)
        check_distances(X, square=reset)
    return X


def _validated_dask(model: Any, X: Any, *, reset: bool) -> Any:
    """Check what is known before anything is computed."""
    from ._data.dask_source import check_chunks

    if model.device is not None:
        raise ValueError(
            f"device must be None for a Dask array, got {model.device!r}: its chunks are placed "
            "wherever Dask runs."
        )
    if model.detail != 0:
        raise ValueError(
            f"detail above 0 needs the data in memory, got detail={model.detail!r} and a Dask array: "
            "pass X.compute()."
        )
    if model.metric == "precomputed":
        raise ValueError(
            "metric='precomputed' needs the distances in memory, got a Dask array: pass X.compute()."
        )
    X = check_chunks(X)
    _check_number(X, reset)
    return validate_data(model, X, reset=reset, skip_check_array=True)


def _check_number(X: Any, reset: bool) -> None:
    if X.shape[0] < (least := LEAST_POINTS if reset else 1):
        raise ValueError(f"X must have at least {least} rows, got {X.shape[0]}.")


def check_parameters(model: Any) -> str | np.ndarray:
    """Refuse parameters that make no sense; the start, checked."""
    check_choice("objective", model.objective, ("calibrated", "absolute"))
    check_choice("metric", model.metric, ("euclidean", "cosine", "correlation", "precomputed"))
    check_choice("solver", model.solver, ("auto", "exact", "landmarks", "algorithm1"))
    if model.solver == "algorithm1" and model.objective != "absolute":
        raise ValueError(
            "solver='algorithm1' minimises the paper's loss and needs objective='absolute', "
            f"got objective={model.objective!r}."
        )
    check_at_least_zero("detail", model.detail)
    if model.detail > _MOST_DETAIL:
        raise ValueError(f"detail must be at most {_MOST_DETAIL:g}, got {model.detail!r}.")
    if model.solver == "algorithm1" and model.detail != 0:
        raise ValueError(
            f"solver='algorithm1' is the paper's and needs detail=0, got detail={model.detail!r}."
        )
    if model.device is not None and model.detail != 0:
        raise ValueError(
            f"detail above 0 needs device=None, got detail={model.detail!r} and "
            f"device={model.device!r}."
        )
    if model.neighbors is not None and not scipy.sparse.issparse(model.neighbors):
        graph = ", a scipy.sparse matrix whose entries are edges, or None"
        check_integer("neighbors", model.neighbors, 1, graph)
    if model.device is not None and model.solver == "algorithm1":
        raise ValueError(f"solver='algorithm1' needs device=None, got device={model.device!r}.")
    if model.device is not None and model.metric == "precomputed":
        raise ValueError(f"metric='precomputed' needs device=None, got device={model.device!r}.")
    check_n_spectral(model.n_spectral)
    check_integer("n_landmarks", model.n_landmarks, 4)
    if model.max_iter is not None:
        check_integer("max_iter", model.max_iter, 1, " (or None)")
    check_fraction("tol", model.tol)
    if model.n_jobs is not None:
        check_n_jobs(model.n_jobs)
    if model.callback is not None and not callable(model.callback):
        raise TypeError(f"callback must be callable or None, got {model.callback!r}.")
    if isinstance(model.init, str):
        check_choice("init", model.init, ("auto", "pca"))
        return model.init
    return _check_positions("init", model.init)


def _check_positions(name: str, value: Any) -> np.ndarray:
    """Directions (n x 3) from which points can move freely over the sphere."""
    given = np.asarray(value, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != 3:
        raise ValueError(
            f"{name} must be 'auto', 'pca' or an array of shape (n, 3), got {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    if not (np.abs(given).max(axis=1) > 0).all():
        raise ValueError(f"{name} must have no row of zeros: a zero vector has no direction.")
    directions = np.asarray(normalize(given))
    rank = int(np.linalg.matrix_rank(directions, tol=1e-6 * np.sqrt(len(given))))
    if rank < 3:
        raise ValueError(
            f"{name} must span three dimensions, got rank {rank}: points on one great circle "
            "cannot leave it."
        )
    return directions


def check_start(init: str | np.ndarray, n: int) -> None:
    """Refuse a start that is not of n points."""
    if not isinstance(init, str) and len(init) != n:
        raise ValueError(f"init must have a row for each of the {n} points of X, got {len(init)}.")


def neighbors_of(model: Any, n: int) -> Any:
    """Whose neighbourhoods count among n points: so many nearest, those of a graph, or None."""
    return check_neighbors(model.neighbors, n) if model.detail > 0 else None
