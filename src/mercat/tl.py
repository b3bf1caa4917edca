"""Tools for AnnData, in the manner of scanpy: `mercat.tl.mercat(adata)` beside `sc.tl.umap(adata)`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import Mercat
from ._anndata import (
    KEY,
    SHORT,
    about_model,
    embedding_keys,
    representation,
    require_anndata,
    short_of,
    sphere_of,
    write_map,
)
from ._data.checks import not_finite

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["mercat"]

logger = logging.getLogger(__name__)
_FEW_GENES = 50  # up to which scanpy looks for neighbours in X itself
_GRAPH = "distances"  # where scanpy keeps who is whose neighbour


def mercat(
    adata: AnnData,
    *,
    use_rep: str | None = None,
    n_spectral: int | str | None = 50,
    detail: float = 0.0,
    random_state: Any = 0,
    key_added: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Map the cells on the unit sphere so that the angles between them are kept.

    Parameters
    ----------
    adata : AnnData
        Annotated data; in memory or backed, dense or sparse.
    use_rep : str, optional
        What to embed: ``"X"``, or a key of ``adata.obsm`` or ``adata.layers``. By default ``"X_pca"`` where
        there is one, and ``"X"`` elsewhere; which of them it was is logged and written to the parameters.
    n_spectral : int, "auto" or None, default=50
        Number of principal components of it that are kept, as in `Mercat`; all of them, where it has
        fewer columns. "auto" looks for the noise among the components, which needs ``use_rep="X"``:
        in ``X_pca`` the noise has been cut off already.
    detail : float, default=0.0
        How much neighbourhoods count beside angles, as in `Mercat`. Where ``sc.pp.neighbors`` has been run
        on what is embedded, its graph (``adata.obsp["distances"]``) is used, which is logged; pass
        `neighbors` for another.
    random_state : int, numpy Generator or RandomState, or None, default=0
        Seed.
    key_added : str, optional
        Where to write, see below: a new name, or that of a map, which is replaced.
    copy : bool, default=False
        Whether to write to a copy of `adata` and return it.
    **parameters
        Further parameters of `Mercat`, such as ``n_landmarks``, ``metric`` or ``verbose``.

    Returns
    -------
    adata : AnnData or None
        None, or the copy. These fields are written; another `key_added` than ``X_mercat`` stands in the place
        of both ``X_mercat`` and ``mercat``.

        ``adata.obsm["X_mercat"]`` : array of shape (n, 2)
            A Mercator map, for ``sc.pl.embedding(adata, "mercat")``. Points beyond a latitude
            of 85.05 degrees are laid on its edge; a warning is logged where there are any.
        ``adata.obsm["X_mercat_sphere"]`` : array of shape (n, 3)
            The unit vectors that it shows.
        ``adata.obs["mercat_loss"]`` : column of float
            The angle loss at each cell: where it is high, the map is not to be trusted.
        ``adata.uns["mercat"]`` : dict
            ``params``, ``calibration`` (alpha and beta), ``loss``, ``correlation``, ``status``, and
            ``n_beyond_map``, the number of points on the edge of the map.

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
    name = KEY if key_added is None else _checked_key(key_added, adata)
    if copy and adata.isbacked:
        raise ValueError("copy must be False for backed data, got True; use adata.to_memory().")
    source, X = _representation(adata, use_rep)
    logger.info("Embedding %s, %d x %d.", source, *X.shape)
    reused = bool(detail and "neighbors" not in parameters and _is_graph_of(adata, source))
    if reused:
        logger.info("Using the neighbours of adata.obsp[%r].", _GRAPH)
        parameters["neighbors"] = _graph(adata)
    parameters = {
        "n_spectral": n_spectral,
        "detail": detail,
        "random_state": random_state,
        **parameters,
    }
    model = Mercat(**parameters).fit(X)
    target = adata.copy() if copy else adata
    params = {"neighbors": f"adata.obsp[{_GRAPH!r}]"} if reused else {}
    about = about_model(model, use_rep=source, **params)
    n_beyond = write_map(target, model.embedding_, model.point_loss_, about, key=name)
    if n_beyond:
        logger.warning(
            "%d points are beyond a latitude of 85.05 degrees: obsm[%r] has them on its edge.",
            n_beyond,
            name,
        )
    return target if copy else None


def _is_graph_of(adata: AnnData, source: str) -> bool:
    """Whether scanpy's graph is there, and of what is embedded."""
    if not hasattr(adata.obsp.get(_GRAPH), "tocsr"):  # none, or a dense one: all are neighbours
        return False
    params = adata.uns.get("neighbors", {}).get("params")
    if params is None:  # not made by scanpy: whoever put it there knows
        return True
    components = params.get("n_pcs") != 0 and adata.n_vars > _FEW_GENES
    of = params.get("use_rep") or ("X_pca" if components else "X")  # as scanpy has it
    if of != source:
        logger.warning(
            "The neighbours of adata.obsp[%r] are those of %s, and %s is embedded: looking for others. Pass "
            "neighbors=adata.obsp[%r] if they are meant.",
            _GRAPH, of, source, _GRAPH,
        )  # fmt: skip
    return bool(of == source)


