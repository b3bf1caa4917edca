"""Warnings about maps that should not be trusted, with advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .diagnostics import SHARED, Dominance

if TYPE_CHECKING:
    from .diagnostics import Diagnostics

# Thresholds beyond the values for real data of good quality, which are listed in docs/measurements.md.
MIN_CORRELATION = 0.4
# A loss below this and a low correlation mean that all angles of the data are equal.
EQUAL_ANGLES = 0.01
MIN_VARIANCE = 0.5  # share that the components should keep, unless ...
NOISE = 5.0  # ... the largest variance dropped is at most this multiple of the mean dropped
MAX_SHARE = 0.99  # share of the variance that no single column should exceed ...
ROUNDING = 1e-24  # ... unless the share of the others is at most this
MIN_DISTANCE = 1e-4  # typical distance between points, in units of the spread of the data
MAX_CORRELATION_GAP = 0.1  # between angles to landmarks and angles among other points
MIN_COMPONENT = 10  # mean number of points in the connected components of a graph of neighbours

_COLUMN_NAMES: ContextVar[Sequence[str] | None] = ContextVar("column names", default=None)


class TrustWarning(UserWarning):
    """A fit succeeded, but its map should not be trusted. The message says why and what to do."""


def trust_warnings(model: Any, diagnostics: Diagnostics) -> Iterator[str]:
    """Yield a sentence for each reason not to trust the map of a fitted model."""
    if model.correlation_ < MIN_CORRELATION and model.loss_ <= EQUAL_ANGLES:
        yield (
            "All angles of the data are equal: the points coincide, or are all equally far from each other. "
            "Positions on the map have no meaning. Look for constant or duplicate rows, or for unrelated "
            "features."
        )
    elif model.correlation_ < MIN_CORRELATION:
        with_effect = model.detail > 0 and not diagnostics.neighbors_are_far
        less_detail = ", lower detail" if with_effect else ""
        yield (
            f"The correlation between the angles of map and data is {model.correlation_:.3f}, below "
            f"{MIN_CORRELATION}: the map shows little of the data, which may be noise. Prepare the data "
            f"(scale columns of different units, remove noise with n_spectral='auto'){less_detail}, and "
            f"check with mercat.uncertainty which positions are reliable.{_graph_advice(model)}"
        )
    if diagnostics.neighbors_are_far and model.loss_ > EQUAL_ANGLES:
        yield (
            f"detail={model.detail} has no effect on these data: neighbours are about as far from each other "
            "as other points, as in noise. This is the map with detail=0. Remove noise, for example with "
            "n_spectral='auto'."
        )
    cut = diagnostics.cut if model.n_spectral != "auto" else None
    if cut is not None and cut.kept < MIN_VARIANCE and cut.largest > NOISE:
        yield (
            f"n_spectral={model.n_spectral} keeps {cut.kept:.0%} of the variance and drops more than noise. "
            "loss_ and correlation_ refer to the part kept. Raise n_spectral, or set n_spectral='auto'."
        )
    yield from _dominance(model, diagnostics.crowding, diagnostics.dominance)
    unseen = diagnostics.unseen
    if unseen is not None and unseen.to_landmarks - unseen.among > MAX_CORRELATION_GAP:
        yield (
            f"n_landmarks={model.n_landmarks} is too small for these data: the correlation of angles is "
            f"{unseen.to_landmarks:.2f} with landmarks as legs, but {unseen.among:.2f} among other points. "
            "Raise n_landmarks."
        )
    # Separate clusters are no reason for a warning; a graph that lacks edges is.
    number, n = diagnostics.n_components, model.embedding_.shape[0]
    if number is not None and 1 < n / MIN_COMPONENT < number:
        yield (
            f"The graph passed as neighbors has {number} connected components, of "
            f"{n / number:.1f} points on average. Only angles and distances determine how they lie "
            "relative to each other, and weigh less with more detail. Add edges, or lower detail."
        )


def _has_graph(model: Any) -> bool:
    """Whether `neighbors` is a graph."""
    return model.detail > 0 and hasattr(model.neighbors, "tocsr")


def _graph_advice(model: Any) -> str:
    return (
        " Make sure that the rows of neighbors are those of X, in the same order."
        if _has_graph(model)
        else ""
    )


def _dominance(model: Any, distance: float | None, dominance: Dominance | None) -> Iterator[str]:
    """Yield a sentence if a column, or a few rows, dominate the data."""
    variance = model.explained_variance_
    if distance is not None and distance < MIN_DISTANCE:
        yield (
            f"The typical distance between points is {distance:.0e} times the spread of the data, because a "
            "few points lie far away: single precision hardly resolves the others. Remove or correct rows "
            "that are far from the median."
        )
        return
    if model.metric == "euclidean" and model.components_ is not None and len(variance) > 1:
        # The components of all rows are more accurate than the sample.
        loadings, total = model.components_[0] ** 2, float(variance.sum())
        others = float(variance[1:].sum()) / total if total > 0 else 0.0  # squares may underflow
        column = int(loadings.argmax())
        dominance = Dominance(column, float(loadings[column]), others)
    if dominance is not None and dominates(dominance):
        names = getattr(model, "feature_names_in_", None)
        yield dominance_sentence(
            dominance, model.metric, _COLUMN_NAMES.get() if names is None else names
        )


def dominates(dominance: Dominance) -> bool:
    """Whether one column has nearly the whole share, and the others have more than rounding errors."""
    return dominance.share > MAX_SHARE and ROUNDING < dominance.others < 1 - MAX_SHARE


def dominance_sentence(dominance: Dominance, metric: str, names: Any = None) -> str:
    """Warning about a dominating column, which is named if columns have names."""
    column = dominance.column
    name = f"{column} of X" if names is None else repr(str(names[column]))
    scale = "Scale columns of different units (StandardScaler, or --scale on the command line), or remove it."
    if metric in ("hamming", "jaccard"):
        scale = "The other columns hardly vary: remove it, or add columns that do."
    share = f"more than {MAX_SHARE:.0%} of {SHARED[metric]}"
    return f"Column {name} has {share}: the map shows little else. {scale}"


@contextmanager
def column_names(names: Sequence[str] | None) -> Iterator[None]:
    """Context in which warnings use these names for the columns of arrays."""
    token = _COLUMN_NAMES.set(names)
    try:
        yield
    finally:
        _COLUMN_NAMES.reset(token)
