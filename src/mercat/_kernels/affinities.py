"""Affinities of neighbours (affinities.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._library import contiguous, run

MAX_EDGES = 128  # most edges of a row for which paths are searched


def longest_steps(X: np.ndarray, graph: Any, lengths: np.ndarray, n_threads: int) -> np.ndarray:
    """See `_detail.affinities.longest_steps`."""
    steps = lengths.astype(np.float32, order="C")
    ends, columns = contiguous(graph.indptr, np.int64), contiguous(graph.indices, np.int32)
    run("longest_steps", n_threads, *X.shape, ends, columns, contiguous(X, np.float32), steps)
    return steps
