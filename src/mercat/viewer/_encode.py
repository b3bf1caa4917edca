"""The compact format in which points and columns are sent to the browser.

Deflated bytes: a 4-byte header length, a JSON header, padding to a multiple of 8, then little-endian arrays
at offsets that are multiples of 8. A position takes four bytes per embedding, and a label as few bytes as
the number of labels allows. `js/src/data/decode.js` decodes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data.checks import check_choice
from .._data.columns import few_values, is_grouping
from .._data.text import check_text
from .._draw.palette import MISSING, MISSING_ON_DARK, N_COLORS, categorical, on_dark
from ._columns import Categories, Column, Dates, Numbers, read_frame
from ._embeddings import Embedding, read_embeddings
from ._genes import Genes, read_genes
from ._home import MAPS
from ._images import Images, read_images
from ._neighbors import Neighbors, find_torn, read_neighbors, torn_fractions
from ._regions import Region, find_regions
from ._uncertainty import UncertaintyArrays, read_uncertainty

POINT_LOSS = "point loss"  # name of a column
THEMES = ("auto", "dark", "light")
_VERSION = 3


def encode(Y: Any, frame: Any = None, **options: Any) -> bytes:
    """Encode everything the viewer shows as deflated bytes. See `mercat.viewer.to_html`."""
    return pack(*prepare(Y, frame, **options))


def prepare(
    Y: Any,
    frame: Any,
    *,
    title: str = "Mercat",
    color: str | None = None,
    point_loss: ArrayLike | None = None,
    genes: Any = None,
    neighbors: Any = None,
    uncertainty: Any = None,
    images: Any = None,
    labels: Any = None,
    theme: str = "auto",
    projection: str = "mercator",
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the arrays that it refers to."""
    embeddings = read_embeddings(Y)
    if point_loss is None:
        point_loss = getattr(Y, "point_loss_", None)
    n = len(embeddings[0].codes)
    graph = read_neighbors(neighbors, n)
    torn = [] if graph is None else [find_torn(embedding.points, graph) for embedding in embeddings]
    positions = read_uncertainty(uncertainty, embeddings)
    columns = [
        *read_frame(frame, n),
        *_loss_column(point_loss, n),
        *_torn_columns(embeddings, graph, torn),
        *([] if positions is None else positions.columns),
    ]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        parameter = _parameter_of(twice)
        raise ValueError(f"frame must have no column {twice!r} when {parameter} is given.")
    if color is not None and color not in names:
        raise ValueError(f"color must be one of the columns {names}, got {color!r}.")
    label_columns = _label_columns(labels, columns)
    check_text("title", str(title))
    features = read_genes(genes, n)
    thumbnails = read_images(images, n)
    check_choice("theme", theme, THEMES)
    check_choice("projection", projection, MAPS)
    regions: list[list[Region]] = [[] for _ in embeddings]
    if label_columns is None:
        regions = [find_regions(embedding, columns, features, n) for embedding in embeddings]
    arrays = _Arrays()
    header = {
        "version": _VERSION,
        "n": n,
        "title": str(title),
        "options": {
            "color": _color_column(color, columns, n),
            "names": color,
            "theme": theme,
            "projection": projection,
        },
        "embeddings": [
            _embedding_entry(embedding, arrays, named_regions)
            for embedding, named_regions in zip(embeddings, regions, strict=True)
        ],
        "labels": label_columns,
        "columns": [
            _column_entry(column, arrays, is_color=column.name == color) for column in columns
        ],
        "genes": None if features is None else _genes_entry(features, arrays),
        "neighbors": None if graph is None else _neighbors_entry(graph, torn, arrays),
        "places": None if positions is None else _uncertainty_entry(positions, arrays),
        "images": None if thumbnails is None else _images_entry(thumbnails, arrays),
    }
    return header, arrays.parts


def _label_columns(labels: Any, columns: list[Column]) -> list[int] | None:
    """Indices of the columns whose classes are named on the map, from coarse to fine; None if not given."""
    if labels is None:
        return None
    if not isinstance(labels, str | Sequence):
        raise TypeError(f"labels must be names of columns, got {type(labels).__name__}.")
    names = [labels] if isinstance(labels, str) else list(labels)
    if len(set(names)) < len(names):
        raise ValueError(f"labels must name each column once, got {names}.")
    classes = [
        column.name
        for column in columns
        if isinstance(column, Categories)
        or (isinstance(column, Numbers) and _classes(_narrow(column.values)) is not None)
    ]
    for name in names:
        if name not in classes:
            raise ValueError(f"labels must name columns of classes, among {classes}, got {name!r}.")
    positions = {column.name: k for k, column in enumerate(columns)}
    return [positions[name] for name in names]


def _embedding_entry(
    embedding: Embedding, arrays: _Arrays, regions: list[Region]
) -> dict[str, Any]:
    return {
        "regions": [asdict(region) for region in regions],
        "name": embedding.name,
        "kind": embedding.kind,
        "home": embedding.home,
        "positions": arrays.add(embedding.codes.ravel()),
    }


def _genes_entry(genes: Genes, arrays: _Arrays) -> dict[str, Any]:
    return {
        "names": genes.names,
        "colors": _colors(()),
        "starts": arrays.add(genes.starts),
        "gaps": arrays.add(genes.gaps),
        "values": arrays.add(genes.values),
    }


