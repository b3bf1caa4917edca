"""Sections of the report about run times, the spectrum of angles, and the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.data import SETS
from benchmarks.harness.methods import title

from . import runtime, theory
from .markdown import seconds, table
from .numbers import paper_runtimes, shown

Records = Mapping[str, dict[str, Any]]
PAPER_RANK = 13.8  # the paper's mean effective rank, the one number of its text


def _rank(times: Mapping[str, float]) -> int:
    """Mercat's place among the methods that embed by more than a projection."""
    return 1 + sum(t < times["mercat"] for m, t in times.items() if m not in ("mercat", "pca"))


def _warm(record: dict[str, Any]) -> dict[str, float]:
    return {m: r["warm"] for m, r in record["methods"].items() if r["status"] == "ok"}


def runtime_claims(records: Records) -> list[str]:
    timed = {n: _warm(r) for n, r in records.items() if r["status"] == "ok"}
    if not timed:
        return ["- **Run time**: no results yet."]
    ranks = {name: _rank(times) for name, times in timed.items() if "mercat" in times}
    ahead = sum(rank <= 2 for rank in ranks.values())
    text = f"- **Run time**: Mercat is first or second on {ahead} of {len(ranks)} sets"
    behind = [f"{SETS[n].title} ({r}.)" for n, r in ranks.items() if r > 2]
    text += f"; not on {', '.join(behind)}." if behind else "."
    if "mnist_even" in timed:
        printed, paper = paper_runtimes()["mnist_even", "mercat"]
        ours = timed["mnist_even"]["mercat"]
        text += (
            f" On MNIST even it takes {seconds(ours)}, where the paper's implementation took "
            f"{printed} on a CPU: {paper / ours:,.0f} times as long."
        )
    return [text]


def runtime_table(records: Records, real_records: Records, notes: Mapping[str, str]) -> str:
    if not records:
        return ""
    paper = paper_runtimes()
    rows = []
    for name in runtime.NAMES:
        record = records.get(name)
        if record is None or record["status"] != "ok":
            rows.append([SETS[name].title, "no data", *[""] * (len(runtime.METHODS) + 2)])
            continue
        cells = [_time(record["methods"][m], paper.get((name, m))) for m in runtime.METHODS]
        times = _warm(record)
        faster = ""
        if (name, "mercat") in paper and "mercat" in times and not notes.get(name):
            faster = f"{paper[name, 'mercat'][1] / times['mercat']:,.0f} x"
        place = f"{_rank(times)}." if "mercat" in times else ""
        rows.append([SETS[name].title, f"{record['n']:,} x {record['d']:,}", *cells, place, faster])
    head = ["set", "points x features", *map(title, runtime.METHODS)]
    head += ["Mercat's place", "paper's CPU time / ours"]
    loads = [r["load_before"] for r in records.values() if r.get("load_before") is not None]
    busy = f" Other work ran beside it (load {min(loads)} to {max(loads)} before)." if loads else ""
    return (
        "## Run time\n\nWarm seconds (what is compiled at the first call is compiled), in brackets "
        "cold: import, a first small call, and the call. In small print the paper's, on another "
        "machine and, for stand-ins and subsets, on other data. All methods start from the raw "
        "matrix, use all cores, and have the reduction to 50 components in their time. PCA, a "
        f"projection, has no place.{busy}\n\n" + table(head, rows) + _literal(real_records)
    )


def _time(outcome: Mapping[str, Any], paper: tuple[str, float] | None) -> str:
    if outcome["status"] != "ok":
        return str(outcome["status"])
    text = f"{seconds(outcome['warm'])} ({seconds(outcome['cold'])})"
    return text + (f" <sub>{paper[0]}</sub>" if paper else "")


def _literal(records: Records) -> str:
    parts = [
        f"{SETS[r['set']].title} {seconds(r['seconds']['fit'])} "
        f"for {r['options']['max_iter']} passes"
        for r in records.values()
        if r.get("method") == "mercat-algorithm1" and r["status"] == "ok"
    ]
    return f"\nAlgorithm 1, as this library runs it: {', '.join(parts)}.\n" if parts else ""


