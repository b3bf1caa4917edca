"""Read data from AnnData objects and write maps into them, for `tl`, `pl` and the command line."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data.checks import check_integer, warn_caller
from ._data.columns import HEX, Painted
from ._draw.sheet import Sheet
from ._extras import require

if TYPE_CHECKING:
    from anndata import AnnData

#: Key of the flat map in obsm, so that ``sc.pl.embedding(adata, "mercat")`` draws it, and key in uns.
KEY, SHORT = "X_mercat", "mercat"
_SPHERE = "_sphere"
# Columns of obs for uncertainty.
DOUBTS = ("spread", "alternative_gap", "alternative_wins", "torn", "p_value")


def sphere_of(key: str) -> str:
    """Key of the unit vectors of a flat map."""
    return f"{key}{_SPHERE}"


def map_of(adata: AnnData, sphere: str) -> str:
    """Key of the flat map of unit vectors; in files of version 0.1, their own key."""
    key = sphere.removesuffix(_SPHERE)
    return key if key in adata.obsm else sphere


def short_of(key: str) -> str:
    """Name of a map in uns, and prefix of its columns in obs."""
    return SHORT if key == KEY else key


def loss_column(key: str) -> str:
    """Column of obs with the losses of a map."""
    return f"{short_of(key)}_loss"


def write_map(
    adata: AnnData,
    Y: np.ndarray,
    loss: np.ndarray | None,
    about: dict[str, Any],
    *,
    key: str = KEY,
    like: Mapping[str, Any] | None = None,
) -> int:
    """Write map and unit vectors to obsm, losses to obs, other results to uns; return the number of points in
    the margin of the map.

    `like` is the entry ``map`` of another map, whose flat coordinates are used.
    """
    sheet = Sheet.of(Y) if like is None else Sheet.from_dict(like)
    flat, drawn_in = sheet.lay(Y)
    n_beyond = int(drawn_in.sum())
    if np.shape(adata.obsm.get(key))[1:] == (3,):  # of version 0.1, whose flat map had another name
        adata.obsm.pop(f"{key}_map", None)
    adata.obsm[key], adata.obsm[sphere_of(key)] = flat.astype(Y.dtype, copy=False), Y
    if loss is not None:
        adata.obs[loss_column(key)] = loss
    elif loss_column(key) in adata.obs:  # of the map that was there before
        del adata.obs[loss_column(key)]
    if _about_uncertainty(adata, key) is not None:  # of the map that was there before
        forget_uncertainty(adata, key)
    adata.uns[short_of(key)] = {**about, "map": sheet.to_dict(), "n_beyond_map": n_beyond}
    return n_beyond


def write_uncertainty(adata: AnnData, found: Any, key: str = KEY) -> None:
    """Write the result of `mercat.uncertainty`: numbers to obs, vectors to obsm, the rest to uns."""
    short = short_of(key)
    for name, values in found.columns().items():
        adata.obs[f"{short}_{name}"] = np.asarray(values)
    adata.obsm[f"{key}_axes"] = np.asarray(found.axes).reshape(adata.n_obs, 6)
    adata.obsm[f"{key}_alternative"] = np.asarray(found.alternative)
    adata.uns[short] = {
        **adata.uns[short],
        "uncertainty": {"stability": found.stability, "n_maps": found.n_maps},
    }


def forget_uncertainty(adata: AnnData, key: str) -> None:
    """Remove the fields of `write_uncertainty`."""
    for name in ("axes", "alternative"):
        adata.obsm.pop(f"{key}_{name}", None)
    columns = [f"{short_of(key)}_{name}" for name in DOUBTS]
    adata.obs = adata.obs.drop(columns=[name for name in columns if name in adata.obs])
    adata.uns[short_of(key)] = {
        name: value for name, value in adata.uns[short_of(key)].items() if name != "uncertainty"
    }


def read_uncertainty(adata: AnnData, key: str = KEY) -> Any:
    """Read the fields of `write_uncertainty`, or None."""
    short = short_of(key)
    about = _about_uncertainty(adata, key)
    columns = [f"{short}_{name}" in adata.obs for name in DOUBTS]
    if about is None or not all(columns) or f"{key}_axes" not in adata.obsm:
        return None
    from ._uncertainty.record import Uncertainty

    numbers = {
        name: np.asarray(adata.obs[f"{short}_{name}"], dtype=np.float64) for name in DOUBTS[1:]
    }
    return Uncertainty(
        places=np.asarray(adata.obsm[sphere_of(key)], dtype=np.float64),
        axes=np.asarray(adata.obsm[f"{key}_axes"], dtype=np.float64).reshape(-1, 2, 3),
        alternative=np.asarray(adata.obsm[f"{key}_alternative"], dtype=np.float64),
        stability=float(about["stability"]),
        n_maps=int(about["n_maps"]),
        **numbers,
    )


def _about_uncertainty(adata: AnnData, key: str) -> Any:
    about = adata.uns.get(short_of(key))
    return about.get("uncertainty") if isinstance(about, Mapping) else None


def about_model(model: Any, **params: Any) -> dict[str, Any]:
    """Description of a fitted model for uns; `params` extend or override its parameters."""
    return {
        "params": {**_storable(model.get_params()), **params},
        "calibration": np.array(model.calibration_),
        "loss": float(model.loss_),
        "correlation": float(model.correlation_),
        "status": str(model.status_),
    }


def _storable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that affect the result and that an h5ad file can store: no None, generator or function."""
    kinds = (bool, int, float, str, np.number, np.bool_, np.ndarray)
    return {
        name: value
        for name, value in parameters.items()
        if isinstance(value, kinds) and name not in ("n_jobs", "verbose")
    }


