"""Comparison with other strong methods ("rivals"), from `benchmarks/results/rivals.json`.

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
    found: Records = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def collect(records: Records) -> dict[tuple[str, str], dict[str, Score]]:
    """The measures by set and variant."""
    found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for record in records.values():
        if record["status"] == "ok":
            scores = found.setdefault((record["set"], record["variant"]), {})
            for name, value in {**record["measures"], "seconds": record["seconds"]["cpu"]}.items():
                scores.setdefault(name, {})[record["seed"]] = value
    return {key: {m: Score(v) for m, v in scores.items()} for key, scores in found.items()}


def _sets(found: Results) -> list[str]:
    return [name for name in SETS if any(key[0] == name for key in found)]


def _variants(found: Results) -> list[str]:
    return [variant.key for variant in VARIANTS if any(key[1] == variant.key for key in found)]


def _cell(number: Score, *, spread: bool, digits: int = 3) -> str:
    text = shown(number.mean, digits)
    return f"{text} ±{shown(number.deviation, digits)}" if spread and number.deviation else text


# ------------------------------------------------------------------ tables


def table(found: Results, measure: str, *, spread: bool = False) -> str:
    """A measure of every method on every set; the best per set in bold."""
    names = _sets(found)
    rows = []
    for key in _variants(found):
        cells = []
        for name in names:
            number = found.get((name, key), {}).get(measure)
            if number is None:
                cells.append("-")
            elif measure == "seconds":
                cells.append(f"{number.mean:.2g}" if number.mean < 99.5 else f"{number.mean:.0f}")
            else:
                text = _cell(number, spread=spread)
                top = measure in COMPARED and number.mean >= _best(found, name, measure) - 5e-4
                cells.append(f"**{text}**" if top else text)
        rows.append([TITLES[key], *cells])
    return markdown.table(["method", *(SETS[name].title for name in names)], rows, left=1)


def _best(found: Results, name: str, measure: str) -> float:
    return max(numbers[measure].mean for key, numbers in found.items() if key[0] == name)


def structureless_table(found: Results) -> str:
    """Clumps on maps of data without clumps; 0 is correct."""
    names = [name for name in STRUCTURELESS if any(key[0] == name for key in found)]
    rows = []
    for key in _variants(found):
        numbers = [found.get((name, key), {}).get("false structure") for name in names]
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
    best: tuple[str, Score]  # best score over the values of `detail`
    rivals: list[Better]  # the best first


def losses(found: Results, measures: Sequence[str] = COMPARED) -> list[Loss]:
    """All losses: against the default in angles and distances, else against the best `detail`."""
    lost = []
    for measure in measures:
        for name in _sets(found):
            here = {key[1]: n[measure] for key, n in found.items() if key[0] == name}
            dial = {key: n for key, n in here.items() if key.startswith("mercat")}
            if DEFAULT not in dial:
                continue
            best = max(dial.items(), key=lambda item: item[1].mean)
            bar = here[DEFAULT] if measure in CLAIMED else best[1]
            better = [
                Better(key, score, score.minus(bar))
                for key, score in here.items()
                if key not in dial and score.over(bar).values and score.minus(bar).mean > 5e-5
            ]
            better.sort(key=lambda rival: -rival.by.mean)
            if better:
                lost.append(Loss(name, measure, here[DEFAULT], best, better))
    return lost


def losses_table(found: Results) -> str:
    """Table of losses: the better methods, their margins, and whether these exceed the spread over draws."""
    rows = []
    for loss in losses(found):
        best = f"{_cell(loss.best[1], spread=True)} at {loss.best[0].split()[1]}"
        ours = _cell(loss.ours, spread=True)
        rivals = ", ".join(map(str, loss.rivals))
        rows.append([NAMES[loss.measure], SETS[loss.name].title, ours, best, rivals])
    head = ["measure", "data", "Mercat, default", "best `detail`", "better"]
    return markdown.table(head, rows) if rows else "No rival is better in any measure on any set.\n"


def claims_text(found: Results, notes: Mapping[str, str], *, brief: bool = False) -> str:
    """Text on where Mercat's default is best in angles and distances; without scores if `brief`."""
    names = [name for name in _sets(found) if (name, DEFAULT) in found]
    if not names:
        return "*Not measured yet.*\n"
    lost = losses(found, CLAIMED)
    angles, distances = ([loss for loss in lost if loss.measure == m] for m in CLAIMED)
    far = [loss for loss in distances if loss.rivals[0].by.mean > CLOSE]
    text = (
        f"With its defaults, Mercat preserves angles best on {len(names) - len(angles)} of {len(names)} "
        f"sets. It preserves distances best on {len(names) - len(distances)} sets, and within "
        f"{shown(CLOSE, 3)} of the best on {len(distances) - len(far)} more."
    )
    better = (
        ("Angles are preserved better", angles),
        (f"Distances are preserved better by more than {shown(CLOSE, 3)}", far),
    )
    if brief:
        return (
            " ".join([text, *(f"{what} {_by_rival(which)}." for what, which in better if which)])
            + "\n"
        )
    text += f" {other_data(names, notes)}\n"
    for what, which in better:
        if which:
            text += f"\n{what} on\n\n" + "".join(f"- {_best_rival(loss)}\n" for loss in which)
    return text


