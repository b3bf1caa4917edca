"""Cost of mercat.uncertainty with its defaults, as a multiple of a plain fit of the same data.

    python -m benchmarks.uncertainty [n ...]

Fits and uncertainties alternate in one process. Processor times of all threads are measured, which other
processes hardly affect; ratios are those of medians. Data are clusters that overlap, and clusters far apart,
which are fitted faster. Results go to benchmarks/results/uncertainty.json.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness.record import Store, stamp
from mercat import Mercat, uncertainty

RESULTS = Path(__file__).parent / "results" / "uncertainty.json"
SIZES = (300, 2000, 100_000)
TURNS = 2


def overlapping(n: int) -> np.ndarray:
    """Eight clusters of different widths along 50 dimensions."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(8, 50)) * np.linspace(1, 0.1, 50)
    noise = rng.normal(size=(n, 50)) * np.linspace(1, 0.3, 50)
    return (centers[rng.integers(8, size=n)] + noise).astype(np.float32)


def separate(n: int) -> np.ndarray:
    """Five round clusters in 20 dimensions, at a distance of many times their width."""
    rng = np.random.default_rng(1)
    centers = 20 * rng.normal(size=(5, 20))
    return (centers[rng.integers(5, size=n)] + rng.normal(size=(n, 20))).astype(np.float32)


DATA: tuple[Callable[[int], np.ndarray], ...] = (overlapping, separate)


def run(data: Callable[[int], np.ndarray], n: int, store: Store) -> None:
    """Time fit and uncertainty of n points alternately and store the result."""
    name, X = data.__name__, data(n)
    Mercat(random_state=0).fit(X[:2000])  # compile and load code
    fits, uncertainties = [], []
    for turn in range(TURNS):
        start = time.process_time()
        model = Mercat(random_state=turn).fit(X)
        fits.append(time.process_time() - start)
        start = time.process_time()
        uncertainty(model, X, random_state=turn)
        uncertainties.append(time.process_time() - start)
    ratio = float(np.median(uncertainties) / np.median(fits))
    times = {"fit": fits, "uncertainty": uncertainties, "ratio": round(ratio, 2)}
    store.put(f"{name}/{n}", stamp(data=name, n=n, n_maps=20, **times))
    print(name, n, f"fit {np.median(fits):.1f} s, ratio {ratio:.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), help="numbers of points")
    warnings.simplefilter("ignore")
    results = Store(RESULTS)
    for size in parser.parse_args().sizes:
        for kind in DATA:
            run(kind, size, results)
