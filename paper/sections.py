"""Sections of the report about embeddings: claims, data, tables of measures, versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.data import SETS
from benchmarks.harness.measure import MEASURES
from benchmarks.harness.methods import title

from . import claims, neighborhood, real, runtime, scaling
from .experiment import METHODS, N_LOSS, PEERS
from .markdown import best, table
from .numbers import Number, Records, collect, paper_neighborhoods, paper_table, shown, verdict

SPELLED = {
    "angle": "angle",
    "distance": "distance",
    "neighborhood": "neighbourhood",
    "density": "density",
}


def opening() -> str:
    return """# The paper, reproduced

Every table and figure of *Sailing in high-dimensional spaces: Low-dimensional embeddings through
angle preservation* (Fischer and Ma, 2024), run anew with this library and current versions of the
peers, beside the paper's own numbers. This file is written by a program from recorded results;
none of its numbers is typed by hand. To run everything:

    python -m paper --data DIR

`DIR` has the real data (`docs/datasets.md` says what to download from where). Peers are taken from
the running interpreter, or from those that `MERCAT_PEERS_PYTHON` and `MERCAT_NCVIS_PYTHON` name.
The section on the strongest rivals is measured by `python -m benchmarks.rivals`.
What has been run is not run again; remove a file of `paper/results` to have it made anew.
"""


def in_short(
    results: Mapping[str, claims.Results], runtimes: Records, notes: Mapping[str, str]
) -> str:
    together = {**results["synthetic"], **results["real"]}
    lines = ["## In short", ""]
    lines += [_wins(together, claims.NONLINEAR, "UMAP, t-SNE, NCVis, densMAP and PaCMAP")]
    lines += [_wins(together, PEERS, "these and PCA")]
    lines += [_against_paper(results["synthetic"], "synthetic")]
    lines += [runtime.in_short(runtimes)]
    lines += [_other_data(results["real"], notes)]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _wins(results: claims.Results, rivals: tuple[str, ...], named: str) -> str:
    found = claims.contests(results, rivals)
    if not found:
        return f"- **Against {named}**: no results yet."
    won = claims.wins(found)
    text = (
        f"- **Against {named}**, each on the better of two inputs: Mercat with its defaults "
        f"preserves angles best on {won.angle} of {won.sets} sets, distances best on "
        f"{won.distance}, both on {won.both}."
    )
    close = sum(c.won and verdict(c.ours, c.theirs) == "match" for c in found)
    if close:
        text += (
            f" By the mean of the draws: {close} of the {sum(c.won for c in found)} differences are within "
            "two standard deviations of it, and single draws may turn out otherwise."
        )
    lost = [
        f"{SETS[c.name].title}, {c.measure}: {shown(c.ours.mean, 3)} against "
        f"{title(c.rival)}'s {shown(c.theirs.mean, 3)}"
        for c in found
        if not c.won
    ]
    return text + (f" Not best: {'; '.join(lost)}." if lost else "")


def _other_data(results: claims.Results, notes: Mapping[str, str]) -> str | None:
    names = sorted({key[0] for key in results}, key=list(SETS).index)
    if not names:
        return None
    own = [SETS[name].title for name in names if not notes.get(name)]
    return (
        f"- **The paper's own data** among the {len(names)} real sets: {', '.join(own) or 'none'}. The "
        "others are stand-ins or subsets, as the next table says: beside the paper's numbers they tell of "
        "other data."
    )


def _against_paper(results: claims.Results, name: str) -> str | None:
    found = claims.comparisons(results, name)
    if not found:
        return None
    parts = []
    for measures in (("angle", "distance"), ("neighborhood", "density")):
        counts = dict.fromkeys(("beat", "match", "miss"), 0)
        for c in found:
            if c.measure in measures:
                counts[c.verdict] += 1
        what = " and ".join(SPELLED[m] for m in measures)
        parts.append(
            f"{what}: {counts['beat']} above, {counts['match']} equal, {counts['miss']} below"
        )
    return (
        f"- **Against the paper's own Mercat** on the {len({c.name for c in found})} toy and "
        f"synthetic sets (equal: within two standard deviations): {'; '.join(parts)}. "
        "Each number below is explained in its section."
    )


def data_sets(records: Mapping[str, Records]) -> str:
    """Data sets, and their differences from the paper's."""
    seen: dict[str, dict[str, Any]] = {}
    for part in records.values():
        for record in part.values():
            if "set" in record and (record["set"] not in seen or "screenot_rank" in record):
                seen[record["set"]] = record
    rows = []
    for name, entry in SETS.items():
        if name not in seen:
            continue
        record = seen[name]
        if "n" not in record:
            rows.append([entry.title, entry.kind, "-", "-", f"**not run**: {record['reason']}"])
            continue
        rank = str(record.get("screenot_rank", "-"))
        shape = f"{record['n']:,} x {record['d']:,}"
        drawn = "generated" if entry.drawn else "as in the paper"
        note = f"**{record['note']}**" if record["note"] else drawn
        rows.append([entry.title, entry.kind, shape, rank, note])
    head = ["set", "kind", "points x features", "ScreeNOT rank", "which data"]
    return (
        "## Data\n\n" + table(head, rows) + "\nMeasures are those of `mercat.metrics`: "
        "Mercat's with arcs and angles of the sphere, the others' of the plane. Angles, distances "
        "and densities are compared with the data, or with 50 principal components where the paper "
        "says n = 50 (all real sets but blood); neighbourhoods with the data denoised by ScreeNOT, "
        "to the rank in the table. On more than 5000 points measures are taken on a sample, with "
        "standard errors of a few thousandths, recorded beside each number.\n"
    )


