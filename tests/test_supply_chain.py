"""Dependencies are documented, and versions for development locked with hashes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "docs" / "maintaining" / "dependencies.md").is_file():
    pytest.skip("This is not a checkout.", allow_module_level=True)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0]


def declared() -> dict[str, set[str]]:
    """Required packages by name, with their extras."""
    found: dict[str, set[str]] = {}
    groups = {"": PROJECT["project"]["dependencies"], **EXTRAS}
    groups["build system"] = PROJECT["build-system"]["requires"]
    groups["js"] = list(json.loads((ROOT / "js/package.json").read_text())["devDependencies"])
    for group, requirements in groups.items():
        for requirement in requirements:
            if name_of(requirement) != "mercat":
                found.setdefault(name_of(requirement), set()).add(group)
    return found


def justified() -> dict[str, dict[str, str]]:
    """Cells of the tables by package and column heading."""
    rows: dict[str, dict[str, str]] = {}
    heading: list[str] = []
    for line in (ROOT / "docs" / "maintaining" / "dependencies.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or set("".join(cells)) <= set("-:"):
            continue
        if "package" in cells:
            heading = cells
            continue
        row = dict(zip(heading, cells, strict=True))
        assert row["package"] not in rows, f"{row['package']} is listed twice"
        rows[row["package"]] = row
    return rows


def test_the_table_lists_exactly_the_requirements():
    listed = {name: set(row["extra"].split(", ")) for name, row in justified().items()}
    assert listed == declared()


def test_every_row_has_purpose_and_licence():
    extras = {"build system", "dev", "docs", "js", "mutants", "supply", "wheels"}  # of development
    for name, row in justified().items():
        for_development = set(row["extra"].split(", ")) <= extras
        columns = {"package", "extra", "purpose", "licence"}
        assert set(row) == columns | (set() if for_development else {"replacement"}), name
        assert all(row[column] for column in row if column != "extra"), name


def locked() -> dict[str, tuple[str, int]]:
    """Locked versions, with the number of hashes of each."""
    text = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    pinned = {}
    for entry in entries:
        match = re.match(r"([\w.-]+)==(\S+)", entry)
        if match:
            name = match[1].lower()
            pinned[name] = (match[2], pinned.get(name, ("", 0))[1] + entry.count("--hash=sha256:"))
        else:
            assert not entry.strip() or entry.startswith("#"), entry
    return pinned


def test_the_lock_file_contains_every_development_dependency_with_hashes():
    pinned = locked()
    wanted = {*PROJECT["project"]["dependencies"], *EXTRAS["docs"], *EXTRAS["dev"]}
    for extra in ("plot", "viewer", "anndata", "cli", "dask"):
        wanted |= set(EXTRAS[extra])
    names = {name_of(requirement).lower() for requirement in wanted} - {"mercat"}
    assert names <= set(pinned)
    assert all(hashes > 0 for _, hashes in pinned.values())


def test_locked_versions_satisfy_the_requirements():
    version = pytest.importorskip("packaging.version")
    specifiers = pytest.importorskip("packaging.specifiers")
    pinned = locked()
    for requirement in {*PROJECT["project"]["dependencies"], *EXTRAS["dev"], *EXTRAS["docs"]}:
        rule = re.sub(r"^[\w.-]+(\[[^]]*\])?", "", requirement)
        if rule and not requirement.startswith("mercat"):
            found = version.Version(pinned[name_of(requirement).lower()][0])
            assert found in specifiers.SpecifierSet(rule), requirement


def test_javascript_is_locked_with_hashes():
    packages = json.loads((ROOT / "js" / "package-lock.json").read_text())["packages"]
    assert all("integrity" in about for name, about in packages.items() if name)


# ------------------------------------------------------------------ conda


def test_the_conda_recipe_has_the_requirements_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")
    run = recipe.split("\n  run:\n")[1].split("\n  run_constraints:\n")[0]
    listed = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    python = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f'python_min: "{python}"' in recipe
    assert listed == {"python>=${{python_min}}", *PROJECT["project"]["dependencies"]}


def test_the_version_is_the_same_everywhere():
    import mercat

    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")
    assert f'version: "{mercat.__version__}"' in recipe
    assert f"version: {mercat.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
