"""Columns of obs, genes and their colours."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from .._data.checks import check_integer, warn_caller
from .._data.columns import HEX, ColoredColumn
from .._data.sparse import check_sparse

if TYPE_CHECKING:
    from anndata import AnnData


def column(
    adata: AnnData,
    key: str,
    *,
    layer: str | None,
    use_raw: bool | None,
    gene_symbols: str | None = None,
    name: str = "color",
) -> Any:
    """A column of obs, or the expression of a gene, as a pandas Series named `key`."""
    import pandas as pd

    use_raw = _from_raw(adata, layer, use_raw)
    if key in adata.obs:
        _check_once(name, key, adata.obs.columns, "a column of adata.obs", "rename them")
        return adata.obs[key]
    source = adata.raw if use_raw else adata
    names = _gene_names(adata, source, gene_symbols)
    if key not in names and key in source.var_names:  # both are accepted, as in scanpy
        names = source.var_names
    if key not in names:
        raise ValueError(
            f"{name} must be a column of adata.obs or one of the {len(source.var_names)} genes of "
            f"{'adata.raw' if use_raw else 'adata'}, got {key!r}"
            f"{_similar(key, [*adata.obs.columns, *names])}."
        )
    advice = (
        "make the names of adata.raw unique" if use_raw else "call adata.var_names_make_unique()"
    )
    if gene_symbols is not None:
        advice = "take its name in adata.var_names"
    _check_once(name, key, names, "a gene", advice)
    gene = source.var_names[names.get_loc(key)]
    _expression(adata, layer, use_raw)  # checked before anndata reads it
    values = source.obs_vector(gene) if use_raw else source.obs_vector(gene, layer=layer)
    return pd.Series(np.asarray(values, dtype=np.float64), index=adata.obs_names, name=key)


def _expression(adata: AnnData, layer: str | None, use_raw: bool) -> Any:
    """The matrix that genes come from, on disk or in memory. Raises ValueError if it is inconsistent."""
    name = "X" if layer is None else f"layers[{layer!r}]"
    values = (adata.raw if use_raw else adata).X if layer is None else adata.layers[layer]
    if scipy.sparse.issparse(values):
        check_sparse(values, f"adata.raw.{name}" if use_raw else f"adata.{name}")
    return values


def masked_cells(adata: AnnData, mask: Any) -> np.ndarray | None:
    """Mask of the cells left out by scanpy's `mask_obs`, an array or a column of obs."""
    if mask is None:
        return None
    if isinstance(mask, str) and mask not in adata.obs:
        raise ValueError(f"mask_obs must be booleans or a column of adata.obs, got {mask!r}.")
    kept = np.asarray(adata.obs[mask] if isinstance(mask, str) else mask)
    if kept.shape != (adata.n_obs,) or kept.dtype != bool:
        raise ValueError(
            f"mask_obs must hold a boolean for each of the {adata.n_obs} cells, got {kept.dtype} of "
            f"shape {kept.shape}."
        )
    return np.asarray(~kept)


