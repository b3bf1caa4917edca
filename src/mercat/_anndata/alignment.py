"""Cells or labels that two maps share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._solve.anchors import LEAST_ANCHORS, Anchors
from .keys import require_anndata, short_of, sphere_of
from .maps import kept_model

if TYPE_CHECKING:
    from anndata import AnnData

_LEAST_LABELS = 3


def shared_cells(adata: AnnData, other: AnnData, key: str) -> Anchors:
    """Positions of cells on the map of another object, matched by name."""
    Y = _sphere_of(other, key)
    for name, cells in (("adata", adata), ("align_to", other)):
        if not cells.obs_names.is_unique:
            raise ValueError(
                f"{name}.obs_names must be unique, since cells are matched by name: call "
                f"{name}.obs_names_make_unique() first."
            )
    here = adata.obs_names.get_indexer(other.obs_names)
    shared = here >= 0
    if shared.sum() < LEAST_ANCHORS:
        raise ValueError(
            f"align_to must share at least {LEAST_ANCHORS} cells with adata, got {int(shared.sum())}: pass "
            "align_on= to align by labels."
        )
    positions = np.full((adata.n_obs, 3), np.nan)
    positions[here[shared]] = Y[shared]
    landmarks = None
    if "model" in other.uns[short_of(key)]:
        rows = kept_model(other, key, "align_to").landmarks_
        # Else `other` is a subset, whose rows are numbered differently.
        if rows.max() < other.n_obs:
            landmarks = here[rows][shared[rows]]
    return Anchors(positions, landmarks if landmarks is not None and len(landmarks) else None)


def shared_labels(
    Y: np.ndarray, adata: AnnData, other: AnnData, column: str, key: str
) -> tuple[np.ndarray, np.ndarray]:
    """Centres of the shared labels on both maps."""
    there = _sphere_of(other, key)
    for name, cells in (("adata", adata), ("align_to", other)):
        if column not in cells.obs:
            raise ValueError(f"align_on must be a column of {name}.obs, got {column!r}.")
    ours, theirs = (a.obs[column].astype(str).to_numpy() for a in (adata, other))
    labels = np.intersect1d(ours[adata.obs[column].notna()], theirs[other.obs[column].notna()])
    if len(labels) < _LEAST_LABELS:
        raise ValueError(
            f"align_on must name a column with at least {_LEAST_LABELS} labels in common, got "
            f"{len(labels)} of {column!r}."
        )
    centres = [
        [P[of == label].mean(axis=0) for label in labels] for P, of in ((Y, ours), (there, theirs))
    ]
    return np.array(centres[0]), np.array(centres[1])


def _sphere_of(adata: AnnData, key: str) -> np.ndarray:
    require_anndata(adata)
    if sphere_of(key) not in adata.obsm or short_of(key) not in adata.uns:
        raise ValueError(
            f"align_to must have a map {key!r}, got none: run mercat.tl.mercat(align_to) first."
        )
    return np.asarray(adata.obsm[sphere_of(key)], dtype=np.float64)
