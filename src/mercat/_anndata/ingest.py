"""Place new cells on a reference map: match genes by name, and compute positions, fit and labels."""

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
_MIN_GENES = 0.5  # fraction of the reference's genes that a query must have
_N_CHECKED = 200  # cells whose components are recomputed ...
_TOLERANCE = 0.01  # ... and may differ from the stored ones by this fraction of their spread
_N_COMPARED = 500  # cells of each object whose values are compared
_MAX_RATIO = 3.0  # largest ratio of the median totals per cell without a warning
# Reference cells whose distances to neighbours are compared with a new cell's.
_N_REFERENCE_CELLS = 2000
_N_NAMED = 5  # number of genes listed in a message


class Query(NamedTuple):
    """The rows of a query in the reference's representation, and the genes that it lacks."""

    X: Any
    missing: list[str]
    components: Any = None  # all components; X holds the first `n_pcs`


# ------------------------------------------------------------------ rows in the reference's representation


def query_rows(query: AnnData, reference: AnnData, params: Mapping[str, Any]) -> Query:
    """The rows of the query in the representation of the reference's map."""
    source, layer = str(params["use_rep"]), params.get("layer")
    if layer is not None:
        return _expression_rows(query, reference, str(layer))
    if source == PCA:
        query_components = _components(query, reference)
        n_pcs = params.get("n_pcs")
        return query_components._replace(
            components=query_components.X, X=query_components.X[:, :n_pcs]
        )
    if source == "X" or (source in reference.layers and source not in reference.obsm):
        return _expression_rows(query, reference, None if source == "X" else source)
    return Query(_shared_representation(query, reference, source, params.get("n_pcs")), [])


def reference_rows(reference: AnnData, params: Mapping[str, Any]) -> Any:
    """The rows of the reference in the representation of its map."""
    layer, n_pcs = params.get("layer"), params.get("n_pcs")
    try:
        if layer is not None:
            return in_memory(reference.layers[layer], f"reference.layers[{layer!r}]")
        _, X, name = representation(reference, str(params["use_rep"]))
    except KeyError as missing:
        raise ValueError(f"The data must have {missing}, which the map was fitted to.") from None
    return in_memory(X, name)[:, :n_pcs]


def _shared_representation(query: AnnData, reference: AnnData, source: str, n_pcs: Any) -> Any:
    """The query in a representation shared with the reference, such as scVI's."""
    if source not in query.obsm:
        raise ValueError(
            f"query must have obsm[{source!r}], in the space of reference.obsm[{source!r}], which the map "
            "was fitted to."
        )
    X = in_memory(query.obsm[source], f"query.obsm[{source!r}]")
    if X.shape[1] != reference.obsm[source].shape[1]:
        raise ValueError(
            f"query.obsm[{source!r}] must have {reference.obsm[source].shape[1]} columns, like that of the "
            f"reference, got {X.shape[1]}."
        )
    logger.info("Using query.obsm[%r] unchanged: it must be in the space of the reference.", source)
    return X[:, :n_pcs]


def _expression_rows(query: AnnData, reference: AnnData, layer: str | None) -> Query:
    """Expression of the reference's genes, in its order; missing ones are set to its mean."""
    columns, missing = _match_genes(query, reference, np.arange(reference.n_vars))
    X_reference, X_query = _matrix(reference, layer, "reference"), _matrix(query, layer, "query")
    present, absent = np.flatnonzero(columns >= 0), np.flatnonzero(columns < 0)
    shared = X_query[:, columns[present]]
    _check_alike(shared, X_reference[:, present], layer)
    if not missing:
        return Query(shared, [])
    mean = np.asarray(X_reference[:, absent].mean(axis=0), dtype=np.float64).ravel()
    original_order = np.argsort(np.concatenate([present, absent]))
    missing_columns = np.broadcast_to(mean, (query.n_obs, len(mean)))
    if not scipy.sparse.issparse(shared):
        return Query(np.concatenate([shared, missing_columns], axis=1)[:, original_order], missing)
    joined = scipy.sparse.hstack([shared, scipy.sparse.csr_array(missing_columns)], format="csc")
    return Query(scipy.sparse.csr_array(joined[:, original_order]), missing)


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
    X_reference = _matrix(reference, layer, "reference")[:, genes]
    mean = np.asarray(X_reference.mean(axis=0), dtype=np.float64).ravel()
    if not params.get("zero_center", True):
        mean[:] = 0
    _check_components(X_reference, mean, axes, reference.obsm[PCA], layer)
    columns, missing = _match_genes(query, reference, genes)
    shared = np.flatnonzero(columns >= 0)
    if missing:
        lost_weight = 1 - float(np.sum(axes[shared] ** 2) / np.sum(axes**2))
        logger.warning(
            "The missing genes have %.0f %% of the weight of the components.", 100 * lost_weight
        )
    X_query = _matrix(query, layer, "query")[:, columns[shared]]
    _check_alike(X_query, X_reference[:, shared], layer)
    X = _project(X_query, mean[shared], axes[shared]).astype(np.asarray(reference.obsm[PCA]).dtype)
    if PCA in query.obsm and not _agree(X, query.obsm[PCA]):
        raise ValueError(
            f"query.obsm[{PCA!r}] must be absent or hold the components of the reference, got other values: "
            "delete or rename it."
        )
    return Query(X, missing)


