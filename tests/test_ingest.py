"""New cells on the map of a reference: `mercat.tl.ingest` and `mercat.tl.model`."""

from __future__ import annotations

import io
import json

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from test_cli import call, succeed

from mercat import Mercat, tl
from mercat.metrics import angle_preservation

GENES = [f"gene{k}" for k in range(60)]


def cells(n: int = 240, seed: int = 1, kinds: int = 4) -> anndata.AnnData:
    """Cells of several types, normalised and logged."""
    rate = np.random.default_rng(0).gamma(1.0, 2.0, size=(5, 60))
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % kinds
    X = rng.poisson(rate[kind] * rng.gamma(9, 1 / 9, size=(n, 1)))
    X = np.log1p(1e2 * X / X.sum(axis=1, keepdims=True)).astype(np.float32)
    adata = anndata.AnnData(X, obs={"kind": pd.Categorical([f"kind {k}" for k in kind])})
    adata.obs_names = [f"{seed}-{k}" for k in range(n)]
    adata.var_names = GENES
    return adata


def with_pca(adata: anndata.AnnData, n: int = 12) -> anndata.AnnData:
    """Add components as sc.pp.pca does."""
    pca = PCA(n, random_state=0)
    adata.obsm["X_pca"] = pca.fit_transform(adata.X)
    adata.varm["PCs"] = pca.components_.T
    adata.uns["pca"] = {"params": {"zero_center": True, "use_highly_variable": False}}
    adata.uns["kind_colors"] = ["#ff0000", "#00ff00", "#0000ff", "#ffff00"]
    return adata


@pytest.fixture(scope="module")
def mapped() -> anndata.AnnData:
    reference = with_pca(cells())
    tl.mercat(reference)
    return reference


@pytest.fixture
def reference(mapped) -> anndata.AnnData:
    return mapped.copy()


@pytest.mark.parametrize("detail", [0, 0.3])
def test_the_model_is_kept_and_survives_a_file(detail, tmp_path):
    reference = with_pca(cells())
    rng = np.random.default_rng(0)  # which cannot be saved, like functions and graphs
    graph = NearestNeighbors(n_neighbors=9).fit(reference.obsm["X_pca"]).kneighbors_graph()
    tl.mercat(
        reference,
        detail=detail,
        random_state=rng,
        callback=lambda *_: False,
        **({"neighbors": graph} if detail else {}),
    )
    reference.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    model = tl.model(back)
    assert isinstance(model, Mercat)
    np.testing.assert_array_equal(model.embedding_, reference.obsm["X_mercat_sphere"])
    new = cells(20, seed=2).X @ reference.varm["PCs"]
    np.testing.assert_array_equal(model.transform(new), tl.model(reference).transform(new))


def test_positions_equal_those_of_the_estimator_for_the_components_of_the_reference(reference):
    query = cells(80, seed=2)
    assert tl.ingest(query, reference) is None
    components = (query.X - reference.X.mean(axis=0)) @ reference.varm["PCs"]
    np.testing.assert_allclose(query.obsm["X_pca"], components, atol=1e-5)
    model = Mercat(random_state=0).fit(reference.obsm["X_pca"])
    expected = model.transform(query.obsm["X_pca"])
    np.testing.assert_array_equal(query.obsm["X_mercat_sphere"], expected)
    assert query.obsm["X_mercat"].shape == (80, 2)
    # As well placed as the reference cells.
    of_the_map = angle_preservation(reference.obsm["X_pca"], reference.obsm["X_mercat_sphere"])
    assert angle_preservation(components, query.obsm["X_mercat_sphere"]) > of_the_map - 0.01
    assert query.uns["mercat"]["reference"]["n_obs"] == 240


def test_positions_do_not_depend_on_gene_order_or_other_cells(reference):
    query = cells(80, seed=2)
    tl.ingest(query, reference, obs={"kind": "predicted"})
    order = np.random.default_rng(3).permutation(60)
    some = cells(80, seed=2)[7:19, order].copy()
    extra = anndata.AnnData(np.ones((12, 2), np.float32), obs=some.obs)
    extra.var_names = ["other1", "other2"]
    some = anndata.concat([some, extra], axis=1, merge="first")
    tl.ingest(some, reference, obs={"kind": "predicted"})
    np.testing.assert_allclose(
        some.obsm["X_mercat_sphere"], query.obsm["X_mercat_sphere"][7:19], atol=1e-4
    )
    np.testing.assert_allclose(some.obs["mercat_fit"], query.obs["mercat_fit"][7:19])
    assert list(some.obs["predicted"]) == list(query.obs["predicted"][7:19])


