"""Write maps, their uncertainty and their models to AnnData objects, and read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._draw.flat_map import FlatMap
from .._files.packed import unpack
from .keys import KEY, UNCERTAINTY_COLUMNS, loss_column, short_name, sphere_of

if TYPE_CHECKING:
    from anndata import AnnData

    from .._estimator import Mercat


def write_map(
    adata: AnnData,
    Y: np.ndarray,
    loss: np.ndarray | None,
    entry: dict[str, Any],
    *,
    key: str = KEY,
    template: Mapping[str, Any] | None = None,
) -> int:
    """Write map and unit vectors to obsm, losses to obs, and other results to uns.

    Returns the number of points in the margin of the map. `template` is the entry ``map`` of another map,
    whose flat coordinates are used.
    """
    flat_map = FlatMap.of(Y) if template is None else FlatMap.from_dict(template)
    flat, moved = flat_map.positions(Y)
    n_beyond = int(moved.sum())
    if np.shape(adata.obsm.get(key))[1:] == (3,):  # version 0.1 named the flat map differently
        adata.obsm.pop(f"{key}_map", None)
    adata.obsm[key], adata.obsm[sphere_of(key)] = flat.astype(Y.dtype, copy=False), Y
    if loss is not None:
        adata.obs[loss_column(key)] = loss
    elif loss_column(key) in adata.obs:  # the loss of the previous map
        del adata.obs[loss_column(key)]
    if _about_uncertainty(adata, key) is not None:  # the uncertainty of the previous map
        remove_uncertainty(adata, key)
    adata.uns[short_name(key)] = {**entry, "map": flat_map.to_dict(), "n_beyond_map": n_beyond}
    return n_beyond


def write_uncertainty(adata: AnnData, uncertainty: Any, key: str = KEY) -> None:
    """Write the result of `mercat.uncertainty`: numbers to obs, vectors to obsm, the rest to uns."""
    short = short_name(key)
    for name, values in uncertainty.columns().items():
        adata.obs[f"{short}_{name}"] = np.asarray(values)
    adata.obsm[f"{key}_axes"] = np.asarray(uncertainty.axes).reshape(adata.n_obs, 6)
    adata.obsm[f"{key}_alternative"] = np.asarray(uncertainty.alternative)
    adata.uns[short] = {
        **adata.uns[short],
        "uncertainty": {
            "stability": uncertainty.stability,
            "stability_by_chance": uncertainty.stability_by_chance,
            "n_maps": uncertainty.n_maps,
            "n_comparisons": uncertainty.n_comparisons,
            "sizes": np.asarray(uncertainty.sizes),
        },
    }


def remove_uncertainty(adata: AnnData, key: str) -> None:
    """Remove the fields of `write_uncertainty`."""
    for name in ("axes", "alternative"):
        adata.obsm.pop(f"{key}_{name}", None)
    columns = [f"{short_name(key)}_{name}" for name in UNCERTAINTY_COLUMNS]
    adata.obs = adata.obs.drop(columns=[name for name in columns if name in adata.obs])
    adata.uns[short_name(key)] = {
        name: value for name, value in adata.uns[short_name(key)].items() if name != "uncertainty"
    }


def read_uncertainty(adata: AnnData, key: str = KEY) -> Any:
    """Read the fields of `write_uncertainty`, or None."""
    short = short_name(key)
    entry = _about_uncertainty(adata, key)
    columns = [f"{short}_{name}" in adata.obs for name in UNCERTAINTY_COLUMNS]
    if entry is None or not all(columns) or f"{key}_axes" not in adata.obsm:
        return None
    from .._uncertainty.record import Uncertainty

    numbers = {
        name: np.asarray(adata.obs[f"{short}_{name}"], dtype=np.float64)
        for name in UNCERTAINTY_COLUMNS[1:]
    }
    return Uncertainty(
        places=np.asarray(adata.obsm[sphere_of(key)], dtype=np.float64),
        axes=np.asarray(adata.obsm[f"{key}_axes"], dtype=np.float64).reshape(-1, 2, 3),
        alternative=np.asarray(adata.obsm[f"{key}_alternative"], dtype=np.float64),
        stability=float(entry["stability"]),
        stability_by_chance=float(entry.get("stability_by_chance", np.nan)),
        n_maps=int(entry["n_maps"]),
        n_comparisons=int(entry.get("n_comparisons", entry["n_maps"])),
        sizes=np.asarray(entry.get("sizes", np.full(int(entry["n_maps"]), np.nan))),
        **numbers,
    )


def _about_uncertainty(adata: AnnData, key: str) -> Any:
    entry = adata.uns.get(short_name(key))
    return entry.get("uncertainty") if isinstance(entry, Mapping) else None


def describe_model(model: Any, **params: Any) -> dict[str, Any]:
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


def stored_model(adata: AnnData, key: str, name: str) -> Mercat:
    """Unpack the model of a map from uns."""
    where = f"{name}.uns[{short_name(key)!r}]['model']"
    return unpack(_stored(adata, key, name, "model"), where)


def stored_params(adata: AnnData, key: str, name: str) -> Mapping[str, Any]:
    """Read the parameters of a map from uns."""
    params = _stored(adata, key, name, "params")
    if not isinstance(params, Mapping) or "use_rep" not in params:
        raise ValueError(
            f"{name}.uns[{short_name(key)!r}]['params'] must be a dict with 'use_rep', got {params!r}: run "
            f"mercat.tl.mercat({name}) again."
        )
    return params


def _stored(adata: AnnData, key: str, name: str, field: str) -> Any:
    """A field of the entry of a map in uns."""
    entry = adata.uns.get(short_name(key))
    if not isinstance(entry, Mapping) or field not in entry:
        prepared = isinstance(entry, Mapping) and entry.get("prepared")
        reason = (
            f", since its data were prepared by the command line ({prepared})" if prepared else ""
        )
        raise ValueError(
            f"{name}.uns[{short_name(key)!r}] must hold the {field} of the map, got none{reason}: run "
            f"mercat.tl.mercat({name}) again."
        )
    return entry[field]
