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
    return """# Reproduction of the paper

This report reproduces the tables and figures of *Sailing in high-dimensional spaces: Low-dimensional
embeddings through angle preservation* (Fischer and Ma, 2024) with this library and current versions of
the other methods, and compares the results with the paper's. All numbers are generated from recorded
results. To run everything:

    python -m paper --data DIR

`DIR` is the folder of the real data (`docs/datasets.md` says what to download). The other methods run in
the same Python interpreter, unless the environment variables `MERCAT_PEERS_PYTHON` and
`MERCAT_NCVIS_PYTHON` name others. Results that exist are not computed again; delete a file of
`paper/results` to recompute it. The section on other strong methods contains the results of `python -m
benchmarks.rivals`.
"""


def in_short(
    results: Mapping[str, claims.Results], runtimes: Records, notes: Mapping[str, str]
) -> str:
    together = {**results["synthetic"], **results["real"]}
    lines = ["## Summary", ""]
    lines += [_wins(together, claims.NONLINEAR, "UMAP, t-SNE, NCVis, densMAP and PaCMAP")]
    lines += [_wins(together, PEERS, "these and PCA")]
    lines += [_against_paper(results["synthetic"], "synthetic")]
    lines += [runtime.in_short(runtimes)]
    lines += [_other_data(results["real"], notes)]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _wins(results: claims.Results, rivals: tuple[str, ...], named: str) -> str:
    found = claims.contests(results, rivals)
    if not found:
        return f"- **Compared with {named}**: no results yet."
    won = claims.wins(found)
    text = (
        f"- **Compared with {named}**, each with the better of two inputs (the data or 50 principal "
        f"components): Mercat with its defaults preserves angles best on {won.angle} of {won.sets} sets, "
        f"distances best on {won.distance}, and both best on {won.both}."
    )
    close = sum(c.won and verdict(c.ours, c.theirs) == "match" for c in found)
    if close:
        text += (
            f" Means over the draws are compared; {close} of the {sum(c.won for c in found)} differences are "
            "within two standard deviations, so single draws may differ."
        )
    lost = [
        f"{SETS[c.name].title}, {c.measure}: {shown(c.ours.mean, 3)} against "
        f"{title(c.rival)}'s {shown(c.theirs.mean, 3)}"
        for c in found
        if not c.won
    ]
    return text + (f" Mercat is not best on: {'; '.join(lost)}." if lost else "")


