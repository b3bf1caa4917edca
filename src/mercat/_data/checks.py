"""Checks of parameters and data. Messages name the parameter, the rule and the value."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse

from .._parameters import PARAMETERS, Choice, Integer, Number
from .arrays import blocks, to_numpy

MIN_MAP_POINTS = 4  # minimum number of points of a map
# Tolerance for the length of unit vectors: the relative error of half precision is at most 5e-4.
UNIT_TOLERANCE = 2e-3
_SAME_POSITION = 1e-3  # tolerance for equal coordinates, which half precision keeps


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    Choice(choices=choices).check(name, value)


def check_integer(name: str, value: Any, least: int, *, none: bool = False) -> None:
    """Raise unless the value is an integer >= `least`, or None if `none`."""
    Integer(least=least, none="allowed" if none else "").check(name, value)


def check_at_least_zero(name: str, value: Any) -> None:
    """Raise unless the value is a finite number >= 0."""
    Number(least=0).check(name, value)


def check_columns(X: Any, name: str) -> None:
    """Raise TypeError or ValueError for a pandas or polars data frame that is not a table of numbers."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{name} must be in memory, got a LazyFrame: pass {name}.collect().")
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    columns = list(X.columns)
    if not columns:
        raise ValueError(f"{name} must have at least one column, got none.")
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(f"{name} must have columns with distinct names, got {twice!r} twice.")
    for column, dtype in zip(columns, X.dtypes, strict=True):
        if not _holds_numbers(X[column], dtype):
            convert = ".cast(float)" if hasattr(dtype, "is_numeric") else ".astype(float)"
            raise ValueError(
                f"{name} must hold numbers, got the column {column!r} of type {dtype}: drop it, or convert "
                f"it with {convert} if its values are quantities."
            )


