"""Methods of dimension reduction, for `mercat compare` and the benchmarks.

Benchmarks also import this file in other interpreters that have NumPy and a method but not Mercat
(`benchmarks/harness/peers.py`).

Each method is a function of the data, a seed or None, and the number of jobs, and uses the method's defaults
unless keywords change them. It returns an embedding in the plane, or unit vectors on the sphere.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any, NamedTuple

import numpy as np

COMPONENTS = 50  # principal components, the customary input of t-SNE
CLUSTERS = (4, 8, 16, 32, 64)  # numbers of clusters in the example of PCC's authors


class Method(NamedTuple):
    """A method: its title, module, function and source."""

    title: str
    module: str  # imported before the clock starts
    distribution: str  # whose version is recorded
    embed: Callable[..., Any]
    source: str = ""  # where to get it, unless it is in the extra "peers"
    is_default: bool = False  # whether `mercat compare` runs it by default

    def load(self) -> dict[str, str]:
        """Import the method's module; return its version and that of NumPy."""
        import_module(self.module)
        return {self.distribution: _version(self), "numpy": np.__version__}


def _version(method: Method) -> str:
    try:
        return metadata.version(method.distribution)
    except metadata.PackageNotFoundError:  # a file or folder on the path
        return str(getattr(import_module(method.module), "__version__", "without a version"))


def principal_components(X: Any, k: int) -> np.ndarray:
    """Scores on the first k principal components, from the smaller of the two Gram matrices."""
    X = np.asarray(X, dtype=np.float32)
    X = X - X.mean(axis=0)
    n, d = X.shape
    k = min(k, n, d)
    if d <= n:
        return np.asarray(X @ np.linalg.eigh(X.T @ X)[1][:, : -k - 1 : -1])
    values, vectors = np.linalg.eigh(X @ X.T)
    scores = vectors[:, : -k - 1 : -1] * np.sqrt(np.maximum(values[: -k - 1 : -1], 0))
    return np.asarray(scores)


def _mercat(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    from mercat import Mercat

    return Mercat(random_state=seed, n_jobs=n_jobs, **options).fit_transform(X)


def _umap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    from umap import UMAP

    if seed is not None:  # with a seed, UMAP runs on one core
        n_jobs = 1
    return UMAP(random_state=seed, n_jobs=n_jobs, **options).fit_transform(X)


def _densmap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    return _umap(X, seed, n_jobs, densmap=True, **options)


def _umap_sphere(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """UMAP on the sphere, as in its documentation."""
    a, b = _umap(X, seed, n_jobs, output_metric="haversine", **options).T.astype(np.float64)
    return np.column_stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)])


