"""Aligned maps: movement of points and loss of angle preservation as data grow by a fifth.

    python -m benchmarks.align --data DIR

A map of five sixths of each data set is compared with three maps of all of it: a new one, and two aligned to
the first, given its model or its positions; with detail 0 and 0.3. The new map is rotated onto the first
before the movement is measured. Results go to benchmarks/results/align.json.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.record import Store, each_set, stamp
from mercat import Mercat, metrics

RESULTS = Path(__file__).parent / "results" / "align.json"
SETS = ("blood", "pancreas", "paul15", "mammoth", "mnist_even")
MAX_ROWS = 12_000  # maximum number of rows per data set
DETAILS = (0, 0.3)


def movement(Y: np.ndarray, old: np.ndarray) -> float:
    """Median angle between points on two maps, in degrees."""
    cosine = np.clip(np.sum(Y[: len(old)] * old, axis=1), -1, 1)
    return round(float(np.median(np.degrees(np.arccos(cosine)))), 3)


def compare_maps(X: np.ndarray, detail: float) -> dict[str, dict[str, float]]:
    """Movement of old points, and angle and neighbourhood preservation, as the data grow by a fifth."""
    m = len(X) * 5 // 6
    old = Mercat(random_state=0, detail=detail).fit(X[:m])
    positions = np.full((len(X), 3), np.nan)
    positions[:m] = old.embedding_
    fresh = Mercat(random_state=1, detail=detail).fit(X)
    maps = {
        "fresh": fresh.turn(fresh.embedding_[:m], old.embedding_),
        "model": Mercat(random_state=1, detail=detail).fit(X, align_to=old),
        "positions": Mercat(random_state=1, detail=detail).fit(X, align_to=positions),
    }
    return {
        key: {
            "movement": movement(model.embedding_, old.embedding_),
            "angles": round(float(metrics.angle_preservation(X, model.embedding_)), 4),
            "neighborhoods": round(
                float(metrics.neighborhood_preservation(X, model.embedding_)), 4
            ),
        }
        for key, model in maps.items()
    }


def run(name: str, folder: str, store: Store) -> None:
    """Measure one data set, with and without its last sixth, and store the result."""
    X = data.load(name, folder).X
    X = X[np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]]
    for detail in DETAILS:
        measures = compare_maps(X, detail)
        fields = {"set": name, "n": len(X), "detail": detail}
        store.put(f"{name}/{detail:g}", stamp(**fields, measures=measures))
        print(name, detail, measures, flush=True)


if __name__ == "__main__":
    each_set(__doc__, SETS, RESULTS, run)
