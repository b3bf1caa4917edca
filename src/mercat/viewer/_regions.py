"""Dense regions of an embedding at several scales, named by what distinguishes their points.

Their names label maps whose colours are not classes: a few large regions at first, more on zooming in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .._data.arrays import blocks
from .._data.columns import few_values
from ._columns import Categories, Column, Dates, Numbers
from ._embeddings import Embedding
from ._genes import Genes

_SAMPLE = 2500  # maximum number of points to analyse
_MIN_POINTS = 60  # fewer points have no regions
_SCALES = (0.6, 0.3, 0.15)  # reach of a region, in units of the spread of the points
_MIN_SHARE = (0.03, 0.012, 0.005)  # minimum fraction of the points in a region of each scale
_MAX_SHARE = 0.7  # maximum fraction: a name for nearly all points is not informative
_MIN_EFFECT = 0.4  # minimum difference from the other points for a name, from 0 to 1
_MIN_WORDS = 2.0  # minimum mean number of words of a column of texts
_MAX_WORDS, _MAX_GENES = 3, 3  # maximum numbers in a name
_MIN_WORD_SHARE = 0.1  # minimum fraction of a region's texts with a word of its name, ...
_MIN_LIFT = 2.0  # ... and its minimum ratio to the fraction among the other texts
_BLOCK = 500  # number of rows processed at a time
# Labels that need the name of their column.
_UNCLEAR_LABEL = re.compile(r"true|false|yes|no|[^A-Za-z]*", re.IGNORECASE)
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about an and are as at be been but by can do for from had has have he her his how i if in into
        is it its more no not of on one or our out she so than that the their them there these they this
        to up was we were what when which who will with you your""",
    )
)


@dataclass(frozen=True)
class Region:
    """Name, centre and reach of a region, and the level at which it was found (0 is the coarsest)."""

    text: str
    at: tuple[float, float, float]
    reach: float
    level: int


def find_regions(
    embedding: Embedding, columns: Sequence[Column], genes: Genes | None, n: int
) -> list[Region]:
    """Find named regions, ordered from coarse to fine, then from large to small."""
    if n < _MIN_POINTS:
        return []
    rows = np.arange(n)
    if n > _SAMPLE:
        rows = np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))
    points = _positions(embedding)[rows]
    traits = _Traits([*_traits(columns, rows), *_gene_traits(genes, rows, n)], len(rows))
    texts = _texts(columns, rows)
    if not traits.traits and texts is None:
        return []
    spread = float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))
    regions: list[Region] = []
    coarser: dict[int, str] = {}  # name of the coarser region of each sampled point
    squares = squared_distances(points)
    for level, (scale, min_share) in enumerate(zip(_SCALES, _MIN_SHARE, strict=True)):
        region_of_point = modes(squares, max(scale * spread, 1e-6))
        sizes = np.bincount(region_of_point)
        for k in np.argsort(-sizes, kind="stable"):
            inside = region_of_point == k
            if not max(min_share * len(points), 8) <= sizes[k] <= _MAX_SHARE * len(points):
                continue
            text = _name(inside, texts, traits)
            members = np.flatnonzero(inside)
            if (
                text is None
                or text == Counter(coarser.get(int(i)) for i in members).most_common(1)[0][0]
            ):
                continue
            coarser |= dict.fromkeys(members.tolist(), text)
            regions.append(_region(text, points[inside], level, embedding.kind))
    coarsest = min((region.level for region in regions), default=0)  # becomes level 0
    return [replace(region, level=region.level - coarsest) for region in regions]


def _positions(embedding: Embedding) -> NDArray[np.float64]:
    """Positions as in the browser: unit vectors, or coordinates in halves of the longer side."""
    if embedding.kind == "sphere":
        return embedding.points
    return np.pad(embedding.codes / 32767.0, ((0, 0), (0, 1)))


