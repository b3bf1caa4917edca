"""Run the methods of `mercat compare`, each with its defaults."""

from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._extras import MissingExtra, not_installed, require
from ._methods import Method


@dataclass(frozen=True)
class Outcome:
    """Result of a method: an embedding, or in `failure` the reason why there is none."""

    title: str
    Y: np.ndarray | None = None
    seconds: float | None = None
    failure: str | None = None
    scores: Any = None
    remarks: list[str] = field(default_factory=list)


def attempt(
    method: Method,
    X: np.ndarray,
    seed: int,
    n_jobs: int,
    options: dict[str, Any] | None = None,
) -> Outcome:
    """Run a method; if it is not installed or fails, record why."""
    stdout = io.StringIO()
    with _capturing_remarks() as remarks, contextlib.redirect_stdout(stdout):
        try:
            # Before the clock starts: Mercat is already imported.
            require(method.module, method.title, "peers")
            start = time.perf_counter()
            Y = np.asarray(method.embed(X, seed, n_jobs, **(options or {})), dtype=np.float64)
            seconds = time.perf_counter() - start
        except MissingExtra:
            reason = f"not installed: {method.source}" if method.source else not_installed("peers")
            return Outcome(method.title, failure=reason)
        except ImportError as error:
            return Outcome(method.title, failure=f"cannot be imported: {error}")
        except Exception as error:  # no error of one method may stop the others
            return Outcome(method.title, failure=f"failed: {type(error).__name__}: {error}")
    if Y.ndim != 2 or len(Y) != len(X) or not np.isfinite(Y).all():
        return Outcome(method.title, failure="failed: its embedding contains NaN or infinity")
    return Outcome(method.title, Y, seconds, remarks=sorted(set(remarks)))


@contextlib.contextmanager
def _capturing_remarks() -> Any:
    """Capture warnings and log messages."""
    remarks: list[str] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            remarks.append(record.getMessage())

    handler, root = RecordingHandler(logging.WARNING), logging.getLogger()
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield remarks
            ignored = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning)
            remarks += [
                " ".join(str(w.message).split())
                for w in caught
                if not issubclass(w.category, ignored)
            ]
    finally:
        root.removeHandler(handler)