def _other_data(results: claims.Results, notes: Mapping[str, str]) -> str | None:
    names = sorted({key[0] for key in results}, key=list(SETS).index)
    if not names:
        return None
    own = [SETS[name].title for name in names if not notes.get(name)]
    return (
        f"- **Data**: of the {len(names)} real sets, only {', '.join(own) or 'none'} is exactly the paper's. "
        "The others are similar data or subsets (see the next table), so their numbers need not agree with "
        "the paper's."
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
        f"- **Compared with the paper's results for Mercat** on the {len({c.name for c in found})} toy and "
        f"synthetic sets: {'; '.join(parts)}. (Numbers within two standard deviations count as equal.) The "
        "section of the data explains each number that is below the paper's."
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
    head = ["set", "kind", "points x features", "ScreeNOT rank", "data"]
    return (
        "## Data\n\n"
        + table(head, rows)
        + "\nThe measures are those of `mercat.metrics`, on the sphere "
        "for Mercat and in the plane for other methods. As in the paper, angles, distances and densities are "
        "compared with those of the data, or of 50 principal components for all real sets except blood. "
        "Neighbourhoods are compared with those of the data denoised by ScreeNOT (to the rank in the table). "
        "For more than 5000 points, measures are estimated from a sample; their standard errors, a few "
        "thousandths, are recorded with the results.\n"
    )


# ------------------------------------------------------------------ the two main tables


def synthetic_table(results: claims.Results, notes: Mapping[str, str]) -> str:
    text = (
        "## Toy and synthetic data\n\nThe table shows means and standard deviations over three random draws "
        "of each data set, with the paper's number for the same method in small print. The best of the new "
        "results is in bold. Mammoth is a single data set, on which methods run with three seeds. Algorithm "
        "1 runs on one draw of Smiley and with one seed on Mammoth.\n\n"
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
        "## Real data\n\nEach method runs with one seed, as in the paper. The paper's numbers, in small "
        "print, are for other cells where the table of data says so. As in the paper, t-SNE is applied to 50 "
        f"principal components, and the other methods to the data. Algorithm 1 ran on {short}; its other "
        "settings are the paper's.\n\n"
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
    """Explain each number below the paper's Mercat, then compare the other methods."""
    found = claims.comparisons(results, name)
    missed = [c for c in found if c.verdict == "miss"]
    if not found:
        return "\nNo results yet.\n"
    lines = [f"\n**Numbers below those of the paper's Mercat**: {len(missed)} of {len(found)}.\n"]
    for c in missed:
        why = claims.explanation(c, results, notes.get(c.name, ""))
        where = f"{SETS[c.name].title}, {SPELLED[c.measure]}"
        lines.append(f"- {where}: {c.ours} instead of {c.paper}. {why}")
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
        "**Other methods.** With their current versions, angle and distance preservation differ from the "
        f"paper's numbers by, on average: {', '.join(parts)}.\n"
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
        "## The paper's loss\n\nThe table shows the "
        "root mean squared difference of cosines, over "
        f"all triples of at most {N_LOSS} points, and "
        "in brackets the angle preservation. With the "
        "paper's loss, the solver of this library "
        "reaches a lower loss than Algorithm 1 on "
        f"{lower} of {len(rows)} sets, but preserves "
        f"angles worse on {worse}. The reason is that "
        "cosines concentrate around 1/2 in many "
        "dimensions: a map that matches their mean may "
        "preserve their order less well. The "
        "calibrated objective, the default, ignores "
        "the mean.\n\n" + table(["set", *(title(way) for way in ways)], rows)
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
    text = (
        "\n**Effect of the input.** Angle / distance preservation of methods applied to the data → to 50 "
        "principal components.\n\n"
    )
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
        "## Effect of the scaling of features\n\nThe paper does not say how features were scaled, but this "
        "affects the measures. Here, each embedding is compared with the data scaled in the same way; the "
        "paper's numbers are in small print.\n\n" + table(head, rows)
    )


def neighborhood_table(records: Records) -> str:
    results = collect(records.values(), "set", "method", "neighbors")
    if not results:
        return ""
    paper = paper_neighborhoods()
    parts = [
        "## Effect of the number of neighbours\n\nEach column is a number of neighbours (for t-SNE, a "
        "perplexity); the paper's numbers are in small print. The header of the paper's table has the same "
        "sizes for all sets, but its text names others for Paul15, which are used here. Mercat has no such "
        "parameter by default.\n"
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
        f"{m['cores']} core{'s' * (m['cores'] != 1)} of {m['cpu']}, {m['system']}"
        for m in (r["machine"] for r in everything if "machine" in r)
    }
    used = ", ".join(f"{p} {' and '.join(sorted(v))}" for p, v in sorted(versions.items()))
    lines = [
        "## Methods, versions, machine",
        "",
        "The settings are those of the paper's appendix (all of them are in "
        "`benchmarks/harness/methods.py`): UMAP with 15 neighbours; t-SNE with perplexity 30, 1000 "
        "iterations and learning rate 200; NCVis with 15 neighbours; densMAP with 30 neighbours and 750 "
        "epochs. PaCMAP and PCA, which are not in the paper, have their defaults. t-SNE is openTSNE; the "
        "paper used an R package. "
        "Mercat is run with its defaults (`Mercat()`), with the paper's loss "
        '(`objective="absolute"`), and with the paper\'s Algorithm 1.',
        "",
        f"Versions: {used}. Machines, shared with other programs: {'; '.join(sorted(machines))}.",
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
        return ["All methods ran on all sets."]
    lines = ["These methods did not run:", ""]
    for (what, reason), names in sorted(failed.items()):
        where = ", ".join(SETS[n].title for n in sorted(names) if n in SETS)
        lines.append(f"- {what}, on {where}: {reason}")
    return lines
