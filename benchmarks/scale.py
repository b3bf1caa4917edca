"""Time and memory by the number of points: one machine, other methods, a Dask cluster.

    python -m benchmarks.scale [SECTION ...] [--most N] [--folder DIR]

Sections are `cpu`, `detail`, `peers`, `million` (detail and UMAP), `dask` and `figure`; without one `cpu`,
`detail`, `peers` and `figure` are run. Results go to benchmarks/results/scale.json, the figure to
docs/images/scale.png. Every fit runs in a process of its own on 20 Gaussian clusters in 50 dimensions, in
single precision, generated in that process. `dask` writes its data (4 GB by default) to DIR and removes
them; with `--detail 0.3`, these are 100 clusters of 10 dimensions each, and noise. Other methods may need
other interpreters: see `benchmarks.harness.peers`. For GPUs, see `benchmarks.gpu`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gpu
from benchmarks.harness import memory, record
from benchmarks.harness.peers import run as run_peer

RESULTS = Path(__file__).parent / "results" / "scale.json"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "scale.png"
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
PEER_SIZES = (10_000, 30_000, 100_000)
PEERS = ("umap", "tsne", "pacmap")
DIMENSIONS, CLUSTERS = 50, 20
DETAIL = 0.3
# Rows per chunk: with detail 10 MB, so that workers of 1 GB also hold two copies of a million points.
MAX_ROWS, MAX_ROWS_WITH_DETAIL = 200_000, 50_000


def clusters(n: int, seed: int = 0) -> np.ndarray:
    """n points of 20 Gaussian clusters whose centres are about as far apart as they are wide."""
    centers = np.random.default_rng(0).standard_normal((CLUSTERS, DIMENSIONS), dtype=np.float32)
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    X += 3 * centers[rng.integers(CLUSTERS, size=n)]
    return X


def exponent(measured: Mapping[int, float] | Mapping[float, float]) -> float:
    """Exponent of a power law from keys to values: least-squares slope of their logarithms."""
    x, y = np.log(list(measured.items())).T
    return float(np.polyfit(x, y, 1)[0])


# ------------------------------------------------------------------ one machine


def fit_once(n: int, detail: float) -> dict[str, float]:
    """A fit in this process, after a small one."""
    from mercat import Mercat

    before = memory.resident()
    X = clusters(n)
    Mercat(random_state=0, max_iter=5, tol=0.5, detail=detail).fit(X[:2000])
    memory.forget_peak()
    start = time.perf_counter()
    model = Mercat(random_state=0, detail=detail).fit(X)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "GiB of peak beyond the input": (memory.peak() - before - X.nbytes) / 2**30,
        "correlation": model.correlation_,
    }


def cpu(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fits of Mercat on the CPU, of 10,000 points and more."""
    return _fits([n for n in SIZES if n <= arguments.most], 0.0)


def detail(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same with detail, for the sizes of the peers and a million points."""
    return _fits([n for n in (*PEER_SIZES, 1_000_000) if n <= arguments.most], DETAIL)


def fit_in_new_process(n: int, detail: float = 0.0) -> dict[str, float]:
    """Run `fit_once` in its own process."""
    command = [sys.executable, "-m", "benchmarks.scale", "--fit-once", str(n)]
    command += ["--detail", str(detail)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    results: dict[str, float] = json.loads(output)
    print(n, json.dumps(results), flush=True)
    return results


def _fits(sizes: list[int], detail: float) -> dict[str, Any]:
    results: dict[str, Any] = {str(n): fit_in_new_process(n, detail) for n in sizes}
    results["exponent of the time"] = exponent({n: results[str(n)]["seconds"] for n in sizes})
    return results


def peers(_: argparse.Namespace) -> dict[str, Any]:
    """Warm times of peers on the same data, up to sizes that take a reasonable time."""
    results: dict[str, Any] = {}
    for method in PEERS:
        seconds = {}
        for n in PEER_SIZES:
            seconds_of_fit = _seconds_of_peer(method, n)
            if seconds_of_fit is None:
                break
            seconds[n] = seconds_of_fit
        results[method] = {str(n): s for n, s in seconds.items()}
        if len(seconds) > 1:
            results[method]["exponent of the time"] = exponent(seconds)
    return results


def _seconds_of_peer(method: str, n: int) -> float | None:
    """Warm time of a peer on n points; if it cannot run, print the reason and return None."""
    Y, outcome = run_peer(method, clusters(n), seed=None, warm=True)
    if Y is None:
        print(f"{method}: {outcome['status']}: {outcome['reason']}", flush=True)
        return None
    seconds: float = outcome["seconds"]["fit"]
    print(method, n, seconds, flush=True)
    return seconds


def recall_of_search(X: np.ndarray, n_rows: int = 200) -> float:
    """Fraction of the true nearest neighbours of some points that Mercat's search finds."""
    from benchmarks import neighbors

    rows = np.sort(np.random.default_rng(0).choice(len(X), n_rows, replace=False))
    return neighbors.recall(neighbors.mercat(X), rows, neighbors.true_neighbors(X, rows))


def million(_: argparse.Namespace) -> dict[str, Any]:
    """A million points with detail, and UMAP on the same, one after the other."""
    n = 1_000_000
    fitted = fit_in_new_process(n, DETAIL)
    results = {"mercat": fitted["seconds"], "recall of neighbours": recall_of_search(clusters(n))}
    umap = _seconds_of_peer("umap", n)
    if umap is None:
        return results
    results |= {"umap": umap, "times of UMAP": results["mercat"] / umap}
    print(json.dumps(results), flush=True)
    return results


# ------------------------------------------------------------------ a cluster, data on disk


def low_clusters(n: int, seed: int = 0) -> np.ndarray:
    """n points of 100 clusters of 10 dimensions each, and noise."""
    number, own = 100, 10
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((number, DIMENSIONS), dtype=np.float32)
    axes = rng.standard_normal((number, own, DIMENSIONS), dtype=np.float32) / np.float32(own**0.5)
    rng = np.random.default_rng([seed, n])
    label = rng.integers(number, size=n)
    X = np.float32(0.1) * rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    X += centers[label]
    for k in range(number):
        (rows,) = np.nonzero(label == k)
        X[rows] += rng.standard_normal((len(rows), own), dtype=np.float32) @ axes[k]
    return X


def write_data(path: Path, n: int, rows: int, detail: float) -> None:
    """Data as a .npy file, written in blocks."""
    make = low_clusters if detail else clusters
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, DIMENSIONS))
    for start in range(0, n, rows):
        X[start : start + rows] = make(min(rows, n - start), seed=start)
    X.flush()


