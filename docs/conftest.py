"""Pytest runs the examples of the guides (*.md), but not the scripts that build the site."""

from __future__ import annotations

from pathlib import Path

import pytest

collect_ignore_glob = ["*.py", "_ext/*", "_build/*", "generated/*", "gallery/*", "api/generated/*"]


def pytest_collection_modifyitems(items):
    """Ignore warnings of scanpy's plots with newer versions of matplotlib."""
    here = Path(__file__).parent
    warning = "ignore:The set_.* function:PendingDeprecationWarning"
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Run each example in a temporary folder."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    with plt.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")
