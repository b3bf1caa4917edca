"""Pictures of AnnData: which values and colours reach `plot` and `viewer`."""

from __future__ import annotations

import re
import sys

import anndata
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mercat import pl, tl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex


@pytest.fixture(scope="module")
def embedded() -> anndata.AnnData:
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, size=(60, 8)).astype(np.float32)
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(["b", "a"], 60), categories=["b", "a", "never"]),
            "batch": rng.choice(["one", "two"], 60),
            "depth": X.sum(axis=1),
            "good": rng.random(60) > 0.5,
            "seen": pd.date_range("2024-01-01", periods=60),
        },
        index=[f"cell {k}" for k in range(60)],
    )
    adata = anndata.AnnData(X, obs=obs, layers={"double": 2 * X})
    adata.var_names = [f"gene{k}" for k in range(8)]
    adata.raw = anndata.AnnData(sparse.csr_matrix(10 * X), obs=obs, var=adata.var)
    tl.mercat(adata)
    return adata


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def legend(ax):
    """Names and colours of a legend."""
    drawn = ax.get_legend()
    colors = [to_hex(handle.get_color()) for handle in drawn.legend_handles]
    return dict(zip([text.get_text() for text in drawn.get_texts()], colors, strict=True))


def values_of(calls):
    return np.asarray(calls[-1][1], dtype=float)


@pytest.fixture
def calls(monkeypatch):
    """What reaches `plot.map`, which still draws."""
    made, drawn = [], pl.plot.map

    def record(Y, color=None, **options):
        made.append((Y, color, options))
        return drawn(Y, color, **options)

    monkeypatch.setattr(pl.plot, "map", record)
    return made


def test_colors_that_scanpy_keeps_are_used(embedded):
    adata = embedded.copy()
    adata.uns["kind_colors"] = np.array(["#ff0000", "#00ff00", "#0000ff"])
    assert legend(pl.map(adata, "kind")) == {"b": "#ff0000", "a": "#00ff00"}
    assert legend(pl.globe(adata, "kind")) == {"b": "#ff0000", "a": "#00ff00"}
    chosen = {"a": "black", "b": "gray"}
    assert legend(pl.map(adata, "kind", palette=chosen)) == {"b": "#808080", "a": "#000000"}


def test_genes_come_from_raw_layer_or_X_as_in_scanpy(embedded, calls):
    gene = embedded.X[:, 3]
    pl.map(embedded, "gene3")
    np.testing.assert_array_equal(values_of(calls), 10 * gene)
    pl.map(embedded, "gene3", use_raw=False)
    np.testing.assert_array_equal(values_of(calls), gene)
    pl.map(embedded, "gene3", layer="double")
    np.testing.assert_array_equal(values_of(calls), 2 * gene)
    pl.map(embedded, "depth", layer="double")  # a column is a column
    np.testing.assert_array_equal(values_of(calls), embedded.obs["depth"])
    np.testing.assert_array_equal(calls[-1][0], embedded.obsm["X_mercat_sphere"])


def test_files_of_version_0_1_are_drawn_as_before(embedded, calls, offered):
    old = embedded.copy()
    old.obsm["X_mercat_map"] = old.obsm["X_mercat"]
    old.obsm["X_mercat"] = old.obsm.pop("X_mercat_sphere")
    pl.map(old, "depth")
    np.testing.assert_array_equal(calls[-1][0], old.obsm["X_mercat"])
    pl.explore(old, "page.html")
    np.testing.assert_array_equal(offered["Y"], old.obsm["X_mercat"])
    np.testing.assert_array_equal(offered["point_loss"], old.obs["mercat_loss"])


def test_genes_of_backed_data_are_read_from_disk(embedded, tmp_path, calls):
    storable = embedded.copy()
    del storable.obs["seen"]  # anndata itself stores no dates
    storable.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    pl.map(backed, "gene3", use_raw=False)
    np.testing.assert_array_equal(values_of(calls), embedded.X[:, 3])
    assert backed.isbacked


