"""Formulas as MathML, which browsers render without scripts, fonts or network requests."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    # Browsers choose the size of brackets.
    code = re.sub(r"\\[bB]ig(?![a-zA-Z])", "", node.astext()).strip()
    try:
        return latex2mathml.tex2mathml(code, as_block=as_block)
    except MathError as error:
        logger.warning("a formula cannot be read: %s in %s", error, code, location=node)
        return ""


def visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