def read_block(path: str, block_info: Any = None) -> np.ndarray:
    """One chunk of the file. (Dask would copy the whole memory map into the graph.)"""
    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


class Peaks:
    """Peak memory of all worker processes, including those that have ended, in bytes."""

    def __init__(self, client: Any) -> None:
        self._client, self._by_process = client, dict[int, int]()

    def update(self) -> None:
        self._by_process |= dict(self._client.run(_process_and_peak).values())

    @property
    def gib(self) -> list[float]:
        return sorted(peak / 2**30 for peak in self._by_process.values())


def _process_and_peak() -> tuple[int, int]:
    return os.getpid(), memory.peak()


def place_and_kill(Y: Any, out: np.ndarray, client: Any, peaks: Peaks) -> bool:
    """Compute a lazy map chunk by chunk, kill a worker after a quarter, and return whether one was killed."""
    from dask.distributed import as_completed

    parts = list(Y.to_delayed().ravel())
    ends = np.cumsum(Y.chunks[0])
    futures = client.compute(parts)
    number = {future.key: k for k, future in enumerate(futures)}
    killed = False
    start = time.perf_counter()
    for done, future in enumerate(as_completed(futures), 1):
        k = number[future.key]
        out[ends[k] - Y.chunks[0][k] : ends[k]] = future.result()
        future.release()
        peaks.update()
        if not killed and done >= len(parts) / 4:
            worker, process = next(iter(client.run(os.getpid).items()))
            os.kill(process, signal.SIGKILL)
            killed = True
            print(f"killed worker {worker}", flush=True)
        seconds = time.perf_counter() - start
        print(f"{done} of {len(parts)} chunks after {seconds:.0f} s", flush=True)
    return killed