def _project(X: Any, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    # One block of dense rows at a time.
    parts = [np.asarray(X[b] @ axes) - mean @ axes for b in blocks(X.shape[0], 4096)]
    return np.concatenate(parts) if parts else np.empty((0, axes.shape[1]))


def _check_components(
    X: Any, mean: np.ndarray, axes: np.ndarray, stored: Any, layer: str | None
) -> None:
    """Raise unless the reference's components match its current expression and axes."""
    stored = np.asarray(stored)
    rows = np.linspace(0, len(stored) - 1, min(_N_CHECKED, len(stored))).astype(int)
    name = "reference.X" if layer is None else f"reference.layers[{layer!r}]"
    if stored.shape[1] != axes.shape[1] or not _agree(_project(X[rows], mean, axes), stored[rows]):
        raise ValueError(
            f"reference.obsm[{PCA!r}] must follow from {name} and reference.varm['PCs'], got other values: "
            f"{name} has changed since sc.pp.pca. Run sc.pp.pca and mercat.tl.mercat again."
        )


def _agree(a: np.ndarray, b: Any) -> bool:
    b = np.asarray(b)
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) <= _TOLERANCE * np.std(b))


def _match_genes(
    query: AnnData, reference: AnnData, genes: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Index in the query of each gene of the reference, or -1; and the names of missing ones."""
    for name, adata in (("query", query), ("reference", reference)):
        if not adata.var_names.is_unique:
            raise ValueError(
                f"{name}.var_names must be unique, since genes are matched by name: call "
                f"{name}.var_names_make_unique() first."
            )
    names = reference.var_names[genes]
    columns = np.asarray(query.var_names.get_indexer(names))
    missing = [str(name) for name in names[columns < 0]]
    examples = ", ".join(missing[:_N_NAMED]) + (", ..." if len(missing) > _N_NAMED else "")
    if len(names) - len(missing) < _MIN_GENES * len(names):
        raise ValueError(
            f"query must have at least half of the {len(names)} genes of the reference's map, got "
            f"{len(names) - len(missing)}: {examples} are missing. Do both use the same names (symbols, "
            "Ensembl ids)?"
        )
    if missing:
        logger.warning(
            "The query lacks %d of the %d genes of the reference's map (%s); they are set to their mean.",
            len(missing), len(names), examples,
        )  # fmt: skip
    return columns, missing


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
    samples = _sample_rows(query), _sample_rows(reference)
    kinds = {
        "integers, like counts": [bool((x == np.round(x)).all() and x.any()) for x in samples],
        "negative numbers, like scaled genes": [bool((x < 0).any()) for x in samples],
    }
    for kind, (query_is, reference_is) in kinds.items():
        if query_is != reference_is:
            first, second = ("query", "reference") if query_is else ("reference", "query")
            raise ValueError(
                f"query.{where} must be prepared like reference.{where}: {first}.{where} holds {kind}, and "
                f"{second}.{where} does not. Normalise, log and scale both in the same way."
            )
    totals = [float(np.median(x.sum(axis=1))) for x in samples]
    if min(totals) > 0 and max(totals) > _MAX_RATIO * min(totals):
        logger.warning(
            "The totals of query.%s, %.3g per cell, differ greatly from those of reference.%s, %.3g: make "
            "sure that both were normalised and logged in the same way.",
            where, totals[0], where, totals[1],
        )  # fmt: skip


def _sample_rows(X: Any) -> np.ndarray:
    rows = np.linspace(0, X.shape[0] - 1, min(_N_COMPARED, X.shape[0])).astype(int)
    sample = scipy.sparse.csr_array(X)[rows].toarray() if scipy.sparse.issparse(X) else X[rows]
    return np.asarray(sample, dtype=np.float64)


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
        reference_hat, query_hat = (
            np.asarray(project_all(spectral, X, workers)).astype(np.float32)
            for X in (reference, query)
        )
        k = min(k, len(reference_hat) - 1)
        search = Search(reference_hat)

        def nearest(block: slice) -> tuple[np.ndarray, ...]:
            def part(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                return in_order(reference_hat, rows, search(rows, k))

            return in_tiles(part, query_hat[block])

        n = len(reference_hat)
        sample = np.linspace(0, n - 1, min(_N_REFERENCE_CELLS, n)).astype(int)

        def reference_distances(block: slice) -> np.ndarray:
            rows = sample[block]
            neighbors = search(reference_hat[rows], k, rows)
            _, distances = in_order(reference_hat, reference_hat[rows], neighbors)
            return np.asarray(distances.mean(axis=1))

        query_neighbors = list(workers.map(nearest, blocks(len(query_hat), TILE)))
        reference_parts = list(workers.map(reference_distances, blocks(len(sample), TILE)))
        reference_means = np.sort(np.concatenate(reference_parts))
    indices, distances = (np.concatenate(part) for part in zip(*query_neighbors, strict=True))
    n_nearer = np.searchsorted(reference_means, distances.mean(axis=1), side="left")
    n_farther = len(reference_means) - n_nearer
    return Neighborhoods(indices, (1 + n_farther) / (1 + len(reference_means)))


def angle_losses(model: Mercat, X: Any, Y: np.ndarray) -> np.ndarray:
    """The angle loss at each placed row, with landmarks as legs, comparable to `point_loss_`."""
    placer = model._placer
    landmarks = getattr(placer.against, "anchors", placer.against)
    Y_landmarks = normalize(landmarks.Y @ model._rotation.T).astype(np.float32)
    legs = LossSample(landmarks.X, Y_landmarks, len(Y_landmarks), TILE)
    with Workers(n_threads(model.n_jobs)) as workers:
        X_hat = np.asarray(project_all(placer.spectral, X, workers)).astype(np.float32)
        parts = workers.map(
            lambda t: legs.moments(X_hat[t], Y[t].astype(np.float32), 0), blocks(len(Y), TILE)
        )
        losses = [np.sqrt(mean_square(moments, placer.against.calibration)) for moments in parts]
    return np.concatenate(losses)


def transfer_labels(labels: Any, indices: np.ndarray) -> tuple[Any, np.ndarray]:
    """Most frequent labels of neighbours, as a categorical, and the fractions that have them.

    Ties go to the label of the nearer cells. Cells without a label count as one more category: if it is the
    most frequent, the label is missing.
    """
    import pandas as pd

    categorical = pd.Categorical(labels)
    k = indices.shape[1]
    votes = categorical.codes[indices] + 1  # 0: none
    # Slightly more for nearer cells, to break ties.
    weight = 1 + 1e-6 * (k - np.arange(k))
    counts = np.zeros((len(indices), len(categorical.categories) + 1))
    np.add.at(counts, (np.arange(len(indices))[:, None], votes), weight)
    winner = counts.argmax(axis=1)
    fractions = (votes == winner[:, None]).mean(axis=1)
    labels_of_query = pd.Categorical.from_codes(
        winner - 1, categories=categorical.categories, ordered=categorical.ordered
    )
    return labels_of_query, fractions


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
        if reference.obs[name].dtype.kind in "fiumM":  # numbers and dates
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
                f"obs={{{name!r}: 'predicted'}} to write to another one."
            )
    return {name: name for name in names}
