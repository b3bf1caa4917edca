"""The table of toy and synthetic data: 8 sets, 3 draws, all methods."""

from __future__ import annotations

from benchmarks.harness.data import SETS

from .experiment import METHODS, SEEDS, Task, run

TABLE = "synthetic"
NAMES = [name for name, entry in SETS.items() if entry.kind != "real"]


def tasks() -> list[Task]:
    """Tasks of the table. As in the paper, Smiley and Mammoth have one draw for Algorithm 1:
    1000 passes over 3000 and 10,000 points take minutes.
    """
    return [
        Task(name, method, seed)
        for name in NAMES
        for method in METHODS
        for seed in SEEDS
        if seed == 1 or method != "mercat-algorithm1" or name not in ("smiley", "mammoth")
    ]


def main(folder: str | None) -> None:
    run(TABLE, tasks(), folder)
