"""Neighbour graphs of scanpy, and whether they fit the embedded representation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.spatial.distance

from .._data.sparse import check_sparse

if TYPE_CHECKING:
    from anndata import AnnData

NEIGHBORS = "neighbors"  # scanpy's default key
_MAX_GENES_IN_X = 50  # up to this many genes, scanpy searches for neighbours in X
_ALIASES = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}
_MAX_LOST = 0.05  # fraction of the edges that may be missing, such as those between duplicates
_N_EDGES = 1000  # edges whose lengths are compared with the distances in the data
_LENGTH_TOLERANCE = 0.01  # relative difference within which lengths match
_MAX_MISMATCHED = 0.05  # fraction of the edges whose lengths may differ by more


class Graph(NamedTuple):
    """A graph in `adata.obsp`, and the reason why it does not fit; empty if it does."""

    key: str
    matrix: Any
    misfit: str


def neighbors_graph(
    adata: AnnData, X: Any, source: str, metric: Any, neighbors_key: str | None
) -> Graph | None:
    """scanpy's graph, and whether it fits the rows X of the representation `source`; None without a graph.

    Raises ValueError if `neighbors_key` names no graph.
    """
    record = adata.uns.get(NEIGHBORS if neighbors_key is None else neighbors_key)
    record = record if isinstance(record, Mapping) else {}
    key = str(record.get("distances_key", "distances"))
    if neighbors_key is not None and not (record and key in adata.obsp):
        known_keys = [
            str(name)
            for name, entry in adata.uns.items()
            if isinstance(entry, Mapping) and "distances_key" in entry
        ]
        raise ValueError(
            "neighbors_key must be a key of adata.uns under which sc.pp.neighbors stored its results "
            f"({', '.join(known_keys) or 'there is none'}), got {neighbors_key!r}."
        )
    graph = adata.obsp.get(key)
    # A dense matrix is of no use: all cells would be neighbours.
    if not scipy.sparse.issparse(graph):
        return None
    check_sparse(graph, f"adata.obsp[{key!r}]")
    params = record.get("params", {})
    misfit = _misfit(adata, graph, params, X, source, metric)
    return Graph(key, _without_loops(graph), misfit)


def _misfit(
    adata: AnnData, graph: Any, params: Mapping[str, Any], X: Any, source: str, metric: Any
) -> str:
    """Why a graph with these parameters does not fit the rows X; empty if it does."""
    if params:
        representation = _source_of(adata, params)
        if representation != source:
            return f"were found in {representation}, but {source} is embedded"
        n_pcs = params.get("n_pcs")
        if n_pcs and representation in adata.obsm and int(n_pcs) != X.shape[1]:
            return (
                f"were found in {n_pcs} components (n_pcs={n_pcs}), but {X.shape[1]} are embedded"
            )
    graph_metric = _standard_name(params.get("metric", "euclidean"))
    if graph_metric != _standard_name(metric):
        return f"were found with the metric {graph_metric}, but {metric} is used here"
    degree = _degrees(graph)
    expected = int(np.ravel(params.get("n_neighbors", 1))[0]) - 1  # scanpy counts the cell itself
    if degree.min(initial=1) == 0:
        return f"leave {int((degree == 0).sum())} cells without neighbours, as if cells had been removed"
    if degree.mean() < (1 - _MAX_LOST) * expected:
        return (
            f"are {degree.mean():.1f} per cell instead of {expected}, as if cells had been removed"
        )
    if not _lengths_match(graph, X, graph_metric):
        return f"have distances that differ from those in {source}, as if it had changed"
    return ""


def _source_of(adata: AnnData, params: Mapping[str, Any]) -> str:
    """The representation in which scanpy searched for neighbours."""
    if params.get("use_rep"):
        return str(params["use_rep"])
    return "X" if params.get("n_pcs") == 0 or adata.n_vars <= _MAX_GENES_IN_X else "X_pca"


def _standard_name(metric: Any) -> Any:
    return _ALIASES.get(metric, metric) if isinstance(metric, str) else metric


def _degrees(graph: Any) -> np.ndarray:
    """Number of neighbours of each cell, not counting the cell itself."""
    entries = graph.tocoo()
    return np.bincount(entries.row[entries.row != entries.col], minlength=graph.shape[0])


def _without_loops(graph: Any) -> Any:
    """The graph with zeros on the diagonal, where rounding may have left other values."""
    if not graph.diagonal().any():
        return graph
    entries = graph.tocoo(copy=True)
    entries.data[entries.row == entries.col] = 0
    return entries.tocsr()


def _lengths_match(graph: Any, X: Any, metric: Any) -> bool:
    """Whether the entries of a graph are distances between the rows X, checked on a sample."""
    entries = graph.tocoo()
    edges = np.flatnonzero(entries.row != entries.col)
    if len(edges) > _N_EDGES:
        edges = edges[np.random.default_rng(0).choice(len(edges), _N_EDGES, replace=False)]
    name = "cityblock" if metric == "manhattan" else metric
    distance = name if callable(name) else getattr(scipy.spatial.distance, name)
    ends = (_dense(X, index[edges]) for index in (entries.row, entries.col))
    expected = np.array([float(distance(a, b)) for a, b in zip(*ends, strict=True)])
    error = np.abs(entries.data[edges] - expected)
    # Short distances have the same absolute rounding errors as longer ones, so they need a larger tolerance.
    scale = np.maximum(expected, np.median(expected))
    return bool(np.mean(error > _LENGTH_TOLERANCE * scale) <= _MAX_MISMATCHED)


def _dense(X: Any, rows: np.ndarray) -> np.ndarray:
    X_rows = X.tocsr()[rows].toarray() if scipy.sparse.issparse(X) else np.asarray(X)[rows]
    return np.asarray(X_rows, dtype=np.float64)