def _by_rival(lost: Sequence[Loss]) -> str:
    """Text naming the best rival of each loss, with the sets and margins of each rival together."""
    sets: dict[str, list[str]] = {}
    for loss in lost:
        rival = loss.rivals[0]
        margin = f"{SETS[loss.name].title} (by {shown(rival.by.mean, rival.digits)})"
        sets.setdefault(rival.key, []).append(margin)
    return "; ".join(
        f"by {TITLES[key]} on {markdown.listed(margins)}" for key, margins in sets.items()
    )


def _best_rival(loss: Loss) -> str:
    rival = loss.rivals[0]
    ours = _cell(loss.ours.over(rival.score), spread=True)
    return f"{SETS[loss.name].title}: {rival}; Mercat has {ours}"


def other_data(names: Sequence[str], notes: Mapping[str, str]) -> str:
    """Text naming the sets that are not the paper's own."""
    stand_ins, subsets = (
        [SETS[n].title for n in names if notes.get(n, "").startswith(kind)]
        for kind in ("stand-in", "subset")
    )
    parts = [
        f"{markdown.listed(titles)} {'is' if len(titles) == 1 else 'are'} {kind}"
        for titles, kind in (
            (stand_ins, "replaced by similar data, because the paper's were not available"),
            (subsets, "reduced to a subset"),
        )
        if titles
    ]
    return f"Of the {len(names)} sets, {', and '.join(parts)}." if parts else ""


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
    found: dict[str, set[str]] = {}
    for record in records.values():
        for package, version in record.get("versions", {}).items():
            title = (
                "DREAMS (openTSNE)"
                if (record["method"], package) == ("dreams", "openTSNE")
                else package
            )
            found.setdefault(title, set()).add(version)
    each = (
        f"{p} {' and '.join(sorted(v))}"
        for p, v in sorted(found.items(), key=lambda i: i[0].lower())
    )
    return f"Versions: {', '.join(each)}.\n"


# ------------------------------------------------------------------ neighbourhoods against distances


def curve(found: Results, name: str, method: str, beside: Score | None = None) -> np.ndarray:
    """Neighbourhoods and distances (values, 2) of a method by setting, over all seeds or those of a score."""
    keys = (Variant(method, value).key for value in DIALS[method][1])
    scores = [found[name, key] for key in keys if (name, key) in found]
    points = [[s[m] for m in ("neighborhood", "distance")] for s in scores]
    kept = [[s if beside is None else s.over(beside) for s in pair] for pair in points]
    means = [[s.mean for s in pair] for pair in kept if all(s.values for s in pair)]
    return np.array(means).reshape(-1, 2)


def above(line: np.ndarray, point: np.ndarray, by: float = 0.0) -> bool:
    """Whether no point of a polyline is as good in both coordinates as the point minus `by`."""
    steps = np.linspace(0, 1, 201)[:, None, None]
    between = line[:-1] * (1 - steps) + line[1:] * steps
    reached = np.vstack([between.reshape(-1, 2), line])
    return not bool(np.any(np.all(reached >= point - by - 1e-9, axis=1)))


