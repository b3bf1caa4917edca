"""Compile the kernels to a shared library, at installation or, in a source tree, at first use.

This needs a C compiler with GCC's options: the one named by the environment variable CC, or the first of cc,
gcc and clang. The name of the library contains a hash of the source and the compiler options, so that an
outdated library is not used.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
# Sums are evaluated in source order, except those marked "omp simd" (no OpenMP library is needed); NaN and
# infinity are preserved.
OPTIONS = [
    "-std=gnu99",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-ffp-contract=fast",
    "-Wall",
    "-Wextra",
]
# Sums must not depend on the alignment of a row in memory.
GCC_ONLY = ["--param=vect-max-peeling-for-alignment=0"]
# Instruction sets for which all kernels are compiled; `cpu.c` detects which of them a processor supports.
LEVELS: dict[str, list[str]] = {
    "any": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"],
}
_ONCE = {"cpu.c", "threads.c"}


class CannotBuild(Exception):
    """There is no compiler, or it failed; the message says why."""


def levels(machine: str) -> list[str]:
    """Instruction sets of a type of processor; all but the first are for x86-64."""
    return list(LEVELS) if machine.lower() in ("x86_64", "amd64") else ["any"]


def ending(system: str) -> str:
    """File extension of a shared library."""
    return {"darwin": "dylib", "win32": "dll"}.get(system, "so")


def library(folder: Path = FOLDER, system: str = sys.platform) -> Path:
    """Path of the library that matches the source, whether it exists or not."""
    digest = hashlib.sha256(repr((OPTIONS, GCC_ONLY, LEVELS)).encode())
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return folder / f"kernels-{digest.hexdigest()[:16]}.{ending(system)}"


def compiler() -> list[str]:
    """Command of an available compiler."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return [found]
    raise CannotBuild("there is no C compiler (cc, gcc, clang, or the one that CC names)")


def build(
    target: Path,
    command: Sequence[str] | None = None,
    *,
    machine: str = platform.machine(),
    extra: Sequence[str] = (),
) -> Path:
    """Compile the sources in this folder to `target`, which is written atomically."""
    command = compiler() if command is None else list(command)
    with tempfile.TemporaryDirectory() as scratch:
        objects: list[str] = []
        jobs = []
        gcc = "clang" not in _run([*command, "--version"], scratch).lower()
        options = [*OPTIONS, *(GCC_ONLY if gcc else []), *extra]
        for level in levels(machine):
            sources = {p.name for p in FOLDER.glob("*.c")} - _ONCE
            for source in sorted(sources | (_ONCE if level == "any" else set())):
                objects.append(f"{source}.{level}.o")
                output = str(Path(scratch) / objects[-1])
                define = [*LEVELS[level], f"-DLEVEL=_{level}", "-c", source, "-o", output]
                jobs.append([*command, *options, *define])
        for job in jobs:
            _run(job, FOLDER)
        # File names without folders, so that the same source gives the same bytes in any folder.
        libraries = [] if target.suffix == ".dll" else ["-lm", "-lpthread"]
        strip = [] if "-g" in extra else ["-s"]
        _run(
            [*command, "-shared", *strip, *extra, "-o", target.name, *objects, *libraries], scratch
        )
        try:
            with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as beside:
                beside.write(_without_time((Path(scratch) / target.name).read_bytes()))
            Path(beside.name).chmod(0o755)
            Path(beside.name).replace(target)
        except OSError as error:
            raise CannotBuild(f"{target.parent} cannot be written: {error}") from error
    return target


def _without_time(library: bytes) -> bytes:
    """Remove the time of linking, which libraries for Windows contain in their PE header."""
    if library[:2] != b"MZ":
        return library
    at = int.from_bytes(library[0x3C:0x40], "little") + 8
    return library[:at] + bytes(4) + library[at + 4 :]


def _run(command: list[str], folder: Path | str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotBuild(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise CannotBuild(f"{command[0]} failed: {lines[0]}")
    return done.stdout
