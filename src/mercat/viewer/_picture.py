"""The initial view of an explorer as a picture, for programs that cannot show widgets."""

from __future__ import annotations

import importlib.util
import warnings
from io import BytesIO
from typing import Any

import numpy as np

from .. import plot
from .._data.columns import ColoredColumn
from ._embeddings import Embedding

_INCHES = (7.2, 5.4)
_DPI = 110


def png(embedding: Embedding, frame: Any, color: str | None, projection: str) -> bytes | None:
    """Draw a map of the points coloured by a column; None if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    values, palette = _values(frame, color)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the widget has given them already
        if embedding.kind == "sphere":
            plot.map(embedding.points, values, projection=projection, palette=palette, ax=axes)
        else:
            axes.scatter(embedding.points[:, 0], embedding.points[:, 1], s=4, color="0.35")
            axes.set_axis_off()
    file = BytesIO()
    figure.savefig(file, format="png", dpi=_DPI)
    return file.getvalue()


def _values(frame: Any, color: str | None) -> tuple[Any, dict[str, str] | None]:
    """The column of the colours, if `plot.map` can draw it, and its palette, if it has one."""
    if color is None or frame is None or color not in frame:
        return None, None
    values, palette = frame[color], None
    if isinstance(values, ColoredColumn):
        values, palette = values.values, dict(values.colors)
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind == "M":  # a scale of days
        values = np.asarray(values, dtype="datetime64[D]").astype(float)
    return values, palette
