"""Reference mapping compared with scanpy's: held-out cells on the map of the others.

    python -m benchmarks.ingest --data DIR

Half of the cells of each data set are the reference; the others are placed on its map by `mercat.tl.ingest`,
with detail 0 and 0.3, and by `sc.tl.ingest` with UMAP, from the same principal components of the reference.
The benchmark measures the accuracy of transferred labels and of labels from the 15 nearest reference cells
on the map, and angle preservation among held-out cells. `few` repeats this with the cells of one label as
the query: scanpy centres a query by its own mean, so its result depends on the composition of the query.
scanpy 1.11 needs pynndescent below 0.6 for it. Results go to benchmarks/results/ingest.json.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import scanpy as sc
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.harness import data
from benchmarks.harness.record import Store, each_set, stamp
from mercat import metrics, tl

RESULTS = Path(__file__).parent / "results" / "ingest.json"
SETS = ("blood", "pancreas", "paul15", "mnist_even")
MAX_ROWS = 4000  # maximum number of rows; above it, scanpy's neighbours are approximate
N_COMPS = 50
SEED = 0


def halves(name: str, folder: str) -> tuple[anndata.AnnData, anndata.AnnData]:
    """Reference with components, and query without."""
    X, labels, _ = data.load(name, folder)
    order = np.random.default_rng(SEED).permutation(len(X))[:MAX_ROWS]
    adata = anndata.AnnData(np.asarray(X[order], dtype=np.float32))
    adata.obs["label"] = pd.Categorical(labels[order].astype(str))
    adata.obs_names = [f"cell{k}" for k in range(len(order))]
    reference, query = adata[: len(order) // 2].copy(), adata[len(order) // 2 :].copy()
    sc.pp.pca(reference, n_comps=min(N_COMPS, adata.n_vars - 1), random_state=SEED)
    return reference, query


def by_mercat(
    reference: anndata.AnnData, query: anndata.AnnData, detail: float = 0
) -> tuple[Any, Any, Any, dict]:
    """Maps of reference and query, labels, and seconds by Mercat."""
    start = time.perf_counter()
    tl.mercat(reference, detail=detail)
    fitted = time.perf_counter()
    tl.ingest(query, reference, obs={"label": "predicted"})
    seconds = {"fit": fitted - start, "ingest": time.perf_counter() - fitted}
    maps = (a.obsm["X_mercat_sphere"] for a in (reference, query))
    return *maps, query.obs["predicted"], seconds


def by_detail(reference: anndata.AnnData, query: anndata.AnnData) -> tuple[Any, Any, Any, dict]:
    """The same with a detail of 0.3."""
    return by_mercat(reference, query, detail=0.3)


def by_scanpy(reference: anndata.AnnData, query: anndata.AnnData) -> tuple[Any, Any, Any, dict]:
    """The same by UMAP and scanpy's ingest."""
    start = time.perf_counter()
    sc.pp.neighbors(reference, n_neighbors=15, random_state=SEED)
    sc.tl.umap(reference, random_state=SEED)
    fitted = time.perf_counter()
    truth = query.obs.pop("label")
    sc.tl.ingest(query, reference, obs="label")
    seconds = {"fit": fitted - start, "ingest": time.perf_counter() - fitted}
    predicted, query.obs["label"] = query.obs["label"], truth
    maps = (a.obsm["X_umap"] for a in (reference, query))
    return *maps, predicted, seconds


METHODS = {"mercat": by_mercat, "detail": by_detail, "scanpy": by_scanpy}


def measure(reference: Any, query: Any, components: Any, outcome: tuple) -> dict[str, Any]:
    """Accuracy of the labels, and angle preservation."""
    Y_reference, Y_query, predicted, seconds = outcome
    truth = query.obs["label"].astype(str).to_numpy()
    classifier = KNeighborsClassifier(15).fit(Y_reference, reference.obs["label"].astype(str))
    return {
        "labels": round(float(np.mean(predicted.astype(str).to_numpy() == truth)), 4),
        "labels on the map": round(float(classifier.score(Y_query, truth)), 4),
        "angles": round(float(metrics.angle_preservation(components, Y_query)), 4),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def run(name: str, folder: str, store: Store) -> None:
    """Measure one data set by both methods, with the whole query and with one label of it."""
    reference, query = halves(name, folder)
    tl.mercat(reference)
    all_query = query.copy()
    tl.ingest(all_query, reference)
    most_frequent = query.obs["label"].value_counts().index[0]
    parts = {"all": query, "few": query[query.obs["label"] == most_frequent].copy()}
    for part, cells in parts.items():
        rows = query.obs_names.get_indexer(cells.obs_names)
        components = all_query.obsm["X_pca"][rows]
        for method, place in METHODS.items():
            reference_copy, query_copy = reference.copy(), cells.copy()
            measures = measure(
                reference_copy, query_copy, components, place(reference_copy, query_copy)
            )
            fields = {"set": name, "part": part, "method": method, "n": len(rows)}
            store.put(f"{name}/{part}/{method}", stamp(**fields, measures=measures))
            print(name, part, method, measures, flush=True)


if __name__ == "__main__":
    each_set(__doc__, SETS, RESULTS, run)
