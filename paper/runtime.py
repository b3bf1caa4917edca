"""The table of run times: every method on every set, on one machine, in one go.

Each method has a process of its own, which has made a first, small call, so that what is compiled
is compiled. Then the methods take turns, and the shortest of their turns counts: whatever else the
machine does can only prolong one. All start from the raw matrix, and the time includes reducing it
to 50 principal components, which makes every peer faster. No seed, so that UMAP may use all cores.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.harness import data, peers
from benchmarks.harness.record import stamp

from .experiment import PEERS, store

TABLE = "runtime"
NAMES = ("blood", "pancreas", "paul15", "cell_cycle", "mnist_even", "mammoth")
METHODS = ("mercat", *PEERS)
TURNS = 3
ONE_TURN_BEYOND = 20_000  # points


def main(folder: str | None) -> None:
    """Time the sets that have no record yet; a set is timed as a whole or not at all."""
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