def _tsne(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    from openTSNE import TSNE

    options = {"perplexity": min(30.0, (len(X) - 1) / 3), **options}
    return np.asarray(TSNE(random_state=seed, n_jobs=n_jobs, **options).fit(_reduced(X)))


def _dreams(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """t-SNE regularized towards its start, the first two principal components, scaled as its authors do."""
    from openTSNE import TSNE

    if "reg_lambda" not in TSNE.__init__.__code__.co_varnames:
        raise ImportError("the installed openTSNE is not the one of DREAMS")
    X = _reduced(X)
    plane = np.asarray(principal_components(X, 2), dtype=np.float64)
    plane /= plane[:, 0].std()
    options = {"perplexity": min(30.0, (len(X) - 1) / 3), **options}
    model = TSNE(
        initialization=plane,
        regularization=True,
        reg_embedding=plane,
        random_state=seed,
        n_jobs=n_jobs,
        **options,
    )
    return np.asarray(model.fit(X))


def _reduced(X: Any) -> Any:
    return principal_components(X, COMPONENTS) if X.shape[1] > COMPONENTS else X


def _ncvis(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del n_jobs  # the result would depend on it
    from ncvis import NCVis

    model = NCVis(d=2, random_seed=42 if seed is None else seed, **options)
    return model.fit_transform(np.ascontiguousarray(X, dtype=np.float32))


def _pacmap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del n_jobs
    from pacmap import PaCMAP

    return PaCMAP(n_components=2, random_state=seed, **options).fit_transform(_as_float32(X))


def _localmap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del n_jobs
    from pacmap import LocalMAP

    return LocalMAP(n_components=2, random_state=seed, **options).fit_transform(_as_float32(X))


def _trimap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del n_jobs
    from trimap import TRIMAP

    np.random.seed(seed)  # noqa: NPY002 (it has no seed of its own)
    return TRIMAP(verbose=False, **options).fit_transform(_as_float32(X))


def _as_float32(X: Any) -> np.ndarray:
    return np.asarray(X, dtype=np.float32)


def _phate(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    from phate import PHATE

    model = PHATE(random_state=seed, n_jobs=n_jobs, verbose=0, **options)
    return model.fit_transform(np.asarray(X))


def _pca(X: Any, seed: int | None, n_jobs: int) -> Any:
    del n_jobs
    from sklearn.decomposition import PCA

    return PCA(min(2, *X.shape), random_state=seed).fit_transform(X)


def _isomap(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del seed
    from sklearn.manifold import Isomap

    return Isomap(n_jobs=n_jobs, **options).fit_transform(X)


def _mds(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """Metric MDS (SMACOF) from classical MDS, which is faster and better than four random starts."""
    from sklearn.manifold import MDS

    options = {"n_init": 1, "init": "classical_mds", **options}
    return MDS(random_state=seed, n_jobs=n_jobs, **options).fit_transform(X)


def _squad_mds(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    del n_jobs
    from SQuadMDS.model import SQuadMDS

    return SQuadMDS(random_state=seed, **options).fit_transform(np.asarray(X, dtype=np.float64))


def _squad_hybrid(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """SQuaD-MDS with gradients of t-SNE at perplexity 30, which works better than its default of 5."""
    options = {"PP": min(30.0, (len(X) - 1) / 3), **options}
    return _squad_mds(X, seed, n_jobs, tsne_hybrid=True, **options)


def _pcc(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """PCC with correlations of distances only."""
    del n_jobs
    import torch
    from pcc import PCC

    _seed_all(torch, seed)
    return PCC(**{"cluster": False, **options}).fit_transform(_as_float32(X), None)


def _pcc_clusters(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """PCC with clusters, as in the example of its authors."""
    del n_jobs
    import torch
    from pcc import PCC
    from sklearn.cluster import KMeans

    _seed_all(torch, seed)
    X = _as_float32(X)
    n_clusters = [k for k in CLUSTERS if k < len(X)]
    labels = [KMeans(k, random_state=seed, n_init="auto").fit_predict(X) for k in n_clusters]
    return PCC(**{"num_epochs": 2000, "k_epoch": 2, **options}).fit_transform(X, labels)


def _pymde(recipe: str) -> Callable[..., Any]:
    def embed(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
        del n_jobs
        import pymde
        import torch

        if seed is not None:
            pymde.seed(seed)
        options = {"device": "cuda" if torch.cuda.is_available() else "cpu", **options}
        problem = getattr(pymde, recipe)(
            np.asarray(X, dtype=np.float64), embedding_dim=2, verbose=False, **options
        )
        return problem.embed(verbose=False).cpu().numpy()

    return embed


def _torchdr(X: Any, seed: int | None, n_jobs: int, **options: Any) -> Any:
    """TorchDR's UMAP on a GPU."""
    del n_jobs
    import torch
    import torchdr

    if not torch.cuda.is_available():
        raise ImportError("no GPU to run TorchDR on")
    return torchdr.UMAP(random_state=seed, device="cuda", **options).fit_transform(_as_float32(X))


def _seed_all(torch: Any, seed: int | None) -> None:
    """Seed the global generators, for methods without a seed parameter."""
    if seed is not None:
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)


_SQUAD = "https://github.com/davnovak/SQuaD-MDS (a clone of it on the path)"
_DREAMS = "https://github.com/berenslab/DREAMS, branch tp, in an environment without openTSNE"
METHODS = {
    "mercat": Method("Mercat", "mercat._estimator", "mercat", _mercat),
    "umap": Method("UMAP", "umap", "umap-learn", _umap, is_default=True),
    "tsne": Method("t-SNE", "openTSNE", "openTSNE", _tsne, is_default=True),
    "pacmap": Method("PaCMAP", "pacmap", "pacmap", _pacmap, is_default=True),
    "pca": Method("PCA", "sklearn.decomposition", "scikit-learn", _pca, is_default=True),
    "mds": Method("metric MDS", "sklearn.manifold", "scikit-learn", _mds),
    "isomap": Method("Isomap", "sklearn.manifold", "scikit-learn", _isomap),
    "densmap": Method("densMAP", "umap", "umap-learn", _densmap),
    "umap-sphere": Method("UMAP on the sphere", "umap", "umap-learn", _umap_sphere),
    "localmap": Method("LocalMAP", "pacmap", "pacmap", _localmap),
    "ncvis": Method("NCVis", "ncvis", "ncvis", _ncvis, "pip install ncvis"),
    "trimap": Method("TriMap", "trimap", "trimap", _trimap, "pip install trimap"),
    "phate": Method("PHATE", "phate", "phate", _phate, "pip install phate"),
    "pymde-distances": Method(
        "PyMDE of distances", "pymde", "pymde", _pymde("preserve_distances"), "pip install pymde"
    ),
    "pymde-neighbors": Method(
        "PyMDE of neighbours", "pymde", "pymde", _pymde("preserve_neighbors"), "pip install pymde"
    ),
    "pcc": Method("PCC without clusters", "pcc", "pccdr", _pcc, "pip install pccdr"),
    "pcc-clusters": Method("PCC with clusters", "pcc", "pccdr", _pcc_clusters, "pip install pccdr"),
    "squad-mds": Method("SQuaD-MDS", "SQuadMDS.model", "SQuad-MDS", _squad_mds, _SQUAD),
    "squad-hybrid": Method(
        "SQuaD-MDS hybrid", "SQuadMDS.model", "SQuad-MDS", _squad_hybrid, _SQUAD
    ),
    "dreams": Method("DREAMS", "openTSNE", "openTSNE", _dreams, _DREAMS),
    "torchdr": Method("TorchDR", "torchdr", "torchdr", _torchdr, "pip install torchdr"),
}
