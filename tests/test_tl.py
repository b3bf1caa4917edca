"""Fields of AnnData that `mercat.tl.mercat` reads and writes."""

from __future__ import annotations

import base64
import json
import logging
import re
import zlib
from functools import partial

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

import mercat
from mercat import Mercat, projections, tl
from mercat._anndata.maps import read_uncertainty, write_map
from mercat._math.sphere import from_lonlat

pytestmark = pytest.mark.usefixtures("brief_descent")


def counts(n: int = 90, n_genes: int = 30) -> np.ndarray:
    """Counts of three types of cells."""
    rng = np.random.default_rng(0)
    rate = rng.gamma(1.0, 2.0, size=(3, n_genes))
    return rng.poisson(rate[np.arange(n) % 3]).astype(np.float32)


@pytest.fixture
def adata() -> anndata.AnnData:
    X = counts()
    return anndata.AnnData(X, obsm={"X_pca": X[:, :12] - X[:, :12].mean(axis=0)})


def test_writes_the_map_of_the_estimator(adata):
    assert tl.mercat(adata) is None
    model = Mercat(random_state=0).fit(adata.obsm["X_pca"])
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], model.embedding_)
    np.testing.assert_array_equal(adata.obs["mercat_loss"], model.point_loss_)
    flat = projections.project(model.embedding_, "mercator")
    np.testing.assert_allclose(adata.obsm["X_mercat"], flat, atol=1e-6)
    about = adata.uns["mercat"]
    np.testing.assert_array_equal(about["calibration"], model.calibration_)
    assert about["loss"] == model.loss_
    assert about["correlation"] == model.correlation_
    assert about["status"] == str(model.status_)
    assert about["params"]["use_rep"] == "X_pca"
    assert about["params"]["n_spectral"] == 50
    assert about["params"]["random_state"] == 0


def test_uses_and_records_X_without_components(adata, caplog):
    caplog.set_level(logging.INFO, "mercat.tl")
    tl.mercat(adata)
    del adata.obsm["X_pca"]
    tl.mercat(adata)
    assert caplog.messages == ["Embedding X_pca, 90 x 12.", "Embedding X, 90 x 30."]
    assert adata.uns["mercat"]["params"]["use_rep"] == "X"


@pytest.mark.parametrize(
    "make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix], ids=["dense", "csr", "csc"]
)
def test_dense_sparse_and_backed_data_give_the_same_map(make, tmp_path):
    X = counts()
    expected = Mercat(random_state=0, n_spectral=10).fit_transform(make(X))
    adata = anndata.AnnData(make(X))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for data in (adata, backed):
        tl.mercat(data, n_spectral=10)
        np.testing.assert_array_equal(data.obsm["X_mercat_sphere"], expected)
    assert backed.isbacked


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_representations_other_than_arrays_are_embedded(adata, kind):
    rep = adata.obsm["X_pca"]
    columns = [f"dimension {k}" for k in range(rep.shape[1])]
    other = {
        "frame": pd.DataFrame(rep, index=adata.obs_names, columns=columns),
        "sparse": sparse.csr_matrix(rep),
    }
    adata.obsm["other"] = other[kind]
    tl.mercat(adata, use_rep="other")
    expected = Mercat(random_state=0).fit_transform(rep if kind == "frame" else other[kind])
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], expected)


def test_key_added_names_all_fields(adata):
    tl.mercat(adata, use_rep="X", key_added="again", n_landmarks=50, objective="absolute")
    assert set(adata.obsm) == {"X_pca", "again", "again_sphere"}
    assert list(adata.obs) == ["again_loss"]
    assert list(adata.uns) == ["again"]
    assert adata.uns["again"]["params"]["n_landmarks"] == 50
    np.testing.assert_array_equal(adata.uns["again"]["calibration"], [0, 1])


