"""The return type of the generators and loaders."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Dataset(tuple[Any, npt.NDArray[Any]]):
    """A pair (X, labels) with additional attributes, which unpacks as in ``X, labels = mnist_even()``.

    Attributes
    ----------
    X : ndarray or scipy.sparse.csr_array of shape (n, d)
        The data, one row per point.
    labels : ndarray of shape (n,)
        Class of each point, or a number to colour it by.
    feature_names, sample_names : ndarray of str, or None
        Names of the columns and rows, if the source has them.
    source : str
        Name of the generator, or path of the file.

    Examples
    --------
    >>> from mercat import datasets
    >>> smiley = datasets.smiley()
    >>> smiley
    Dataset(3000 x 2, 4 labels, from smiley)
    >>> X, labels = smiley
    >>> X is smiley.X
    True
    """

    feature_names: npt.NDArray[np.str_] | None
    sample_names: npt.NDArray[np.str_] | None
    source: str

    def __new__(
        cls,
        X: Any,
        labels: Any,
        *,
        feature_names: Any = None,
        sample_names: Any = None,
        source: str = "",
    ) -> Dataset:
        dataset = super().__new__(cls, (X, np.asarray(labels)))
        dataset.feature_names = None if feature_names is None else np.asarray(feature_names, str)
        dataset.sample_names = None if sample_names is None else np.asarray(sample_names, str)
        dataset.source = source
        return dataset

    def __getnewargs__(self) -> tuple[Any, npt.NDArray[Any]]:  # for copies and pickles
        return self.X, self.labels

    @property
    def X(self) -> Any:
        return self[0]

    @property
    def labels(self) -> npt.NDArray[Any]:
        return self[1]

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({n} x {d}, {len(np.unique(self.labels))} labels, from {self.source})"
