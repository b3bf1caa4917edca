"""Static figures of embeddings on the sphere with matplotlib: maps, globes and comparisons.

Each function draws on the given Axes, or on a new figure, and returns the Axes. Import the module rather than
its functions, since one of them is `map`::

    from mercat import plot

    ax = plot.map(Y, color=labels)

Points outside a map are drawn at its edge, points with missing colours in grey; both are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._data.checks import check_uncertainty, check_unit
from ._data.text import well_formed
from ._draw import legend as _legend
from ._draw import tradeoff as _tradeoff
from ._draw import trust as _trust
from ._draw.chart import default_center
from ._draw.colors import Categories, Coloring, Scale, make_coloring, read_column
from ._draw.figure import grid, require_matplotlib
from ._draw.keywords import reject_unknown_keywords
from ._draw.maps import BESIDE, Style, check_axes, draw_map, draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["compare", "globe", "map", "tradeoff", "trust"]

Floats = NDArray[np.float64]
_MAP_OPTIONS = ("labels", "size", "alpha", "sort_order", "legend")


@reject_unknown_keywords()
def map(
    Y: ArrayLike,
    color: Any = None,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    labels: Any = False,
    palette: Any = None,
    limits: tuple[Any, Any] | None = None,
    size: float | None = None,
    alpha: float | None = None,
    sort_order: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw an embedding as a map.

    Parameters
    ----------
    Y : array-like of shape (n, 3) or fitted model
        Unit vectors, such as ``Mercat().fit(X).embedding_``, or a fitted model.
    color : str, sequence of n values or None, default=None
        Values to colour by: categories (text, booleans, a categorical column), numbers or dates; or one
        matplotlib colour for all points; None means blue. Lists, arrays and columns of pandas and polars are
        accepted. Integers with at most 20 distinct values are categories; pass floats for a continuous scale.
        Missing values are grey.
    projection : {"mercator", "lambert", "equal_earth", "mollweide", "orthographic"}, default="mercator"
        Mercator preserves angles and enlarges areas towards its poles; a scale at its right edge shows by
        how much lengths are stretched, if this differs by 3 % or more and there is room. It ends at a
        latitude of 85.05 degrees. Lambert, Equal Earth and Mollweide
        preserve areas, and so show true density. Orthographic is `globe`.
    center : (longitude, latitude), optional
        Centre of the map in degrees. By default, a disc is centred on the mean direction of the points; other
        maps are centred on the equator and cut where the fewest points are.
    extent : {"data", "world"} or float, default="data"
        "data" crops the map so that the central 98 % of the points along each axis fill at least 80 %
        of its width and height (40 % if that shows groups of far points), unless it would be more than four
        times as wide as high, or twice as high as wide. It is enlarged by up to a seventh if that shows all
        points. A fraction, such as 0.9, crops to the central 90 % of the points along each axis; 1.0 shows
        all points, and "world" the whole sphere. Points outside are drawn as triangles at the edge and
        counted below the map.
    labels : bool or sequence of n values, default=False
        Names to write near the middle of their points, or near their densest region: the categories of
        `color` if True, or other categories. Names that would overlap or hide many points are moved aside,
        with a line to their group; no name hides more than a third of any group. Names that do not fit, those
        of the smallest groups first, are left out and counted below the map.
    palette : str, Colormap, list or dict, optional
        A colour map for numbers (viridis by default); for categories, a list of colours, a dict by name, or
        a colour map such as "tab20". By default, categories have the eight colours of Okabe and Ito,
        followed by others chosen to be distinguishable with any colour vision.
    limits : (low, high), optional
        Limits of the scale for numbers or dates, by default those of the data. The colour bar has a pointed
        end if values lie outside.
    size : float, optional
        Area of a marker in points squared, as in `scatter`. By default, the markers would cover half of the
        area over which the points are spread, if they did not overlap.
    alpha : float, optional
        Opacity of a point. By default, 1 for numbers; otherwise, lower if points are dense.
    sort_order : bool, default=True
        Whether points with high values are drawn on top. Otherwise, and for categories, they are drawn in a
        fixed random order.
    legend : bool, default=True
        Whether to draw a legend or a colour bar to the right of the map.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from mercat import plot
    >>> Y = np.random.default_rng(0).normal(size=(300, 3))
    >>> Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    >>> ax = plot.map(Y, color=np.where(Y[:, 2] > 0, "north", "south"))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['north', 'south']
    """
    require_matplotlib()
    points = _points(Y)
    coloring = make_coloring(color, len(points), palette=palette, limits=limits)
    return _draw(
        points,
        coloring,
        projection=projection,
        center=center,
        extent=extent,
        labels=labels,
        size=size,
        alpha=alpha,
        sort_order=sort_order,
        legend=legend,
        ax=ax,
    )


