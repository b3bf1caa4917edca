"""The table of run times: all methods on all data sets, on one machine, in one run.

Each method has its own process, which makes a small first call to compile code. Then methods alternate, and
the shortest time counts, since other load only increases times. All start from the raw matrix, and the time
includes the reduction to 50 principal components, which makes every other method faster. There is no seed,
so that UMAP can use all cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.harness import data, peers
from benchmarks.harness.methods import title
from benchmarks.harness.record import stamp

from .experiment import PEERS, store
from .markdown import seconds, table
from .numbers import Records, paper_runtimes

TABLE = "runtime"
NAMES = ("blood", "pancreas", "paul15", "cell_cycle", "mnist_even", "mammoth")
METHODS = ("mercat", *PEERS)
TURNS = 3
ONE_TURN_BEYOND = 20_000  # points


def main(folder: str | None) -> None:
    """Time all methods on the sets without a record."""
    results = store(TABLE)
    todo = [name for name in NAMES if name not in results]
    for name in tqdm(todo, desc=TABLE, unit="set", disable=not todo):
        try:
            X, _, note = data.load(name, folder)
        except FileNotFoundError as error:
            results.put(name, stamp(set=name, status="no data", reason=str(error)))
            continue
        n, d = X.shape
        about = {"set": name, "n": n, "d": d, "note": note, "status": "ok"}
        load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
        results.put(name, stamp(**about, load_before=load, methods=_race(X)))


def _race(X: np.ndarray) -> dict[str, Any]:
    raced = peers.race(
        METHODS,
        X,
        turns=1 if len(X) > ONE_TURN_BEYOND else TURNS,
        n_components=dict.fromkeys(PEERS, 50),
    )
    outcomes = {method: outcome for method, (_, outcome) in raced.items()}
    for outcome in outcomes.values():
        if outcome["status"] == "ok":
            first = outcome.pop("seconds")
            outcome["warm"] = min(outcome["turns"])
            outcome["cold"] = first["import"] + first["first"] + first["fit"]
    return outcomes


# ------------------------------------------------------------------ what the report says


def _rank(times: Mapping[str, float]) -> int:
    """Rank of Mercat among the methods other than projections."""
    return 1 + sum(t < times["mercat"] for m, t in times.items() if m not in ("mercat", "pca"))


def _warm(record: dict[str, Any]) -> dict[str, float]:
    return {m: r["warm"] for m, r in record["methods"].items() if r["status"] == "ok"}


def in_short(records: Records) -> str:
    """Text on Mercat's ranks, and on its times compared with the paper's."""
    timed = {n: _warm(r) for n, r in records.items() if r["status"] == "ok"}
    if not timed:
        return "- **Run time**: no results yet."
    ranks = {name: _rank(times) for name, times in timed.items() if "mercat" in times}
    ahead = sum(rank <= 2 for rank in ranks.values())
    text = (
        f"- **Run time**: Mercat is the fastest or second fastest on {ahead} of {len(ranks)} sets"
    )
    behind = [f"{data.SETS[n].title} (rank {r})" for n, r in ranks.items() if r > 2]
    text += f", but not on {', '.join(behind)}." if behind else "."
    if "mnist_even" in timed:
        printed, paper = paper_runtimes()["mnist_even", "mercat"]
        ours = timed["mnist_even"]["mercat"]
        text += (
            f" On MNIST even, it takes {seconds(ours)}. The paper's implementation took {printed} on a CPU, "
            f"{paper / ours:,.0f} times as long."
        )
    return text


def section(records: Records, real_records: Records, notes: Mapping[str, str]) -> str:
    if not records:
        return ""
    paper = paper_runtimes()
    rows = []
    for name in NAMES:
        record = records.get(name)
        if record is None or record["status"] != "ok":
            rows.append([data.SETS[name].title, "no data", *[""] * (len(METHODS) + 2)])
            continue
        cells = [_time(record["methods"][m], paper.get((name, m))) for m in METHODS]
        times = _warm(record)
        faster = ""
        if (name, "mercat") in paper and "mercat" in times and not notes.get(name):
            faster = f"{paper[name, 'mercat'][1] / times['mercat']:,.0f} x"
        place = str(_rank(times)) if "mercat" in times else ""
        rows.append(
            [data.SETS[name].title, f"{record['n']:,} x {record['d']:,}", *cells, place, faster]
        )
    head = ["set", "points x features", *map(title, METHODS)]
    head += ["Mercat's rank", "paper's CPU time / ours"]
    loads = [r["load_before"] for r in records.values() if r.get("load_before") is not None]
    busy = (
        f" Other programs were running (load average {min(loads)} to {max(loads)})."
        if loads
        else ""
    )
    return (
        "## Run time\n\nThe table shows the time of a call "
        "after a first one (which may include compilation). In "
        "brackets is the time including import and a first "
        "small call. The paper's times, in small print, are "
        "from another machine and, where the table of data says "
        "so, for other data. All methods start from the raw "
        "matrix and use all cores; times include the reduction "
        "to 50 components. PCA is not ranked, since it is a "
        f"projection.{busy}\n\n" + table(head, rows) + _literal(real_records)
    )


def _time(outcome: Mapping[str, Any], paper: tuple[str, float] | None) -> str:
    if outcome["status"] != "ok":
        return str(outcome["status"])
    text = f"{seconds(outcome['warm'])} ({seconds(outcome['cold'])})"
    return text + (f" <sub>{paper[0]}</sub>" if paper else "")


def _literal(records: Records) -> str:
    parts = [
        f"{data.SETS[r['set']].title} {seconds(r['seconds']['fit'])} "
        f"for {r['options']['max_iter']} passes"
        for r in records.values()
        if r.get("method") == "mercat-algorithm1" and r["status"] == "ok"
    ]
    return f"\nTimes of this library's Algorithm 1: {', '.join(parts)}.\n" if parts else ""
