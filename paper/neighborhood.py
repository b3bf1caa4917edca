"""The neighbourhood study: four methods, five neighbourhood sizes, three data sets."""

from __future__ import annotations

from .experiment import Task, run

TABLE = "neighborhood"
METHODS = ("umap", "tsne", "ncvis", "densmap")
SIZES = {
    "unif5": (15, 30, 50, 100, 200),
    "mammoth": (15, 30, 50, 100, 200),
    "paul15": (15, 30, 100, 200, 500),
}


def tasks() -> list[Task]:
    return [
        Task(name, method, 1, neighbors=size)
        for name, sizes in SIZES.items()
        for method in METHODS
        for size in sizes
    ]


def main(folder: str | None) -> None:
    run(TABLE, tasks(), folder)
