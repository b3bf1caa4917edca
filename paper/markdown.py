"""Tables and lists in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from .numbers import Number, shown


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> str:
    """A Markdown table; all columns but the first `left` are centred."""
    rule = [":--" if i < left else ":-:" for i in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def listed(words: Sequence[str]) -> str:
    """Words as text: "a", "a and b", or "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def best(numbers: Sequence[Number | None]) -> list[str]:
    """Numbers as text, the highest (as shown, with two decimals) in bold; None is a dash."""
    present = [n.mean for n in numbers if n is not None]
    top = shown(max(present)) if present else None
    return ["-" if n is None else f"**{n}**" if shown(n.mean) == top else str(n) for n in numbers]


def seconds(value: float) -> str:
    """Format a time."""
    if value < 0.0995:
        return f"{1000 * value:.0f} ms"
    if value < 99.5:
        return f"{value:.2g} s" if value < 9.95 else f"{value:.0f} s"
    return f"{value / 60:.1f} min" if value < 5970 else f"{value / 3600:.1f} h"