def with_graph(adata, k: int = 10, rep: str = "X_pca", key: str = "neighbors", **params):
    """Add a graph as sc.pp.neighbors does: distances with zeros on the diagonal, and parameters."""
    metric = params.get("metric", "euclidean")
    X = np.asarray(adata.obsm.get(rep, adata.X))[:, : params.get("n_pcs")]
    found = kneighbors_graph(X, k, mode="distance", metric=metric).tocoo()
    n = adata.n_obs
    graph = sparse.csr_matrix(
        (np.r_[found.data, np.zeros(n)], (np.r_[found.row, :n], np.r_[found.col, :n])), (n, n)
    )
    distances = "distances" if key == "neighbors" else f"{key}_distances"
    adata.obsp[distances] = graph
    adata.uns[key] = {
        "distances_key": distances,
        "params": {"n_neighbors": k + 1, "metric": metric, "use_rep": rep, **params},
    }
    return graph


def uses_graph(adata, **parameters) -> bool:
    tl.mercat(adata, detail=0.3, **parameters)
    return "neighbors" in adata.uns["mercat"]["params"]


def test_detail_uses_the_neighbours_of_scanpy(adata, caplog):
    mercat.tl.mercat(adata, detail=0.3, key_added="nearest")
    graph = with_graph(adata, 7)
    with caplog.at_level("INFO"):
        mercat.tl.mercat(adata, detail=0.3)
    assert "Using the neighbours in adata.obsp['distances']" in caplog.text
    model = Mercat(detail=0.3, neighbors=graph, random_state=0)
    np.testing.assert_array_equal(
        adata.obsm["X_mercat_sphere"], model.fit_transform(adata.obsm["X_pca"])
    )
    assert not np.array_equal(adata.obsm["X_mercat_sphere"], adata.obsm["nearest_sphere"])
    assert adata.uns["mercat"]["params"]["neighbors"] == "adata.obsp['distances']"
    assert "neighbors" not in adata.uns["nearest"]["params"]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda a: with_graph(a, rep="X_other"), "found in X_other, but X_pca is embedded"),
        (lambda a: with_graph(a, n_pcs=5), "5 components"),
        (lambda a: with_graph(a, metric="cosine"), "metric cosine"),
        (lambda a: a.obsm.update(X_pca=a.obsm["X_pca"][::-1].copy()), "distances that differ"),
        (lambda a: a.obsm.update(X_pca=a.X[:, 5:17]), "distances that differ"),
        (lambda a: a.uns.pop("neighbors") and a.obsp["distances"].data.fill(1), "that differ"),
    ],
    ids=["representation", "n_pcs", "metric", "order", "components", "foreign"],
)
def test_a_mismatched_graph_is_reported_and_not_used(adata, caplog, spoil, reason):
    adata.obsm["X_other"] = adata.X[:, 12:24]
    with_graph(adata)
    assert uses_graph(adata)
    spoil(adata)
    assert not uses_graph(adata)
    assert reason in caplog.text
    assert "searching for others" in caplog.text
    expected = Mercat(detail=0.3, random_state=0).fit_transform(adata.obsm["X_pca"])
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], expected)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")  # every 15th cell: six of one type
def test_a_graph_of_more_cells_is_reported_and_not_used(adata, caplog):
    with_graph(adata)
    assert uses_graph(adata[:-1].copy())  # one cell less removes hardly any edges
    assert not uses_graph(adata[: adata.n_obs // 2].copy())
    assert "per cell instead of 10" in caplog.text
    assert not uses_graph(adata[::15].copy())
    assert "cells without neighbours" in caplog.text


def test_a_graph_without_parameters_is_used_if_its_distances_match(adata):
    with_graph(adata)
    del adata.uns["neighbors"]
    assert uses_graph(adata)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")  # types that no edge joins
@pytest.mark.parametrize("genes", [30, 60])
def test_the_default_representation_of_scanpy_depends_on_the_number_of_genes(genes):
    X = counts(n_genes=genes)
    adata = anndata.AnnData(X, obsm={"X_pca": X[:, :12] - X[:, :12].mean(axis=0)})
    with_graph(adata, rep="X_pca" if genes > 50 else "X", use_rep=None)
    assert uses_graph(adata, use_rep="X_pca") == (genes > 50)
    assert uses_graph(adata, use_rep="X") == (genes <= 50)


def test_neighbors_key_names_the_graph(adata):
    with_graph(adata)
    graph = with_graph(adata, 5, key="five")
    tl.mercat(adata, detail=0.3, neighbors_key="five")
    assert adata.uns["mercat"]["params"]["neighbors"] == "adata.obsp['five_distances']"
    model = Mercat(detail=0.3, neighbors=graph, random_state=0)
    np.testing.assert_array_equal(
        adata.obsm["X_mercat_sphere"], model.fit_transform(adata.obsm["X_pca"])
    )
    with pytest.raises(ValueError, match=r"^neighbors_key .*five.*'six'"):
        tl.mercat(adata, detail=0.3, neighbors_key="six")
    with pytest.raises(ValueError, match=r"^neighbors_key "):
        tl.mercat(adata, detail=0.3, neighbors_key="five", use_rep="X")
    with pytest.raises(ValueError, match=r"^neighbors_key .*detail"):
        tl.mercat(adata, neighbors_key="five")
    with pytest.raises(ValueError, match=r"^neighbors_key .*detail"):
        tl.mercat(adata, detail=0.3, neighbors=5, neighbors_key="five")


def test_n_pcs_takes_the_first_components(adata, caplog):
    with_graph(adata, n_pcs=5)
    assert uses_graph(adata, n_pcs=5)
    assert adata.uns["mercat"]["params"]["n_pcs"] == 5
    tl.mercat(adata, n_pcs=5)
    first = np.ascontiguousarray(adata.obsm["X_pca"][:, :5])
    np.testing.assert_array_equal(
        adata.obsm["X_mercat_sphere"], Mercat(random_state=0).fit_transform(first)
    )
    tl.mercat(adata, n_pcs=0)
    assert adata.uns["mercat"]["params"]["use_rep"] == "X"
    for n_pcs, use_rep, rule in (
        (13, None, "12"),
        (3, "X", "adata.X"),
        (0, "X_pca", "got 0"),
        (2.5, None, "got 2.5"),
    ):
        with pytest.raises(ValueError, match=f"^n_pcs .*{rule}"):
            tl.mercat(adata, n_pcs=n_pcs, use_rep=use_rep)


def test_a_layer_is_embedded(adata):
    adata.layers["counts"] = adata.X / 2
    expected = Mercat(random_state=0).fit_transform(adata.X / 2)
    tl.mercat(adata, use_rep="counts")
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], expected)
    adata.obsm["counts"] = adata.obsm["X_pca"]  # has the name of the layer, but must not be used
    tl.mercat(adata, layer="counts")
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], expected)
    with pytest.raises(ValueError, match=r"^layer .*counts.*'raw'"):
        tl.mercat(adata, layer="raw")
    with pytest.raises(ValueError, match=r"^layer .*use_rep"):
        tl.mercat(adata, layer="counts", use_rep="X")


