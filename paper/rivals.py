"""Comparison with the strongest rivals: tables, losses and a figure from `benchmarks/results/rivals.json`.

All scores of rivals that are better than Mercat's are printed (`losses_table`), with the spread over draws.
A rival that was not measured on all draws is compared on its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import methods
from benchmarks.harness.data import SETS
from benchmarks.rivals import DIALS, RESULTS, SEEDS, STRUCTURELESS, VARIANTS, Variant

from . import markdown
from .numbers import Records, shown

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "rivals.png"
DEFAULT = "mercat 0"
CLOSE = 0.005  # distances closer than this count as equal
NAMES = {
    "angle": "angles",
    "distance": "distances",
    "neighborhood": "neighbourhoods",
    "density": "densities",
    "accuracy": "10-NN accuracy",
    "connectivity": "class connectivity",
    "triplets": "random triplets",
    "recall": "10-NN recall",
    "centroid recall": "class-centroid recall",
    "clumps": "clumps",
    "seconds": "processor seconds",
}
# Measures (higher is better) for which the default of Mercat is compared.
CLAIMED = ("angle", "distance")
COMPARED = (
    *("angle", "distance", "neighborhood", "density"),
    *("accuracy", "connectivity", "triplets", "recall", "centroid recall"),
)
TITLES = {variant.key: variant.title for variant in VARIANTS}


class Score(NamedTuple):
    """A measure by seed, which draws synthetic data, or else is the seed of the method."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @property
    def deviation(self) -> float:
        """Standard deviation of the sample; 0 for one seed."""
        values = list(self.values.values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    def over(self, other: Score) -> Score:
        """The score on the seeds that the other score also has."""
        return Score({seed: v for seed, v in self.values.items() if seed in other.values})

    def minus(self, other: Score) -> Score:
        """The difference, seed by seed."""
        return Score({seed: v - other.values[seed] for seed, v in self.over(other).values.items()})


Results = Mapping[tuple[str, str], Mapping[str, Score]]


def read(path: Path = RESULTS) -> Records:
    records: Records = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return records


def collect(records: Records) -> dict[tuple[str, str], dict[str, Score]]:
    """The measures by set and variant."""
    scores_by_key: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for record in records.values():
        if record["status"] == "ok":
            scores = scores_by_key.setdefault((record["set"], record["variant"]), {})
            for name, value in {**record["measures"], "seconds": record["seconds"]["cpu"]}.items():
                scores.setdefault(name, {})[record["seed"]] = value
    return {key: {m: Score(v) for m, v in scores.items()} for key, scores in scores_by_key.items()}


def _sets(results: Results) -> list[str]:
    return [name for name in SETS if any(key[0] == name for key in results)]


def _variants(results: Results) -> list[str]:
    return [variant.key for variant in VARIANTS if any(key[1] == variant.key for key in results)]


def _cell(number: Score, *, spread: bool, digits: int = 3) -> str:
    text = shown(number.mean, digits)
    return f"{text} ±{shown(number.deviation, digits)}" if spread and number.deviation else text


# ------------------------------------------------------------------ tables


def table(results: Results, measure: str, *, spread: bool = False) -> str:
    """A measure of every method on every set; the best per set in bold."""
    names = _sets(results)
    rows = []
    for key in _variants(results):
        cells = []
        for name in names:
            number = results.get((name, key), {}).get(measure)
            if number is None:
                cells.append("-")
            elif measure == "seconds":
                cells.append(f"{number.mean:.2g}" if number.mean < 99.5 else f"{number.mean:.0f}")
            else:
                text = _cell(number, spread=spread)
                top = measure in COMPARED and number.mean >= _best(results, name, measure) - 5e-4
                cells.append(f"**{text}**" if top else text)
        rows.append([TITLES[key], *cells])
    return markdown.table(["method", *(SETS[name].title for name in names)], rows, left=1)


def _best(results: Results, name: str, measure: str) -> float:
    return max(numbers[measure].mean for key, numbers in results.items() if key[0] == name)


def structureless_table(results: Results) -> str:
    """Clumps on maps of data without clumps; 0 is correct."""
    names = [name for name in STRUCTURELESS if any(key[0] == name for key in results)]
    rows = []
    for key in _variants(results):
        numbers = [results.get((name, key), {}).get("false structure") for name in names]
        if any(numbers):
            rows.append([TITLES[key], *("-" if n is None else shown(n.mean) for n in numbers)])
    return markdown.table(["method", *(STRUCTURELESS[n].title for n in names)], rows, left=1)


class Better(NamedTuple):
    """A rival that is better than Mercat."""

    key: str
    score: Score
    by: Score  # the margin, seed by seed

    @property
    def digits(self) -> int:
        """Number of decimals that show the margin."""
        return 3 if self.by.mean >= 5e-4 else 4

    def __str__(self) -> str:
        if len(self.by.values) == 1:
            sure = ", one draw"
        else:
            sure = "" if self.by.mean > 2 * self.by.deviation else ", within the spread"
        score = _cell(self.score, spread=True, digits=self.digits)
        return f"{TITLES[self.key]} {score} (by {shown(self.by.mean, self.digits)}{sure})"


class Loss(NamedTuple):
    """A set and a measure in which rivals are better than Mercat."""

    name: str
    measure: str
    ours: Score  # the default's
    best: tuple[str, Score]  # of Mercat's dial
    rivals: list[Better]  # the best first


def losses(results: Results, measures: Sequence[str] = COMPARED) -> list[Loss]:
    """All losses: against the default in angles and distances, else against the best `detail`."""
    all_losses = []
    for measure in measures:
        for name in _sets(results):
            scores_on_set = {key[1]: n[measure] for key, n in results.items() if key[0] == name}
            mercat_scores = {key: n for key, n in scores_on_set.items() if key.startswith("mercat")}
            if DEFAULT not in mercat_scores:
                continue
            best = max(mercat_scores.items(), key=lambda item: item[1].mean)
            reference = scores_on_set[DEFAULT] if measure in CLAIMED else best[1]
            better = [
                Better(key, score, score.minus(reference))
                for key, score in scores_on_set.items()
                if key not in mercat_scores
                and score.over(reference).values
                and score.minus(reference).mean > 5e-5
            ]
            better.sort(key=lambda rival: -rival.by.mean)
            if better:
                all_losses.append(Loss(name, measure, scores_on_set[DEFAULT], best, better))
    return all_losses


def losses_table(results: Results) -> str:
    """Table of losses: the better methods, their margins, and whether these exceed the spread over draws."""
    rows = []
    for loss in losses(results):
        best = f"{_cell(loss.best[1], spread=True)} at {loss.best[0].split()[1]}"
        ours = _cell(loss.ours, spread=True)
        rivals = ", ".join(map(str, loss.rivals))
        rows.append([NAMES[loss.measure], SETS[loss.name].title, ours, best, rivals])
    head = ["measure", "data", "Mercat, default", "best `detail`", "better"]
    return markdown.table(head, rows) if rows else "No rival is better in any measure on any set.\n"


def claims_text(results: Results, notes: Mapping[str, str], *, brief: bool = False) -> str:
    """Text on where Mercat's default is best in angles and distances; without numbers if `brief`."""
    names = [name for name in _sets(results) if (name, DEFAULT) in results]
    if not names:
        return "*Not measured yet.*\n"
    claimed_losses = losses(results, CLAIMED)
    angles, distances = ([loss for loss in claimed_losses if loss.measure == m] for m in CLAIMED)
    far = [loss for loss in distances if loss.rivals[0].by.mean > CLOSE]
    text = (
        f"Among all methods, Mercat with its defaults preserves angles best on {len(names) - len(angles)} "
        f"of {len(names)} sets, and distances best on {len(names) - len(distances)}, within "
        f"{shown(CLOSE, 3)} of the best on {len(distances) - len(far)} more."
    )
    for what, which in (
        ("Angles are preserved better", angles),
        (f"Distances are preserved better by more than {shown(CLOSE, 3)}", far),
    ):
        if which:
            text += f" {what} {'; '.join(_best_rival(loss, brief) for loss in which)}."
    return f"{text} {other_data(names, notes)}\n"


def _best_rival(loss: Loss, brief: bool) -> str:
    title, rival = SETS[loss.name].title, loss.rivals[0]
    if brief:
        return f"on {title} by {TITLES[rival.key]} (+{shown(rival.by.mean, rival.digits)})"
    ours = loss.ours.over(rival.score)
    return f"on {title}, where it has {_cell(ours, spread=True)}, by {rival}"


def other_data(names: Sequence[str], notes: Mapping[str, str]) -> str:
    """Text naming the sets that are not the paper's own."""
    stand_ins, subsets = (
        [SETS[n].title for n in names if notes.get(n, "").startswith(kind)]
        for kind in ("stand-in", "subset")
    )
    return (
        f"Of these {len(names)} sets, {_are(stand_ins, 'stand-in')} for the paper's{_listed(stand_ins)} and "
        f"{_are(subsets, 'subset')}{_listed(subsets)}."
    )


def _are(titles: Sequence[str], kind: str) -> str:
    return f"1 is a {kind}" if len(titles) == 1 else f"{len(titles)} are {kind}s"


def _listed(titles: Sequence[str]) -> str:
    return f" ({', '.join(titles)})" if titles else ""


def notes(records: Records) -> dict[str, str]:
    """Data that differ from the paper's, by set."""
    return {r["set"]: r["note"] for r in records.values() if r.get("note")}


def notes_list(records: Records) -> str:
    return "".join(f"- {SETS[n].title}: {note}.\n" for n, note in sorted(notes(records).items()))


def not_run(records: Records) -> str:
    """Methods that did not run, with the reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records.values():
        if record["status"] != "ok":
            key = (TITLES[record["variant"]], f"{record['status']} ({record['reason']})")
            name = record["set"]
            reasons.setdefault(key, []).append({**SETS, **STRUCTURELESS}[name].title)
    lines = [
        f"- {title}, {'no set' if reason.startswith('not') else ', '.join(sorted(set(sets)))}: {reason}\n"
        for (title, reason), sets in sorted(reasons.items())
    ]
    return "".join(line.replace(", no set:", ":") for line in lines)


def versions(records: Records) -> str:
    """Packages of the methods, with versions."""
    versions_by_package: dict[str, set[str]] = {}
    for record in records.values():
        for package, version in record.get("versions", {}).items():
            title = (
                "DREAMS (openTSNE)"
                if (record["method"], package) == ("dreams", "openTSNE")
                else package
            )
            versions_by_package.setdefault(title, set()).add(version)
    entries = (
        f"{p} {' and '.join(sorted(v))}"
        for p, v in sorted(versions_by_package.items(), key=lambda i: i[0].lower())
    )
    return f"Versions: {', '.join(entries)}.\n"


# ------------------------------------------------------------------ neighbourhoods against distances


def curve(results: Results, name: str, method: str, seeds_of: Score | None = None) -> np.ndarray:
    """Neighbourhoods and distances (values, 2) of a method by setting, over all seeds or those of a score."""
    keys = (Variant(method, value).key for value in DIALS[method][1])
    scores = [results[name, key] for key in keys if (name, key) in results]
    points = [[s[m] for m in ("neighborhood", "distance")] for s in scores]
    restricted = [[s if seeds_of is None else s.over(seeds_of) for s in pair] for pair in points]
    means = [[s.mean for s in pair] for pair in restricted if all(s.values for s in pair)]
    return np.array(means).reshape(-1, 2)


def above(line: np.ndarray, point: np.ndarray, by: float = 0.0) -> bool:
    """Whether no point of a polyline is as good in both coordinates as the point minus `by`."""
    steps = np.linspace(0, 1, 201)[:, None, None]
    segments = line[:-1] * (1 - steps) + line[1:] * steps
    points_on_line = np.vstack([segments.reshape(-1, 2), line])
    return not bool(np.any(np.all(points_on_line >= point - by - 1e-9, axis=1)))


def above_mercat(results: Results, by: float = 0.0) -> dict[str, list[str]]:
    """For each set, the rivals' points above Mercat's curve by more than `by`."""
    keys_above: dict[str, list[str]] = {}
    for name in _sets(results):
        if (name, DEFAULT) not in results:
            continue
        keys_above[name] = []
        for (owner, key), n in results.items():
            if owner != name or key.startswith("mercat"):
                continue
            line = curve(results, name, "mercat", n["distance"])
            point = np.array([n["neighborhood"].mean, n["distance"].mean])
            if len(line) and above(line, point, by):
                keys_above[name].append(key)
    return keys_above


def tradeoff_text(results: Results) -> str:
    """Text on the number of sets without rivals above Mercat's curve, and on the rivals elsewhere."""
    points = above_mercat(results)
    if not points:
        return "*Not measured yet.*\n"
    order = list(TITLES)
    clearly_above = above_mercat(results, CLOSE)
    text = (
        f"On {sum(not keys for keys in points.values())} of {len(points)} sets no point of another method "
        f"lies above Mercat's curve, on {sum(not keys for keys in clearly_above.values())} none by more than "
        f"{shown(CLOSE, 3)} in both."
    )
    each = "; ".join(
        f"{SETS[name].title}: "
        + ", ".join(
            TITLES[key] + ("" if key in clearly_above[name] else f" (by at most {shown(CLOSE, 3)})")
            for key in sorted(keys, key=order.index)
        )
        for name, keys in points.items()
        if keys
    )
    return f"{text} Above it lie, on {each}.\n" if each else f"{text}\n"


def main() -> Path | None:
    """Draw the figure, which the site also shows, and return its path."""
    results = collect(read())
    if not _sets(results):
        return None
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig = figure(results)
    fig.savefig(FIGURE, dpi=100)
    plt.close(fig)
    return FIGURE


COLORS = {"mercat": "#0072B2", "dreams": "#D55E00", "squad-hybrid": "#009E73"}
_MARKERS = "s^vD<>pPXhd*"


def figure(results: Results) -> Any:
    """Neighbourhoods against distances: methods with several settings as curves, others as points, per set.

    Methods with much worse distances than all curves are hollow, at the lower edge.
    """
    import matplotlib.pyplot as plt

    names = _sets(results)
    columns = 4
    rows = -(-(len(names) + 1) // columns)
    fig, axes = plt.subplots(
        rows, columns, figsize=(3.5 * columns, 3.1 * rows), layout="constrained", squeeze=False
    )
    others = [key for key in _variants(results) if key.split()[0] not in COLORS]
    marker_styles = {key: (_MARKERS[i % len(_MARKERS)], f"C{i}") for i, key in enumerate(others)}
    handles: dict[str, Any] = {}
    for ax, name in zip(axes.flat, names, strict=False):
        curves = {method: curve(results, name, method) for method in COLORS}
        scores_on_set = {key: n for (owner, key), n in results.items() if owner == name}
        top = max(n["distance"].mean for n in scores_on_set.values())
        lowest = min([top - 0.1, *(line[:, 1].min() for line in curves.values() if len(line))])
        floor = lowest - 0.15 * (top - lowest)
        for key, (marker, color) in marker_styles.items():
            if key in scores_on_set:
                x, y = scores_on_set[key]["neighborhood"].mean, scores_on_set[key]["distance"].mean
                line_style: dict[str, Any] = {
                    "marker": marker,
                    "ls": "",
                    "ms": 6,
                    "mec": color,
                    "alpha": 0.8,
                }
                face = "none" if y < floor else color
                ax.plot(x, max(y, floor), mfc=face, clip_on=False, **line_style)
                handles[TITLES[key]] = plt.Line2D([], [], mfc=color, **line_style)
        for method, color in COLORS.items():
            line = curves[method]
            if len(line):
                title = f"{methods.title(method)}, dial"
                path = ax.plot(*line.T, "o-", color=color, ms=4, lw=2, label=title, zorder=3)
                ax.plot(*line[0], "o", color=color, ms=8, mfc="white", mew=2, zorder=4)
                handles[title] = path[0]
        ax.set_ylim(floor, top + 0.08 * (top - floor))
        ax.set_title(SETS[name].title, fontsize=11)
        ax.set(xlabel="neighbourhoods", ylabel="distances")
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    dials = [title for title in handles if title.endswith(", dial")]
    order = [*dials, *(TITLES[key] for key in others)]
    legend_ax = axes.flat[len(names)]
    legend_ax.legend(
        [handles[t] for t in order], order, loc="upper left", fontsize=8, frameon=False
    )
    return fig


# ------------------------------------------------------------------ which method for which question


def leaders_table(results: Results) -> str:
    """For each measure, the settings of Mercat and of rivals with the best mean rank over the sets.

    Ranks are those of the first draw or seed, which all methods have. Only methods that were measured on
    all of Mercat's sets are ranked.
    """
    names = [name for name in _sets(results) if (name, DEFAULT) in results]
    rows = []
    for measure in COMPARED:
        ranks: dict[str, list[int]] = {}
        n_near_best: dict[str, int] = {}
        for name in names:
            values_on_set = {
                key[1]: n[measure].values[SEEDS[0]]
                for key, n in results.items()
                if key[0] == name and SEEDS[0] in n[measure].values
            }
            for key, value in values_on_set.items():
                ranks.setdefault(key, []).append(
                    1 + sum(v > value + 5e-5 for v in values_on_set.values())
                )
                n_near_best[key] = n_near_best.get(key, 0) + (
                    value >= max(values_on_set.values()) - CLOSE
                )
        means = {key: float(np.mean(r)) for key, r in ranks.items() if len(r) == len(names)}
        ordered = sorted(means, key=lambda key: means[key])
        ours = [key for key in ordered if key.startswith("mercat")][:1]
        theirs = [key for key in ordered if not key.startswith("mercat")][:3]
        cells = [
            f"{TITLES[key]} ({means[key]:.1f}, {n_near_best[key]})" for key in (*ours, *theirs)
        ]
        rows.append([NAMES[measure], *cells, *["-"] * (4 - len(cells))])
    return markdown.table(["measure", "Mercat", "best rival", "second", "third"], rows, left=1)


# ------------------------------------------------------------------ the report


def section(records: Records) -> str:
    """Section of the report, or nothing without results."""
    results = collect(records)
    if not _sets(results):
        return ""
    parts = [
        "## Comparison with the strongest rivals\n",
        "Methods for distances and for the trade-off between local and global structure, each with its "
        "defaults and, if it has a trade-off parameter, several values of it (`python -m "
        "benchmarks.rivals`). A method gets 50 principal components if the measures use these; therefore, "
        "and because of the subsets below, numbers differ from those of the tables above. Mean ± standard "
        f"deviation over up to {len(SEEDS)} draws of synthetic data, or seeds; numbers without a deviation "
        "are of the first only. The best is in bold, to three decimals. A rival is compared with Mercat on "
        "the draws that it was measured on.\n",
        notes_list(records),
        claims_text(results, notes(records)),
        "### Losses\n",
        "Every rival that preserves angles or distances better than Mercat's default, or scores higher in "
        "another measure than all values of `detail`.\n",
        losses_table(results),
    ]
    for measure, name in NAMES.items():
        parts += [
            f"### {name[0].upper()}{name[1:]}\n",
            _about(measure),
            table(results, measure, spread=True),
        ]
    parts += [
        "### False structure\n",
        "Clumps on maps of 2,000 points that have none: uniform in the ball of 5 dimensions, and Gaussian "
        "with the spectrum of MNIST. 0 is a smooth density; above are clumps, below an even spacing.\n",
        structureless_table(results),
        "### The trade-off between neighbourhoods and distances\n",
        tradeoff_text(results),
        f"![Neighbourhoods against distances, by set](../docs/images/{FIGURE.name})\n",
        versions(records),
        f"Did not run:\n\n{not_run(records)}" if not_run(records) else "Every method ran.\n",
    ]
    return "\n".join(part for part in parts if part)


def _about(measure: str) -> str:
    return {
        "recall": "With class-centroid recall and distances (Spearman), this is the protocol of DREAMS.\n",
        "centroid recall": "Recall of the 6 nearest class centroids, or of half of the classes if there are "
        "fewer than 12. The classes of Circle and Cell cycle are arcs of 36 degrees.\n",
        "clumps": "`metrics.false_structure` of the maps. Data with clusters have clumps, too, so compare "
        "methods.\n",
        "seconds": "Processor time of a fit, after a first small call, on a machine shared with other "
        "work.\n",
    }.get(measure, "")


if __name__ == "__main__":
    print(main())
