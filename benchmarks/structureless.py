"""False structure: clumps and rings on maps of data without structure.

    python -m benchmarks.structureless [--peers-up-to 3000] [--draws 3] [--sheet FOLDER]

Four kinds of structureless data, of 300 to 300,000 points: a Gaussian with equal variances, a Gaussian with
the spectrum of the even digits of MNIST, and uniform balls in 5 and 10 dimensions. Each is embedded by
Mercat for several values of `detail` (the largest only with 0), and by other methods up to a size. For each
map:

- "excess": `mercat.metrics.false_structure`, 0 for a smooth density, with its standard error;
- "dense": the fraction of points with more than 2.5 times as many others nearby as with a smooth density,
  and "dense_by_chance", the same for random points;
- "roundness": the ratio of the two variances of the six nearest neighbours about their point, averaged over
  points: about .43 for a smooth density, less for points on rings and along lines.

Up to 900 points, the numbers are means over several draws. Results go to
benchmarks/results/structureless.json; an interrupted run continues where it stopped. `--sheet` draws the
maps of 900 and 3000 points.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom

from benchmarks.harness import peers
from benchmarks.harness.methods import title
from benchmarks.harness.record import Store, stamp
from mercat import Mercat, metrics

RESULTS = Path(__file__).parent / "results" / "structureless.json"
SIZES = (300, 900, 3000, 30_000, 300_000)
FEW_POINTS = 900  # maximum number of points for several draws
SHEET_SIZES = (900, 3000)  # numbers of points of the maps drawn by --sheet
DETAILS = (0.0, 0.03, 0.1, 0.3, 1.0)
PEERS = ("pca", "umap", "tsne", "pacmap")
DENSE = 2.5  # threshold of dense points, relative to the expected number of points nearby
INNER = 0.1  # fraction of the area around a point, as in `false_structure`
NEAREST = 6  # number of neighbours for roundness
SAMPLE = 5000  # number of points whose neighbours are computed
# Standard deviations of the first 50 principal components of the even digits of MNIST.
# fmt: off
MNIST = (
    633, 503, 490, 456, 413, 403, 341, 331, 289, 280, 273, 264, 242, 238, 228, 227, 217, 212,
    206, 200, 196, 190, 188, 179, 176, 168, 168, 164, 164, 157, 154, 150, 148, 145, 141, 138,
    136, 134, 133, 131, 130, 126, 122, 121, 118, 117, 114, 112, 111, 109,
)
# fmt: on


def gaussian(n: int, rng: np.random.Generator) -> np.ndarray:
    """50 dimensions of equal variance."""
    return rng.normal(size=(n, 50))


def mnist_like(n: int, rng: np.random.Generator) -> np.ndarray:
    """50 dimensions with the variances of MNIST's components."""
    return rng.normal(size=(n, 50)) * np.array(MNIST)


def ball(n: int, rng: np.random.Generator, dimension: int) -> np.ndarray:
    """Points distributed uniformly in the unit ball."""
    X = rng.normal(size=(n, dimension))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * rng.random((n, 1)) ** (1 / dimension)


SETS = {
    "gaussian": ("Gaussian, 50 equal variances", gaussian),
    "mnist": ("Gaussian, MNIST's spectrum", mnist_like),
    "ball5": ("uniform ball in 5 dimensions", lambda n, rng: ball(n, rng, 5)),
    "ball10": ("uniform ball in 10 dimensions", lambda n, rng: ball(n, rng, 10)),
}


def draw(name: str, n: int, seed: int) -> np.ndarray:
    """Structureless data."""
    return SETS[name][1](n, np.random.default_rng(seed)).astype(np.float32)


