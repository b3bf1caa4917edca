"""A fit whose bits are compared between processes, threads and kernels."""

from __future__ import annotations

import hashlib
from unittest import mock

import numpy as np
from kernels import largest_distance
from sklearn.datasets import load_digits

from mercat import Mercat
from mercat._detail import descent


def fingerprint(n_jobs: int = 1, detail: float = 0.0, n: int = 600) -> dict:
    """Hash of the results of a fit and a transform, and quality of the map."""
    X = load_digits().data[:n]
    parameters = {"solver": "landmarks", "n_landmarks": 200, "random_state": 0}
    model = Mercat(detail=detail, n_jobs=n_jobs, **parameters)
    with mock.patch.object(
        descent, "N_ITER", 60
    ):  # a fifth, which suffices to compare bits and maps
        Y = model.fit_transform(X)
    new = model.transform(X[:300] + 0.5)
    arrays = [Y, new, model.point_loss_, model.landmarks_, model.history_]
    return {
        "bits": hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest(),
        "a row alone": largest_distance(model.transform(X[20:21] + 0.5), new[20:21]),
        "loss": model.loss_,
        "correlation": model.correlation_,
        "off the sphere": float(np.abs(np.linalg.norm(Y, axis=1) - 1).max()),
    }
