"""The compact form in which points and columns travel to the browser.

Deflated: a 4-byte header length, a JSON header, zeros up to a multiple of 8, then arrays,
little-endian, at offsets that are multiples of 8. A position takes four bytes (octahedral
coordinates, within 0.004 degrees), a label as few as its number of kinds allows.
`js/src/data/decode.js` is the other half.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data.checks import check_choice, check_unit
from .._data.columns import few, groups
from .._draw.palette import MISSING, MISSING_ON_DARK, MOST_COLORS, categorical, on_dark
from ._columns import Categories, Numbers, read_frame
from ._home import MAPS, home

THEMES = ("auto", "dark", "light")
_VERSION = 2


def to_octahedral(Y: NDArray[np.float64]) -> NDArray[np.int16]:
    """Unit vectors folded onto a square, two 16-bit integers each.

    Examples
    --------
    >>> import numpy as np
    >>> to_octahedral(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])).tolist()
    [[0, 0], [32767, 0]]
    """
    folded = Y / np.abs(Y).sum(axis=1, keepdims=True)
    square = folded[:, :2]
    sign = np.where(square < 0, -1.0, 1.0)
    square = np.where(folded[:, 2:] < 0, (1 - np.abs(square[:, ::-1])) * sign, square)
    return np.asarray(np.rint(square * 32767), dtype=np.int16)


def encode(Y: ArrayLike, frame: Any = None, **options: Any) -> bytes:
    """Everything the viewer shows, as deflated bytes. See `mercat.viewer.to_html`."""
    return pack(*prepare(Y, frame, **options))


def prepare(
    Y: ArrayLike,
    frame: Any,
    *,
    title: str = "Mercat",
    color: str | None = None,
    point_loss: ArrayLike | None = None,
    theme: str = "auto",
    projection: str = "mercator",
) -> tuple[dict[str, Any], list[bytes]]:
    """The header, and the arrays to which it points."""
    points = check_unit("Y", Y, some=True)
    columns = read_frame(frame, len(points)) + _loss_column(point_loss, len(points))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ValueError("frame must have no column 'point loss' when point_loss is given.")
    if color is not None and color not in names:
        raise ValueError(f"color must be one of the columns {names}, got {color!r}.")
    check_choice("theme", theme, THEMES)
    check_choice("projection", projection, MAPS)
    arrays = _Arrays()
    header = {
        "version": _VERSION,
        "n": len(points),
        "title": str(title),
        "options": {
            "color": _color_column(color, columns, len(points)),
            "theme": theme,
            "projection": projection,
        },
        "home": home(points),
        "positions": arrays.add(to_octahedral(points).ravel()),
        "columns": [_describe(column, arrays) for column in columns],
    }
    return header, arrays.parts


def pack(header: dict[str, Any], arrays: list[bytes]) -> bytes:
    """Header and arrays, deflated."""
    text = json.dumps(header, allow_nan=False).encode("ascii")
    start = len(text).to_bytes(4, "little") + text
    return zlib.compress(_pad(start) + b"".join(arrays), level=6)


def _loss_column(point_loss: ArrayLike | None, n: int) -> list[Numbers | Categories]:
    if point_loss is None:
        return []
    loss = np.asarray(point_loss, dtype=np.float64)
    if loss.shape != (n,):
        raise ValueError(f"point_loss must have one value a point ({n}), got shape {loss.shape}.")
    return [Numbers("point loss", loss, role="loss")]


def _color_column(asked: str | None, columns: list[Numbers | Categories], n: int) -> str | None:
    """The column asked for, else the first that groups the points, else the first."""
    if asked is not None or not columns:
        return asked
    return next((column for column in columns if groups(column.kinds, n)), columns[0]).name


def _pad(part: bytes) -> bytes:
    return part + bytes(-len(part) % 8)


class _Arrays:
    """Arrays one after the other, each with a note of where it lies."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.offset = 0

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        part = _pad(little.tobytes())
        note = {"dtype": array.dtype.name, "offset": self.offset, "length": len(array)}
        self.parts.append(part)
        self.offset += len(part)
        return note


def _describe(column: Numbers | Categories, arrays: _Arrays) -> dict[str, Any]:
    if isinstance(column, Categories):
        codes = column.codes.astype(np.min_scalar_type(len(column.labels)))
        return {
            "name": column.name,
            "kind": "category",
            "labels": column.labels,
            "colors": _colors(column.colors or categorical(min(len(column.labels), MOST_COLORS))),
            **arrays.add(codes),
        }
    values = _smallest(column.values)
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
    """By theme, the colour of missing values and those of the classes; if these are more, they come again."""
    return {"light": [MISSING, *classes], "dark": [MISSING_ON_DARK, *on_dark(classes)]}


def _classes(values: NDArray[Any]) -> list[float] | None:
    """The numbers, in order, of a column that may be read as classes: of few whole numbers."""
    known = values[~np.isnan(values)]
    whole = np.isfinite(known).all() and (known == np.floor(known)).all()
    distinct = few(known) if whole else None
    return None if distinct is None else distinct.tolist()


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
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