# ------------------------------------------------------------------ the two main tables


def synthetic_table(results: claims.Results, notes: Mapping[str, str]) -> str:
    text = (
        "## Toy and synthetic data\n\nMean ± standard deviation over three draws; in small print "
        "the paper's number for the same method. Best of ours in bold. Mammoth is one data set, of "
        "which methods have three seeds; Algorithm 1 has one draw of Smiley and one seed of "
        "Mammoth.\n\n"
    )
    return text + _main_table(results, "synthetic") + _verdicts(results, "synthetic", notes)


def real_table(results: claims.Results, notes: Mapping[str, str]) -> str:
    cut = [n for n, s in real.SCHEDULES.items() if s["max_iter"] != real.PAPER_ITERATIONS[n]]
    short = "; ".join(
        f"{SETS[n].title} for {real.SCHEDULES[n]['max_iter']} passes instead of the paper's "
        f"{real.PAPER_ITERATIONS[n]}"
        for n in cut
    )
    text = (
        "## Real data\n\nOne seed, as in the paper; in small print the paper's numbers, which are "
        "for other cells where the table above says so. As in the paper, t-SNE gets 50 principal "
        f"components and the other peers the data. Algorithm 1 ran on {short}; otherwise its "
        "schedules are the paper's.\n\n"
    )
    text += _main_table(results, "real") + _verdicts(results, "real", notes)
    return text + _inputs_table(results)


def _main_table(results: claims.Results, name: str) -> str:
    paper = paper_table(name)
    rows = []
    for set_name in SETS:
        if not any(key[0] == set_name for key in results):
            continue
        for measure in MEASURES:
            ours = [results.get((set_name, m, None), {}).get(measure) for m in METHODS]
            cells = best(ours)
            for i, method in enumerate(METHODS):
                theirs = paper.get((set_name, measure, method))
                if method in PEERS and theirs is not None:
                    cells[i] += f" <sub>{theirs}</sub>"
            heading = SETS[set_name].title if measure == MEASURES[0] else ""
            theirs = paper.get((set_name, measure, "mercat"))
            rows.append([heading, SPELLED[measure], "" if theirs is None else str(theirs), *cells])
    return table(["set", "measure", "paper's Mercat", *map(title, METHODS)], rows)


