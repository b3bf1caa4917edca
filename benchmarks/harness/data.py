"""The paper's data sets by name, from generators or from a folder.

If the folder does not have the paper's file but a subset or a stand-in, that is read, and `note` says so:
tables must show it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mercat import datasets

Folder = str | os.PathLike[str] | None


class Data(NamedTuple):
    """A data set as used in experiments."""

    X: np.ndarray
    labels: np.ndarray
    note: str  # empty if it is the paper's own


class Entry(NamedTuple):
    """Metadata of a data set that is not loaded yet."""

    title: str
    kind: str  # "toy", "synthetic" or "real"
    load: Callable[[Folder, int], Data]
    drawn: bool  # a seed draws the data anew
    n_components: int | None = None  # principal components that the paper's measures use


def load(name: str, folder: Folder = None, seed: int = 1) -> Data:
    """Data set `name`; `seed` draws the synthetic ones, `folder` has the files of the others."""
    if name not in SETS:
        raise ValueError(f"name must be one of {', '.join(SETS)}, got {name!r}.")
    return SETS[name].load(folder, seed)


def _from_generator(generator: Callable[..., datasets.Dataset]) -> Callable[[Folder, int], Data]:
    def load(folder: Folder, seed: int) -> Data:
        X, labels = generator(random_state=seed)
        return Data(X, labels, "")

    return load


def _from_loader(loader: Callable[..., datasets.Dataset]) -> Callable[[Folder, int], Data]:
    def load(folder: Folder, seed: int) -> Data:
        X, labels = loader(folder)
        return Data(X, labels, "")

    return load


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.todense() if scipy.sparse.issparse(X) else X, dtype=np.float32)


def _paul15(folder: Folder, seed: int) -> Data:
    X, labels = datasets.paul15(folder)
    n, d = X.shape
    note = "" if (n, d) == (2730, 3451) else f"subset: {n} of 2730 cells, {d} of 3451 genes"
    return Data(_dense(X), labels, note)


def _or_substitute(
    loader: Callable[..., datasets.Dataset], file: str, note: str, labels: str = "labels"
) -> Callable[[Folder, int], Data]:
    """The paper's own set if the folder has it, otherwise a prepared file and a note."""

    def load(folder: Folder, seed: int) -> Data:
        try:
            X, classes = loader(folder)
            return Data(_dense(X), classes, "")
        except FileNotFoundError as error:
            where = folder if folder is not None else os.environ.get("MERCAT_DATA")
            if where is None or not (Path(where) / file).is_file():
                raise FileNotFoundError(f"{error} ({file} can be used instead: {note}.)") from error
        with np.load(Path(where) / file, allow_pickle=False) as arrays:
            return Data(_dense(arrays["X"]), arrays[labels], note)

    return load


SETS = {
    "smiley": Entry("Smiley", "toy", _from_generator(datasets.smiley), True),
    "mammoth": Entry("Mammoth", "toy", _from_loader(datasets.mammoth), False),
    "circle": Entry("Circle", "toy", _from_generator(datasets.circle), True),
    "unif5": Entry("Unif5", "synthetic", _from_generator(datasets.unif5), True),
    "gauss5": Entry("Gauss5", "synthetic", _from_generator(datasets.gauss5), True),
    "gauss10": Entry("Gauss10", "synthetic", _from_generator(datasets.gauss10), True),
    "gauss5_s": Entry("Gauss5-S", "synthetic", _from_generator(datasets.gauss5_s), True),
    "gauss5_d": Entry("Gauss5-D", "synthetic", _from_generator(datasets.gauss5_d), True),
    "blood": Entry(
        "Tab. Sap. blood",
        "real",
        _or_substitute(
            datasets.tabula_sapiens_blood,
            "pbmc68k_reduced.npz",
            "stand-in: PBMC 68k reduced, 700 blood cells, 765 genes",
        ),
        False,
    ),
    "pancreas": Entry(
        "Murine pancreas",
        "real",
        _or_substitute(
            datasets.pancreas,
            "pancreas_e15.npz",
            "subset: 1751 cells of day 15.5, 4000 variable genes",
        ),
        False,
        50,
    ),
    "paul15": Entry("Paul15", "real", _paul15, False, 50),
    "mnist_even": Entry("MNIST even", "real", _from_loader(datasets.mnist_even), False, 50),
    "cell_cycle": Entry(
        "Cell cycle",
        "real",
        _or_substitute(
            datasets.hela_cell_cycle,
            "fucci_ipsc.npz",
            "stand-in: FUCCI iPSC, 888 cells, 101 cyclic genes, not HeLa",
            labels="theta",
        ),
        False,
        50,
    ),
}
