"""Time and recall of nearest-neighbour searches, including Mercat's.

    python -m benchmarks.neighbors [--data DIR] [--sizes N ...]

Compares with pynndescent, hnswlib, usearch and faiss-cpu, if installed. Each finds the 30 nearest neighbours
of every point on all cores. The searches alternate; the median time counts. Recall is measured on 1000
points by brute force. Results go to benchmarks/results/neighbors.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from benchmarks.harness import data, methods
from benchmarks.harness.record import Store, stamp
from benchmarks.scale import clusters

RESULTS = Path(__file__).parent / "results" / "neighbors.json"
K = 30
N_RECALL = 1000  # number of points for recall
MAX_EXHAUSTIVE = 60_000  # maximum number of points for exhaustive searches
N_WARM_UP = 5000  # number of points of a first call, which compiles code
TURNS = 3


def mercat(X: np.ndarray) -> np.ndarray:
    from mercat._data.threads import Workers, n_threads
    from mercat._detail.neighbors import nearest

    with Workers(n_threads(-1)) as workers:
        return nearest(X, K, np.random.default_rng(0), workers).indices


def scikit_learn(X: np.ndarray) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=-1).fit(X)
    return np.asarray(search.kneighbors(return_distance=False))


def pynndescent(X: np.ndarray) -> np.ndarray:
    from pynndescent import NNDescent

    return np.asarray(NNDescent(X, n_neighbors=K + 1, random_state=0).neighbor_graph[0])


def hnswlib(X: np.ndarray) -> np.ndarray:
    import hnswlib

    index = hnswlib.Index(space="l2", dim=X.shape[1])
    index.init_index(max_elements=len(X), M=16, ef_construction=100)
    index.add_items(X)
    index.set_ef(2 * K)
    return np.asarray(index.knn_query(X, k=K + 1)[0])


def usearch(X: np.ndarray) -> np.ndarray:
    from usearch.index import Index

    index = Index(
        ndim=X.shape[1], metric="l2sq", connectivity=16, expansion_add=100, expansion_search=2 * K
    )
    index.add(np.arange(len(X)), X)
    return np.asarray(index.search(X, K + 1).keys)


def faiss_cells(X: np.ndarray) -> np.ndarray:
    import faiss

    n_cells = max(1, len(X) // 500)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_cells)
    index.cp.niter, index.nprobe = 4, 20
    index.cp.max_points_per_centroid = 39  # the smallest value without a warning
    index.train(X)
    index.add(X)
    return np.asarray(index.search(X, K + 1)[1])


def faiss_exact(X: np.ndarray) -> np.ndarray:
    import faiss

    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return np.asarray(index.search(X, K + 1)[1])


# For each name: the search, its package, whether it is exhaustive.
SEARCHES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, bool]] = {
    "Mercat": (mercat, "mercat", False),
    "scikit-learn, exact": (scikit_learn, "scikit-learn", True),
    "faiss, exact": (faiss_exact, "faiss-cpu", True),
    "faiss, cells": (faiss_cells, "faiss-cpu", False),
    "pynndescent": (pynndescent, "pynndescent", False),
    "hnswlib": (hnswlib, "hnswlib", False),
    "usearch": (usearch, "usearch", False),
}


def true_neighbors(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Indices of the exact nearest points of some rows, computed in double precision."""
    indices, X = [], X.astype(np.float64)
    for row in rows:
        squares = np.sum((X - X[row]) ** 2, axis=1)
        squares[row] = np.inf
        indices.append(np.argpartition(squares, K)[:K])
    return np.array(indices)


def recall(indices: np.ndarray, rows: np.ndarray, true_indices: np.ndarray) -> float:
    """Fraction of the true neighbours found, excluding the point itself."""
    n_found = [
        len(set(true_indices[i]) & set([j for j in indices[row] if j != row][:K]))
        for i, row in enumerate(rows)
    ]
    return float(np.mean(n_found) / K)


def compare(X: np.ndarray) -> dict[str, dict[str, object]]:
    """Seconds, recall and version of each search."""
    rows = np.sort(np.random.default_rng(0).choice(len(X), min(N_RECALL, len(X)), replace=False))
    true_indices = true_neighbors(X, rows)
    results: dict[str, dict[str, object]] = {}
    turns: dict[str, list[float]] = {}
    for name, (search, package, is_exhaustive) in SEARCHES.items():
        if is_exhaustive and len(X) > MAX_EXHAUSTIVE:
            continue
        try:
            results[name] = {"version": version(package)}
            start = time.perf_counter()
            search(X[:N_WARM_UP])
            results[name]["first call"] = time.perf_counter() - start
            turns[name] = []
        except (ImportError, PackageNotFoundError) as error:
            results[name] = {"status": "not installed", "reason": str(error)}
    for turn in range(TURNS):
        for name, seconds in turns.items():
            start = time.perf_counter()
            indices = SEARCHES[name][0](X)
            seconds.append(time.perf_counter() - start)
            if turn == 0:
                results[name]["recall"] = recall(indices, rows, true_indices)
            print(f"{len(X):,}: {name} {seconds[-1]:.2f} s", file=sys.stderr, flush=True)
    for name, seconds in turns.items():
        results[name] |= {"turns": seconds, "seconds": statistics.median(seconds)}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of MNIST (default: without MNIST)")
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000])
    arguments = parser.parse_args()
    store = Store(RESULTS)
    sets = {f"clusters, {n:,}": clusters(n) for n in arguments.sizes}
    if arguments.data:
        X = methods.principal_components(data.load("mnist_even", arguments.data).X, 50)
        sets["MNIST even"] = np.ascontiguousarray(X, dtype=np.float32)
    for name, X in sets.items():
        store.put(name, stamp(n=len(X), d=X.shape[1], k=K, searches=compare(X)))
        for search, outcome in store[name]["searches"].items():
            if "seconds" in outcome:
                print(
                    f"{name}: {search:20} {outcome['seconds']:7.2f} s  recall {outcome['recall']:.3f}"
                )
            else:
                print(f"{name}: {search:20} {outcome['status']}: {outcome['reason']}")


if __name__ == "__main__":
    main()
