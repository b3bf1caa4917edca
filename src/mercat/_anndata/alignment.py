"""Cells or labels that two maps share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._solve.anchors import MIN_ANCHORS, Anchors
from .keys import require_anndata, short_name, sphere_of
from .maps import stored_model

if TYPE_CHECKING:
    from anndata import AnnData

_MIN_LABELS = 3


def shared_cells(adata: AnnData, other: AnnData, key: str) -> Anchors:
    """Positions of cells on the map of another object, matched by name."""
    Y = _sphere_of(other, key)
    for name, cells in (("adata", adata), ("align_to", other)):
        if not cells.obs_names.is_unique:
            raise ValueError(
                f"{name}.obs_names must be unique, since cells are matched by name: call "
                f"{name}.obs_names_make_unique() first."
            )
    rows_in_adata = adata.obs_names.get_indexer(other.obs_names)
    shared = rows_in_adata >= 0
    if shared.sum() < MIN_ANCHORS:
        raise ValueError(
            f"align_to must share at least {MIN_ANCHORS} cells with adata, got {int(shared.sum())}: pass "
            "align_on= to align by labels."
        )
    positions = np.full((adata.n_obs, 3), np.nan)
    positions[rows_in_adata[shared]] = Y[shared]
    landmarks = None
    if "model" in other.uns[short_name(key)]:
        landmarks_of_other = stored_model(other, key, "align_to").landmarks_
        # If not, `other` is a subset of the cells, whose rows are numbered differently.
        if landmarks_of_other.max() < other.n_obs:
            landmarks = rows_in_adata[landmarks_of_other][shared[landmarks_of_other]]
    return Anchors(positions, landmarks if landmarks is not None and len(landmarks) else None)


def shared_labels(
    Y: np.ndarray, adata: AnnData, other: AnnData, column: str, key: str
) -> tuple[np.ndarray, np.ndarray]:
    """Centres of the shared labels on both maps, each (k x 3)."""
    Y_other = _sphere_of(other, key)
    for name, cells in (("adata", adata), ("align_to", other)):
        if column not in cells.obs:
            raise ValueError(f"align_on must be a column of {name}.obs, got {column!r}.")
    labels_adata, labels_other = (a.obs[column].astype(str).to_numpy() for a in (adata, other))
    labels = np.intersect1d(
        labels_adata[adata.obs[column].notna()], labels_other[other.obs[column].notna()]
    )
    if len(labels) < _MIN_LABELS:
        raise ValueError(
            f"align_on must name a column with at least {_MIN_LABELS} labels in common, got {column!r} with "
            f"{len(labels)}."
        )
    return _centers(Y, labels_adata, labels), _centers(Y_other, labels_other, labels)


def _centers(Y: np.ndarray, labels_of_rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the rows with each of the labels (k x 3)."""
    return np.array([Y[labels_of_rows == label].mean(axis=0) for label in labels])


def _sphere_of(adata: AnnData, key: str) -> np.ndarray:
    require_anndata(adata)
    if sphere_of(key) not in adata.obsm or short_name(key) not in adata.uns:
        raise ValueError(
            f"align_to must have a map {key!r}, got none: run mercat.tl.mercat(align_to) first."
        )
    return np.asarray(adata.obsm[sphere_of(key)], dtype=np.float64)
