"""Coverage of the regions of mercat.uncertainty.

    python -m benchmarks.calibration [distribution ...]

Data are drawn from known distributions and mapped, and 50 % and 90 % regions are computed. Other maps are
then fitted to new draws ("draws"), with their own components, landmarks and seed; the first data are placed
on them by `transform`. Further maps are fitted to the same data with other landmarks ("landmarks"): landmarks
depend on the values of the rows, so the data are scaled, which has no other effect. These maps are rotated
and scaled onto the first, and the fraction of points in their regions is computed. Points of a map move
together, and all other maps are compared with the same first one, so this fraction varies between maps and
even more between data sets; the level refers to its mean over data sets. The regions were designed on other
draws of these distributions. Results go to benchmarks/results/calibration.json.
"""

from __future__ import annotations

import argparse
import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.record import Store, stamp
from mercat import Mercat, uncertainty
from mercat._uncertainty.record import median_spread

RESULTS = Path(__file__).parent / "results" / "calibration.json"
LEVELS = (0.5, 0.9)
N_OTHER_MAPS = 4  # number of other maps per data set
# By kind of map: number of points, parameters, and number of data sets per distribution.
SETTINGS: dict[str, tuple[int, dict[str, Any], int]] = {
    "exact": (400, {}, 8),
    "landmarks": (3000, {"n_landmarks": 300}, 4),
    "detail": (1200, {"n_landmarks": 300, "detail": 0.3}, 2),
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


def clusters_beside_a_line(n: int, rng: np.random.Generator) -> np.ndarray:
    """Five clusters on a line, and three beside it that need more directions than a map has."""
    centers = np.zeros((8, 8))
    centers[:5, 0] = [0, 4, 8, 12, 16]
    centers[5:, 0] = 8
    centers[5:, 1:4] = 8 * np.eye(3)
    return centers[rng.integers(8, size=n)] + rng.normal(size=(n, 8))


def ball(n: int, rng: np.random.Generator, dimension: int) -> np.ndarray:
    X = rng.normal(size=(n, dimension))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * rng.random((n, 1)) ** (1 / dimension)


def noise(n: int, rng: np.random.Generator, dimension: int) -> np.ndarray:
    return rng.normal(size=(n, dimension))


DISTRIBUTIONS: dict[str, Draw] = {
    f.__name__: f
    for f in (
        ellipsoid,
        clusters,
        branches,
        heavy_tails,
        ring,
        roll,
        clusters_beside_a_line,
        symmetric_clusters,
        cube,
    )
}
DISTRIBUTIONS |= {f"noise_{d}": functools.partial(noise, dimension=d) for d in (3, 4, 5, 10)}
DISTRIBUTIONS |= {f"ball_{d}": functools.partial(ball, dimension=d) for d in (3, 4, 5)}


def coverage(bars: Any, fresh: np.ndarray) -> list[float]:
    """Fraction of points in their regions, by level, on another map."""
    aligned = bars.aligned(fresh)
    return [round(float(np.mean(bars.contains(aligned, level))), 4) for level in LEVELS]


def run(name: str, setting: str, store: Store) -> None:
    """Measure one distribution with one kind of map and store the result."""
    draw, (n, options, n_data_sets) = DISTRIBUTIONS[name], SETTINGS[setting]
    kinds = ("draws", "landmarks") if setting == "landmarks" else ("draws",)
    covered: dict[str, list[list[list[float]]]] = {kind: [] for kind in kinds}
    about: dict[str, list[float]] = {"spread": [], "stability": [], "stability_by_chance": []}
    for k in range(n_data_sets):
        rng = np.random.default_rng([7, k, n, *name.encode()])
        X = draw(n, rng)
        model = Mercat(random_state=100 + k, **options).fit(X)
        bars = uncertainty(model, X, random_state=k)
        for kind in kinds:
            covered[kind].append([])
        for seed in range(1000, 1000 + N_OTHER_MAPS):
            other = Mercat(random_state=seed, **options).fit(draw(n, rng))
            covered["draws"][k].append(coverage(bars, other.transform(X)))
            if "landmarks" in kinds:
                other = Mercat(random_state=seed, **options).fit(X * (1 + seed / 1e4))
                covered["landmarks"][k].append(coverage(bars, other.embedding_))
        about["spread"].append(round(median_spread(bars).map_sizes or 0.0, 4))
        about["stability"].append(round(bars.stability, 3))
        about["stability_by_chance"].append(round(bars.stability_by_chance, 3))
    store.put(
        f"{setting}/{name}",
        stamp(distribution=name, setting=setting, n=n, coverage=covered, **about),
    )
    print(setting, name, *(f"{np.mean(covered[kind], axis=(0, 1))}" for kind in kinds), flush=True)


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
