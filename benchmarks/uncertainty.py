"""Cost of mercat.uncertainty with its defaults, as a multiple of a plain fit of the same data.

    python -m benchmarks.uncertainty [n ...]

Fits and uncertainties take turns in one process; ratios are of medians. Data are clusters in 50 dimensions.
Results go to benchmarks/results/uncertainty.json.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness.record import Store, stamp
from mercat import Mercat, uncertainty

RESULTS = Path(__file__).parent / "results" / "uncertainty.json"
SIZES = (10_000, 100_000)
TURNS = 3


def clusters(n: int) -> np.ndarray:
    """Eight clusters of different widths along 50 dimensions."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(8, 50)) * np.linspace(1, 0.1, 50)
    noise = rng.normal(size=(n, 50)) * np.linspace(1, 0.3, 50)
    return (centers[rng.integers(8, size=n)] + noise).astype(np.float32)


def run(n: int, store: Store) -> None:
    """Fit and judge n points in turns."""
    X = clusters(n)
    Mercat(random_state=0).fit(X[:2000])  # what is compiled or loaded once
    fits, judged = [], []
    for turn in range(TURNS):
        start = time.perf_counter()
        model = Mercat(random_state=turn).fit(X)
        fits.append(time.perf_counter() - start)
        start = time.perf_counter()
        uncertainty(model, X, random_state=turn)
        judged.append(time.perf_counter() - start)
    ratio = float(np.median(judged) / np.median(fits))
    store.put(str(n), stamp(n=n, fit=fits, uncertainty=judged, n_maps=20, ratio=round(ratio, 2)))
    print(n, f"fit {np.median(fits):.1f} s, ratio {ratio:.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), help="numbers of points")
    warnings.simplefilter("ignore")
    results = Store(RESULTS)
    for size in parser.parse_args().sizes:
        run(size, results)
