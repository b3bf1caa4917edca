"""A self-contained page with the viewer and its data."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from importlib.resources import files
from pathlib import Path

from .._files.atomic import whole_file

_PAGE = """<!doctype html>
<html lang="en" data-mercat="page">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="mercat"></div>
<noscript>This page needs JavaScript, which is switched off.</noscript>
<script type="application/octet-stream" id="mercat-payload">{payload}</script>
<script type="module">{script}</script>
</body>
</html>
"""

_PAGE_STYLE = "html{color-scheme:light dark}html,body{margin:0;height:100%}#mercat{height:100%}"


def static(name: str) -> str:
    """A built file of the viewer, as text."""
    return (files("mercat.viewer") / "static" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Hash by which a content security policy allows this text."""
    code = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{code}'"


def page(payload: bytes, title: str) -> str:
    """Text of the page. The payload is encoded in base64, which cannot contain markup."""
    script, style = static("viewer.js"), _PAGE_STYLE + static("style.css")
    policy = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        title=html.escape(title),
        style=style,
        payload=base64.b64encode(payload).decode("ascii"),
        script=script,
    )


def write_page(payload: bytes, title: str, path: str | os.PathLike[str]) -> Path:
    """Write the page completely, or leave the existing file unchanged."""
    target = Path(path)
    with whole_file(target) as part:
        part.write_text(page(payload, title), encoding="utf-8", newline="\n")
    return target
