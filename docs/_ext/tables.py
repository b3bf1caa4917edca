"""Tables of measurements, from the results that are committed; what was not measured is not shown.

The README has some of them, between marks such as ``<!-- speed -->`` and ``<!-- end -->``. To write them
anew, from the repository's root::

    python docs/_ext/tables.py
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.harness.data import SETS
from benchmarks.harness.methods import title
from paper import claims
from paper.experiment import MEASURES, METHODS
from paper.markdown import best, seconds
from paper.numbers import Number, collect, shown

NAMES = dict(zip(MEASURES, ("angles", "distances", "neighbourhoods", "densities"), strict=True))


def write(folder: Path) -> None:
    """Write every table as a Markdown fragment into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in fragments().items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def fragments() -> dict[str, str]:
    """Every table, as Markdown."""
    measured = records(ROOT)
    results = collect(measured, "set", "method", "n_components")
    core = json.loads((ROOT / "benchmarks" / "results" / "core.json").read_text("utf-8"))
    return {
        "wins": wins(results),
        "real": measures_table(results, "real") + notes(measured),
        "synthetic": measures_table(results, "toy", "synthetic"),
        "speed": speed_table(core),
        "scale": scale_table(core),
        "literal": literal_table(core),
    }


def filled(text: str) -> str:
    """A text with marks, its tables made anew."""
    made = fragments()
    return re.sub(
        r"(<!-- (\w+) -->\n).*?(<!-- end -->)",
        lambda mark: mark[1] + made[mark[2]] + mark[3],
        text,
        flags=re.DOTALL,
    )


def records(root: Path) -> list[dict[str, Any]]:
    """Every embedding that was measured with its default settings."""
    found = []
    for path in sorted((root / "paper" / "results").glob("*.json")):
        for record in json.loads(path.read_text("utf-8")).values():
            plain = record.get("scaling") == "as is" and record.get("neighbors") is None
            if "measures" in record and plain:
                found.append(record)
    return found


def measures_table(results: Mapping[tuple[Any, ...], Mapping[str, Number]], *kinds: str) -> str:
    """The four measures of every set and method that has been run, the best in bold."""
    sets = [name for name, entry in SETS.items() if entry.kind in kinds]
    sets = [name for name in sets if any(key[0] == name for key in results)]
    methods = [m for m in METHODS if any((name, m, None) in results for name in sets)]
    rows = []
    for name in sets:
        for measure in MEASURES:
            numbers = [results.get((name, m, None), {}).get(measure) for m in methods]
            heading = SETS[name].title if measure == MEASURES[0] else ""
            means = [None if number is None else Number(number.mean) for number in numbers]
            rows.append([heading, NAMES[measure], *best(means)])
    return _table(["data", "keeps", *map(title, methods)], rows)


def notes(measured: Iterable[Mapping[str, Any]]) -> str:
    """What was measured where the paper's own data were not at hand."""
    found = {SETS[record["set"]].title: record["note"] for record in measured if record["note"]}
    return "\n" + "".join(f"- {name}: {note}.\n" for name, note in found.items())


def wins(results: claims.Results) -> str:
    """On how many sets Mercat with its defaults is best, and where it is not."""
    found = claims.contests(results, claims.NONLINEAR)
    if not found:
        return ""
    count = len({contest.name for contest in found})
    parts = []
    for measure in ("angle", "distance"):
        won = [c for c in found if c.measure == measure and c.won]
        parts.append(f"{NAMES[measure]} best on {len(won)} of {count} sets")
    lost = [
        f"{SETS[c.name].title}, {NAMES[c.measure]} ({shown(c.ours.mean)} against "
        f"{title(c.rival)}'s {shown(c.theirs.mean)})"
        for c in found
        if not c.won
    ]
    text = (
        f"With its defaults, Mercat keeps {' and '.join(parts)}, beside these methods and densMAP."
    )
    if lost:
        text += f" It is not best on: {'; '.join(lost)}."
    linear = claims.contests(results, ("pca",))
    better = {c.name for c in linear if c.measure == "distance" and not c.won}
    return text + f" Principal components alone keep distances better on {len(better)} of them.\n"


def speed_table(core: Mapping[str, Any]) -> str:
    """One run of all methods on the same data and machine, fastest first."""
    results = core.get("peers", {}).get("results", {})
    methods = {name: entry for name, entry in results.items() if isinstance(entry, dict)}
    ordered = sorted(methods, key=lambda name: methods[name]["seconds"]["fit"])
    rows = [
        [
            title(name),
            seconds(methods[name]["seconds"]["import"]),
            seconds(methods[name]["seconds"]["fit"]),
            shown(methods[name]["angle"]),
            shown(methods[name]["distance"]),
        ]
        for name in ordered
    ]
    return _table(["method", "import", "fit", "angles", "distances"], rows)


def scale_table(core: Mapping[str, Any]) -> str:
    results = core.get("scale", {}).get("results", {})
    sizes = sorted(int(name) for name in results if name.isdecimal())
    rows = []
    for size in sizes:
        entry = results[str(size)]
        memory = f"{entry['GiB of peak beyond the input']:.2g} GiB"
        each = f"{entry['microseconds a point']:.0f} µs"
        rows.append([f"{size:,}", seconds(entry["seconds"]), each, memory])
    return _table(["points", "time", "a point", "memory beyond the input"], rows)


def literal_table(core: Mapping[str, Any]) -> str:
    """The exact solver beside the paper's algorithm as it is written."""
    results = core.get("literal", {}).get("results", {})
    rows = []
    for name, entry in results.items():
        rows.append(
            [
                SETS[name].title,
                seconds(entry["seconds of the literal form"]),
                seconds(entry["seconds"]),
                shown(entry["loss of Algorithm 1"], 3),
                shown(entry["loss"], 3),
            ]
        )
    head = ["data", "time, as written", "time, here", "loss, as written", "loss, here"]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    if not rows:
        return "*Not measured yet.*\n"
    rule = [":--", *[":-:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows]) + "\n"


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text("utf-8")), encoding="utf-8")
