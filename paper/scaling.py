"""Whether the scaling of features, which the paper does not state, explains its numbers."""

from __future__ import annotations

from .experiment import SCALINGS, Task, run

TABLE = "scaling"
METHODS = ("mercat", "mercat-absolute", "umap", "tsne")
SCALED = {"mnist_even": ["as is", "standardized"], "paul15": list(SCALINGS)}


def tasks() -> list[Task]:
    return [
        Task(name, method, 1, scaling=scaling)
        for name, scalings in SCALED.items()
        for scaling in scalings
        for method in METHODS
        if name == "paul15" or method.startswith("mercat")
    ]


def main(folder: str | None) -> None:
    run(TABLE, tasks(), folder)
