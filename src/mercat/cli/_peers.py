"""The methods that `mercat compare` sets side by side, each at its own defaults."""

from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_COMPONENTS = 50  # that t-SNE is customarily given


@dataclass(frozen=True)
class Method:
    """A method: how it is called, in print and by pip, and how it is run on X with a seed."""

    title: str
    distribution: str
    run: Callable[[np.ndarray, int, int], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of a method: an embedding, or the reason why there is none."""

    title: str
    Y: np.ndarray | None = None
    seconds: float | None = None
    absent: str | None = None
    scores: Any = None
    remarks: list[str] = field(default_factory=list)


def _umap(X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs  # with a seed UMAP runs on one core
    from umap import UMAP

    return UMAP(random_state=seed, n_jobs=1).fit_transform(X)


def _tsne(X: np.ndarray, seed: int, n_jobs: int) -> Any:
    from openTSNE import TSNE

    if X.shape[1] > _COMPONENTS:
        X = _principal_components(X, _COMPONENTS, seed)
    perplexity = min(30.0, (len(X) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, random_state=seed, n_jobs=n_jobs).fit(X))


def _pacmap(X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs
    from pacmap import PaCMAP

    return PaCMAP(n_components=2, random_state=seed).fit_transform(np.asarray(X, dtype=np.float32))


def _pca(X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs
    return _principal_components(X, 2, seed)


def _principal_components(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    return np.asarray(PCA(min(k, *X.shape), random_state=seed).fit_transform(X))


PEERS = {
    "umap": Method("UMAP", "umap-learn", _umap),
    "tsne": Method("t-SNE", "openTSNE", _tsne),
    "pacmap": Method("PaCMAP", "pacmap", _pacmap),
    "pca": Method("PCA", "scikit-learn", _pca),
}


def mercat(parameters: dict[str, Any]) -> Method:
    """Mercat as a method."""

    def run(X: np.ndarray, seed: int, n_jobs: int) -> Any:
        from .. import Mercat

        return Mercat(**{**parameters, "random_state": seed, "n_jobs": n_jobs}).fit_transform(X)

    return Method("Mercat", "mercat", run)


def attempt(method: Method, X: np.ndarray, seed: int, n_jobs: int) -> Outcome:
    """Run a method; if it is not installed or fails, say so and go on."""
    said = io.StringIO()
    with _heard() as remarks, contextlib.redirect_stdout(said):
        start = time.perf_counter()
        try:
            Y = np.asarray(method.run(X, seed, n_jobs), dtype=np.float64)
        except ImportError as error:
            advice = f"not installed: pip install {method.distribution}"
            if error.name is not None and error.name not in ("umap", "openTSNE", "pacmap"):
                advice = f"cannot be imported: {error}"
            return Outcome(method.title, absent=advice)
        except Exception as error:  # whatever a peer raises must not cost the others
            return Outcome(method.title, absent=f"failed: {type(error).__name__}: {error}")
        seconds = time.perf_counter() - start
    if Y.ndim != 2 or len(Y) != len(X) or not np.isfinite(Y).all():
        return Outcome(method.title, absent="failed: its embedding holds NaN or infinity")
    return Outcome(method.title, Y, seconds, remarks=sorted(set(remarks)))


@contextlib.contextmanager
def _heard() -> Any:
    """What is warned of and logged, which would otherwise run over the screen."""
    remarks: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            remarks.append(record.getMessage())

    keeper, root = Keeper(logging.WARNING), logging.getLogger()
    root.addHandler(keeper)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield remarks
            skipped = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
            remarks += [
                " ".join(str(w.message).split())
                for w in caught
                if not issubclass(w.category, skipped)
            ]
    finally:
        root.removeHandler(keeper)
