"""Transformations by --log1p and --scale, stored with the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._problems import BadInput
from ._table import Table

STEPS = ("log1p", "scale")


@dataclass(frozen=True)
class Preparation:
    """log(1 + x), then (x - center) / scale per column; None skips a step."""

    log1p: bool = False
    center: np.ndarray | None = None
    scale: np.ndarray | None = None

    @classmethod
    def fit(cls, table: Table, *, log1p: bool, scale: bool, metric: str) -> Preparation:
        """Preparation by the options, with centre and scale of this table."""
        if not scale:
            return cls(log1p)
        if metric == "precomputed":
            raise BadInput("--scale is for columns of numbers, not for precomputed distances.")
        if table.is_sparse and metric != "euclidean":
            raise BadInput(
                f"--scale centres the columns, which with --metric {metric} needs dense data: {table.path} "
                "is sparse."
            )
        X = cls(log1p).apply(table)
        if table.is_sparse:
            center = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
            squares = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
            spread = np.sqrt(np.maximum(squares - center**2, 0))
            # Euclidean distances do not depend on the centre, and centred data would be dense.
            return cls(log1p, None, np.where(spread > 0, spread, 1.0))
        center, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        constant = X.max(axis=0) == X.min(axis=0)  # their spread is only rounding error
        return cls(log1p, center, np.where(constant, 1.0, spread))

    def apply(self, table: Table) -> Any:
        """Prepare the numbers of a table."""
        X = table.X
        if self.log1p:
            X = self._log1p(table)
        if self.scale is None:
            return X
        if not isinstance(X, np.ndarray):
            if self.center is not None:
                X = np.asarray(X.toarray())
            else:
                import scipy.sparse

                scaled = X @ scipy.sparse.diags_array(1 / self.scale)
                return scipy.sparse.csr_array(scaled).astype(_floating(X.dtype))
        dtype = _floating(X.dtype)
        X = X - (0.0 if self.center is None else self.center)
        X /= self.scale
        return X.astype(dtype, copy=False)

    @staticmethod
    def _log1p(table: Table) -> Any:
        X = table.X.astype(_floating(table.X.dtype))
        lowest = float(X.min())
        if lowest < 0:
            row, column = np.unravel_index(int(X.argmin()), X.shape)
            raise BadInput(
                f"{table.locate(int(row), int(column))}: --log1p needs numbers of at least 0, got {lowest:g}."
            )
        return np.log1p(X)

    def __bool__(self) -> bool:
        """Whether there is any step."""
        return self.log1p or self.scale is not None

    def __str__(self) -> str:
        taken = (self.log1p, self.scale is not None)
        return ", ".join(step for step, is_taken in zip(STEPS, taken, strict=True) if is_taken)

    def missing_steps(self, prepared: str) -> list[str]:
        """Options of the steps in `prepared`, the text of a preparation, that are not in this one."""
        own = str(self).split(", ")
        named = prepared.split(", ")
        return [f"--{step}" for step in STEPS if step in named and step not in own]

    def notes(self) -> dict[str, Any]:
        """Entries of the model file."""
        return {
            "prepared": str(self),
            "log1p": self.log1p,
            "center": self.center,
            "scale": self.scale,
        }

    @classmethod
    def from_notes(cls, notes: dict[str, Any], n_features: int, path: Path) -> Preparation:
        """Read and check the entries of a model file."""
        center, scale = notes.get("center"), notes.get("scale")
        for name, column in (("center", center), ("scale", scale)):
            if column is not None and (
                not isinstance(column, np.ndarray)
                or column.shape != (n_features,)
                or not np.isfinite(column).all()
            ):
                raise BadInput(f"{path}: its {name} must be {n_features} numbers.")
        if scale is not None and not (scale > 0).all():
            raise BadInput(f"{path}: its scale must be positive.")
        return cls(bool(notes.get("log1p")), center, scale)


def _floating(dtype: Any) -> Any:
    return dtype if dtype in (np.float32, np.float64) else np.float64