def _neighbors_entry(
    graph: Neighbors, torn: list[NDArray[np.bool_]], arrays: _Arrays
) -> dict[str, Any]:
    rows = graph.indices.astype(np.min_scalar_type(len(graph.starts)))
    return {
        "starts": arrays.add(graph.starts.astype(np.uint32)),
        "rows": arrays.add(rows),
        "torn": [arrays.add(np.packbits(mask, bitorder="little")) for mask in torn],
    }


def _uncertainty_entry(uncertainty: UncertaintyArrays, arrays: _Arrays) -> dict[str, Any]:
    return {
        "axes": arrays.add(uncertainty.axes.ravel()),
        "alternative": arrays.add(uncertainty.alternative.ravel()),
    }


def _images_entry(images: Images, arrays: _Arrays) -> dict[str, Any]:
    _, height, width, channels = images.pixels.shape
    pixels = arrays.add(images.pixels.ravel())
    return {"height": height, "width": width, "channels": channels, "pixels": pixels}


def _torn_columns(
    embeddings: list[Embedding], graph: Neighbors | None, torn: list[NDArray[np.bool_]]
) -> list[Column]:
    """Fraction of torn neighbours, for each embedding."""
    if graph is None:
        return []
    several = len(embeddings) > 1
    return [
        Numbers(
            f"torn neighbours ({embedding.name})" if several else "torn neighbours",
            torn_fractions(mask, graph),
            role="torn",
        )
        for embedding, mask in zip(embeddings, torn, strict=True)
    ]


def pack(header: dict[str, Any], arrays: list[bytes]) -> bytes:
    """Header and arrays, deflated."""
    text = json.dumps(header, allow_nan=False).encode("ascii")
    start = len(text).to_bytes(4, "little") + text
    return zlib.compress(_pad(start) + b"".join(arrays), level=6)


def _loss_column(point_loss: ArrayLike | None, n: int) -> list[Column]:
    if point_loss is None:
        return []
    loss = np.asarray(point_loss, dtype=np.float64)
    if loss.shape != (n,):
        raise ValueError(f"point_loss must have one value per point ({n}), got shape {loss.shape}.")
    return [Numbers(POINT_LOSS, loss, role="loss")]


def _parameter_of(name: str) -> str:
    """Name of the argument that adds a column of this name."""
    if name == POINT_LOSS:
        return "point_loss"
    return "neighbors" if name.startswith("torn neighbours") else "uncertainty"


def _color_column(color: str | None, columns: list[Column], n: int) -> str | None:
    """The given column, else the first that groups the points, else the first that does not name points."""
    if color is not None:
        return color
    candidates = [column for column in columns if not _names_points(column)]
    grouping = [column for column in candidates if is_grouping(column.n_distinct, n)]
    best = [*grouping, *candidates]
    return best[0].name if best else None


def _names_points(column: Column) -> bool:
    return isinstance(column, Categories) and column.names_points


def _pad(part: bytes) -> bytes:
    return part + bytes(-len(part) % 8)


class _Arrays:
    """Concatenated arrays and their offsets."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.offset = 0

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        part = _pad(little_endian.tobytes())
        entry = {"dtype": array.dtype.name, "offset": self.offset, "length": len(array)}
        self.parts.append(part)
        self.offset += len(part)
        return entry


def _column_entry(column: Column, arrays: _Arrays, *, is_color: bool) -> dict[str, Any]:
    """Entry of a column; if it gives the colours (`is_color`), any number of labels are classes."""
    if isinstance(column, Categories):
        codes = column.codes.astype(np.min_scalar_type(len(column.labels)))
        return {
            "name": column.name,
            "kind": "category",
            "role": "id" if column.names_points and not is_color else None,
            "labels": column.labels,
            "colors": _colors(column.colors or categorical(min(len(column.labels), N_COLORS))),
            **arrays.add(codes),
        }
    if isinstance(column, Dates):
        return {
            "name": column.name,
            "kind": "date",
            "colors": _colors(()),
            **arrays.add(column.values),
        }
    values = _narrow(column.values)
    classes = _classes(values)
    return {
        "name": column.name,
        "kind": "number",
        "role": column.role,
        "classes": classes,
        "colors": _colors(categorical(len(classes or []))),
        **arrays.add(values),
    }


def _colors(classes: tuple[str, ...]) -> dict[str, list[str]]:
    """Colours of missing values and of the classes, by theme; they repeat if there are more classes."""
    return {"light": [MISSING, *classes], "dark": [MISSING_ON_DARK, *on_dark(classes)]}


def _classes(values: NDArray[Any]) -> list[float] | None:
    """Sorted values of a column of few distinct integers, which are treated as classes; else None."""
    known = values[~np.isnan(values)]
    whole = np.isfinite(known).all() and (known == np.floor(known)).all()
    distinct = few_values(known) if whole else None
    return None if distinct is None else distinct.tolist()


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The narrowest array that keeps integers exactly and floats to a millionth of the spread."""
    if values.dtype.kind in "iu":
        for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
            limits = np.iinfo(dtype)
            if limits.min <= int(values.min()) and int(values.max()) <= limits.max:
                return values.astype(dtype)
        return values.astype(np.float64)
    finite = values[np.isfinite(values)].astype(np.float64)
    if len(finite) == 0:
        return values.astype(np.float32)
    if np.abs(finite).max() > np.finfo(np.float32).max:
        return values.astype(np.float64)
    error = np.abs(finite.astype(np.float32) - finite).max()
    return values.astype(np.float32 if error <= 1e-6 * np.ptp(finite) else np.float64)
