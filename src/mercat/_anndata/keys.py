"""Where maps are stored in AnnData objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import require

if TYPE_CHECKING:
    from anndata import AnnData

#: Key of the flat map in obsm, so that ``sc.pl.embedding(adata, "mercat")`` draws it, and key in uns.
KEY, SHORT = "X_mercat", "mercat"
_SPHERE = "_sphere"
#: Columns of a map's uncertainty.
UNCERTAINTY_COLUMNS = ("spread", "alternative_gap", "alternative_wins", "torn", "p_value")


def sphere_of(key: str) -> str:
    """Key of the unit vectors of a flat map."""
    return f"{key}{_SPHERE}"


def map_of(adata: AnnData, sphere: str) -> str:
    """Key of the flat map of unit vectors; in files of version 0.1, their own key."""
    key = sphere.removesuffix(_SPHERE)
    return key if key in adata.obsm else sphere


def short_name(key: str) -> str:
    """Name of a map in uns, and prefix of its columns in obs."""
    return SHORT if key == KEY else key


def loss_column(key: str) -> str:
    """Column of obs with the losses of a map."""
    return f"{short_name(key)}_loss"


def require_anndata(adata: Any) -> None:
    """Raise unless `adata` is an AnnData object."""
    anndata = require("anndata", "mercat.tl or mercat.pl", "anndata")
    if not isinstance(adata, anndata.AnnData):
        raise TypeError(f"adata must be an AnnData object, got {type(adata).__name__}.")


def key_list(field: Mapping[str, Any]) -> str:
    """The keys of a field of an AnnData object in parentheses, for messages."""
    return f"({', '.join(field) or 'which has none'})"


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
        f"basis must name a key of adata.obsm {key_list(adata.obsm)}, got {basis!r}: "
        f"run mercat.tl.mercat(adata{'' if basis in (KEY, SHORT) else f', key_added={basis!r}'}) first."
    )


def embeddings(adata: AnnData, basis: Any) -> dict[str, np.ndarray]:
    """Unit vectors of Mercat maps, and planar positions of others such as UMAP, by name.

    `basis` is a list of keys, or a mapping from names to keys.
    """
    named = basis if isinstance(basis, Mapping) else {name: name for name in basis}
    if not named:
        raise ValueError("basis must name at least one key of adata.obsm, got none.")
    positions = {}
    for name, basis_key in named.items():
        planar = [key for key in (basis_key, f"X_{basis_key}") if key in adata.obsm]
        if planar and sphere_of(planar[0]) not in adata.obsm:
            values = np.asarray(adata.obsm[planar[0]])
            if values.ndim == 2 and values.shape[1] == 2:
                positions[str(name)] = values
                continue
        sphere = adata.obsm[sphere_key(adata, basis_key)]
        positions[str(name)] = np.asarray(sphere, dtype=np.float64)
    return positions


def check_key(key_added: Any, adata: AnnData) -> str:
    """Return `key_added`; raise ValueError if it is used for anything other than a map."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        # A slash would create a group in an h5ad file.
        raise ValueError(f"key_added must be a name without a slash, got {key_added!r}.")
    if key_added == SHORT:
        raise ValueError(
            f"key_added must not be {SHORT!r}, which is reserved for the fields of {KEY!r}."
        )
    entry = adata.uns.get(short_name(key_added))
    present = [key in adata.obsm for key in (key_added, sphere_of(key_added))]
    is_unit_vectors = np.shape(adata.obsm.get(key_added))[1:] == (3,)  # as stored by version 0.1
    for field, is_map in (
        ("obsm", is_unit_vectors or all(present) or not any(present)),
        ("uns", entry is None or (isinstance(entry, Mapping) and "n_beyond_map" in entry)),
    ):
        if not is_map:
            raise ValueError(
                f"key_added must be a new key or that of a Mercat map, got {key_added!r}, under which "
                f"adata.{field} holds other data."
            )
    return key_added
