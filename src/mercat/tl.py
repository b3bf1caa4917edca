"""Tools for AnnData in the style of scanpy: `mercat.tl.mercat(adata)` is used like `sc.tl.umap(adata)`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import Mercat
from . import uncertainty as _uncertainty
from ._anndata.alignment import shared_cells, shared_labels
from ._anndata.ingest import (
    PCA,
    angle_losses,
    label_columns,
    neighborhoods,
    query_rows,
    reference_rows,
    transfer_labels,
)
from ._anndata.keys import KEY, check_key, map_of, require_anndata, short_name, sphere_key
from ._anndata.maps import describe_model, stored_model, stored_params, write_map, write_uncertainty
from ._anndata.neighbors import neighbors_graph
from ._anndata.representation import check_finite_cells, rows_to_embed, warn_of_counts
from ._data.checks import check_integer
from ._files.packed import pack
from ._solve.trust import column_names

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["ingest", "mercat", "model", "uncertainty"]

logger = logging.getLogger(__name__)


def mercat(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    n_pcs: int | None = None,
    n_spectral: int | str | None = 50,
    detail: float = 0.0,
    neighbors_key: str | None = None,
    align_to: AnnData | None = None,
    align_on: str | None = None,
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Place the cells on the unit sphere so that the angles between them are preserved.

    Normalise and log-transform counts first, with ``sc.pp.normalize_total`` and ``sc.pp.log1p``. A warning is
    issued if ``adata.X`` or the layer that is embedded looks like raw counts.

    Parameters
    ----------
    adata : AnnData
        Annotated data; in memory or backed, dense or sparse.
    use_rep : str, optional
        What to embed: ``"X"``, or a key of ``adata.obsm`` or ``adata.layers``. Default: ``"X_pca"`` if
        present, else ``"X"``. The choice is logged and stored in the parameters.
    layer : str or None, default=None
        Embed this layer of ``adata.layers`` instead of `use_rep`.
    n_pcs : int, optional
        Embed only the first `n_pcs` columns of ``X_pca``, or of the key of ``adata.obsm`` given by
        `use_rep`. 0 means ``adata.X``, as in scanpy. Default: all columns.
    n_spectral : int, "auto" or None, default=50
        Number of principal components to keep, as in `Mercat`; all if there are fewer columns. "auto"
        estimates the noise and needs ``use_rep="X"``, since ``X_pca`` contains little noise.
    detail : float, default=0.0
        Weight of neighbourhoods relative to angles, as in `Mercat`. If ``sc.pp.neighbors`` has been run on
        the embedded representation, its graph (``adata.obsp["distances"]``) is used, and this is logged.
        A graph that does not fit is ignored with a logged warning: a graph of another representation,
        number of components or metric, one that lost edges when cells were removed, or one whose distances
        are no longer those of the data. Pass `neighbors` for another graph or number.
    neighbors_key : str, optional
        Use the graph computed by ``sc.pp.neighbors(adata, key_added=neighbors_key)`` when `detail` > 0. A
        graph that does not fit is an error. Default: scanpy's default key, with a graph that does not fit
        ignored.
    align_to : AnnData or None, default=None
        Data with a map of the same name to align this map to, such as another batch, time point or
        version. Cells are matched by name; shared cells start at their positions on the other map and move
        only as far as the angles require. The map is rotated, and mirrored if needed, to match the other.
    align_on : str or None, default=None
        Column of labels in ``obs`` of both objects to align by when no cells are shared: the map is rotated
        so that the centres of the labels come close to those of `align_to`.
    random_state : int, numpy Generator or RandomState, or None, default=0
        Seed.
    key_added : str, optional
        Key under which results are stored, see below. An existing map of that name is replaced. Default:
        ``"X_mercat"`` in ``obsm`` and ``"mercat"`` elsewhere.
    copy : bool, default=False
        Whether to write to a copy of `adata` and return it.
    **parameters
        Further parameters of `Mercat`, such as ``n_landmarks``, ``metric`` or ``verbose``.

    Returns
    -------
    adata : AnnData or None
        The copy if `copy` is True, else None. The following fields are set; `key_added`, if given, replaces
        both ``X_mercat`` and ``mercat`` in their names.

        ``adata.obsm["X_mercat"]`` : array of shape (n, 2)
            Mercator map for ``sc.pl.embedding(adata, "mercat")``, cut along the meridian with the fewest
            points. The central 98 % of the points along each axis fill the map; points farther out are
            moved inwards into a margin, in unchanged order.
        ``adata.obsm["X_mercat_sphere"]`` : array of shape (n, 3)
            Unit vectors.
        ``adata.obs["mercat_loss"]`` : column of float
            Angle loss of each cell. Where it is high, the map should not be trusted.
        ``adata.uns["mercat"]`` : dict
            ``params``, ``calibration`` (alpha and beta), ``loss``, ``correlation``, ``status``; ``map``, the
            centre of the flat map and where its margin begins; ``n_beyond_map``, the number of points in
            the margin; and ``model``, the fitted model as bytes, for `mercat.tl.model` and
            `mercat.tl.ingest`. With `detail`, the model includes the components of all cells.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(100, 20)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> adata.obsm["X_mercat"].shape, adata.obsm["X_mercat_sphere"].shape
    ((100, 2), (100, 3))
    """
    require_anndata(adata)
    Mercat(**parameters)  # raises for unknown parameters before the data are read
    name = KEY if key_added is None else check_key(key_added, adata)
    _check_copy("adata", adata, copy)
    if neighbors_key is not None and (not detail or "neighbors" in parameters):
        raise ValueError(
            "neighbors_key must be None unless detail is above 0 and neighbors is not given, got "
            f"{neighbors_key!r}."
        )
    if align_to is None and align_on is not None:
        raise ValueError(f"align_on must be None without align_to, got {align_on!r}.")
    source, X = rows_to_embed(adata, use_rep, layer, n_pcs)
    logger.info("Embedding %s, %d x %d.", source, *X.shape)
    if layer is not None or source not in adata.obsm:
        warn_of_counts("adata.X" if source == "X" else f"adata.layers[{source!r}]", X)
    graph = None
    if detail and "neighbors" not in parameters:
        graph = _neighbors(adata, X, source, parameters.get("metric", "euclidean"), neighbors_key)
    if graph is not None:
        parameters["neighbors"] = graph[1]
    parameters = {
        "n_spectral": n_spectral,
        "detail": detail,
        "random_state": random_state,
        **parameters,
    }
    is_expression = X.shape[1] == adata.n_vars and source not in adata.obsm
    anchors = None if align_to is None or align_on else shared_cells(adata, align_to, name)
    with column_names([str(name) for name in adata.var_names] if is_expression else None):
        fitted = Mercat(**parameters).fit(X, **({} if anchors is None else {"align_to": anchors}))
    if align_to is not None and align_on:
        fitted.turn(*shared_labels(fitted.embedding_, adata, align_to, align_on, name))
    target = adata.copy() if copy else adata
    entry = describe_model(
        fitted,
        use_rep=source,
        **({} if layer is None else {"layer": layer}),
        **({} if not n_pcs else {"n_pcs": n_pcs}),
        **({} if graph is None else {"neighbors": graph[0]}),
    )
    if not callable(fitted.metric):  # a file cannot store a function
        entry["model"] = pack(fitted)
    template = None if align_to is None else align_to.uns[short_name(name)].get("map")
    _write(target, fitted.embedding_, fitted.point_loss_, entry, name, template=template)
    return target if copy else None


