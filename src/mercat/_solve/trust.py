"""When a map should not be trusted, in sentences that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .diagnostics import SHARED, Dominance

if TYPE_CHECKING:
    from .diagnostics import Diagnostics

# The levels were chosen so that real data of good quality stay well clear of them: see docs/promises.md.
LEAST_CORRELATION = 0.4
ALL_ALIKE = 0.01  # a loss below which the data's angles are all alike and do not correlate
LEAST_VARIANCE = 0.5  # the share of it that components should keep, unless ...
NOISE = 5.0  # ... the largest that is cut has no more than so many times the mean of those cut
MOST_OF_ONE = 0.99  # share of the variance that a single column should not have
ROUNDING = 1e-24  # ... unless the others have no more than this
LEAST_DISTANCE = 1e-4  # typical one between points, in units of the data's spread
MOST_FLATTERY = 0.1  # correlation with landmarks less that among other points
MOST_APART = 0.01  # share of the points outside the largest part of the neighbours' graph

_COLUMN_NAMES: ContextVar[Sequence[str] | None] = ContextVar("column names", default=None)


class TrustWarning(UserWarning):
    """The fit is done, but its map should not be trusted as it is. The message says why and what to do."""


def trust_warnings(model: Any, found: Diagnostics) -> Iterator[str]:
    """Sentences on what speaks against the map of a fitted model."""
    if model.correlation_ < LEAST_CORRELATION and model.loss_ <= ALL_ALIKE:
        yield (
            "All angles of the data are alike: its points coincide, or are as far from each other in all "
            "directions. There is no arrangement to show, and places on the map mean nothing. Look at the "
            "data for constant or duplicate rows, or for features that have nothing in common."
        )
    elif model.correlation_ < LEAST_CORRELATION:
        less_detail = "lower detail, " if model.detail > 0 else ""
        yield (
            f"The angles of the map correlate with those of the data by {model.correlation_:.2f}, "
            f"less than {LEAST_CORRELATION}: it shows little of their arrangement. Prepare the data "
            f"(scale columns of different units, leave out noise with n_spectral='auto'), {less_detail}"
            f"or read the map only where point_loss_ is low.{_of_these_rows(model)}"
        )
    cut = found.cut if model.n_spectral != "auto" else None
    if cut is not None and cut.kept < LEAST_VARIANCE and cut.largest > NOISE:
        yield (
            f"n_spectral={model.n_spectral} keeps {cut.kept:.0%} of the variance, and what it cuts "
            "is not noise alone. loss_ and correlation_ speak of the part kept. Raise n_spectral, or let "
            "n_spectral='auto' decide."
        )
    yield from _dominance(model, found.crowding, found.dominance)
    unseen = found.unseen
    if unseen is not None and unseen.to_landmarks - unseen.among > MOST_FLATTERY:
        yield (
            f"n_landmarks={model.n_landmarks} are too few for the spread of the data: angles correlate by "
            f"{unseen.to_landmarks:.2f} with the landmarks, but by {unseen.among:.2f} among other points. "
            "Raise n_landmarks."
        )
    if found.parts is not None and found.parts.apart > MOST_APART:
        yield (
            f"The graph of neighbours has {found.parts.number} parts that no edge joins, with "
            f"{found.parts.apart:.0%} of the points outside the largest: nothing but their angles, which "
            "count less the higher detail is, tells how the parts lie to each other. "
            + ("Join them in the graph" if _has_graph(model) else "Raise neighbors")
            + ", or lower detail to see how angles arrange them."
        )


def _has_graph(model: Any) -> bool:
    """Whether the neighbours were given, and not looked for."""
    return model.detail > 0 and hasattr(model.neighbors, "tocsr")


def _of_these_rows(model: Any) -> str:
    return (
        " Make sure that the rows of neighbors are those of X, in the same order."
        if _has_graph(model)
        else ""
    )


def _dominance(model: Any, distance: float | None, dominance: Dominance | None) -> Iterator[str]:
    """Sentences on a column, or on rows, beside which nothing else is seen."""
    variance = model.explained_variance_
    if distance is not None and distance < LEAST_DISTANCE:
        yield (
            f"Most points lie within {distance:.0e} of the data's spread of each other, and a few far off: "
            "single precision hardly tells the many apart. Look for rows that are far from the median, and "
            "leave them out or mend them."
        )
        return
    found = dominance
    if model.metric == "euclidean" and model.components_ is not None and len(variance) > 1:
        # From all rows, where their components are known.
        loads, whole = model.components_[0] ** 2, float(variance.sum())
        others = float(variance[1:].sum()) / whole if whole > 0 else 0.0  # squares may vanish
        column = int(loads.argmax())
        found = Dominance(column, float(loads[column]), others)
    if found is not None and dominates(found):
        names = getattr(model, "feature_names_in_", None)
        yield dominance_sentence(
            found, model.metric, _COLUMN_NAMES.get() if names is None else names
        )


def dominates(found: Dominance) -> bool:
    """Whether a column leaves the others hardly any share, and more than rounding."""
    return found.share > MOST_OF_ONE and ROUNDING < found.others < 1 - MOST_OF_ONE


def dominance_sentence(found: Dominance, metric: str, names: Any = None) -> str:
    """What to do about a column that dominates, by its name if there are names."""
    name = f"{found.column} of X" if names is None else repr(str(names[found.column]))
    return (
        f"Column {name} has more than {MOST_OF_ONE:.0%} of {SHARED[metric]}: the map shows little else. "
        "Scale columns of different units (StandardScaler, or --scale on the command line), or leave "
        "it out."
    )


@contextmanager
def column_names(names: Sequence[str] | None) -> Iterator[None]:
    """Within it, warnings name the columns of arrays so."""
    token = _COLUMN_NAMES.set(names)
    try:
        yield
    finally:
        _COLUMN_NAMES.reset(token)
