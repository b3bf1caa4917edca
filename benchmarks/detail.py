"""Effect of `detail`: all four measures, compared with other methods.

    python -m benchmarks.detail --data DIR [--anew]

Embeds the real data sets once with Mercat for each value of `detail` and with each other method, and measures
them; where the paper measures on principal components, other methods are given these. Results go to
benchmarks/results/detail.json, one record per embedding; an interrupted run continues where it stopped, and
`--anew` repeats only Mercat's records. `--times` compares times in one session. `--sizes` uses subsets of
MNIST, to compare the effect of `detail` on few and many points. `--seeds` runs UMAP and t-SNE with several
seeds. The table of margins is printed at the end. Other methods may need other interpreters: see
`benchmarks.harness.peers`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import data, measure, peers
from benchmarks.harness.measure import MEASURES
from benchmarks.harness.record import Store, stamp
from mercat import metrics

RESULTS = Path(__file__).parent / "results" / "detail.json"
SETS = ("blood", "pancreas", "paul15", "mammoth", "mnist_even")
PEERS = ("ncvis", "pacmap", "umap", "tsne", "densmap")
DIAL = (0.0, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
CLOSE = 0.01  # largest deficit in a measure that is tolerated
WHOLE, SIZES = "mnist_even", (100, 200, 500, 2000, 8000)
SHORT_DIAL = (0.0, 0.03, 0.1, 0.3, 1.0)
BY_SEED, N_SEEDS = ("umap", "tsne"), 5
SEED = 1


def reference(name: str, folder: str, size: int | None = None) -> measure.Reference:
    """A data set, or a subset of it."""
    loaded = data.load(name, folder)
    if size is not None:
        rows = np.sort(np.random.default_rng(SEED).permutation(len(loaded.X))[:size])
        loaded = data.Data(loaded.X[rows], loaded.labels[rows], loaded.note)
    return measure.reference(loaded, data.SETS[name].n_components)


def measures(ref: measure.Reference, Y: np.ndarray) -> dict[str, float]:
    """The paper's four measures, 10-NN accuracy and class connectivity."""
    scores = {
        **measure.four_measures(ref, Y),
        "label accuracy": metrics.knn_accuracy(Y, ref.data.labels),
        "class connectivity": metrics.class_connectivity(Y, ref.data.labels),
    }
    return {name: round(float(score), 4) for name, score in scores.items()}


def embed_all(
    store: Store,
    references: dict[str, measure.Reference],
    by: tuple[str, ...],
    dial: tuple[float, ...],
    *,
    anew: bool,
) -> None:
    """Compute missing embeddings, one method at a time, so that each compiles once."""
    for method in by:
        with peers.Session(method) as session:
            for name, value in itertools.product(
                references, dial if method == "mercat" else (None,)
            ):
                options = {} if value is None else {"detail": value}
                key = "/".join([name, method, *(f"{v:g}" for v in options.values())])
                if key in store and not (anew and method == "mercat"):
                    continue
                ref = references[name]
                X, _, note = ref.data
                # Peers that do not denoise would be at a disadvantage with thousands of genes.
                k = None if method == "mercat" else data.SETS[name].n_components
                Y, outcome = session.run(X, seed=SEED, options=options, n_components=k)
                scores = {} if Y is None else measures(ref, Y)
                outcome.pop("seconds", None)
                fields = {"set": name, "method": method, "n": len(X), "note": note, **options}
                store.put(key, stamp(**fields, measures=scores, **outcome))
                print(key, json.dumps(scores or outcome), flush=True)


