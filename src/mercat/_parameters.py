"""Parameters of `Mercat`, each declared once: default, allowed values, and one line of help.

Used by `Mercat` (defaults), validation (allowed values), the command line (options) and the documentation
(the table in docs/api/index.md). Imports no other libraries, so that `mercat --help` is fast.
"""

from __future__ import annotations

import difflib
import functools
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Default, rule and help of a parameter.

    `rule` completes the error message "<name> must be ..."; `none` says what None means, and is empty if None
    is not allowed.
    """

    default: Any = None
    help: str = ""
    rule: str = ""
    none: str = ""

    def allows(self, value: Any) -> bool:
        """Whether a value is allowed; always true for parameters that are checked where they are used."""
        del value
        return True

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError with the parameter's name, its rule and the value, if it is not allowed."""
        if value is None and self.none:
            return
        if not self.allows(value):
            raise ValueError(
                f"{name} must be {self.rule}, got {reprlib.repr(value)}.{self.suggestion(value)}"
            )

    def suggestion(self, value: Any) -> str:
        """Question, after a space, whether another value was meant; empty if there is none."""
        del value
        return ""


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of several strings; `synonyms` maps names that other libraries use to these."""

    choices: tuple[str, ...]
    synonyms: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = ", ".join(repr(word) for word in self.choices)
        object.__setattr__(self, "rule", self.rule or f"one of {words}")

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def suggestion(self, value: Any) -> str:
        if not isinstance(value, str):
            return ""
        name = value.lower()
        close = difflib.get_close_matches(name, self.choices, n=1)
        meant = self.synonyms.get(name) or (close[0] if close else None)
        return f" Did you mean {meant!r}?" if meant else ""


@dataclass(frozen=True, kw_only=True)
class ChoiceOrArray(Choice):
    """One of several strings, or an array that is checked where it is used."""

    def allows(self, value: Any) -> bool:
        return not isinstance(value, str) or value in self.choices


@dataclass(frozen=True, kw_only=True)
class ChoiceOrFunction(Choice):
    """One of several strings, or a function."""

    def __post_init__(self) -> None:
        words = ", ".join(repr(word) for word in self.choices)
        object.__setattr__(self, "rule", self.rule or f"one of {words}, or a function of two rows")

    def allows(self, value: Any) -> bool:
        return callable(value) or super().allows(value)


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """An integer of at least `least`, or one of several strings."""

    least: int
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        also = [*map(repr, self.words), *(["None"] if self.none else [])]
        rule = f"an integer of at least {self.least}{' (or ' + ' or '.join(also) + ')' if also else ''}"
        object.__setattr__(self, "rule", self.rule or rule)

    def allows(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.words
        return _is_integer(value) and value >= self.least


@dataclass(frozen=True, kw_only=True)
class Number(Parameter):
    """A finite number of at least `least` and at most `most`, or below `below`."""

    least: float
    most: float = math.inf
    below: float = math.inf

    def __post_init__(self) -> None:
        rule = f"a finite number of at least {self.least:g}"
        if self.most < math.inf:
            rule = f"a number in [{self.least:g}, {self.most:g}]"
        elif self.below < math.inf:
            rule = f"a number in [{self.least:g}, {self.below:g})"
        object.__setattr__(self, "rule", self.rule or rule)

    def allows(self, value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        return self.least <= float(value) <= self.most and float(value) < self.below


@dataclass(frozen=True, kw_only=True)
class Jobs(Parameter):
    """A number of threads as joblib counts them."""

    rule: str = "a non-zero integer or None"

    def allows(self, value: Any) -> bool:
        return _is_integer(value) and value != 0


@dataclass(frozen=True, kw_only=True)
class Function(Parameter):
    """A function to call."""

    rule: str = "callable or None"

    def allows(self, value: Any) -> bool:
        return callable(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


PARAMETERS: dict[str, Parameter] = {
    "objective": Choice(
        default="calibrated",
        choices=("calibrated", "absolute"),
        help="Preserve angles and, with less weight, distances; or minimise the paper's loss.",
    ),
    "detail": Number(
        default=0.0,
        least=0,
        most=1e6,  # angles lose all influence well below this; squares still fit single precision
        help="Weight of neighbourhoods relative to angles, from 0.03 (a little) to 1 (as in t-SNE).",
    ),
    "neighbors": Integer(
        default=None,
        least=1,
        rule="an integer of at least 1, a scipy.sparse matrix whose entries are edges, or None",
        none="30; n // 20 for fewer than 600 points, at least 10",
        help="Number of nearest neighbours used when detail > 0.",
    ),
    "n_detail": Integer(
        default=None,
        least=4,
        none="all rows; at most 1,000,000 of a Dask array or a memory map",
        help="Number of rows sampled for detail; the others are placed among them.",
    ),
    "n_spectral": Integer(
        default=50,
        least=1,
        words=("auto",),
        none="the data as they are",
        help="Number of principal components to keep.",
    ),
    "metric": ChoiceOrFunction(
        default="euclidean",
        choices=(
            "euclidean",
            "cosine",
            "correlation",
            "manhattan",
            "hamming",
            "jaccard",
            "precomputed",
        ),
        synonyms={
            "cityblock": "manhattan",
            "taxicab": "manhattan",
            "l1": "manhattan",
            "l2": "euclidean",
            "pearson": "correlation",
        },
        help="Distance between rows.",
    ),
    "solver": Choice(
        default="auto",
        choices=("auto", "exact", "landmarks", "algorithm1"),
        help="Solve all points together, solve a sample first, or run the paper's Algorithm 1.",
    ),
    "n_landmarks": Integer(
        default=1000,
        least=4,
        help="Number of points of large data that are solved exactly; the others are placed against them.",
    ),
    "init": ChoiceOrArray(
        default="auto",
        choices=("auto", "pca"),
        rule="'auto', 'pca' or an array of shape (n, 3)",
        help="Initial positions.",
    ),
    "max_iter": Integer(
        default=None,
        least=1,
        none="500; 1000 or 250 for 'algorithm1'",
        help="Maximum number of iterations of the solver.",
    ),
    "tol": Number(
        default=1e-4,
        least=0,
        below=1,
        help="Relative decrease of the loss per iteration below which the solver stops.",
    ),
    "random_state": Parameter(
        default=None,
        rule="a non-negative integer, a numpy Generator or RandomState, or None",
        none="a random seed",
        help="Seed of the neighbour search in large data and of 'algorithm1'.",
    ),
    "device": Parameter(
        default=None,
        rule="None, 'cpu', 'cuda', 'cuda:<number>' or 'mps'",
        none="NumPy, or the device of X",
        help="Torch device to compute on.",
    ),
    "n_jobs": Jobs(
        default=-1,
        none="1",
        help="Number of threads; -1 for all cores.",
    ),
    "verbose": Parameter(
        default=False,
        rule="a bool",
        help="Show progress bars.",
    ),
    "callback": Function(
        default=None,
        none="no callback",
        help="Called with (iteration, loss, Y) after each iteration; return true to stop.",
    ),
}
DEFAULTS: dict[str, Any] = {name: declared.default for name, declared in PARAMETERS.items()}


# What to use instead of parameters of other libraries, ...
_EQUIVALENTS = {
    "n_neighbors": "neighbors= and detail=; with detail=0, neighbours are not used",
    "perplexity": "detail=, and neighbors= for the number of neighbours",
    "n_pcs": "n_spectral=, the number of principal components of the data that are kept",
    "min_dist": "detail=, which draws neighbours together; points are not drawn together otherwise",
    "spread": "detail=, which draws neighbours together; points are not drawn together otherwise",
    "early_exaggeration": "detail=, whose schedule is fixed",
    "n_epochs": "max_iter= and tol=",
    "n_iter": "max_iter= and tol=",
    "seed": "random_state=",
    "dist": "metric=",
    "affinity": "metric=",
}
# ... and why others have no equivalent.
_NO_EQUIVALENTS = {
    "n_components": "the map is always on the sphere; n_spectral= is the number of principal components of "
    "the data that are kept",
    "learning_rate": "step lengths are found by a line search",
    "dens_map": "density has no term of its own",
    "densmap": "density has no term of its own",
    "low_memory": "memory is bounded",
}


def unknown_parameter(name: str) -> str:
    """Sentence that says what to use instead of a parameter that does not exist."""
    if name in _EQUIVALENTS:
        return f"Use {_EQUIVALENTS[name]}."
    if name in _NO_EQUIVALENTS:
        return f"It has no equivalent: {_NO_EQUIVALENTS[name]}."
    close = difflib.get_close_matches(name, PARAMETERS, n=1)
    return f"Did you mean {close[0]}=?" if close else f"Parameters are {', '.join(PARAMETERS)}."


def reject_unknown_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """Decorator of `__init__`: TypeErrors for unknown parameters say what to use instead.

    The signature stays the same.
    """

    @functools.wraps(init)
    def checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in PARAMETERS:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}. {unknown_parameter(name)}"
                )
        init(self, *args, **kwargs)

    return checked_init