def model(adata: AnnData, *, basis: str = "mercat") -> Mercat:
    """Return the model fitted by `mercat.tl.mercat`.

    The model is stored in ``adata.uns``, and therefore in files of `adata`, and is read as safely as by
    `mercat.load`. Its `transform` takes rows of the embedded representation; `mercat.tl.ingest` computes
    such rows for new cells.

    Parameters
    ----------
    adata : AnnData
        Annotated data with a map.
    basis : str, default="mercat"
        Key of the map in ``adata.obsm``, with or without its ``X_``.

    Returns
    -------
    model : Mercat
        The fitted model.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(100, 20)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> mercat.tl.model(adata).transform(X[:2]).shape
    (2, 3)
    """
    require_anndata(adata)
    return stored_model(adata, map_of(adata, sphere_key(adata, basis)), "adata")


def uncertainty(
    adata: AnnData,
    *,
    basis: str = "mercat",
    n_maps: int = 20,
    random_state: Any = 0,
    copy: bool = False,
) -> AnnData | None:
    """Estimate how far the position of each cell can be trusted, from other maps of the same cells.

    See :func:`mercat.uncertainty`.

    Parameters
    ----------
    adata : AnnData
        Annotated data with a map of all its cells by `mercat.tl.mercat`.
    basis : str, default="mercat"
        Key of the map in ``adata.obsm``, with or without its ``X_``.
    n_maps : int, default=20
        Number of other maps.
    random_state : int, numpy Generator or RandomState, or None, default=0
        Seed.
    copy : bool, default=False
        Whether to write to a copy of `adata` and return it.

    Returns
    -------
    adata : AnnData or None
        The copy if `copy` is True, else None. The following fields are set, under the name of the map:

        ``adata.obs["mercat_spread"]`` : column of float
            Root mean square distance, in radians, between the positions of a cell on this and other maps.
        ``adata.obs["mercat_torn"]``, ``adata.obs["mercat_p_value"]`` : columns of float
            Fraction of the cell's nearest neighbours in the data that are far away on the map, and the cell's
            p-value against permuted data.
        ``adata.obs["mercat_alternative_wins"]``, ``adata.obs["mercat_alternative_gap"]`` : columns of float
            Fraction of the other maps on which the cell is at its alternative position, and how much worse
            its angles fit there.
        ``adata.obsm["X_mercat_alternative"]`` : array of shape (n, 3)
            The alternative position, or NaN.
        ``adata.obsm["X_mercat_axes"]`` : array of shape (n, 6)
            The two axes of each cell's ellipse, each a vector of three numbers.
        ``adata.uns["mercat"]["uncertainty"]`` : dict
            ``stability``, ``stability_by_chance``, ``n_maps``, ``n_comparisons`` and ``sizes``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> X = np.random.default_rng(0).poisson(1.0, size=(100, 20)).astype("float32")
    >>> adata = anndata.AnnData(X)
    >>> mercat.tl.mercat(adata)
    >>> mercat.tl.uncertainty(adata, n_maps=4)
    >>> bool((adata.obs["mercat_spread"] > 0).all())
    True
    """
    require_anndata(adata)
    _check_copy("adata", adata, copy)
    key = map_of(adata, sphere_key(adata, basis))
    fitted = stored_model(adata, key, "adata")
    params = stored_params(adata, key, "adata")
    result = _uncertainty(
        fitted, reference_rows(adata, params), n_maps=n_maps, random_state=random_state
    )
    target = adata.copy() if copy else adata
    write_uncertainty(target, result, key)
    return target if copy else None


