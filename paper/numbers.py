"""The paper's numbers, our numbers, and their comparison."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Records = Mapping[str, dict[str, Any]]  # contents of a file of results
DATA = Path(__file__).resolve().parent / "data"
ROUNDING = 0.005  # the paper's tables have two decimals


class Number(NamedTuple):
    """A mean and its standard deviation over draws (0 for one draw)."""

    mean: float
    deviation: float = 0.0

    def __str__(self) -> str:
        text = shown(self.mean)
        return f"{text} ±{shown(self.deviation)}" if self.deviation > 0 else text


def shown(value: float, digits: int = 2) -> str:
    """Two decimals and no zero before the point, as in the paper: .73, -.06, 1.00."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def paper_table(name: str) -> dict[tuple[str, str, str], Number]:
    """The paper's table "synthetic" or "real": by set, measure and method."""
    return {
        (row["set"], row["measure"], row["method"]): Number(
            float(row["mean"]), float(row["deviation"] or 0)
        )
        for row in _rows(name)
    }


def paper_neighborhoods() -> dict[tuple[str, str, str, int], float]:
    """The paper's neighbourhood study: by set, measure, method and size."""
    return {
        (row["set"], row["measure"], row["method"], int(row["neighbors"])): float(row["value"])
        for row in _rows("neighborhood")
    }


def paper_runtimes() -> dict[tuple[str, str], tuple[str, float]]:
    """The paper's run times: as printed and in seconds, by set and method."""
    return {
        (row["set"], row["method"]): (row["as_printed"], float(row["seconds"]))
        for row in _rows("runtime")
    }


def collect(
    records: Iterable[Mapping[str, Any]], *fields: str
) -> dict[tuple[Any, ...], dict[str, Number]]:
    """Mean and deviation over seeds of each measure, for each combination of fields."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        if record["status"] == "ok":
            groups.setdefault(tuple(record[f] for f in fields), []).append(record["measures"])
    return {
        key: {name: _number([m[name]["value"] for m in group]) for name in group[0]}
        for key, group in groups.items()
    }


def _number(values: list[float]) -> Number:
    # The paper does not say which deviation it means; this is that of a sample.
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Number(float(np.mean(values)), deviation)


def verdict(ours: Number, paper: Number) -> str:
    """ "beat", "match" or "miss": beyond, within or below two deviations of the difference."""
    gap = ours.mean - paper.mean
    slack = 2 * math.hypot(ours.deviation, paper.deviation) + ROUNDING
    if gap > slack:
        return "beat"
    return "match" if gap >= -slack else "miss"
