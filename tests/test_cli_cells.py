"""AnnData on the command line: genes as labels, zarr stores as outputs."""

from __future__ import annotations

import json
import zipfile

import anndata
import numpy as np
import pandas as pd
import pytest
import scanpy as sc
from test_cli import call, succeed

from mercat import tl
from mercat._files.model import HEADER


@pytest.fixture
def cells(tmp_path):
    rng = np.random.default_rng(0)
    adata = anndata.AnnData(rng.poisson(2.0, size=(60, 8)).astype(np.float32))
    adata.obs_names = [f"cell{k}" for k in range(60)]
    adata.var_names = [f"gene{k}" for k in range(8)]
    adata.obs["kind"] = pd.Categorical(np.array(["a", "b"])[np.arange(60) % 2])
    adata.obsm["X_pca"] = adata.X[:, :5] - adata.X[:, :5].mean(axis=0)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return adata


def test_a_gene_is_a_label(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    succeed("embed", "cells.h5ad", "-o", "map.csv", "--label", "gene3")
    table = pd.read_csv("map.csv")
    np.testing.assert_array_equal(table["gene3"], cells.X[:, 3])
    succeed("embed", "cells.h5ad", "--png", "map.png", "--label", "gene3")
    code, _, said = call("embed", "cells.h5ad", "--key", "X", "-o", "x.csv", "--label", "gene3")
    assert code == 0
    assert "'gene3' is a gene" in said
    code, _, said = call("embed", "cells.h5ad", "-o", "y.csv", "--label", "gene99")
    assert code == 2
    assert "gene99" in said
    assert "8 genes" in said
    cells.raw = cells.copy()
    cells.raw.X[:, 3] += 7
    cells.write_h5ad("raw.h5ad")
    succeed("embed", "raw.h5ad", "-o", "raw.csv", "--label", "gene3")
    np.testing.assert_array_equal(pd.read_csv("raw.csv")["gene3"], cells.raw.X[:, 3])


def test_a_zarr_store_is_written_completely_or_not_at_all(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("embed", "cells.h5ad", "-o", "map.zarr")
    assert code == 0, err
    assert "zarr v" not in err  # warnings about the version of the format
    succeed("embed", "cells.h5ad", "-o", "map.h5ad")
    store, file = anndata.read_zarr("map.zarr"), anndata.read_h5ad("map.h5ad")
    np.testing.assert_array_equal(store.obsm["X_mercat_sphere"], file.obsm["X_mercat_sphere"])
    assert "model" in store.uns["mercat"]
    succeed("view", "map.zarr", "-o", "page.html", "--label", "kind")
    before = sorted(path.name for path in tmp_path.iterdir())
    for flags in ((), ("--force",)):  # a folder is never replaced
        assert call("embed", "cells.h5ad", "-o", "map.zarr", *flags)[0] == 4
    monkeypatch.setattr(
        "mercat.cli._outputs.write_page", lambda *_: (_ for _ in ()).throw(OSError("full"))
    )
    assert call("embed", "cells.h5ad", "-o", "other.zarr", "--html", "other.html")[0] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_labels_are_transferred_under_another_name(cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    del cells.obsm["X_pca"]
    cells.write_h5ad("query.h5ad")
    sc.pp.pca(cells, n_comps=5)
    tl.mercat(cells)
    cells.write_h5ad("atlas.h5ad")
    files = ("ingest", "atlas.h5ad", "query.h5ad", "-o", "new.csv")
    code, _, said = call(*files, "--transfer", "kind")
    assert code == 2
    assert "--transfer kind=NAME" in said
    assert call(*files, "--transfer", "kinds")[0] == 2
    succeed(*files, "--transfer", "kind=guess")
    table = pd.read_csv("new.csv")
    assert (table["kind"] == cells.obs["kind"].to_numpy()).all()
    assert set(table["guess"]) <= {"a", "b"}
    assert table["guess_confidence"].between(0, 1).all()


def test_info_on_cells_with_a_model_describes_the_cells(tmp_path):
    """The bytes of a model are a zip file, which is recognised by its end."""
    adata = anndata.AnnData(np.random.default_rng(0).poisson(1.0, (60, 5)).astype(np.float32))
    tl.mercat(adata)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    with open(tmp_path / "cells.h5ad", "ab") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(HEADER, "{}")  # as at the end of h5ad files written in another order
    code, out, said = call("info", tmp_path / "cells.h5ad", "--json")
    assert code == 0, said
    assert json.loads(out)["data"].endswith("cells.h5ad")