def test_several_colors_make_several_panels(embedded):
    axes = pl.map(embedded, ["kind", "gene1", "batch"], legend=False)
    assert [ax.get_title() for ax in axes] == ["kind", "gene1", "batch"]
    axes = pl.globe(embedded, ["kind"])
    assert [ax.get_title() for ax in axes] == ["kind"]
    assert axes[0].get_legend().get_title().get_text() == ""


def test_one_map_on_given_axes(embedded):
    ax = plt.figure().add_subplot()
    assert pl.map(embedded, "kind", ax=ax) is ax
    assert pl.map(embedded, ax=ax) is ax


def test_pictures_leave_the_data_alone(embedded):
    before = embedded.copy()
    pl.map(embedded, ["kind", "gene1"])
    assert list(embedded.uns) == list(before.uns)
    pd.testing.assert_frame_equal(embedded.obs, before.obs)


def test_errors_name_parameter_rule_and_value(embedded):
    with pytest.raises(
        ValueError,
        match=r"color must be a column of adata.obs or one of the 8 genes of adata.raw, "
        r"got 'gene9' \(similar: gene",
    ):
        pl.map(embedded, "gene9")
    with pytest.raises(ValueError, match=r"keys must be a column .* genes of adata, got 'zzzz'"):
        pl.explore(embedded, keys=["zzzz"], use_raw=False)
    with pytest.raises(ValueError, match=r"layer must be one of \['double'\], got 'half'"):
        pl.map(embedded, "gene3", layer="half")
    with pytest.raises(ValueError, match="use_raw must be False where layer='double' is given"):
        pl.map(embedded, "gene3", layer="double", use_raw=True)
    with pytest.raises(ValueError, match=r"basis must name a key of .*got 'umap': run mercat.tl"):
        pl.map(embedded, basis="umap")
    flat = embedded.copy()
    flat.obsm["X_umap"] = flat.obsm["X_mercat"]
    with pytest.raises(
        ValueError, match=r"unit vectors, got 'umap', .* \(60, 2\), .* no 'X_umap_s"
    ):
        pl.globe(flat, basis="umap")
    with pytest.raises(ValueError, match="ax must be None for a list of colors"):
        pl.map(embedded, ["kind"], ax=plt.figure().add_subplot())
    with pytest.raises(ValueError, match="color must name at least one column or gene"):
        pl.map(embedded, [])
    with pytest.raises(TypeError, match="adata must be an AnnData object, got list"):
        pl.explore([])


@pytest.mark.filterwarnings("ignore:Variable names are not unique:UserWarning")
def test_names_that_occur_several_times_are_refused(embedded):
    adata = embedded.copy()
    adata.var_names = ["g", "g", *adata.var_names[2:]]
    with pytest.raises(
        ValueError,
        match=r"color must be the name of a gene that occurs once, got 'g', which occurs 2 times: "
        r"call adata.var_names_make_unique\(\) first\.",
    ):
        pl.map(adata, "g", use_raw=False)
    pl.map(adata, "gene3", use_raw=False)
    adata.raw = adata.copy()
    with pytest.raises(ValueError, match=r"keys must be .* 2 times: make the names of adata.raw"):
        pl.explore(adata, keys=["g"])
    adata.obs = adata.obs.iloc[:, [0, 0]]
    with pytest.raises(ValueError, match=r"a column of adata.obs that occurs once, got 'kind'"):
        pl.map(adata, "kind")


@pytest.fixture
def offered(monkeypatch):
    """What reaches the explorer."""
    made = {}

    def record(Y, frame, path, **options):
        made.update(Y=Y, frame=frame, path=path, **options)
        return path

    monkeypatch.setattr(pl.viewer, "to_html", record)
    return made