def test_labels_equal_those_of_a_scikit_learn_classifier(reference):
    query = cells(80, seed=2)
    del query.obs["kind"]
    tl.ingest(query, reference, obs="kind", n_neighbors=7)
    judge = KNeighborsClassifier(7).fit(reference.obsm["X_pca"], reference.obs["kind"])
    assert list(query.obs["kind"]) == list(judge.predict(query.obsm["X_pca"]))
    np.testing.assert_allclose(
        query.obs["kind_confidence"], judge.predict_proba(query.obsm["X_pca"]).max(axis=1)
    )
    assert list(query.obs["kind"].cat.categories) == list(reference.obs["kind"].cat.categories)
    assert list(query.uns["kind_colors"]) == list(reference.uns["kind_colors"])
    tl.ingest(query, reference, obs="kind")  # again, over its own labels


def test_labels_by_hand():
    labels = pd.Categorical(["a", "b", "b", None, "a"])
    near = np.array([[0, 1, 2], [0, 1, 3], [3, 3, 0], [1, 0, 3]])
    chosen, share = tl.transfer_labels(labels, near)
    assert list(chosen)[:2] == ["b", "a"]  # the nearer one of two equally frequent labels
    assert pd.isna(chosen[2])
    assert chosen[3] == "b"
    np.testing.assert_allclose(share, [2 / 3, 1 / 3, 2 / 3, 1 / 3])


def test_fit_separates_unknown_from_known_cell_types():
    reference = with_pca(cells(), 3)  # more components would fit the noise of these few cells
    tl.mercat(reference)
    same, other = cells(200, seed=2), cells(200, seed=3, kinds=5)[4::5].copy()
    tl.ingest(same, reference)
    tl.ingest(other, reference)
    fit = np.sort(same.obs["mercat_fit"])
    assert np.abs(fit - np.linspace(0, 1, 200)).max() < 0.15  # about uniform
    assert np.median(other.obs["mercat_fit"]) < 0.02
    assert np.median(same.obs["mercat_loss"]) == pytest.approx(
        np.median(reference.obs["mercat_loss"]), rel=0.2
    )


def test_missing_genes_are_named_counted_and_set_to_the_mean(reference, caplog):
    query = cells(80, seed=2)
    less = query[:, [k for k in range(60) if k not in (3, 8)]].copy()
    tl.ingest(less, reference)
    assert "2 of the 60 genes" in caplog.text
    assert "gene3, gene8" in caplog.text
    assert list(less.uns["mercat"]["reference"]["missing_genes"]) == ["gene3", "gene8"]
    filled = cells(80, seed=2)
    filled.X[:, [3, 8]] = reference.X[:, [3, 8]].mean(axis=0)
    tl.ingest(filled, reference)
    np.testing.assert_allclose(less.obsm["X_pca"], filled.obsm["X_pca"], atol=1e-5)
    with pytest.raises(ValueError, match=r"60 genes.*got 20"):
        tl.ingest(query[:, :20].copy(), reference)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("where", ["X", "layer"])
def test_a_map_of_expression_takes_genes_by_name(make, where):
    reference, query = cells(), cells(80, seed=2)
    for adata in (reference, query):
        adata.X = make(adata.X)
        adata.layers["logged"] = adata.X
    tl.mercat(reference, **({"use_rep": "X"} if where == "X" else {"layer": "logged"}))
    order = np.random.default_rng(3).permutation(60)[:57]
    less = query[:, order].copy()
    tl.ingest(less, reference)
    X = cells(80, seed=2).X
    lacking = [k for k in range(60) if k not in order]
    X[:, lacking] = cells().X[:, lacking].mean(axis=0)
    expected = tl.model(reference).transform(make(X))
    # A point stops when it has converged; rounding of its genes moves it slightly.
    np.testing.assert_allclose(less.obsm["X_mercat_sphere"], expected, atol=1e-3)
    assert "X_pca" not in less.obsm


def test_a_shared_representation_is_used_unchanged():
    reference, query = cells(), cells(80, seed=2)
    reference.obsm["X_scVI"], query.obsm["X_scVI"] = reference.X[:, :9], query.X[:, :9]
    tl.mercat(reference, use_rep="X_scVI")
    tl.ingest(query, reference)
    expected = tl.model(reference).transform(query.X[:, :9])
    np.testing.assert_array_equal(query.obsm["X_mercat_sphere"], expected)
    query.obsm["X_scVI"] = query.X[:, :8]
    with pytest.raises(ValueError, match="9 columns"):
        tl.ingest(query, reference)
    del query.obsm["X_scVI"]
    with pytest.raises(ValueError, match=r"^query .*X_scVI"):
        tl.ingest(query, reference)


def test_a_query_with_components_of_its_own_is_refused(reference):
    query = with_pca(cells(80, seed=2))
    before = query.obsm["X_pca"].copy()
    with pytest.raises(ValueError, match="X_pca"):
        tl.ingest(query, reference)
    np.testing.assert_array_equal(query.obsm["X_pca"], before)
    assert "X_mercat" not in query.obsm
    del query.obsm["X_pca"]
    tl.ingest(query, reference)
    tl.ingest(query, reference)  # which now has the components of the reference


