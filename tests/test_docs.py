"""The site and the README: examples run, links have targets, and tables match the measurements."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("_build", "generated", "gallery")
GUIDES = [path for path in sorted(DOCS.rglob("*.md")) if not set(path.parts) & set(MADE)]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *GUIDES,
]


@pytest.fixture(scope="module")
def tables():
    """The module that writes tables from results."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        return importlib.import_module("tables")
    finally:
        sys.path.remove(str(DOCS / "_ext"))


def names(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


def samples(path: Path) -> list[str]:
    """Python blocks of a page without prompts (pytest runs those with prompts as doctests)."""
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if ">>>" not in block or path.parent == ROOT]


@pytest.mark.parametrize("path", [p for p in TEXTS if samples(p)], ids=lambda p: p.name)
def test_samples_without_prompts_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for sample in samples(path):
        exec(compile(sample, path.name, "exec"), space)
    plt.close("all")


@pytest.mark.parametrize("path", TEXTS, ids=names(TEXTS))
def test_links_and_pictures_have_targets(path):
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    made = {f"{figure.__name__}.png" for figure in _figures()} | {"digits.html", "architecture.svg"}
    examples = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")}
    for target in targets:
        file = target.partition("#")[0]
        if re.match(r"https?://", target) or not file:
            continue
        if "gallery/" in file:
            assert Path(file).stem in examples, target
        elif "generated/" in file or "explorer/" in file:
            assert Path(file).name in made, target
        else:
            assert (path.parent / file).is_file(), target


def _figures():
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        return importlib.import_module("figures").FIGURES
    finally:
        sys.path.remove(str(DOCS / "_ext"))


def test_every_page_is_in_the_table_of_contents():
    index = (DOCS / "index.md").read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.DOTALL | re.MULTILINE)
    listed = {line for tree in trees for line in tree.split("\n") if line and line[0] != ":"}
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in GUIDES}
    assert listed - {"gallery/index"} == pages - {"index"}


def test_tables_match_the_measurements(tables):
    for page in tables.PAGES:
        text = (ROOT / page).read_text("utf-8")
        assert "<!-- end -->" in text
        assert tables.filled(text) == text, "run: python docs/_ext/tables.py"
    marked = {str(p.relative_to(ROOT)) for p in GUIDES if "<!-- end -->" in p.read_text("utf-8")}
    assert marked <= set(tables.PAGES)


def test_reference_lists_all_that_is_public():
    text = (DOCS / "api" / "index.md").read_text("utf-8")
    listed = set(re.findall(r"^   ([A-Za-z][\w.]*)$", text, re.MULTILINE))
    public = set(importlib.import_module("mercat").__all__)
    for module in ("datasets", "metrics", "pl", "plot", "projections", "tl", "viewer"):
        found = importlib.import_module(f"mercat.{module}").__all__
        public |= {f"{module}.{name}" for name in found if not name.isupper()}
    assert listed == public


def test_the_table_of_measures_names_all_of_them():
    text = (DOCS / "measures.md").read_text("utf-8")
    rows = [row for row in text.splitlines() if row.startswith("|")]
    public = importlib.import_module("mercat.metrics").__all__
    measures = {name for name in public if name.islower()} - {"report"}
    assert measures <= set(re.findall(r"`(\w+)`", "".join(rows)))


def test_coverage_has_standard_errors_over_data_sets(tables):
    """Maps of one data set are no independent measurements."""
    draws = [[[0.4, 0.9], [0.6, 1.0]], [[0.3, 0.75], [0.3, 0.75]]]
    record = {"setting": "exact", "coverage": {"draws": draws}}
    row = tables.coverage_table({"exact/noise_3": record}).splitlines()[2]
    assert [cell.strip() for cell in row.split("|")[1:4]] == [
        "noise in 3 dimensions",
        "40 ± 10",
        "85 ± 10",
    ]


def test_tables_show_available_results_only(tables):
    def number(value):
        return {"angle": value, "distance": value, "neighborhood": value, "density": value}

    from paper.numbers import Number

    results = {
        ("smiley", "mercat", None): number(Number(0.91, 0.02)),
        ("smiley", "umap", None): number(Number(0.5)),
        ("circle", "umap", None): number(Number(0.3)),
    }
    rows = tables.measures_table(results, "toy").splitlines()
    assert "| data | measure | Mercat | UMAP |" in rows
    assert "| Smiley | angles | **.91** | .50 |" in rows
    assert "| Circle | angles | - | **.30** |" in rows
    assert len(rows) == 10
    assert tables.measures_table({}, "toy") == "*Not measured yet.*\n"
    assert tables.speed_table({}) == "*Not measured yet.*\n"
    assert tables.torchdr_table({}) == "*Not measured yet.*\n"
    assert tables.billion_text({}, {}) == "*Not measured yet.*\n"
    assert tables.coverage_table({}) == "*Not measured yet.*\n"
    assert "angles best on 1 of 1 sets" in tables.wins(results)
    assert tables.wins({}) == ""


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "gallery").glob("*.py")), ids=str)
def test_examples_of_the_gallery_begin_with_a_title(path):
    source = path.read_text("utf-8")
    compile(source, path.name, "exec")  # they are run when the site is built
    title, rule, *_ = source.removeprefix('"""\n').split("\n")
    assert set(rule) == {"="}
    assert len(rule) == len(title)
