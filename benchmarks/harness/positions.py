"""Cache of embeddings outside the repository.

An embedding is a file `<set>/<method>, seed <n>.npy` with its outcome in a `.json` file, which is written
last: an embedding without one is ignored, as is one of other data.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

VARIABLE = "MERCAT_POSITIONS"


def fingerprint(X: np.ndarray) -> str:
    """Fingerprint of data: shape, type and bytes."""
    X = np.ascontiguousarray(X)
    digest = hashlib.sha256(f"{X.shape} {X.dtype}".encode())
    digest.update(X.tobytes())
    return digest.hexdigest()[:16]


class Positions:
    """Embeddings in a folder, by set, method and seed.

    Parameters
    ----------
    folder : path
        The folder; it need not exist yet.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def outcome(self, name: str, method: str, seed: int, data: str) -> dict[str, Any] | None:
        """Outcome of a run on data with this fingerprint, or None."""
        path = self._path(name, method, seed, ".json")
        if not path.is_file():
            return None
        outcome: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return outcome if outcome["data"] == data else None

    def embedding(self, name: str, method: str, seed: int) -> np.ndarray:
        """The positions (n, 2 or 3)."""
        embedding: np.ndarray = np.load(self._path(name, method, seed, ".npy"), allow_pickle=False)
        return embedding

    def put(
        self,
        name: str,
        method: str,
        seed: int,
        data: str,
        Y: np.ndarray | None,
        outcome: dict[str, Any],
    ) -> None:
        """Store an embedding, if there is one, and its outcome."""
        path = self._path(name, method, seed, ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if Y is not None:
            np.save(path.with_suffix(".npy"), Y, allow_pickle=False)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps({**outcome, "data": data}, indent=1), encoding="utf-8")
        draft.replace(path)

    def _path(self, name: str, method: str, seed: int, suffix: str) -> Path:
        return self.folder / name / f"{method}, seed {seed}{suffix}"
