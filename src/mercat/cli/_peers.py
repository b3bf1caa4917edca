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
    """Result of a method: an embedding, or the reason why there is none."""

    title: str
    Y: np.ndarray | None = None
    seconds: float | None = None
    absent: str | None = None
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
    said = io.StringIO()
    with _captured_remarks() as remarks, contextlib.redirect_stdout(said):
        try:
            # Before the clock starts: Mercat is already imported.
            require(method.module, method.title, "peers")
            start = time.perf_counter()
            Y = np.asarray(method.embed(X, seed, n_jobs, **(options or {})), dtype=np.float64)
            seconds = time.perf_counter() - start
        except MissingExtra:
            how = f"not installed: {method.source}" if method.source else not_installed("peers")
            return Outcome(method.title, absent=how)
        except ImportError as error:
            return Outcome(method.title, absent=f"cannot be imported: {error}")
        except Exception as error:  # no error of one method may stop the others
            return Outcome(method.title, absent=f"failed: {type(error).__name__}: {error}")
    if Y.ndim != 2 or len(Y) != len(X) or not np.isfinite(Y).all():
        return Outcome(method.title, absent="failed: its embedding contains NaN or infinity")
    return Outcome(method.title, Y, seconds, remarks=sorted(set(remarks)))


@contextlib.contextmanager
def _captured_remarks() -> Any:
    """Capture warnings and log messages."""
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
