"""The wheel, alone in a fresh environment, fits."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIT = """
import numpy as np
from mercat import Mercat, metrics
X = np.random.default_rng(0).normal(size=(200, 10))
Y = Mercat(random_state=0, verbose=True).fit_transform(X)
print(Y.shape, float(metrics.angle_preservation(X, Y)) > 0.3)
"""


@pytest.mark.packaging
def test_wheel_alone_fits(tmp_path):
    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("mercat-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "mercat/py.typed" in names
    assert any(name.startswith("mercat/viewer/static/") for name in names)
    assert not any(name.startswith(("tests/", "js/")) for name in names)
    venv.create(tmp_path / "fresh", with_pip=True)
    python = str(tmp_path / "fresh" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", str(wheel))
    assert run(python, "-W", "error", "-c", FIT).split() == ["(200,", "3)", "True"]
