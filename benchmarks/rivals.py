"""Comparison with the strongest rivals, including methods for distances and for the local-global trade-off.

    python -m benchmarks.rivals embed --data DIR --positions DIR
    python -m benchmarks.rivals score --data DIR --positions DIR

`embed` runs each method on each data set with the method's defaults, and for several values of its trade-off
parameter if it has one. Positions are kept in a folder outside the repository (or in MERCAT_POSITIONS), so
that an interrupted run continues where it stopped; `--anew` repeats the named methods. `score` measures all
embeddings and writes benchmarks/results/rivals.json, one record per embedding. Options choose methods, seeds
and sets.

Sets of more than 2000 points are represented by 2000 of them, drawn once. For synthetic sets, the seed draws
the data and is passed to the method; for other sets, it is only passed to the method. Methods may need other
interpreters; those that cannot run are recorded with the reason. `mercat.cli._methods` has their sources:

| variable | an interpreter with |
|---|---|
| MERCAT_PEERS_PYTHON | umap-learn, openTSNE, pacmap |
| MERCAT_NCVIS_PYTHON | ncvis |
| MERCAT_RIVALS_PYTHON | trimap, phate, pymde, pccdr, and SQuadMDS from a clone of davnovak/SQuaD-MDS |
| MERCAT_DREAMS_PYTHON | berenslab/DREAMS, branch tp |
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import data, measure, methods, peers
from benchmarks.harness.positions import VARIABLE, Positions, fingerprint
from benchmarks.harness.record import Store, stamp
from mercat import metrics

RESULTS = Path(__file__).parent / "results" / "rivals.json"
SEEDS = (1, 2, 3)
MAX_ROWS = 2000  # maximum number of points per set
ROWS_SEED = 0  # seed of their choice
NEIGHBORS = 10  # number of neighbours in the DREAMS protocol
ARCS = 10  # classes of points whose label is an angle


class Variant(NamedTuple):
    """A method at its defaults, or at one value of its trade-off parameter."""

    method: str
    value: float | None = None

    @property
    def key(self) -> str:
        return self.method if self.value is None else f"{self.method} {self.value:g}"

    def options(self, n: int) -> dict[str, Any]:
        """Keyword arguments of the method for n points."""
        options: dict[str, Any] = {}
        if self.method in CAN_INTERPOLATE and n > FAST_FROM:
            options["negative_gradient_method"] = "fft"
        return options if self.value is None else {**options, DIALS[self.method][0]: self.value}

    @property
    def title(self) -> str:
        title = methods.title(self.method)
        return title if self.value is None else f"{title} {self.value:g}".replace(" 0.", " .")


DIALS: dict[str, tuple[str, tuple[float, ...]]] = {
    "mercat": ("detail", (0.0, 0.03, 0.1, 0.3, 1.0)),
    "dreams": ("reg_lambda", (0.05, 0.1, 0.3)),
    "squad-hybrid": ("tsne_lr_multiplier", (0.1, 0.5, 2.0)),
}
# Methods whose forces can be interpolated (openTSNE's default beyond 10,000 points), and the smallest number
# of points for which interpolation is faster.
CAN_INTERPOLATE, FAST_FROM = ("tsne", "dreams"), 1000
RIVALS = (
    *("pcc", "squad-mds", "mds", "pca", "isomap", "pymde-distances"),
    *("squad-hybrid", "dreams", "pcc-clusters", "trimap", "phate"),
    *("tsne", "umap", "densmap", "ncvis", "pacmap", "localmap", "pymde-neighbors"),
    *("umap-sphere", "torchdr"),
)
# Methods that compile code, which is done in a small first call that is not timed.
COMPILES = {
    "umap",
    "densmap",
    "umap-sphere",
    "pacmap",
    "localmap",
    "trimap",
    "squad-mds",
    "squad-hybrid",
}
VARIANTS = tuple(
    Variant(method, value)
    for method in ("mercat", *RIVALS)
    for value in (DIALS[method][1] if method in DIALS else (None,))
)


# ------------------------------------------------------------------ sets


def _ball(folder: data.Folder, seed: int) -> data.Data:
    """Points distributed uniformly in a ball in 5 dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 5))
    X *= rng.random((len(X), 1)) ** (1 / 5) / np.linalg.norm(X, axis=1, keepdims=True)
    return data.Data(X, np.zeros(len(X), dtype=int), "")


