"""The table of parameters in docs/estimator.md, from their declarations. To write it anew::

python docs/_ext/parameters.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/estimator.md"
sys.path.insert(0, str(ROOT / "src"))

from mercat._parameters import PARAMETERS


def table() -> str:
    """Name, default, allowed values and meaning of each parameter, as Markdown."""
    lines = ["| parameter | default | allowed values | meaning |", "|---|---|---|---|"]
    for name, declared in PARAMETERS.items():
        default = f"`{declared.default!r}`"
        if declared.default is None and declared.none:
            default += f": {declared.none}"
        rule = declared.rule.replace("|", "\\|")
        lines.append(f"| `{name}` | {default} | {rule} | {declared.help} |")
    return "\n".join([*lines, ""])


def filled() -> str:
    """The page with its table."""
    text = (ROOT / PAGE).read_text("utf-8")
    return re.sub(
        r"(<!-- parameters -->\n).*?(<!-- end -->)",
        lambda mark: mark[1] + table() + mark[2],
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    (ROOT / PAGE).write_text(filled(), "utf-8")
