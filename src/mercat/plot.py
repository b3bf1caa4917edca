"""Static figures of embeddings on the sphere: maps, globes, and comparisons, with matplotlib.

Every function draws on the Axes it is given, or on a new figure, and returns the Axes. Import
the module rather than its names, since one of them is `map`::

    from mercat import plot

    ax = plot.map(Y, color=labels)

Nothing is cut off in silence: points that a map cannot hold are drawn at its edge, missing
colours are drawn in grey, and both are counted in the figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._data.checks import check_unit
from ._draw import chart as _chart
from ._draw import labels as _labels
from ._draw import legend as _legend
from ._draw import marks as _marks
from ._draw import tradeoff as _tradeoff
from ._draw.colors import Categories, Coloring, Scale, coloring, read
from ._draw.figure import grid, new_axes, require_matplotlib
from ._draw.window import MERCATOR_TOP, check_extent, plane, window
from .projections import far_side, lookup, project

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["compare", "globe", "map", "tradeoff", "trust"]

Floats = NDArray[np.float64]
# Points beyond the window are marked at its edge if they are no larger a part than this.
_MOST_MARKED = 0.02


def map(
    Y: ArrayLike,
    color: Any = None,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    labels: Any = False,
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    size: float | None = None,
    alpha: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw an embedding as a map.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Unit vectors, such as ``Mercat().fit(X).embedding_``.
    color : str or sequence of n values, optional
        What to colour by: text, booleans or a categorical column (a colour each), numbers
        (along a scale), or one matplotlib colour for all. Lists, arrays and columns of pandas
        and polars will do. Integers with at most 20 distinct values are taken as categories;
        pass floats to have them on a scale. Missing values are grey.
    projection : {"mercator", "lambert", "equal_earth", "mollweide", "orthographic"}
        Mercator keeps angles and stretches areas towards its poles: its right edge tells how
        much, if there is room. It ends at a latitude of 85.05 degrees at the latest; points
        beyond are drawn as triangles at the edge and counted below the map. Lambert, Equal
        Earth and Mollweide keep areas, so that density reads true. Orthographic is `globe`.
    center : (longitude, latitude), optional
        The centre of the map in degrees. By default, a disc faces the mean direction of the
        points; other maps keep the equator and are cut where the fewest points are.
    extent : {"data", "world"} or float
        "data" shows the part of the world that holds all points, with a margin, and the
        whole world where they spread over most of it. One point in 200 may lie beyond each
        side where that makes the map much smaller: it is drawn as a triangle at the edge, and
        counted below the map. A fraction, such as 0.9, shows where so many of the points are,
        without as many in the west as in the east, in the north as in the south. "world"
        always shows all of the world.
    labels : bool or sequence of n values
        Names to write at the median direction of their points: those of `color` if True, or
        categories of their own.
    palette : str, Colormap, list or dict, optional
        A colour map for numbers (viridis by default); for categories, a list of colours, a
        dict by name, or a colour map such as "tab20". By default, eight colours of Okabe and
        Ito and ever more after them, chosen to be told apart by readers of any colour vision.
    limits : (low, high), optional
        Ends of the scale for numbers, by default those of the data. The colour bar has a
        pointed end where values lie beyond.
    size : float, optional
        Area of a point in points squared, by default such that the points would cover half of
        the area that they are spread over.
    alpha : float, optional
        Opacity of a point, by default such that dense places still differ.
    legend : bool
        Whether to draw a legend or a colour bar, to the right of the map.
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
    points = check_unit("Y", Y, some=True)
    shades = coloring(color, len(points), palette=palette, limits=limits)
    return _draw(
        points,
        shades,
        projection=projection,
        center=center,
        extent=extent,
        labels=labels,
        size=size,
        alpha=alpha,
        legend=legend,
        ax=ax,
    )


def globe(
    Y: ArrayLike,
    color: Any = None,
    *,
    center: Sequence[float] | None = None,
    extent: str | float = "world",
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw an embedding as a globe; points on the far side shine through, pale.

    Parameters
    ----------
    Y : array-like of shape (n, 3)
        Unit vectors.
    color : str or sequence of n values, optional
        As in `map`.
    center : (longitude, latitude), optional
        What the globe turns to the reader, in degrees; the mean direction by default.
    extent : {"world", "data"} or float
        The whole globe, or the part of it that holds the points, as in `map`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    **options
        Further arguments of `map`: labels, palette, limits, size, alpha, legend.

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


def trust(
    model: Any,
    *,
    palette: Any = "viridis_r",
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw a fitted model's map, coloured by how well each point keeps its angles.

    Dark points are the ones whose position should not be relied on.

    Parameters
    ----------
    model : fitted estimator
        Anything with ``embedding_`` (n, 3) and ``point_loss_`` (n,).
    palette, limits, ax
        As in `map`.
    **options
        Further arguments of `map`: projection, center, extent, labels, size, alpha, legend.

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
    absent = [name for name in ("embedding_", "point_loss_") if not hasattr(model, name)]
    if absent:
        raise ValueError(
            "model must be fitted and have embedding_ and point_loss_, "
            f"got {type(model).__name__} without {' and '.join(absent)}."
        )
    require_matplotlib()
    points = check_unit("model.embedding_", model.embedding_, some=True)
    loss = np.asarray(model.point_loss_, dtype=np.float64)
    shades = coloring(loss, len(points), palette=palette, limits=limits, name="model.point_loss_")
    shades.title = "angle loss of the point"
    return _draw(points, shades, ax=ax, **options)


def compare(
    embeddings: Mapping[str, ArrayLike],
    color: Any = None,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    palette: Any = None,
    limits: tuple[float, float] | None = None,
    legend: bool = True,
    axes: Any = None,
    **options: Any,
) -> NDArray[Any]:
    """Draw embeddings of the same points side by side.

    Parameters
    ----------
    embeddings : dict of name to array-like of shape (n, 3) or (n, 2)
        Unit vectors are drawn as a map, two columns as they are, in the plane.
    color, projection, center, extent, palette, limits, legend
        As in `map`; projection, center and extent are for the maps, each of which shows what
        holds its own points; the legend is for all.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each embedding; a new figure by default.
    **options
        Further arguments of `map`: labels, size, alpha.

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
        raise ValueError(f"embeddings must all hold the same points, got {lengths} of them.")
    n = next(iter(lengths.values()))
    shades = coloring(color, n, palette=palette, limits=limits)
    created = axes is None
    axes = grid(len(panels)) if axes is None else np.ravel(np.array(axes, dtype=object))
    if len(axes) != len(panels):
        raise ValueError(f"axes must be {len(panels)}, one for each embedding, got {len(axes)}.")
    for ax, (name, P) in zip(axes, panels.items(), strict=True):
        ax.set_title(name, parse_math=False)
        if P.shape[1] == 2:
            _draw_plane(P, shades, ax, **options)
        else:
            frame: dict[str, Any] = {"projection": projection, "center": center, "extent": extent}
            _draw(P, shades, ax=ax, legend=False, **frame, **options)
    if legend:
        _legend.draw(axes[-1], shades, new=created, whole_figure=created)
        if not created:
            _legend.settle(axes[-1])
    return np.asarray(axes)


