"""New cells on the map of a reference: genes matched by name, positions, fit and labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from .._data.arrays import TILE, blocks, in_tiles
from .._data.threads import Workers, n_threads
from .._detail.neighbors import Search, in_order
from .._math.angles import mean_square
from .._math.sphere import normalize
from .._reduce.reducer import project_all
from .._solve.fitted_map import LossSample
from .representation import in_memory, representation

if TYPE_CHECKING:
    from anndata import AnnData

    from .._estimator import Mercat

logger = logging.getLogger("mercat.tl")
PCA = "X_pca"
_LEAST_GENES = 0.5  # fraction of the reference's genes that a query must have
_CHECKED = 200  # cells whose components are recomputed ...
_AGREE = 0.01  # ... and may differ from the stored ones by this fraction of their spread
_COMPARED = 500  # cells of each object whose values are compared
_ALIKE = 3.0  # largest ratio of totals per cell without a warning
_REFERENCE_CELLS = 2000  # cells among which the distance of a cell to its neighbours is ranked
_NAMED = 5  # number of genes listed in a message


class Query(NamedTuple):
    """The rows of a query in the reference's representation, and the genes that it lacks."""

    X: Any
    missing: list[str]
    components: Any = None  # all components, of which X has the first


# ------------------------------------------------------------------ rows in the reference's representation


def query_rows(query: AnnData, reference: AnnData, params: Mapping[str, Any]) -> Query:
    """The rows of the query in the representation of the reference's map."""
    source, layer = str(params["use_rep"]), params.get("layer")
    if layer is not None:
        return _gene_rows(query, reference, str(layer))
    if source == PCA:
        found = _components(query, reference)
        n_pcs = params.get("n_pcs")
        return found._replace(components=found.X, X=found.X[:, :n_pcs])
    if source == "X" or (source in reference.layers and source not in reference.obsm):
        return _gene_rows(query, reference, None if source == "X" else source)
    return Query(_shared_space(query, reference, source, params.get("n_pcs")), [])


def reference_rows(reference: AnnData, params: Mapping[str, Any]) -> Any:
    """The rows of the reference in the representation of its map."""
    layer, n_pcs = params.get("layer"), params.get("n_pcs")
    try:
        if layer is not None:
            return in_memory(reference.layers[layer], f"reference.layers[{layer!r}]")
        _, X, where = representation(reference, str(params["use_rep"]))
    except KeyError as missing:
        raise ValueError(f"The data must have {missing}, which the map was fitted to.") from None
    return in_memory(X, where)[:, :n_pcs]


def _shared_space(query: AnnData, reference: AnnData, source: str, n_pcs: Any) -> Any:
    """The query in a representation shared with the reference, such as scVI's."""
    if source not in query.obsm:
        raise ValueError(
            f"query must have obsm[{source!r}], in the space of reference.obsm[{source!r}], which the map "
            "was fitted to."
        )
    X = in_memory(query.obsm[source], f"query.obsm[{source!r}]")
    if X.shape[1] != reference.obsm[source].shape[1]:
        raise ValueError(
            f"query.obsm[{source!r}] must have {reference.obsm[source].shape[1]} columns, as that of the "
            f"reference, got {X.shape[1]}."
        )
    logger.info("Using query.obsm[%r] unchanged: it must be in the space of the reference.", source)
    return X[:, :n_pcs]


def _gene_rows(query: AnnData, reference: AnnData, layer: str | None) -> Query:
    """Expression of the reference's genes, in its order; missing ones are set to its mean."""
    at, missing = _matched(query, reference, np.arange(reference.n_vars))
    own, theirs = _matrix(reference, layer, "reference"), _matrix(query, layer, "query")
    found = theirs[:, at[at >= 0]]
    _check_alike(found, own[:, np.flatnonzero(at >= 0)], layer)
    if not missing:
        return Query(found, [])
    mean = np.asarray(own[:, np.flatnonzero(at < 0)].mean(axis=0), dtype=np.float64).ravel()
    back = np.empty(len(at), dtype=np.intp)
    back[np.concatenate([np.flatnonzero(at >= 0), np.flatnonzero(at < 0)])] = np.arange(len(at))
    filled = np.broadcast_to(mean, (query.n_obs, len(mean)))
    if not scipy.sparse.issparse(found):
        return Query(np.concatenate([found, filled], axis=1)[:, back], missing)
    joined = scipy.sparse.hstack([found, scipy.sparse.csr_array(filled)], format="csc")
    return Query(scipy.sparse.csr_array(joined[:, back]), missing)