def vary_seeds(store: Store, references: dict[str, measure.Reference]) -> None:
    """All measures of UMAP and t-SNE for several seeds."""
    for method, (name, ref) in itertools.product(BY_SEED, references.items()):
        if f"seeds/{name}/{method}" in store:
            continue
        scores: dict[str, list[float]] = {}
        with peers.Session(method) as session:
            for seed in range(N_SEEDS):
                n_components = data.SETS[name].n_components
                Y, outcome = session.run(ref.data.X, seed=seed, n_components=n_components)
                if Y is None:
                    print(name, method, outcome["reason"], flush=True)
                    break
                for key, value in measures(ref, Y).items():
                    scores.setdefault(key, []).append(value)
        if scores:
            fields = {"set": "seeds", "data": name, "method": method, "n": len(ref.data.X)}
            store.put(f"seeds/{name}/{method}", stamp(**fields, measures={}, by_seed=scores))
            print(name, method, json.dumps(scores), flush=True)


def best_detail(
    ours: dict[float, dict[str, float]], theirs: dict[str, float], names: Any
) -> tuple[float, dict[str, float]]:
    """The value of `detail` whose smallest margin over the measures is largest, and its margins."""
    margins = {
        detail: {name: round(scores[name] - theirs[name], 4) for name in names}
        for detail, scores in ours.items()
    }
    best = max(margins, key=lambda detail: min(margins[detail].values()))
    return best, margins[best]


def summarize(results: Mapping[str, Any]) -> dict[str, Any]:
    """The best value of `detail` for each set and peer, its margins, and whether none is below -`CLOSE`."""
    table: dict[str, Any] = {}
    for name in SETS:
        records = [r for r in results.values() if r.get("set") == name and r["measures"]]
        scores_by_detail = {r["detail"]: r["measures"] for r in records if r["method"] == "mercat"}
        for record in records:
            if record["method"] == "mercat" or not scores_by_detail:
                continue
            names = MEASURES[:3] if record["method"] == "densmap" else MEASURES
            detail, margins = best_detail(scores_by_detail, record["measures"], names)
            table[f"{name}/{record['method']}"] = {
                "detail": detail,
                "margins": margins,
                "good": min(margins.values()) >= -CLOSE,
                "class connectivity": scores_by_detail[detail]["class connectivity"]
                - record["measures"]["class connectivity"],
            }
    return table


def compare_times(folder: str) -> dict[str, Any]:
    """Median of three warm wall times on MNIST even (raw pixels), including PCA and neighbour graph."""
    X, _, _ = data.load("mnist_even", folder)
    outcomes = peers.race(
        ("mercat", "pacmap", "ncvis", "umap"), X, turns=3, options={"mercat": {"detail": 0.3}}
    )
    turns = {method: outcome["turns"] for method, (_, outcome) in outcomes.items()}
    seconds = {method: statistics.median(each) for method, each in turns.items() if each}
    print(json.dumps(seconds), flush=True)
    return {"set": "times", "method": "all", "measures": {}, "seconds": seconds, "turns": turns}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the real data sets")
    parser.add_argument("--anew", action="store_true", help="repeat the embeddings of Mercat")
    parser.add_argument("--times", action="store_true", help="compare times instead")
    parser.add_argument("--sizes", action="store_true", help="embed subsets of MNIST instead")
    parser.add_argument("--seeds", action="store_true", help="use several seeds of other methods")
    parser.add_argument("sets", nargs="*", default=list(SETS), help="all by default")
    arguments = parser.parse_args()
    store = Store(RESULTS)
    if arguments.times:
        store.put("times", stamp(**compare_times(arguments.data)))
        return
    if arguments.sizes:
        parts = {f"{WHOLE}, {n}": reference(WHOLE, arguments.data, n) for n in SIZES}
        embed_all(store, parts, ("mercat",), SHORT_DIAL, anew=True)
        return
    references = {name: reference(name, arguments.data) for name in arguments.sets}
    if arguments.seeds:
        vary_seeds(store, references)
        return
    embed_all(store, references, ("mercat", *PEERS), DIAL, anew=arguments.anew)
    for key, row in summarize(store.records).items():
        margins = "  ".join(f"{m} {value:+.3f}" for m, value in row["margins"].items())
        verdict = "" if row["good"] else "  MISSED"
        print(f"{key:22} detail {row['detail']:<5g} {margins}{verdict}")


if __name__ == "__main__":
    main()
