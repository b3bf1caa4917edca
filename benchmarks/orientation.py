"""Orientation of maps with other seeds, landmarks and subsamples.

    python -m benchmarks.orientation --data DIR [--size 3000]

Each set is embedded with five seeds, three numbers of landmarks, and five subsamples of 95 %, at detail 0
and 0.3, and each map is compared with the first: the median angle between the two positions of a point as
returned; after rotation to the equator only, which leaves sign and mirror image to chance; and after the
best alignment (Procrustes over rotations and mirror images). Larger data sets are subsampled to `--size`.
Results go to benchmarks/results/orientation.json, one record per set and detail; an interrupted run
continues where it stopped.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.harness import data
from benchmarks.harness.record import Store, stamp
from mercat import Mercat
from mercat.projections import equator_rotation

RESULTS = Path(__file__).parent / "results" / "orientation.json"
SETS = ("blood", "cell_cycle", "pancreas", "paul15", "mammoth", "mnist_even", "mnist", "digits")
DETAILS = (0.0, 0.3)
SEEDS, LANDMARKS, SUBSAMPLES = range(1, 5), (300, 600), range(5)
AGREE = 5.0  # maximum median angle, in degrees, between maps that agree


def load(name: str, folder: str, size: int) -> np.ndarray:
    """A data set, or evenly spaced rows of it."""
    if name == "digits":
        X = load_digits().data
    elif name == "mnist":
        with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as arrays:
            X = arrays["X"][:60_000]
    else:
        X = data.load(name, folder).X
    rows = np.linspace(0, len(X) - 1, min(size, len(X))).astype(int)
    return np.asarray(X[rows], dtype=np.float32)


def runs(n: int) -> Iterator[tuple[str, dict[str, Any], np.ndarray]]:
    """Kind, parameters and rows of each other map."""
    for seed in SEEDS:
        yield "seed", {"random_state": seed}, np.arange(n)
    for number in LANDMARKS:
        parameters = {"random_state": 0, "solver": "landmarks", "n_landmarks": number}
        yield "landmarks", parameters, np.arange(n)
    for seed in SUBSAMPLES:
        rows = np.random.default_rng(100 + seed).permutation(n)[: round(0.95 * n)]
        yield "subsample", {"random_state": 0}, np.sort(rows)


def degrees_apart(A: np.ndarray, B: np.ndarray) -> float:
    """Median angle between corresponding rows, in degrees."""
    return float(np.rad2deg(np.median(np.arccos(np.clip(np.sum(A * B, axis=1), -1, 1)))))


def align(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Rotate and mirror A onto B."""
    U, _, V = np.linalg.svd(A.T @ B)
    return np.asarray(A @ U @ V)


def fit_map(X: np.ndarray, **parameters: Any) -> tuple[np.ndarray, np.ndarray]:
    """The map as returned, and rotated only to the equator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Mercat(**parameters).fit(X)
    Y = model.embedding_.astype(np.float64)
    raw = Y @ model._rotation
    return Y, raw @ equator_rotation(raw).T


def compare(X: np.ndarray, detail: float) -> list[dict[str, Any]]:
    """Compare each run with the first."""
    first, first_to_equator = fit_map(X, detail=detail, random_state=0)
    records = []
    for kind, parameters, rows in runs(len(X)):
        Y, Y_to_equator = fit_map(X[rows], detail=detail, **parameters)
        angles = {
            "delivered": degrees_apart(Y, first[rows]),
            "equator": degrees_apart(Y_to_equator, first_to_equator[rows]),
            "aligned": degrees_apart(align(Y, first[rows]), first[rows]),
        }
        records.append({"kind": kind, **{name: round(d, 2) for name, d in angles.items()}})
    return records


def table(store: Store) -> str:
    """Medians over the runs of each kind, and how many of the maps that can be aligned agree as returned."""
    lines = [f"{'':20} {'':10} {'equator':>8} {'delivered':>10} {'aligned':>8}   degrees, median"]
    all_runs = []
    for key, record in store.records.items():
        all_runs += record["runs"]
        for kind in ("seed", "landmarks", "subsample"):
            runs_of_kind = [run for run in record["runs"] if run["kind"] == kind]
            medians = {
                name: np.median([run[name] for run in runs_of_kind])
                for name in ("equator", "delivered", "aligned")
            }
            lines.append(
                f"{key:20} {kind:10} {medians['equator']:8.1f} {medians['delivered']:10.1f} "
                f"{medians['aligned']:8.1f}"
            )
    agree = [run for run in all_runs if run["aligned"] <= AGREE]
    n_as_returned = sum(run["delivered"] <= AGREE for run in agree)
    n_by_equator = sum(run["equator"] <= AGREE for run in agree)
    lines.append(
        f"{len(agree)} of {len(all_runs)} maps agree within {AGREE:g} degrees once aligned; of these, "
        f"{n_as_returned} as delivered, {n_by_equator} by the equator alone."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--size", type=int, default=3000, help="maximum number of points per set")
    parser.add_argument("--anew", action="store_true", help="repeat all records")
    options = parser.parse_args()
    store = Store(RESULTS)
    for name in SETS:
        X = load(name, options.data, options.size)
        for detail in DETAILS:
            key = f"{name}/{detail:g}"
            if key not in store or options.anew:
                store.put(key, stamp(set=name, detail=detail, n=len(X), runs=compare(X, detail)))
                print(key, flush=True)
    print(table(store))


if __name__ == "__main__":
    main()
