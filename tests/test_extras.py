"""Missing optional packages raise the same error everywhere."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mercat
from mercat._extras import PACKAGES, MissingExtra, not_installed, require

ROOT = Path(__file__).parents[1]
Y = np.eye(3)
FITTED = SimpleNamespace(embedding_=Y, point_loss_=np.zeros(3))


def _paul15(folder):
    (folder / "paul15.h5").touch()
    mercat.datasets.paul15(folder)


def _pancreas(folder):
    (folder / "pancreas.h5ad").touch()
    mercat.datasets.pancreas(folder, protein_coding=False)


@pytest.mark.parametrize(
    ("module", "what", "extra", "use"),
    [
        ("matplotlib", "mercat.plot", "plot", lambda _: mercat.plot.map(Y)),
        ("matplotlib", "mercat.plot", "plot", lambda _: mercat.plot.globe(Y)),
        ("matplotlib", "mercat.plot", "plot", lambda _: mercat.plot.compare({"a": Y})),
        ("matplotlib", "mercat.plot", "plot", lambda _: mercat.plot.trust(FITTED)),
        ("anywidget", "Explorer", "viewer", lambda _: mercat.viewer.Explorer),
        ("anndata", "mercat.tl or mercat.pl", "anndata", lambda _: mercat.tl.mercat(None)),
        ("anndata", "mercat.tl or mercat.pl", "anndata", lambda _: mercat.pl.map(None)),
        ("pandas", "to_frame", "cli", lambda _: mercat.metrics.Report().to_frame()),
        ("h5py", "Reading HDF5 files", "anndata", _paul15),
        ("anndata", "Reading h5ad files", "anndata", _pancreas),
    ],
)
def test_missing_packages_are_named_with_the_install_command(
    module, what, extra, use, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    message = f"{what} needs {module}, which is not installed: pip install {PACKAGES[extra]}"
    with pytest.raises(MissingExtra, match=f"^{re.escape(message)}$"):
        use(tmp_path)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_device_without_torch_suggests_numpy(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = (
        f"device='{device}' needs torch, which is not installed: pip install torch, "
        "or leave device out to compute with NumPy"
    )
    with pytest.raises(MissingExtra, match=f"^{re.escape(message)}$"):
        mercat.Mercat(device=device).fit(np.eye(5))


def test_the_advice_names_the_packages_of_each_extra():
    """An extra, as in "mercat[torch]", could be installed only after a release."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    for extra, packages in PACKAGES.items():
        declared = [re.split("[>=]", name)[0] for name in extras[extra]]
        declared = [PACKAGES["plot"] if name == "mercat[plot]" else name for name in declared]
        assert shlex.split(packages) == declared
    assert not_installed("plot,torch") == "not installed: pip install matplotlib torch"


def test_a_broken_package_is_not_reported_as_missing(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import mercat_never_heard_of")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="mercat_never_heard_of"):
        require("halfway", "This test", "dev")


def test_an_installed_module_is_returned():
    assert require("numpy", "This test", "dev") is np
