"""The BLAS in use and its threads, and the distance between rows."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info


def blas_threads() -> set[int]:
    """Maximum numbers of threads of the BLAS libraries."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def largest_distance(Y1: np.ndarray, Y2: np.ndarray) -> float:
    """Largest distance between corresponding rows."""
    return float(np.linalg.norm(Y1.astype(np.float64) - Y2, axis=1).max())
