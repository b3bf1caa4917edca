"""Coverage of the regions of mercat.uncertainty.

    python -m benchmarks.calibration [distribution ...]

Data are drawn from known distributions and mapped, and 50 % and 90 % regions are computed. Other maps are
then fitted to new draws ("draws"), with their own components, landmarks and seed; the first data are placed
on them by `transform`. Further maps are fitted to the same data with other landmarks ("landmarks"): landmarks
depend on the values of the rows, so the data are scaled, which has no other effect. These maps are rotated
and scaled onto the first, and the fraction of points in their regions is computed. Points of a map move
together, so this fraction varies between maps; the level refers to its mean over maps and distributions. The
tails and the size of regions were chosen on other draws of these distributions and of a few more. Results go
to benchmarks/results/calibration.json.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.record import Store, stamp
from mercat import Mercat, uncertainty

RESULTS = Path(__file__).parent / "results" / "calibration.json"
LEVELS = (0.5, 0.9)
# Number of other maps per data set, and of data sets per distribution.
N_OTHER_MAPS, N_DATA_SETS = 8, 2
SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {
    "exact": (400, {}),
    "landmarks": (3000, {"n_landmarks": 300}),
    "detail": (1200, {"n_landmarks": 300, "detail": 0.3}),
}
Draw = Callable[[int, np.random.Generator], np.ndarray]


def ellipsoid(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 10)) * np.linspace(1, 0.2, 10)


def clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Six clusters, the smallest with 3 % of the points."""
    centers = np.random.default_rng(5).normal(size=(6, 20)) * 1.5
    kind = rng.choice(6, size=n, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    return centers[kind] + 0.8 * rng.normal(size=(n, 20))


def branches(n: int, rng: np.random.Generator) -> np.ndarray:
    directions = np.random.default_rng(6).normal(size=(4, 15))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distances = 4 * rng.random((n, 1))
    return distances * directions[rng.integers(4, size=n)] + 0.25 * rng.normal(size=(n, 15))


def cube(n: int, rng: np.random.Generator) -> np.ndarray:
    """A symmetric cube: which of its sides a map shows is random."""
    return rng.random((n, 5))


def noise(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 10))


def symmetric_clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Five clusters at equal distances from each other."""
    return 4 * np.eye(5, 8)[rng.integers(5, size=n)] + 0.7 * rng.normal(size=(n, 8))


def heavy_tails(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(4, size=(n, 8)) * np.linspace(1, 0.3, 8)


def ring(n: int, rng: np.random.Generator) -> np.ndarray:
    angle = 2 * np.pi * rng.random(n)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.hstack([2 * circle, np.zeros((n, 10))]) + 0.4 * rng.normal(size=(n, 12))


def roll(n: int, rng: np.random.Generator) -> np.ndarray:
    angle = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.stack([angle * np.cos(angle), 15 * rng.random(n), angle * np.sin(angle)], axis=1)


DISTRIBUTIONS: dict[str, Draw] = {
    f.__name__: f
    for f in (
        ellipsoid,
        clusters,
        branches,
        cube,
        heavy_tails,
        ring,
        roll,
        noise,
        symmetric_clusters,
    )
}


def coverage(bars: Any, fresh: np.ndarray) -> list[float]:
    """Fraction of points in their regions, by level, on another map."""
    aligned = bars.aligned(fresh)
    return [round(float(np.mean(bars.contains(aligned, level))), 4) for level in LEVELS]


def run(name: str, setting: str, store: Store) -> None:
    """Measure one distribution with one kind of map and store the result."""
    draw, (n, options) = DISTRIBUTIONS[name], SETTINGS[setting]
    coverages: dict[str, list[list[float]]] = {"draws": [], "landmarks": []}
    for k in range(N_DATA_SETS):
        rng = np.random.default_rng([7, k, n])
        X = draw(n, rng)
        model = Mercat(random_state=100 + k, **options).fit(X)
        bars = uncertainty(model, X, random_state=k)
        for seed in range(1000, 1000 + N_OTHER_MAPS):
            other = Mercat(random_state=seed, **options).fit(draw(n, rng))
            coverages["draws"].append(coverage(bars, other.transform(X)))
            if setting == "landmarks":
                other = Mercat(random_state=seed, **options).fit(X * (1 + seed / 1e4))
                coverages["landmarks"].append(coverage(bars, other.embedding_))
    covered = {kind: fractions for kind, fractions in coverages.items() if fractions}
    store.put(f"{setting}/{name}", stamp(distribution=name, setting=setting, n=n, coverage=covered))
    means = {
        kind: np.mean(fractions, axis=0).round(3).tolist() for kind, fractions in covered.items()
    }
    print(setting, name, means, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(DISTRIBUTIONS), help="all by default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Store(RESULTS)
    for kind_of_map in SETTINGS:
        for distribution in arguments.names:
            if f"{kind_of_map}/{distribution}" not in results:
                run(distribution, kind_of_map, results)
