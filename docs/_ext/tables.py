"""Tables of measurements, from the committed results.

Pages contain them between marks such as ``<!-- speed -->`` and ``<!-- end -->``. To update them, run in the
repository's root::

    python docs/_ext/tables.py
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks.detail import CLOSE, SHORT_DIAL, WHOLE, summarize
from benchmarks.detail import SETS as DIAL_SETS
from benchmarks.harness.data import SETS
from benchmarks.harness.measure import MEASURES
from benchmarks.harness.methods import title
from benchmarks.structureless import DETAILS, PEERS
from benchmarks.structureless import SETS as STRUCTURELESS
from benchmarks.structureless import key_of as structureless_key
from mercat._parameters import PARAMETERS
from paper import claims, markdown, rivals
from paper.experiment import METHODS
from paper.markdown import best, seconds
from paper.numbers import Number, collect, shown

NOT_YET = "*Not measured yet.*\n"
PAGES = (
    "README.md",
    "docs/beside.md",
    "docs/api/index.md",
    "docs/measurements.md",
)
NAMES = dict(zip(MEASURES, ("angles", "distances", "neighbourhoods", "densities"), strict=True))
_CLASS_MEASURES = {"label accuracy": "10-NN accuracy", "class connectivity": "class connectivity"}


def fragments() -> dict[str, str]:
    """Every table, as Markdown."""
    measured = records()
    results = collect(measured, "set", "method", "n_components")
    names = ("core", "scale", "neighbors", "detail")
    core, scale, searches, dial = (_results(name) for name in names)
    return {
        "wins": wins(results, {r["set"]: r["note"] for r in measured if r["note"]}),
        "real": measures_table(results, "real") + notes(measured),
        "synthetic": measures_table(results, "toy", "synthetic"),
        "speed": speed_table(core),
        "small": small_table(core),
        "scale": scale_table(scale),
        "literal": literal_table(core),
        "growth": growth_table(scale),
        "cluster": cluster_table(scale),
        "torchdr": torchdr_table(_results("gpu")),
        "billion": billion_text(scale, _results("gpu")),
        "cores": cores_table(_results("cores")),
        "device": device_table(_results("gpu")),
        "searches": searches_table(searches),
        "dial": dial_table(dial),
        "by_seed": by_seed_table(dial),
        "sizes": sizes_table(dial),
        "peers": peers_table(dial),
        "ingest": ingest_table(_results("ingest")),
        "align": align_table(_results("align")),
        "calibration": calibration_table(_results("calibration")),
        "coverage": coverage_table(_results("calibration")),
        "uncertainty": uncertainty_table(_results("uncertainty")),
        "stability": stability_table(_results("stability")),
        "structureless": structureless_table(_results("structureless")),
        "pseudotime": pseudotime_table(_results("pseudotime")),
        "viewer": viewer_table(_results("viewer")),
        "parameters": parameters_table(),
        **rivals_tables(rivals.read()),
    }


def rivals_tables(measured: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """All tables and texts about rivals; the table of a measure is `rivals_<measure>`."""
    found = rivals.collect(measured)
    if not found:
        names = (
            "claims",
            "brief",
            "notes",
            "losses",
            "tradeoff",
            "false_structure",
            "leaders",
            "versions",
        )
        names += tuple(name.replace(" ", "_") for name in rivals.NAMES)
        return {f"rivals_{name}": NOT_YET for name in names}
    return {
        "rivals_claims": rivals.claims_text(found, rivals.notes(measured)),
        "rivals_brief": rivals.claims_text(found, rivals.notes(measured), brief=True),
        "rivals_notes": rivals.notes_list(measured) + rivals.not_run(measured),
        "rivals_losses": rivals.losses_table(found),
        "rivals_tradeoff": rivals.tradeoff_text(found),
        "rivals_false_structure": rivals.structureless_table(found),
        "rivals_leaders": rivals.leaders_table(found),
        "rivals_versions": rivals.versions(measured),
        **{f"rivals_{m.replace(' ', '_')}": rivals.table(found, m) for m in rivals.NAMES},
    }


def _results(name: str) -> dict[str, Any]:
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return found


def filled(text: str) -> str:
    """Return a text with its marked tables updated."""
    made = fragments()
    return re.sub(
        r"(<!-- (\w+) -->\n).*?(<!-- end -->)",
        lambda mark: mark[1] + made[mark[2]] + mark[3],
        text,
        flags=re.DOTALL,
    )


def records() -> list[dict[str, Any]]:
    """Records of all embeddings with default settings."""
    found = []
    for path in sorted((ROOT / "paper" / "results").glob("*.json")):
        for record in json.loads(path.read_text("utf-8")).values():
            plain = record.get("scaling") == "as is" and record.get("neighbors") is None
            if "measures" in record and plain:
                found.append(record)
    return found


def measures_table(results: Mapping[tuple[Any, ...], Mapping[str, Number]], *kinds: str) -> str:
    """The four measures of all sets and methods with results, the best in bold."""
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
    return _table(["data", "measure", *map(title, methods)], rows)


def notes(measured: Iterable[Mapping[str, Any]]) -> str:
    """Data that differ from the paper's."""
    found = {SETS[record["set"]].title: record["note"] for record in measured if record["note"]}
    return "\n" + "".join(f"- {name}: {note}.\n" for name, note in found.items())


