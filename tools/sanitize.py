"""Run the tests of the kernels on a library with AddressSanitizer and UndefinedBehaviorSanitizer.

    python tools/sanitize.py

First, `tests/threads.c` runs with ThreadSanitizer. Requires GCC with its sanitizers. Out-of-bounds access,
undefined behaviour and data races end the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTRUMENTED = ["-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
INSTRUMENTED += ["-fno-sanitize-recover=all"]


def main() -> int:
    from mercat._kernels import _build

    runtimes = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "threads")
        source = str(ROOT / "tests" / "threads.c")
        options = ["-std=gnu99", "-O1", "-g", "-fsanitize=thread", "-lpthread"]
        subprocess.run(["gcc", source, *options, "-o", program], check=True)
        subprocess.run([program], check=True)
        library = _build.build(Path(folder) / _build.library().name, ["gcc"], extra=INSTRUMENTED)
        environment = {
            **os.environ,
            "LD_PRELOAD": " ".join(runtimes),
            "ASAN_OPTIONS": "detect_leaks=0",  # leaks of Python at exit
            "CI": "1",
        }
        command = [sys.executable, __file__, str(library)]
        return subprocess.run(command, env=environment, check=False, cwd=ROOT).returncode


def run_tests(library: Path) -> int:
    """Run the tests, except those of building, in this process, without capturing output."""
    import pytest

    from mercat._kernels import _build

    sys.path.insert(0, str(ROOT))
    _build.library = lambda: library
    return int(
        pytest.main(
            ["-q", "-s", "-n", "0", "tests/test_kernels.py", "-k", "not build and not built"]
        )
    )


if __name__ == "__main__":
    sys.exit(run_tests(Path(sys.argv[1])) if len(sys.argv) > 1 else main())