def _graph(adata: AnnData) -> Any:
    """scanpy's graph, which must still be whole."""
    graph = adata.obsp[_GRAPH]
    degree = np.diff(graph.tocsr().indptr)
    params = adata.uns.get("neighbors", {}).get("params", {})
    expected = int(np.ravel(params.get("n_neighbors", 1))[0]) - 1  # scanpy counts the cell itself
    mend = "run sc.pp.neighbors again, or pass neighbors=30"
    if len(degree) and degree.min() == 0:
        raise ValueError(
            f"adata.obsp[{_GRAPH!r}] must name a neighbour for every cell, got {int((degree == 0).sum())} "
            f"without one. If cells were left out after sc.pp.neighbors, {mend}."
        )
    if degree.mean() < 0.75 * expected:
        logger.warning(
            "adata.obsp[%r] has %.1f neighbours a cell, and was made with %d: cells were left out since. "
            "To see theirs, %s.",
            _GRAPH, degree.mean(), expected, mend,
        )  # fmt: skip
    return graph


def _checked_key(key_added: Any, adata: AnnData) -> str:
    """A name under which nothing is kept but a map."""
    if not isinstance(key_added, str) or not key_added or "/" in key_added:
        # A slash would become a group of its own in an h5ad file.
        raise ValueError(f"key_added must be a name without a slash, got {key_added!r}.")
    if key_added == SHORT:
        raise ValueError(
            f"key_added must not be {SHORT!r}, by which what stands beside {KEY!r} is called."
        )
    kept = adata.uns.get(short_of(key_added))
    there = [key in adata.obsm for key in (key_added, sphere_of(key_added))]
    old = np.shape(adata.obsm.get(key_added))[1:] == (3,)  # unit vectors of version 0.1
    for where, is_map in (
        ("obsm", old or all(there) or not any(there)),
        ("uns", kept is None or (isinstance(kept, Mapping) and "n_beyond_map" in kept)),
    ):
        if not is_map:
            raise ValueError(
                f"key_added must not be a key of what is no map, got {key_added!r}, which "
                f"adata.{where} has."
            )
    return key_added


def _representation(adata: AnnData, use_rep: str | None) -> tuple[str, Any]:
    """The name of what is embedded, and its rows in memory."""
    try:
        source, X, where = representation(adata, use_rep)
    except KeyError as error:
        or_X = "" if adata.X is None else "'X', "
        raise ValueError(
            f"use_rep must be {or_X}a key of adata.obsm {embedding_keys(adata)} or of adata.layers, got "
            f"{error}."
        ) from None
    if hasattr(X, "to_memory"):  # a sparse matrix in a file
        X = X.to_memory()
    elif not hasattr(X, "tocsr"):
        X = np.asarray(X)
    _check_finite(where, X, adata)
    return source, X


def _check_finite(name: str, X: Any, adata: AnnData) -> None:
    """Raise at the first cell with a number that is missing."""
    rows = np.unique(not_finite(X)[0])
    if len(rows) == 0:
        return
    raise ValueError(
        f"{name} must be finite, got NaN or infinity in {len(rows)} of {adata.n_obs} cells, the first of "
        f"which is {adata.obs_names[rows[0]]!r}."
    )
