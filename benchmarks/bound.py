"""Time of a plain fit relative to that of its matrix products.

    python -m benchmarks.bound [--points 300000] [--columns 50] [--repeats 3] [--n-jobs -1]

The matrix products of a fit are computed alone, in blocks of the same shapes and on the same threads: the
Gram matrix of the data (X^T X), the projection, the sums and gradients of the solver as often as the fit
evaluates them, and the distances, linear parts and screening of placed points. Their time is a lower bound on
the time of any program that computes them. Results go to benchmarks/results/bound.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import record
from mercat import Mercat, _kernels
from mercat._data.arrays import TILE, blocks
from mercat._data.source import rows_to_sum
from mercat._data.threads import Workers, n_threads
from mercat._solve import placement
from mercat._solve.landmarks import N_SCREEN
from mercat._solve.losses import AngleLoss

RESULTS = Path(__file__).parent / "results" / "bound.json"


def data(n: int, d: int) -> np.ndarray:
    """n points of 20 Gaussian clusters in d dimensions, in single precision."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((20, d), dtype=np.float32)
    return rng.standard_normal((n, d), dtype=np.float32) + centers[rng.integers(20, size=n)]


class Evaluations:
    """Counts the evaluations of the solver by number of points, number of columns and precision."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int, str]] = Counter()
        self._evaluate = AngleLoss.evaluate

    def __enter__(self) -> Counter[tuple[int, int, str]]:
        def evaluate(loss: AngleLoss, *arguments: Any) -> Any:
            self.counts[(*loss.X.shape, str(loss.X.dtype))] += 1
            return self._evaluate(loss, *arguments)

        AngleLoss.evaluate = evaluate  # type: ignore[method-assign]
        return self.counts

    def __exit__(self, *exception: object) -> None:
        AngleLoss.evaluate = self._evaluate  # type: ignore[method-assign]


def products(
    X: np.ndarray, r: int, n_landmarks: int, counts: Counter[tuple[int, int, str]]
) -> list[Callable[[], Any]]:
    """Return each matrix product of the fit as a function without arguments."""
    n, d = X.shape
    rng = np.random.default_rng(0)

    def random_array(*shape: int, dtype: str = "float32") -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    tasks: list[Callable[[], Any]] = []
    for rows in blocks(n, rows_to_sum(d, False)):
        tasks.append(lambda rows=rows: X[rows].T @ X[rows])
    components, landmarks = random_array(d, r), random_array(n_landmarks, r)
    P = random_array(2, r, n_landmarks)
    n_screened = min(n_landmarks, N_SCREEN)
    C = random_array(n_screened, placement._N_GRID + placement._N_AT_LANDMARKS)
    linear_parts = random_array(TILE, n_screened)

    def place(rows: slice) -> None:
        X_hat = X[rows] @ components
        X_hat @ landmarks.T
        X_hat @ P
        for _ in range(2):  # the two axes of the tangent planes
            linear_parts[: len(X_hat)] @ C

    tasks += [lambda rows=rows: place(rows) for rows in blocks(n, TILE)]
    for (m, width, dtype), count in counts.items():
        weights, legs = random_array(2 * m, m, dtype=dtype), random_array(m, width + 1, dtype=dtype)
        sums = random_array(2 * m, width + 1, dtype=dtype)
        size = max(16, min(256, (1 << 17) // m))
        for rows in blocks(2 * m, 2 * size) * count:
            tasks.append(lambda rows=rows, w=weights, x=legs: w[rows] @ x)
            tasks.append(lambda rows=rows, s=sums, x=legs: s[rows] @ x.T)
    return tasks


def median_seconds(repeats: int, function: Callable[[], Any]) -> float:
    """Median time of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=300_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=-1)
    arguments = parser.parse_args()
    X = data(arguments.points, arguments.columns)
    model = Mercat(random_state=0, n_jobs=arguments.n_jobs)
    with Evaluations() as counts:
        model.fit(X)
    fit = median_seconds(arguments.repeats, lambda: model.fit(X))
    n_landmarks, r = model._placer.against.X.shape
    tasks = products(X, r, n_landmarks, counts)
    with Workers(n_threads(arguments.n_jobs)) as workers:
        products_alone = median_seconds(
            arguments.repeats, lambda: list(workers.map(lambda f: f() is None, tasks))
        )
    results = {
        "points": arguments.points,
        "columns": arguments.columns,
        "threads": n_threads(arguments.n_jobs),
        "kernels": _kernels.describe(),
        "seconds": fit,
        "seconds of the products alone": products_alone,
        "time of the fit / time of the products": fit / products_alone,
    }
    print(json.dumps(results), flush=True)
    key = f"{arguments.points} x {arguments.columns}, {results['threads']} threads"
    record.Store(RESULTS).put(key, record.stamp(results=results))


if __name__ == "__main__":
    main()