def measures(Y: np.ndarray) -> dict[str, float]:
    """Measures of a map of structureless data."""
    Y = np.asarray(Y, dtype=np.float64)
    n = len(Y)
    k = min(max(20, n // 60), 100)  # as in `false_structure`
    excess = metrics.false_structure(Y, k=k)
    # Chords on the sphere: the area of a cap is proportional to the squared chord.
    tree = cKDTree(Y)
    sample = Y[np.random.default_rng(0).permutation(n)[:SAMPLE]]
    distance, near = tree.query(sample, max(k, NEAREST) + 1)
    inner = tree.query_ball_point(sample, distance[:, k] * np.sqrt(INNER), return_length=True) - 1
    threshold = DENSE * INNER * (k - 1)
    differences = Y[near[:, 1 : NEAREST + 1]] - sample[:, None, :]
    variances = np.linalg.eigvalsh(np.einsum("nka,nkb->nab", differences, differences))
    return {
        "excess": float(excess),
        "error": excess.standard_error,
        "dense": float(np.mean(inner > threshold)),
        "dense_by_chance": float(binom.sf(np.floor(threshold), k - 1, INNER)),
        "roundness": float(np.mean(variances[:, -2] / np.maximum(variances[:, -1], 1e-300))),
    }


@functools.cache
def session_of(method: str) -> Any:
    """A process for another method, kept until the end of the run, so that the method compiles once."""
    session = peers.Session(method).__enter__()
    atexit.register(session.__exit__)
    return session


def embed(method: str, X: np.ndarray, detail: float) -> tuple[np.ndarray | None, dict[str, Any]]:
    """A map of X (or None), and its status or the reason of a failure."""
    if method != "mercat":
        return session_of(method).run(X, seed=0)
    return Mercat(detail=detail, random_state=0).fit_transform(X), {"status": "ok"}


def runs(max_points: int, max_points_of_peers: int) -> Iterator[tuple[str, int, str, float]]:
    """Set, size, method and detail of every map, Mercat's first and the smallest first."""
    for n in (n for n in SIZES if n <= max_points):
        for detail in DETAILS if n < SIZES[-1] else DETAILS[:1]:
            for name in SETS:
                yield name, n, "mercat", detail
    for n in SIZES:
        for method in PEERS:
            for name in SETS:
                if n <= max_points_of_peers or (method == "pca" and n <= max_points):
                    yield name, n, method, 0.0


def key_of(name: str, n: int, method: str, detail: float) -> str:
    """Key of a record."""
    return f"{name}/{n}/{method}" + (f"/{detail:g}" if method == "mercat" else "")


def measure(name: str, n: int, method: str, detail: float, draws: int) -> dict[str, Any]:
    """Return a record of means over the draws, and the standard error of "excess"."""
    scores = []
    for seed in range(draws if n <= FEW_POINTS else 1):
        Y, outcome = embed(method, draw(name, n, seed), detail)
        if Y is None:
            return stamp(set=name, n=n, method=method, **outcome)
        scores.append(measures(Y))
    means = {key: round(float(np.mean([f[key] for f in scores])), 4) for key in scores[0]}
    means["error"] = round(means["error"] / len(scores) ** 0.5, 4)
    fields = {"detail": detail} if method == "mercat" else {"versions": outcome["versions"]}
    return stamp(set=name, n=n, method=method, status="ok", draws=len(scores), **means, **fields)


def sheet(n: int, folder: Path) -> Path:
    """Draw all maps of n points: one row per set, one column per map."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from mercat.projections import project

    maps = [("mercat", detail) for detail in DETAILS] + [(peer, 0.0) for peer in PEERS]
    size = 2.2 * len(maps), 2.2 * len(SETS)
    figure, axes = plt.subplots(len(SETS), len(maps), figsize=size, layout="constrained")
    for row, name in zip(axes, SETS, strict=True):
        X = draw(name, n, 0)
        for ax, (method, detail) in zip(row, maps, strict=True):
            Y, outcome = embed(method, X, detail)
            ax.set(xticks=[], yticks=[], aspect="equal")
            if Y is None:
                ax.set_title(outcome["status"])
                continue
            P = project(Y, "lambert") if method == "mercat" else Y
            ax.scatter(*P.T, s=900 / n, c="black", linewidths=0)
            map_title = f"detail {detail:g}" if method == "mercat" else title(method)
            ax.set_title(f"{name}, {map_title}" if ax is row[0] else map_title, fontsize=8)
    path = folder / f"structureless_{n}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def table(store: Store) -> str:
    """Results as text, one line per map."""
    lines = [f"{'':28} {'excess':>14} {'dense':>6} {'chance':>6} {'round':>6}"]
    for key, r in store.records.items():
        if r["status"] != "ok":
            lines.append(f"{key:28} {r['status']}: {r['reason']}")
            continue
        lines.append(
            f"{key:28} {r['excess']:6.3f} +- {r['error']:.3f} {r['dense']:6.1%} "
            f"{r['dense_by_chance']:6.1%} {r['roundness']:6.3f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--peers-up-to", type=int, default=30_000, help="maximum number of points for other methods"
    )
    parser.add_argument(
        "--mercat-up-to", type=int, default=SIZES[-1], help="maximum number of points for Mercat"
    )
    parser.add_argument(
        "--draws", type=int, default=3, help=f"number of draws of up to {FEW_POINTS} points"
    )
    parser.add_argument("--sheet", type=Path, help="draw the maps into this folder, and stop")
    parser.add_argument("--anew", action="store_true", help="repeat all records")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.sheet is not None:
        for n in SHEET_SIZES:
            print(sheet(n, options.sheet))
        return
    store = Store(RESULTS)
    for run in runs(options.mercat_up_to, options.peers_up_to):
        key = key_of(*run)
        draws = options.draws if run[1] <= FEW_POINTS else 1
        if key not in store or store[key].get("draws", draws) < draws or options.anew:
            store.put(key, measure(*run, options.draws))
            print(key, flush=True)
    print(table(store))


if __name__ == "__main__":
    main()
