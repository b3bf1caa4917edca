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
from ._anndata.columns import column, gene_matrix, masked_cells, stored_palette, with_stored_colors
from ._anndata.keys import (
    UNCERTAINTY_COLUMNS,
    embeddings,
    loss_column,
    map_of,
    require_anndata,
    short_name,
    sphere_key,
    sphere_of,
)
from ._anndata.maps import read_uncertainty
from ._draw.colors import Categories, Coloring, read_column
from ._draw.figure import require_matplotlib
from ._draw.legend import shortened
from ._draw.maps import draw_map
from ._draw.scanpy import (
    ColorOptions,
    ScanpyStyle,
    all_per_panel,
    panel_keys,
    panels,
    per_panel,
    resolve_alias,
    save_and_show,
)
from .viewer._columns import read_frame
from .viewer._genes import MAX_GENES

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
        Data with an embedding computed by `mercat.tl.mercat`.
    color : str, list of str or None, default=None
        Columns of ``adata.obs`` or genes to colour by, one panel for each. None draws a panel without
        colours.
    basis : str, default="mercat"
        Key of the map in ``adata.obsm``, with or without its ``X_``. The unit vectors under this key
        followed by ``_sphere`` are drawn, or those under the key itself.
    layer : str, list of str or None, default=None
        Layer to take genes from, one for all panels or one per panel. None means ``adata.raw`` or
        ``adata.X``, depending on `use_raw`.
    use_raw : bool, optional
        Whether to take genes from ``adata.raw``. Default: True if it exists and no layer is given.
    gene_symbols : str or None, default=None
        Column of ``adata.var`` with alternative gene names that `color` may use.
    mask_obs : array of bool, str or None, default=None
        Cells to colour, or a column of ``adata.obs`` that marks them; others are drawn like cells without
        a value. None means all cells.
    groups : str, list of str or None, default=None
        Categories to colour; others are drawn like cells without a value. None means all categories.
    sort_order : bool, default=True
        Whether to draw cells with high values on top.
    cmap, color_map : str or Colormap, optional
        Colour map for numbers. Default: the one set by ``sc.set_figure_params``, or viridis.
    palette : str, list or dict, optional
        Colours of categories, as in `mercat.plot.map`. Default: those stored in ``adata.uns`` by scanpy;
        new colours are stored there.
    vmin, vmax, vcenter : float, str or function, or list of them, optional
        Limits and centre of the colour scale for numeric values, each a number, a percentile such as
        ``"p99"``, or a function of the values; one for all panels or a list with one per panel. Default:
        the smallest and the largest value, and no centre.
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
        Font size of the legend or of the names on the map. Default: "small", or less in narrow panels.
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
        Space between panels, as a fraction of their width. Default: as little as labels need.
    ax : matplotlib Axes, optional
        Axes to draw on, for a single panel. Default: a new figure, with panels of the size set by
        ``sc.set_figure_params``.
    show : bool or None, default=None
        Whether to show the figure now and return None. None means False.
    save : bool, str, path or None, default=None
        Whether to save the figure, or the end of its file name, as in scanpy: ``"_types.pdf"`` writes
        ``figures/mercat_types.pdf``. The folder and the default format are those of ``sc.settings``. A `Path`
        is used unchanged. None means False.
    return_fig : bool or None, default=None
        Whether to return the figure instead of the axes. None means False.
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
    keys, single = panel_keys(color, ax)
    n = len(keys)
    groups = [groups] if isinstance(groups, str) else groups
    color_options = ColorOptions(
        resolve_alias(cmap=cmap, color_map=color_map), palette, groups, na_color
    )
    panel_style = ScanpyStyle(
        n_cells=adata.n_obs,
        size=resolve_alias(size=size, s=s),
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
        titles = per_panel("title", title, n, whole=True)
    limits = {"vmin": vmin, "vmax": vmax, "vcenter": vcenter}
    sources = {"layer": layer, "use_raw": [use_raw] * n, "gene_symbols": [gene_symbols] * n}
    Y = np.asarray(adata.obsm[sphere_key(adata, basis)], dtype=np.float64)
    require_matplotlib()
    colorings = _colored_panels(adata, keys, sources, limits, color_options, mask_obs)
    label_groups = [_groups_to_label(adata, labels, coloring) for coloring in colorings]
    axes = panels(n, ncols=ncols, wspace=wspace, ax=ax, single=single)
    view = {"projection": projection, "center": center, "extent": extent}
    drawn_axes = _draw_panels(Y, colorings, label_groups, titles, axes, panel_style, view)
    return save_and_show(
        drawn_axes, basis, single=single, show=show, save=save, return_fig=return_fig
    )


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
        Data with an embedding computed by `mercat.tl.mercat`. Results of `mercat.tl.uncertainty` are shown if
        present.
    path : path-like or None, default=None
        HTML file to write. None returns a widget (``pip install anywidget``).
    color : str, optional
        Column of ``adata.obs`` or gene that colours the cells initially. Default: as in
        `mercat.viewer.to_html`.
    keys : list of str, optional
        Columns of ``adata.obs`` and genes offered as colours. Default: the names of the cells and all
        columns of numbers, text, dates, booleans or categories; other columns are left out and logged.
    genes : list of str, int or None, default=None
        Up to 2,000 genes, stored as a sparse matrix, that can be searched by name and are ranked when two
        sets of cells are compared. An integer selects this number of genes, those of largest variance, among
        those marked in ``adata.var["highly_variable"]`` if present.
    basis : str, list of str, or dict, default="mercat"
        Key of the map, as in `map`; or several embeddings between which the reader can switch: a list of keys
        such as ``["mercat", "umap"]``, or a dict from displayed names to keys. Embeddings with two columns
        that Mercat did not compute are shown in the plane.
    layer, use_raw, gene_symbols
        As in `map`. If `gene_symbols` is given, genes are shown by their symbols.
    **options
        Further arguments of `mercat.viewer.Explorer` or `mercat.viewer.to_html`: title, neighbors (such as
        ``adata.obsp["distances"]``), labels (columns of ``adata.obs``), images, theme, projection, height
        (of the widget).

    Returns
    -------
    explorer : Explorer or Path
        The path of the file if `path` is given, otherwise the widget. ``adata[explorer.selection]`` contains
        the selected cells, and ``explorer.sets`` maps the names of saved sets to their rows.

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
    uncertainty, elsewhere, loss = options.pop("uncertainty", None), set(), None
    if shown_map is not None:
        loss_name = loss_column(shown_map)
        loss, elsewhere = adata.obs.get(loss_name), {loss_name}
        if uncertainty is None and isinstance(basis, str):
            uncertainty = read_uncertainty(adata, shown_map)
        if uncertainty is not None:
            elsewhere |= {f"{short_name(shown_map)}_{name}" for name in UNCERTAINTY_COLUMNS}
    names = _showable_columns(adata, elsewhere) if keys is None else list(dict.fromkeys(keys))
    labels = options.get("labels") or []
    labels = [labels] if isinstance(labels, str) else list(labels)
    extra = [name for name in (color, *labels) if name is not None and name not in names]
    names = [*dict.fromkeys(extra), *names]
    source: dict[str, Any] = {"layer": layer, "use_raw": use_raw, "gene_symbols": gene_symbols}
    columns = _cell_names(adata) if keys is None else {}
    for name in names:
        parameter = "color" if name == color else "labels" if name in labels else "keys"
        values = column(adata, name, name=parameter, **source)
        columns[name] = with_stored_colors(adata.uns, values)
    options = {"color": color, "point_loss": loss, "uncertainty": uncertainty, **options}
    if isinstance(genes, int) and genes > MAX_GENES:
        raise ValueError(f"genes must be at most {MAX_GENES}, got {genes}.")
    if genes is not None:
        options["genes"] = gene_matrix(adata, genes, **source)
    first = next(iter(Y.values()))
    Y_shown: Any = first if isinstance(basis, str) and first.shape[1] == 3 else Y
    if path is None:
        return viewer.Explorer(Y_shown, columns, **options)
    return viewer.to_html(Y_shown, columns, path, **options)


def _draw_panels(
    Y: np.ndarray,
    colorings: Sequence[Coloring],
    label_groups: Sequence[Categories | None],
    titles: Sequence[str],
    axes: Sequence[Any],
    panel_style: ScanpyStyle,
    view: Mapping[str, Any],
) -> list[Any]:
    """Draw all panels; a single one has the scale that shows Mercator's stretch."""
    style = panel_style.style(single=len(axes) == 1)
    return [
        draw_map(
            Y,
            colorings[k],
            style,
            **view,
            groups=label_groups[k],
            ax=panel_ax,
            title=titles[k],
        )
        for k, panel_ax in enumerate(axes)
    ]


def _first_map(adata: AnnData, basis: Any) -> str | None:
    """Key of the first map by Mercat in `basis`; None if there is none."""
    bases = [basis] if isinstance(basis, str) else basis
    for name in bases.values() if isinstance(bases, Mapping) else bases:
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
    sources: Mapping[str, Any],
    limits: Mapping[str, Any],
    color_options: ColorOptions,
    mask_obs: Any,
) -> list[Coloring]:
    """Colours of all panels; `sources` and `limits` hold values for all panels, or lists of one per panel."""
    n, masked = len(keys), masked_cells(adata, mask_obs)
    per_panel_options = [
        replace(color_options, **panel_limits) for panel_limits in all_per_panel(limits, n)
    ]
    return [
        _colored(adata, key, panel_source, panel_options, masked)
        for key, panel_source, panel_options in zip(
            keys, all_per_panel(sources, n), per_panel_options, strict=True
        )
    ]


