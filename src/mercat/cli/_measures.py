"""Helpers for commands that compute measures: number of neighbours, metric and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.columns import are_measurements
from ._console import Console
from ._problems import BadInput, pluralize


def scores_as_data(scores: Any) -> dict[str, dict[str, float]]:
    """Measures as a dictionary for JSON."""
    return {
        name: {"score": float(score), "standard_error": score.standard_error}
        for name, score in scores.items()
    }


def resolve_k(k: int | None, n: int, console: Console) -> int:
    """Number of neighbours given by -k, or the default of `metrics.report`, with a note for small data."""
    from ..metrics._neighborhood import N_COMPARED
    from ..metrics._report import default_k

    if k is None:
        k = default_k(n)
        if k < N_COMPARED:
            console.note(
                f"Neighbourhoods have {pluralize(k, 'point')} instead of {N_COMPARED}, at most half of "
                f"the {pluralize(n, 'point')}."
            )
    if k >= n:
        raise BadInput(f"-k must be less than the number of points, {n}, got {k}.")
    return k


def to_metric(X: np.ndarray, metric: str) -> np.ndarray:
    """Transform rows so that Euclidean distances between them represent the metric, as in `Mercat`."""
    from .._reduce.components import prepare_rows

    if metric == "euclidean":
        return X
    rows, offset = prepare_rows(X, metric)
    return np.asarray(rows - offset[:, None])


def dominance_warning(X: Any, features: list[str] | None, metric: str) -> str | None:
    """Warning if one column dominates the distances of X, else None."""
    from .._solve.diagnostics import find_dominance
    from .._solve.trust import dominance_sentence, dominates

    dominance = find_dominance(X, metric)
    if dominance is None or not dominates(dominance):
        return None
    return dominance_sentence(dominance, metric, features)


def class_labels(table: Any, name: str | None, console: Console) -> Any:
    """Class of each row for the measures that need them, None where it is missing; None without a name."""
    from ..metrics._points import MIN_POINTS

    if name is None:
        return None
    column = table.meta[name]
    missing = column.isna().to_numpy()
    if are_measurements(column[~missing].to_numpy()):
        console.note(f"{name!r} holds measurements, not classes: measures of classes are left out.")
        return None
    if (~missing).sum() < MIN_POINTS:
        raise BadInput(
            f"{table.path}: fewer than {MIN_POINTS} rows have a value in the column {name!r}."
        )
    if missing.any():
        console.note(
            f"{missing.sum():,} of {pluralize(len(column), 'row')} have no value in the column {name!r} and "
            "are left out of the measures of classes."
        )
    if column.nunique() < 3:
        console.note(
            f"{name!r} has fewer than 3 classes: the distances between their centroids cannot be correlated."
        )
    return column.astype(str).astype(object).where(~missing, None).to_numpy()
