"""Pictures of AnnData, in the manner of scanpy: what `mercat.tl.mercat` wrote, by obs column or gene.

Colours that scanpy keeps for a column, in ``adata.uns["<column>_colors"]``, are used where they are,
with a warning where they do not fit its categories; `adata` itself is left as it is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import plot, viewer
from ._anndata import (
    column,
    loss_column,
    map_of,
    painted,
    require_anndata,
    sphere_key,
    stored_palette,
)
from ._draw.figure import grid, require_matplotlib

if TYPE_CHECKING:
    from anndata import AnnData

    from .viewer import Explorer

__all__ = ["explore", "globe", "map"]

logger = logging.getLogger(__name__)


def map(
    adata: AnnData,
    color: str | Sequence[str] | None = None,
    *,
    basis: str = "mercat",
    layer: str | None = None,
    use_raw: bool | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Draw the cells as a map.

    Parameters
    ----------
    adata : AnnData
        With an embedding by `mercat.tl.mercat`.
    color : str or list of str, optional
        Columns of ``adata.obs`` or genes to colour by; several make several panels.
    basis : str, default="mercat"
        Which map: a key of ``adata.obsm``, with or without its ``X_``. Its unit vectors, under the same key
        and ``_sphere``, are drawn; unit vectors that stand alone have a key of their own.
    layer : str, optional
        Layer to take genes from.
    use_raw : bool, optional
        Whether to take genes from ``adata.raw``; by default if there is one and no layer is given.
    ax : matplotlib Axes, optional
        Where to draw; for one panel only. A new figure by default.
    **options
        Further arguments of `mercat.plot.map`: projection, center, extent, labels, palette, limits, size,
        alpha, legend.

    Returns
    -------
    ax : matplotlib Axes or array of them
        An array for a list of colours.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(60, 9)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> ax = mercat.pl.map(adata, color="mercat_loss")
    >>> axes = mercat.pl.map(adata, color=["mercat_loss", "3"])
    >>> [ax.get_title() for ax in axes]
    ['mercat_loss', '3']
    """
    source = {"basis": basis, "layer": layer, "use_raw": use_raw}
    return _panels(plot.map, adata, color, source, ax, options)


def globe(
    adata: AnnData,
    color: str | Sequence[str] | None = None,
    *,
    basis: str = "mercat",
    layer: str | None = None,
    use_raw: bool | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Draw the cells on a globe; those on the far side shine through, pale.

    Parameters
    ----------
    adata, color, basis, layer, use_raw, ax
        As in `map`.
    **options
        Further arguments of `mercat.plot.globe`: center, extent, labels, palette, limits, size, alpha,
        legend.

    Returns
    -------
    ax : matplotlib Axes or array of them
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
    source = {"basis": basis, "layer": layer, "use_raw": use_raw}
    return _panels(plot.globe, adata, color, source, ax, options)


def explore(
    adata: AnnData,
    path: str | os.PathLike[str] | None = None,
    *,
    color: str | None = None,
    keys: Sequence[str] | None = None,
    basis: str = "mercat",
    layer: str | None = None,
    use_raw: bool | None = None,
    **options: Any,
) -> Explorer | Path:
    """Explore the cells on a globe with a linked map: as a notebook widget, or as one HTML file.

    Parameters
    ----------
    adata : AnnData
        With an embedding by `mercat.tl.mercat`.
    path : path-like, optional
        HTML file to write. Without it, a widget is made (``pip install "mercat[viewer]"``).
    color : str, optional
        Column of ``adata.obs`` or gene that colours the cells at first.
    keys : list of str, optional
        Columns of ``adata.obs`` and genes that are offered as colours. By default, all columns that hold
        numbers, text, dates, booleans or categories; others are left out, and named in a log message.
    basis, layer, use_raw
        As in `map`.
    **options
        Further arguments of `mercat.viewer.Explorer` or `mercat.viewer.to_html`: title, theme, projection,
        height (of the widget).

    Returns
    -------
    explorer : Explorer or Path
        The widget, whose ``selection`` holds the rows that are selected, so that
        ``adata[explorer.selection]`` are the cells; or the file written.

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
    key = sphere_key(adata, basis)
    Y = np.asarray(adata.obsm[key], dtype=np.float64)
    lost = loss_column(map_of(adata, key))
    loss = adata.obs.get(lost)
    names = _showable(adata, lost) if keys is None else list(dict.fromkeys(keys))
    if color is not None and color not in names:
        names = [color, *names]
    frame = {}
    for name in names:
        asked = "color" if name == color else "keys"
        values = column(adata, name, layer=layer, use_raw=use_raw, name=asked)
        frame[name] = painted(adata.uns, values)
    if path is None:
        return viewer.Explorer(Y, frame, color=color, point_loss=loss, **options)
    return viewer.to_html(Y, frame, path, color=color, point_loss=loss, **options)


def _panels(
    draw: Callable[..., Any],
    adata: AnnData,
    color: str | Sequence[str] | None,
    source: dict[str, Any],
    ax: Any,
    options: dict[str, Any],
) -> Any:
    """One picture, or one for each of a list of colours."""
    require_anndata(adata)
    Y = np.asarray(adata.obsm[sphere_key(adata, source.pop("basis"))], dtype=np.float64)
    if color is None:
        return draw(Y, ax=ax, **options)
    single = isinstance(color, str)
    keys = [color] if isinstance(color, str) else list(color)
    columns = [column(adata, key, **source) for key in keys]
    if single:
        return _draw(draw, adata, Y, columns[0], ax, options)
    if ax is not None:
        raise ValueError(f"ax must be None for a list of colors, got {ax!r}.")
    if not keys:
        raise ValueError("color must name at least one column or gene, got an empty list.")
    require_matplotlib()
    axes = grid(len(keys))
    for panel, values in zip(axes, columns, strict=True):
        _draw(draw, adata, Y, values, panel, options, title=False)
        panel.set_title(str(values.name), parse_math=False)
    return axes


def _draw(
    draw: Callable[..., Any],
    adata: AnnData,
    Y: np.ndarray,
    values: Any,
    ax: Any,
    options: dict[str, Any],
    *,
    title: bool = True,
) -> Any:
    if "palette" not in options:
        options = {**options, "palette": stored_palette(adata.uns, values)}
    return draw(Y, values if title else values.rename(None), ax=ax, **options)


def _showable(adata: AnnData, lost: str) -> list[str]:
    """Columns of obs that the explorer can show; the loss has a place of its own there."""
    names = [str(name) for name in adata.obs.columns if name != lost]
    others = [
        name for name in names if adata.obs[name].dtype.kind in "mcV"
    ]  # time spans and the like
    if others:
        logger.warning("Columns that cannot be shown are left out: %s.", ", ".join(others))
    return [name for name in names if name not in others]