def require_anndata(adata: Any) -> None:
    """Raise unless `adata` is an AnnData object."""
    anndata = require("anndata", "mercat.tl or mercat.pl", "anndata")
    if not isinstance(adata, anndata.AnnData):
        raise TypeError(f"adata must be an AnnData object, got {type(adata).__name__}.")


def representation(adata: AnnData, key: str | None) -> tuple[str, Any, str]:
    """Key, values and location of the representation to embed, by default X_pca, else X.

    Raises KeyError with the key if it does not exist.
    """
    if key is None:
        key = "X_pca" if "X_pca" in adata.obsm else "X"
    if key == "X" and adata.X is not None:
        return key, adata.X, "adata.X"
    for name in ("obsm", "layers"):
        if key in (field := getattr(adata, name)):
            return key, field[key], f"adata.{name}[{key!r}]"
    raise KeyError(key)


def in_memory(X: Any) -> Any:
    """Values of an AnnData object as an array or a sparse matrix in memory."""
    if hasattr(X, "to_memory"):  # a sparse matrix in a file
        return X.to_memory()
    return X if hasattr(X, "tocsr") else np.asarray(X)


def embedding_keys(adata: AnnData) -> str:
    """The keys of obsm, in brackets, for messages."""
    return f"({', '.join(adata.obsm.keys()) or 'which has none'})"


def sphere_key(adata: AnnData, basis: str) -> str:
    """Key of the unit vectors of the map `basis`; in files of version 0.1, the key of the map itself."""
    for key in (basis, f"X_{basis}"):
        if sphere_of(key) in adata.obsm:
            return sphere_of(key)
        if key in adata.obsm:
            shape = np.shape(adata.obsm[key])
            if len(shape) == 2 and shape[1] == 3:
                return key
            raise ValueError(
                f"basis must name a map by Mercat, or unit vectors, got {basis!r}, whose shape is "
                f"{shape}, and there is no {sphere_of(key)!r}."
            )
    raise ValueError(
        f"basis must name a key of adata.obsm {embedding_keys(adata)}, got {basis!r}: "
        f"run mercat.tl.mercat(adata{'' if basis in (KEY, SHORT) else f', key_added={basis!r}'}) first."
    )


def embeddings(adata: AnnData, basis: Any) -> dict[str, np.ndarray]:
    """Unit vectors of Mercat maps, and planar positions of others such as UMAP, by name.

    `basis` is a list of keys, or a mapping from names to keys.
    """
    named = basis if isinstance(basis, Mapping) else {name: name for name in basis}
    if not named:
        raise ValueError("basis must name at least one key of adata.obsm, got none.")
    found = {}
    for shown, name in named.items():
        planar = [key for key in (name, f"X_{name}") if key in adata.obsm]
        if planar and sphere_of(planar[0]) not in adata.obsm:
            values = np.asarray(adata.obsm[planar[0]])
            if values.ndim == 2 and values.shape[1] == 2:
                found[str(shown)] = values
                continue
        found[str(shown)] = np.asarray(adata.obsm[sphere_key(adata, name)], dtype=np.float64)
    return found


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
    if key not in names and key in source.var_names:  # as in scanpy, both names are understood
        names = source.var_names
    if key not in names:
        raise ValueError(
            f"{name} must be a column of adata.obs or one of the {len(source.var_names)} genes of "
            f"{'adata.raw' if use_raw else 'adata'}, got {key!r}"
            f"{_similar(key, [*adata.obs.columns, *names])}."
        )
    mend = "make the names of adata.raw unique" if use_raw else "call adata.var_names_make_unique()"
    if gene_symbols is not None:
        mend = "take its name in adata.var_names"
    _check_once(name, key, names, "a gene", mend)
    gene = source.var_names[names.get_loc(key)]
    values = source.obs_vector(gene) if use_raw else source.obs_vector(gene, layer=layer)
    return pd.Series(np.asarray(values, dtype=np.float64), index=adata.obs_names, name=key)