def ingest(
    query: AnnData,
    reference: AnnData,
    *,
    obs: str | Sequence[str] | Mapping[str, str] | None = None,
    basis: str = "mercat",
    n_neighbors: int = 15,
    copy: bool = False,
) -> AnnData | None:
    """Place new cells on the map of a reference, as `sc.tl.ingest` does with UMAP.

    The query is converted to the representation of the reference's map. For ``X_pca``, its expression is
    centred by the reference's means and projected on the reference's axes. Genes are matched by name; missing
    genes are set to their mean, and an error is raised if more than half are missing. Each cell is placed
    independently of the other cells.

    Normalise, log-transform and scale the query like the reference first. An error is raised if only one of
    the two contains counts or negative values, and a warning if the totals per cell are very different.

    Parameters
    ----------
    query : AnnData
        New cells.
    reference : AnnData
        Cells with a map by `mercat.tl.mercat` of ``X_pca``, ``X`` or a layer. If the map is of another
        representation, such as scVI's, the query must have the same representation under the same key.
    obs : str, list of str, dict or None, default=None
        Columns of ``reference.obs`` whose labels are transferred by majority vote among the nearest
        reference cells in the data. A dict maps them to names of new columns, as in
        ``{"cell_type": "predicted"}``.
    basis : str, default="mercat"
        Key of the reference's map in ``obsm``, with or without its ``X_``.
    n_neighbors : int, default=15
        Number of nearest reference cells used for labels and fit.
    copy : bool, default=False
        Whether to write to a copy of `query` and return it.

    Returns
    -------
    query : AnnData or None
        The copy if `copy` is True, else None. The following fields are set, under the names of the
        reference's map:

        ``query.obsm["X_mercat"]``, ``query.obsm["X_mercat_sphere"]``
            Flat map and unit vectors.
        ``query.obsm["X_pca"]``
            Principal components, if the reference's map is of principal components.
        ``query.obs["mercat_loss"]`` : column of float
            Angle loss of each cell, comparable to that of the reference.
        ``query.obs["mercat_fit"]`` : column of float in (0, 1]
            How well a cell fits among the reference cells: the fraction of them that are at least as far
            from their nearest neighbours. About uniform for cells of known kinds, near 0 for cells unlike
            any reference cell.
        ``query.obs[name]``, ``query.obs[f"{name}_confidence"]``
            For each column of `obs`, the label and the fraction of the neighbours that have it.
        ``query.uns["mercat"]`` : dict
            ``params`` of the reference's map, and ``reference`` with ``n_obs``, ``n_neighbors`` and
            ``missing_genes``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> import mercat
    >>> rng = np.random.default_rng(0)
    >>> kind = np.arange(120) % 3
    >>> X = np.log1p(rng.poisson(rng.gamma(1.0, 2.0, size=(3, 20))[kind])).astype("float32")
    >>> adata = anndata.AnnData(X, obs={"kind": kind.astype(str)})
    >>> reference, query = adata[:90].copy(), adata[90:].copy()
    >>> mercat.tl.mercat(reference)
    >>> mercat.tl.ingest(query, reference, obs={"kind": "predicted"})
    >>> float((query.obs["predicted"] == query.obs["kind"]).mean())
    1.0
    """
    require_anndata(query)
    require_anndata(reference)
    _check_copy("query", query, copy)
    check_integer("n_neighbors", n_neighbors, 1)
    columns = label_columns(obs, query, reference)
    key = map_of(reference, sphere_key(reference, basis))
    fitted = stored_model(reference, key, "reference")
    params = stored_params(reference, key, "reference")
    if key not in query.obsm:
        check_key(key, query)
    cells = query_rows(query, reference, params)
    check_finite_cells("query's representation", cells.X, query)
    Y = fitted.transform(cells.X)
    neighbors = neighborhoods(fitted, reference_rows(reference, params), cells.X, n_neighbors)
    losses = angle_losses(fitted, cells.X, Y)
    target = query.copy() if copy else query
    if params["use_rep"] == PCA:
        target.obsm[PCA] = cells.components
    entry = {
        "params": dict(params),
        "calibration": np.array(fitted.calibration_),
        "reference": {
            "n_obs": reference.n_obs,
            "n_neighbors": neighbors.indices.shape[1],
            "missing_genes": np.array(cells.missing, dtype=str),
        },
    }
    _write(target, Y, losses, entry, key, reference.uns[short_name(key)].get("map"))
    target.obs[f"{short_name(key)}_fit"] = neighbors.fit
    for name, new_name in columns.items():
        target.obs[new_name], target.obs[f"{new_name}_confidence"] = transfer_labels(
            reference.obs[name], neighbors.indices
        )
        if f"{name}_colors" in reference.uns:
            target.uns[f"{new_name}_colors"] = reference.uns[f"{name}_colors"]
    return target if copy else None


