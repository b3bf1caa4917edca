"""The report of `mercat compare`: one self-contained page with pictures and measures."""

from __future__ import annotations

import base64
import html
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import __version__
from .._data.text import well_formed
from ._outputs import quiet_pyplot
from ._peers import Outcome
from ._problems import pluralize

MEANING = {
    "angle_preservation": ("Angles", "correlation of the angles between any three points"),
    "distance_preservation": ("Distances", "rank correlation of the distances of all pairs"),
    "neighborhood_preservation": ("Neighbours", "fraction of nearest neighbours preserved"),
    "density_preservation": ("Density", "correlation of the density around each point"),
    "trustworthiness": ("Trust", "neighbours on the map that are neighbours in the data"),
    "continuity": ("Continuity", "neighbours in the data that are neighbours on the map"),
    "torn_neighbors": ("Torn", "fraction of neighbours in the data that are far away on the map"),
    "random_triplet_accuracy": ("Triplets", "triplets in which the same point is nearer"),
    "knn_accuracy": ("Classes", "points whose label is that of most neighbours on the map"),
    "centroid_preservation": (
        "Centroids",
        "correlation of the distances between the labels' centroids",
    ),
}
LESS_IS_BETTER = {"torn_neighbors"}
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--ground:#fff;--line:#d9dee5;--best:#0b6e4f}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b4;--ground:#10141b;--line:#2b333f;
--best:#5fd0a5}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:2rem 1.25rem 4rem;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}h2{font-size:1.15rem;margin:2.4rem 0 .7rem}
p{margin:.4rem 0;max-width:46rem}.soft{color:var(--soft)}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1rem}
figure{margin:0}figcaption{font-weight:600;margin-bottom:.3rem}
img{display:block;width:100%;background:#fff;border:1px solid var(--line);border-radius:8px}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
.legend svg{width:.7em;height:.7em;margin-right:.45em}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:100%}
th,td{padding:.45rem .8rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}thead th{font-weight:600;color:var(--soft)}
.best{font-weight:700;color:var(--best)}.best::before{content:"\\2713\\a0"}
td small{display:block;color:var(--soft);font-weight:400}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem}dt{font-weight:600}dd{margin:0}
li{margin:.2rem 0;overflow-wrap:anywhere}
@media(max-width:36rem){dl{grid-template-columns:1fr}dd{margin-bottom:.5rem}}
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Subject:
    """The data that were compared."""

    title: str
    n_points: int
    n_features: int
    label: str | None
    prepared: str
    metric: str
    seed: int


def page(subject: Subject, outcomes: list[Outcome], color: Any, notes: list[str]) -> str:
    """HTML of the report."""
    from ..viewer._html import digest

    successful = [outcome for outcome in outcomes if outcome.Y is not None]
    parts = [_introduction(subject)]
    if successful:
        parts += [_pictures(successful, color), _table(successful), _meanings(successful)]
    parts.append(_remarks(outcomes, notes))
    policy = f"default-src 'none'; style-src {digest(_STYLE)}; img-src data:; base-uri 'none'"
    return well_formed(
        _PAGE.format(
            policy=policy,
            title=html.escape(f"{subject.title}: maps compared"),
            style=_STYLE,
            body="\n".join(parts),
        )
    )


def _introduction(subject: Subject) -> str:
    prepared = f", prepared by {html.escape(subject.prepared)}" if subject.prepared else ""
    if subject.metric != "euclidean":
        prepared += f", compared by the metric {subject.metric}"
    label = (
        f" Colours and classes are those of <b>{html.escape(subject.label)}</b>."
        if subject.label
        else ""
    )
    return (
        f'<p class="soft">{pluralize(subject.n_points, "point")} of {pluralize(subject.n_features, "column")}'
        f"{prepared}. Each method with its defaults, seed {subject.seed}.{label} Mercat {__version__}.</p>"
    )


def _pictures(successful: list[Outcome], color: Any) -> str:
    figures = "".join(_picture(outcome, color) for outcome in successful)
    return f'<h2>Maps</h2>\n<div class="maps">{figures}</div>\n{_legend(color)}'


