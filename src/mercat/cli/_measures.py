"""What the commands that measure a map share: its neighbourhoods, its metric and its classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data.columns import are_measurements
from ._console import Console
from ._problems import BadInput, counted


def scores_as_data(scores: Any) -> dict[str, dict[str, float]]:
    """Measures as JSON has them."""
    return {
        name: {"score": float(score), "standard_error": score.standard_error}
        for name, score in scores.items()
    }


def neighbors(k: int | None, n: int, console: Console) -> int:
    """-k; by default that of `metrics.report`, which is said where the points are few."""
    from ..metrics._neighborhood import N_COMPARED
    from ..metrics._report import default_k

    if k is None:
        k = default_k(n)
        if k < N_COMPARED:
            console.note(
                f"Neighbourhoods are of {counted(k, 'point')}, not {N_COMPARED}: less than half of the {n}."
            )
    if k >= n:
        raise BadInput(f"-k must be less than the number of points, {n}, got {k}.")
    return k


def in_metric(X: np.ndarray, metric: str) -> np.ndarray:
    """Rows whose Euclidean distances are those of the metric, as `Mercat` has them."""
    from .._reduce.components import prepare_rows

    if metric == "euclidean":
        return X
    rows, offset = prepare_rows(X, metric)
    return np.asarray(rows - offset[:, None])


def dominating(X: Any, features: list[str] | None, metric: str) -> str | None:
    """A sentence on the column that has most of the geometry of X, where there is one."""
    from .._solve.diagnostics import find_dominance
    from .._solve.trust import dominance_sentence, dominates

    found = find_dominance(X, metric)
    if found is None or not dominates(found):
        return None
    return dominance_sentence(found, metric, features)


def labels(table: Any, name: str | None, console: Console) -> Any:
    """The classes for the measures that need them; None where one is missing."""
    from ..metrics._points import LEAST_FOR_ANGLES

    if name is None:
        return None
    column = table.meta[name]
    missing = column.isna().to_numpy()
    if are_measurements(column[~missing].to_numpy()):
        console.note(f"{name!r} holds measurements, not classes: no measures of classes.")
        return None
    if (~missing).sum() < LEAST_FOR_ANGLES:
        raise BadInput(f"{table.path}: fewer than {LEAST_FOR_ANGLES} rows have a label {name!r}.")
    if missing.any():
        console.note(
            f"{missing.sum():,} of {counted(len(column), 'row')} have no label {name!r} and do not count in "
            "the measures of classes."
        )
    if column.nunique() < 3:
        console.note(
            f"{name!r} has fewer than 3 classes: the distances of their centroids have nothing to correlate."
        )
    return column.astype(str).astype(object).where(~missing, None).to_numpy()