def _noise(folder: data.Folder, seed: int) -> data.Data:
    """Gaussian noise with the spectrum of MNIST's 50 principal components."""
    scales = methods.principal_components(data.load("mnist_even", folder).X, 50).std(axis=0)
    scales = scales.round(1)  # the same on any machine
    X = np.random.default_rng(seed).normal(size=(2000, 50)) * scales
    return data.Data(X, np.zeros(len(X), dtype=int), "")


# For data without structure, all structure on a map is false.
STRUCTURELESS = {
    "ball": data.Entry("Uniform ball", "structureless", _ball, True),
    "noise": data.Entry("Noise", "structureless", _noise, True),
}
SETS = {**data.SETS, **STRUCTURELESS}


@functools.lru_cache(maxsize=4)
def load(name: str, folder: str, seed: int) -> data.Data:
    """Load a data set, or 2000 points of it; labels that are angles are replaced by arcs."""
    loaded = SETS[name].load(folder, seed)
    X, labels, note = loaded
    if labels.dtype.kind == "f":
        labels = (labels % (2 * np.pi) / (2 * np.pi) * ARCS).astype(int)
    if len(X) > MAX_ROWS:
        rows = np.sort(np.random.default_rng(ROWS_SEED).permutation(len(X))[:MAX_ROWS])
        description = f"{MAX_ROWS:,} of {len(X):,} points (seed {ROWS_SEED})"
        X, labels = X[rows], labels[rows]
        note = f"{note}; {description}" if note else f"subset: {description}"
    return data.Data(X, labels, note)


def seed_of_data(name: str, seed: int) -> int:
    """Seed of the data: that of the method for synthetic sets."""
    return seed if SETS[name].drawn else 1


# ------------------------------------------------------------------ embedding


def embed(
    positions: Positions,
    folder: str,
    variants: list[Variant],
    seeds: list[int],
    names: list[str],
    *,
    anew: bool,
) -> None:
    """Compute missing embeddings, one method at a time, so that each compiles once."""
    for method, group in itertools.groupby(variants, key=lambda variant: variant.method):
        todo = []
        for seed, name, variant in itertools.product(seeds, names, list(group)):
            X = load(name, folder, seed_of_data(name, seed)).X
            if anew or positions.outcome(name, variant.key, seed, fingerprint(X)) is None:
                todo.append((seed, name, variant))
        while todo:  # continue in a new process after a crash
            with peers.Session(method) as session:
                todo = _embed_in(session, positions, folder, todo)


def _embed_in(
    session: peers.Session, positions: Positions, folder: str, todo: list[tuple[int, str, Variant]]
) -> list[tuple[int, str, Variant]]:
    """Compute embeddings in one process until it ends, and return those that remain."""
    for i, (seed, name, variant) in enumerate(todo):
        X, _, note = load(name, folder, seed_of_data(name, seed))
        # Mercat reduces the data itself; other methods are given the reference data.
        k = None if variant.method == "mercat" else SETS[name].n_components
        Y, outcome = session.run(
            X,
            seed=seed,
            n_components=k,
            options=variant.options(len(X)),
            warm=i == 0 and variant.method in COMPILES,
            paper=False,
        )
        if outcome.get("code") == -signal.SIGTERM:
            raise SystemExit(f"{name}, {variant.key}: {outcome['reason']}")  # stopped by the user
        fields = {"n": len(X), "d": X.shape[1], "note": note}
        positions.put(name, variant.key, seed, fingerprint(X), Y, stamp(**fields, **outcome))
        duration = outcome.get("seconds", {}).get("cpu", outcome.get("reason"))
        print(f"{name}, {variant.key}, seed {seed}: {duration}", flush=True)
        if outcome["status"] == "not installed":
            return []
        if "code" in outcome:
            return todo[i + 1 :]
    return []


# ------------------------------------------------------------------ scoring


@functools.lru_cache(maxsize=2)
def reference(name: str, folder: str, seed: int) -> measure.Reference:
    return measure.reference(load(name, folder, seed), SETS[name].n_components)