def _picture(outcome: Outcome, color: Any) -> str:
    from .._draw.colors import make_coloring
    from .._draw.figure import grid
    from .._draw.maps import Style, draw_map, draw_plane

    pyplot = quiet_pyplot()
    name, stream = html.escape(outcome.title), io.BytesIO()
    (ax,), Y = grid(1), np.asarray(outcome.Y, dtype=np.float64)
    draw: Any = draw_plane if Y.shape[1] == 2 else draw_map
    style = Style(legend_location=None, advice="")  # the user cannot choose another map in a report
    draw(Y, make_coloring(color, len(Y)), style, ax=ax)
    ax.figure.savefig(stream, format="png", dpi=160)
    pyplot.close(ax.figure)
    content = base64.b64encode(stream.getvalue()).decode("ascii")
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<img alt="The map of {name}" src="data:image/png;base64,{content}"></figure>'
    )


def _legend(color: Any) -> str:
    """A disc and a name for each class, or for five values of a scale, and for missing values."""
    from matplotlib.colors import to_hex

    from .._draw.colors import Scale, make_coloring
    from .._draw.legend import entries

    if color is None:
        return ""
    coloring = make_coloring(color, len(color))
    names, missing = entries(coloring)
    if isinstance(coloring, Scale):
        low, high = coloring.limits
        values = [low + (high - low) * k / 4 for k in range(5)]
        texts = [_day(value) if coloring.dates else f"{value:.4g}" for value in values]
        colors = [coloring.mappable().to_rgba(value) for value in values]
        names = list(zip(texts, colors, strict=True))
    discs = "".join(
        f'<li><svg viewBox="0 0 10 10"><circle cx="5" cy="5" r="4.5" fill="{to_hex(shade)}"/></svg>'
        f"{html.escape(name)}</li>"
        for name, shade in names + missing
    )
    return f'<ul class="legend">{discs}</ul>'


def _day(value: float) -> str:
    """The day of a time in matplotlib's date format."""
    from matplotlib.dates import num2date

    return str(num2date(value).date())  # type: ignore[no-untyped-call]


def _table(successful: list[Outcome]) -> str:
    measures = list(successful[0].scores)
    headings = "".join(
        f"<th>{MEANING[name][0]}{'&nbsp;&darr;' if name in LESS_IS_BETTER else ''}</th>"
        for name in measures
    )
    rows = []
    for outcome in successful:
        cells = [f"<td>{outcome.seconds:.1f}&nbsp;s</td>"]
        for name in measures:
            best = outcome in best_of(successful, name)
            cells.append(f"<td>{_cell(outcome.scores[name], best)}</td>")
        rows.append(f"<tr><th>{html.escape(outcome.title)}</th>{''.join(cells)}</tr>")
    return (
        '<h2>Measures</h2>\n<p class="soft">1 is best; for torn neighbours (&darr;), 0. A tick marks the '
        "best of each measure and those within two standard errors of it. Time is that of a first call, "
        "including compilation, without imports.</p>\n"
        '<div class="wide"><table><thead><tr><th></th><th>Time</th>'
        f"{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def best_of(successful: list[Outcome], name: str) -> list[Outcome]:
    """The methods with the best score or within two standard errors of it."""
    scored = [o for o in successful if not math.isnan(o.scores[name])]
    if not scored:
        return []
    sign = -1 if name in LESS_IS_BETTER else 1
    best = max(scored, key=lambda o: sign * float(o.scores[name])).scores[name]

    def is_near_best(score: Any) -> bool:
        error = math.hypot(score.standard_error, best.standard_error)
        return sign * (float(best) - float(score)) <= max(2 * error, 5e-4)

    return [o for o in scored if is_near_best(o.scores[name])]


def _cell(score: Any, best: bool) -> str:
    if math.isnan(score):
        return "&ndash;"
    value = f'<span class="best">{float(score):.3f}</span>' if best else f"{float(score):.3f}"
    error = (
        f"<small>&plusmn; {score.standard_error:.3f}</small>" if score.standard_error > 0 else ""
    )
    return value + error


def _meanings(successful: list[Outcome]) -> str:
    rows = "".join(
        f"<dt>{MEANING[name][0]}</dt><dd>{MEANING[name][1]} (<code>{name}</code>)</dd>"
        for name in successful[0].scores
    )
    return f"<h2>What they mean</h2>\n<dl>{rows}</dl>"


def _remarks(outcomes: list[Outcome], notes: list[str]) -> str:
    lines = [
        f"<b>{html.escape(o.title)}</b> {html.escape(o.failure)}" for o in outcomes if o.failure
    ]
    lines += [
        f"<b>{html.escape(o.title)}</b> {html.escape(r)}" for o in outcomes for r in o.remarks
    ]
    lines += [html.escape(note) for note in notes]
    if not lines:
        return ""
    return f"<h2>Remarks</h2>\n<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"