def test_explorer_offers_all_columns_it_can_show(embedded, offered, caplog):
    pl.explore(embedded, "cells.html", title="Cells")
    assert list(offered["frame"]) == ["kind", "batch", "depth", "good"]
    assert caplog.messages == ["Columns that cannot be shown are left out: seen."]
    np.testing.assert_array_equal(offered["point_loss"], embedded.obs["mercat_loss"])
    np.testing.assert_array_equal(offered["Y"], embedded.obsm["X_mercat_sphere"])
    assert offered["title"] == "Cells"


def test_explorer_offers_the_genes_that_are_named(embedded, offered):
    pl.explore(embedded, "cells.html", keys=["gene1", "kind", "gene1"], color="gene2")
    assert list(offered["frame"]) == ["gene2", "gene1", "kind"]
    np.testing.assert_array_equal(offered["frame"]["gene1"], 10 * embedded.X[:, 1])
    assert offered["color"] == "gene2"


def test_explorer_shows_the_colours_that_scanpy_keeps(embedded, offered):
    adata = embedded.copy()
    adata.uns["kind_colors"] = np.array(["red", "#00ff00", "#0000FF80"])
    pl.explore(adata, "cells.html", keys=["kind", "batch"])
    assert set(offered["frame"]["kind"].colors.values()) == {"#ff0000", "#00ff00", "#0000ff"}
    assert list(offered["frame"]["kind"].values) == list(adata.obs["kind"])
    assert not hasattr(offered["frame"]["batch"], "colors")


UNREAD = "which cannot be read as a colour: Mercat's own"


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        (["#ff00ff", "notacolor", "#ffaa00"], f"'notacolor', {UNREAD}"),
        (["#ff00ff", (1.0, 0.0, 0.0), "#ffaa00"], f"'(1.0, 0.0, 0.0)', {UNREAD}"),
        (["#ff00ff"], "1 of the 3 colours that the categories need: Mercat's own"),
        (7, "0 of the 3 colours"),
    ],
)
def test_stored_colours_that_do_not_fit_are_warned_of_and_left_alone(
    embedded, offered, stored, fault
):
    ours = legend(pl.map(embedded, "kind"))
    adata = embedded.copy()
    adata.uns["kind_colors"] = stored
    told = re.escape(f'uns["kind_colors"] holds {fault}')
    with pytest.warns(UserWarning, match=told) as of_map:
        assert legend(pl.map(adata, "kind")) == ours
    with pytest.warns(UserWarning, match=told) as of_page:
        pl.explore(adata, "cells.html", keys=["kind"])
    assert {warning.filename for warning in (*of_map, *of_page)} == {__file__}
    assert offered["frame"]["kind"] is adata.obs["kind"]
    pl.map(adata, "kind", palette=["red", "green", "blue"])  # then they are not asked for
    pl.map(adata, "batch")


def test_stored_colours_are_read_without_matplotlib_unless_they_are_names(
    embedded, offered, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    adata = embedded.copy()
    adata.uns["kind_colors"] = ["#ff0000", "#00ff00ff", "#0000FF"]
    pl.explore(adata, "cells.html", keys=["kind"])
    assert set(offered["frame"]["kind"].colors.values()) == {"#ff0000", "#00ff00", "#0000FF"}
    adata.uns["kind_colors"] = ["#ff0000", "red", "#0000ff"]
    with pytest.warns(UserWarning, match=f"'red', {UNREAD}"):
        pl.explore(adata, "cells.html", keys=["kind"])


def test_explorer_takes_the_loss_of_its_own_basis(embedded, offered):
    adata = embedded.copy()
    tl.mercat(adata, key_added="other", n_spectral=2)
    pl.explore(adata, "cells.html", basis="other", keys=[])
    np.testing.assert_array_equal(offered["point_loss"], adata.obs["other_loss"])


def test_explorer_in_a_notebook_selects_cells(embedded):
    explorer = pl.explore(embedded, color="kind", height=400)
    explorer.selection = [5, 2]
    assert list(embedded[explorer.selection].obs_names) == ["cell 2", "cell 5"]