def test_a_layer_that_is_not_finite_is_named(adata):
    adata.layers["counts"] = np.where(adata.X > 5, np.nan, adata.X)
    with pytest.raises(ValueError, match=r"^adata.layers\['counts'\] "):
        tl.mercat(adata, use_rep="counts")


def test_use_rep_X_is_adata_X(adata):
    expected = Mercat(random_state=0).fit_transform(adata.X)
    adata.obsm["X"] = adata.obsm["X_pca"]
    tl.mercat(adata, use_rep="X")
    np.testing.assert_array_equal(adata.obsm["X_mercat_sphere"], expected)


def test_a_copy_leaves_the_original_alone(adata):
    other = tl.mercat(adata, copy=True)
    assert "X_mercat" in other.obsm
    assert list(adata.obsm) == ["X_pca"]
    assert not len(adata.obs.columns)
    assert not adata.uns


def test_fields_are_saved_in_h5ad(adata, tmp_path):
    start = np.random.default_rng(1).normal(size=(90, 3))
    rng = np.random.default_rng(2)
    tl.mercat(adata, init=start, random_state=rng, max_iter=300, callback=lambda *_: False)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(back.obsm["X_mercat_sphere"], adata.obsm["X_mercat_sphere"])
    np.testing.assert_array_equal(back.uns["mercat"]["params"]["init"], start)
    assert back.uns["mercat"]["params"]["max_iter"] == 300
    assert "random_state" not in back.uns["mercat"]["params"]
    assert back.uns["mercat"]["status"] == adata.uns["mercat"]["status"]