def tradeoff(
    X: ArrayLike,
    dial: Mapping[float, ArrayLike],
    others: Mapping[str, ArrayLike] | None = None,
    *,
    axes: Any = None,
    **options: Any,
) -> NDArray[Any]:
    """Draw what detail costs in angles and distances against what it brings in neighbourhoods.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The data.
    dial : dict of float to array-like of shape (n, 3)
        Embeddings by their value of `detail`, drawn as a line in this order.
    others : dict of name to array-like of shape (n, p), optional
        Embeddings by other methods, drawn as points.
    axes : two matplotlib Axes, optional
        Where to draw, angles first, then distances; a new figure by default.
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
    found = (_tradeoff.measure(X, some or {}, **options) for some in (dial, others))
    _tradeoff.draw([_checked(ax) for ax in axes], *found)
    return np.asarray(axes)


def _draw(
    Y: Floats,
    shades: Coloring,
    *,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    labels: Any = False,
    size: float | None = None,
    alpha: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """The path of every map: first the frame and the legend, then the points and the names,
    whose sizes depend on the room that is left."""
    globe = lookup(projection).two_sided
    check_extent(extent)
    groups = _groups(labels, shades, len(Y))
    _check_style(size, alpha)
    center = _chart.default_center(Y, projection) if center is None else center
    P = project(Y, projection, center=center)
    shown = window(projection, P, extent)
    new = ax is None
    ax = new_axes(shown.aspect) if ax is None else _checked(ax)
    far = far_side(Y, center=center) & globe
    beyond = shown.beyond(P)
    notes = _chart.draw_frame(ax, projection, center, shown)
    if globe:
        notes.append(_count(far, "on the far side (pale)"))
    cut = bool((np.abs(P[beyond, 1]) < MERCATOR_TOP).any())
    marked = not cut or beyond.mean() <= _MOST_MARKED
    if beyond.any():
        where = "farther off" if cut else "beyond 85.05°"
        where += ", at the edge (triangles)" if marked else ""
        notes.append(_count(beyond, where + ("; extent='world' shows all" if cut else "")))
    _chart.write_note(ax, notes)
    if legend:
        _legend.draw(ax, shades, new=new)
    _legend.settle(ax)
    _marks.draw(ax, P, shades, shown=shown, marked=marked, far=far, size=size, alpha=alpha)
    if groups is not None and groups.present:
        middles = np.array([_labels.median_direction(Y[rows]) for rows in groups.members()])
        anchors = project(middles, projection, center=center)
        anchors = np.clip(anchors, shown.first, shown.last)  # a pole's name, like its points
        _labels.write(ax, anchors, groups.shown(), far_side(middles, center=center) & globe)
    return ax


def _draw_plane(
    P: Floats,
    shades: Coloring,
    ax: Axes,
    *,
    labels: Any = False,
    size: float | None = None,
    alpha: float | None = None,
) -> None:
    """As `_draw`, for an embedding that is flat already."""
    groups = _groups(labels, shades, len(P))
    _check_style(size, alpha)
    shown = plane(P)
    _chart.draw_plane(_checked(ax), shown)
    _legend.settle(ax)
    _marks.draw(ax, P, shades, shown=shown, size=size, alpha=alpha)
    if groups is not None and groups.present:
        anchors = np.array([np.median(P[rows], axis=0) for rows in groups.members()])
        _labels.write(ax, anchors, groups.shown())


def _groups(labels: Any, shades: Coloring, n: int) -> Categories | None:
    """The categories to write on the map."""
    if labels is False or labels is None:
        return None
    if labels is True:
        if not isinstance(shades, Categories):
            raise ValueError("labels=True needs a color of categories; pass labels themselves.")
        return shades
    groups = read(labels, n, "labels")
    if isinstance(groups, Scale):
        raise ValueError("labels must be names of groups, got numbers.")
    return groups


def _panel(name: Any, Y: ArrayLike) -> Floats:
    """An embedding to compare: unit vectors, or finite points of the plane."""
    title = f"embeddings[{name!r}]"
    points = np.asarray(Y)
    if points.ndim != 2 or points.shape[1] != 2:
        return check_unit(title, Y, some=True)
    points = points.astype(np.float64)
    if len(points) == 0 or not np.isfinite(points).all():
        raise ValueError(f"{title} must hold at least one point and no NaN or infinity.")
    return points


def _check_style(size: float | None, alpha: float | None) -> None:
    if size is not None and not 0 < size < np.inf:
        raise ValueError(f"size must be positive, got {size!r}.")
    if alpha is not None and not 0 < alpha <= 1:
        raise ValueError(f"alpha must be above 0 and at most 1, got {alpha!r}.")


def _checked(ax: Any) -> Axes:
    if getattr(ax, "name", None) != "rectilinear":
        raise ValueError(f"ax must be plain matplotlib Axes, got {ax!r}.")
    axes: Axes = ax
    return axes


def _count(which: NDArray[np.bool_], where: str) -> str:
    verb = "is" if which.sum() == 1 else "are"
    return f"{which.sum():,} of {len(which):,} points {verb} {where}."
