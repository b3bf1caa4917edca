"""Pictures of AnnData, in the manner of scanpy: what `mercat.tl.mercat` wrote, by obs column or gene.

The words are those of `sc.pl.embedding`. Colours that scanpy keeps for a categorical column, in
``adata.uns["<column>_colors"]``, are used where they are, with a warning where they do not fit its
categories; where there are none, `map` and `globe` keep those that they chose there, as scanpy does.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import viewer
from ._anndata import (
    DOUBTS,
    column,
    embeddings,
    gene_matrix,
    loss_column,
    map_of,
    masked_cells,
    painted,
    read_uncertainty,
    require_anndata,
    short_of,
    sphere_key,
    sphere_of,
    stored_palette,
)
from ._draw.colors import Categories, Coloring, read
from ._draw.figure import require_matplotlib
from ._draw.legend import shortened
from ._draw.maps import draw_map
from ._draw.scanpy import Look, Paint, each_of, finish, panels
from .viewer._columns import read_frame
from .viewer._genes import MOST_GENES

if TYPE_CHECKING:
    from anndata import AnnData

    from .viewer import Explorer

__all__ = ["explore", "globe", "map"]

logger = logging.getLogger(__name__)


def map(
    adata: AnnData,
    color: str | Sequence[str | None] | None = None,
    *,
    basis: str = "mercat",
    layer: str | Sequence[str | None] | None = None,
    use_raw: bool | None = None,
    gene_symbols: str | None = None,
    mask_obs: Any = None,
    groups: str | Sequence[str] | None = None,
    sort_order: bool = True,
    cmap: Any = None,
    color_map: Any = None,
    palette: Any = None,
    vmin: Any = None,
    vmax: Any = None,
    vcenter: Any = None,
    na_color: Any = "lightgray",
    size: float | None = None,
    s: float | None = None,
    alpha: float | None = None,
    add_outline: bool = False,
    labels: str | bool = False,
    legend_loc: str | None = "right margin",
    legend_fontsize: Any = None,
    legend_fontweight: Any = None,
    legend_fontoutline: float | None = None,
    colorbar_loc: str | None = "right",
    title: str | Sequence[str] | None = None,
    frameon: bool | None = None,
    projection: str = "mercator",
    center: Sequence[float] | None = None,
    extent: str | float = "data",
    ncols: int | None = None,
    wspace: float | None = None,
    ax: Any = None,
    show: bool | None = None,
    save: bool | str | os.PathLike[str] | None = None,
    return_fig: bool | None = None,
    components: Any = None,
) -> Any:
    """Draw the cells as a map.

    Parameters
    ----------
    adata : AnnData
        With an embedding by `mercat.tl.mercat`.
    color : str or list of str or None, optional
        Columns of ``adata.obs`` or genes to colour by; several make several panels. None is a panel
        without colours.
    basis : str, default="mercat"
        Which map: a key of ``adata.obsm``, with or without its ``X_``. Its unit vectors, under the same key
        and ``_sphere``, are drawn; unit vectors that stand alone have a key of their own.
    layer : str or list of str or None, optional
        Layer to take genes from, one for all panels or one for each.
    use_raw : bool, optional
        Whether to take genes from ``adata.raw``; by default if there is one and no layer is given.
    gene_symbols : str, optional
        Column of ``adata.var`` with other names of genes, by which `color` may name them too.
    mask_obs : array of bool, or str, optional
        Cells to colour, or the column of ``adata.obs`` that tells them; all others are drawn as those
        without a value.
    groups : str or list of str, optional
        Categories to colour; all others are drawn as cells without a value.
    sort_order : bool, default=True
        Whether cells of high values are drawn upon those of low ones.
    cmap, color_map : str or Colormap, optional
        Colour map for numbers; by default the one that ``sc.set_figure_params`` has set, or viridis.
    palette : str, list or dict, optional
        Colours of categories, as in `mercat.plot.map`. By default, those that scanpy keeps in
        ``adata.uns``; new ones are kept there.
    vmin, vmax, vcenter : float, str or function, or list of them, optional
        Ends and middle of the scale for numbers: a number, a percentile such as ``"p99"``, or a function
        of the values; one for all panels or one for each.
    na_color : color, default="lightgray"
        Colour of cells without a value.
    size, s : float, optional
        Size of the dots, in scanpy's measure. By default they fill as much of a panel as scanpy's, whose
        panels are larger.
    alpha : float, optional
        Opacity of the dots, by default 1.
    add_outline : bool, default=False
        Whether to draw a line around groups of cells.
    labels : bool or str, default=False
        Whether to write the names of categories on the map, beside the legend; or the column of
        ``adata.obs`` whose names are written.
    legend_loc : str or None, default="right margin"
        "right margin", "on data" (the names on the map, apart from each other), a place within the axes such
        as "upper left", or "none".
    legend_fontsize : float or str, optional
        Size of the text of the legend, or of the names on the map.
    legend_fontweight : str or int, optional
        Weight of that text, such as "bold"; by default that of the names on the map is bold.
    legend_fontoutline : float, optional
        Width, in points, of the white line around names on the map, by default 2.5.
    colorbar_loc : {"right", None}, default="right"
        Where the colour bar stands; None leaves it out.
    title : str or list of str, optional
        Titles of the panels, by default what they are coloured by.
    frameon : bool, optional
        Whether to draw the frame and its lines and numbers; by default as ``sc.set_figure_params`` has it.
    projection, center, extent
        As in `mercat.plot.map`.
    ncols : int, optional
        Number of panels in a row; by default up to three.
    wspace : float, optional
        Width between panels, as a fraction of their width.
    ax : matplotlib Axes, optional
        Where to draw; for one panel only. A new figure by default, in the size that
        ``sc.set_figure_params`` has set for a panel.
    show : bool, optional
        Whether to show the figure now and return nothing.
    save : bool, str or path, optional
        True or the end of a file's name, as in scanpy: ``"_types.pdf"`` writes ``figures/mercat_types.pdf``,
        the folder and the format are those of ``sc.settings``. A `Path` is taken as it is.
    return_fig : bool, optional
        Whether to return the figure rather than the axes.
    components
        Refused: a map of the sphere has no pairs of components. `center` turns it instead.

    Returns
    -------
    ax : matplotlib Axes or array of them, Figure or None
        An array for a list of colours.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(60, 9)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> ax = mercat.pl.map(adata, color="mercat_loss", cmap="magma_r", vmax="p99")
    >>> axes = mercat.pl.map(adata, color=["mercat_loss", "3"])
    >>> [ax.get_title() for ax in axes]
    ['mercat_loss', '3']
    """
    require_anndata(adata)
    if components is not None:
        raise ValueError(
            "components must be None, for a map of the sphere has no pairs of components to choose from; "
            f"center=(longitude, latitude) turns it. Got {components!r}."
        )
    keys, single = _keys(color, ax)
    n = len(keys)
    paint = Paint(
        cmap=_either(cmap=cmap, color_map=color_map),
        palette=palette,
        groups=[groups] if isinstance(groups, str) else groups,
        na_color=na_color,
    )
    look = Look(
        n_cells=adata.n_obs,
        size=_either(size=size, s=s),
        alpha=alpha,
        sort_order=sort_order,
        outline=add_outline,
        legend=legend_loc,
        fontsize=legend_fontsize,
        fontweight=legend_fontweight,
        fontoutline=legend_fontoutline,
        bar=colorbar_loc,
        frame=frameon,
    )
    titles = shortened([key or "" for key in keys])
    if title is not None:
        titles = each_of("title", title, n, whole=True)
    scales = {"vmin": vmin, "vmax": vmax, "vcenter": vcenter}
    paints = [replace(paint, **ends) for ends in _each_of_all(scales, n)]
    genes = {"layer": layer, "use_raw": [use_raw] * n, "gene_symbols": [gene_symbols] * n}
    Y = np.asarray(adata.obsm[sphere_key(adata, basis)], dtype=np.float64)
    require_matplotlib()
    masked = masked_cells(adata, mask_obs)
    shades = [
        _colored(adata, key, source, own, masked)
        for key, source, own in zip(keys, _each_of_all(genes, n), paints, strict=True)
    ]
    named = [_named(adata, labels, shade) for shade in shades]
    axes = panels(n, ncols=ncols, wspace=wspace, ax=ax, single=single)
    view = {"projection": projection, "center": center, "extent": extent}
    drawn = _drawn(Y, shades, named, titles, axes, look, view)
    return finish(drawn, basis, single=single, show=show, save=save, return_fig=return_fig)


def globe(
    adata: AnnData,
    color: str | Sequence[str | None] | None = None,
    *,
    center: Sequence[float] | None = None,
    extent: str | float = "world",
    **options: Any,
) -> Any:
    """Draw the cells on a globe; those on the far side shine through, pale.

    Parameters
    ----------
    adata, color
        As in `map`.
    center, extent
        As in `mercat.plot.globe`.
    **options
        Further arguments of `map`, all but `projection`.

    Returns
    -------
    ax : matplotlib Axes or array of them, Figure or None
        An array for a list of colours.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(60, 9)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> ax = mercat.pl.globe(adata, color="mercat_loss", center=(0, 0))
    """
    frame: dict[str, Any] = {"projection": "orthographic", "center": center, "extent": extent}
    return map(adata, color, **frame, **options)


def explore(
    adata: AnnData,
    path: str | os.PathLike[str] | None = None,
    *,
    color: str | None = None,
    keys: Sequence[str] | None = None,
    genes: Sequence[str] | int | None = None,
    basis: str | Sequence[str] | Mapping[str, str] = "mercat",
    layer: str | None = None,
    use_raw: bool | None = None,
    gene_symbols: str | None = None,
    **options: Any,
) -> Explorer | Path:
    """Explore the cells on a globe with a linked map: as a notebook widget, or as one HTML file.

    Parameters
    ----------
    adata : AnnData
        With an embedding by `mercat.tl.mercat`; what `mercat.tl.uncertainty` found is shown, too.
    path : path-like, optional
        HTML file to write. Without it, a widget is made (``pip install "mercat[viewer]"``).
    color : str, optional
        Column of ``adata.obs`` or gene that colours the cells at first.
    keys : list of str, optional
        Columns of ``adata.obs`` and genes that are offered as colours. By default, all columns that hold
        numbers, text, dates, booleans or categories, beside the names of the cells; other columns are left
        out, and named in a log message.
    genes : list of str, or int, optional
        Up to 2,000 genes that are shipped as a sparse matrix, to be found by name and ranked when two sets
        of cells are compared. A number takes as many: of those that ``adata.var["highly_variable"]`` marks,
        if it is there, or of all, those of the greatest variance.
    basis : str, list of str, or dict, default="mercat"
        Which map, as in `map`. Several, between which the cells move, are a list of names, such as
        ``["mercat", "umap"]``, or a dict of names by what they are called there. Keys of ``adata.obsm`` with
        two columns that are no maps by Mercat are shown in the plane.
    layer, use_raw, gene_symbols
        As in `map`. Genes are shown by their symbols.
    **options
        Further arguments of `mercat.viewer.Explorer` or `mercat.viewer.to_html`: title, neighbors (such as
        ``adata.obsp["distances"]``), labels (columns of ``adata.obs``), images, theme, projection, height
        (of the widget).

    Returns
    -------
    explorer : Explorer or Path
        The widget, whose ``selection`` holds the rows that are selected, so that
        ``adata[explorer.selection]`` are the cells, and whose ``sets`` holds the rows of the sets that were
        kept, by name; or the file written.

    Examples
    --------
    >>> import tempfile
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(60, 9)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercat.pl.explore(adata, f"{folder}/cells.html", keys=["3", "5"]).name
    'cells.html'
    >>> explorer = mercat.pl.explore(adata)
    >>> explorer.selection = [0, 1, 2]
    >>> adata[explorer.selection].n_obs
    3
    """
    require_anndata(adata)
    Y = embeddings(adata, {basis: basis} if isinstance(basis, str) else basis)
    shown_map = _first_map(adata, basis)
    bars, apart, loss = options.pop("uncertainty", None), set(), None
    if shown_map is not None:
        lost = loss_column(shown_map)
        loss, apart = adata.obs.get(lost), {lost}
        if bars is None and isinstance(basis, str):
            bars = read_uncertainty(adata, shown_map)
        if bars is not None:
            apart |= {f"{short_of(shown_map)}_{name}" for name in DOUBTS}
    names = _showable(adata, apart) if keys is None else list(dict.fromkeys(keys))
    labels = options.get("labels") or []
    labels = [labels] if isinstance(labels, str) else list(labels)
    wanted = [name for name in (color, *labels) if name is not None and name not in names]
    names = [*dict.fromkeys(wanted), *names]
    source: dict[str, Any] = {"layer": layer, "use_raw": use_raw, "gene_symbols": gene_symbols}
    frame = _cell_names(adata) if keys is None else {}
    for name in names:
        asked = "color" if name == color else "labels" if name in labels else "keys"
        values = column(adata, name, name=asked, **source)
        frame[name] = painted(adata.uns, values)
    options = {"color": color, "point_loss": loss, "uncertainty": bars, **options}
    if isinstance(genes, int) and genes > MOST_GENES:
        raise ValueError(f"genes must be at most {MOST_GENES}, got {genes}.")
    if genes is not None:
        options["genes"] = gene_matrix(adata, genes, **source)
    only = next(iter(Y.values()))
    shown: Any = only if isinstance(basis, str) and only.shape[1] == 3 else Y
    if path is None:
        return viewer.Explorer(shown, frame, **options)
    return viewer.to_html(shown, frame, path, **options)


def _keys(color: Any, ax: Any) -> tuple[list[str | None], bool]:
    """What each panel is coloured by, and whether there is a single panel and not a list of them."""
    single = color is None or isinstance(color, str)
    keys: list[str | None] = [color] if single else list(color)
    if not keys:
        raise ValueError("color must name at least one column or gene, got an empty list.")
    if ax is not None and not single:
        raise ValueError(f"ax must be None for a list of colors, got {ax!r}.")
    return keys, single


def _either(**names: Any) -> Any:
    """The value of a parameter that has two names."""
    (one, value), (other, same) = names.items()
    if value is not None and same is not None:
        raise ValueError(f"{one} and {other} must not both be given: they are the same.")
    return same if value is None else value


def _each_of_all(parameters: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """The parameters of each of n panels."""
    columns = [each_of(name, value, n) for name, value in parameters.items()]
    return [dict(zip(parameters, values, strict=True)) for values in zip(*columns, strict=True)]


def _drawn(
    Y: np.ndarray,
    shades: Sequence[Coloring],
    named: Sequence[Categories | None],
    titles: Sequence[str],
    axes: Sequence[Any],
    look: Look,
    view: Mapping[str, Any],
) -> list[Any]:
    """Draw all panels; the last one has the scale of Mercator's stretch."""
    last = len(axes) - 1
    return [
        draw_map(
            Y,
            shades[k],
            look.style(last=k == last),
            **view,
            groups=named[k],
            ax=own,
            title=titles[k],
        )
        for k, own in enumerate(axes)
    ]