def _colored(
    adata: AnnData,
    key: str | None,
    source: dict[str, Any],
    color_options: ColorOptions,
    masked: np.ndarray | None,
) -> Coloring:
    """Colours of a panel; new colours of a categorical column are stored in `uns`, as scanpy does."""
    if key is None:
        return color_options.apply(None, masked, adata.n_obs, None)
    values = column(adata, key, **source)
    stored = stored_palette(adata.uns, values) if color_options.palette is None else None
    coloring = color_options.apply(values, masked, adata.n_obs, stored)
    name = f"{key}_colors"
    new = hasattr(values, "cat") and (color_options.palette is not None or name not in adata.uns)
    if new and isinstance(coloring, Categories) and not adata.is_view:
        adata.uns[name] = coloring.hexes()
    return coloring


def _groups_to_label(adata: AnnData, labels: str | bool, coloring: Any) -> Categories | None:
    """The groups whose names are written on the map."""
    if isinstance(labels, str):
        groups = read_column(
            column(adata, labels, layer=None, use_raw=None, name="labels"), adata.n_obs, "labels"
        )
        if not isinstance(groups, Categories):
            raise ValueError(f"labels must be a column of categories, got {labels!r}.")
        return groups
    return coloring if labels and isinstance(coloring, Categories) else None


def _cell_names(adata: AnnData) -> dict[str, Any]:
    """Column with the names of the cells, unless they are just row numbers."""
    names = adata.obs_names
    if list(names) == [str(row) for row in range(adata.n_obs)]:
        return {}
    own_name = [str(names.name)] if names.name is not None else []
    free = [name for name in (*own_name, "cell", "name of the cell") if name not in adata.obs]
    return {free[0]: names.to_numpy(dtype=str)} if free else {}


def _showable_columns(adata: AnnData, elsewhere: set[str]) -> list[str]:
    """Columns of obs that the explorer can show, except those in `elsewhere`, which it shows separately."""
    names = [str(name) for name in adata.obs.columns if name not in elsewhere]
    left_out = []
    for name in names:
        values = column(adata, name, layer=None, use_raw=False, name="keys")
        try:
            read_frame({name: values}, adata.n_obs)
        except (TypeError, ValueError):  # time spans, text mixed with numbers, and the like
            left_out.append(name)
    if left_out:
        logger.warning("Columns that cannot be shown are left out: %s.", ", ".join(left_out))
    return [name for name in names if name not in left_out]