def wins(results: claims.Results, notes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Number of sets on which Mercat with its defaults is best, and the exceptions."""
    found = claims.contests(results, claims.NONLINEAR)
    if not found:
        return ""
    won = claims.wins(found)
    lost = [
        f"{SETS[c.name].title}, {NAMES[c.measure]} ({shown(c.ours.mean)} against "
        f"{title(c.rival)}'s {shown(c.theirs.mean)})"
        for c in found
        if not c.won
    ]
    text = (
        "Compared with UMAP, t-SNE, NCVis, densMAP and PaCMAP, Mercat with its defaults preserves "
        f"angles best on {won.angle} of {won.sets} sets and distances best on {won.distance} of {won.sets}."
    )
    if lost:
        text += f" It is not best on: {'; '.join(lost)}."
    linear = claims.contests(results, ("pca",))
    better = {
        m: [SETS[c.name].title for c in linear if c.measure == m and not c.won]
        for m in ("angle", "distance")
    }
    text += (
        f" PCA preserves distances better than Mercat on {_counted(better['distance'])}, and angles on "
        f"{_counted(better['angle'])}."
    )
    names = {c.name for c in found}
    other = rivals.other_data([name for name in SETS if name in names], notes)
    return f"{text} {other}".rstrip() + "\n"


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} set{'s' * (len(names) != 1)} ({', '.join(names)})" if names else "none"


def speed_table(core: Mapping[str, Any]) -> str:
    """Times of all methods on the same data and machine, fastest first."""
    results = core.get("peers", {}).get("results", {})
    methods = {name: found for name, found in results.items() if _timed(found)}
    ordered = sorted(methods, key=lambda name: methods[name]["seconds"]["fit"])
    measures = {"angle": 2, "distance": 2, "neighborhood": 3, "label accuracy": 3}
    measures = {m: d for m, d in measures.items() if all(m in entry for entry in methods.values())}
    rows = []
    for name in ordered:
        entry = methods[name]
        times = [seconds(entry["seconds"][part]) for part in ("import", "fit")]
        rows.append([title(name), *times, *(shown(entry[m], d) for m, d in measures.items())])
    heads = {**NAMES, **_CLASS_MEASURES}
    return _table(["method", "import", "fit", *(heads[m] for m in measures)], rows)


def _timed(found: Any) -> bool:
    return isinstance(found, dict) and "seconds" in found


def small_table(core: Mapping[str, Any]) -> str:
    """Times of all methods on small sets."""
    results = core.get("small", {}).get("results", {})
    if not results:
        return NOT_YET
    names = [method for method, found in next(iter(results.values())).items() if _timed(found)]
    rows = [
        [SETS[name].title, *(seconds(found[m]["seconds"]["fit"]) for m in names)]
        for name, found in results.items()
    ]
    return _table(["data", *map(title, names)], rows)


def scale_table(scale: Mapping[str, Any]) -> str:
    """Total time, time per point and memory by number of points."""
    measured, rows = _measured(scale, "cpu"), []
    for n in (100_000, 1_000_000, 10_000_000):
        if entry := measured.get(n):
            each = f"{1e6 * entry['seconds'] / n:.0f} µs"
            rows.append([f"{n:,}", seconds(entry["seconds"]), each, _gib(entry)])
    return _table(["points", "time", "per point", "memory beyond the input"], rows)


def literal_table(core: Mapping[str, Any]) -> str:
    """The exact solver compared with the paper's algorithm as written."""
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
    head = ["data", "time, published", "time, Mercat", "loss, published", "loss, Mercat"]
    return _table(head, rows)


def _measured(scale: Mapping[str, Any], section: str) -> dict[int, Mapping[str, Any]]:
    """The results of a section by number of points."""
    results = scale.get(section, {}).get("results", {})
    return {int(n): results[n] for n in sorted(filter(str.isdecimal, results), key=int)}


def growth_table(scale: Mapping[str, Any]) -> str:
    """Time and memory by number of points, with and without detail."""
    plain, detailed = _measured(scale, "cpu"), _measured(scale, "detail")
    rows = []
    for n in sorted({*plain, *detailed}):
        cells = [f"{n:,}"]
        for found in (plain, detailed):
            entry = found.get(n)
            cells += ["", ""] if entry is None else [seconds(entry["seconds"]), _gib(entry)]
        rows.append(cells)
    head = [
        "points",
        "time",
        "memory beyond the input",
        "time, `detail=0.3`",
        "memory, `detail=0.3`",
    ]
    table = _table(head, rows)
    found = scale.get("million", {}).get("results", {})
    if "umap" not in found:
        return table
    return table + (
        "\nIn another run on the same million points, one method after the other, Mercat with `detail=0.3` "
        f"took {seconds(found['mercat'])} (finding {found['recall of neighbours']:.1%} of the neighbours) "
        f"and UMAP {seconds(found['umap'])}.\n"
    )


def _gib(entry: Mapping[str, float]) -> str:
    return f"{entry['GiB of peak beyond the input']:.2g} GiB"


def cluster_table(scale: Mapping[str, Any]) -> str:
    """Fits of data on disk with Dask, while a worker is killed."""
    found = [scale.get("dask", {}).get("results"), *_measured(scale, "dask with detail").values()]
    found, rows = list(filter(None, found)), []
    for run in found:
        sample = "" if "detail" not in run else f"{min(run['points'], run['n_detail'] or 10**6):,}"
        times = [seconds(run[key]) for key in ("seconds of fit", "seconds in all")]
        peaks = [f"{run[f'GiB of peak of {who}']:.2g} GiB" for who in ("a worker", "the client")]
        measured = [shown(v) for v in run["measures"].values()] if "measures" in run else [""] * 3
        rows.append([f"{run['points']:,}", sample, *times, *peaks, *measured])
    head = ["points", "rows with `detail=0.3`", "fit", "fit and placing", "peak of a worker"]
    head += ["of the client", "angles", "distances", "neighbourhoods"]
    if any(run["largest difference from placing in memory"] for run in found):
        return _table(head, rows)
    return (
        _table(head, rows) + "\nThe positions are the same to the bit as those placed in memory.\n"
    )


def torchdr_table(found: Mapping[str, Any]) -> str:
    """Times and measures of Mercat and TorchDR on a GPU."""
    if "torchdr" not in found:
        return NOT_YET
    rows = []
    for name, entry in found["torchdr"]["results"].items():
        method, points = name.split(", ")
        title = method if method.startswith("Mercat") else f"TorchDR: {method}"
        cells = [""] * 4
        if "failed" not in entry:
            cells = [seconds(entry["seconds"]), *(shown(entry[m], 3) for m in MEASURES[:3])]
        rows.append([f"{int(points):,}", title, *cells])
    return _table(["points", "method", "time", "angles", "distances", "neighbourhoods"], rows)


def billion_text(scale: Mapping[str, Any], gpu: Mapping[str, Any]) -> str:
    """A billion points, extrapolated."""
    streamed = gpu.get("host", {}).get("results")
    plain = _measured(scale, "cpu")
    if not streamed or not plain:
        return NOT_YET
    most = max(plain)
    each = plain[most]["seconds"] / most * scale["cpu"]["machine"]["cores"]
    points, took = streamed["points"], streamed["seconds"]
    return (
        f"- **One GPU.** {points:,} points in host memory took {took:.3g} seconds, so a billion would take "
        f"about {1e9 / points * took:.0f} seconds. From a disk, the fit would take at least as long as "
        f"reading the 200 GB twice: 80 seconds at 5 GB/s, 400 seconds at 1 GB/s.\n- **A cluster.** {most:,} "
        f"points take {1e6 * each:.0f} µs of one core per point, so a billion would take "
        f"{1e9 * each / 3600:.0f} core-hours, or {seconds(1e9 * each / 256)} on 16 machines with 16 cores "
        "each, if each machine can read its 12.5 GB twice in that time. A worker needs less than 1 GB.\n"
    )


def cores_table(found: Mapping[str, Any]) -> str:
    """Time of a fit by number of threads."""
    if not found:
        return NOT_YET
    results = [found[name]["results"] for name in ("plain", "detail")]
    threads = sorted({int(t) for result in results for t in result["seconds"]})
    rows = []
    for result in results:
        setting = f"`detail={result['detail']:g}`" if result["detail"] else "plain"
        times = [f"{result['seconds'][str(t)]:.3g} s" for t in threads]
        rows.append([f"{result['points']:,} points, {setting}", *times])
    return _table(["data", "1 thread", *(f"{t} threads" for t in threads[1:])], rows)


def device_table(found: Mapping[str, Any]) -> str:
    """Time, recall, memory and measures of fits on a GPU."""
    if not found:
        return NOT_YET
    fits, rows = found["fits"]["results"], []
    for name, sharp in fits.items():
        kind, points, setting = name.split(", ")
        plain = fits.get(f"{kind}, {points}, detail 0")
        if setting == "detail 0" or "failed" in sharp or not plain:
            continue
        times = [f"{entry['seconds']:.2g} s" for entry in (plain, sharp)]
        rest = [f"{sharp['recall']:.2f}", f"{sharp['GiB']:.2g} GiB"]
        measured = [f"{sharp[m]:.2f}" for m in ("angle", "distance")]
        rows.append([f"{int(points):,} points, {kind}", *times, *rest, *measured])
    head = [
        "data",
        "time, plain",
        "time, `detail=0.3`",
        "recall",
        "GPU memory",
        "angles",
        "distances",
    ]
    return _table(head, rows)


def searches_table(found: Mapping[str, Any]) -> str:
    """Time and recall of neighbour searches."""
    names = list(dict.fromkeys(name for entry in found.values() for name in entry["searches"]))
    rows = []
    for name in names:
        cells = [name]
        for entry in found.values():
            outcome = entry["searches"].get(name, {})
            took = outcome.get("seconds")
            cells += ["", ""] if took is None else [seconds(took), shown(outcome["recall"], 3)]
        rows.append(cells)
    head = [cell for name, entry in found.items() for cell in (f"{name}, {entry['n']:,}", "recall")]
    return _table(["search", *head], rows)


def dial_table(found: Mapping[str, Any]) -> str:
    """Measures of each set by `detail`."""
    table = _dial_table(found, {name: SETS[name].title for name in DIAL_SETS})
    return table if table == NOT_YET else table + "\n" + _little(found)


def _little(found: Mapping[str, Any]) -> str:
    """Text on the gains and costs of a small `detail`."""
    little = SHORT_DIAL[1]
    brings, costs = {}, []
    for name in DIAL_SETS:
        plain, sharp = (found[f"{name}/mercat/{v:g}"]["measures"] for v in (0.0, little))
        brings[SETS[name].title] = sharp["neighborhood"] / plain["neighborhood"]
        costs += [plain[m] - sharp[m] for m in ("angle", "distance")]
    least, *others = sorted(brings, key=lambda name: brings[name])
    return (
        f"`detail={little:g}` multiplies neighbourhood preservation by {brings[others[0]]:.2f} to "
        f"{brings[others[-1]]:.1f} ({least}: {brings[least]:.2f}) and lowers angle and distance preservation "
        f"by at most {shown(max(costs), 3)}.\n"
    )


def by_seed_table(found: Mapping[str, Any]) -> str:
    """Measures of classes and neighbourhoods for several seeds of peers: the median, and the range."""
    columns = ("mercat/0.3", "mercat/1")
    rows = []
    for name in DIAL_SETS:
        peers = [found.get(f"seeds/{name}/{peer}", {}).get("by_seed") for peer in _DIAL_PEERS]
        if not all(peers):
            continue
        ours = [found[f"{name}/{column}"]["measures"] for column in columns]
        for measure in ("neighborhood", *_CLASS_MEASURES):
            label = SETS[name].title if measure == "neighborhood" else ""
            theirs = (
                f"{shown(statistics.median(p[measure]), 3)} "
                f"({shown(min(p[measure]), 3)} to {shown(max(p[measure]), 3)})"
                for p in peers
                if p
            )
            words = {**NAMES, **_CLASS_MEASURES}[measure]
            rows.append([label, words, *(shown(m[measure], 3) for m in ours), *theirs])
    heads = ["Mercat, `detail=0.3`", "Mercat, `detail=1`", *map(title, _DIAL_PEERS)]
    return _table(["data", "measure", *heads], rows)


def sizes_table(found: Mapping[str, Any]) -> str:
    """The same for subsets of one data set."""
    sizes = {r["n"]: r["set"] for r in found.values() if r["set"].startswith(WHOLE)}
    return _dial_table(found, {sizes[n]: f"{n:,} points" for n in sorted(sizes)})


_DIAL_PEERS = ("umap", "tsne")


def _dial_table(found: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Measures by `detail`, and those of two peers if measured on the same set."""
    columns = [f"mercat/{value:g}" for value in SHORT_DIAL]
    if all(f"{name}/{peer}" in found for name in titles for peer in _DIAL_PEERS):
        columns += _DIAL_PEERS
    rows = []
    for name, heading in titles.items():
        records_ = [found.get(f"{name}/{column}", {}).get("measures") for column in columns]
        if not all(records_):
            continue
        for measure, words in {**NAMES, **_CLASS_MEASURES}.items():
            if all(measure in r for r in records_ if r):
                label = heading if measure == MEASURES[0] else ""
                rows.append([label, words, *(shown(r[measure], 3) for r in records_ if r)])
    heads = [f"{value:g}" for value in SHORT_DIAL]
    return _table(["data", "measure", *heads, *map(title, columns[len(heads) :])], rows)


def peers_table(found: Mapping[str, Any]) -> str:
    """For each set and peer, the value of `detail` whose smallest margin is largest, and its margins."""
    rows, close, better = [], [], []
    for key, entry in summarize(found).items():
        name, method = key.split("/")
        margins = [f"{entry['margins'][m]:+.3f}" if m in entry["margins"] else "" for m in MEASURES]
        rows.append([SETS[name].title, title(method), f"{entry['detail']:g}", *margins])
        close.append(entry["good"])
        better.append(min(entry["margins"].values()) >= 0)
    table = _table(["data", "compared with", "detail", *NAMES.values()], rows)
    counts = f"In {sum(close)} of {len(close)} comparisons, no difference is below -{shown(CLOSE)}"
    return table + f"\n{counts}; in {sum(better)}, none is negative.\n"


# Stand-ins for the paper's data sets that are not available.
_STAND_IN_TITLES = {
    "blood": "PBMC 68k, reduced",
    "pancreas": "Murine pancreas, day 15.5, subset",
    "paul15": "Paul15, subset",
}


def ingest_table(found: Mapping[str, Any]) -> str:
    """Held-out cells placed by `tl.ingest` and by scanpy: all cells, and those of one label."""
    head = ["reference", "query", "labels: Mercat", "scanpy"]
    head += ["angles: Mercat", "`detail=0.3`", "scanpy"]
    head += ["labels on the map: Mercat", "`detail=0.3`", "scanpy"]
    rows = []
    for record in found.values():
        if record["method"] != "mercat":
            continue
        name, part = record["set"], record["part"]
        ours = record["measures"]
        sharp, theirs = (found[f"{name}/{part}/{m}"]["measures"] for m in ("detail", "scanpy"))
        query = f"{record['n']} cells" if part == "all" else f"{record['n']} of one label"
        scores = [ours["labels"], theirs["labels"]]
        scores += [m[key] for key in ("angles", "labels on the map") for m in (ours, sharp, theirs)]
        title = _STAND_IN_TITLES.get(name, SETS[name].title)
        rows.append([title, query, *(f"{score:.2f}" for score in scores)])
    return _table(head, rows)


def align_table(found: Mapping[str, Any]) -> str:
    """Movement of old points, and angle and neighbourhood preservation, as data grow by a fifth."""
    head = [
        "data",
        "points",
        "`detail`",
        "movement: new",
        "model",
        "positions",
    ]
    head += ["angles: new", "model", "positions", "neighbourhoods: new", "model", "positions"]
    rows = []
    for record in found.values():
        name = record["set"]
        maps = [record["measures"][key] for key in ("fresh", "model", "positions")]
        row = [
            _STAND_IN_TITLES.get(name, SETS[name].title),
            f"{record['n']:,}",
            f"{record['detail']:g}",
        ]
        row += [f"{m['movement']:.1f}°" for m in maps]
        rows.append(row + [f"{m[key]:.3f}" for key in ("angles", "neighborhoods") for m in maps])
    return _table(head, rows)


_SETTING_TITLES = {
    "exact": "400 points, exact solver",
    "landmarks": "3000 points, 300 landmarks",
    "detail": "1200 points, `detail=0.3`",
}


def calibration_table(found: Mapping[str, Any]) -> str:
    """Mean coverage of regions by kind of map, and its range over distributions."""
    rows = []
    for setting, title_ in _SETTING_TITLES.items():
        for kind, words in (
            ("draws", "new data"),
            ("landmarks", "same data, other landmarks"),
        ):
            shares = [
                _coverage(record, kind)
                for record in found.values()
                if record["setting"] == setting and kind in record["coverage"]
            ]
            if not shares:
                continue
            cells = []
            for level in (0, 1):
                values = [share[level][0] for share in shares]
                mean = sum(values) / len(values)
                cells += [f"{mean:.0f} %", f"{min(values):.0f} to {max(values):.0f} %"]
            rows.append([title_, words, *cells])
    head = [
        "map",
        "compared with maps of",
        "in 50 % regions",
        "range",
        "in 90 % regions",
        "range",
    ]
    return _table(head, rows)


def coverage_table(found: Mapping[str, Any]) -> str:
    """Coverage of regions on maps of new data by distribution and kind of map, with standard errors."""
    names = sorted({key.split("/")[1] for key in found})
    rows = []
    for name in names:
        cells = []
        for setting in _SETTING_TITLES:
            record = found.get(f"{setting}/{name}")
            levels = _coverage(record, "draws") if record else None
            cells += [""] * 2 if levels is None else [f"{m:.0f} ± {e:.0f}" for m, e in levels]
        rows.append([_DATA_TITLES.get(name, name.replace("_", " ")), *cells])
    head = ["data", *(f"{setting}, {level} %" for setting in _SETTING_TITLES for level in (50, 90))]
    return _table(head, rows)


_DATA_TITLES = {
    **{f"ball_{d}": f"ball in {d} dimensions" for d in (3, 4, 5)},
    **{f"noise_{d}": f"noise in {d} dimensions" for d in (3, 4, 5, 10)},
}


def _coverage(record: Mapping[str, Any], kind: str) -> list[tuple[float, float]]:
    """Percentage of points in the regions of each level: mean and standard error over data sets."""
    data_sets = [_column_means(maps) for maps in record["coverage"][kind]]
    return [
        (100 * statistics.mean(values), 100 * statistics.stdev(values) / len(values) ** 0.5)
        for values in zip(*data_sets, strict=True)
    ]


def _column_means(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(column) for column in zip(*rows, strict=True)]


def uncertainty_table(results: Mapping[str, Any]) -> str:
    """Processor time of 20 maps, divided by that of a fit."""
    rows = [
        [
            f"{record['n']:,} points in {record['data']} clusters",
            f"{statistics.median(record['fit']):.1f} s",
            f"{record['ratio']:.1f}",
        ]
        for record in sorted(results.values(), key=lambda record: record["n"])
    ]
    return _table(["data", "time of a fit", "time of 20 maps / time of a fit"], rows)


_STABILITY_METHODS = {
    "mercat": "Mercat",
    "mercat-0.3": "Mercat, `detail=0.3`",
    "umap": "UMAP",
    "tsne": "t-SNE",
    "pacmap": "PaCMAP",
}


def stability_table(found: Mapping[str, Any]) -> str:
    """Median displacement between maps, by set and method."""
    rows = []
    for name in dict.fromkeys(record["set"] for record in found.values()):
        for kind, words in (("seeds", "other seeds"), ("subsamples", "95 % of the points")):
            cells = []
            for method in _STABILITY_METHODS:
                record = found.get(f"{name}/{method}")
                moved = record["displacement"].get(kind) if record else None
                cells.append("" if moved is None else f"{statistics.median(moved):.3f}")
            label = SETS[name].title if kind == "seeds" else ""
            rows.append([label, words, *cells])
    return _table(["data", "maps", *_STABILITY_METHODS.values()], rows)


def pseudotime_table(found: Mapping[str, Any]) -> str:
    """Pseudotime of cells against their positions on maps."""
    names = {"mercat": "Mercat", "detail 0.3": "`detail=0.3`", "umap": "UMAP"}
    head = ["data", "cells", "root among"]
    head += [f"order: {name}" if i == 0 else name for i, name in enumerate(names.values())]
    head += [f"explained: {name}" if i == 0 else name for i, name in enumerate(names.values())]
    rows = []
    for name, record in found.items():
        row = [_STAND_IN_TITLES.get(name, SETS[name].title), f"{record['n']:,}", record["root"]]
        for measure in ("order", "explained"):
            row += [f"{record['measures'][method][measure]['mean']:.2f}" for method in names]
        rows.append(row)
    return _table(head, rows)


def structureless_table(found: Mapping[str, Any]) -> str:
    """Maps of data without structure: excess, and fraction of dense points."""
    maps = [("mercat", detail) for detail in DETAILS] + [(peer, 0.0) for peer in PEERS]
    head = ["data", "points"]
    head += [f"detail {d:g}" if m == "mercat" else title(m) for m, d in maps]
    rows, measured = [], [r for r in found.values() if r["status"] == "ok"]
    sizes = sorted({r["n"] for r in measured})
    for name, (named, _) in STRUCTURELESS.items():
        for n in sizes:
            records = [found.get(structureless_key(name, n, *one)) for one in maps]
            cells = [
                f"{r['excess']:z.2f} / {r['dense']:.1%}" if r and r["status"] == "ok" else ""
                for r in records
            ]
            if any(cells):
                rows.append([named if n == sizes[0] else "", f"{n:,}", *cells])
    if not rows:
        return NOT_YET
    chance = {r["n"]: r["dense_by_chance"] for r in measured}
    shares = ", ".join(f"{share:.1%} of {n:,} points" for n, share in sorted(chance.items()))
    plain = [r for r in measured if r["method"] == "mercat" and r["detail"] == 0]
    highest, of_errors = (
        max(values)
        for values in zip(*((r["excess"], r["excess"] / r["error"]) for r in plain), strict=True)
    )
    least = min(r["roundness"] for r in plain)
    return (
        _table(head, rows)
        + f"\nOn plain maps (`detail=0`), the excess is at most {highest:.2f} and at most {of_errors:.1f} "
        f"standard errors, and the roundness is at least {least:.3f}. By chance alone, {shares} would be "
        "dense.\n"
    )


def viewer_table(found: Mapping[str, Any]) -> str:
    """Size and speed of a page of the explorer, by number of points."""
    head = [
        "points",
        "file size",
        "time to write",
        "time to load",
        "memory",
        "time to draw all points",
    ]
    head += ["time to draw a frame while moving", "points in that frame", "time to update a filter"]
    rows = []
    for record in sorted(found.values(), key=lambda one: one["n"]):
        m = record["measures"]
        rows.append([
            f"{record['n']:,}",
            f"{m['megabytes']:.1f} MB",
            f"{m['write seconds']:.1f} s",
            f"{m['load seconds']:.1f} s",
            f"{m['memory megabytes']} MB",
            f"{m['full frame milliseconds']:.0f} ms",
            f"{m['moving frame milliseconds']:.0f} ms",
            f"{m['points while moving']:,}",
            f"{m['filter milliseconds']:.0f} ms",
        ])  # fmt: skip
    return _table(head, rows)


def parameters_table() -> str:
    """Name, default, allowed values and meaning of each parameter of `Mercat`, as declared."""
    rows = []
    for name, declared in PARAMETERS.items():
        default = f"`{declared.default!r}`"
        if declared.default is None and declared.none:
            default += f": {declared.none}"
        rule = declared.rule.replace("<", "\\<")  # not an HTML tag
        rows.append([f"`{name}`", default, rule, declared.help])
    return markdown.table(["parameter", "default", "allowed values", "meaning"], rows, left=4)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown.table(head, rows, left=1) if rows else NOT_YET


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text("utf-8")), encoding="utf-8")
