"""The wheel works in a fresh environment."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mercat._kernels import _build

ROOT = Path(__file__).parents[1]
FIT = """
import numpy as np
from mercat import Mercat, _kernels, metrics
X = np.random.default_rng(0).normal(size=(200, 10))
Y = Mercat(random_state=0, verbose=True).fit_transform(X)
print(Y.shape, float(metrics.angle_preservation(X, Y)) > 0.3, _kernels.available())
"""


pytestmark = pytest.mark.packaging


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """Folders with sdist and wheel, built from two copies with different file times and umasks."""
    folder = tmp_path_factory.mktemp("builds")
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shlex.join(_build.compiler())} "$@" -O0\n')  # quickly
    compiler.chmod(0o755)
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", ".nox", "node_modules", "__pycache__", "dist", ".*_cache"
    )
    built = []
    for k, umask in enumerate((0o022, 0o077)):
        copy, out = folder / f"copy{k}" / "mercat", folder / f"out{k}"
        shutil.copytree(ROOT, copy, ignore=ignored, copy_function=shutil.copy)
        for path in copy.rglob("*"):
            os.utime(path, (10**9 + 10**7 * k,) * 2)
        done = subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)],
            capture_output=True,
            text=True,
            check=False,
            umask=umask,
            env={**os.environ, "CC": str(compiler)},
        )
        assert done.returncode == 0, done.stderr
        built.append(out)
    return built


def required(name, found):
    """Distributions required without extras, directly or indirectly."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            assert requirement.specifier.contains(metadata.version(requirement.name)), line
            if requirement.name not in found:
                found.add(requirement.name)
                required(requirement.name, found)
    return found


def test_wheel_works_in_a_fresh_environment(builds, tmp_path):
    """The environment has only the required packages."""

    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (wheel,) = builds[0].glob("mercat-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "mercat/py.typed" in names
    assert re.fullmatch(r"mercat-[^-]+-py3-none-(?!any).+\.whl", wheel.name)
    assert sum(name.startswith("mercat/_kernels/kernels-") for name in names) == 1
    assert any(name.startswith("mercat/viewer/static/") for name in names)
    assert not any(name.startswith(("tests/", "js/")) for name in names)
    venv.create(tmp_path / "fresh")
    python = str(tmp_path / "fresh" / "bin" / "python")
    packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    for name in required("mercat", set()):  # as if installed
        files = metadata.files(name) or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(metadata.distribution(name).locate_file(top)))
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", str(wheel))
    run(*pip, "check")
    assert run(python, "-W", "error", "-c", FIT).split() == ["(200,", "3)", "True", "True"]
    command = [str(tmp_path / "fresh" / "bin" / "mercat"), "--help"]
    bare = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bare.returncode == 5
    assert "pip install matplotlib click pandas pyarrow" in bare.stderr


def test_builds_are_reproducible_and_contain_the_test_files(builds):
    one, two = ({path.name: path.read_bytes() for path in out.iterdir()} for out in builds)
    assert {Path(name).suffix for name in one} == {".whl", ".gz"}
    assert one == two
    (sdist,) = builds[0].glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "tests/test_paper.py",
        "paper/report.py",
        "docs/cli.md",
        "noxfile.py",
        "CONTRIBUTING.md",
    }
    assert needed <= names
    assert not any(name.startswith(("js/node_modules/", "paper/cache/")) for name in names)


@pytest.mark.parametrize("compiler", ["none", "one that fails"])
def test_without_a_compiler_the_wheel_uses_numpy_and_the_build_warns(tmp_path, compiler):
    environment = {**os.environ, "CC": "false"}
    if compiler == "none":
        del environment["CC"]
        environment["PATH"] = str(tmp_path)
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*command, str(ROOT)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "kernels are left out" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("mercat-*-py3-none-any.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = FIT + "print(_kernels.describe())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
    )
    assert done.stdout.splitlines() == [
        "(200, 3) True False",
        "NumPy: not compiled when Mercat was installed",
    ]
