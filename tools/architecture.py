"""Draw who imports whom in Mercat, from the imports themselves: docs/images/architecture.svg.

    python tools/architecture.py

An arrow leads from a file, or a package, to one that it imports. Those are left out that others imply: if
plot imports metrics and metrics imports _sphere, the arrow from plot to _sphere is. What stands on a row
imports only from the rows below.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mercat"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
# Files that are drawn as one, under the name of the first.
TOGETHER = (
    "plot _chart _color _figure _labels _legend _marks _palette _tradeoff _window",
    "tl pl _anndata",
    "_model_file _model_json _model_rules",
)
DOORS = {
    "cli",
    "tl",
    "plot",
    "viewer",
    "metrics",
    "datasets",
    "projections",
    "_estimator",
    "_model_file",
}
WIDTH, ROW, BOX, HEIGHT = 860, 62, 106, 26


def imports(path: Path, *, only_at_import: bool = False) -> set[str]:
    """Top-level names that a file imports; those of mercat itself with a leading dot."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in _at_import(tree) if only_at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module == "mercat":
                found |= {"." + alias.name for alias in node.names}
            elif node.level == 0:
                found.add((node.module or "").split(".")[0])
            elif node.level == 1 + (path.parent != PACKAGE):
                names = [node.module] if node.module else [alias.name for alias in node.names]
                found |= {"." + name.split(".")[0] for name in names}
    return found


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a file is imported: all but the bodies of functions, and what is for types alone."""
    for child in ast.iter_child_nodes(node):
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not for_types and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _at_import(child)


def graph() -> dict[str, set[str]]:
    """What each file or package imports of the others."""
    shown_as = {name: group.split()[0] for group in TOGETHER for name in group.split()}
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        top = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if top == "__init__":
            continue
        name = shown_as.get(top, top)
        inside = {i[1:] for i in imports(path) if i.startswith(".")}
        inside = {"_estimator" if i == "Mercat" else i for i in inside} - {"__version__"}
        found.setdefault(name, set()).update({shown_as.get(i, i) for i in inside} - {name})
    return found


def drawing(imported: dict[str, set[str]]) -> str:
    """The picture of a graph without cycles, as SVG."""

    @functools.cache
    def behind(name: str) -> frozenset[str]:
        return frozenset().union(*({other} | behind(other) for other in imported[name]))

    @functools.cache
    def height(name: str) -> int:
        return 1 + max((height(other) for other in imported[name]), default=-1)

    arrows = {
        name: sorted(o for o in others if not any(o in behind(p) for p in others))
        for name, others in imported.items()
    }
    rows = [
        sorted(n for n in imported if height(n) == k) for k in range(1 + max(map(height, imported)))
    ]
    place: dict[str, tuple[float, float]] = {}
    for k, row in enumerate(rows):  # above the middle of what they import, as far as there is room
        wanted = {n: sum(place[o][0] for o in arrows[n]) / max(len(arrows[n]), 1) for n in row}
        for i, name in enumerate(sorted(row, key=lambda n: (wanted[n], n))):
            x = WIDTH * (i + 0.5) / len(row)
            place[name] = (round(x, 1), ROW * (len(rows) - 1 - k) + ROW / 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(rows)}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Who imports whom in Mercat</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0,0L8,4L0,8z" fill="#8a949e"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{ROW * len(rows)}" fill="white"/>',
    ]
    for name, others in sorted(arrows.items()):
        (x, y), half = place[name], HEIGHT / 2
        for u, v in (place[other] for other in others):
            bend = (y + v) / 2
            lines.append(
                f'<path d="M{x},{y + half}C{x},{bend} {u},{bend} {u},{v - half}" fill="none" '
                'stroke="#8a949e" marker-end="url(#tip)"/>'
            )
    for name, (x, y) in sorted(place.items()):
        fill = "#fdf0d5" if name in DOORS else "#eef3f8"
        label = "tl, pl" if name == "tl" else name
        lines.append(
            f'<rect x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="5" '
            f'fill="{fill}" stroke="#5a6570"/>'
            f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle" fill="#1f2933">{label}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawing(graph()))
