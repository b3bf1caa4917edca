"""Speed compared with other methods and with the literal algorithm, and time of imports.

    python -m benchmarks.core --data DIR [peers] [small] [literal] [imports]

By default, all sections are run. Compare times as ratios within one run. Results go to
benchmarks/results/core.json. Other methods may need other interpreters: see `benchmarks.harness.peers`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import data, methods, peers, record
from benchmarks.harness.measure import paper_loss
from benchmarks.literal import seconds_per_step
from mercat import Mercat, metrics
from mercat._reduce.reducer import denoise

RESULTS = Path(__file__).parent / "results" / "core.json"
OURS, PEERS = ("mercat", "mercat-detail"), ("umap", "tsne", "ncvis", "pacmap")
SMALL = ("blood", "cell_cycle", "pancreas")
TURNS = 3
N_LOSS = 3000  # number of points whose triples are compared


def race(name: str, folder: str, turns: int) -> dict[str, Any]:
    """Warm wall times, including PCA, and the paper's measures on a data set.

    Each method runs in its own process. The methods alternate, and the median time of each counts.
    """
    X, labels, _ = data.load(name, folder)
    X_hat = denoise(X, 50)
    results: dict[str, Any] = {}
    for method, (Y, outcome) in peers.race((*OURS, *PEERS), X, turns=turns).items():
        results[method] = outcome
        if Y is not None:
            scores = {
                "angle": metrics.angle_preservation(X_hat, Y, random_state=0),
                "distance": metrics.distance_preservation(X_hat, Y, random_state=0),
                "neighborhood": metrics.neighborhood_preservation(X_hat, Y, random_state=0),
            }
            if labels.dtype.kind != "f":  # classes
                scores["label accuracy"] = metrics.knn_accuracy(Y, labels)
            results[method] |= {measure: float(value) for measure, value in scores.items()}
        print(method, json.dumps(results[method]), flush=True)
    times = {m: statistics.median(f["turns"]) for m, f in results.items() if f["turns"]}
    for method, seconds in times.items():
        results[method]["seconds"]["fit"] = seconds
    fastest = min((m for m in times if m in PEERS), key=times.__getitem__)
    results["fastest peer"] = methods.title(fastest)
    results["times faster than the fastest peer"] = {
        method: times[fastest] / times[method] for method in OURS
    }
    print(results["fastest peer"], results["times faster than the fastest peer"], flush=True)
    return results


def race_peers(folder: str) -> dict[str, Any]:
    """The even digits of MNIST, raw pixels."""
    return race("mnist_even", folder, TURNS)


def race_on_small_sets(folder: str) -> dict[str, Any]:
    """The paper's small sets."""
    return {name: race(name, folder, 2 * TURNS + 1) for name in SMALL}


def compare_with_literal_form(folder: str) -> dict[str, Any]:
    """Loss and time of objective="absolute" against Algorithm 1 with the paper's 1000 iterations."""
    results = {}
    for name in ("circle", "smiley", "gauss5", "gauss10", "unif5", "mammoth"):
        X = np.asarray(data.load(name, folder)[0], dtype=np.float64)
        X_hat = denoise(X, 50)
        times = []
        for _ in range(TURNS):
            start = time.perf_counter()
            ours = Mercat(objective="absolute", random_state=0).fit(X)
            times.append(time.perf_counter() - start)
        seconds = statistics.median(times)
        paper = Mercat(objective="absolute", solver="algorithm1", random_state=0).fit(X)
        literal = 1000 * seconds_per_step(X_hat, steps=3)
        results[name] = {
            "loss": paper_loss(X_hat, ours.embedding_, N_LOSS),
            "loss of Algorithm 1": paper_loss(X_hat, paper.embedding_, N_LOSS),
            "seconds": seconds,
            "seconds of the literal form": literal,
            "times faster": literal / seconds,
        }
        print(name, json.dumps(results[name]), flush=True)
    return results


def time_imports(_: str) -> dict[str, Any]:
    """Shortest of five import times in fresh processes."""

    def seconds(statement: str) -> float:
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(5)
        ]
        return min(runs)

    seconds_by_statement = {
        s: seconds(s) for s in ("import mercat", "import sklearn.base", "from mercat import Mercat")
    }
    seconds_by_statement["Mercat beyond sklearn.base"] = (
        seconds_by_statement["from mercat import Mercat"]
        - seconds_by_statement["import sklearn.base"]
    )
    print(json.dumps(seconds_by_statement), flush=True)
    return seconds_by_statement


SECTIONS = {
    "peers": race_peers,
    "small": race_on_small_sets,
    "literal": compare_with_literal_form,
    "imports": time_imports,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", help=f"among {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--data", help="folder of the real data sets")
    arguments = parser.parse_args()
    store = record.Store(RESULTS)
    for name in arguments.sections or SECTIONS:
        store.put(name, record.stamp(results=SECTIONS[name](arguments.data)))


if __name__ == "__main__":
    main()