def _verdicts(results: claims.Results, name: str, notes: Mapping[str, str]) -> str:
    """Explain each number below the paper's Mercat, then compare the peers."""
    found = claims.comparisons(results, name)
    missed = [c for c in found if c.verdict == "miss"]
    if not found:
        return "\nNo results yet.\n"
    lines = [f"\n**Below the paper's Mercat**: {len(missed)} of {len(found)} numbers.\n"]
    for c in missed:
        why = claims.explanation(c, results, notes.get(c.name, ""))
        where = f"{SETS[c.name].title}, {SPELLED[c.measure]}"
        lines.append(f"- {where}: {c.ours} against {c.paper}. {why[0].upper()}{why[1:]}")
    lines.append("")
    lines.append(_peers_against_paper(results, name))
    return "\n".join(lines) + "\n"


def _peers_against_paper(results: claims.Results, name: str) -> str:
    paper = paper_table(name)
    parts = []
    for method in PEERS:
        gaps: dict[str, list[float]] = {"angle": [], "distance": []}
        for (set_name, which, reduced), ours in results.items():
            for measure, found in gaps.items():
                theirs = paper.get((set_name, measure, method))
                if which == method and reduced is None and theirs is not None:
                    found.append(ours[measure].mean - theirs.mean)
        if gaps["angle"]:
            angle, distance = (f"{np.mean(v):+.2f}" for v in gaps.values())
            parts.append(f"{title(method)} {angle} and {distance}")
    return (
        "**The peers** in their current versions, against the paper's numbers for them: angle and "
        f"distance preservation differ on average by {', '.join(parts)}.\n"
        if parts
        else ""
    )


def loss_table(results: Mapping[str, claims.Results]) -> str:
    """The paper's loss after Algorithm 1, and the effect of minimising it further."""
    together = {**results["synthetic"], **results["real"]}
    ways = ("mercat-algorithm1", "mercat-absolute", "mercat")
    rows, lower, worse = [], 0, 0
    for name, entry in SETS.items():
        found = [together.get((name, way, None)) for way in ways]
        if any(f is None or "loss" not in f for f in found):
            continue
        literal, absolute, _ = found
        lower += absolute["loss"].mean < literal["loss"].mean
        worse += absolute["angle"].mean < literal["angle"].mean
        cells = [f"{shown(f['loss'].mean, 3)} ({shown(f['angle'].mean, 3)})" for f in found]
        rows.append([entry.title, *cells])
    if not rows:
        return ""
    return (
        "## The paper's loss\n\nRoot mean squared difference of cosines, over all triples of at "
        f"most {N_LOSS} points, and in brackets the angle preservation. Against Algorithm 1, the "
        f"solver of this library reaches a lower loss on {lower} of {len(rows)} sets, yet preserves "
        f"angles worse on {worse}: in high dimension cosines concentrate around 1/2, and matching "
        "their mean costs their order. The calibrated objective, the default, ignores the mean.\n\n"
        + table(["set", *(title(way) for way in ways)], rows)
    )


def _inputs_table(results: claims.Results) -> str:
    methods = [m for m in PEERS if any(k[1] == m and k[2] is not None for k in results)]
    if not methods:
        return ""
    rows = []
    for name in real.NAMES:
        cells = []
        for method in methods:
            raw, reduced = (results.get((name, method, k)) for k in (None, 50))
            cells.append(f"{_pair(raw)} → {_pair(reduced)}")
        if any(key[0] == name for key in results):
            rows.append([SETS[name].title, _pair(results.get((name, "mercat", None))), *cells])
    text = "\n**Does the input matter?** Angle / distance with the data → with 50 components.\n\n"
    return text + table(["set", "Mercat", *map(title, methods)], rows)


def _pair(found: Mapping[str, Number] | None) -> str:
    return "-" if found is None else f"{found['angle']} / {found['distance']}"


# ------------------------------------------------------------------ the two studies


def scaling_table(records: Records) -> str:
    results = collect(records.values(), "set", "scaling", "method")
    if not results:
        return ""
    paper = paper_table("real")
    rows = []
    for (name, how, method), found in results.items():
        theirs = [paper[name, m, "mercat" if "mercat" in method else method] for m in MEASURES]
        cells = [f"{found[m]} <sub>{t}</sub>" for m, t in zip(MEASURES, theirs, strict=True)]
        rows.append([SETS[name].title, how, title(method), *cells])
    order = [SETS[name].title for name in scaling.SCALED]
    rows.sort(key=lambda row: (order.index(row[0]), row[1]))
    head = ["set", "features", "method", *(SPELLED[m] for m in MEASURES)]
    return (
        "## The scaling of the features\n\nThe paper does not state it, and it matters: each set "
        "is measured here against itself under several scalings; in small print the paper's "
        "numbers.\n\n" + table(head, rows)
    )