def test_a_reference_that_has_changed_is_refused(reference):
    reference.X = reference.X * 2
    with pytest.raises(ValueError, match=r"^reference.obsm\['X_pca'\] .*reference.X"):
        tl.ingest(cells(80, seed=2), reference)


def test_data_prepared_in_another_way_are_refused(reference, caplog):
    query = cells(80, seed=2)
    query.X = np.round(10 * query.X)
    with pytest.raises(ValueError, match=r"^query.X .*counts"):
        tl.ingest(query, reference)
    query.X = cells(80, seed=2).X - 0.5
    with pytest.raises(ValueError, match=r"^query.X .*negative"):
        tl.ingest(query, reference)
    query.X = 10 * cells(80, seed=2).X
    tl.ingest(query, reference)
    assert "totals of query.X" in caplog.text


def test_first_components_only(mapped):
    reference, query = with_pca(cells()), cells(80, seed=2)
    tl.mercat(reference, n_pcs=5)
    tl.ingest(query, reference)
    assert query.obsm["X_pca"].shape == (80, 12)
    expected = tl.model(reference).transform(query.obsm["X_pca"][:, :5])
    np.testing.assert_array_equal(query.obsm["X_mercat_sphere"], expected)


def test_other_maps_have_their_own_names():
    reference, query = with_pca(cells()), cells(80, seed=2)
    tl.mercat(reference, key_added="again", detail=0.3)
    other = tl.ingest(query, reference, basis="again", copy=True)
    assert not query.obsm
    assert set(other.obsm) == {"X_pca", "again", "again_sphere"}
    assert {"again_loss", "again_fit"} <= set(other.obs)
    assert np.isfinite(other.obs["again_loss"]).all()


def test_errors_name_parameter_rule_and_value(reference):
    query = cells(80, seed=2)
    with pytest.raises(ValueError, match=r"^obs .*'type'"):
        tl.ingest(query, reference, obs="type")
    with pytest.raises(ValueError, match=r"^obs .*query.obs"):
        tl.ingest(query, reference, obs="kind")
    with pytest.raises(ValueError, match=r"^obs .*'mercat_loss'"):
        tl.ingest(query, reference, obs=["mercat_loss"])
    with pytest.raises(ValueError, match=r"^n_neighbors .*got 0"):
        tl.ingest(query, reference, n_neighbors=0)
    with pytest.raises(TypeError, match=r"^adata "):
        tl.ingest(query.X, reference)
    del reference.uns["mercat"]["model"]
    with pytest.raises(ValueError, match=r"^reference.uns\['mercat'\] "):
        tl.ingest(query, reference)
    with pytest.raises(ValueError, match=r"mercat\.tl\.mercat"):
        tl.model(cells())
    reference.var_names = ["gene"] * 60
    reference.uns["mercat"]["model"] = np.zeros(10, np.uint8)
    with pytest.raises(ValueError, match="model file"):
        tl.model(reference)


def test_the_command_equals_the_function(tmp_path):
    reference, query = with_pca(cells()), cells(80, seed=2)[:, 2:].copy()
    del query.obs["kind"]
    reference.write_h5ad(tmp_path / "atlas.h5ad")
    query.write_h5ad(tmp_path / "new.h5ad")
    atlas, new, out = (tmp_path / name for name in ("map.h5ad", "new.h5ad", "out.h5ad"))
    succeed("embed", tmp_path / "atlas.h5ad", "-o", atlas)
    code, said, warned = call("ingest", atlas, new, "-o", out, "--transfer", "kind", "--json")
    assert code == 0, warned
    assert "2 of the 60 genes" in warned
    assert json.loads(said)["n_missing_genes"] == 2
    tl.ingest(query, anndata.read_h5ad(atlas), obs="kind")
    found = anndata.read_h5ad(out)
    np.testing.assert_array_equal(found.obsm["X_mercat_sphere"], query.obsm["X_mercat_sphere"])
    pd.testing.assert_frame_equal(found.obs, query.obs)
    assert list(found.uns["kind_colors"]) == list(reference.uns["kind_colors"])
    table = pd.read_csv(io.StringIO(succeed("ingest", atlas, new, "--transfer", "kind", "--quiet")))
    assert list(table["kind"]) == list(query.obs["kind"])
    np.testing.assert_allclose(table["mercat_fit"], query.obs["mercat_fit"])
    assert call("ingest", atlas, new, "-o", new)[0] == 4
    assert call("ingest", tmp_path / "atlas.h5ad", new)[0] == 3  # which has no map


def test_maps_of_data_prepared_by_the_command_line_have_no_model(tmp_path):
    cells().write_h5ad(tmp_path / "atlas.h5ad")
    succeed("embed", tmp_path / "atlas.h5ad", "--scale", "-o", tmp_path / "map.h5ad")
    with pytest.raises(ValueError, match=r"\(scale\)"):
        tl.model(anndata.read_h5ad(tmp_path / "map.h5ad"))
