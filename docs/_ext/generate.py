"""Generate figures and explorers for the pages.

They are written to docs/generated (not committed) at the start of a build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import architecture
import explorers
import figures
from sphinx.util import logging

logger = logging.getLogger(__name__)


def generate(app: Any) -> None:
    folder = Path(app.srcdir) / "generated"
    for name, make in (("figures", figures), ("explorers", explorers)):
        logger.info("making %s...", name)
        make.write(folder)
    (folder / "architecture.svg").write_text(architecture.drawing(architecture.graph()), "utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
