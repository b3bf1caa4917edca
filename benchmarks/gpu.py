"""Fits on one GPU: times, memory, recall of the neighbours, measures; compared with the CPU and TorchDR.

    python -m benchmarks.gpu [SECTION ...] [--sizes N ...] [--out FILE]

Sections: `first` (the first call of a process, with empty caches, with those on disk, and without Triton),
`fits` (warm fits, plain and with detail), `host` (rows streamed from host memory), `cpu` (measures on the
CPU and on the GPU) and `torchdr` (methods of TorchDR, if it is installed). Results go to
benchmarks/results/gpu.json. Data are generated on the GPU, in 50 dimensions and single precision: "iso", 20
Gaussian clusters, is the hardest case for the neighbour search; "low" has 100 clusters of 10 dimensions
each, and noise.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import record

RESULTS = Path(__file__).parent / "results" / "gpu.json"
DIMENSIONS, DETAIL = 50, 0.3
N_RECALL = 1000  # points on which recall is measured
PEERS = ("UMAP", "LargeVis", "InfoTSNE", "PACMAP")
SIZES, PEER_SIZES = (1_000_000, 10_000_000), (100_000, 1_000_000)
CPU_SIZE, HOST_SIZE = 100_000, 100_000_000


def clusters(n: int, kind: str, seed: int = 0) -> Any:
    """n points on the GPU."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(seed)

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, device="cuda")

    n_clusters = 20 if kind == "iso" else 100
    centers = 3 * normal(n_clusters, DIMENSIONS)
    label = torch.randint(n_clusters, (n,), generator=generator, device="cuda")
    X = centers[label]
    if kind == "iso":
        return X.add_(normal(n, DIMENSIONS))
    X.add_(0.1 * normal(n, DIMENSIONS))
    for k in range(n_clusters):
        rows = torch.nonzero(label == k)[:, 0]
        X[rows] += normal(len(rows), 10) @ normal(10, DIMENSIONS) / 10**0.5
    return X