def _region(text: str, points: NDArray[np.float64], level: int, kind: str) -> Region:
    middle = points.mean(axis=0)
    if kind == "sphere":
        middle /= max(float(np.linalg.norm(middle)), 1e-9)
    reach = float(np.sqrt(np.mean(np.sum((points - middle) ** 2, axis=1))))
    x, y, z = (round(float(c), 4) + 0.0 for c in middle)
    return Region(text, (x, y, z), round(reach, 4), level)


def squared_distances(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Squared distances between all points, in single precision."""
    points = points.astype(np.float32)
    squares = np.sum(points * points, axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    return np.asarray(np.maximum(distances, 0, out=distances))


def modes(squares: NDArray[np.float32], reach: float) -> NDArray[np.intp]:
    """Assign each point to a dense region by moving to the nearest denser point within reach.

    Densities are sums of Gaussians of half that width.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([0, 0.1, 0.2, 5, 5.1])[:, None]
    >>> modes(squared_distances(line), 1.0).tolist()
    [0, 0, 0, 1, 1]
    """
    n = len(squares)
    density = np.concatenate(
        [
            np.exp(squares[block] * np.float32(-2 / reach**2)).sum(axis=1, dtype=np.float64)
            for block in blocks(n, _BLOCK)
        ]
    )
    order = np.empty(n, dtype=np.intp)  # ties are broken by row
    order[np.argsort(density, kind="stable")] = np.arange(n)
    denser = np.arange(n)  # nearest denser point of each point, or itself
    for block in blocks(n, _BLOCK):
        square = np.where(order[block, None] >= order, np.float32(np.inf), squares[block])
        nearest = square.argmin(axis=1)
        near = square[np.arange(len(nearest)), nearest] <= reach**2
        denser[block] = np.where(near, nearest, denser[block])
    while not np.array_equal(next_denser := denser[denser], denser):
        denser = next_denser
    return np.unique(denser, return_inverse=True)[1]


# ------------------------------------------------------------------ names


@dataclass(frozen=True)
class _Trait:
    """A property by which the points of a region may differ from the others.

    values: for each sampled point, 0 or 1, or its rank from 0 to 2; NaN if missing. kind: "class", "number"
    or "gene". more, less: text for high and for low values. Classes take precedence in names, and a name may
    list several genes.
    """

    kind: str
    more: str
    less: str | None
    values: NDArray[np.float64]


class _Traits:
    """All traits, for comparing a set of points with the others."""

    def __init__(self, traits: list[_Trait], n: int) -> None:
        self.traits = traits
        values = np.array([trait.values for trait in traits]).reshape(len(traits), n)
        self._known = (~np.isnan(values)).astype(np.float32)
        self._values = np.where(np.isnan(values), 0, values).astype(np.float32)

    def effects(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Mean of each trait inside minus outside: a difference of fractions, or Cliff's delta of ranks."""
        sets = np.stack([inside, ~inside], axis=1).astype(np.float32)
        count, total = self._known @ sets, self._values @ sets
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / count
        return np.asarray(np.nan_to_num(mean[:, 0] - mean[:, 1]), dtype=np.float64)


def _traits(columns: Sequence[Column], rows: NDArray[np.intp]) -> Iterator[_Trait]:
    for column in columns:
        if isinstance(column, Categories):
            if not column.names_points:
                yield from _classes(column, column.codes[rows])
        elif isinstance(column, Dates):
            late, early = f"late {column.name}", f"early {column.name}"
            yield _ranked("number", late, early, column.values[rows])
        elif column.role is None:
            yield from _numbers(column, np.asarray(column.values[rows], dtype=np.float64))


def _classes(column: Categories, codes: NDArray[Any]) -> Iterator[_Trait]:
    for code, label in enumerate(column.labels, start=1):
        is_member = codes == code
        if is_member.any():
            is_unclear = _UNCLEAR_LABEL.fullmatch(label)
            text = f"{column.name}: {label}" if is_unclear else label
            yield _Trait("class", text, None, np.where(codes > 0, is_member, np.nan))


def _numbers(column: Numbers, values: NDArray[np.float64]) -> Iterator[_Trait]:
    known = values[~np.isnan(values)]
    whole = len(known) > 0 and bool((known == np.floor(known)).all())
    classes = few_values(known) if whole else None
    if classes is None:
        yield _ranked("number", f"high {column.name}", f"low {column.name}", values)
        return
    for value in classes:
        is_member = np.where(np.isnan(values), np.nan, values == value)
        yield _Trait("class", f"{column.name}: {value:g}", None, is_member)


def _ranked(kind: str, more: str, less: str | None, values: NDArray[np.float64]) -> _Trait:
    ranks = np.full(len(values), np.nan)
    known = ~np.isnan(values)
    if known.any():
        # Cliff's delta is twice the difference of the mean ranks of two sets, divided by the number of
        # values.
        ranks[known] = 2 * rankdata(values[known]) / max(int(known.sum()), 1)
    return _Trait(kind, more, less, ranks)


def _gene_traits(genes: Genes | None, rows: NDArray[np.intp], n: int) -> Iterator[_Trait]:
    if genes is None:
        return
    sample_row = np.full(n, -1, dtype=np.intp)
    sample_row[rows] = np.arange(len(rows))
    for g, name in enumerate(genes.names):
        part = slice(int(genes.starts[g]), int(genes.starts[g + 1]))
        entries = np.cumsum(genes.gaps[part].astype(np.int64)) - 1
        values = np.zeros(len(rows))
        rows_in_sample = sample_row[entries]
        values[rows_in_sample[rows_in_sample >= 0]] = genes.values[part][rows_in_sample >= 0]
        if values.any():
            yield _ranked("gene", name, None, values)


def _texts(columns: Sequence[Column], rows: NDArray[np.intp]) -> list[set[str]] | None:
    """Words of the first column of texts, or None."""
    for column in columns:
        if isinstance(column, Categories) and column.names_points:
            labels = [column.labels[c - 1] if c else "" for c in column.codes[rows].tolist()]
            words = [
                set(re.findall(r"[^\W\d_]{2,}", label.lower())) - _STOP_WORDS for label in labels
            ]
            if np.mean([len(text) for text in words]) >= _MIN_WORDS:
                return words
    return None


def _name(inside: NDArray[np.bool_], texts: list[set[str]] | None, traits: _Traits) -> str | None:
    """What distinguishes the points inside: words of their texts, a class, or else the largest effect."""
    words = None if texts is None else _words(inside, texts)
    if words is not None:
        return words
    effects = zip(traits.effects(inside).tolist(), traits.traits, strict=True)
    candidates = sorted(
        ((abs(e), e, t) for e, t in effects if abs(e) >= _MIN_EFFECT and (e > 0 or t.less)),
        key=lambda candidate: (candidate[2].kind != "class", -candidate[0]),
    )
    if not candidates:
        return None
    _, effect, trait = candidates[0]
    if trait.kind == "gene":
        return ", ".join([t.more for _, _, t in candidates if t.kind == "gene"][:_MAX_GENES])
    return trait.more if effect > 0 else trait.less


def _words(inside: NDArray[np.bool_], texts: list[set[str]]) -> str | None:
    """Words that are frequent inside and rare outside, best first; None if there are none."""
    inside_counts, outside_counts = Counter[str](), Counter[str]()
    for is_inside, words in zip(inside.tolist(), texts, strict=True):
        (inside_counts if is_inside else outside_counts).update(words)
    n_inside, n_outside = int(inside.sum()), int((~inside).sum())
    scored = []
    for word, count in inside_counts.items():
        share = count / n_inside
        outside_share = (outside_counts[word] + 0.5) / (n_outside + 1)  # above 0
        if count > 1 and share >= _MIN_WORD_SHARE and share >= _MIN_LIFT * outside_share:
            scored.append((share * np.log(share / outside_share), word))
    best = sorted(scored, key=lambda item: (-item[0], item[1]))[:_MAX_WORDS]
    return ", ".join(word for _, word in best) or None
