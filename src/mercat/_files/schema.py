"""Rules for the fields of a fitted model, against which model files are checked.

A new attribute of fitted models needs a line here, and a higher `_files.model.VERSION` once models without it
have been released.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mercat import __version__

from .._detail.affinities import Strength
from .._detail.new_points import DetailPlacer
from .._detail.repulsion import Field
from .._detail.terms import Anchors, PairForces
from .._estimator import Mercat
from .._math.angles import ApexSums, Calibration
from .._math.distances import N_STEPS, HalfRanks
from .._math.terms import PAIR_TERMS
from .._reduce.components import ComponentReducer
from .._reduce.distances import DistanceReducer
from .._reduce.metrics import MetricReducer
from .._solve.fitted_map import FittedMap
from .._solve.landmarks import PlacedTerm
from .._solve.placement import LandmarkPlacer
from .._solve.status import Status


class Shape(NamedTuple):
    """Rule for an array: its sizes along the axes; a letter means the same number in all rules."""

    sizes: str
    kind: str = "f"
    optional: bool = False  # may be None
    missing: bool = False  # may contain NaN
    unit: bool = False  # rows are unit vectors


_PAIR_TERMS: tuple[Any, ...] = tuple(type(entry.term) for entry in PAIR_TERMS)
# The rule for a field is the shape of an array, a type or several, or a list with the type of the records in
# a tuple.
RULES: dict[type, dict[str, Any]] = {
    Mercat: {
        "n_features_in_": int,
        "feature_names_in_": Shape("d", "O"),
        "embedding_": Shape("n 3", unit=True),
        "landmarks_": Shape("l", "i"),
        "loss_": float,
        "correlation_": float,
        "calibration_": tuple,
        "point_loss_": Shape("n", missing=True),
        "history_": Shape("h"),
        "n_iter_": int,
        "status_": Status,
        "components_": Shape("r d", optional=True),
        "mean_": Shape("d", optional=True),
        "explained_variance_": Shape("v"),
        "_n_features_out": int,
        "_rotation": Shape("3 3", unit=True),
        "_placer": FittedMap,
    },
    FittedMap: {
        "spectral": (ComponentReducer, DistanceReducer, MetricReducer),
        "against": (LandmarkPlacer, DetailPlacer),
    },
    ComponentReducer: {
        "mean": Shape("d"),
        "components": Shape("r d", optional=True),
        "explained_variance": Shape("v"),
        "unit": float,
        "metric": str,
    },
    MetricReducer: {"metric": str, "points": Shape("w d"), "scaling": DistanceReducer},
    DistanceReducer: {
        "mean": Shape("w"),
        "axes": Shape("w r"),
        "explained_variance": Shape("v"),
        "unit": float,
        "spread": float,
    },
    LandmarkPlacer: {
        "X": Shape("L r"),
        "Y": Shape("L 3", unit=True),
        "sigma": Shape("2 L"),
        "sigma12": Shape("L"),
        "P": Shape("2 L r"),
        "T": Shape("2 L"),
        "candidates": Shape("G 3", unit=True),
        "calibration": Calibration,
        "softening": float,
        "n_apex_legs": int,
        "terms": [PlacedTerm],
    },
    PlacedTerm: {"term": _PAIR_TERMS, "weight": float, "scale": (HalfRanks, type(None))},
    HalfRanks: {
        "quantiles": Shape(f"{N_STEPS + 1}"),
        "ranks": Shape(f"{N_STEPS + 1}"),
        "deviation": float,
    },
    Calibration: {"alpha": float, "beta": float},
    DetailPlacer: {
        "X": Shape("N r"),
        "Y": Shape("N 3", unit=True),
        "k": int,
        "strength": Strength,
        "field": Field,
        "repulsion": float,
        "anchors": Anchors,
        "calibration": Calibration,
        "variance": float,
        "weight": float,
        "terms": [PairForces],
        "decay": float,
        "narrowing": float,
    },
    PairForces: {"term": _PAIR_TERMS, "weight": float},
    **{kind: dict.fromkeys(kind._fields, float) for kind in _PAIR_TERMS},
    Strength: {"unit": float, "factor": float},
    Field: {"values": Shape("F"), "n_rows": int, "n_columns": int},
    Anchors: {
        "X": Shape("A r"),
        "Y": Shape("A 3", unit=True),
        "sums": ApexSums,
        "softening": float,
    },
    ApexSums: {"M": Shape("2 A r"), "S": Shape("2 A"), "S12": Shape("A"), "t": Shape("2 A")},
}
# Names of record types in model files, independent of class names.
_IN_FILES = {
    FittedMap: "Placer",
    LandmarkPlacer: "Landmarks",
    DetailPlacer: "Surroundings",
    ComponentReducer: "Spectral",
    DistanceReducer: "FromDistances",
    ApexSums: "Sums",
}
TUPLES: dict[str, Any] = {
    _IN_FILES.get(kind, kind.__name__): kind for kind in RULES if issubclass(kind, tuple)
}
TAGS = {kind: name for name, kind in TUPLES.items()}
_OPTIONAL_FIELDS = {"feature_names_in_"}
_MAY_BE_NAN = {  # fields that may be NaN or infinite
    "loss_",
    "correlation_",
    "_placer.against.variance",
    "_placer.against.terms.term.variance",
}


def check_state(model: Mercat, state: dict[str, Any]) -> None:
    """Raise ValueError if these attributes cannot come from a fit with these parameters."""
    rules = RULES[Mercat]
    check_names("the state", set(state) | _OPTIONAL_FIELDS, set(rules))
    sizes: dict[str, int] = {}
    for name, value in state.items():
        _check_value(name, value, rules[name], sizes)
    _check_together(model, state, sizes)


def check_names(where: str, got: set[str], expected: set[str]) -> None:
    if got != expected:
        absent, unknown = sorted(expected - got), sorted(got - expected)
        raise ValueError(
            f"{where} in the file differ from those that mercat {__version__} expects: "
            f"missing {absent or 'none'}, unknown {unknown or 'none'}."
        )


def _check_value(name: str, value: Any, rule: Any, sizes: dict[str, int]) -> None:
    if isinstance(rule, Shape):
        _check_array(name, value, rule, sizes)
        return
    if isinstance(rule, list):
        _check_value(name, value, tuple, sizes)
        for record in value:
            _check_value(name, record, rule[0], sizes)
        return
    if not isinstance(value, rule) or isinstance(value, bool):
        raise ValueError(f"{name} is of the wrong type, {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value) and name not in _MAY_BE_NAN:
        raise ValueError(f"{name} must be finite, got {value}.")
    for field, inner in RULES.get(type(value), {}).items():
        _check_value(f"{name}.{field}", getattr(value, field), inner, sizes)


def _check_array(name: str, array: Any, rule: Shape, sizes: dict[str, int]) -> None:
    if array is None and rule.optional:
        return
    letters = rule.sizes.split()
    if not isinstance(array, np.ndarray) or array.ndim != len(letters):
        raise ValueError(f"{name} must be an array of {len(letters)} dimensions.")
    if array.dtype.kind != rule.kind:
        raise ValueError(f"{name} must be of the kind {rule.kind!r}, got {array.dtype}.")
    for letter, size in zip(letters, array.shape, strict=True):
        expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
        if size != expected:
            raise ValueError(
                f"{name} has the shape {array.shape}, in which {size} must be {expected}."
            )
    if rule.kind == "f" and not rule.missing and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    if rule.unit and np.abs(np.linalg.norm(array, axis=-1) - 1).max(initial=0) > 1e-4:
        raise ValueError(f"{name} must have rows of length 1.")


def _check_together(model: Mercat, state: dict[str, Any], sizes: dict[str, int]) -> None:
    """Check relations between fields."""
    reducer = state["_placer"].spectral
    n, d = sizes["n"], sizes.get("d", sizes.get("w", 0))
    r, n_compared = sizes.get("r", d), sizes.get("L", 1)
    if state["n_features_in_"] != d:
        raise ValueError(f"n_features_in_ must be {d}, got {state['n_features_in_']}.")
    distances = isinstance(reducer, DistanceReducer | MetricReducer)
    if isinstance(reducer, DistanceReducer) != (model.metric == "precomputed"):
        raise ValueError(f"its metric {model.metric!r} does not match its components.")
    if not isinstance(reducer, DistanceReducer) and reducer.metric != model.metric:
        raise ValueError(f"it has two metrics, {model.metric!r} and {reducer.metric!r}.")
    if isinstance(reducer, ComponentReducer) and reducer.components is None and r != d:
        raise ValueError(f"its landmarks must have {d} columns, got {r}.")
    kept = r if distances or reducer.components is not None else 0
    if sizes["v"] != kept:
        raise ValueError(f"explained_variance_ must have {kept} values, got {sizes['v']}.")
    if sizes["h"] != state["n_iter_"]:
        raise ValueError(
            f"history_ must have n_iter_ entries, {state['n_iter_']}, got {sizes['h']}."
        )
    if not reducer.unit > 0:
        raise ValueError(f"its unit of length must be positive, got {reducer.unit}.")
    rows = state["landmarks_"]
    if not 1 <= n_compared <= len(rows) or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"landmarks_ must be rows of the {n} points.")
    placer = state["_placer"].against
    if isinstance(placer, DetailPlacer):
        if not 1 <= placer.k <= sizes["N"] <= n:
            raise ValueError(
                f"its number of neighbours must be in 1..{sizes['N']}, at most {n}, got {placer.k}."
            )
        if not placer.field.is_complete():
            raise ValueError("its field does not have the size of its grid.")
    for term in getattr(placer, "terms", ()):
        scale = getattr(term, "scale", None)
        if scale and not (scale.deviation > 0 and np.diff(scale[:2], prepend=0).min() >= 0):
            raise ValueError("its scale of distances must increase from 0.")
    pair = state["calibration_"]
    if len(pair) != 2 or not all(isinstance(v, float) and math.isfinite(v) for v in pair):
        raise ValueError("calibration_ must be two numbers.")
