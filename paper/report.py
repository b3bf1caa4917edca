"""Generate REPORT.md with all of its numbers from the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import (
    neighborhood,
    real,
    rivals,
    runtime,
    scaling,
    sections,
    spectrum,
    synthetic,
    theory,
)
from .experiment import HERE, store
from .numbers import Records, collect

TABLES = (
    synthetic.TABLE,
    real.TABLE,
    scaling.TABLE,
    neighborhood.TABLE,
    runtime.TABLE,
    spectrum.TABLE,
    theory.TABLE,
)


def main(folder: Path = HERE, beside: Records | None = None) -> Path:
    """Write the report of `folder`/results and of the rivals (`beside`), and return its path."""
    records = {name: store(name, folder).records for name in TABLES}
    path = folder / "REPORT.md"
    found = rivals.read() if beside is None else beside
    path.write_text(compose(records, folder, found), encoding="utf-8")
    return path


def compose(records: Mapping[str, Records], folder: Path, beside: Records) -> str:
    """Return the report; parts without results say so."""
    results = {}
    for name in (synthetic.TABLE, real.TABLE):
        results[name] = collect(records[name].values(), "set", "method", "n_components")
    notes = {r["set"]: r.get("note", "") for t in TABLES for r in records[t].values() if "set" in r}
    parts = [
        sections.opening(),
        sections.in_short(results, records[runtime.TABLE], notes),
        sections.data_sets(records),
        sections.synthetic_table(results[synthetic.TABLE], notes),
        sections.picture(folder, "toy", "Toy data and their embeddings (first draw)."),
        sections.picture(folder, "synthetic", "Synthetic data, coloured by cluster (first draw)."),
        sections.real_table(results[real.TABLE], notes),
        sections.picture(folder, "real", "Real data, coloured by their labels."),
        rivals.section(beside),
        sections.loss_table(results),
        sections.scaling_table(records[scaling.TABLE]),
        sections.neighborhood_table(records[neighborhood.TABLE]),
        sections.picture(folder, "mammoth", "The mammoth with different numbers of neighbours."),
        runtime.section(records[runtime.TABLE], records[real.TABLE], notes),
        spectrum.section(records[spectrum.TABLE]),
        sections.picture(folder, "spectrum", "Singular values and effective ranks."),
        theory.section(records[theory.TABLE]),
        sections.picture(folder, "theory", "Simulations of the theorems and of subsampling."),
        sections.methods_and_versions(records),
    ]
    return "\n".join(part for part in parts if part)