def spectrum_text(records: Records) -> str:
    record = records.get("paul15")
    if record is None:
        return ""
    if record["status"] != "ok":
        return f"## How many angles are there?\n\nNot run: {record['reason']}\n"
    ranks = ", ".join(
        f"{shown(found['mean_effective_rank'], 1)} ({name})"
        for name, found in record["variants"].items()
    )
    return (
        "## How many angles are there?\n\nAt each of 500 random points of Paul15, the matrix of "
        "the cosines of all angles has a low effective rank, which is why a few legs do for many. "
        f"Mean effective rank: {ranks}; the paper: {PAPER_RANK}. It depends on what the angles are "
        "taken in, which the paper does not say.\n"
    )


def theory_text(records: Records) -> str:
    if not {"strength", "convergence", "subsampling"} <= set(records):
        return ""
    return (
        "## Theory\n\n"
        + _theorem1(records["convergence"]["rows"], records["strength"]["rows"])
        + _theorem2(records["strength"]["rows"])
        + _subsampling(records["subsampling"]["rows"])
    )


def _slope(x: Any, y: Any) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _errors(rows: Any, profile: str, which: str) -> dict[float, float]:
    found: dict[float, list[float]] = {}
    for p, s, _, name, error in rows:
        if (p, name) == (profile, which):
            found.setdefault(s, []).append(error)
    return {s: float(np.mean(v)) for s, v in found.items()}


def _theorem1(rows: Any, strength: Any) -> str:
    strong = [row for row in rows if row[0] == theory.N and row[1] >= 3]
    ratio = np.array([row[3] / row[4] for row in strong])
    equal, _ = theory.PROFILES
    errors = {s: e for s, e in _errors(strength, equal, "singular vectors").items() if s >= 4}
    slope = _slope(list(errors), list(errors.values()))
    sizes = sorted({row[0] for row in rows})
    off = [np.mean([abs(r[3] - r[4]) for r in rows if r[0] == n and r[1] == 4]) for n in sizes]
    return (
        f"**Theorem 1** (spiked model, {theory.N} points in {theory.D} dimensions). What the "
        "estimate loses of the signal follows the predicted limit: simulated over predicted is "
        f"{shown(ratio.mean())} ± {shown(ratio.std())} for strengths from 3 on. The deviation from "
        f"the limit at strength 4 falls from {shown(off[0], 3)} at n = {sizes[0]} to "
        f"{shown(off[-1], 3)} at n = {sizes[-1]}, as the power {shown(_slope(sizes, off))} of n (the "
        "theorem: -.5). The mean error of angles falls with the strength as its power "
        f"{shown(slope)}.\n\n"
    )


def _theorem2(rows: Any) -> str:
    equal, unequal = theory.PROFILES
    last = max(theory.STRENGTHS)
    at = {w: _errors(rows, unequal, w)[last] for w in ("singular vectors", "components", "naive")}
    same = {w: _errors(rows, equal, w)[last] for w in ("components", "naive")}
    return (
        f"**Theorem 2.** With {unequal} the naive estimator stays biased however strong the "
        f"signal: at strength {last} its mean error is {shown(at['naive'])} rad, that of the "
        f"singular vectors {shown(at['singular vectors'], 3)}. The proof's bias comes from the "
        "unequal strengths, and so it is shared by principal components, which Algorithm 1 uses "
        f"({shown(at['components'])} rad): they estimate the angles of the signal as it appears in "
        "the data, weighted by strength, not those of the orthonormal factors. With equal "
        f"strengths they do well ({shown(same['components'], 3)} rad, naive "
        f"{shown(same['naive'], 3)}).\n\n"
    )


def _subsampling(rows: Any) -> str:
    parts = []
    for name in dict.fromkeys(row[0] for row in rows):
        at = [row for row in rows if row[0] == name and row[1] == 64]
        loss, gradient = (np.mean([row[k] for row in at]) for k in (3, 4))
        legs = sorted({row[1] for row in rows})
        mean = [np.mean([r[4] for r in rows if r[0] == name and r[1] == m]) for m in legs]
        parts.append(
            f"{SETS[name].title}: {100 * loss:.1f} % and {100 * gradient:.0f} % "
            "(the gradient's falls with the number of legs as its power "
            f"{shown(_slope(legs, mean))})"
        )
    return (
        "**Subsampling.** With 64 legs an apex, as in the paper, loss and gradient at the start "
        f"are off by, on average, {'; '.join(parts)}. The loss is known well from few angles. A "
        "single gradient is not: Adam averages many of them, which is why Algorithm 1 needs a "
        "thousand iterations, and why the exact, factorised gradient needs so few.\n"
    )