def above_mercat(found: Results, by: float = 0.0) -> dict[str, list[str]]:
    """For each set, the rivals' points above Mercat's curve by more than `by`."""
    result: dict[str, list[str]] = {}
    for name in _sets(found):
        if (name, DEFAULT) not in found:
            continue
        result[name] = []
        for (owner, key), n in found.items():
            if owner != name or key.startswith("mercat"):
                continue
            line = curve(found, name, "mercat", n["distance"])
            point = np.array([n["neighborhood"].mean, n["distance"].mean])
            if len(line) and above(line, point, by):
                result[name].append(key)
    return result


def tradeoff_text(found: Results) -> str:
    """Text on the number of sets without rivals above Mercat's curve, and on the rivals elsewhere."""
    points = above_mercat(found)
    if not points:
        return "*Not measured yet.*\n"
    order = list(TITLES)
    clear = above_mercat(found, CLOSE)
    text = (
        f"On {sum(not keys for keys in points.values())} of {len(points)} sets, no other method lies above "
        f"Mercat's curve; on {sum(not keys for keys in clear.values())}, none lies above it by more than "
        f"{shown(CLOSE, 3)} in both measures."
    )
    each = "".join(
        f"- {SETS[name].title}: "
        + ", ".join(
            TITLES[key] + ("" if key in clear[name] else f" (by at most {shown(CLOSE, 3)})")
            for key in sorted(keys, key=order.index)
        )
        + "\n"
        for name, keys in points.items()
        if keys
    )
    return f"{text} These methods lie above it:\n\n{each}" if each else f"{text}\n"


def main() -> Path | None:
    """Draw the figure, which the site also shows, and return its path."""
    found = collect(read())
    if not _sets(found):
        return None
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn = figure(found)
    drawn.savefig(FIGURE, dpi=100)
    plt.close(drawn)
    return FIGURE


COLORS = {"mercat": "#0072B2", "dreams": "#D55E00", "squad-hybrid": "#009E73"}
_MARKERS = "s^vD<>pPXhd*"


