"""Files as read by the command line: valid, unusual and broken ones."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from mercat.cli._columns import parse_dates
from mercat.cli._console import Console
from mercat.cli._embedding import read_embedding
from mercat.cli._problems import BadInput
from mercat.cli._read import read_table
from mercat.cli._table import ReadOptions

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "kind": list("abcab" * 4),
        "height": RNG.normal(size=20),
        "weight": RNG.normal(size=20),
        "flag": [True, False] * 10,
    }
)


class Read:
    """Read a file with options and record messages."""

    def __init__(self, folder):
        self.folder = folder
        self.console = Console(quiet=True, as_json=False)

    def __call__(self, name, text=None, **options):
        path = self.folder / name
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.console.notes.clear()
        return read_table(path, ReadOptions(**options), self.console)

    def error(self, name, text=None, **options):
        with pytest.raises(BadInput) as caught:
            self(name, text, **options)
        message = caught.value.message
        assert name in message
        return message.replace(f"{self.folder}/", "")

    @property
    def said(self):
        return " ".join(self.console.notes)


@pytest.fixture
def read(tmp_path):
    return Read(tmp_path)


def rows(n, make):
    return "\n".join(make(k) for k in range(n)) + "\n"


# ------------------------------------------------------------------ good files


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.csv.gz", "f.parquet", "f.feather"])
def test_tables_of_every_format_are_read_alike(read, name):
    path = read.folder / name
    if name.endswith(".parquet"):
        FRAME.to_parquet(path)
    elif name.endswith(".feather"):
        FRAME.to_feather(path)
    else:
        FRAME.to_csv(path, sep="\t" if "tsv" in name else ",", index=False)
    table = read(name)
    assert table.features == ["height", "weight"]
    assert list(table.meta.columns) == ["kind", "flag"]
    np.testing.assert_array_equal(table.X, FRAME[["height", "weight"]])  # to the last bit
    assert table.meta["kind"].tolist() == FRAME["kind"].tolist()
    assert table.ids is None
    assert read.console.notes == []


def test_an_index_is_metadata_and_names_the_rows(read):
    FRAME.to_csv(read.folder / "pandas.csv")
    table = read("pandas.csv")
    assert table.ids == "index"
    assert table.meta["index"].tolist() == list(range(20))
    assert table.features == ["height", "weight"]
    named = FRAME.set_index(pd.Index([f"s{k}" for k in range(20)], name="sample"))
    named.to_parquet(read.folder / "named.parquet")
    table = read("named.parquet")
    assert table.ids == "sample"
    assert table.meta["sample"][3] == "s3"
    r = read(
        "r.txt", '"a" "b"\n'.replace(" ", "\t") + rows(5, lambda k: f'"r{k}"\t{k}.5\t{k * k}.5')
    )
    assert (r.ids, r.features) == ("index", ["a", "b"])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", range(1, 7)),
        ("n", range(6)),
        ("customer_id", [9, 4, 7, 1, 3, 8]),
        ("ID", [6, 5, 4, 3, 2, 1]),
    ],
)
def test_integer_row_names_are_no_feature_by_default(read, name, values):
    text = f"{name},a\n" + "".join(f"{v},{k}.5\n" for k, v in enumerate(values))
    table = read("ids.csv", text)
    assert (table.features, table.ids) == (["a"], name)
    assert f"--feature {name}" in read.said
    table = read("ids.csv", feature=(name,))
    assert table.features == [name, "a"]
    assert read.said == ""


def test_integers_that_do_not_name_rows_are_features(read):
    assert read("c.csv", "n,a\n" + rows(6, lambda k: f"{k * k},{k}.5")).features == ["n", "a"]
    assert read("d.csv", "x_id,a\n" + rows(6, lambda k: f"{k // 2},{k}.5")).features == [
        "x_id",
        "a",
    ]


def test_a_column_that_may_be_classes_is_noted(read):
    text = "a,b,part\n" + rows(60, lambda k: f"{k}.5,{k * k}.25,{k % 3}")
    assert read("p.csv", text).features == ["a", "b", "part"]
    assert "--label part" in read.said
    assert read("p.csv", label="part").features == ["a", "b"]
    assert read.said == ""
    assert read("p.csv", feature=("part",)).features == ["a", "b", "part"]
    assert read.said == ""


FORMATTED = {
    "thousands": "1,234.5",
    "percent": "12%",
    "european": "1.000,5",
    "decimal comma": "-0,5",
    "currency": "$ 1,200",
    "spaces": "12 000,5",
    "swiss": "1'200.50",
}


@pytest.mark.parametrize("case", FORMATTED)
def test_formatted_numbers_are_noted(read, case):
    frame = FRAME[["height"]].assign(price=[None, None, *[FORMATTED[case]] * 18])
    frame.to_csv(read.folder / "p.csv", index=False)
    table = read("p.csv")
    assert (table.features, table.ids) == (["height"], None)
    assert f"Column price ({FORMATTED[case]!r}) looks like numbers but is text" in read.said
    assert "--meta price" in read.said
    assert read("p.csv", meta=("price",)).features == ["height"]
    assert read.said == ""


def test_formatted_numbers_that_all_differ_do_not_name_the_rows(read):
    text = "price;share;a\n" + rows(20, lambda k: f"{k + 1}.000,{k};{k}%;{k * k},5")
    table = read("p.csv", text)
    assert (table.features, table.ids) == (["a"], None)
    assert "Columns price ('1.000,0'), share ('0%') look like numbers but are text" in read.said


@pytest.mark.parametrize(
    "value", ["12.05.20{:02}", "192.168.10.{}", "2024-01-{:02}", "a{}", "{}:30"]
)
def test_dates_addresses_and_names_are_text(read, value):
    table = read("t.csv", "t,a\n" + rows(20, lambda k: f"{value.format(k)},{k * k}.5"))
    assert (table.features, table.ids) == (["a"], "t")
    assert read.said == ""


def test_meta_and_drop_take_columns_out_of_the_numbers(read):
    FRAME.to_csv(read.folder / "f.csv", index=False)
    table = read("f.csv", meta=("weight",), drop=("flag",))
    assert table.features == ["height"]
    assert list(table.meta.columns) == ["kind", "weight"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_semicolons_decimal_commas_and_byte_order_marks(read, encoding):
    text = "größe;b;art\n" + rows(5, lambda k: f'{k},5;-{k};"x;{k}"')
    table = read("d.csv", text.encode(encoding))
    assert table.features == ["größe", "b"]
    np.testing.assert_array_equal(table.X[:, 0], np.arange(5) + 0.5)
    assert table.meta["art"][2] == "x;2"
    assert "decimal comma" in read.said


def test_a_decimal_point_is_kept_with_semicolons(read):
    table = read("d.csv", "a;b\n" + rows(5, lambda k: f"{k}.5;1,{k}"), meta=("b",))
    np.testing.assert_array_equal(table.X[:, 0], np.arange(5) + 0.5)


def test_headers_are_distinguished_from_rows(read):
    body = rows(5, lambda k: f"{k}.5,{k * k},{k}.25")
    assert read("h.csv", body).X.shape == (5, 3)
    assert "--header" in read.said
    assert read("h.csv", header=True).X.shape == (4, 3)
    assert read("n.csv", "0,1,2\n" + body).X.shape == (5, 3)  # as pandas writes an array
    assert "--no-header" in read.said
    assert read("n.csv", header=False).X.shape == (6, 3)
    assert read("t.csv", body.replace(",", "|"), delimiter="|").X.shape == (5, 3)
    assert read("s.csv", body.replace(",", " "), delimiter=" ").X.shape == (5, 3)


def test_windows_lines_blank_lines_and_trailing_delimiters(read):
    text = "a,b,\r\n\r\n" + "".join(f"{k}.5,{k},\r\n\r\n" for k in (4, 2, 7, 5))
    table = read("w.csv", text)
    assert table.features == ["a", "b"]
    np.testing.assert_array_equal(table.X[:, 1], [4, 2, 7, 5])


def test_rows_with_missing_numbers_can_be_dropped(read):
    text = "a,b,c\n1.5,2,x\n3.5,,y\n5,6,\n7,8,z\nNA,1,z\n"
    table = read("m.csv", text, missing="drop")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [5, 6], [7, 8]])
    assert table.meta["c"].isna().tolist() == [False, True, False]
    assert "2 of 5 rows" in read.said


def test_npy_and_npz_are_read(read):
    X = RNG.normal(size=(10, 3)).astype(np.float32)
    np.save(read.folder / "x.npy", X)
    table = read("x.npy")
    np.testing.assert_array_equal(table.X, X)
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(read("x.npy", transpose=True).X, X.T)
    labels = np.array(list("abcdefghij"))
    np.savez(read.folder / "x.npz", X=X, labels=labels, other=np.ones((2, 2)), Z=2 * X)
    table = read("x.npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.meta["labels"].tolist() == labels.tolist()
    assert "other (2, 2), Z (10, 3)" in read.said
    np.testing.assert_array_equal(read("x.npz", key="Z").X, 2 * X)
    sparse = scipy.sparse.random(8, 5, 0.5, format="csc", random_state=0)
    scipy.sparse.save_npz(read.folder / "s.npz", sparse)
    np.testing.assert_array_equal(read("s.npz").dense(), sparse.toarray())


def test_matrices_of_10x_with_file_prefixes_or_mismatched_files(read):
    X = scipy.sparse.random_array((6, 4), density=0.5, rng=np.random.default_rng(0))
    scipy.io.mmwrite(read.folder / "GSM1_matrix.mtx", X)
    cells = [f"cell{k}" for k in range(4)]
    (read.folder / "GSM1_barcodes.tsv").write_text("\n".join(cells) + "\n")
    genes = "".join(f"ENS{k}\tGENE{k}\n" for k in range(6))
    (read.folder / "GSM1_features.tsv").write_text(genes)
    table = read("GSM1_matrix.mtx")
    assert (table.X.shape, table.meta["barcode"].tolist()) == ((4, 6), cells)
    (read.folder / "GSM1_barcodes.tsv").write_text("cell0\ncell1\n")
    told = read.error("GSM1_matrix.mtx")
    assert re.search("6 rows and 4 columns.*6 genes and 2 barcodes", told)
    assert read("GSM1_matrix.mtx", transpose=True).X.shape == (4, 6)
    (read.folder / "GSM1_features.tsv").unlink()
    assert "name 2 barcodes:" in read.error("GSM1_matrix.mtx")


def test_matrix_market_and_the_folders_of_10x(read):
    counts = scipy.sparse.random(6, 9, 0.5, random_state=0, format="coo")
    scipy.io.mmwrite(read.folder / "matrix.mtx", counts)
    assert read("matrix.mtx").X.shape == (6, 9)
    assert read("matrix.mtx", transpose=True).X.shape == (9, 6)
    (read.folder / "features.tsv").write_text(rows(6, lambda k: f"ENS{k}\tG{k}\tGene"))
    with gzip.open(read.folder / "barcodes.tsv.gz", "wt") as file:
        file.write(rows(9, lambda k: f"ACG{k}"))
    table = read("matrix.mtx")
    np.testing.assert_allclose(table.dense(), counts.toarray().T)
    assert table.features == [f"G{k}" for k in range(6)]
    assert table.meta["barcode"][8] == "ACG8"
    assert "10x" in read.said
    assert read("matrix.mtx", drop=("G1",)).features == ["G0", "G2", "G3", "G4", "G5"]


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern", "dense"])
def test_matrix_market_of_every_kind_reads_as_scipy_does(read, field, symmetry):
    X = RNG.integers(-3, 4, size=(7, 7)) * 1.25
    X = {"general": X, "symmetric": X + X.T, "skew-symmetric": X - X.T}[symmetry]
    if field == "integer":
        X = X * 4
    if field == "pattern":
        if symmetry == "skew-symmetric":
            return  # has no signs
        X = (X != 0) * 1.0
    target = read.folder / "m.mtx"
    stored = X if field == "dense" else scipy.sparse.coo_array(X)
    kind = {"dense": "real"}.get(field, field)
    scipy.io.mmwrite(target, stored, comment="a note", field=kind, symmetry=symmetry)
    np.testing.assert_array_equal(read("m.mtx").dense(), X)
    lines = target.read_text().splitlines()
    assert re.search(r"has (\d+) entries", read.error("m.mtx", "\n".join(lines[:-1])))
    assert "not a valid Matrix Market file" in read.error("m.mtx", "\n".join([*lines, "1 1 1 1"]))


def test_anndata_is_read(read):
    anndata = pytest.importorskip("anndata")
    X = scipy.sparse.csr_matrix(RNG.poisson(1.0, size=(12, 5)).astype(np.float32))
    obs = pd.DataFrame(
        {"type": pd.Categorical(list("abc" * 4))}, index=[f"c{k}" for k in range(12)]
    )
    adata = anndata.AnnData(X, obs=obs, layers={"double": 2 * X})
    adata.write_h5ad(read.folder / "a.h5ad")
    table = read("a.h5ad", label="type", drop=("3",))
    assert table.features == ["0", "1", "2", "4"]
    np.testing.assert_array_equal(table.dense(), X.toarray()[:, [0, 1, 2, 4]])
    assert table.meta["index"].tolist() == list(obs.index)
    np.testing.assert_array_equal(read("a.h5ad", key="double").dense(), 2 * X.toarray())
    adata.obsm["X_pca"] = RNG.normal(size=(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr format 3
        adata.write_zarr(read.folder / "a.zarr")
    np.testing.assert_array_equal(read("a.zarr").X, adata.obsm["X_pca"])
    assert "X_pca" in read.said
    assert read("a.zarr", key="X").X.shape == (12, 5)
    assert "has no 'X_foo' to embed. --key takes one of X, X_pca, double" in read.error(
        "a.zarr", key="X_foo"
    )


def test_unit_vectors_of_maps_are_read_also_of_version_0_1(read):
    anndata = pytest.importorskip("anndata")
    Y, flat, loss = np.eye(4)[:, :3], np.ones((4, 2)), np.arange(4.0)
    Y[3, 0] = 1
    obs = pd.DataFrame({"mercat_loss": loss, "sharp_loss": -loss}, index=list("abcd"))
    new = {"X_mercat": flat, "X_mercat_sphere": Y, "sharp": flat, "sharp_sphere": Y[::-1]}
    old = {"X_mercat_map": flat, "X_mercat": Y, "sharp_map": flat, "sharp": Y[::-1]}
    for name, obsm in {"new.h5ad": new, "old.h5ad": old}.items():
        anndata.AnnData(Y, obs=obs, obsm=obsm).write_h5ad(read.folder / name)
        found = read_embedding(read.folder / name, None, read.console)
        np.testing.assert_array_equal(found.Y, Y)
        np.testing.assert_array_equal(found.loss, loss)
        found = read_embedding(read.folder / name, "sharp", read.console)
        np.testing.assert_array_equal(found.Y, Y[::-1])
        np.testing.assert_array_equal(found.loss, -loss)


@pytest.mark.parametrize("name", ["a.csv", "a.h5ad"])
def test_a_column_called_index_does_not_replace_row_names(read, name):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"index": list("pqrs")}, index=list("abcd"))
    Y = np.eye(4)[:, :3]
    if name == "a.csv":
        obs.join(pd.DataFrame(Y, obs.index, list("xyz"))).to_csv(read.folder / name)
    else:
        anndata.AnnData(Y, obs=obs, obsm={"X_mercat": Y}).write_h5ad(read.folder / name)
    embedding = read_embedding(read.folder / name, None, read.console)
    for found in (read(name).meta, embedding.meta):
        assert found["index"].tolist() == list("pqrs")
        assert found["index_"].tolist() == list("abcd")


def test_a_trailing_delimiter_does_not_replace_row_names(read):
    path = read.folder / "map.csv"
    path.write_text(",x,y,z,\na,1,0,0,\nb,0,1,0,\nc,0,0,1,\n")
    embedding = read_embedding(path, None, read.console)
    assert embedding.meta.to_dict("list") == {"index": ["a", "b", "c"]}


def test_dates_large_integers_and_lists_in_columns(read):
    frame = FRAME.assign(day=pd.date_range("2024-01-01", periods=20), big=2**60 + np.arange(20) * 3)
    frame["flag"] = frame["flag"].astype("boolean")
    frame["count"] = pd.array([None, *range(19)], dtype="Int64")
    frame.to_parquet(read.folder / "d.parquet")
    table = read("d.parquet", meta=("big", "count"))
    assert table.meta["day"][1] == "2024-01-02"
    assert table.meta["big"][1] == str(2**60 + 3)
    assert np.isnan(table.meta["count"][0])
    assert table.meta["flag"].tolist()[:2] == ["True", "False"]
    frame.assign(list=[[1, 2]] * 20).to_parquet(read.folder / "l.parquet")
    assert "--drop list" in read.error("l.parquet", meta=("count",))


@pytest.mark.parametrize(
    ("texts", "times"),
    [
        (["2024-01-02", None, "1999-12-31"], ["2024-01-02", "NaT", "1999-12-31"]),
        (
            ["2024-01-02 10:30", "2024-01-02T10:30:15.5"],
            ["2024-01-02T10:30", "2024-01-02T10:30:15.5"],
        ),
        (["2024-01-02 10:30+02:00", "2024-01-02 10:30Z"], ["2024-01-02T08:30", "2024-01-02T10:30"]),
        (["2024-01-02", "soon"], None),
        (["2024-02-30", "2024-01-01"], None),
        (["12.05.2024", "13.05.2024"], None),  # day or month first?
        ([None, None], None),
        (["9999-01-01", "2024-01-01"], None),  # outside the range of nanoseconds in pandas
        ([1.5, 2.5], None),
    ],
)
def test_text_columns_of_dates_are_shown_as_dates(texts, times):
    column = pd.Series(texts)
    shown = parse_dates(column)
    if times is None:
        assert shown is column
    else:
        np.testing.assert_array_equal(shown.to_numpy(), np.array(times, dtype="datetime64[ns]"))


# ------------------------------------------------------------------ broken files

BROKEN = {
    "nothing": ("e.csv", "", "e.csv is empty"),
    "blank": ("e.csv", "\n \n", "e.csv is empty"),
    "header only": ("h.csv", "a,b\n", "h.csv has a header but no rows"),
    "missing": ("m.csv", "a,b\n1,2\n3,\n5,6\n", "m.csv, line 3, column 'b': the number is missing"),
    "text": ("x.csv", "a,b\n1,2\n3,4x\n5,6\n", "x.csv, line 3, column 'b': '4x' is not a number"),
    "infinite": (
        "i.csv",
        "a,b\n1,2\n3,4\n5,-inf\n",
        "i.csv, line 4, column 'b': the number is infinite",
    ),
    "twice": (
        "t.csv",
        "a,b,a\n1,2,3\n",
        "t.csv, line 1: ... 'a' ... 1, 3",
    ),
    "short": (
        "s.csv",
        "a,b,c\n1,2,3\n4,5\n6,7,8\n",
        "s.csv, line 3, column 'c': ... 2 cells ... 3 columns",
    ),
    "short text": (
        "s.csv",
        "a,b,c\n1,2,x\n4,5\n",
        "It is the last line: the file may be truncated",
    ),
    "long": (
        "l.csv",
        "a,b\n1,2\n4,5,6\n",
        "l.csv, line 3: ... 3 cells ... 2 columns",
    ),
    "all long": ("l.csv", "a,b\n1.5,2,9\n4,5,6\n", "l.csv, line 2: the line has 3 cells"),
    "quote": ("q.csv", 'a,b\n1,"2\n3,4\n', "q.csv, line 3: unexpected end of data"),
    "latin": ("u.csv", b"a,b\n1,2\n1,\xe9\n", "u.csv, line 3: the byte 0xe9 is not UTF-8"),
    "binary": ("b.csv", b"a,b\n\0\0", "b.csv is not a text file"),
    "no numbers": ("n.csv", "a,b\nx,y\nz,w\n", "n.csv has no numeric column"),
    "no name": ("k.csv", "a,,b\n1,2,3\n4,5,6\n", "column 2 has values but no name"),
    "quoted line": (
        "ql.csv",
        'a,b\n1,"x\ny"\n\n2,z\n,w\n',
        "ql.csv, line 6, column 'a': the number is missing",
    ),
    "npy": ("x.npy", b"\x93NUMPY\x01\x00", "x.npy is broken or truncated"),
    "text as npy": (
        "x.npy",
        "a,b\n1,2\n",
        "x.npy is not a NumPy file. If it is a text file, name it",
    ),
    "npy as text": ("x.csv", b"\x93NUMPY\x01\x00", "x.csv is a NumPy file, not text. Name it .npy"),
    "parquet as text": ("x.csv", b"PAR1\x15\x04", "x.csv is a Parquet file, not text"),
    "one cell": ("c.csv", "a,b\n1\n1,2\n", "1 cell, ... 2 columns"),
    "npz": ("x.npz", b"PK\x03\x04", "x.npz: the file is broken or truncated"),
    "parquet": ("x.parquet", b"PAR1", "x.parquet is broken or truncated"),
    "feather": ("x.feather", b"ARROW1", "x.feather is broken or truncated"),
    "mtx": (
        "x.mtx",
        "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.0\n2 x 1\n",
        "x.mtx is not a valid Matrix Market file: line 4 must hold 3 numbers, got b'2 x 1'",
    ),
    "ending": ("x.foo", "a", "x.foo must end in one of"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_errors_in_files_name_place_and_reason(read, case):
    name, content, message = BROKEN[case]
    told = read.error(name, content)
    for part in message.split(" ... "):
        assert part in told


def test_truncated_gzip_and_h5ad_are_refused(read):
    whole = gzip.compress(("a,b\n" + rows(5000, lambda k: f"{k}.5,{k * k}.25")).encode())
    message = read.error("z.csv.gz", whole[: len(whole) // 2])
    line = int(message.split("line ")[1].split(":")[0])
    assert 100 < line < 5000
    assert "broken or truncated" in message
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(RNG.normal(size=(50, 50)))
    adata.write_h5ad(read.folder / "a.h5ad")
    content = (read.folder / "a.h5ad").read_bytes()
    assert "not a valid HDF5 file" in read.error("t.h5ad", content[: len(content) // 2])


def test_pickles_are_not_loaded(read):
    np.save(read.folder / "o.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    assert "pickled objects are not loaded" in read.error("o.npy")
    np.savez(read.folder / "o.npz", X=np.array([{}, {}], dtype=object))
    assert "pickled objects are not loaded" in read.error("o.npz")


def test_arrays_that_are_not_tables(read):
    np.save(read.folder / "x.npy", np.zeros(5))
    assert "(5,)" in read.error("x.npy")
    np.save(read.folder / "c.npy", np.zeros((5, 2), dtype=complex))
    assert "must hold numbers" in read.error("c.npy")
    np.savez(read.folder / "x.npz", a=np.zeros((3, 3)), b=np.zeros((3, 3)))
    assert "--key: a (3, 3), b (3, 3)" in read.error("x.npz")
    assert "has no array 'q'" in read.error("x.npz", key="q")
    for option in ("label", "meta", "drop", "feature"):
        name = "kind" if option == "label" else ("kind",)
        with pytest.raises(click.BadParameter, match="'kind'") as told:
            read("x.npz", key="a", **{option: name})
        assert (told.value.exit_code, told.value.param_hint) == (2, f"'--{option}'")
    X = np.ones((4, 2))
    X[2, 1] = np.nan
    np.save(read.folder / "n.npy", X)
    told = read.error("n.npy")
    assert "row 2, column 1 (counted from 0): the number is missing" in told
    assert told.endswith("of 4 rows, in column 1. Leave the rows out with --missing drop.")


def test_a_column_called_id_takes_precedence_over_row_numbers(read):
    lines = [f"S{7 * k},a,{k},{k * 0.5}" for k in range(30)]
    assert read("i.csv", "\n".join(["id,kind,v,w", *lines])).ids == "id"
    assert read("n.csv", "\n".join(["kind2,kind,v,w", *lines])).ids == "v"


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("x.npy", {"key": "q"}),
        ("x.npy", {"header": False}),
        ("x.npy", {"delimiter": ";"}),
        ("x.csv", {"transpose": True}),
        ("x.h5ad", {"feature": ("n",)}),
    ],
)
def test_options_that_do_not_apply_to_a_format_are_refused(read, name, option):
    (read.folder / name).write_bytes(b"")
    with pytest.raises(click.UsageError, match=f"^--{next(iter(option))} ") as told:
        read(name, **option)
    assert told.value.exit_code == 2


def test_invalid_numbers_can_be_collected(read):
    faults = []
    text = "a,b,c\n1.5,2,1\n,4x,2\ninf,6,3\n3,7,5\n"
    table = read("f.csv", text, faults=faults)
    assert (table.X.shape, list(table.meta.columns)) == ((4, 2), ["b"])
    assert [fault.split(": ")[0].split(", ")[1:] for fault in faults] == [
        ["line 3", "column 'b'"],
        ["line 4", "column 'a'"],
        ["line 3", "column 'a'"],
    ]
    assert "in 1 of 4 rows, in column a" in faults[2]
    faults.clear()
    assert read("n.csv", "a,b\nx,y\nz,w\n", faults=faults).X.shape == (2, 0)
    assert len(faults) == 1
    assert "no numeric column" in faults[0]


def test_folders_and_missing_files_are_refused(read):
    with pytest.raises(BadInput, match="stdin"):
        read_table(Path("-"), ReadOptions(), read.console)
    assert "does not exist" in read.error("absent.csv")
    (read.folder / "d.csv").mkdir()
    assert "is a folder" in read.error("d.csv")
