"""Stability: how far points move on maps with other seeds, and of 95 % of the points, for several methods.

    python -m benchmarks.stability --data DIR [set ...]

Each method embeds a data set ten times with other seeds, and ten times with other seeds and 95 % of the
points. Maps are aligned onto the first by rotation or reflection and size, those in the plane also by
translation. (The size of a map on the sphere is the root mean square arc from its centre. Flat data fill
more or less of the sphere at nearly the same loss.) Displacement is the median distance of the points that
two maps share, over the map's spread (the root mean square distance of its points to their mean): 1.41 for
two maps that have nothing in common. MERCAT_PEERS_PYTHON names the interpreter that has the other methods.
Results go to benchmarks/results/stability.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.peers import Session
from benchmarks.harness.record import Store, each_set, stamp
from mercat._math.orientation import orthogonal_onto
from mercat._solve.initial import resized, size_of

RESULTS = Path(__file__).parent / "results" / "stability.json"
SETS = ("blood", "pancreas", "mnist_even")
METHODS = {
    "mercat": ("mercat", {}),
    "mercat-0.3": ("mercat", {"detail": 0.3}),
    "umap": ("umap", {}),
    "tsne": ("tsne", {}),
    "pacmap": ("pacmap", {}),
}
MAX_ROWS = 2000  # maximum number of rows per data set
COMPONENTS = 50  # number of principal components for peers, as Mercat's default
MAPS = 10
LEFT_OUT = 0.05


def displacement(Y: np.ndarray, first: np.ndarray) -> float:
    """Median distance between points of two aligned maps, divided by the spread of the second."""
    if Y.shape[1] == 2:
        Y, first = Y - Y.mean(axis=0), first - first.mean(axis=0)
    else:
        Y = resized(Y, size_of(first))
    aligned = Y @ orthogonal_onto(Y, first).T
    if Y.shape[1] == 2:
        aligned *= np.sum(aligned * first) / np.sum(aligned * aligned)
    spread = np.sqrt(np.mean(np.sum((first - first.mean(axis=0)) ** 2, axis=1)))
    return float(np.median(np.linalg.norm(aligned - first, axis=1)) / spread)


def draws(n: int, kind: str) -> Iterator[tuple[int, np.ndarray]]:
    """Seed and rows of each map."""
    for seed in range(MAPS):
        rows = np.random.default_rng(seed).permutation(n)
        yield seed, np.sort(rows[round(LEFT_OUT * n) :]) if kind == "subsamples" else np.arange(n)


def run(name: str, folder: str, store: Store) -> None:
    """Measure one data set by all methods and store the results."""
    X = data.load(name, folder).X
    X = X[np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]]
    for title, (method, options) in METHODS.items():
        if f"{name}/{title}" in store:
            continue
        displacements = {}
        with Session(method) as session:
            for kind in ("seeds", "subsamples"):
                maps = []
                for seed, rows in draws(len(X), kind):
                    # Mercat reduces the data itself.
                    k = None if method == "mercat" else COMPONENTS
                    Y, outcome = session.run(X[rows], seed=seed, options=options, n_components=k)
                    if Y is None:
                        print(name, title, outcome["reason"], flush=True)
                        break
                    positions = np.full((len(X), Y.shape[1]), np.nan)
                    positions[rows] = Y
                    maps.append(positions)
                else:
                    displacements[kind] = displacements_from_first(maps)
        if displacements:
            versions = outcome["versions"]
            store.put(
                f"{name}/{title}",
                stamp(
                    set=name, method=title, n=len(X), versions=versions, displacement=displacements
                ),
            )
            print(name, title, displacements, flush=True)


def displacements_from_first(maps: list[np.ndarray]) -> list[float]:
    """Displacements between the first map and each of the others."""
    displacements = []
    for other in maps[1:]:
        shared = np.isfinite(other[:, 0]) & np.isfinite(maps[0][:, 0])
        displacements.append(round(displacement(other[shared], maps[0][shared]), 4))
    return displacements


if __name__ == "__main__":
    each_set(__doc__, SETS, RESULTS, run)
