"""Figures of AnnData: values and colours of maps and explorers, and parameters of scanpy."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib

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
    adata.var["symbol"] = ["TWICE", "TWICE", *(f"SYMBOL{k}" for k in range(2, 7)), None]
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
    return calls[-1][1].values


@pytest.fixture
def calls(monkeypatch):
    """Record the arguments of `draw_map`, which still draws."""
    made, drawn = [], pl.draw_map

    def record(Y, shades, style, **options):
        made.append((Y, shades, style, options))
        return drawn(Y, shades, style, **options)

    monkeypatch.setattr(pl, "draw_map", record)
    return made


def test_colors_stored_by_scanpy_are_used(embedded):
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
    pl.map(embedded, "depth", layer="double")  # `layer` affects genes only
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
    axes = pl.map(embedded, ["kind", "gene1", "batch"], legend_loc=None)
    assert [ax.get_title() for ax in axes] == ["kind", "gene1", "batch"]
    axes = pl.globe(embedded, ["kind"])
    assert [ax.get_title() for ax in axes] == ["kind"]
    assert axes[0].get_legend().get_title().get_text() == ""


def test_one_map_on_given_axes(embedded):
    ax = plt.figure().add_subplot()
    assert pl.map(embedded, "kind", ax=ax) is ax
    assert pl.map(embedded, ax=ax) is ax


def test_plots_change_only_palettes_of_the_data(embedded):
    adata = embedded.copy()
    adata.uns.pop("kind_colors", None)
    before = adata.copy()
    pl.map(adata, ["kind", "gene1", "batch"])
    assert set(adata.uns) == {*before.uns, "kind_colors"}
    pd.testing.assert_frame_equal(adata.obs, before.obs)


def test_palettes_are_stored_as_in_scanpy(embedded):
    adata = embedded.copy()
    adata.uns.pop("kind_colors", None)
    first = legend(pl.map(adata, "kind"))
    assert len(adata.uns["kind_colors"]) == 3  # one is for the category without cells
    assert [first["b"], first["a"]] == adata.uns["kind_colors"][:2]
    pl.map(adata, "kind", palette=["red", "lime", "blue"])
    assert adata.uns["kind_colors"] == ["#ff0000", "#00ff00", "#0000ff"]
    assert legend(pl.globe(adata, "kind")) == {"b": "#ff0000", "a": "#00ff00"}
    view = embedded[:30]
    pl.map(view, "kind", palette=["red", "lime", "blue"])
    assert view.is_view  # writing the palette to it would have copied it


def test_several_panels_have_separate_legends_and_no_stretch_scale(embedded, calls):
    axes = pl.map(
        embedded, ["kind", None, "gene1", "batch"], ncols=2, layer=[None, None, "double", None]
    )
    assert [ax.get_title() for ax in axes] == ["kind", "", "gene1", "batch"]
    assert [ax.get_legend() is not None for ax in axes] == [True, False, False, True]
    assert [bar is not None for bar in map(colorbar, axes)] == [False, False, True, False]
    np.testing.assert_array_equal(calls[-2][1].values, 2 * embedded[:, "gene1"].X.ravel())
    stretched = [any(child.get_ylabel() == "stretch" for child in ax.child_axes) for ax in axes]
    assert stretched == [False, False, False, False]
    rows = {round(ax.get_subplotspec().rowspan.start) for ax in axes}
    assert rows == {0, 1}


def colorbar(ax):
    """The colour bar of a panel, if it has one."""
    bars = [child for child in ax.child_axes if hasattr(child, "_colorbar")]
    return bars[0] if bars else None


def test_limits_of_the_scale_are_numbers_percentiles_or_functions(embedded, calls):
    gene = 10 * embedded[:, "gene3"].X.ravel()
    pl.map(embedded, "gene3", vmin=1, vmax="p90", vcenter=lambda values: 5.0, color_map="magma")
    shades = calls[-1][1]
    assert shades.limits == (1, np.percentile(gene, 90))
    assert shades.center == 5
    assert shades.cmap.name == "magma"
    middle = shades.mappable().to_rgba([5.0])[0]
    np.testing.assert_allclose(middle, mpl.colormaps["magma"](0.5), atol=0.01)
    pl.map(embedded, ["gene3", "gene4"], vmax=["p50", 7])
    assert [call[1].limits[1] for call in calls[-2:]] == [np.percentile(gene, 50), 7]
    silent = embedded.copy()
    silent.layers["none"] = np.zeros(silent.shape)
    pl.map(silent, "gene3", layer="none", vmax="p99")  # a gene that is not expressed
    low, high = calls[-1][1].limits
    assert low < high


def test_groups_and_masked_cells_are_highlighted(embedded, calls):
    is_a = (embedded.obs["kind"] == "a").to_numpy()
    ax = pl.map(embedded, "kind", groups="a", na_color="#123456")
    assert list(legend(ax)) == ["a", f"other ({(~is_a).sum()})"]
    assert legend(ax)[f"other ({(~is_a).sum()})"] == "#123456"
    drawn = ax.collections[0].get_facecolor()
    np.testing.assert_allclose(
        drawn[: (~is_a).sum(), :3], [[0x12 / 255, 0x34 / 255, 0x56 / 255]] * (~is_a).sum()
    )
    for mask in (is_a, "is_a"):
        adata = embedded.copy()
        adata.obs["is_a"] = is_a
        pl.map(adata, "gene3", mask_obs=mask)
        np.testing.assert_array_equal(calls[-1][1].missing, ~is_a)
        pl.map(adata, "batch", mask_obs=mask)
        np.testing.assert_array_equal(calls[-1][1].missing, ~is_a)


@pytest.mark.parametrize("sort_order", [True, False])
def test_cells_with_high_values_are_drawn_last_and_bright(embedded, sort_order):
    ax = pl.map(embedded, "gene3", sort_order=sort_order, use_raw=False)
    rgba = ax.collections[0].get_facecolor()
    assert (rgba[:, 3] == 1).all()  # as in scanpy's plots
    values = embedded[:, "gene3"].X.ravel()
    expected = mpl.colormaps["viridis"]((np.sort(values) - values.min()) / np.ptp(values))
    assert np.allclose(rgba, expected) == sort_order


def test_default_point_size_equals_that_of_scanpy(embedded):
    for options, area in (({}, 36), ({"s": 120}, 30), ({"size": 120}, 30)):
        ax = pl.map(embedded, "gene3", **options)
        np.testing.assert_allclose(ax.collections[0].get_sizes(), area)
    many = anndata.AnnData(
        np.zeros((3000, 1)), obsm={"X_mercat_sphere": np.tile([[1.0, 0, 0]], (3000, 1))}
    )
    with mpl.rc_context({"figure.figsize": (6.4, 4.80001)}):
        np.testing.assert_allclose(pl.map(many).collections[0].get_sizes(), 10, rtol=1e-4)


def test_legend_location_is_used(embedded):
    ax = pl.map(embedded, "kind", legend_loc="on data", legend_fontsize=15)
    assert ax.get_legend() is None
    written = {text.get_text(): text.get_fontsize() for text in ax.texts if text.get_text()}
    assert written == {"a": 15, "b": 15}
    ax = pl.map(embedded, "kind", legend_loc="upper left", legend_fontsize=15)
    ax.figure.canvas.draw()
    box, inside = ax.get_legend().get_window_extent(), ax.bbox
    assert inside.x0 <= box.x0 < box.x1 <= inside.x1
    assert {text.get_fontsize() for text in ax.get_legend().get_texts()} == {15}
    for nowhere in (None, "none"):
        assert pl.map(embedded, "kind", legend_loc=nowhere).get_legend() is None


def test_names_have_the_given_weight_and_outline(embedded):
    ax = pl.map(
        embedded, "kind", legend_loc="on data", legend_fontweight="light", legend_fontoutline=4
    )
    names = [text for text in ax.texts if text.get_text()]
    assert {text.get_fontweight() for text in names} == {"light"}
    assert {text.get_path_effects()[0]._gc["linewidth"] for text in names} == {4}
    ax = pl.map(embedded, "kind", legend_fontweight="bold")
    assert {text.get_fontweight() for text in ax.get_legend().get_texts()} == {"bold"}


def test_colour_bars_are_left_out_on_request(embedded):
    one, none = (
        len(pl.map(embedded, "gene3", colorbar_loc=loc).child_axes) for loc in ("right", None)
    )
    assert one == none + 1
    assert legend(pl.map(embedded, "kind", colorbar_loc=None))  # None affects colour bars only


def test_genes_are_found_by_their_symbols(embedded, calls, offered):
    adata = embedded.copy()
    pl.map(adata, "SYMBOL3", gene_symbols="symbol", use_raw=False)
    np.testing.assert_array_equal(values_of(calls), adata.X[:, 3])
    assert pl.map(adata, "SYMBOL3", gene_symbols="symbol").get_title() == "SYMBOL3"
    np.testing.assert_array_equal(values_of(calls), 10 * adata.X[:, 3])  # of adata.raw
    for name in ("gene3", "gene7"):  # names are understood too, and gene7 has no symbol
        pl.map(adata, name, gene_symbols="symbol", use_raw=False)
        np.testing.assert_array_equal(values_of(calls), adata.X[:, int(name[-1])])
    with pytest.raises(ValueError, match=r"'TWICE'.*2 times"):
        pl.map(adata, "TWICE", gene_symbols="symbol")
    pl.explore(adata, "cells.html", keys=["SYMBOL3"], genes=8, gene_symbols="symbol")
    assert list(offered["frame"]) == ["SYMBOL3"]
    shown = ["TWICE (gene0)", "TWICE (gene1)", *(f"SYMBOL{k}" for k in range(2, 7)), "gene7"]
    assert offered["genes"][1] == shown
    pl.explore(adata, "cells.html", genes=["SYMBOL5", "gene2"], gene_symbols="symbol")
    assert offered["genes"][1] == ["SYMBOL5", "SYMBOL2"]


def test_titles_frames_and_outlines(embedded):
    assert pl.map(embedded, "kind", title="Cells").get_title() == "Cells"
    axes = pl.map(embedded, ["kind", "gene1"], title=["one", "two"])
    assert [ax.get_title() for ax in axes] == ["one", "two"]
    bare = pl.map(embedded, "kind", frameon=False)
    assert not any(spine.get_visible() for spine in bare.spines.values())
    assert len(bare.get_xticks()) == len(bare.get_yticks()) == len(bare.lines) == 0
    outlined = pl.map(embedded, "kind", add_outline=True)
    black, white, points = outlined.collections
    assert black.get_sizes()[0] > white.get_sizes()[0] > points.get_sizes()[0]
    np.testing.assert_array_equal(np.sort(black.get_offsets()), np.sort(points.get_offsets()))


def test_figures_are_shown_saved_and_returned(embedded, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(True))
    monkeypatch.chdir(tmp_path)
    assert pl.map(embedded, "kind", show=True) is None
    assert shown == [True]
    figure = pl.map(embedded, ["kind", "gene1"], return_fig=True)
    assert isinstance(figure, mpl.figure.Figure)
    monkeypatch.setitem(sys.modules, "scanpy", None)
    pl.map(embedded, "kind", save="_kinds.png")
    pl.globe(embedded, "kind", save=True)
    pl.map(embedded, "kind", save=tmp_path / "mine.svg")
    assert (tmp_path / "figures" / "mercat_kinds.png").stat().st_size > 1000
    assert (tmp_path / "figures" / "mercat.pdf").exists()
    assert (tmp_path / "mine.svg").exists()


def test_settings_of_scanpy_are_used(embedded, tmp_path):
    sc = pytest.importorskip("scanpy")
    with mpl.rc_context():
        before = sc.settings._frameon, sc.settings.figdir, sc.settings.file_format_figs
        try:
            sc.set_figure_params(figsize=(3, 4), frameon=False, color_map="cividis", format="svg")
            sc.settings.figdir = tmp_path
            ax = pl.map(embedded, "gene3")
            assert tuple(ax.figure.get_size_inches()) == (3, 4)
            assert not any(spine.get_visible() for spine in ax.spines.values())
            rgba = ax.collections[0].get_facecolor()
            np.testing.assert_allclose(rgba[-1], mpl.colormaps["cividis"](1.0))
            axes = pl.map(embedded, ["gene3", "kind"], save="_two")
            assert tuple(axes[0].figure.get_size_inches()) == (6, 4)
            assert (tmp_path / "mercat_two.svg").exists()
        finally:
            sc.settings._frameon, sc.settings.figdir, sc.settings.file_format_figs = before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": "1,2"}, "^components "),
        ({"legend_loc": "beneath"}, "^legend_loc .*beneath"),
        ({"vmin": "low"}, "^vmin .*low"),
        ({"vmin": 3, "vmax": 1}, "^vmin .*vmax.*3 and 1"),
        ({"vcenter": 1e6}, "^vcenter "),
        ({"mask_obs": "nowhere"}, "^mask_obs .*nowhere"),
        ({"mask_obs": [True]}, "^mask_obs .*60"),
        ({"na_color": "nope"}, "^na_color .*nope"),
        ({"size": -1}, "^size .*-1"),
        ({"size": "big"}, "^size .*big"),
        ({"alpha": "half"}, "^alpha .*half"),
        ({"legend_fontoutline": 0}, "^legend_fontoutline .*0"),
        ({"colorbar_loc": "left"}, "^colorbar_loc .*left"),
        ({"gene_symbols": "name"}, r"^gene_symbols .*\(symbol\)"),
        ({"size": 1, "s": 1}, "^size and s "),
        ({"cmap": "magma", "color_map": "magma"}, "^cmap and color_map "),
        ({"ncols": 0}, "^ncols .*0"),
        ({"title": ["a", "b"]}, "^title "),
    ],
)
def test_unsupported_options_of_scanpy_are_refused(embedded, options, message):
    with pytest.raises(ValueError, match=message):
        pl.map(embedded, "gene3", **options)
    with pytest.raises(ValueError, match=r"^groups "):
        pl.map(embedded, "kind", groups=["c"])


def test_errors_name_parameter_rule_and_value(embedded):
    with pytest.raises(
        ValueError,
        match=r"^color .*'gene9'.*gene",
    ):
        pl.map(embedded, "gene9")
    with pytest.raises(ValueError, match=r"^keys .*'zzzz'"):
        pl.explore(embedded, keys=["zzzz"], use_raw=False)
    with pytest.raises(ValueError, match=r"^layer .*double.*'half'"):
        pl.map(embedded, "gene3", layer="half")
    with pytest.raises(ValueError, match=r"^use_raw .*layer='double'"):
        pl.map(embedded, "gene3", layer="double", use_raw=True)
    with pytest.raises(ValueError, match=r"^basis .*'umap'.*mercat\.tl"):
        pl.map(embedded, basis="umap")
    flat = embedded.copy()
    flat.obsm["X_umap"] = flat.obsm["X_mercat"]
    with pytest.raises(ValueError, match=r"^basis .*'umap'.*\(60, 2\)"):
        pl.globe(flat, basis="umap")
    with pytest.raises(ValueError, match=r"^ax "):
        pl.map(embedded, ["kind"], ax=plt.figure().add_subplot())
    with pytest.raises(ValueError, match=r"^color "):
        pl.map(embedded, [])
    with pytest.raises(TypeError, match=r"^adata .*list"):
        pl.explore([])


@pytest.mark.filterwarnings("ignore:Variable names are not unique:UserWarning")
def test_names_that_occur_several_times_are_refused(embedded):
    adata = embedded.copy()
    adata.var_names = ["g", "g", *adata.var_names[2:]]
    with pytest.raises(
        ValueError,
        match=r"^color .*'g'.*2 times.*var_names_make_unique",
    ):
        pl.map(adata, "g", use_raw=False)
    pl.map(adata, "gene3", use_raw=False)
    adata.raw = adata.copy()
    with pytest.raises(ValueError, match=r"^keys .*2 times.*adata\.raw"):
        pl.explore(adata, keys=["g"])
    adata.obs = adata.obs.iloc[:, [0, 0]]
    with pytest.raises(ValueError, match="'kind'"):
        pl.map(adata, "kind")


@pytest.mark.filterwarnings("ignore:Variable names are not unique:UserWarning")
def test_genes_with_duplicate_names_are_refused(embedded, offered):
    adata = embedded.copy()
    adata.var_names = ["g", "g", *adata.var_names[2:]]
    with pytest.raises(
        ValueError, match=r"genes must .* 2 times: call adata.var_names_make_unique"
    ):
        pl.explore(adata, "cells.html", genes=8, use_raw=False)


def test_titles_of_panels_are_shortened_column_names(embedded):
    adata = embedded.copy()
    adata.obs["depth" * 100] = adata.obs["depth"]
    assert len(pl.map(adata, "depth" * 100).get_title()) == 60
    assert pl.map(adata, "depth", title="t" * 100).get_title() == "t" * 100


@pytest.fixture
def offered(monkeypatch):
    """Record the arguments of the explorer."""
    made = {}

    def record(Y, frame, path, **options):
        made.update(Y=Y, frame=frame, path=path, **options)
        return path

    monkeypatch.setattr(pl.viewer, "to_html", record)
    return made


def test_explorer_offers_all_columns_it_can_show(embedded, offered, caplog):
    embedded = embedded.copy()
    embedded.obs["since"] = embedded.obs["seen"] - embedded.obs["seen"].iloc[0]
    embedded.obs["mixed"] = ["a", 1] * 30
    embedded.obs["long"] = 2**60
    pl.explore(embedded, "cells.html", title="Cells")
    assert list(offered["frame"]) == ["cell", "kind", "batch", "depth", "good", "seen"]
    assert caplog.messages == ["Columns that cannot be shown are left out: since, mixed, long."]
    np.testing.assert_array_equal(offered["point_loss"], embedded.obs["mercat_loss"])
    np.testing.assert_array_equal(offered["Y"], embedded.obsm["X_mercat_sphere"])
    assert offered["title"] == "Cells"


def test_explorer_shows_names_of_cells(embedded, offered):
    pl.explore(embedded, "cells.html")
    np.testing.assert_array_equal(offered["frame"]["cell"], embedded.obs_names)
    adata = embedded.copy()
    adata.obs["cell"] = 1
    adata.obs_names.name = "barcode"
    pl.explore(adata, "cells.html")
    np.testing.assert_array_equal(offered["frame"]["barcode"], embedded.obs_names)
    assert list(offered["frame"]["cell"]) == [1] * 60
    pl.explore(adata, "cells.html", keys=["kind"])
    assert list(offered["frame"]) == ["kind"]
    adata.obs_names = [str(row) for row in range(60)]
    pl.explore(adata, "cells.html")
    assert "barcode" not in offered["frame"]


def test_explorer_includes_genes_from_raw_layer_or_X(embedded, offered):
    def shipped(**options):
        pl.explore(embedded, "cells.html", **options)
        matrix, names = offered.pop("genes")
        return names, matrix.toarray() if sparse.issparse(matrix) else matrix

    X = embedded.X
    for options, factor in (({}, 10), ({"use_raw": False}, 1), ({"layer": "double"}, 2)):
        names, matrix = shipped(genes=["gene5", "gene1", "gene5"], **options)
        assert names == ["gene5", "gene1"]
        np.testing.assert_array_equal(matrix, factor * X[:, [5, 1]])
    greatest = sorted(np.argsort(-X.var(axis=0))[:3])
    assert shipped(genes=3)[0] == [f"gene{k}" for k in greatest]
    assert shipped(genes=3, layer="double")[0] == [f"gene{k}" for k in greatest]
    marked = embedded.copy()
    marked.raw = None
    marked.var["highly_variable"] = np.arange(8) < 2
    pl.explore(marked, "cells.html", genes=5)
    assert offered["genes"][1] == ["gene0", "gene1"]


@pytest.mark.parametrize(
    ("genes", "message"),
    [
        (["gene99"], "^genes .*'gene99'.*gene"),
        (0, "^genes .*got 0"),
        ("gene1", "^genes .*got 'gene1'"),
    ],
)
def test_genes_that_are_not_there_are_refused(embedded, genes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pl.explore(embedded, "cells.html", genes=genes)


def test_explorer_offers_named_genes(embedded, offered):
    pl.explore(embedded, "cells.html", keys=["gene1", "kind", "gene1"], color="gene2")
    assert list(offered["frame"]) == ["gene2", "gene1", "kind"]
    np.testing.assert_array_equal(offered["frame"]["gene1"], 10 * embedded.X[:, 1])
    assert offered["color"] == "gene2"


def test_explorer_shows_colours_stored_by_scanpy(embedded, offered):
    adata = embedded.copy()
    adata.uns["kind_colors"] = np.array(["red", "#00ff00", "#0000FF80"])
    pl.explore(adata, "cells.html", keys=["kind", "batch"])
    assert set(offered["frame"]["kind"].colors.values()) == {"#ff0000", "#00ff00", "#0000ff"}
    assert list(offered["frame"]["kind"].values) == list(adata.obs["kind"])
    assert not hasattr(offered["frame"]["batch"], "colors")


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        (["#ff00ff", "notacolor", "#ffaa00"], "'notacolor'"),
        (["#ff00ff", (1.0, 0.0, 0.0), "#ffaa00"], "'(1.0, 0.0, 0.0)'"),
        (["#ff00ff"], "1 of the 3 "),
        (7, "0 of the 3 "),
    ],
)
def test_invalid_stored_colours_warn_and_are_not_changed(embedded, offered, stored, fault):
    ours = legend(pl.map(embedded, "kind"))
    adata = embedded.copy()
    adata.uns["kind_colors"] = stored
    told = re.escape('uns["kind_colors"] ') + ".*" + re.escape(fault)
    with pytest.warns(UserWarning, match=told) as of_map:
        assert legend(pl.map(adata, "kind")) == ours
    with pytest.warns(UserWarning, match=told) as of_page:
        pl.explore(adata, "cells.html", keys=["kind"])
    assert {warning.filename for warning in (*of_map, *of_page)} == {__file__}
    assert offered["frame"]["kind"] is adata.obs["kind"]
    pl.map(adata, "kind", palette=["red", "green", "blue"])  # stored colours are then not read
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
    with pytest.warns(UserWarning, match="'red'"):
        pl.explore(adata, "cells.html", keys=["kind"])


def test_explorer_uses_the_loss_of_its_basis(embedded, offered):
    adata = embedded.copy()
    tl.mercat(adata, key_added="other", n_spectral=2)
    pl.explore(adata, "cells.html", basis="other", keys=[])
    np.testing.assert_array_equal(offered["point_loss"], adata.obs["other_loss"])


def test_explorer_in_a_notebook_selects_cells(embedded):
    explorer = pl.explore(embedded, color="kind", height=400)
    explorer.selection = [5, 2]
    assert list(embedded[explorer.selection].obs_names) == ["cell 2", "cell 5"]


@pytest.mark.filterwarnings("ignore:detail=0.3 has no effect")
def test_several_maps_are_explored_in_one_file(embedded, tmp_path):
    adata = embedded.copy()
    tl.mercat(adata, detail=0.3, key_added="sharp")
    adata.obsm["X_umap"] = np.random.default_rng(0).normal(size=(adata.n_obs, 2))

    def shown(basis):
        page = pl.explore(adata, tmp_path / "cells.html", basis=basis).read_text("utf-8")
        packed = zlib.decompress(base64.b64decode(re.search(r'-payload">([^<]*)<', page)[1]))
        header = json.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])
        losses = [c["name"] for c in header["columns"] if c.get("role") == "loss"]
        return {one["name"]: one["kind"] for one in header["embeddings"]}, losses

    one = ["point loss"]
    three = {"mercat": "sphere", "sharp": "sphere", "umap": "plane"}
    assert shown(list(three)) == (three, one)
    assert shown({"UMAP": "X_umap", "0.3": "sharp"}) == ({"UMAP": "plane", "0.3": "sphere"}, one)
    assert shown("mercat") == ({"Mercat": "sphere"}, one)
    assert shown("umap") == ({"umap": "plane"}, [])
    for wrong, message in (([], "at least one"), (["mercat", "tsne"], "'tsne'")):
        with pytest.raises(ValueError, match=f"^basis .*{message}"):
            pl.explore(adata, tmp_path / "cells.html", basis=wrong)


def test_keys_that_cannot_be_offered_are_named(embedded, offered):
    with pytest.raises(ValueError, match=r"^labels .*'nowhere'"):
        pl.explore(embedded, "cells.html", labels=["nowhere"])
    with pytest.raises(ValueError, match=r"^genes .*2000, got 2001"):
        pl.explore(embedded, "cells.html", genes=2001)


def test_label_columns_are_included(embedded, offered):
    pl.explore(embedded, "cells.html", keys=["depth"], labels=["kind"])
    assert list(offered["frame"]) == ["kind", "depth"]
    assert offered["labels"] == ["kind"]
