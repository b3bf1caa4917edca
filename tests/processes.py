"""Run Python code in separate processes, for tests of signals, threads and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def environment(env: dict[str, str] | None = None) -> dict[str, str]:
    """Environment of this process with additional variables and the shared test modules."""
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders)), **(env or {})}


def python(code: str, *arguments: object, env: dict[str, str] | None = None) -> Any:
    """Run a program and parse the last line of its output as JSON; warnings and errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code, *map(str, arguments)],
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
