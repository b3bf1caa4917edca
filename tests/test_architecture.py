"""Who may import whom: the path from data to map stays short and one-way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "mercat"

# Modules of the core, from the ground up: each may import those before it, and no other.
CORE = [
    "_status",
    "_untrusted",
    "_containers",
    "_backend",
    "_sphere",
    "_angles",
    "_checks",
    "_progress",
    "_trust",
    "_rotation",
    "_rows",
    "_device",
    "_spectral",
    "_initial",
    "_exact",
    "_placement",
    "_starts",
    "_algorithm1",
    "_neighbors",
    "_repulsion",
    "_detail",
    "_solvers",
    "distributed",
    "_estimator",
    "_whole",
    "_model_rules",
    "_model_json",
    "_model_file",
]
# What stands around the core uses only these of it.
OPEN_TO_ALL = {
    "_backend",
    "_containers",
    "_device",
    "_model_file",
    "_rotation",
    "_spectral",
    "_sphere",
    "_status",
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
    "tqdm",
}


def imports(path: Path, *, only_at_import: bool = False) -> set[str]:
    """Top-level names that a file imports; those of mercat itself with a leading dot."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if only_at_import else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                found.add((node.module or "").split(".")[0])
            elif node.level == 1 + (path.parent != PACKAGE):
                names = [node.module] if node.module else [alias.name for alias in node.names]
                found |= {"." + name.split(".")[0] for name in names}
    return found


@pytest.mark.parametrize("module", CORE)
def test_core_imports_only_what_lies_below_it(module):
    below = {f".{name}" for name in CORE[: CORE.index(module)]}
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
    assert not imports(path, only_at_import=True) & late


def test_every_core_module_exists():
    assert all((PACKAGE / f"{name}.py").is_file() for name in CORE)