def _components(query: AnnData, reference: AnnData) -> Query:
    """The query in the components of scanpy's PCA of the reference."""
    if "PCs" not in reference.varm:
        raise ValueError(
            "reference.varm must have 'PCs', as written by sc.pp.pca: the map was fitted to its components, "
            "and new cells cannot be projected without their axes."
        )
    params = reference.uns.get("pca", {}).get("params", {})
    axes = np.asarray(reference.varm["PCs"], dtype=np.float64)
    genes = np.flatnonzero((axes != 0).any(axis=1))
    axes, layer = axes[genes], params.get("layer")
    own = _matrix(reference, layer, "reference")[:, genes]
    mean = np.asarray(own.mean(axis=0), dtype=np.float64).ravel()
    if not params.get("zero_center", True):
        mean[:] = 0
    _check_components(own, mean, axes, reference.obsm[PCA], layer)
    at, missing = _matched(query, reference, genes)
    here = np.flatnonzero(at >= 0)
    if missing:
        lost = 1 - float(np.sum(axes[here] ** 2) / np.sum(axes**2))
        logger.warning(
            "The missing genes have %.0f %% of the weight of the components.", 100 * lost
        )
    theirs = _matrix(query, layer, "query")[:, at[here]]
    _check_alike(theirs, own[:, here], layer)
    X = _projected(theirs, mean[here], axes[here]).astype(np.asarray(reference.obsm[PCA]).dtype)
    if PCA in query.obsm and not _agree(X, query.obsm[PCA]):
        raise ValueError(
            f"query.obsm[{PCA!r}] must be absent or hold the components of the reference, got others: "
            "delete or rename it."
        )
    return Query(X, missing)


def _projected(X: Any, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    # One block of dense rows at a time.
    parts = [np.asarray(X[b] @ axes) - mean @ axes for b in blocks(X.shape[0], 4096)]
    return np.concatenate(parts) if parts else np.empty((0, axes.shape[1]))


def _check_components(
    own: Any, mean: np.ndarray, axes: np.ndarray, stored: Any, layer: str | None
) -> None:
    """Raise unless the reference's components match its current expression and axes."""
    stored = np.asarray(stored)
    rows = np.linspace(0, len(stored) - 1, min(_CHECKED, len(stored))).astype(int)
    where = "reference.X" if layer is None else f"reference.layers[{layer!r}]"
    if stored.shape[1] != axes.shape[1] or not _agree(
        _projected(own[rows], mean, axes), stored[rows]
    ):
        raise ValueError(
            f"reference.obsm[{PCA!r}] must follow from {where} and reference.varm['PCs'], got others: "
            f"{where} has changed since sc.pp.pca. Run it and mercat.tl.mercat again."
        )


def _agree(a: np.ndarray, b: Any) -> bool:
    b = np.asarray(b)
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) <= _AGREE * np.std(b))


