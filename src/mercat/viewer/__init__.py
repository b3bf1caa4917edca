"""An interactive globe and map: as one HTML file, or as a notebook widget.

`to_html` needs nothing beyond Mercat's own dependencies; `Explorer` needs anywidget, which
``pip install "mercat[viewer]"`` brings.
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
    """Write one HTML file in which a reader explores points on the sphere.

    The file holds its data and code, loads nothing from the network, and opens in any
    browser with WebGL2. An interrupted write leaves no half file.

    Parameters
    ----------
    Y : array-like of shape (n, 3), fitted model, or dict
        Unit vectors, or a fitted `Mercat`, whose losses are shown, too. Positions of shape (n, 2), such as
        UMAP's, are shown in the plane. A dict holds several embeddings of the same points by name, between
        which the reader changes.
    frame : DataFrame or mapping, optional
        Columns of n values to colour by, search and read: pandas, polars, or a dict.
        Numeric, text, categorical, boolean and date columns are shown; NaN and None are shown
        as missing. Whole numbers with at most 20 distinct values open as categories. Text that is nearly
        unique (more than 50 kinds, and more than half as many as points) names points: it is searched and
        shown on cards, and gives no colours. The index of a pandas frame is a column, too, if it has a
        name or holds text.
    path : path-like, default="mercat.html"
        Where to write. An existing file is replaced.
    title : str, default="Mercat"
        The title of the page.
    color : str, optional
        The column that colours the points at first. If not given, the first of 2 to 50 kinds of values
        with at least twice as many points; if there is none, the first column.
    point_loss : array-like of shape (n,), optional
        The loss of each point, such as ``model.point_loss_``, offered as "Trust"; by default that of a model.
    genes : tuple (matrix, names), optional
        Up to 2,000 features beside the columns, such as genes: a matrix of shape (n, g), dense or
        sparse, and a name per column. They are found by name, give colours, filter, and are ranked
        when two sets are compared.
    neighbors : array-like of shape (n, k), or sparse matrix of shape (n, n), optional
        The rows of each point's nearest neighbours in the data, or a graph whose entries tell them. Pointing
        at a point draws lines to them, red to those that the map has torn away: that do not lie among the
        nearest 5 % of the points there (at least k). A column tells the share of them.
    uncertainty : Uncertainty, optional
        How far the places of the first embedding can be trusted, by `mercat.uncertainty`. Pointing at a
        point draws the ellipse where another map puts it with a probability of 90 %, and a dashed line to
        its alternative place; the numbers are columns.
    images : array-like of shape (n, height, width) or (n, height, width, channels), optional
        A thumbnail of each point, shown on its card: bytes, or floats from 0 to 1; grey, or with 3 or 4
        channels.
    labels : str or list of str, optional
        Columns of classes whose names are written on the map, from coarse to fine: finer ones appear as one
        zooms in. By default, the names of the classes that give the colours; where these are no classes,
        dense regions of several sizes are named by what sets them apart: words of a text column, classes,
        genes, or high and low numbers. An empty list writes none.
    theme : {"auto", "dark", "light"}, default="auto"
        "auto" follows the reader's system.
    projection : {"mercator", "equal_earth"}, default="mercator"
        The map at first: Mercator keeps angles, Equal Earth keeps areas.

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
