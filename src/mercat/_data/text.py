"""Escape untrusted text for terminals and files."""

from __future__ import annotations

import re

# Control characters, bidirectional and invisible marks, line breaks, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape control characters, which a terminal could interpret as commands.

    Line breaks and tabs are escaped, too, unless `lines` is true.

    >>> print(printable("a\x1b[2J\nb"))
    a\x1b[2J\nb
    """
    kept = "\n\t" if lines else ""
    return _UNSAFE.sub(lambda found: found[0] if found[0] in kept else _escaped(found[0]), text)


def printable_json(text: str) -> str:
    """Like `printable`, with the escapes of JSON, so that values are unchanged."""
    return _UNSAFE.sub(
        lambda found: found[0] if found[0] in "\n\t" else _in_json(ord(found[0])), text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _in_json(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def well_formed(text: str) -> str:
    r"""Replace lone surrogates, as in some file names, by U+FFFD, so that text can be encoded as UTF-8.

    >>> well_formed("caf\udce9") == "caf\ufffd"
    True
    """
    return _SURROGATES.sub("\ufffd", text)


def check_text(name: str, text: str) -> None:
    """Raise ValueError with the name of the parameter if its text cannot be encoded as UTF-8."""
    if _SURROGATES.search(text):
        raise ValueError(f"{name} must be text that UTF-8 can encode, got {text[:60]!r}.")
