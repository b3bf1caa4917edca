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
angle preservation* (Fischer and Ma, 2024), computed with this library and current versions of the
other methods, next to the paper's numbers. All of our numbers are generated from recorded results.
To run everything:

    python -m paper --data DIR

`DIR` has the real data (`docs/datasets.md` says what to download from where). Other methods run in
the current Python environment, or with the interpreters that `MERCAT_PEERS_PYTHON` and
`MERCAT_NCVIS_PYTHON` name. The section on the strongest rivals needs `python -m benchmarks.rivals`.
Existing results are kept: to compute results again, delete their file in `paper/results`.
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


def _wins(results: claims.Results, rivals: tuple[str, ...], rivals_named: str) -> str:
    contests = claims.contests(results, rivals)
    if not contests:
        return f"- **Against {rivals_named}**: no results yet."
    won = claims.wins(contests)
    text = (
        f"- **Against {rivals_named}**, each on the better of two inputs: Mercat with its defaults "
        f"preserves angles best on {won.angle} of {won.sets} sets, distances best on "
        f"{won.distance}, both on {won.both}."
    )
    close = sum(c.won and verdict(c.ours, c.theirs) == "match" for c in contests)
    if close:
        text += (
            f" {close} of these {sum(c.won for c in contests)} leads are within two standard deviations, "
            "so the order may differ between draws."
        )
    not_best = [
        f"{SETS[c.name].title}, {c.measure}: {shown(c.ours.mean, 3)} against "
        f"{title(c.rival)}'s {shown(c.theirs.mean, 3)}"
        for c in contests
        if not c.won
    ]
    return text + (f" Not best: {'; '.join(not_best)}." if not_best else "")


def _other_data(results: claims.Results, notes: Mapping[str, str]) -> str | None:
    names = sorted({key[0] for key in results}, key=list(SETS).index)
    if not names:
        return None
    own_data = [SETS[name].title for name in names if not notes.get(name)]
    return (
        f"- **The paper's own data** among the {len(names)} real sets: {', '.join(own_data) or 'none'}. The "
        "others are stand-ins or subsets (see the next table), so their numbers cannot be compared with "
        "the paper's."
    )


def _against_paper(results: claims.Results, name: str) -> str | None:
    comparisons = claims.comparisons(results, name)
    if not comparisons:
        return None
    parts = []
    for measures in (("angle", "distance"), ("neighborhood", "density")):
        counts = dict.fromkeys(("beat", "match", "miss"), 0)
        for c in comparisons:
            if c.measure in measures:
                counts[c.verdict] += 1
        what = " and ".join(SPELLED[m] for m in measures)
        parts.append(
            f"{what}: {counts['beat']} above, {counts['match']} equal, {counts['miss']} below"
        )
    return (
        f"- **Against the paper's own Mercat** on the {len({c.name for c in comparisons})} toy and "
        f"synthetic sets (equal: within two standard deviations): {'; '.join(parts)}. "
        "Numbers below the paper's are explained in their sections."
    )


def data_sets(records: Mapping[str, Records]) -> str:
    """Data sets, and their differences from the paper's."""
    record_of: dict[str, dict[str, Any]] = {}
    for part in records.values():
        for record in part.values():
            if "set" in record and (record["set"] not in record_of or "screenot_rank" in record):
                record_of[record["set"]] = record
    rows = []
    for name, entry in SETS.items():
        if name not in record_of:
            continue
        record = record_of[name]
        if "n" not in record:
            rows.append([entry.title, entry.kind, "-", "-", f"**not run**: {record['reason']}"])
            continue
        rank = str(record.get("screenot_rank", "-"))
        shape = f"{record['n']:,} x {record['d']:,}"
        source = "generated" if entry.drawn else "as in the paper"
        note = f"**{record['note']}**" if record["note"] else source
        rows.append([entry.title, entry.kind, shape, rank, note])
    head = ["set", "kind", "points x features", "ScreeNOT rank", "which data"]
    return (
        "## Data\n\n" + table(head, rows) + "\nMeasures are those of `mercat.metrics`: "
        "with arcs and angles on the sphere for Mercat, in the plane for the others. Angles, distances "
        "and densities are compared with the data, or with 50 principal components where the paper "
        "says n = 50 (all real sets but blood); neighbourhoods with the data denoised by ScreeNOT, "
        "to the rank in the table. With more than 5000 points, measures use a sample; their standard "
        "errors, a few thousandths, are recorded with the results.\n"
    )


# ------------------------------------------------------------------ the two main tables


def synthetic_table(results: claims.Results, notes: Mapping[str, str]) -> str:
    text = (
        "## Toy and synthetic data\n\nMean ± standard deviation over three draws; in small print "
        "the paper's number for the same method. The best of our numbers is in bold. Mammoth is a single "
        "data set, embedded with three seeds; Algorithm 1 was run on one draw of Smiley and with one "
        "seed on Mammoth.\n\n"
    )
    return text + _main_table(results, "synthetic") + _verdicts(results, "synthetic", notes)