def measures_of_sample(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    """Measures on a sample of the rows of X and Y."""
    from mercat import metrics

    return {
        "angles": float(metrics.angle_preservation(X, Y, n_points=1000)),
        "distances": float(metrics.distance_preservation(X, Y)),
        "neighbourhoods": float(metrics.neighborhood_preservation(X, Y, n_points=300)),
    }


def dask(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit data on disk of four times the memory limit per process; one worker is killed on the way."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    from mercat import Mercat

    n = arguments.rows
    rows = min(MAX_ROWS_WITH_DETAIL if arguments.detail else MAX_ROWS, n // 10)
    detail = {"detail": arguments.detail, "n_detail": arguments.n_detail}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "X.npy"
        write_data(path, n, rows, arguments.detail)
        row_chunks = tuple(min(rows, n - start) for start in range(0, n, rows))
        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                memory_limit="1GB",  # per worker; Dask kills a worker that exceeds it
                dashboard_address=":0",
            ) as cluster,
            Client(cluster) as client,
        ):
            X = da.map_blocks(
                read_block, str(path), chunks=(row_chunks, (DIMENSIONS,)), dtype=np.float32
            )
            peaks = Peaks(client)
            memory.forget_peak()  # pages of the file just written
            start = time.perf_counter()
            model = Mercat(random_state=0, **detail).fit(X)
            fitted = time.perf_counter() - start
            of_fit = memory.peak()
            peaks.update()
            print(f"fitted in {fitted:.0f} s, {of_fit / 2**30:.2f} GiB", flush=True)
            Y = np.lib.format.open_memmap(
                Path(folder) / "Y.npy", mode="w+", dtype=np.float32, shape=(n, 3)
            )
            Y[:] = np.nan
            killed = place_and_kill(model.embedding_, Y, client, peaks)
            seconds = time.perf_counter() - start
            of_client = memory.peak()  # before the file is read, since its pages would count
        lengths = np.linalg.norm(Y.astype(np.float64), axis=1)
        assert np.abs(lengths - 1).max() < 1e-6  # also False for NaN
        every = np.arange(0, n, max(1, n // 2000))
        in_file = np.load(path, mmap_mode="r")
        same = np.abs(model.transform(in_file[every]) - Y[every]).max()
        sample = np.arange(0, n, max(1, n // 100_000))
        found = {
            "points": n,
            **(detail if arguments.detail else {}),
            "GB on disk": n * DIMENSIONS * 4 / 1e9,
            "seconds of fit": fitted,
            "seconds in all": seconds,
            "a worker was killed": killed,
            "GiB of peak of a worker": max(peaks.gib),
            "GiB of peak of each worker": peaks.gib,
            "GiB of peak of the client": of_client / 2**30,
            "largest difference from placing in memory": float(same),
            "tasks a chunk": len(dict(model.embedding_.__dask_graph__())) / len(row_chunks),
            "measures": measures_of_sample(in_file[sample], np.array(Y[sample])),
        }
    print(json.dumps(found), flush=True)
    return found


# ------------------------------------------------------------------ figure


def figure(_: argparse.Namespace) -> dict[str, Any]:
    """Draw the results."""
    import matplotlib.pyplot as plt

    from benchmarks.harness.methods import title

    records = record.Store(RESULTS).records
    fig, ax = plt.subplots(figsize=(7.6, 4.2), layout="constrained")

    def draw(results: dict[str, Any], label: str, **style: Any) -> None:
        points = {
            int(n.split()[0]): r["seconds"] if isinstance(r, dict) else r
            for n, r in results.items()
            if n.split()[0].isdigit()
        }
        if points:
            ax.plot(*zip(*sorted(points.items()), strict=True), marker="o", label=label, **style)

    if "cpu" in records:
        cores = records["cpu"]["machine"]["cores"]
        draw(records["cpu"]["results"], f"Mercat, {cores} cores", color="C0", linewidth=2)
    if "detail" in records:
        draw(records["detail"]["results"], f"the same, detail={DETAIL}", color="C0", linestyle="--")
    if gpu.RESULTS.is_file():
        gpu_records = json.loads(gpu.RESULTS.read_text())["fits"]
        fits = {tuple(key.split(", ")): fit for key, fit in gpu_records["results"].items()}
        plain = {
            n: r for (kind, n, detail), r in fits.items() if (kind, detail) == ("iso", "detail 0")
        }
        draw(plain, f"Mercat, {gpu_records['gpu']}", color="C2", linewidth=2)
    million_results = records.get("million", {}).get("results", {})
    for k, (method, results) in enumerate(records.get("peers", {}).get("results", {}).items()):
        if method in million_results:
            results = results | {"1000000": million_results[method]}
        draw(results, title(method), linewidth=1, color=f"C{4 + k}")
    ax.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds")
    ax.grid(alpha=0.3)
    fig.legend(loc="outside right upper", frameon=False)
    fig.savefig(FIGURE, dpi=150)
    return {"figure": FIGURE.name}


SECTIONS = {
    "cpu": cpu,
    "detail": detail,
    "peers": peers,
    "million": million,
    "dask": dask,
    "figure": figure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument(
        "--most", type=int, default=1_000_000, help="maximum number of points on the CPU"
    )
    parser.add_argument(
        "--rows", type=int, default=20_000_000, help="number of points of the Dask run"
    )
    parser.add_argument("--folder", help="folder for temporary data of the Dask run")
    parser.add_argument("--fit-once", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--detail", type=float, default=0.0, help="detail of the Dask run")
    parser.add_argument("--n-detail", type=int, help="n_detail of the Dask run")
    arguments = parser.parse_args()
    if arguments.fit_once:
        print(json.dumps(fit_once(arguments.fit_once, arguments.detail)))
        return
    for name in arguments.sections or ("cpu", "detail", "peers", "figure"):
        results = SECTIONS[name](arguments)
        store = record.Store(RESULTS)
        if name == "dask" and arguments.detail:
            name, before = "dask with detail", store.records.get("dask with detail", {})
            results = before.get("results", {}) | {str(arguments.rows): results}
        if name != "figure":
            store.put(name, record.stamp(results=results))


if __name__ == "__main__":
    main()
