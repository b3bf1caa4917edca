"""Plots of AnnData in the style of scanpy: maps by `mercat.tl.mercat`, coloured by obs column or gene.

Parameters are named as in `sc.pl.embedding`. The colours that scanpy stores for a categorical column in
``adata.uns["<column>_colors"]`` are used, with a warning if they do not match its categories. If there are
none, `map` and `globe` store the colours they choose, as scanpy does.
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
from ._anndata.columns import column, gene_matrix, masked_cells, painted, stored_palette
from ._anndata.keys import (
    UNCERTAINTY_COLUMNS,
    embeddings,
    loss_column,
    map_of,
    require_anndata,
    short_of,
    sphere_key,
    sphere_of,
)
from ._anndata.maps import read_uncertainty
from ._draw.colors import Categories, Coloring, read
from ._draw.figure import require_matplotlib
from ._draw.legend import shortened
from ._draw.maps import draw_map
from ._draw.scanpy import (
    ColorOptions,
    ScanpyStyle,
    each_of,
    each_of_all,
    either,
    finish,
    keys_of_panels,
    panels,
)
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
        Columns of ``adata.obs`` or genes to colour by, one panel for each. None draws a panel without
        colours.
    basis : str, default="mercat"
        Which map: a key of ``adata.obsm``, with or without its ``X_``. The unit vectors under this key
        followed by ``_sphere`` are drawn, or those under the key itself.
    layer : str or list of str or None, optional
        Layer to take genes from, one for all panels or one per panel.
    use_raw : bool, optional
        Whether to take genes from ``adata.raw``. Default: True if it exists and no layer is given.
    gene_symbols : str, optional
        Column of ``adata.var`` with alternative gene names that `color` may use.
    mask_obs : array of bool, or str, optional
        Cells to colour, or a column of ``adata.obs`` that marks them; others are drawn like cells without
        a value.
    groups : str or list of str, optional
        Categories to colour; others are drawn like cells without a value.
    sort_order : bool, default=True
        Whether to draw cells with high values on top.
    cmap, color_map : str or Colormap, optional
        Colour map for numbers. Default: the one set by ``sc.set_figure_params``, or viridis.
    palette : str, list or dict, optional
        Colours of categories, as in `mercat.plot.map`. Default: those stored in ``adata.uns`` by scanpy;
        new colours are stored there.
    vmin, vmax, vcenter : float, str or function, or list of them, optional
        Ends and middle of the scale for numbers: a number, a percentile such as ``"p99"``, or a function
        of the values; one for all panels or one per panel.
    na_color : color, default="lightgray"
        Colour of cells without a value.
    size, s : float, optional
        Size of the dots, in scanpy's units. By default dots cover the same fraction of a panel as
        scanpy's, whose panels are larger.
    alpha : float, optional
        Opacity of the dots. Default: 1.
    add_outline : bool, default=False
        Whether to draw a line around groups of cells.
    labels : bool or str, default=False
        Whether to write the names of categories on the map in addition to the legend; or the column of
        ``adata.obs`` with the names to write.
    legend_loc : str or None, default="right margin"
        "right margin", "on data" (names on the map, without overlaps), a location within the axes such as
        "upper left", or "none".
    legend_fontsize : float or str, optional
        Font size of the legend or of the names on the map.
    legend_fontweight : str or int, optional
        Font weight, such as "bold". Default: bold for names on the map.
    legend_fontoutline : float, optional
        Width in points of the white outline of names on the map. Default: 2.5.
    colorbar_loc : {"right", None}, default="right"
        Location of the colour bar, or None for no colour bar.
    title : str or list of str, optional
        Titles of the panels. Default: what they are coloured by.
    frameon : bool, optional
        Whether to draw the frame and graticule. Default: as set by ``sc.set_figure_params``.
    projection, center, extent
        As in `mercat.plot.map`.
    ncols : int, optional
        Number of panels per row. Default: up to three.
    wspace : float, optional
        Space between panels, as a fraction of their width.
    ax : matplotlib Axes, optional
        Axes to draw on, for a single panel. Default: a new figure, with panels of the size set by
        ``sc.set_figure_params``.
    show : bool, optional
        Whether to show the figure now and return nothing.
    save : bool, str or path, optional
        True or the end of a file name, as in scanpy: ``"_types.pdf"`` writes ``figures/mercat_types.pdf``
        with the folder and format of ``sc.settings``. A `Path` is used unchanged.
    return_fig : bool, optional
        Whether to return the figure instead of the axes.
    components
        Not supported: a map of the sphere has no pairs of components. Use `center` to rotate it.

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
    _check_components(components)
    keys, single = keys_of_panels(color, ax)
    n = len(keys)
    groups = [groups] if isinstance(groups, str) else groups
    paint = ColorOptions(either(cmap=cmap, color_map=color_map), palette, groups, na_color)
    look = ScanpyStyle(
        n_cells=adata.n_obs,
        size=either(size=size, s=s),
        alpha=alpha,
        sort_order=sort_order,
        outline=add_outline,
        legend_location=legend_loc,
        fontsize=legend_fontsize,
        fontweight=legend_fontweight,
        fontoutline=legend_fontoutline,
        colorbar_location=colorbar_loc,
        frame=frameon,
    )
    titles = shortened([key or "" for key in keys])
    if title is not None:
        titles = each_of("title", title, n, whole=True)
    scales = {"vmin": vmin, "vmax": vmax, "vcenter": vcenter}
    genes = {"layer": layer, "use_raw": [use_raw] * n, "gene_symbols": [gene_symbols] * n}
    Y = np.asarray(adata.obsm[sphere_key(adata, basis)], dtype=np.float64)
    require_matplotlib()
    shades = _colored_panels(adata, keys, genes, scales, paint, mask_obs)
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
    """Draw the cells on a globe, with the cells on the far side dimmed.

    Parameters
    ----------
    adata, color
        As in `map`.
    center, extent
        As in `mercat.plot.globe`.
    **options
        Further arguments of `map`, except `projection`.

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
        With an embedding by `mercat.tl.mercat`. Results of `mercat.tl.uncertainty` are shown if present.
    path : path-like, optional
        HTML file to write. Default: return a widget (``pip install "mercat[viewer]"``).
    color : str, optional
        Column of ``adata.obs`` or gene that colours the cells initially.
    keys : list of str, optional
        Columns of ``adata.obs`` and genes offered as colours. Default: the names of the cells and all
        columns of numbers, text, dates, booleans or categories; other columns are left out and logged.
    genes : list of str, or int, optional
        Up to 2,000 genes, stored as a sparse matrix, that can be searched by name and are ranked when two
        sets of cells are compared. An integer selects the genes of largest variance, among those marked in
        ``adata.var["highly_variable"]`` if present.
    basis : str, list of str, or dict, default="mercat"
        Which map, as in `map`. For several embeddings to switch between, a list of keys such as
        ``["mercat", "umap"]``, or a dict from displayed names to keys. Embeddings of two columns that are
        not maps by Mercat are shown in the plane.
    layer, use_raw, gene_symbols
        As in `map`. Genes are shown by their symbols.
    **options
        Further arguments of `mercat.viewer.Explorer` or `mercat.viewer.to_html`: title, neighbors (such as
        ``adata.obsp["distances"]``), labels (columns of ``adata.obs``), images, theme, projection, height
        (of the widget).

    Returns
    -------
    explorer : Explorer or Path
        The file written, or the widget. ``adata[explorer.selection]`` are the selected cells, and
        ``explorer.sets`` maps the names of saved sets to their rows.

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
            apart |= {f"{short_of(shown_map)}_{name}" for name in UNCERTAINTY_COLUMNS}
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


