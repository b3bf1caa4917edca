"""Loaders of MNIST, the mammoth, and prepared .npz files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._data.checks import check_choice
from .._files.untrusted import read_npz, reading
from ._dataset import Dataset
from ._files import Folder, find, read_arff, read_idx, read_json

N_TRAIN = 60_000


def from_npz(path: str | os.PathLike[str]) -> Dataset:
    """Read a prepared data set: an .npz file with the arrays X and labels.

    Arrays named genes and cells become feature and sample names. Pickled objects are refused.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Dataset
        X and labels as stored.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from mercat import datasets
    >>> path = tempfile.mkdtemp() + "/mine.npz"
    >>> np.savez(path, X=np.eye(3), labels=["a", "b", "a"])
    >>> X, labels = datasets.from_npz(path)
    >>> labels.tolist()
    ['a', 'b', 'a']
    """
    arrays = read_npz(Path(path))
    for name in ("X", "labels"):
        if name not in arrays:
            raise ValueError(f"{path} must hold the array {name}, got {sorted(arrays)}.")
    X, labels = arrays["X"], arrays["labels"]
    if X.ndim != 2 or labels.shape != X.shape[:1]:
        raise ValueError(
            f"{path} must hold X of shape (n, d) and n labels, got {X.shape} and {labels.shape}."
        )
    return Dataset(
        X,
        labels,
        feature_names=arrays.get("genes"),
        sample_names=arrays.get("cells"),
        source=str(path),
    )


def mnist_even(folder: Folder = None) -> Dataset:
    """Even digits of MNIST: the 29,492 training images of 0, 2, 4, 6 and 8.

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        data are one of

        - ``mnist.npz``, with X and labels in the usual order, or in the format of Keras;
        - ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``, also with .gz;
        - the cache of ``sklearn.datasets.fetch_openml("mnist_784", data_home=folder)``.

    Returns
    -------
    Dataset
        X of shape (29492, 784), float32 in [0, 255], and the digit of each image.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, digit = datasets.mnist_even("data")  # doctest: +SKIP
    """
    images = "train-images-idx3-ubyte"
    cache = "openml/openml.org/data/v1/download"
    path = find(
        folder,
        [
            "mnist.npz",
            f"{images}.gz",
            images,
            f"{cache}/52667/mnist_784.arff.gz",
            f"{cache}/52667.gz",
        ],
        "For MNIST, download train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz from "
        "https://ossci-datasets.s3.amazonaws.com/mnist/ into the folder, or run "
        'sklearn.datasets.fetch_openml("mnist_784", version=1, data_home=folder).',
    )
    with reading(path):
        X, labels = _read_mnist(path)
        X, labels = X[:N_TRAIN], np.asarray(labels[:N_TRAIN], dtype=np.int64)
        even = labels % 2 == 0
        return Dataset(X[even].astype(np.float32), labels[even], source=str(path))


def _read_mnist(path: Path) -> tuple[Any, Any]:
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "x_train" in arrays:
            return arrays["x_train"].reshape(len(arrays["x_train"]), -1), arrays["y_train"]
        prepared = from_npz(path)
        return prepared.X, prepared.labels
    if "openml" in path.parts:
        table = read_arff(path)
        return table[:, :-1], table[:, -1]
    images = read_idx(path)
    labels = read_idx(path.with_name(path.name.replace("images-idx3", "labels-idx1")))
    return images.reshape(len(images), -1), labels


def mammoth(folder: Folder = None, *, size: Literal["10k", "50k"] = "10k") -> Dataset:
    """Points on the skeleton of a mammoth in three dimensions.

    A scan by the Smithsonian Institution, reduced to points for *Understanding UMAP*.

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        file is one of

        - ``mammoth_10k.npz`` (``mammoth_50k.npz`` for 50,000 points), with X and labels;
        - ``mammoth_3d.json`` (``mammoth_3d_50k.json``). The labels of the 10,000 points are read
          from ``mammoth_10k_encoded.json`` in the same folder.
    size : {"10k", "50k"}, default="10k"
        Number of points.

    Returns
    -------
    Dataset
        X of shape (10000, 3) or (50000, 3), and the number of the body part of each point, or
        zeros if there is no file of labels.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, part = datasets.mammoth("data")  # doctest: +SKIP
    """
    check_choice("size", size, ("10k", "50k"))
    raw = "mammoth_3d.json" if size == "10k" else "mammoth_3d_50k.json"
    path = find(
        folder,
        [f"mammoth_{size}.npz", raw],
        f"For the mammoth, download raw_data/{raw} (and public/mammoth_10k_encoded.json, which "
        "has the labels of the 10k points) from "
        "https://github.com/PAIR-code/understanding-umap into the folder.",
    )
    if path.suffix == ".npz":
        return from_npz(path)
    with reading(path):
        X = np.array(read_json(path), dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"{path} must hold one point per row, got shape {X.shape}.")
    parts = path.with_name("mammoth_10k_encoded.json")
    labels = np.zeros(len(X), dtype=np.int64)
    if size == "10k" and parts.is_file():
        # Points are sorted by part; labelOffsets holds the number of points per part.
        with reading(parts):
            counts = np.asarray(read_json(parts)["labelOffsets"])
            if counts.dtype.kind != "i" or counts.min() < 0 or counts.sum() != len(X):
                raise ValueError(f"{parts} must label {len(X)} points, got {counts.sum()}.")
            labels = np.repeat(np.arange(len(counts)), counts)
    return Dataset(X, labels, source=str(path))
