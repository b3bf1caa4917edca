"""Build sdist and wheel twice, compare them, and leave them in dist/: what `make dist` runs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> dict[str, str]:
    """Names of the built files, with their SHA-256."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        built, again = build(Path(first)), build(Path(second))
        if built != again:
            sys.exit(f"Two builds differ: {built} and {again}.")
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for name, digest in built.items():
            shutil.copy(Path(first) / name, dist / name)
            print(f"{digest}  dist/{name}")


if __name__ == "__main__":
    main()