def _drawn(
    Y: np.ndarray,
    shades: Sequence[Coloring],
    named: Sequence[Categories | None],
    titles: Sequence[str],
    axes: Sequence[Any],
    look: ScanpyStyle,
    view: Mapping[str, Any],
) -> list[Any]:
    """Draw all panels; only the last one has the scale of stretch."""
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


def _check_components(components: Any) -> None:
    if components is not None:
        raise ValueError(
            "components must be None, since a map of the sphere has no pairs of components; use "
            f"center=(longitude, latitude) to rotate it. Got {components!r}."
        )


def _colored_panels(
    adata: AnnData,
    keys: Sequence[str | None],
    genes: Mapping[str, Any],
    scales: Mapping[str, Any],
    paint: ColorOptions,
    mask_obs: Any,
) -> list[Coloring]:
    """Colours of all panels; values of `genes` and `scales` are for all panels, or lists of one per panel."""
    n, masked = len(keys), masked_cells(adata, mask_obs)
    paints = [replace(paint, **ends) for ends in each_of_all(scales, n)]
    return [
        _colored(adata, key, source, own, masked)
        for key, source, own in zip(keys, each_of_all(genes, n), paints, strict=True)
    ]


def _colored(
    adata: AnnData,
    key: str | None,
    source: dict[str, Any],
    paint: ColorOptions,
    masked: np.ndarray | None,
) -> Coloring:
    """Colours of a panel; new colours of a categorical column are stored in `uns`, as scanpy does."""
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
    """Column with the names of the cells, unless they are just row numbers."""
    names = adata.obs_names
    if list(names) == [str(row) for row in range(adata.n_obs)]:
        return {}
    own = [str(names.name)] if names.name is not None else []
    free = [name for name in (*own, "cell", "name of the cell") if name not in adata.obs]
    return {free[0]: names.to_numpy(dtype=str)} if free else {}


def _showable(adata: AnnData, apart: set[str]) -> list[str]:
    """Columns of obs that the explorer can show, except those in `apart`, which it shows elsewhere."""
    names = [str(name) for name in adata.obs.columns if name not in apart]
    others = []
    for name in names:
        values = column(adata, name, layer=None, use_raw=False, name="keys")
        try:
            read_frame({name: values}, adata.n_obs)
        except (TypeError, ValueError):  # time spans, text mixed with numbers, and the like
            others.append(name)
    if others:
        logger.warning("Columns that cannot be shown are left out: %s.", ", ".join(others))
    return [name for name in names if name not in others]