def _holds_numbers(column: Any, dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    if hasattr(dtype, "categories"):  # categories of numbers are names, such as those of clusters
        return False
    if dtype.kind == "O":
        if _holds_text(np.asarray(column, dtype=object)):
            return False
        try:
            np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            return False
    return dtype.kind not in "mMSU"


def check_no_text(X: Any, name: str) -> None:
    """Raise ValueError for an array or a list of text, even if it can be converted to numbers."""
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of different lengths, which `check_array` refuses
            return
    if isinstance(X, np.ndarray) and _holds_text(X):
        raise ValueError(
            f"{name} must hold numbers, got text in an array of type {X.dtype}: convert it with "
            ".astype(float) if its values are quantities."
        )


def _holds_text(values: np.ndarray) -> bool:
    if values.dtype.kind == "O":
        return any(isinstance(value, str | bytes) for value in values.flat)
    return values.dtype.kind in "SUT"


def check_finite(X: Any, name: str = "X", *, rows: Any = None, names: Any = None) -> None:
    """Raise ValueError for NaN and infinity in a dense or CSR matrix.

    The message uses the row numbers `rows` and the column names `names`, if given.
    """
    values = X.data if scipy.sparse.issparse(X) else X
    # The sum needs no copy and is not finite if any value is not.
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(values.sum()):
            return
    for block in blocks(X.shape[0], 1000):
        found = not_finite(X[block])
        for i, j in zip(*found, strict=True):
            i += block.start
            row, label = i if rows is None else rows[i], "" if names is None else f" ({names[j]!r})"
            raise ValueError(
                f"{name} must have no NaN or infinity, got {X[i, j]} in row {row}, column {j}{label}: "
                "impute it, or drop the row or column."
            )


def not_finite(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Row and column indices of NaN and infinity in a dense, CSR or CSC matrix, in order."""
    sparse = scipy.sparse.issparse(X)
    values = X.data if sparse else X
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    if not sparse:
        rows, columns = np.nonzero(~np.isfinite(X))
        return rows, columns
    entries = X.tocoo()
    bad = np.flatnonzero(~np.isfinite(entries.data))
    bad = bad[np.lexsort((entries.col[bad], entries.row[bad]))]
    return entries.row[bad], entries.col[bad]


def as_floats(values: np.ndarray) -> np.ndarray:
    """Convert types that LAPACK does not support (bool, more than 64 bits) to float64."""
    return values.astype(np.float64) if values.dtype.kind == "b" or values.itemsize > 8 else values


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Convert a dense array to float64; raise ValueError with the parameter's name if that is impossible."""
    if scipy.sparse.issparse(value):
        raise ValueError(f"{name} must be dense, got a sparse matrix: pass .toarray().")
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error


def check_distances(distances: np.ndarray, *, square: bool) -> None:
    """Raise ValueError for invalid distances from points to the training points, or to landmarks.

    With `square`, they are the distances for a fit: between all points, or to landmarks, which are the first
    rows.
    """
    n, width = distances.shape
    if square and n != width:
        among = distances[:width]
        fault = ""
        if n < width or width < MIN_MAP_POINTS:
            fault = f"must be at least {MIN_MAP_POINTS} and at most the number of rows"
        elif float(np.abs(among - among.T).max()) > 1e-6 * float(np.abs(among).max()):
            fault = "must have symmetric distances to each other"
        if fault:
            raise ValueError(
                "X must be a square matrix for metric='precomputed', or hold distances to landmarks, which "
                f"are its first rows and {fault}, got shape {distances.shape}."
            )
    if not float(distances.max(initial=0)) < 1e150:
        raise ValueError(
            f"X must hold distances below 1e150 for metric='precomputed', got {distances.max():.3g}."
        )
    if distances.min() < 0:
        raise ValueError(
            "Negative values in data passed to Mercat: distances, for metric='precomputed', must be "
            f"at least 0, got {distances.min()}."
        )
    if square:
        among = distances[:width]
        gap = float(np.abs(among - among.T).max())
        if gap > 1e-6 * float(distances.max()):
            raise ValueError(
                "X must be symmetric for metric='precomputed', "
                f"got distances that differ by {gap:.3g} from the transpose."
            )
        if np.abs(np.diag(among)).max() > 1e-6 * float(distances.max()):
            raise ValueError("X must have a zero diagonal for metric='precomputed'.")


def looks_like_distances(X: Any) -> bool:
    """Whether an array in memory is square, symmetric and positive, except for a diagonal of zeros."""
    if not isinstance(X, np.ndarray) or X.shape[0] != X.shape[1] or np.diagonal(X).any():
        return False
    # A graph has zeros off the diagonal, too. Distances have few, between equal rows.
    if X.min() < 0 or np.count_nonzero(X) <= X.size // 2:
        return False
    tolerance = 1e-6 * float(X.max())
    parts = X[:9, :9], X  # a corner first, which is quick
    return all(np.allclose(part, part.T, rtol=0, atol=tolerance) for part in parts)


def positions_of(label: str, values: Any) -> Any:
    """The embedding of a fitted model, such as Mercat or UMAP; anything else is returned unchanged."""
    if hasattr(values, "get_params") and not hasattr(values, "__array__"):
        if not hasattr(values, "embedding_"):
            raise ValueError(
                f"{label} must be fitted, got {type(values).__name__} without embedding_."
            )
        return values.embedding_
    return values


def check_unit(name: str, value: Any, *, some: bool = False) -> np.ndarray:
    """Check unit vectors (n x 3), at least one if `some`, and return them normalized as float64."""
    vectors = as_numbers(name, value)
    if vectors.ndim != 2 or vectors.shape[1] != 3:
        raise ValueError(f"{name} must hold unit vectors of shape (n, 3), got {vectors.shape}.")
    if some and len(vectors) == 0:
        raise ValueError(f"{name} must hold at least one point, got none.")
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in {bad.sum()} of {len(vectors)} rows, "
            f"the first of them row {bad.argmax()}."
        )
    length = np.sqrt(np.sum(vectors * vectors, axis=1))
    bad = np.abs(length - 1) > UNIT_TOLERANCE
    if bad.any():
        raise ValueError(
            f"{name} must hold vectors of length 1, got {bad.sum()} of {len(vectors)} rows of other "
            f"lengths, the first of them row {bad.argmax()} of length {length[bad.argmax()]:.4g}."
        )
    return np.asarray(vectors / length[:, None])


def check_rows(rows: Any, n: int) -> np.ndarray:
    """Check row numbers, from 0 to n - 1, and return them as an array."""
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (
        numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n)
    ):
        raise ValueError(f"rows must be integers from 0 to {n - 1}, got {rows!r}.")
    return numbers.astype(np.intp)


def check_uncertainty(uncertainty: Any, n: int, Y: np.ndarray | None = None) -> None:
    """Raise unless this is a `mercat.Uncertainty` of n points, at the positions Y (n x 3) if given."""
    parts = ("places", "axes", "alternative", "columns", "factor")
    if not all(hasattr(uncertainty, name) for name in parts):
        raise TypeError(
            f"uncertainty must be what mercat.uncertainty returns, got {type(uncertainty).__name__}."
        )
    if len(uncertainty.places) != n:
        raise ValueError(f"uncertainty must have {n} points, got {len(uncertainty.places)}.")
    if Y is not None and not np.allclose(to_numpy(uncertainty.places), Y, atol=_SAME_POSITION):
        raise ValueError(
            "uncertainty must belong to the same map, got one with other positions: compute it again after "
            "the map has been refitted or rotated."
        )


def generator(random_state: Any) -> np.random.Generator:
    """The NumPy Generator for a random_state."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be {PARAMETERS['random_state'].rule}, got {random_state!r}."
        ) from None


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn with the location of the caller outside Mercat and scikit-learn."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("mercat", "sklearn")