def real_table(results: claims.Results, notes: Mapping[str, str]) -> str:
    shortened = [n for n, s in real.SCHEDULES.items() if s["max_iter"] != real.PAPER_ITERATIONS[n]]
    short = "; ".join(
        f"{SETS[n].title} for {real.SCHEDULES[n]['max_iter']} passes instead of the paper's "
        f"{real.PAPER_ITERATIONS[n]}"
        for n in shortened
    )
    text = (
        "## Real data\n\nOne seed, as in the paper; in small print the paper's numbers, which are "
        "for other data where the table above says so. As in the paper, t-SNE gets 50 principal "
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
    comparisons = claims.comparisons(results, name)
    below = [c for c in comparisons if c.verdict == "miss"]
    if not comparisons:
        return "\nNo results yet.\n"
    lines = [f"\n**Below the paper's Mercat**: {len(below)} of {len(comparisons)} numbers.\n"]
    for c in below:
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
        differences_by_measure: dict[str, list[float]] = {"angle": [], "distance": []}
        for (set_name, run_method, n_components), ours in results.items():
            for measure, differences in differences_by_measure.items():
                theirs = paper.get((set_name, measure, method))
                if run_method == method and n_components is None and theirs is not None:
                    differences.append(ours[measure].mean - theirs.mean)
        if differences_by_measure["angle"]:
            angle, distance = (f"{np.mean(v):+.2f}" for v in differences_by_measure.values())
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
    methods = ("mercat-algorithm1", "mercat-absolute", "mercat")
    rows, lower, worse = [], 0, 0
    for name, entry in SETS.items():
        scores = [together.get((name, way, None)) for way in methods]
        if any(f is None or "loss" not in f for f in scores):
            continue
        literal, absolute, _ = scores
        lower += absolute["loss"].mean < literal["loss"].mean
        worse += absolute["angle"].mean < literal["angle"].mean
        cells = [f"{shown(f['loss'].mean, 3)} ({shown(f['angle'].mean, 3)})" for f in scores]
        rows.append([entry.title, *cells])
    if not rows:
        return ""
    return (
        "## The paper's loss\n\nRoot mean squared difference of cosines, over all triples of at "
        f"most {N_LOSS} points, and in brackets the angle preservation. Against Algorithm 1, the "
        f"solver of this library reaches a lower loss on {lower} of {len(rows)} sets, yet preserves "
        f"angles worse on {worse}: in high dimensions, cosines concentrate around 1/2, and matching "
        "their mean worsens their order. The calibrated objective, the default, ignores the mean.\n\n"
        + table(["set", *(title(way) for way in methods)], rows)
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


def _pair(scores: Mapping[str, Number] | None) -> str:
    return "-" if scores is None else f"{scores['angle']} / {scores['distance']}"


# ------------------------------------------------------------------ the two studies


def scaling_table(records: Records) -> str:
    results = collect(records.values(), "set", "scaling", "method")
    if not results:
        return ""
    paper = paper_table("real")
    rows = []
    for (name, scaling_name, method), scores in results.items():
        paper_numbers = [
            paper[name, m, "mercat" if "mercat" in method else method] for m in MEASURES
        ]
        cells = [
            f"{scores[m]} <sub>{t}</sub>" for m, t in zip(MEASURES, paper_numbers, strict=True)
        ]
        rows.append([SETS[name].title, scaling_name, title(method), *cells])
    order = [SETS[name].title for name in scaling.SCALED]
    rows.sort(key=lambda row: (order.index(row[0]), row[1]))
    head = ["set", "features", "method", *(SPELLED[m] for m in MEASURES)]
    return (
        "## The scaling of the features\n\nThe paper does not state it, but it matters: each set "
        "is embedded and measured under several scalings; in small print the paper's numbers.\n\n"
        + table(head, rows)
    )


def neighborhood_table(records: Records) -> str:
    results = collect(records.values(), "set", "method", "neighbors")
    if not results:
        return ""
    paper = paper_neighborhoods()
    parts = [
        "## The neighbourhood study\n\nRows by method, columns by the size of its neighbourhood "
        "(or perplexity); in small print the paper's numbers. The header of the paper's table has "
        "the same sizes for all sets; for Paul15, those of its text are used. Mercat has no such "
        "parameter.\n"
    ]
    for name, sizes in neighborhood.SIZES.items():
        rows = []
        for method in neighborhood.METHODS:
            for measure in MEASURES:
                numbers = [results.get((name, method, k), {}).get(measure) for k in sizes]
                theirs = [paper[name, measure, method, k] for k in sizes]
                cells = [
                    f"{our_number} <sub>{shown(t)}</sub>"
                    for our_number, t in zip(best(numbers), theirs, strict=True)
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
        "200; NCVis with 15 neighbours; densMAP with 30 neighbours and 750 epochs; PaCMAP and PCA, "
        "which are not in the paper, with their defaults. t-SNE is openTSNE; the paper used an R "
        "package. Mercat is run with its defaults (`Mercat()`), with the paper's loss "
        '(`objective="absolute"`), and as the paper\'s Algorithm 1.',
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
    sets_by_reason: dict[tuple[str, str], set[str]] = {}
    for record in records:
        for method, r in ((record.get("method"), record), *record.get("methods", {}).items()):
            if r.get("status", "ok") != "ok":
                what = title(method) if method in METHODS else "all methods"
                reason = f"{r['status']} ({r['reason']})"
                sets_by_reason.setdefault((what, reason), set()).add(record.get("set", ""))
    if not sets_by_reason:
        return ["Every method ran on every set."]
    lines = ["Not run:", ""]
    for (what, reason), names in sorted(sets_by_reason.items()):
        where = ", ".join(SETS[n].title for n in sorted(names) if n in SETS)
        lines.append(f"- {what}, on {where}: {reason}")
    return lines
