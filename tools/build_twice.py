"""Build sdist and wheels twice, compare them, and leave them in dist/ (`make dist`).

    python tools/build_twice.py [PLATFORM ...]

Builds a wheel for each platform in CROSS of hatch_build.py, or for the given ones; the `ziglang` package
compiles for all of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import CROSS, VARIABLE  # noqa: E402


def build(folder: Path, platforms: list[str]) -> dict[str, str]:
    """Build into `folder` and return the names of the files with their SHA-256."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run([*command, "--sdist"], check=True, stdout=subprocess.DEVNULL)
    for platform in platforms:
        environment = {**os.environ, VARIABLE: platform}
        subprocess.run(
            [*command, "--wheel"], check=True, stdout=subprocess.DEVNULL, env=environment
        )
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def main() -> None:
    platforms = sys.argv[1:] or list(CROSS)
    if unknown := set(platforms) - set(CROSS):
        sys.exit(f"A platform must be one of {', '.join(CROSS)}, got {', '.join(unknown)}.")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        first_build, second_build = (build(Path(folder), platforms) for folder in (first, second))
        if first_build != second_build:
            sys.exit(f"Two builds differ: {first_build} and {second_build}.")
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for name, digest in first_build.items():
            shutil.copy(Path(first) / name, dist / name)
            print(f"{digest}  dist/{name}")


if __name__ == "__main__":
    main()