def test_far_points_and_poles_are_moved_into_the_margin_and_counted(adata):
    rng = np.random.default_rng(0)
    cloud = rng.uniform(-0.5, 0.5, size=(2, 1000))
    cloud[:, :6] = [[2, -2, 0, 0, 2.5, 0.3], [0, 0, 1.2, -1.2, 0, 0]]
    Y = from_lonlat(*cloud)
    Y[6:8] = [[0, 0, 1], [0, 0, -1]]
    cells = anndata.AnnData(np.zeros((1000, 1)))
    assert write_map(cells, Y, None, {}) == 7
    flat, plain = cells.obsm["X_mercat"], projections.project(Y)
    np.testing.assert_allclose(flat[8:], plain[8:], atol=1e-12)  # most points are unchanged
    low, high = np.quantile(flat, [0.01, 0.99], axis=0)
    assert (high - low >= 0.88 * np.ptp(flat, axis=0) - 1e-9).all()  # within matplotlib's margins
    for side in (0, 1):  # none overtakes another
        order = np.argsort(plain[:, side])
        assert (np.diff(flat[order, side]) > 0)[np.diff(plain[order, side]) > 0].all()
    assert cells.uns["mercat"]["n_beyond_map"] == 7
    # Another map in the same coordinates.
    few = anndata.AnnData(np.zeros((20, 1)))
    write_map(few, Y[:20], None, {}, template=cells.uns["mercat"]["map"])
    np.testing.assert_array_equal(few.obsm["X_mercat"], flat[:20])


def test_the_flat_map_is_cut_where_no_points_are():
    rng = np.random.default_rng(0)
    Y = from_lonlat(np.pi + rng.uniform(-0.5, 0.5, 300), rng.uniform(-0.3, 0.3, 300))
    cells = anndata.AnnData(np.zeros((300, 1)))
    write_map(cells, Y, None, {})
    assert (np.ptp(cells.obsm["X_mercat"], axis=0) < 1.01).all()
    assert np.abs(cells.obsm["X_mercat"].mean(axis=0)).max() < 0.1


def test_points_in_the_margin_are_logged(adata, monkeypatch, caplog):
    Y = np.array([[1.0, 0, 0], [0, 0, 1], [0, 0.6, -0.8], [0, 1e-9, -1]])
    fit = tl.Mercat.fit

    def fitted(self, X):
        fit(self, X)
        self.embedding_ = Y
        return self

    monkeypatch.setattr(tl.Mercat, "fit", fitted)
    few = adata[:4].copy()
    with caplog.at_level(logging.INFO):
        tl.mercat(few)
    assert np.isfinite(few.obsm["X_mercat"]).all()
    assert few.uns["mercat"]["n_beyond_map"] == 2
    assert "2 distant points are in the margin of obsm['X_mercat']." in caplog.messages


def test_a_failed_fit_writes_nothing(adata):
    adata.obsm["X_pca"][3, 2] = np.nan
    adata.obs_names = [f"cell {k}" for k in range(adata.n_obs)]
    message = r"^adata.obsm\['X_pca'\] .*1 of 90 .*'cell 3'"
    with pytest.raises(ValueError, match=message):
        tl.mercat(adata)
    assert list(adata.obsm) == ["X_pca"]
    assert not adata.uns