def synchronized_time() -> float:
    """Synchronize with the GPU and return the time."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def measures(X: Any, Y: Any) -> dict[str, float]:
    """Angle, distance and neighbourhood preservation; X and Y are tensors or arrays of all points."""
    from mercat import metrics

    return {
        "angle": float(metrics.angle_preservation(X, Y, n_points=1000)),
        "distance": float(metrics.distance_preservation(X, Y)),
        "neighborhood": float(metrics.neighborhood_preservation(X, Y, n_points=300)),
    }


def recall(X: Any, k: int = 30) -> tuple[float, float]:
    """Recall of the neighbour search of `detail`, and its time in seconds."""
    import torch

    from mercat._detail import tiles

    start = synchronized_time()
    indices = tiles.nearest(X, k, np.random.default_rng(0)).indices
    seconds = synchronized_time() - start
    generator = torch.Generator(device=X.device).manual_seed(0)
    rows = torch.randint(len(X), (N_RECALL,), generator=generator, device=X.device)
    true_indices = tiles.nearest_to(X, X[rows], k + 1)[0][:, 1:]
    is_found = (indices[rows][:, :, None] == true_indices[:, None, :]).any(1)
    return float(is_found.float().mean()), seconds


def fit_once(kind: str, n: int, detail: float) -> dict[str, Any]:
    """Time and peak memory of a warm fit, recall and measures."""
    import torch

    from mercat import Mercat

    X = clusters(n, kind)
    seconds = []
    Mercat(random_state=0, detail=detail).fit(X[:1_000_000])
    for _ in range(2 if n <= 1_000_000 else 1):
        torch.cuda.reset_peak_memory_stats()
        start = synchronized_time()
        model = Mercat(random_state=0, detail=detail).fit(X)
        seconds.append(synchronized_time() - start)
    results = {"seconds": min(seconds), "GiB": torch.cuda.max_memory_allocated() / 2**30}
    if detail:
        results["recall"], results["seconds of the search"] = recall(X)
    return results | measures(X[:1_000_000], model.embedding_[:1_000_000])


def first_call(detail: float) -> dict[str, float]:
    """Times of the first fit of a process and of a second one with other rows and landmarks."""
    from mercat import Mercat

    X = clusters(1_000_000, "iso")
    start = synchronized_time()
    Mercat(random_state=0, detail=detail).fit(X)
    middle = synchronized_time()
    Mercat(random_state=0, detail=detail, n_landmarks=300).fit(X[:900_001])
    return {"first": middle - start, "other rows and landmarks": synchronized_time() - middle}


def compare_with_cpu(kind: str, n: int, detail: float) -> dict[str, Any]:
    """Compare fits of the same data on the GPU and on the CPU."""
    from mercat import Mercat

    X = clusters(n, kind)
    results = {}
    for device, data in {"gpu": X, "cpu": X.cpu().numpy()}.items():
        start = synchronized_time()
        Y = Mercat(random_state=0, detail=detail).fit_transform(data)
        results[device] = {"seconds": synchronized_time() - start} | measures(X, Y)
    return results


def from_host(n: int) -> dict[str, float]:
    """A plain fit of rows in host memory, which are read twice: a block of n // 100 rows, repeated."""
    from mercat import Mercat

    X = np.empty((n, DIMENSIONS), dtype=np.float32)
    block = clusters(n // 100, "low").cpu().numpy()
    for start in range(0, n, len(block)):
        X[start : start + len(block)] = block
    Mercat(random_state=0, device="cuda").fit(X[:1_000_000])
    start = synchronized_time()
    model = Mercat(random_state=0, device="cuda").fit(X)
    seconds = synchronized_time() - start
    return {
        "points": n,
        "seconds": seconds,
        "GB": X.nbytes / 1e9,
        "correlation": model.correlation_,
    }


def torchdr_once(name: str, n: int) -> dict[str, Any]:
    """A method of TorchDR with its defaults, after a fit of fewer points."""
    import torchdr

    X = clusters(n, "iso")
    searches: list[float] = []
    if not torchdr.utils.faiss:
        torchdr.distance.base.pairwise_distances_faiss = functools.partial(_exact_search, searches)
    for rows in (X[:10_000], X):
        searches.clear()
        start = synchronized_time()
        Y = getattr(torchdr, name)(n_components=2).fit_transform(rows)
        seconds = synchronized_time() - start
    results = {"seconds": seconds, "seconds of the exact search": sum(searches)}
    return results | measures(X, Y.double())


def _exact_search(
    seconds: list[float], X: Any, k: int, metric: str, exclude_diag: bool, **_: Any
) -> tuple[Any, Any]:
    """Exact nearest rows of X, for TorchDR without faiss on the GPU; the time is added to `seconds`."""
    import torch

    assert exclude_diag
    start, distances, indices = synchronized_time(), [], []
    squares = (X * X).sum(1)
    for first in range(0, len(X), 4096):
        rows = torch.arange(first, min(first + 4096, len(X)), device=X.device)
        squared = torch.addmm(squares, X[rows], X.T, alpha=-2)
        squared[rows - first, rows] = torch.inf
        nearest, index = squared.topk(int(k), dim=1, largest=False)
        nearest = (nearest + squares[rows, None]).clip(0)
        distances.append(nearest if metric == "sqeuclidean" else nearest.sqrt())
        indices.append(index)
    seconds.append(synchronized_time() - start)
    return torch.cat(distances), torch.cat(indices)


JOBS = {
    "fit": fit_once,
    "first": first_call,
    "host": from_host,
    "cpu": compare_with_cpu,
    "torchdr": torchdr_once,
}


def run_in_new_process(job: str, *arguments: Any, **environment: str) -> dict[str, Any]:
    """Run a job in its own process."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--job", json.dumps([job, *arguments])]
    process = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if process.returncode:
        return {"failed": process.stderr.strip().splitlines()[-1][-300:]}
    results: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    print(job, *arguments, results, flush=True)
    return results


def round_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: round_floats(v) for key, v in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def run(section: str, sizes: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Yield the results of a section by name."""
    if section == "first":
        for detail in (0.0, DETAIL):
            with tempfile.TemporaryDirectory() as cache:
                for what in ("empty caches", "caches on disk"):
                    key = f"detail {detail:g}, {what}"
                    yield key, run_in_new_process("first", detail, TRITON_CACHE_DIR=cache)
            key = f"detail {detail:g}, without Triton"
            yield key, run_in_new_process("first", detail, MERCAT_TRITON="0")
    elif section == "cpu":
        for kind in ("iso", "low"):
            for detail in (0.0, DETAIL):
                yield (
                    f"{kind}, detail {detail:g}",
                    run_in_new_process("cpu", kind, CPU_SIZE, detail),
                )
    elif section == "host":
        yield from run_in_new_process("host", HOST_SIZE).items()
    elif section == "torchdr":
        for n in sizes:
            for name, detail in (("Mercat", 0.0), ("Mercat with detail", DETAIL)):
                yield f"{name}, {n}", run_in_new_process("fit", "iso", n, detail)
            for name in PEERS:
                yield f"{name}, {n}", run_in_new_process("torchdr", name, n)
    else:
        for n in sizes:
            for kind in ("iso", "low"):
                for detail in (0.0, DETAIL):
                    yield (
                        f"{kind}, {n}, detail {detail:g}",
                        run_in_new_process("fit", kind, n, detail),
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sections = ("first", "fits", "cpu", "host", "torchdr")
    parser.add_argument("sections", nargs="*", default=sections[:3], help=", ".join(sections))
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(sections):
        parser.error(f"unknown section: {', '.join(sorted(unknown))}")
    if arguments.job:
        warnings.simplefilter("ignore")
        job, *job_arguments = json.loads(arguments.job)
        print(json.dumps(round_floats(JOBS[job](*job_arguments))))
        return
    import torch

    records = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
    for section in arguments.sections:
        device = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        sizes = arguments.sizes or (PEER_SIZES if section == "torchdr" else SIZES)
        results: dict[str, Any] = {}
        for name, result in run(section, sizes):
            results[name] = result
            records[section] = record.stamp(results=results, **device)
            arguments.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