def measures(ref: measure.Reference, Y: np.ndarray) -> dict[str, float]:
    """Measures of an embedding: all of them if the data have classes, otherwise only false structure."""
    labels = ref.data.labels
    geometry: Any = "sphere" if Y.shape[1] == 3 else "euclidean"
    if len(np.unique(labels)) < 2:
        scores = {"false structure": metrics.false_structure(Y, geometry=geometry)}
        return {name: round(float(score), 4) for name, score in scores.items()}
    scores = {
        **measure.four_measures(ref, Y),
        "accuracy": metrics.knn_accuracy(Y, labels, geometry=geometry),
        "connectivity": metrics.class_connectivity(Y, labels, geometry=geometry),
        "triplets": metrics.random_triplet_accuracy(ref.X, Y, geometry=geometry),
        "clumps": metrics.false_structure(Y, geometry=geometry),
        "recall": recall(ref.X, Y, NEIGHBORS),
        "centroid recall": centroid_recall(ref.X, Y, labels),
    }
    return {name: round(float(score), 4) for name, score in scores.items()}


def recall(X: np.ndarray, Y: np.ndarray, k: int) -> float:
    """Fraction of the k nearest neighbours that are the same in X and Y.

    On the sphere, chords are used, which have the same order as arcs.
    """
    from sklearn.neighbors import NearestNeighbors

    neighbors, map_neighbors = (
        NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False)
        for points in (X, Y)
    )
    merged = np.sort(np.hstack([neighbors, map_neighbors]), axis=1)
    return float(np.count_nonzero(merged[:, 1:] == merged[:, :-1]) / neighbors.size)


def centroid_recall(X: np.ndarray, Y: np.ndarray, labels: np.ndarray) -> float:
    """Recall of the nearest class centroids: 6, or half of the number of classes if there are few.

    The DREAMS protocol uses 6 for sets with many classes; with 7 classes, any map would find all.
    """
    classes = np.unique(labels)
    centers = [
        np.array([points[labels == c].mean(axis=0, dtype=np.float64) for c in classes])
        for points in (X, Y)
    ]
    if Y.shape[1] == 3:
        centers[1] /= np.linalg.norm(centers[1], axis=1, keepdims=True)
    return recall(*centers, k=min(6, len(classes) // 2))


def score(
    positions: Positions,
    folder: str,
    store: Store,
    variants: list[Variant],
    seeds: list[int],
    names: list[str],
    *,
    anew: bool,
) -> None:
    """Measure the embeddings without a record, or with an older one, one set at a time."""
    for name, seed in itertools.product(names, seeds):
        data_seed = seed_of_data(name, seed)
        data_print = fingerprint(load(name, folder, data_seed).X)
        for variant in variants:
            outcome = positions.outcome(name, variant.key, seed, data_print)
            key = f"{name}/{variant.key}/{seed}"
            existing = store.records.get(key)
            if outcome is None or (existing and existing["time"] == outcome["time"] and not anew):
                continue
            fields: dict[str, Any] = {
                "set": name,
                "variant": variant.key,
                "method": variant.method,
                "value": variant.value,
                "seed": seed,
            }
            if outcome["status"] == "ok":
                Y = positions.embedding(name, variant.key, seed)
                fields["measures"] = measures(reference(name, folder, data_seed), Y)
            store.put(key, {**fields, **outcome})
            print(key, json.dumps(fields.get("measures", outcome.get("reason"))), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("embed", "score"))
    parser.add_argument("--data", required=True, help="folder of the real data sets")
    parser.add_argument(
        "--positions",
        default=os.environ.get(VARIABLE),
        help=f"folder of the embeddings (default: the environment variable {VARIABLE})",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the scores")
    parser.add_argument("--method", action="append", choices=("mercat", *RIVALS))
    parser.add_argument("--seed", action="append", type=int, choices=SEEDS)
    parser.add_argument("--anew", action="store_true", help="repeat existing records")
    parser.add_argument("sets", nargs="*", default=[], help="all by default")
    given = parser.parse_intermixed_args()
    if given.positions is None:
        parser.error(f"--positions must name a folder, unless {VARIABLE} does.")
    unknown = set(given.sets) - set(SETS)
    if unknown:
        parser.error(f"sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}.")
    warnings.simplefilter("ignore")
    variants = [v for v in VARIANTS if given.method is None or v.method in given.method]
    selection = (variants, given.seed or list(SEEDS), given.sets or list(SETS))
    positions = Positions(given.positions)
    if given.stage == "embed":
        embed(positions, given.data, *selection, anew=given.anew)
    else:
        score(positions, given.data, Store(given.results), *selection, anew=given.anew)


if __name__ == "__main__":
    main()