def test_sparse_data_that_are_not_finite_are_located(adata):
    X = sparse.csc_matrix(adata.X)
    X.data[X.indices == 7] = np.inf
    adata.X = X
    message = r"^adata.X .*1 of 90 .*'7'"
    with pytest.raises(ValueError, match=message):
        tl.mercat(adata, use_rep="X")


def test_errors_name_parameter_rule_and_value(adata, tmp_path):
    with pytest.raises(TypeError, match=r"^adata .*ndarray"):
        tl.mercat(adata.X)
    with pytest.raises(ValueError, match=r"^use_rep .*X_pca.*'X_scVI'"):
        tl.mercat(adata, use_rep="X_scVI")
    with pytest.raises(ValueError, match=r"^use_rep .*got 'X'"):
        tl.mercat(anndata.AnnData(obs=pd.DataFrame(index=["a", "b"])))
    for key in ("", "a/b", 3):
        with pytest.raises(ValueError, match=r"^key_added "):
            tl.mercat(adata, key_added=key)
    with pytest.raises(TypeError, match="n_neighbors"):
        tl.mercat(adata, n_neighbors=15)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"^copy .*True"):
        tl.mercat(backed, copy=True)


def test_a_map_of_version_0_1_is_replaced_completely(adata):
    tl.mercat(adata)
    expected = adata.copy()
    adata.obsm["X_mercat_map"] = adata.obsm["X_mercat"]
    adata.obsm["X_mercat"] = adata.obsm.pop("X_mercat_sphere")
    for key in (None, "X_mercat"):
        again = tl.mercat(adata, key_added=key, copy=True)
        assert set(again.obsm) == set(expected.obsm)
        np.testing.assert_array_equal(again.obsm["X_mercat"], expected.obsm["X_mercat"])


@pytest.mark.parametrize("key", ["X_pca", "pca", "mercat"])
def test_key_added_replaces_only_maps(adata, key):
    adata.uns["pca"] = {"variance": np.ones(12)}
    before = adata.copy()
    with pytest.raises(ValueError, match=rf"^key_added .*{key}"):
        tl.mercat(adata, key_added=key)
    assert adata.obsm.keys() == before.obsm.keys()
    assert adata.uns.keys() == before.uns.keys()
    tl.mercat(adata, key_added="again")
    tl.mercat(adata, key_added="again")


def test_a_dense_graph_of_neighbours_is_not_used(adata):
    adata.obsp["distances"] = np.ones((90, 90))
    tl.mercat(adata, detail=0.3)
    assert "neighbors" not in adata.uns["mercat"]["params"]


def test_a_map_without_losses_removes_old_losses(adata):
    tl.mercat(adata)
    write_map(adata, adata.obsm["X_mercat_sphere"], None, {})
    assert "mercat_loss" not in adata.obs


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_raw_counts_are_noticed(adata, form):
    adata.X = form(3 * adata.X)
    adata.layers["spliced"] = adata.X
    with pytest.warns(UserWarning, match=r"^adata.X looks like raw counts.*sc\.pp\.log1p"):
        tl.mercat(adata, use_rep="X")
    with pytest.warns(UserWarning, match=r"^adata.layers\['spliced'\] looks like raw counts"):
        tl.mercat(adata, layer="spliced")
    tl.mercat(adata)  # the user's components may be of normalised counts
    for X in (adata.X / 2, np.log1p(adata.X), -adata.X, adata.X > 0):
        tl.mercat(anndata.AnnData(form(X)))


def test_a_dominating_gene_is_named(adata):
    adata.var_names = [f"gene{k}" for k in range(adata.n_vars)]
    adata.X[:, 4] *= 1000.5  # unlike counts
    with pytest.warns(mercat.TrustWarning, match=r"'gene4' .*99%"):
        tl.mercat(adata, use_rep="X")


# ------------------------------------------------------------------ error bars


