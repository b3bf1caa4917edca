"""Claims of the report, computed from the results: wins, comparisons with the paper, ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.harness.data import SETS
from benchmarks.harness.measure import MEASURES

from .experiment import PEERS
from .numbers import Number, paper_table, verdict

Results = Mapping[tuple[Any, ...], Mapping[str, Number]]
NONLINEAR = tuple(method for method in PEERS if method != "pca")


class Contest(NamedTuple):
    """Mercat (default) against its strongest rival, for a set and a measure."""

    name: str
    measure: str
    ours: Number
    rival: str
    theirs: Number

    @property
    def won(self) -> bool:
        return self.ours.mean >= self.theirs.mean


class Wins(NamedTuple):
    """Number of sets on which Mercat preserves angles, distances, and both best, and number of sets."""

    angle: int
    distance: int
    both: int
    sets: int


class Comparison(NamedTuple):
    """Our results compared with the paper's Mercat."""

    name: str
    measure: str
    ours: Number
    paper: Number
    verdict: str


def contests(results: Results, rivals: tuple[str, ...]) -> list[Contest]:
    """Compare angles and distances of each set with the best rival on any input.

    `results` are by set, method and number of components given to the method.
    """
    found = []
    for name in SETS:
        if (name, "mercat", None) not in results:
            continue
        field = [(k[1], v) for k, v in results.items() if k[0] == name and k[1] in rivals]
        for measure in ("angle", "distance") if field else ():
            rival, theirs = max(((m, v[measure]) for m, v in field), key=lambda pair: pair[1].mean)
            ours = results[name, "mercat", None][measure]
            found.append(Contest(name, measure, ours, rival, theirs))
    return found


def wins(found: list[Contest]) -> Wins:
    sets = {c.name for c in found}
    angle, distance = (
        {c.name for c in found if c.measure == m and c.won} for m in ("angle", "distance")
    )
    return Wins(len(angle), len(distance), len(angle & distance), len(sets))


def comparisons(results: Results, table: str, method: str = "mercat") -> list[Comparison]:
    paper = paper_table(table)
    return [
        Comparison(
            name, m, ours[m], paper[name, m, "mercat"], verdict(ours[m], paper[name, m, "mercat"])
        )
        for (name, which, reduced), ours in results.items()
        if which == method and reduced is None
        for m in MEASURES
        if (name, m, "mercat") in paper
    ]


def explanation(comparison: Comparison, others: Results, note: str) -> str:
    """Explain a number below the paper's, as far as the results allow."""
    name, measure = comparison.name, comparison.measure
    if note.startswith("stand-in"):
        return "The data differ: the paper's are not available."
    reasons = []
    literal = others.get((name, "mercat-algorithm1", None))
    absolute = others.get((name, "mercat-absolute", None))
    if literal is not None and verdict(literal[measure], comparison.paper) == "miss":
        reasons.append(
            f"Algorithm 1 also gives only {literal[measure]} here, so the cause is not the objective, but "
            "the data, their preprocessing, or settings that the paper does not state."
        )
    elif literal is not None and absolute is not None and _as_low(absolute, comparison):
        reasons.append(
            f"Algorithm 1 gives {literal[measure]}. Minimising the paper's loss further gives "
            f"{absolute[measure]}, so the cause is the lower loss, not the calibration."
        )
    elif literal is not None:
        reasons.append(
            f"Algorithm 1 gives {literal[measure]} here; the calibrated objective preserves angles and "
            "distances at the cost of this measure."
        )
    if note:
        reasons.append(f"The data differ, too ({note}).")
    return " ".join(reasons) or "Not explained."


def _as_low(absolute: Mapping[str, Number], comparison: Comparison) -> bool:
    """Whether the minimum of the paper's loss is closer to our number than to the paper's."""
    found = absolute[comparison.measure].mean
    return abs(found - comparison.ours.mean) < abs(found - comparison.paper.mean)