def figure(found: Results) -> Any:
    """Neighbourhoods against distances: methods with several settings as curves, others as points, per set.

    Methods with much worse distances than all curves are hollow, at the lower edge.
    """
    import matplotlib.pyplot as plt

    names = _sets(found)
    columns = 4
    rows = -(-(len(names) + 1) // columns)
    drawn, axes = plt.subplots(
        rows, columns, figsize=(3.5 * columns, 3.1 * rows), layout="constrained", squeeze=False
    )
    others = [key for key in _variants(found) if key.split()[0] not in COLORS]
    looks = {key: (_MARKERS[i % len(_MARKERS)], f"C{i}") for i, key in enumerate(others)}
    known: dict[str, Any] = {}
    for ax, name in zip(axes.flat, names, strict=False):
        curves = {method: curve(found, name, method) for method in COLORS}
        here = {key: n for (owner, key), n in found.items() if owner == name}
        top = max(n["distance"].mean for n in here.values())
        least = min([top - 0.1, *(line[:, 1].min() for line in curves.values() if len(line))])
        floor = least - 0.15 * (top - least)
        for key, (marker, color) in looks.items():
            if key in here:
                x, y = here[key]["neighborhood"].mean, here[key]["distance"].mean
                look: dict[str, Any] = {
                    "marker": marker,
                    "ls": "",
                    "ms": 6,
                    "mec": color,
                    "alpha": 0.8,
                }
                face = "none" if y < floor else color
                ax.plot(x, max(y, floor), mfc=face, clip_on=False, **look)
                known[TITLES[key]] = plt.Line2D([], [], mfc=color, **look)
        for method, color in COLORS.items():
            line = curves[method]
            if len(line):
                title = f"{methods.title(method)}, several settings"
                path = ax.plot(*line.T, "o-", color=color, ms=4, lw=2, label=title, zorder=3)
                ax.plot(*line[0], "o", color=color, ms=8, mfc="white", mew=2, zorder=4)
                known[title] = path[0]
        ax.set_ylim(floor, top + 0.08 * (top - floor))
        ax.set_title(SETS[name].title, fontsize=11)
        ax.set(xlabel="neighbourhoods", ylabel="distances")
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    dials = [title for title in known if title.endswith(", several settings")]
    order = [*dials, *(TITLES[key] for key in others)]
    room = axes.flat[len(names)]
    room.legend([known[t] for t in order], order, loc="upper left", fontsize=8, frameon=False)
    return drawn


# ------------------------------------------------------------------ which method for which question


def leaders_table(found: Results) -> str:
    """For each measure, the settings of Mercat and of rivals with the best mean rank over the sets.

    Ranks are those of the first draw or seed, which all methods have. Only methods that were measured on
    all of Mercat's sets are ranked.
    """
    names = [name for name in _sets(found) if (name, DEFAULT) in found]
    rows = []
    for measure in COMPARED:
        ranks: dict[str, list[int]] = {}
        near: dict[str, int] = {}
        for name in names:
            here = {
                key[1]: n[measure].values[SEEDS[0]]
                for key, n in found.items()
                if key[0] == name and SEEDS[0] in n[measure].values
            }
            for key, value in here.items():
                ranks.setdefault(key, []).append(1 + sum(v > value + 5e-5 for v in here.values()))
                near[key] = near.get(key, 0) + (value >= max(here.values()) - CLOSE)
        means = {key: float(np.mean(r)) for key, r in ranks.items() if len(r) == len(names)}
        ordered = sorted(means, key=lambda key: means[key])
        ours = [key for key in ordered if key.startswith("mercat")][:1]
        theirs = [key for key in ordered if not key.startswith("mercat")][:3]
        cells = [f"{TITLES[key]} ({means[key]:.1f}, {near[key]})" for key in (*ours, *theirs)]
        rows.append([NAMES[measure], *cells, *["-"] * (4 - len(cells))])
    return markdown.table(["measure", "Mercat", "best rival", "second", "third"], rows, left=1)


# ------------------------------------------------------------------ the report


def section(records: Records) -> str:
    """Section of the report, or nothing without results."""
    found = collect(records)
    if not _sets(found):
        return ""
    parts = [
        "## Comparison with other strong methods\n",
        "This section adds methods that preserve distances, or that trade local against global structure. "
        "Each has its default parameters, except that several values of the trade-off parameter are used if "
        "there is one. Numbers differ from those of the tables above, because all methods are applied to 50 "
        "principal components where the measures use these, and because some sets are reduced to subsets. "
        f"The tables show means and standard deviations over up to {len(SEEDS)} draws of synthetic data, or "
        "seeds; a number without a standard deviation is from a single draw, or did not vary. The best mean "
        "is in bold. Margins over Mercat are means over the draws on which the other method was run.\n",
        notes_list(records),
        claims_text(found, notes(records)),
        "### Losses\n",
        "The last column lists all methods that preserve angles or distances better than Mercat with its "
        "defaults, or that are better in another measure than Mercat with any value of `detail`.\n",
        losses_table(found),
    ]
    for measure, name in NAMES.items():
        parts += [
            f"### {name[0].upper()}{name[1:]}\n",
            _about(measure),
            table(found, measure, spread=True),
        ]
    parts += [
        "### False structure\n",
        "`metrics.false_structure` of maps of 2,000 points without clumps: uniform in a ball in 5 "
        "dimensions, and Gaussian with the spectrum of MNIST. 0 means a smooth density, positive values "
        "mean clumps, and negative ones an even spacing.\n",
        structureless_table(found),
        "### Neighbourhoods against distances\n",
        "A method lies above Mercat's curve if no value of `detail` (or point between two of them) preserves "
        "both neighbourhoods and distances at least as well.\n",
        tradeoff_text(found),
        f"![Neighbourhoods against distances, by set](../docs/images/{FIGURE.name})\n",
        versions(records),
        f"Did not run:\n\n{not_run(records)}" if not_run(records) else "All methods ran.\n",
    ]
    return "\n".join(part for part in parts if part)


def _about(measure: str) -> str:
    return {
        "recall": "Fraction of the 10 nearest neighbours in the data that are also among the 10 nearest on "
        "the map. Together with class-centroid recall and distances, this is the protocol of DREAMS.\n",
        "centroid recall": "Fraction of the 6 nearest class centroids in the data (or half the number of "
        "classes, if there are fewer than 12) that are also nearest on the map. The classes of Circle and "
        "Cell cycle are arcs of 36 degrees.\n",
        "clumps": "`metrics.false_structure` of the maps. Clumps may be clusters of the data: compare "
        "methods on the same set only.\n",
        "seconds": "CPU time of a fit, after a small first call, on a machine shared with other programs.\n",
    }.get(measure, "")


if __name__ == "__main__":
    print(main())
