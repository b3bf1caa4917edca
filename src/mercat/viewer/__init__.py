"""An interactive globe and map, as a single HTML file or a notebook widget.

`to_html` needs only Mercat's own dependencies; `Explorer` needs anywidget: ``pip install anywidget``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from .._extras import require
from ._encode import encode
from ._html import write_page

if TYPE_CHECKING:
    from ._widget import Explorer

__all__ = ["Explorer", "to_html"]


def to_html(
    Y: Any,
    frame: Any = None,
    path: str | os.PathLike[str] = "mercat.html",
    *,
    title: str = "Mercat",
    color: str | None = None,
    point_loss: ArrayLike | None = None,
    genes: tuple[Any, Sequence[str]] | None = None,
    neighbors: Any = None,
    uncertainty: Any = None,
    images: ArrayLike | None = None,
    labels: str | Sequence[str] | None = None,
    theme: str = "auto",
    projection: str = "mercator",
) -> Path:
    """Write a single HTML file for exploring points on the sphere.

    The file contains its data and code, loads nothing from the network, and opens in any browser with
    WebGL2. An interrupted write leaves no partial file.

    Parameters
    ----------
    Y : array-like of shape (n, 3), fitted model, or dict
        Unit vectors, or a fitted `Mercat`, whose losses are shown too. Positions of shape (n, 2), such as
        UMAP's, are shown in the plane. A dict maps names to several embeddings of the same points, between
        which the reader can switch.
    frame : DataFrame, mapping or None, default=None
        Columns of n values to colour by, search and read: a pandas or polars frame, or a dict.
        Numeric, text, categorical, boolean and date columns are shown; NaN and None count as missing.
        Integers with at most 20 distinct values are treated as categories. Text that is nearly unique (more
        than 50 distinct values, and more than half the number of points) is searched and shown on cards,
        but not used for colours. The index of a pandas frame is a column too if it has a name or holds
        text.
    path : path-like, default="mercat.html"
        File to write. An existing file is replaced.
    title : str, default="Mercat"
        Title of the page.
    color : str, optional
        Column that colours the points initially. Default: the first column with 2 to 50 distinct values
        and at least twice as many points, or else the first column.
    point_loss : array-like of shape (n,), optional
        Loss of each point, such as ``model.point_loss_``, shown as a column marked "Trust". Default: that of
        the model, if `Y` is one.
    genes : tuple (matrix, names) or None, default=None
        Up to 2,000 features in addition to the columns, such as genes: a dense or sparse matrix of shape
        (n, g), and a name per column. They can be searched by name and used for colours and filters, and
        are ranked when two sets are compared.
    neighbors : array-like of shape (n, k), sparse matrix of shape (n, n) or None, default=None
        Row numbers of each point's nearest neighbours in the data, or a graph. Hovering over a point draws
        lines to its neighbours, in red to those torn away: not among the nearest 5 % of the points on the
        map (at least k). A column contains the fraction of torn neighbours.
    uncertainty : Uncertainty or None, default=None
        Uncertainty of the positions in the first embedding, by `mercat.uncertainty`. Hovering over a point
        draws its 90 % ellipse and a dashed line to its alternative position; the numbers are added as
        columns.
    images : array-like of shape (n, height, width) or (n, height, width, channels), or None, default=None
        Thumbnail of each point, shown on its card: bytes, or floats from 0 to 1; grey, or with 3 or 4
        channels.
    labels : str or list of str, optional
        Columns of classes whose names are written on the map, from coarse to fine; finer names appear on
        zooming in. Default: the classes that give the colours. If the colours are not classes, dense
        regions of several sizes are named by what distinguishes them: words of a text column, classes,
        genes, or high and low numbers. An empty list writes no names.
    theme : {"auto", "dark", "light"}, default="auto"
        "auto" follows the reader's system.
    projection : {"mercator", "equal_earth"}, default="mercator"
        Initial map projection: Mercator preserves angles, Equal Earth preserves areas.

    Returns
    -------
    path : Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mercat.viewer import to_html
    >>> Y = np.eye(3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = to_html(Y, {"name": ["x", "y", "z"]}, f"{folder}/axes.html", title="Axes")
    ...     path.name
    'axes.html'
    """
    payload = encode(
        Y,
        frame,
        title=title,
        color=color,
        point_loss=point_loss,
        genes=genes,
        neighbors=neighbors,
        uncertainty=uncertainty,
        images=images,
        labels=labels,
        theme=theme,
        projection=projection,
    )
    return write_page(payload, str(title), path)


def __getattr__(name: str) -> Any:
    if name == "Explorer":
        require("anywidget", "Explorer", "viewer")
        from ._widget import Explorer

        return Explorer
    raise AttributeError(f"module 'mercat.viewer' has no attribute {name!r}")