def _from_raw(adata: AnnData, layer: str | None, use_raw: bool | None) -> bool:
    """Whether genes come from adata.raw."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of {list(adata.layers)}, got {layer!r}.")
    if use_raw and (layer is not None or adata.raw is None):
        why = "adata.raw is empty" if adata.raw is None else f"layer={layer!r} is given"
        raise ValueError(f"use_raw must be False where {why}, got True.")
    if use_raw is None:  # as in scanpy
        return layer is None and adata.raw is not None
    return use_raw


def _gene_names(adata: AnnData, source: Any, gene_symbols: str | None) -> Any:
    """Names of genes: their symbols in a column of var, or else their names."""
    import pandas as pd

    if gene_symbols is None:
        return source.var_names
    if gene_symbols in source.var:
        symbols = source.var[gene_symbols]
    elif gene_symbols in adata.var:  # read by scanpy if adata.raw has no such column
        symbols = adata.var[gene_symbols].reindex(source.var_names)
    else:
        raise ValueError(
            f"gene_symbols must be a column of adata.var ({', '.join(map(str, adata.var.columns))}), "
            f"got {gene_symbols!r}."
        )
    known = np.asarray(symbols.notna())
    return pd.Index(np.where(known, symbols.astype(object), source.var_names.astype(object)))


def gene_matrix(
    adata: AnnData,
    genes: Any,
    *,
    layer: str | None,
    use_raw: bool | None,
    gene_symbols: str | None = None,
) -> tuple[Any, list[str]]:
    """Expression of genes, one column each, and their names; an integer selects the most variable ones."""
    use_raw = _from_raw(adata, layer, use_raw)
    source = adata.raw if use_raw else adata
    names = _gene_names(adata, source, gene_symbols)
    values = _expression(adata, layer, use_raw)
    if isinstance(genes, str):
        raise TypeError(f"genes must be a list of names or an integer, got {genes!r}.")
    if isinstance(genes, Integral):
        check_integer("genes", genes, 1)
        indices = _most_variable(source.var, values, int(genes))
    else:
        indices = _gene_indices(names, source.var_names, list(dict.fromkeys(genes)))
    shown, own = ([str(some[index]) for index in indices] for some in (names, source.var_names))
    for name in own:
        _check_once("genes", name, source.var_names, "a gene", "call adata.var_names_make_unique()")
    often = {name for name, times in Counter(shown).items() if times > 1}
    full = [f"{a} ({b})" if a in often else a for a, b in zip(shown, own, strict=True)]
    return values[:, indices], full


def _gene_indices(names: Any, var_names: Any, wanted: list[str]) -> list[int]:
    indices = []
    for key in wanted:
        known = names if key in names or key not in var_names else var_names
        if key not in known:
            raise ValueError(f"genes must be names of genes, got {key!r}{_similar(key, names)}.")
        _check_once("genes", key, known, "a gene", "call adata.var_names_make_unique()")
        indices.append(int(known.get_loc(key)))
    return indices


def _most_variable(var: Any, values: Any, most: int) -> list[int]:
    """Indices of the most variable genes, in increasing order."""
    squares = values.multiply(values) if hasattr(values, "multiply") else values * values
    mean, square = (np.asarray(one.mean(axis=0)).ravel() for one in (values, squares))
    variance = square - mean * mean
    if "highly_variable" in var:
        variance = np.where(np.asarray(var["highly_variable"], dtype=bool), variance, -np.inf)
    chosen = np.argsort(-variance, kind="stable")[:most]
    return sorted(int(index) for index in chosen if variance[index] > -np.inf)


def _check_once(name: str, key: str, names: Any, what: str, advice: str) -> None:
    """Raise if a name is ambiguous."""
    times = int((names == key).sum())
    if times > 1:
        raise ValueError(
            f"{name} must be the name of {what} that occurs once, got {key!r}, which occurs {times} "
            f"times: {advice} first."
        )


def stored_palette(uns: Mapping[str, Any], values: Any) -> dict[str, str] | None:
    """Colours stored by scanpy for a categorical column, by category; warns if they do not fit."""
    key = f"{values.name}_colors"
    stored = uns.get(key)
    if stored is None or not hasattr(values, "cat"):
        return None
    names = [str(name) for name in values.cat.categories]
    given = [str(color) for color in stored][: len(names)] if np.iterable(stored) else []
    colors = [_hex(color) for color in given]
    if "" in colors:
        fault = f"{given[colors.index('')]!r}, which cannot be read as a colour"
    elif len(colors) < len(names):
        fault = f"{len(colors)} of the {len(names)} colours that the categories need"
    else:
        return dict(zip(names, colors, strict=True))
    warn_caller(f'uns["{key}"] holds {fault}: Mercat\'s own colours are used.', UserWarning)
    return None


def painted(uns: Mapping[str, Any], values: Any) -> Any:
    """A column for the viewer with the colours stored by scanpy, if any, without opacity."""
    palette = stored_palette(uns, values)
    if palette is None:
        return values
    return ColoredColumn(values, {name: color[:7] for name, color in palette.items()})


def _hex(color: str) -> str:
    """A colour as "#rrggbb" or "#rrggbbaa"; empty if it cannot be parsed, like names without matplotlib."""
    try:
        from matplotlib.colors import is_color_like, to_hex
    except ImportError:
        return color if re.fullmatch(f"{HEX}([0-9A-Fa-f]{{2}})?", color) else ""
    return to_hex(color, keep_alpha=True) if is_color_like(color) else ""


def _similar(key: Any, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(key), [str(name) for name in names], n=3)
    return f" (similar: {', '.join(close)})" if close else ""
