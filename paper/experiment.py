"""Run a task: embed a data set with a method, compute four measures, and save the record.

Results are in `results/<table>.json`, one record per task; embeddings for the figures are in `cache/` (not
committed). A task with a record is not run again.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from benchmarks.harness import data, measure, peers
from benchmarks.harness.record import Store, stamp
from mercat._reduce.reducer import denoise

HERE = Path(__file__).resolve().parent
METHODS = (
    *("mercat", "mercat-absolute", "mercat-algorithm1"),
    *("umap", "tsne", "ncvis", "densmap", "pacmap", "pca"),
)
PEERS = tuple(method for method in METHODS if not method.startswith("mercat"))
SEEDS = (1, 2, 3)
N_LOSS = 900  # number of points whose triples are used for the loss


class Task(NamedTuple):
    """One embedding to compute."""

    name: str  # name of the set
    method: str
    seed: int
    neighbors: int | None = None
    n_components: int | None = None  # principal components given to the method; None: raw data
    scaling: str = "as is"
    options: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        parts = [self.name, self.method, f"seed {self.seed}"]
        if self.neighbors is not None:
            parts.append(f"neighbors {self.neighbors}")
        if self.n_components is not None:
            parts.append(f"{self.n_components} components")
        if self.scaling != "as is":
            parts.append(self.scaling)
        return ", ".join(parts)


def store(table: str, folder: Path = HERE) -> Store:
    return Store(folder / "results" / f"{table}.json")


def cached(table: str, task: Task) -> Path:
    """Path of the cached embedding of a task."""
    return HERE / "cache" / table / f"{task.key}.npy"


@functools.lru_cache(maxsize=2)
def reference(
    name: str, folder: str | None, seed: int, scaling: str = "as is"
) -> measure.Reference:
    loaded = data.load(name, folder, seed)
    loaded = loaded._replace(X=SCALINGS[scaling](loaded.X))
    return measure.reference(loaded, data.SETS[name].n_components)


def measures(ref: measure.Reference, Y: np.ndarray) -> dict[str, dict[str, float]]:
    """The paper's four measures, with standard errors of sampled ones, and its loss."""
    found = {
        name: {"value": round(float(s), 5), "standard_error": round(s.standard_error, 6)}
        for name, s in measure.four_measures(ref, Y).items()
    }
    if Y.shape[1] == 3:
        loss = measure.paper_loss(denoise(ref.data.X, 50), Y, N_LOSS)
        found["loss"] = {"value": round(loss, 5), "standard_error": 0.0}
    return found


def run(table: str, tasks: Iterable[Task], folder: str | None) -> None:
    """Run the tasks without a record, one method at a time, so that each compiles once."""
    results = store(table)
    todo = [task for task in tasks if task.key not in results]
    todo.sort(key=lambda task: METHODS.index(task.method))  # stable: sets stay in order
    with tqdm(total=len(todo), desc=table, unit="embedding", disable=not todo) as bar:
        for method, group in itertools.groupby(todo, key=lambda task: task.method):
            with peers.Session(method) as session:
                for task in group:
                    bar.set_postfix_str(task.key)
                    results.put(task.key, _result(table, task, folder, session))
                    bar.update()


def _result(table: str, task: Task, folder: str | None, session: Any) -> dict[str, Any]:
    drawn = task.seed if data.SETS[task.name].drawn else 1
    try:
        ref = reference(task.name, folder, drawn, task.scaling)
    except FileNotFoundError as error:
        outcome = {"status": "no data", "reason": str(error)}
        return stamp(**_fields(task), **outcome)
    Y, outcome = session.run(
        ref.data.X,
        seed=task.seed,
        neighbors=task.neighbors,
        n_components=task.n_components,
        options=task.options,
    )
    n, d = ref.data.X.shape
    about = {"n": n, "d": d, "note": ref.data.note, "screenot_rank": ref.denoised.shape[1]}
    if Y is not None:
        path = cached(table, task)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, Y.astype(np.float32), allow_pickle=False)
        outcome["measures"] = measures(ref, Y)
    return stamp(**_fields(task), **about, **outcome)


def _fields(task: Task) -> dict[str, Any]:
    fields = task._asdict()
    fields["set"] = fields.pop("name")
    return fields


def embedding(table: str, task: Task, folder: str | None) -> np.ndarray | None:
    """Embedding of a task, computed again if it is not cached; None if that is impossible."""
    path = cached(table, task)
    if not path.is_file():
        results = store(table)
        with peers.Session(task.method) as session:
            found = _result(table, task, folder, session)
        # A record stays if its method is not installed here.
        if path.is_file() or task.key not in results:
            results.put(task.key, found)
    return np.load(path, allow_pickle=False) if path.is_file() else None


# ------------------------------------------------------------------ scalings


def _standardized(X: np.ndarray) -> np.ndarray:
    """Standardize each feature; constant ones become 0."""
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def _most_variable(X: np.ndarray) -> np.ndarray:
    """The 1000 features with the largest dispersion (variance divided by mean), standardized.

    As in Zheng et al. (2017), whose recipe the PAGA repository applies to Paul15.
    """
    mean, variance = X.mean(axis=0), X.var(axis=0)
    dispersion = np.where(mean > 0, variance / np.where(mean > 0, mean, 1), 0)
    return _standardized(X[:, np.sort(np.argsort(-dispersion)[:1000])])


SCALINGS = {
    "as is": lambda X: X,
    "standardized": _standardized,
    "1000 most variable, standardized": _most_variable,
}