def test_a_map_without_model_or_parameters_is_refused(adata):
    tl.mercat(adata)
    kept = dict(adata.uns["mercat"])
    where = r"^adata\.uns\['mercat'\]"
    for model, rule in (
        (np.zeros(10, np.uint8), "is not a valid model file: "),
        (kept["model"][:-50], "is not a valid model file: "),
        ("none", "must be bytes, got"),
    ):
        adata.uns["mercat"] = kept | {"model": model}
        with pytest.raises(ValueError, match=rf"{where}\['model'\] {rule}") as caught:
            tl.model(adata)
        assert "tmp" not in str(caught.value)
    for params, rule in (
        ("none", r"\['params'\] must be a dict with 'use_rep', got 'none'"),
        ({}, r"\['params'\] must be a dict with 'use_rep', got {}"),
        (None, " must hold the params of the map, got none"),
    ):
        adata.uns["mercat"] = {k: v for k, v in kept.items() if k != "params"}
        adata.uns["mercat"] |= {} if params is None else {"params": params}
        with pytest.raises(ValueError, match=where + rule):
            tl.uncertainty(adata, n_maps=4)


def test_uncertainty_is_written_under_the_name_of_the_map(adata, tmp_path):
    tl.mercat(adata, key_added="X_other", n_pcs=8)
    assert tl.uncertainty(adata, basis="other", n_maps=4) is None
    rows = adata.obsm["X_pca"][:, :8]
    found = mercat.uncertainty(Mercat(random_state=0).fit(rows), rows, n_maps=4, random_state=0)
    for name, values in found.columns().items():
        np.testing.assert_array_equal(adata.obs[f"X_other_{name}"], values)
    np.testing.assert_array_equal(adata.obsm["X_other_axes"].reshape(-1, 2, 3), found.axes)
    np.testing.assert_array_equal(adata.obsm["X_other_alternative"], found.alternative)
    about = adata.uns["X_other"]["uncertainty"]
    assert (about["stability"], about["n_maps"]) == (found.stability, 4)
    np.testing.assert_array_equal(about["sizes"], found.sizes)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = read_uncertainty(anndata.read_h5ad(tmp_path / "cells.h5ad"), "X_other")
    np.testing.assert_allclose(again.spread, found.spread)
    assert (again.stability, again.n_maps) == (found.stability, 4)
    assert again.stability_by_chance == found.stability_by_chance
    np.testing.assert_array_equal(again.sizes, found.sizes)


def test_a_new_map_removes_old_error_bars(adata):
    tl.mercat(adata)
    assert read_uncertainty(adata) is None
    copy = tl.uncertainty(adata, n_maps=4, copy=True)
    assert "mercat_spread" not in adata.obs
    assert read_uncertainty(copy).n_maps == 4
    tl.mercat(copy)
    assert read_uncertainty(copy) is None
    assert not [name for name in copy.obs if name.startswith("mercat_") and name != "mercat_loss"]
    assert set(copy.obsm) == set(adata.obsm)


def test_the_explorer_shows_the_error_bars_of_a_map(adata, tmp_path):
    tl.mercat(adata)
    tl.uncertainty(adata, n_maps=4)
    path = mercat.pl.explore(adata, tmp_path / "cells.html")
    payload = base64.b64decode(re.search(r'id="mercat-payload">([^<]+)<', path.read_text())[1])
    data = zlib.decompress(payload)
    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    assert header["places"] is not None
    names = [column["name"] for column in header["columns"]]
    assert "spread (degrees)" in names
    assert "mercat_spread" not in names


def test_uncertainty_of_a_subset_of_cells_is_refused(adata):
    tl.mercat(adata)
    with pytest.raises(ValueError, match=r"90 .*50"):
        tl.uncertainty(adata[:50].copy(), n_maps=4)


def test_estimators_name_what_takes_annotated_data():
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    model = Mercat(random_state=0).fit(adata.X)
    for call in (Mercat().fit, model.transform, partial(mercat.uncertainty, model)):
        with pytest.raises(TypeError, match=r"^X must .*AnnData: .*mercat\.tl"):
            call(adata)
