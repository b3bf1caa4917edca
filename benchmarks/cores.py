"""Time of a fit by the number of threads, plain and with detail.

    python -m benchmarks.cores [--threads 1 2 4 8 16] [--plain 300000] [--detail 100000] [--turns 3]

Each fit runs in its own process after a small one; the median of all turns counts. Numbers of threads above
the number of cores are left out. Data are those of `benchmarks.scale`. Results go to
benchmarks/results/cores.json, with the speed-up over one thread and whether all numbers of threads gave the
same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import record
from benchmarks.scale import DETAIL, clusters

RESULTS = Path(__file__).parent / "results" / "cores.json"


def fit_once(n: int, detail: float, n_jobs: int) -> dict[str, Any]:
    """A fit in this process, after a small one."""
    from mercat import Mercat, _kernels

    X = clusters(n)
    settings = {"random_state": 0, "detail": detail, "n_jobs": n_jobs}
    Mercat(**settings).fit(X[:2000])
    start = time.perf_counter()
    model = Mercat(**settings).fit(X)
    return {
        "seconds": time.perf_counter() - start,
        "bits": hashlib.sha256(model.embedding_.tobytes()).hexdigest()[:16],
        "kernels": _kernels.describe(),
    }


def by_threads(n: int, detail: float, threads: list[int], turns: int) -> dict[str, Any]:
    """Median time by number of threads; the numbers of threads alternate."""
    seconds: dict[int, list[float]] = {t: [] for t in threads}
    bits, kernels = set(), ""
    for _ in range(turns):
        for t in threads:
            command = [sys.executable, "-m", "benchmarks.cores", "--fit-once", str(n), str(detail)]
            output = subprocess.run(
                [*command, str(t)], capture_output=True, text=True, check=True
            ).stdout
            fit = json.loads(output)
            seconds[t].append(fit["seconds"])
            bits.add(fit["bits"])
            kernels = fit["kernels"]
            print(n, detail, t, json.dumps(fit), flush=True)
    median = {t: statistics.median(s) for t, s in seconds.items()}
    return {
        "points": n,
        "detail": detail,
        "kernels": kernels,
        "seconds": {str(t): s for t, s in median.items()},
        "times faster than one thread": {str(t): median[threads[0]] / s for t, s in median.items()},
        "the same bits": len(bits) == 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--plain", type=int, default=300_000, help="points without detail; 0: none")
    parser.add_argument("--detail", type=int, default=100_000, help="points with detail; 0: none")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--fit-once", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit_once:
        n, detail, n_jobs = arguments.fit_once
        print(json.dumps(fit_once(int(n), float(detail), int(n_jobs))))
        return
    store = record.Store(RESULTS)
    threads = sorted(t for t in arguments.threads if t <= record.machine()["cores"])
    for name, n, detail in (
        ("plain", arguments.plain, 0.0),
        ("detail", arguments.detail, DETAIL),
    ):
        if n:
            results = by_threads(n, detail, threads, arguments.turns)
            store.put(name, record.stamp(results=results))


if __name__ == "__main__":
    main()
