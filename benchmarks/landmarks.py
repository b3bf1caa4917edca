"""Variation of measures with other landmarks, on data with rare populations.

    python -m benchmarks.landmarks [--data DIR] [set ...]

Ten fits of 10,000 points in 16 clusters of different widths, each 0.7 times the size of the previous one.
Data are drawn twice; with DIR, Paul15 is added. Landmarks depend on the values of the rows, not on the seed,
so the data are scaled to select others. Mean and standard deviation of each measure go to
benchmarks/results/landmarks.json. Run it at another commit to compare.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.record import Store, stamp
from mercat import Mercat, metrics
from mercat._reduce.reducer import denoise

RESULTS = Path(__file__).parent / "results" / "landmarks.json"
MEASURES = {
    "angle": metrics.angle_preservation,
    "distance": metrics.distance_preservation,
    "density": metrics.density_preservation,
}
N_FITS = 10


def rare_populations(draw: int, n: int = 10_000) -> np.ndarray:
    """Clusters in 30 dimensions, the smallest of about 15 points."""
    rng = np.random.default_rng(draw)
    share = 0.7 ** np.arange(16)
    cluster = rng.choice(16, n, p=share / share.sum())
    centers = rng.normal(size=(16, 30)) * rng.uniform(1, 4, size=(16, 1))
    width = rng.uniform(0.2, 1.2, size=16)
    return centers[cluster] + rng.normal(size=(n, 30)) * width[cluster][:, None]


def run(name: str, X: np.ndarray, store: Store) -> None:
    """Fit with other landmarks each time, and measure against the data in 50 components."""
    X_hat = denoise(X, 50) if X.shape[1] > 50 else X
    scores: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for k in range(N_FITS):
        Y = Mercat(random_state=0).fit_transform((1 + k / 1000) * X)
        for measure, function in MEASURES.items():
            scores[measure].append(float(function(X_hat, Y, geometry="sphere")))
    summary = {
        measure: {
            "mean": round(float(np.mean(values)), 4),
            "deviation": round(float(np.std(values, ddof=1)), 4),
        }
        for measure, values in scores.items()
    }
    store.put(name, stamp(set=name, n=len(X), fits=N_FITS, measures=summary))
    print(name, summary, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data sets")
    parser.add_argument("sets", nargs="*", default=["rare 0", "rare 1", "paul15"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Store(RESULTS)
    for which in given.sets:
        if which.startswith("rare"):
            run(which, rare_populations(int(which.split()[1])), results)
        elif given.data:
            run(which, data.load(which, given.data).X, results)
