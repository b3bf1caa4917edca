"""Who may import whom: the path from data to map stays short and one-way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from architecture import PACKAGE, PICTURE, drawing, graph, imports

CODE_MAP = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text()
# Modules of the core, from the ground up: each may import those before it, and no other.
CORE = re.findall(
    r"`(\w+)\.py`", CODE_MAP[CODE_MAP.index("| file |") : CODE_MAP.index("| `metrics/`")]
)
# What stands around the core uses only these of it.
OPEN_TO_ALL = {
    "_backend",
    "_checks",
    "_containers",
    "_device",
    "_extras",
    "_model_file",
    "_rotation",
    "_spectral",
    "_sphere",
    "_untrusted",
    "_whole",
}
OPTIONAL = {
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
LOADED_LATE = {"_widget.py"}  # as a whole, where its extra is
# Which test file speaks for modules that have none of their name.
SPEAKS_FOR = {
    "test_estimator": "_checks _initial _placers _rows _solvers _starts _status _validation",
    "test_hostile_files": "_containers _untrusted",
    "test_model_file": "_model_json _model_rules _whole",
    "test_plot": "_chart _color _column _figure _labels _legend _marks _palette _tradeoff _window",
    "test_promises_honest": "_evidence _trust",
    "test_promises_interruptible": "_progress",
    "test_tl": "_anndata",
    "test_torch": "_device",
}


@pytest.mark.parametrize("module", CORE)
def test_core_imports_only_what_lies_below_it(module):
    below = {".__version__", *(f".{name}" for name in CORE[: CORE.index(module)])}
    inside = {name for name in imports(PACKAGE / f"{module}.py") if name.startswith(".")}
    assert inside <= below


@pytest.mark.parametrize("module", ["_sphere", "_angles", "_placement"])
def test_maths_needs_no_library_beyond_numpy(module):
    outside = {name for name in imports(PACKAGE / f"{module}.py") if not name.startswith(".")}
    assert outside <= {"__future__", "collections", "math", "typing", "numpy"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_files_around_the_core_use_its_open_parts_and_load_extras_late(path):
    if path.parent == PACKAGE and path.stem in CORE:
        return
    private = {f".{name}" for name in set(CORE) - OPEN_TO_ALL}
    if path.name != "__init__.py":
        assert not imports(path) & private
    late = OPTIONAL - {"click"} if path.parent.name == "cli" else OPTIONAL
    if path.name not in LOADED_LATE:
        assert not imports(path, only_at_import=True) & late


def test_every_core_module_exists():
    assert all((PACKAGE / f"{name}.py").is_file() for name in CORE)


def test_the_code_map_has_every_file():
    files = {f"{path.stem}.py" for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert not {name for name in files if f"`{name}`" not in CODE_MAP}


def test_every_module_has_a_test_file():
    tests = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    inside = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    modules = {name for name in inside if not name.startswith("__")}
    named = {name for name in modules if f"test_{name.lstrip('_')}" in tests}
    assert set(SPEAKS_FOR) <= tests
    assert {name for group in SPEAKS_FOR.values() for name in group.split()} == modules - named


def test_the_picture_shows_these_imports():
    assert PICTURE.read_text() == drawing(graph()), "run: python tools/architecture.py"


def test_the_picture_leaves_out_what_other_arrows_imply():
    picture = drawing({"roof": {"wall", "ground"}, "wall": {"ground"}, "ground": set()})
    assert picture.count('marker-end="url(#tip)"') == 2
    found = re.findall(r'<text [^>]*y="([^"]+)"[^>]*>(\w+)<', picture)
    heights = {name: float(y) for y, name in found}
    assert heights["roof"] < heights["wall"] < heights["ground"]
