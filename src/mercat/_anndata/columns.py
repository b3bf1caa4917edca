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
from .keys import key_list

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

    use_raw = _uses_raw(adata, layer, use_raw)
    if key in adata.obs:
        _check_unique_name(name, key, adata.obs.columns, "a column of adata.obs", "rename them")
        return adata.obs[key]
    source = adata.raw if use_raw else adata
    names = _gene_names(adata, source, gene_symbols)
    if key not in names and key in source.var_names:  # both are accepted, as in scanpy
        names = source.var_names
    if key not in names:
        raise ValueError(
            f"{name} must be a column of adata.obs or one of the {len(source.var_names)} genes of "
            f"{'adata.raw' if use_raw else 'adata'}, got {key!r}"
            f"{_suggestion(key, [*adata.obs.columns, *names])}."
        )
    advice = (
        "make the names of adata.raw unique" if use_raw else "call adata.var_names_make_unique()"
    )
    if gene_symbols is not None:
        advice = "take its name in adata.var_names"
    _check_unique_name(name, key, names, "a gene", advice)
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
    mask_values = np.asarray(adata.obs[mask] if isinstance(mask, str) else mask)
    if mask_values.shape != (adata.n_obs,) or mask_values.dtype != bool:
        raise ValueError(
            f"mask_obs must hold a boolean for each of the {adata.n_obs} cells, got {mask_values.dtype} of "
            f"shape {mask_values.shape}."
        )
    return np.asarray(~mask_values)


def _uses_raw(adata: AnnData, layer: str | None, use_raw: bool | None) -> bool:
    """Whether genes come from adata.raw."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(
            f"layer must be a key of adata.layers {key_list(adata.layers)}, got {layer!r}."
        )
    if use_raw and (layer is not None or adata.raw is None):
        reason = "adata.raw is empty" if adata.raw is None else f"layer={layer!r} is given"
        raise ValueError(f"use_raw must be False where {reason}, got True.")
    if use_raw is None:  # as in scanpy
        return layer is None and adata.raw is not None
    return use_raw


def _gene_names(adata: AnnData, source: Any, gene_symbols: str | None) -> Any:
    """Names of genes: their symbols in a column of var where they have one, else their names."""
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
    use_raw = _uses_raw(adata, layer, use_raw)
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
    shown_names = [str(names[index]) for index in indices]
    gene_names = [str(source.var_names[index]) for index in indices]
    for name in gene_names:
        _check_unique_name(
            "genes", name, source.var_names, "a gene", "call adata.var_names_make_unique()"
        )
    counts = Counter(shown_names)
    labels = [
        name if counts[name] == 1 else f"{name} ({gene})"
        for name, gene in zip(shown_names, gene_names, strict=True)
    ]
    return values[:, indices], labels


def _gene_indices(names: Any, var_names: Any, keys: list[str]) -> list[int]:
    indices = []
    for key in keys:
        index = names if key in names or key not in var_names else var_names
        if key not in index:
            raise ValueError(f"genes must be names of genes, got {key!r}{_suggestion(key, names)}.")
        _check_unique_name("genes", key, index, "a gene", "call adata.var_names_make_unique()")
        indices.append(int(index.get_loc(key)))
    return indices


def _most_variable(var: Any, values: Any, n_genes: int) -> list[int]:
    """Indices of the most variable genes, in increasing order."""
    squares = values.multiply(values) if hasattr(values, "multiply") else values * values
    means, mean_squares = (np.asarray(matrix.mean(axis=0)).ravel() for matrix in (values, squares))
    variance = mean_squares - means * means
    if "highly_variable" in var:
        variance = np.where(np.asarray(var["highly_variable"], dtype=bool), variance, -np.inf)
    indices = np.argsort(-variance, kind="stable")[:n_genes]
    return sorted(int(index) for index in indices if variance[index] > -np.inf)


def _check_unique_name(name: str, key: str, names: Any, what: str, advice: str) -> None:
    """Raise ValueError if a name occurs more than once."""
    count = int((names == key).sum())
    if count > 1:
        raise ValueError(
            f"{name} must be the name of {what} that occurs once, got {key!r}, which occurs {count} "
            f"times: {advice} first."
        )


def stored_palette(uns: Mapping[str, Any], values: Any) -> dict[str, str] | None:
    """Colours stored by scanpy for a categorical column, by category; warns if they do not fit."""
    key = f"{values.name}_colors"
    stored = uns.get(key)
    if stored is None or not hasattr(values, "cat"):
        return None
    names = [str(name) for name in values.cat.categories]
    texts = [str(color) for color in stored][: len(names)] if np.iterable(stored) else []
    colors = [_to_hex(color) for color in texts]
    if "" in colors:
        problem = f"{texts[colors.index('')]!r}, which cannot be read as a colour"
    elif len(colors) < len(names):
        problem = f"{len(colors)} of the {len(names)} colours that the categories need"
    else:
        return dict(zip(names, colors, strict=True))
    warn_caller(f'uns["{key}"] holds {problem}: Mercat\'s own colours are used.', UserWarning)
    return None


def with_stored_colors(uns: Mapping[str, Any], values: Any) -> Any:
    """A column for the viewer with the colours stored by scanpy, if any, without opacity."""
    palette = stored_palette(uns, values)
    if palette is None:
        return values
    return ColoredColumn(values, {name: color[:7] for name, color in palette.items()})


def _to_hex(color: str) -> str:
    """A colour as "#rrggbb" or "#rrggbbaa"; empty if it cannot be parsed, like names without matplotlib."""
    try:
        from matplotlib.colors import is_color_like, to_hex
    except ImportError:
        return color if re.fullmatch(f"{HEX}([0-9A-Fa-f]{{2}})?", color) else ""
    return to_hex(color, keep_alpha=True) if is_color_like(color) else ""


def _suggestion(key: Any, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(key), [str(name) for name in names], n=3)
    return f" (similar: {', '.join(close)})" if close else ""