@reject_unknown_keywords("palette", "limits", *_MAP_OPTIONS)
def globe(
    Y: ArrayLike,
    color: Any = None,
    *,
    center: Sequence[float] | None = None,
    extent: str | float = "world",
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw an embedding as a globe; points on the far side are pale.

    Parameters
    ----------
    Y : array-like of shape (n, 3) or fitted model
        Unit vectors, as in `map`.
    color : str, sequence of n values or None, default=None
        As in `map`.
    center : (longitude, latitude), optional
        Centre of the globe in degrees; by default, the mean direction of the points.
    extent : {"world", "data"} or float, default="world"
        The whole globe, or the part with the points, as in `map`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    **options
        Further arguments of `map`: labels, palette, limits, size, alpha, sort_order, legend.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from mercat import plot
    >>> ax = plot.globe([[1, 0, 0], [0, 1, 0], [-0.6, 0, 0.8]], center=(0, 0))
    >>> print(ax.get_xlabel())
    Centre 0°, 0°. 1 of 3 points is on the far side (pale).
    """
    return map(Y, color, projection="orthographic", center=center, extent=extent, ax=ax, **options)


@reject_unknown_keywords(
    "extent", *_MAP_OPTIONS, instead=dict.fromkeys(("color", "c", "hue"), "by=, or plot.map")
)
def trust(
    model: Any,
    uncertainty: Any = None,
    *,
    by: Any = None,
    rows: Any = None,
    level: float = 0.9,
    palette: Any = "viridis_r",
    limits: tuple[float, float] | None = None,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the map of a fitted model, coloured by how far the position of each point can be trusted.

    Do not rely on the position of dark points. With `uncertainty`, ellipses and a haze show where points lie
    on other maps; dashed lines lead to alternative positions.

    Parameters
    ----------
    model : fitted estimator
        Anything with ``embedding_`` (n, 3) and ``point_loss_`` (n,).
    uncertainty : Uncertainty or None, default=None
        The result of `mercat.uncertainty` for this model.
    by : {"loss", "spread", "torn", "p_value", "alternative_wins", "alternative_gap"} or array, optional
        What to colour by: the angle loss, a field of `uncertainty`, or n numbers such as those of
        :func:`mercat.metrics.torn_neighbors`. By default, the spread, or the loss without `uncertainty`.
    rows : array of int, optional
        Points whose ellipses and alternative positions are drawn. By default, all points if there are at most
        40; otherwise, 15 points spread over the map, and a haze of the regions of up to 3000 points.
    level : float, default=0.9
        Probability with which the ellipse contains the position of a point on another map. The haze shows
        regions with half this probability.
    palette, projection, center, ax
        As in `map`.
    limits : tuple of float, optional
        Values at the ends of the palette. By default, the smallest and the largest value; if some are far
        above 98 % of the others, they share the last colour, and the colour bar ends in an arrow.
    **options
        Further arguments of `map`: extent, labels, size, alpha, sort_order, legend.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mercat import plot
    >>> fitted = SimpleNamespace(embedding_=[[1, 0, 0], [0, 1, 0]], point_loss_=[0.1, 0.4])
    >>> ax = plot.trust(fitted)
    """
    missing = [name for name in ("embedding_", "point_loss_") if not hasattr(model, name)]
    if missing:
        raise ValueError(
            "model must be fitted and have embedding_ and point_loss_, "
            f"got {type(model).__name__} without {' and '.join(missing)}.{_step_to_pass(model)}"
        )
    require_matplotlib()
    points = check_unit("model.embedding_", model.embedding_, some=True)
    if uncertainty is not None:
        check_uncertainty(uncertainty, len(points), points)
    values, title = _trust.values_and_title(model, uncertainty, by)
    if limits is None and title is not None:
        limits = _trust.limits_of(values)
    coloring = make_coloring(
        values, len(points), palette=palette, limits=limits, name=title or "model.point_loss_"
    )
    coloring.title = title or "angle loss of the point"
    center = default_center(points, projection) if center is None else center
    ax = _draw(points, coloring, projection=projection, center=center, ax=ax, **options)
    if uncertainty is not None:
        meaning = _trust.draw_regions(ax, points, uncertainty, rows, level, projection, center)
        ax.set_xlabel("\n".join(filter(None, [ax.get_xlabel(), meaning])))
    return ax


@reject_unknown_keywords()
def compare(
    embeddings: Mapping[str, ArrayLike],
    color: Any = None,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    palette: Any = None,
    limits: tuple[Any, Any] | None = None,
    legend: bool = True,
    axes: Any = None,
    labels: Any = False,
    size: float | None = None,
    alpha: float | None = None,
    sort_order: bool = True,
) -> NDArray[Any]:
    """Draw embeddings of the same points side by side.

    Parameters
    ----------
    embeddings : dict of name to array-like of shape (n, 3) or (n, 2), or fitted model
        Unit vectors are drawn as a map, and embeddings with two columns in the plane.
    color, projection, center, extent, palette, limits, legend
        As in `map`. Each map has its own extent; the legend is shared.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one per embedding; a new figure by default.
    labels, size, alpha, sort_order
        As in `map`.

    Returns
    -------
    axes : ndarray of matplotlib Axes
        In the order of the embeddings.

    Examples
    --------
    >>> from mercat import plot
    >>> Y = [[1, 0, 0], [0, 1, 0], [0, 0.6, 0.8]]
    >>> axes = plot.compare({"sphere": Y, "plane": [[0, 0], [1, 0], [0, 2]]})
    >>> [ax.get_title() for ax in axes]
    ['sphere', 'plane']
    """
    require_matplotlib()
    if not isinstance(embeddings, Mapping):
        raise ValueError(
            f"embeddings must be a dict of names and arrays, got a {type(embeddings).__name__}."
        )
    panels = {str(name): _panel(name, Y) for name, Y in embeddings.items()}
    lengths = {name: len(P) for name, P in panels.items()}
    if not panels or len(set(lengths.values())) > 1:
        raise ValueError(f"embeddings must have the same number of points, got {lengths}.")
    n = next(iter(lengths.values()))
    coloring = make_coloring(color, n, palette=palette, limits=limits)
    groups = _groups(labels, coloring, n)
    new_figure = axes is None
    axes = grid(len(panels)) if axes is None else np.ravel(np.array(axes, dtype=object))
    if len(axes) != len(panels):
        raise ValueError(f"axes must be {len(panels)}, one for each embedding, got {len(axes)}.")
    style = Style(size, alpha, sort_order, stretch=len(panels) == 1, legend_location=None)
    for ax, (name, P) in zip(axes, panels.items(), strict=True):
        ax.set_title(well_formed(name), parse_math=False)
        if P.shape[1] == 2:
            draw_plane(P, coloring, style, ax, groups)
        else:
            view: dict[str, Any] = {"projection": projection, "center": center, "extent": extent}
            draw_map(P, coloring, style, groups=groups, ax=ax, **view)
    if legend:
        _legend.draw(axes[-1], coloring, new=new_figure, whole_figure=new_figure)
        if not new_figure:
            _legend.make_room(axes[-1])
    return np.asarray(axes)


def tradeoff(
    X: ArrayLike,
    dial: Mapping[float, ArrayLike],
    others: Mapping[str, ArrayLike] | None = None,
    *,
    axes: Any = None,
    **options: Any,
) -> NDArray[Any]:
    """Plot preservation of angles and distances against preservation of neighbourhoods.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The data.
    dial : dict of float to array-like of shape (n, 3)
        Embeddings by value of `detail`, drawn as a line in this order.
    others : dict of name to array-like of shape (n, p) or None, default=None
        Embeddings computed by other methods, drawn as points.
    axes : two matplotlib Axes, optional
        Where to draw angles and distances; a new figure by default.
    **options
        Further arguments of `metrics.neighborhood_preservation`: k, n_spectral, n_points.

    Returns
    -------
    axes : ndarray of two matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from mercat import Mercat, plot
    >>> X = np.random.default_rng(0).normal(size=(120, 4))
    >>> dial = {d: Mercat(detail=d, random_state=0).fit_transform(X) for d in (0.0, 0.3)}
    >>> axes = plot.tradeoff(X, dial, {"two columns": X[:, :2]})
    >>> [ax.get_ylabel() for ax in axes]
    ['angle preservation', 'distance preservation']
    """
    require_matplotlib()
    if not dial:
        raise ValueError("dial must hold at least one embedding, got none.")
    axes = grid(2) if axes is None else np.ravel(np.array(axes, dtype=object))
    if len(axes) != 2:
        raise ValueError(f"axes must be 2, for angles and for distances, got {len(axes)}.")
    measured = (_tradeoff.measure(X, embeddings or {}, **options) for embeddings in (dial, others))
    _tradeoff.draw([check_axes(ax) for ax in axes], *measured)
    return np.asarray(axes)


def _draw(
    Y: Floats,
    coloring: Coloring,
    *,
    labels: Any = False,
    size: float | None = None,
    alpha: float | None = None,
    sort_order: bool = True,
    legend: bool = True,
    **frame: Any,
) -> Axes:
    """Draw a map with or without a legend."""
    groups = _groups(labels, coloring, len(Y))
    style = Style(size, alpha, sort_order, legend_location=BESIDE if legend else None)
    return draw_map(Y, coloring, style, groups=groups, **frame)


def _points(Y: Any) -> Floats:
    """Unit vectors, or those of a fitted model."""
    return check_unit(*_embedding("Y", Y), some=True)


def _embedding(name: str, Y: Any) -> tuple[str, Any]:
    """The array of an embedding or of a fitted model, and its name."""
    if hasattr(Y, "embedding_"):
        return f"{name}.embedding_", Y.embedding_
    if hasattr(Y, "get_params") and not hasattr(Y, "__array__"):
        raise ValueError(
            f"{name} must be fitted, got {type(Y).__name__} without embedding_.{_step_to_pass(Y)}"
        )
    return name, Y


def _step_to_pass(model: Any) -> str:
    """Sentence that names the step of a fitted pipeline that has the map, if any."""
    for name, step in getattr(model, "steps", ()):
        if hasattr(step, "embedding_"):
            return f" Pass its step with the map: pipeline[{name!r}]."
    return ""


def _groups(labels: Any, coloring: Coloring, n: int) -> Categories | None:
    """The categories to write on the map."""
    if labels is False or labels is None:
        return None
    if labels is True:
        if not isinstance(coloring, Categories):
            raise ValueError("labels=True needs a categorical color; pass the labels instead.")
        return coloring
    groups = read_column(labels, n, "labels")
    if isinstance(groups, Scale):
        raise ValueError("labels must be names of groups, got numbers.")
    return groups


def _panel(name: Any, Y: ArrayLike) -> Floats:
    """An embedding to compare: unit vectors, or finite points of the plane."""
    title = f"embeddings[{name!r}]"
    points = np.asarray(_embedding(title, Y)[1])
    if points.ndim != 2 or points.shape[1] != 2:
        return check_unit(title, points, some=True)
    points = points.astype(np.float64)
    if len(points) == 0 or not np.isfinite(points).all():
        raise ValueError(f"{title} must hold at least one point and no NaN or infinity.")
    return points