def _matched(query: AnnData, reference: AnnData, genes: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Index in the query of each gene of the reference, or -1; and the names of missing ones."""
    for name, adata in (("query", query), ("reference", reference)):
        if not adata.var_names.is_unique:
            raise ValueError(
                f"{name}.var_names must be unique, since genes are matched by name: call "
                f"{name}.var_names_make_unique() first."
            )
    names = reference.var_names[genes]
    at = np.asarray(query.var_names.get_indexer(names))
    missing = [str(name) for name in names[at < 0]]
    shown = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
    if len(names) - len(missing) < _LEAST_GENES * len(names):
        raise ValueError(
            f"query must have at least half of the {len(names)} genes of the reference's map, got "
            f"{len(names) - len(missing)}: {shown} are missing. Do both use the same names (symbols, "
            "Ensembl ids)?"
        )
    if missing:
        logger.warning(
            "%d of the %d genes of the reference's map are missing in the query (%s) and set to their mean.",
            len(missing), len(names), shown,
        )  # fmt: skip
    return at, missing


def _matrix(adata: AnnData, layer: str | None, name: str) -> Any:
    """X or a layer in memory, in a form whose columns can be selected."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"{name}.layers must have {layer!r}, which the map was fitted to.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError(f"{name}.X must contain expression, got None.")
    X = in_memory(X, f"{name}.X" if layer is None else f"{name}.layers[{layer!r}]")
    return scipy.sparse.csc_array(X) if scipy.sparse.issparse(X) else X


def _check_alike(query: Any, reference: Any, layer: str | None) -> None:
    """Raise if the query was clearly prepared differently from the reference.

    It is an error if only one of them has counts, or negative values. Totals per cell also differ between
    types of cells, so a large difference only causes a warning.
    """
    where = "X" if layer is None else f"layers[{layer!r}]"
    a, b = _some_rows(query), _some_rows(reference)
    kinds = {
        "integers, like counts": [bool((x == np.round(x)).all() and x.any()) for x in (a, b)],
        "negative numbers, like scaled genes": [bool((x < 0).any()) for x in (a, b)],
    }
    for kind, (ours, theirs) in kinds.items():
        if ours != theirs:
            one, other = ("query", "reference") if ours else ("reference", "query")
            raise ValueError(
                f"query.{where} must be prepared like reference.{where}: {one}.{where} holds {kind}, and "
                f"{other}.{where} does not. Normalise, log and scale both in the same way."
            )
    totals = [float(np.median(x.sum(axis=1))) for x in (a, b)]
    if min(totals) > 0 and max(totals) > _ALIKE * min(totals):
        logger.warning(
            "The totals of query.%s, %.3g per cell, differ greatly from those of reference.%s, %.3g: make "
            "sure that both were normalised and logged in the same way.",
            where, totals[0], where, totals[1],
        )  # fmt: skip


def _some_rows(X: Any) -> np.ndarray:
    rows = np.linspace(0, X.shape[0] - 1, min(_COMPARED, X.shape[0])).astype(int)
    taken = scipy.sparse.csr_array(X)[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
    return np.asarray(taken, dtype=np.float64)


# ------------------------------------------------------------------ neighbours, fit, labels


class Neighborhoods(NamedTuple):
    """The nearest reference cells of each query cell, nearest first, and the fit of each query cell."""

    indices: np.ndarray
    fit: np.ndarray


def neighborhoods(model: Mercat, reference: Any, query: Any, k: int) -> Neighborhoods:
    """Nearest reference cells in the components of the model.

    The fit of a cell is the fraction of reference cells that are at least as far from their k nearest
    neighbours as the cell is from its own: about uniform for cells of known types, near 0 for cells unlike
    any of them.
    """
    spectral = model._placer.spectral
    with Workers(n_threads(model.n_jobs)) as workers:
        theirs, ours = (
            np.asarray(project_all(spectral, X, workers)).astype(np.float32)
            for X in (reference, query)
        )
        k = min(k, len(theirs) - 1)
        search = Search(theirs)

        def nearest(block: slice) -> tuple[np.ndarray, ...]:
            def part(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                return in_order(theirs, rows, search(rows, k))

            return in_tiles(part, ours[block])

        sample = np.linspace(0, len(theirs) - 1, min(_REFERENCE_CELLS, len(theirs))).astype(int)

        def reference_distances(block: slice) -> np.ndarray:
            rows = sample[block]
            found = search(theirs[rows], k, rows)
            return np.asarray(in_order(theirs, theirs[rows], found)[1].mean(axis=1))

        found = list(workers.map(nearest, blocks(len(ours), TILE)))
        parts = list(workers.map(reference_distances, blocks(len(sample), TILE)))
        usual = np.sort(np.concatenate(parts))
    indices, distances = (np.concatenate(part) for part in zip(*found, strict=True))
    farther = len(usual) - np.searchsorted(usual, distances.mean(axis=1), side="left")
    return Neighborhoods(indices, (1 + farther) / (1 + len(usual)))


def angle_losses(model: Mercat, X: Any, Y: np.ndarray) -> np.ndarray:
    """The angle loss at each placed row, with landmarks as legs, comparable to `point_loss_`."""
    placer = model._placer
    against = getattr(placer.against, "anchors", placer.against)
    turned = normalize(against.Y @ model._rotation.T).astype(np.float32)
    legs = LossSample(against.X, turned, len(turned), TILE)
    with Workers(n_threads(model.n_jobs)) as workers:
        X_hat = np.asarray(project_all(placer.spectral, X, workers)).astype(np.float32)
        parts = workers.map(
            lambda t: legs.moments(X_hat[t], Y[t].astype(np.float32), 0), blocks(len(Y), TILE)
        )
        losses = [np.sqrt(mean_square(moments, placer.against.calibration)) for moments in parts]
    return np.concatenate(losses)


def transferred(labels: Any, indices: np.ndarray) -> tuple[Any, np.ndarray]:
    """Most frequent labels of neighbours, as a categorical, and the fractions that have them.

    Ties go to the label of the nearer cells. Cells without a label do not vote.
    """
    import pandas as pd

    known = pd.Categorical(labels)
    k = indices.shape[1]
    votes = known.codes[indices] + 1  # 0: none
    weight = 1 + 1e-6 * (k - np.arange(k))
    counts = np.zeros((len(indices), len(known.categories) + 1))
    np.add.at(counts, (np.arange(len(indices))[:, None], votes), weight)
    winner = counts.argmax(axis=1)
    share = (votes == winner[:, None]).mean(axis=1)
    chosen = pd.Categorical.from_codes(
        winner - 1, categories=known.categories, ordered=known.ordered
    )
    return chosen, share


def label_columns(obs: Any, query: AnnData, reference: AnnData) -> dict[str, str]:
    """Columns of the reference, and their names in the query."""
    if obs is None:
        return {}
    names = [obs] if isinstance(obs, str) else list(obs)
    for name in names:
        if name not in reference.obs:
            raise ValueError(
                f"obs must name columns of reference.obs ({', '.join(reference.obs.columns)}), got "
                f"{name!r}."
            )
        if reference.obs[name].dtype.kind in "fiumM":
            raise ValueError(
                f"obs must name columns of labels, got {name!r} of type {reference.obs[name].dtype}: make "
                "it a category if its values are labels."
            )
    if isinstance(obs, Mapping):
        return {name: str(obs[name]) for name in names}
    for name in names:
        if name in query.obs and f"{name}_confidence" not in query.obs:
            raise ValueError(
                f"obs must not name a column that query.obs has already, got {name!r}: pass "
                f"obs={{{name!r}: 'predicted'}} to write another."
            )
    return {name: name for name in names}
