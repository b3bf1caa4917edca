"""Imports between the folders of `src/mercat`."""

from __future__ import annotations

import ast
import graphlib
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from architecture import PACKAGE, drawing, graph, imports, modules

EXTRAS = {
    "matplotlib",
    "anywidget",
    "click",
    "anndata",
    "torch",
    "dask",
    "h5py",
    "pandas",
    "polars",
    "scanpy",
    "pyarrow",
}
LOADED_LATE = {"_widget.py"}  # as a whole, if its extra is installed
SHOWS = {"_draw", "plot", "pl", "viewer", "cli"}
LONGEST_FILE, LONGEST_FUNCTION = 600, 80  # lines, without the docstring of the function


def behind(part: str) -> set[str]:
    """A part and all parts that it imports, directly or indirectly."""
    imported, found, new = graph(), set(), {part}
    while new:
        found |= new
        new = set().union(*(imported[name] for name in new)) - found
    return found


COMPUTES = behind("_estimator")


def test_packages_have_no_import_cycles():
    order = list(graphlib.TopologicalSorter(graph()).static_order())  # raises on a cycle
    assert set(order) == {name.split(".")[0] for name in modules()} - {""}


def test_core_files_have_no_import_cycles():
    found = {
        name: {i[1:] for i in imports(path) if i[1:].split(".")[0] in COMPUTES}
        for name, path in modules().items()
        if name.split(".")[0] in COMPUTES and path.name != "__init__.py"
    }
    graphlib.TopologicalSorter(found).prepare()  # raises on a cycle


@pytest.mark.parametrize("part", sorted(COMPUTES))
def test_computing_modules_do_not_import_plotting(part):
    assert not graph()[part] & SHOWS


@pytest.mark.parametrize("folder", ["_math", "_reduce", "_solve", "_detail"])
def test_mathematics_imports_only_numpy_and_scipy(folder):
    files = [path for name, path in modules().items() if name.split(".")[0] == folder]
    outside = {name for path in files for name in imports(path) if not name.startswith(".")}
    assert outside - sys.stdlib_module_names <= {"numpy", "scipy", "torch"}  # torch for devices


@pytest.mark.parametrize("name", sorted(modules()))
def test_extras_are_imported_lazily(name):
    path = modules()[name]
    late = EXTRAS - {"click"} if name.split(".")[0] == "cli" else EXTRAS
    if path.name not in LOADED_LATE:
        assert not imports(path, only_at_import=True) & late


def test_few_private_files_are_outside_the_folders():
    assert len([path for path in PACKAGE.glob("_*.py") if not path.name.startswith("__")]) <= 5


@pytest.mark.parametrize("name", sorted(modules()))
def test_files_and_functions_are_short(name):
    text = modules()[name].read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            docs = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
            length = node.end_lineno - node.lineno + 1 - docs
            assert length <= LONGEST_FUNCTION, node.name


def test_the_import_graph_shows_every_part():
    shown = set(re.findall(r"<text [^>]*>(\w+)<", drawing(graph())))
    assert shown == set(graph())


def test_the_import_graph_omits_implied_arrows():
    picture = drawing({"roof": {"wall", "ground"}, "wall": {"ground"}, "ground": set()})
    assert picture.count('marker-end="url(#tip)"') == 2
    found = re.findall(r'<text [^>]*y="([^"]+)"[^>]*>(\w+)<', picture)
    heights = {name: float(y) for y, name in found}
    assert heights["roof"] < heights["wall"] < heights["ground"]
