"""The viewer as a notebook widget, based on anywidget."""

from __future__ import annotations

import base64
import importlib
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets
from numpy.typing import ArrayLike, NDArray

from ._embeddings import read_embeddings
from ._encode import pack, prepare
from ._home import initial_view
from ._html import static, write_page
from ._picture import png


def _rows_to_bytes(rows: NDArray[np.int64], _widget: Any) -> bytes:
    return rows.astype("<u4").tobytes()


def _rows_from_bytes(data: Any, _widget: Any) -> NDArray[np.int64]:
    return np.frombuffer(bytes(data), dtype="<u4").astype(np.int64)


def _sets_to_bytes(sets: dict[str, NDArray[np.int64]], _widget: Any) -> dict[str, bytes]:
    return {name: _rows_to_bytes(rows, None) for name, rows in sets.items()}


def _sets_from_bytes(data: Any, _widget: Any) -> dict[str, NDArray[np.int64]]:
    return {str(name): _rows_from_bytes(rows, None) for name, rows in data.items()}


class Explorer(anywidget.AnyWidget):
    """Notebook widget with a globe and a map of points on the sphere.

    Parameters
    ----------
    Y : array-like of shape (n, 3), fitted model, or dict
        Unit vectors, a fitted `Mercat`, or several embeddings by name, as in `to_html`.
    frame : DataFrame, mapping or None, default=None
        Columns of n values to colour by, search and read: a pandas or polars frame, or a dict.
    title : str, default="Mercat"
        Title shown above the views.
    color : str, optional
        Column that colours the points initially. Default: as in `to_html`.
    point_loss : array-like of shape (n,), optional
        Loss of each point, shown as a column marked "Trust". Default: as in `to_html`.
    genes : tuple (matrix, names) or None, default=None
        Features in addition to the columns, as in `to_html`.
    neighbors : array-like of shape (n, k), sparse matrix of shape (n, n) or None, default=None
        Each point's nearest neighbours in the data, as in `to_html`.
    uncertainty : Uncertainty or None, default=None
        Uncertainty of the positions, by `mercat.uncertainty`, as in `to_html`.
    images : array-like or None, default=None
        Thumbnail of each point, as in `to_html`.
    labels : str or list of str, optional
        Columns whose classes are named on the map, with the same default as in `to_html`.
    theme : {"auto", "dark", "light"}, default="auto"
        As in `to_html`.
    projection : {"mercator", "equal_earth"}, default="mercator"
        As in `to_html`.
    height : int, default=620
        Height in pixels.

    Attributes
    ----------
    selection : ndarray of int
        Selected rows, sorted. Assign to it to select from Python.
    sets : dict of str to ndarray of int
        Rows of the saved sets by name, sorted. Assign to it to pass sets to the explorer.
    view : dict
        ``rotation``: longitude and latitude of the centre, and the roll, in radians; ``globe``, ``map`` and,
        for planar embeddings, ``flat``: zoom and centre of that view. A zoom of 1 shows the whole globe or
        map. Keys missing on assignment are set to their initial values, which show all points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat.viewer import Explorer
    >>> Y = np.eye(3)
    >>> explorer = Explorer(Y, {"name": ["x", "y", "z"]})
    >>> explorer.selection = [2, 0]
    >>> explorer.selection
    array([0, 2])
    >>> explorer.view = {"rotation": [0.5, 0.1, 0.0]}
    >>> explorer.view["globe"]
    [1.0, 0.0, 0.0]
    """

    _esm = static("viewer.js")
    _css = static("style.css")
    _payload = traitlets.Bytes().tag(sync=True)
    _still = traitlets.Unicode().tag(sync=True)  # id of the picture shown before the widget runs
    height = traitlets.Int(620, min=200).tag(sync=True)
    selection = traitlets.Any().tag(sync=True, to_json=_rows_to_bytes, from_json=_rows_from_bytes)
    sets = traitlets.Any().tag(sync=True, to_json=_sets_to_bytes, from_json=_sets_from_bytes)
    view = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        Y: Any,
        frame: Any = None,
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
        height: int = 620,
    ) -> None:
        header, arrays = prepare(
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
        self._n: int = header["n"]
        self._title = str(title)
        self._first_view = (read_embeddings(Y)[0], frame, header["options"]["color"], projection)
        self._initial_view = initial_view(header["embeddings"], projection)
        still = f"mercat-{uuid.uuid4().hex}"
        super().__init__(_payload=pack(header, arrays), _still=still, height=height)

    def to_html(self, path: str | os.PathLike[str] = "mercat.html") -> Path:
        """Write the explorer as a single HTML file, like `mercat.viewer.to_html`.

        Parameters
        ----------
        path : path-like, default="mercat.html"
            File to write. An existing file is replaced.

        Returns
        -------
        path : Path
            The file written.
        """
        return write_page(self._payload, self._title, path)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, with a picture as a fallback."""
        bundles: Any = super()._repr_mimebundle_(**kwargs)
        picture = None if bundles is None else png(*self._first_view)
        if picture is None:
            return bundles
        bundle, *rest = bundles if isinstance(bundles, tuple) else (bundles,)
        bundle = {**bundle, "image/png": base64.b64encode(picture).decode("ascii")}
        return (bundle, *rest) if rest else bundle

    def _ipython_display_(self) -> None:
        """Display a picture followed by the widget, which hides the picture once it runs.

        Pages written by nbconvert prefer the widget to a picture in the same output, but cannot run it
        without network access.
        """
        display: Any = importlib.import_module("IPython.display").display
        bundles = self._repr_mimebundle_()
        bundle, *rest = bundles if isinstance(bundles, tuple) else (bundles,)
        picture = bundle.pop("image/png", None)
        if picture is not None:
            source = f"data:image/png;base64,{picture}"
            image = f'<img id="{self._still}" alt="The map, as a picture" src="{source}">'
            display({"text/html": image, "text/plain": ""}, raw=True)
        display(bundle, metadata=rest[0] if rest else None, raw=True)

    @traitlets.default("selection")
    def _nothing(self) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)

    @traitlets.default("sets")
    def _no_sets(self) -> dict[str, NDArray[np.int64]]:
        return {}

    @traitlets.default("view")
    def _home(self) -> dict[str, list[float]]:
        return {key: list(value) for key, value in self._initial_view.items()}

    @traitlets.validate("selection")
    def _check_selection(self, proposal: Any) -> NDArray[np.int64]:
        return _check_rows("selection", proposal["value"], self._n)

    @traitlets.validate("sets")
    def _check_sets(self, proposal: Any) -> dict[str, NDArray[np.int64]]:
        sets = proposal["value"]
        if not isinstance(sets, Mapping):
            raise ValueError(f"sets must be a dict of names to rows, got {type(sets).__name__}.")
        return {
            str(name): _check_rows(f"sets[{name!r}]", rows, self._n) for name, rows in sets.items()
        }

    @traitlets.validate("view")
    def _check_view(self, proposal: Any) -> dict[str, list[float]]:
        proposed = proposal["value"]
        unknown = set(proposed) - set(self._initial_view)
        if unknown:
            raise ValueError(
                f"view must have keys among {list(self._initial_view)}, got {sorted(unknown)[0]!r}."
            )
        view = {
            key: [float(x) for x in proposed.get(key, initial)]
            for key, initial in self._initial_view.items()
        }
        for key, values in view.items():
            if len(values) != 3 or not all(math.isfinite(value) for value in values):
                raise ValueError(f"view[{key!r}] must be three finite numbers, got {values}.")
            if key != "rotation" and values[0] <= 0:
                raise ValueError(f"view[{key!r}] must begin with a zoom above 0, got {values[0]}.")
        return view


def _check_rows(name: str, value: Any, n: int) -> NDArray[np.int64]:
    """Sorted, unique row numbers from row numbers or a mask."""
    rows = np.asarray(value)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"{name} as a mask must have shape ({n},), got {rows.shape}.")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) > 0 and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} must be a list of row numbers, got dtype {rows.dtype} and shape {rows.shape}."
        )
    rows = np.unique(rows).astype(np.int64)
    if len(rows) and (rows[0] < 0 or rows[-1] >= n):
        wrong = rows[0] if rows[0] < 0 else rows[-1]
        raise ValueError(f"{name} must hold rows from 0 to {n - 1}, got {wrong}.")
    return rows
