"""One small function a method, with the paper's settings.

This file runs under the interpreter that has the method, which need not have anything else but
NumPy (and need not be newer than Python 3.10). Each function takes the data, a seed and the size of
the neighbourhood (None: the paper's choice), and returns the embedding. With a seed, UMAP and t-SNE
use one core, which makes them repeatable; without one (None), all cores.

`mercat compare` has its peers at their own defaults (`mercat.cli._peers`): the two share nothing on purpose.
"""

from __future__ import annotations

from collections import namedtuple
from importlib import import_module, metadata

import numpy as np


def principal_components(X, k):
    """Scores on the first k principal components, by the smaller of the two Gram matrices."""
    X = np.asarray(X, dtype=np.float32)
    X = X - X.mean(axis=0)
    n, d = X.shape
    k = min(k, n, d)
    if d <= n:
        return X @ np.linalg.eigh(X.T @ X)[1][:, : -k - 1 : -1]
    values, vectors = np.linalg.eigh(X @ X.T)
    return vectors[:, : -k - 1 : -1] * np.sqrt(np.maximum(values[: -k - 1 : -1], 0))


def mercat(X, seed, neighbors, **options):
    from mercat import Mercat

    return Mercat(random_state=seed, **options).fit_transform(X)


def mercat_absolute(X, seed, neighbors):
    return mercat(X, seed, neighbors, objective="absolute")


def mercat_algorithm1(X, seed, neighbors, max_iter=1000, milestones=(350,), batch_size=None):
    """The paper's Algorithm 1 with one of its schedules; by default that of the synthetic sets."""
    from mercat._data.threads import Workers, n_threads
    from mercat._reduce.reducer import denoise
    from mercat._solve.algorithm1 import solve_algorithm1
    from mercat._solve.initial import pca_positions, principal_scores

    rng = np.random.default_rng(seed)
    with Workers(n_threads(-1)) as workers:
        X_hat = denoise(X, 50, rng)
        Y, _, _ = solve_algorithm1(
            X_hat,
            pca_positions(principal_scores(X_hat, 2)),
            max_iter=max_iter,
            milestones=milestones,
            batch_size=batch_size,
            rng=rng,
            workers=workers,
            report=lambda *_: False,
        )
    return Y


def umap(X, seed, neighbors):
    from umap import UMAP

    return UMAP(
        n_neighbors=neighbors or 15, min_dist=0.1, init="spectral", random_state=seed
    ).fit_transform(X)


def densmap(X, seed, neighbors):
    from umap import UMAP

    return UMAP(
        densmap=True,
        n_neighbors=neighbors or 30,
        min_dist=0.1,
        init="spectral",
        dens_frac=0.3,
        dens_lambda=0.1,
        dens_var_shift=0.1,
        n_epochs=750,
        learning_rate=1.0,
        random_state=seed,
    ).fit_transform(X)


def tsne(X, seed, neighbors):
    """The paper's 1000 iterations, of which 250 exaggerated, on its 50 principal components."""
    from openTSNE import TSNE

    if X.shape[1] > 50:
        X = principal_components(X, 50)
    model = TSNE(
        perplexity=neighbors or 30,
        initialization="pca",
        theta=0.5,
        learning_rate=200,
        early_exaggeration=12,
        early_exaggeration_iter=250,
        n_iter=750,
        initial_momentum=0.5,
        final_momentum=0.8,
        n_jobs=-1 if seed is None else 1,
        random_state=seed,
    )
    return np.asarray(model.fit(X))


def ncvis(X, seed, neighbors):
    from ncvis import NCVis

    model = NCVis(
        d=2,
        n_neighbors=neighbors or 15,
        n_epochs=50,
        n_init_epochs=20,
        min_dist=0.4,
        random_seed=42 if seed is None else seed,
    )
    return model.fit_transform(np.ascontiguousarray(X, dtype=np.float32))


def pacmap(X, seed, neighbors):
    from pacmap import PaCMAP

    model = PaCMAP(n_components=2, n_neighbors=neighbors or 10, random_state=seed)
    return model.fit_transform(np.asarray(X, dtype=np.float32))


def pca(X, seed, neighbors):
    return principal_components(X, 2)


# `variable` is that of the environment which names an interpreter that has the distribution.
Method = namedtuple("Method", "embed title distribution variable", defaults=[None])
METHODS = {
    "mercat": Method(mercat, "Mercat", "mercat"),
    "mercat-absolute": Method(mercat_absolute, "Mercat, absolute", "mercat"),
    "mercat-algorithm1": Method(mercat_algorithm1, "Mercat, Algorithm 1", "mercat"),
    "umap": Method(umap, "UMAP", "umap-learn", "MERCAT_PEERS_PYTHON"),
    "tsne": Method(tsne, "t-SNE", "openTSNE", "MERCAT_PEERS_PYTHON"),
    "ncvis": Method(ncvis, "NCVis", "ncvis", "MERCAT_NCVIS_PYTHON"),
    "densmap": Method(densmap, "densMAP", "umap-learn", "MERCAT_PEERS_PYTHON"),
    "pacmap": Method(pacmap, "PaCMAP", "pacmap", "MERCAT_PEERS_PYTHON"),
    "pca": Method(pca, "PCA", "numpy"),
}


def title(method):
    return METHODS[method].title


def load(method):
    """Import the module of a method; its version and NumPy's."""
    distribution = METHODS[method].distribution
    module = {"umap-learn": "umap"}.get(distribution, distribution)
    imported = import_module(module)
    if method.startswith("mercat"):
        import_module("mercat._estimator")
        return {"mercat": imported.__version__, "numpy": np.__version__}
    return {distribution: metadata.version(distribution), "numpy": np.__version__}
