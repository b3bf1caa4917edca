"""Pseudotime on maps of real branching cells.

    python -m benchmarks.pseudotime --data DIR

Diffusion pseudotime (scanpy) from a root among the least differentiated cells, from 50 principal components,
shown on Mercat's maps without detail and with a detail of 0.3, and on UMAP's. The benchmark measures the
rank correlation between pseudotime and the distance from the root on the map, and the fraction of the
variance of the ranks of pseudotime explained by the 15 nearest cells on the map. Both are means over five
roots drawn among the least differentiated cells and five seeds of the maps, with their standard deviation.
Results go to benchmarks/results/pseudotime.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anndata
import numpy as np
import scanpy as sc
from scipy.stats import rankdata, spearmanr
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness import data
from benchmarks.harness.record import Store, each_set, stamp
from mercat import tl

RESULTS = Path(__file__).parent / "results" / "pseudotime.json"
ROOTS = {"pancreas": "Ductal", "paul15": "Multipotent progenitors"}
N_ROOTS, N_NEAREST, SEED, SEEDS = 5, 15, 0, range(5)


def prepare(X: np.ndarray, labels: np.ndarray) -> anndata.AnnData:
    """Components, graph, diffusion map."""
    adata = anndata.AnnData(np.asarray(X, dtype=np.float32))
    adata.obs["label"] = labels.astype(str)
    sc.pp.pca(adata, n_comps=50, random_state=SEED)
    sc.pp.neighbors(adata, random_state=SEED)
    sc.tl.diffmap(adata)
    return adata


def maps(adata: anndata.AnnData, seed: int) -> dict[str, np.ndarray]:
    """The three maps."""
    sc.tl.umap(adata, random_state=seed)
    tl.mercat(adata, random_state=seed)
    tl.mercat(adata, random_state=seed, detail=0.3, key_added="detailed")
    keys = {"mercat": "X_mercat_sphere", "detail 0.3": "detailed_sphere", "umap": "X_umap"}
    return {name: np.asarray(adata.obsm[key], dtype=np.float64) for name, key in keys.items()}


def distances_from_root(Y: np.ndarray, root: int) -> np.ndarray:
    """Distances from the root: arcs on the sphere, straight lines in the plane."""
    if Y.shape[1] == 3:
        return np.arccos(np.clip(Y @ Y[root], -1, 1))
    return np.linalg.norm(Y - Y[root], axis=1)


def explained_variance(Y: np.ndarray, time: np.ndarray) -> float:
    """Fraction of the variance of the ranks explained by the nearest neighbours on the map.

    The cell itself is excluded.
    """
    ranks = rankdata(time)
    search = NearestNeighbors(n_neighbors=N_NEAREST).fit(Y)
    indices = search.kneighbors(return_distance=False)
    return float(1 - np.mean((ranks - ranks[indices].mean(axis=1)) ** 2) / ranks.var())


def measure(adata: anndata.AnnData, first: str) -> dict[str, Any]:
    """Both measures of each map, over several roots and seeds."""
    maps_by_seed = [maps(adata, seed) for seed in SEEDS]
    candidates = np.flatnonzero(adata.obs["label"] == first)
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in maps_by_seed[0]}
    for root in np.random.default_rng(SEED).choice(candidates, N_ROOTS, replace=False):
        adata.uns["iroot"] = int(root)
        sc.tl.dpt(adata)
        time = adata.obs["dpt_pseudotime"].to_numpy()
        is_finite = np.isfinite(time)
        for maps_of_seed in maps_by_seed:
            for name, Y in maps_of_seed.items():
                order = spearmanr(
                    distances_from_root(Y, int(root))[is_finite], time[is_finite]
                ).statistic
                rows[name].append((float(order), explained_variance(Y[is_finite], time[is_finite])))
    return {
        name: {
            key: {"mean": round(float(values.mean()), 4), "sd": round(float(values.std()), 4)}
            for key, values in zip(("order", "explained"), np.array(pairs).T, strict=True)
        }
        for name, pairs in rows.items()
    }


def run(name: str, folder: str, store: Store) -> None:
    """Measure one data set and store the result."""
    X, labels, _ = data.load(name, folder)
    adata = prepare(X, labels)
    measures = measure(adata, ROOTS[name])
    store.put(name, stamp(set=name, n=adata.n_obs, root=ROOTS[name], measures=measures))
    print(name, measures, flush=True)


if __name__ == "__main__":
    each_set(__doc__, tuple(ROOTS), RESULTS, run)