def neighborhood_table(records: Records) -> str:
    results = collect(records.values(), "set", "method", "neighbors")
    if not results:
        return ""
    paper = paper_neighborhoods()
    parts = [
        "## The neighbourhood study\n\nRows by method, columns by the size of its neighbourhood "
        "(or perplexity); in small print the paper's numbers. The paper's header has the same "
        "sizes for all sets; for Paul15 the ones of its text are taken. Mercat has no such "
        "parameter.\n"
    ]
    for name, sizes in neighborhood.SIZES.items():
        rows = []
        for method in neighborhood.METHODS:
            for measure in MEASURES:
                found = [results.get((name, method, k), {}).get(measure) for k in sizes]
                theirs = [paper[name, measure, method, k] for k in sizes]
                cells = [
                    f"{mine} <sub>{shown(t)}</sub>"
                    for mine, t in zip(best(found), theirs, strict=True)
                ]
                first = title(method) if measure == MEASURES[0] else ""
                rows.append([first, SPELLED[measure], *cells])
        parts.append(f"**{SETS[name].title}**\n")
        parts.append(table(["method", "measure", *map(str, sizes)], rows))
    return "\n".join(parts)


# ------------------------------------------------------------------ other parts


def picture(folder: Path, name: str, caption: str) -> str:
    path = folder / "figures" / f"{name}.png"
    return f"![{caption}](figures/{name}.png)\n\n*{caption}*\n" if path.is_file() else ""


def methods_and_versions(records: Mapping[str, Records]) -> str:
    everything = [r for part in records.values() for r in part.values()]
    versions: dict[str, set[str]] = {}
    for record in _embeddings(everything):
        for package, version in record.get("versions", {}).items():
            versions.setdefault(package, set()).add(version)
    machines = {
        f"{m['cores']} cores of {m['cpu']}, {m['system']}"
        for m in (r["machine"] for r in everything if "machine" in r)
    }
    used = ", ".join(f"{p} {' and '.join(sorted(v))}" for p, v in sorted(versions.items()))
    lines = [
        "## Methods, versions, machine",
        "",
        "Settings are those of the paper's appendix (`benchmarks/harness/methods.py` has them in "
        "full): UMAP with 15 neighbours; t-SNE with perplexity 30, 1000 iterations, learning rate "
        "200; NCVis with 15 neighbours; densMAP with 30 neighbours and 750 epochs. PaCMAP and PCA, "
        "which the paper does not have, with their defaults. t-SNE is openTSNE, the paper's an R "
        "package. Mercat in three ways: as it is (`Mercat()`), with the paper's loss "
        '(`objective="absolute"`), and by the paper\'s Algorithm 1.',
        "",
        f"Versions: {used}. Machine: {'; '.join(sorted(machines))}, shared with other work.",
        "",
        *_not_run(everything),
    ]
    return "\n".join(lines) + "\n"


def _embeddings(records: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for record in records:
        yield record
        yield from record.get("methods", {}).values()


def _not_run(records: list[dict[str, Any]]) -> list[str]:
    """All methods that were not run, with the reason."""
    failed: dict[tuple[str, str], set[str]] = {}
    for record in records:
        for method, r in ((record.get("method"), record), *record.get("methods", {}).items()):
            if r.get("status", "ok") != "ok":
                what = title(method) if method in METHODS else "all methods"
                reason = f"{r['status']} ({r['reason']})"
                failed.setdefault((what, reason), set()).add(record.get("set", ""))
    if not failed:
        return ["Every method ran on every set."]
    lines = ["Not run:", ""]
    for (what, reason), names in sorted(failed.items()):
        where = ", ".join(SETS[n].title for n in sorted(names) if n in SETS)
        lines.append(f"- {what}, on {where}: {reason}")
    return lines