def masked_cells(adata: AnnData, mask: Any) -> np.ndarray | None:
    """Mask of the cells that scanpy's `mask_obs` leaves out; it is an array or a column of obs."""
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
    if use_raw is None:  # as scanpy has it
        return layer is None and adata.raw is not None
    return use_raw


def _gene_names(adata: AnnData, source: Any, gene_symbols: str | None) -> Any:
    """What genes are called: their symbols in a column of var, or else their names."""
    import pandas as pd

    if gene_symbols is None:
        return source.var_names
    if gene_symbols in source.var:
        symbols = source.var[gene_symbols]
    elif gene_symbols in adata.var:  # which scanpy reads where adata.raw has no such column
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
    values = source.X if layer is None else adata.layers[layer]
    if isinstance(genes, str):
        raise TypeError(f"genes must be a list of names or an integer, got {genes!r}.")
    if isinstance(genes, Integral):
        check_integer("genes", genes, 1)
        places = _variable(source.var, values, int(genes))
    else:
        places = _places(names, source.var_names, list(dict.fromkeys(genes)))
    shown, own = ([str(some[place]) for place in places] for some in (names, source.var_names))
    for name in own:
        _check_once("genes", name, source.var_names, "a gene", "call adata.var_names_make_unique()")
    often = {name for name, times in Counter(shown).items() if times > 1}
    full = [f"{a} ({b})" if a in often else a for a, b in zip(shown, own, strict=True)]
    return values[:, places], full


def _places(names: Any, var_names: Any, wanted: list[str]) -> list[int]:
    places = []
    for key in wanted:
        known = names if key in names or key not in var_names else var_names
        if key not in known:
            raise ValueError(f"genes must be names of genes, got {key!r}{_similar(key, names)}.")
        _check_once("genes", key, known, "a gene", "call adata.var_names_make_unique()")
        places.append(int(known.get_loc(key)))
    return places


def _variable(var: Any, values: Any, most: int) -> list[int]:
    """Indices of the most variable genes, in increasing order."""
    squares = values.multiply(values) if hasattr(values, "multiply") else values * values
    mean, square = (np.asarray(one.mean(axis=0)).ravel() for one in (values, squares))
    variance = square - mean * mean
    if "highly_variable" in var:
        variance = np.where(np.asarray(var["highly_variable"], dtype=bool), variance, -np.inf)
    chosen = np.argsort(-variance, kind="stable")[:most]
    return sorted(int(place) for place in chosen if variance[place] > -np.inf)


def _check_once(name: str, key: str, names: Any, what: str, mend: str) -> None:
    """Raise if a name is ambiguous."""
    times = int((names == key).sum())
    if times > 1:
        raise ValueError(
            f"{name} must be the name of {what} that occurs once, got {key!r}, which occurs {times} "
            f"times: {mend} first."
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
    """A column for the viewer with the colours stored by scanpy, if any, opaque."""
    palette = stored_palette(uns, values)
    if palette is None:
        return values
    return Painted(values, {name: color[:7] for name, color in palette.items()})


def _hex(color: str) -> str:
    """A colour as "#rrggbb" or "#rrggbbaa"; empty if it cannot be parsed, as names without matplotlib."""
    try:
        from matplotlib.colors import is_color_like, to_hex
    except ImportError:
        return color if re.fullmatch(f"{HEX}([0-9A-Fa-f]{{2}})?", color) else ""
    return to_hex(color, keep_alpha=True) if is_color_like(color) else ""


def _similar(key: Any, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(key), [str(name) for name in names], n=3)
    return f" (similar: {', '.join(close)})" if close else ""