def _first_map(adata: AnnData, basis: Any) -> str | None:
    """The key of the first map by Mercat."""
    given = [basis] if isinstance(basis, str) else basis
    for name in given.values() if isinstance(given, Mapping) else given:
        for key in (name, f"X_{name}"):
            if sphere_of(key) in adata.obsm or loss_column(key) in adata.obs:
                return map_of(adata, sphere_key(adata, name))
    return None


def _colored(
    adata: AnnData, key: str | None, source: dict[str, Any], paint: Paint, masked: np.ndarray | None
) -> Coloring:
    """The colours of a panel; new ones of a categorical column are kept in `uns`, as scanpy does."""
    if key is None:
        return paint.of(None, masked, adata.n_obs, None)
    values = column(adata, key, **source)
    stored = stored_palette(adata.uns, values) if paint.palette is None else None
    shades = paint.of(values, masked, adata.n_obs, stored)
    name = f"{key}_colors"
    new = hasattr(values, "cat") and (paint.palette is not None or name not in adata.uns)
    if new and isinstance(shades, Categories) and not adata.is_view:
        adata.uns[name] = shades.hexes()
    return shades


def _named(adata: AnnData, labels: str | bool, shades: Any) -> Categories | None:
    """The groups whose names are written on the map."""
    if isinstance(labels, str):
        found = read(
            column(adata, labels, layer=None, use_raw=None, name="labels"), adata.n_obs, "labels"
        )
        if not isinstance(found, Categories):
            raise ValueError(f"labels must be a column of categories, got {labels!r}.")
        return found
    return shades if labels and isinstance(shades, Categories) else None


def _cell_names(adata: AnnData) -> dict[str, Any]:
    """A column of the names of the cells; none where they are mere numbers of rows."""
    names = adata.obs_names
    if list(names) == [str(row) for row in range(adata.n_obs)]:
        return {}
    own = [str(names.name)] if names.name is not None else []
    free = [name for name in (*own, "cell", "name of the cell") if name not in adata.obs]
    return {free[0]: names.to_numpy(dtype=str)} if free else {}


def _showable(adata: AnnData, apart: set[str]) -> list[str]:
    """Columns of obs that the explorer can show; those that have a place of their own there stand apart."""
    names = [str(name) for name in adata.obs.columns if name not in apart]
    others = []
    for name in names:
        values = column(adata, name, layer=None, use_raw=False, name="keys")
        try:
            read_frame({name: values}, adata.n_obs)
        except (TypeError, ValueError):  # time spans, text beside numbers, and the like
            others.append(name)
    if others:
        logger.warning("Columns that cannot be shown are left out: %s.", ", ".join(others))
    return [name for name in names if name not in others]
