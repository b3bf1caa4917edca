"""Draw the imports between the parts of Mercat.

    python tools/architecture.py imports.svg

A part is a folder or a file of `src/mercat`. An arrow points to an imported part; arrows implied by others
are left out. A part imports only from the rows below it.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mercat"
WIDTH, ROW, BOX, HEIGHT = 860, 62, 106, 26


def modules() -> dict[str, Path]:
    """Paths of all modules by dotted name relative to `mercat`."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imports(path: Path, *, only_at_import: bool = False) -> set[str]:
    """Modules imported by a file: those of Mercat with a leading dot, others by package."""
    tree, known = ast.parse(path.read_text()), modules()
    package = path.relative_to(PACKAGE).parts[:-1]
    imported = set()
    for node in _at_import(tree) if only_at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            absolute = (node.module or "").split(".")
            if node.level == 0 and absolute[0] != "mercat":
                imported.add(absolute[0])
                continue
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = [*base, *(absolute[1:] if not node.level else (node.module or "").split("."))]
            name = ".".join(part for part in module if part)
            for alias in node.names:
                inner = f"{name}.{alias.name}".lstrip(".")
                imported.add("." + (inner if inner in known else name))
    return imported


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run at import: all except bodies of functions and type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not for_types and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _at_import(child)


def graph() -> dict[str, set[str]]:
    """Imports between the top-level folders and files of the package."""
    imported: dict[str, set[str]] = {}
    for name, path in modules().items():
        top = name.split(".")[0]
        if not top:
            continue
        others = {module[1:].split(".")[0] for module in imports(path) if module.startswith(".")}
        if "" in others:  # from the package itself: the estimator, or the version
            others = others - {""} | (
                {"_estimator"} if "import Mercat" in path.read_text() else set()
            )
        imported.setdefault(top, set()).update(others - {top})
    return imported


def drawing(imported: dict[str, set[str]]) -> str:
    """Draw an acyclic graph as SVG."""

    @functools.cache
    def reachable(name: str) -> frozenset[str]:
        return frozenset().union(*({other} | reachable(other) for other in imported[name]))

    @functools.cache
    def height(name: str) -> int:
        return 1 + max((height(other) for other in imported[name]), default=-1)

    arrows = {
        name: sorted(o for o in others if not any(o in reachable(p) for p in others))
        for name, others in imported.items()
    }
    rows = [
        sorted(n for n in imported if height(n) == k) for k in range(1 + max(map(height, imported)))
    ]
    position: dict[str, tuple[float, float]] = {}
    for k, row in enumerate(rows):  # above the centre of their imports, if there is space
        target_x = {n: sum(position[o][0] for o in arrows[n]) / max(len(arrows[n]), 1) for n in row}
        for i, name in enumerate(sorted(row, key=lambda n: (target_x[n], n))):
            x = WIDTH * (i + 0.5) / len(row)
            position[name] = (round(x, 1), ROW * (len(rows) - 1 - k) + ROW / 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(rows)}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Imports between the parts of Mercat</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0,0L8,4L0,8z" fill="#8a949e"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{ROW * len(rows)}" fill="white"/>',
    ]
    for name, others in sorted(arrows.items()):
        (x, y), half = position[name], HEIGHT / 2
        for u, v in (position[other] for other in others):
            middle = (y + v) / 2
            lines.append(
                f'<path d="M{x},{y + half}C{x},{middle} {u},{middle} {u},{v - half}" fill="none" '
                'stroke="#8a949e" marker-end="url(#tip)"/>'
            )
    for name, (x, y) in sorted(position.items()):
        fill = "#eef3f8" if name.startswith("_") else "#fdf0d5"  # private, public
        lines.append(
            f'<rect x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="5" '
            f'fill="{fill}" stroke="#5a6570"/>'
            f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle" fill="#1f2933">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/architecture.py OUTPUT.svg")
    Path(sys.argv[1]).write_text(drawing(graph()), "utf-8")
