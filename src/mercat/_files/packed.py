"""Fitted models as byte arrays, which containers of arrays such as `uns` of AnnData can store."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .._estimator import Mercat
from .model import read_model, write_model


def pack(model: Mercat) -> np.ndarray:
    """Model file as bytes, without parameters that cannot be saved and are not needed by `transform`."""
    copied = copy.copy(model)
    copied.set_params(callback=None, verbose=False, device=None, init="auto")
    if scipy.sparse.issparse(copied.neighbors):
        copied.set_params(neighbors=None)
    if not isinstance(copied.random_state, int | np.integer | None):
        copied.set_params(random_state=None)
    with tempfile.TemporaryDirectory() as folder:
        return np.fromfile(write_model(copied, Path(folder) / "map.mercat"), dtype=np.uint8)


def unpack(content: Any, name: str) -> Mercat:
    """Read a model written by `pack`, with the same checks as for model files; errors start with `name`."""
    content = np.asarray(content)
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ValueError(f"{name} must be bytes, got {content.dtype} of shape {content.shape}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.mercat"
        content.tofile(path)
        try:
            return read_model(path)[0]
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), name)) from None
