"""Results as JSON, with versions, machine and time.

A `Store` is one file with one record per key, rewritten atomically after each result: an interrupted
experiment continues where it stopped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Cores, processor and system, without names of host or user."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": cores, "cpu": _cpu_model(), "system": platform.system()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line for line in lines if line.startswith("model name"))
        return model.split(":", 1)[1].strip()
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def stamp(**fields: Any) -> dict[str, Any]:
    """Return a record of the fields, the machine and the time (UTC)."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {**fields, "machine": machine(), "time": now}


class Store:
    """Records by key in one JSON file.

    Parameters
    ----------
    path : path
        The file; it need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.records: dict[str, dict[str, Any]] = {}
        if self.path.is_file():
            self.records = json.loads(self.path.read_text())

    def __contains__(self, key: str) -> bool:
        return key in self.records

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self.records[key]

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Store a record; the file is replaced atomically."""
        self.records[key] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.records, indent=1, sort_keys=True) + "\n")
        draft.replace(self.path)


def each_set(
    description: str | None,
    sets: Sequence[str],
    results: Path,
    run: Callable[[str, str, Store], None],
) -> None:
    """Command line of a benchmark: call run(name, folder, store) for all data sets, or those named."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, help="folder of the real data sets")
    parser.add_argument("sets", nargs="*", default=list(sets), help="all by default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    store = Store(results)
    for name in arguments.sets:
        run(name, arguments.data, store)
