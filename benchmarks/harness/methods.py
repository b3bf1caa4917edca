"""Methods by name: those of `mercat compare`, Mercat's variants, and the paper's settings.

This file runs in the interpreter that has the method, which needs only NumPy (and may be as old as Python
3.10). With a seed, methods run on one core, which makes them repeatable; without one (None), on all cores.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "src"))  # for interpreters without Mercat

from mercat.cli._methods import METHODS as COMPARED
from mercat.cli._methods import Method, principal_components

__all__ = ["METHODS", "PAPER", "Method", "embed", "load", "principal_components", "title"]


def _absolute(X, seed, n_jobs, **options):
    return COMPARED["mercat"].embed(X, seed, n_jobs, objective="absolute", **options)


def _detail(X, seed, n_jobs, **options):
    return COMPARED["mercat"].embed(X, seed, n_jobs, detail=0.3, **options)


def _algorithm1(X, seed, n_jobs, max_iter=1000, milestones=(350,), batch_size=None):
    """The paper's Algorithm 1 with one of its schedules; by default that of the synthetic sets."""
    import numpy as np

    from mercat._data.threads import Workers, n_threads
    from mercat._reduce.reducer import denoise
    from mercat._solve.algorithm1 import solve_algorithm1
    from mercat._solve.initial import pca_positions, principal_scores

    rng = np.random.default_rng(seed)
    with Workers(n_threads(n_jobs)) as workers:
        X_hat = denoise(X, 50)
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


METHODS = {
    **COMPARED,
    "mercat-absolute": Method("Mercat, absolute", "mercat._estimator", "mercat", _absolute),
    "mercat-detail": Method("Mercat, `detail=0.3`", "mercat._estimator", "mercat", _detail),
    "mercat-algorithm1": Method("Mercat, Algorithm 1", "mercat._estimator", "mercat", _algorithm1),
}
# Environment variables with the path of the interpreter of a method (default: the running one).
PYTHON = {
    **dict.fromkeys(
        ("umap", "tsne", "densmap", "pacmap", "umap-sphere", "localmap"), "MERCAT_PEERS_PYTHON"
    ),
    **dict.fromkeys(
        (
            *("trimap", "phate", "pymde-distances", "pymde-neighbors"),
            *("pcc", "pcc-clusters", "squad-mds", "squad-hybrid", "torchdr"),
        ),
        "MERCAT_RIVALS_PYTHON",
    ),
    "ncvis": "MERCAT_NCVIS_PYTHON",
    "dreams": "MERCAT_DREAMS_PYTHON",
}
# The paper's settings, where they are not the defaults of current versions.
PAPER = {
    "umap": {"n_neighbors": 15, "min_dist": 0.1, "init": "spectral"},
    "densmap": {
        "n_neighbors": 30,
        "min_dist": 0.1,
        "init": "spectral",
        "dens_frac": 0.3,
        "dens_lambda": 0.1,
        "dens_var_shift": 0.1,
        "n_epochs": 750,
        "learning_rate": 1.0,
    },
    # 1000 iterations, of which 250 exaggerated
    "tsne": {
        "perplexity": 30,
        "initialization": "pca",
        "theta": 0.5,
        "learning_rate": 200,
        "early_exaggeration": 12,
        "early_exaggeration_iter": 250,
        "n_iter": 750,
        "initial_momentum": 0.5,
        "final_momentum": 0.8,
    },
    "ncvis": {"n_neighbors": 15, "n_epochs": 50, "n_init_epochs": 20, "min_dist": 0.4},
    "pacmap": {"n_neighbors": 10},
}


def title(method):
    return METHODS[method].title


def load(method):
    """Import the module of a method; its version and NumPy's."""
    versions = METHODS[method].load()
    if METHODS[method].distribution == "mercat":
        import mercat

        versions["mercat"] = mercat.__version__  # version of the source, which may be newer
    return versions


def embed(method, X, seed, options=None, neighbors=None, paper=True):
    """Embed X by a method.

    Parameters
    ----------
    seed : int or None
        None uses all cores; results may then differ between runs.
    options : dict or None, default=None
        Keyword arguments of the method, which take precedence over all others.
    neighbors : int or None, default=None
        Size of the neighbourhood, passed under the name used by the method; None for the default.
    paper : bool, default=True
        Whether to use the paper's settings rather than the method's own defaults.
    """
    keywords = dict(PAPER.get(method, {})) if paper else {}
    if neighbors is not None and method in PAPER:
        keywords["perplexity" if method == "tsne" else "n_neighbors"] = neighbors
    ours = method.startswith("mercat")
    n_jobs = -1 if seed is None or ours else 1
    return METHODS[method].embed(X, seed, n_jobs, **{**keywords, **(options or {})})
