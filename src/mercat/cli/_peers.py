"""The methods that `mercat compare` sets side by side, each at its own defaults.

`benchmarks/harness/methods.py` runs them with the paper's settings, under other interpreters: the two share
nothing on purpose.
"""

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

from .._extras import MissingExtra, not_installed, require

_COMPONENTS = 50  # that t-SNE is customarily given


@dataclass(frozen=True)
class Method:
    """A method: its title, how its class is imported, and how that is run on X with a seed."""

    title: str
    load: Callable[[], Any]
    run: Callable[[Any, np.ndarray, int, int], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of a method: an embedding, or the reason why there is none."""

    title: str
    Y: np.ndarray | None = None
    seconds: float | None = None
    absent: str | None = None
    scores: Any = None
    remarks: list[str] = field(default_factory=list)


def _from(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(require(module, name, "peers"), name)


def _umap(UMAP: Any, X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs  # with a seed UMAP runs on one core
    return UMAP(random_state=seed, n_jobs=1).fit_transform(X)


def _tsne(TSNE: Any, X: np.ndarray, seed: int, n_jobs: int) -> Any:
    if X.shape[1] > _COMPONENTS:
        X = _principal_components(X, _COMPONENTS, seed)
    perplexity = min(30.0, (len(X) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, random_state=seed, n_jobs=n_jobs).fit(X))


def _pacmap(PaCMAP: Any, X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs
    return PaCMAP(n_components=2, random_state=seed).fit_transform(np.asarray(X, dtype=np.float32))


def _pca(PCA: Any, X: np.ndarray, seed: int, n_jobs: int) -> Any:
    del n_jobs
    return PCA(min(2, *X.shape), random_state=seed).fit_transform(X)


def _principal_components(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    return np.asarray(PCA(min(k, *X.shape), random_state=seed).fit_transform(X))


PEERS = {
    "umap": Method("UMAP", _from("umap", "UMAP"), _umap),
    "tsne": Method("t-SNE", _from("openTSNE", "TSNE"), _tsne),
    "pacmap": Method("PaCMAP", _from("pacmap", "PaCMAP"), _pacmap),
    "pca": Method("PCA", _from("sklearn.decomposition", "PCA"), _pca),
}


def mercat(parameters: dict[str, Any]) -> Method:
    """Mercat as a method."""

    def run(Mercat: Any, X: np.ndarray, *_: int) -> Any:  # both are among its parameters
        return Mercat(**parameters).fit_transform(X)

    return Method("Mercat", _from("mercat", "Mercat"), run)


def attempt(method: Method, X: np.ndarray, seed: int, n_jobs: int) -> Outcome:
    """Run a method; if it is not installed or fails, say so and go on."""
    said = io.StringIO()
    with _heard() as remarks, contextlib.redirect_stdout(said):
        try:
            method_class = method.load()  # before the clock starts: Mercat is imported already
            start = time.perf_counter()
            Y = np.asarray(method.run(method_class, X, seed, n_jobs), dtype=np.float64)
            seconds = time.perf_counter() - start
        except MissingExtra:
            return Outcome(method.title, absent=not_installed("peers"))
        except ImportError as error:
            return Outcome(method.title, absent=f"cannot be imported: {error}")
        except Exception as error:  # whatever a peer raises must not cost the others
            return Outcome(method.title, absent=f"failed: {type(error).__name__}: {error}")
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