def _check_copy(name: str, adata: AnnData, copy: bool) -> None:
    if copy and adata.isbacked:
        raise ValueError(f"copy must be False for backed data, got True; use {name}.to_memory().")


def _write(
    adata: AnnData,
    Y: np.ndarray,
    loss: np.ndarray,
    entry: dict[str, Any],
    key: str,
    template: Mapping[str, Any] | None = None,
) -> None:
    """Write a map and log how many points are in its margin; `template` is as in `write_map`."""
    n_beyond = write_map(adata, Y, loss, entry, key=key, template=template)
    if n_beyond:
        logger.info("%d distant points are in the margin of obsm[%r].", n_beyond, key)


def _neighbors(
    adata: AnnData, X: Any, source: str, metric: Any, neighbors_key: str | None
) -> tuple[str, Any] | None:
    """Key and matrix of scanpy's graph if it fits the embedded representation, else None."""
    graph = neighbors_graph(adata, X, source, metric, neighbors_key)
    if graph is None:
        return None
    where = f"adata.obsp[{graph.key!r}]"
    if not graph.misfit:
        logger.info("Using the neighbours in %s.", where)
        return where, graph.matrix
    advice = f"run sc.pp.neighbors again, or pass neighbors={where} to use it anyway"
    if neighbors_key is not None:
        raise ValueError(
            f"neighbors_key must name neighbours in the embedded data, got {neighbors_key!r}: those in "
            f"{where} {graph.misfit}. To use a graph, {advice}."
        )
    logger.warning(
        "The neighbours in %s %s: searching for others. To use a graph, %s.",
        where, graph.misfit, advice,
    )  # fmt: skip
    return None
