"""Spectral denoising: the leading principal components of the data."""

from __future__ import annotations

from typing import Any

import numpy as np


def denoise(X: Any, n_spectral: int | str, random_state: int = 0) -> Any:
    """Coordinates of X on its first `n_spectral` principal components."""
    del random_state
    centred = np.asarray(X) - np.mean(X, axis=0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    rank = int(np.sum(s > 2.86 * np.median(s))) if n_spectral == "auto" else int(n_spectral)
    rank = max(rank, 1)
    return U[:, :rank] * s[:rank]
