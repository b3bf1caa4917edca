"""Small files that expand to far more than their size are refused or read in bounded memory."""

# ruff: noqa: F811, fixtures of another file
from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib

import numpy as np
import pytest
import scipy.sparse
from test_hostile_files import MTX, check, read, refusal, samples  # noqa: F401, fixtures

from mercat import metrics
from mercat._files.chunks import item_size, unpacked_size, whole_chunks
from mercat._files.containers import check_hdf5, check_zarr
from mercat.cli._console import Console
from mercat.cli._read import read_table
from mercat.cli._table import ReadOptions
from mercat.cli._text import detect_dialect
from mercat.metrics._points import Points

anndata, h5py, numcodecs, pd, zarr = map(
    pytest.importorskip, ["anndata", "h5py", "numcodecs", "pandas", "zarr"]
)
CONSOLE = Console(quiet=True, as_json=False)


def test_info_does_not_make_sparse_matrices_dense(read, tmp_path):
    path = tmp_path / "a.mtx"
    for shape in ("80000 80000", "50 167000", "167000 50"):
        path.write_text(f"{MTX}coordinate real general\n{shape} 2\n1 1 1\n2 2 2\n")
        answer = read("info", path)
        check(answer, path)
        assert answer["outcome"] == "read"


# ------------------------------------------------------------------ zarr


def zeros(megabytes):
    """Zeros compressed by zlib."""
    packer = zlib.compressobj(9)
    pieces = [packer.compress(bytes(1 << 20)) for _ in range(megabytes)]
    return b"".join([*pieces, packer.flush()])


def zarr_of(sample, path, chunk, **about):
    """Store of a sample with another X, changed metadata and a given first chunk."""
    parts = {name: part for name, part in sample.parts.items() if not name.endswith(".zmetadata")}
    node = json.loads(parts["X/.zarray"]) | about
    parts["X/.zarray"] = json.dumps(node).encode()
    parts["X/0.0"] = chunk
    return sample.write(path, parts)


def test_chunks_of_zarr_unpack_to_a_bounded_size(read, samples, tmp_path):
    zlib_9, packed = {"id": "zlib", "level": 9}, zeros(300)
    cases = {
        "once": (
            packed,
            {"compressor": zlib_9, "filters": None},
            "decompresses to more than 200 times",
        ),
        "twice": (
            zlib.compress(packed, 9),
            {"compressor": zlib_9, "filters": [zlib_9]},
            "compressed more than once, by zlib, zlib",
        ),
        "within": (
            zlib.compress(packed, 9),
            {"compressor": {"id": "crc32"}, "filters": [zlib_9]},
            "compressed more than once, by zlib, crc32",
        ),
        "blosc": (
            bytes([2, 1, 0, 8]) + (1 << 30).to_bytes(4, "little") + bytes(90),
            {"compressor": {"id": "blosc"}, "filters": None},
            "decompresses to more than 200 times",
        ),
        "elements": (
            bytes(96),
            {"filters": [{"id": "astype", "encode_dtype": "i1", "decode_dtype": "U1000000"}]},
            "needs the codec 'astype'",
        ),
    }
    for name, (chunk, about, reason) in cases.items():
        path = zarr_of(samples["zarr"], tmp_path / name, chunk, **about)
        assert reason in refusal(read, "table", path), name


def test_sizes_in_metadata_of_zarr_are_counted(read, samples, tmp_path):
    sample = samples["zarr"]
    large = {"shape": [40_000_000, 10], "chunks": [1_000_000, 10]}
    path = zarr_of(sample, tmp_path / "large", b"", **large)
    (path / ".zattrs").write_text(json.dumps({"x": {"shape": [-(10**15)], "dtype": "<f8"}}))
    about = {".zattrs": {"x": {"shape": [-(10**15)], "dtype": "<f8", "chunks": [1]}}}
    (path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": about}))
    assert "claims 1,600,00" in refusal(read, "table", path)
    path = zarr_of(sample, tmp_path / "negative", b"", shape=[-12, -4])
    assert "shape" in refusal(read, "table", path)
    record = [["a", "|S10000000"], ["b", "<f8", [2, 3]]]
    path = zarr_of(sample, tmp_path / "record", b"", shape=[400], chunks=[400], dtype=record)
    assert "claims 4,00" in refusal(read, "table", path)
    path = zarr_of(sample, tmp_path / "chunk", b"", chunks=[10**6, 10**3])
    assert "claims 4,00" in refusal(read, "table", path)


def test_numbers_of_strings_in_chunks_of_zarr_are_not_believed(read, samples, tmp_path):
    path = samples["zarr"].write(tmp_path / "z")
    node = path / "obs/_index/.zarray"
    node.write_text(json.dumps(json.loads(node.read_text()) | {"compressor": None}))
    (path / ".zmetadata").unlink(missing_ok=True)
    for number in (10**9, 2**32 - 1):
        (path / "obs/_index/0").write_bytes(number.to_bytes(4, "little") + bytes(60))
        refusal(read, "table", path)


def test_metadata_of_zarr_lead_to_no_other_folder(read, samples, tmp_path):
    path = zarr_of(samples["zarr"], tmp_path / "z", b"")
    node = json.loads((path / "X/.zarray").read_text())
    about = {"zarr_consolidated_format": 1, "metadata": {"../../secret/.zarray": node}}
    (path / ".zmetadata").write_text(json.dumps(about))
    assert "refers to a folder outside of it" in refusal(read, "table", path)


def test_links_within_zarr_are_refused(read, samples, tmp_path):
    """Sixty links to one array would be sixty arrays in memory."""
    path = samples["zarr"].write(tmp_path / "z")
    os.symlink("about", path / "uns/again")
    assert "contains a symbolic link, at uns/again" in refusal(read, "table", path)


def test_item_sizes():
    text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
    record = {"name": "structured", "configuration": {"fields": [["0", text], ["1", "float32"]]}}
    for dtype, size in (
        ("<f4", 4), ("float32", 4), ("|S7", 7), ("<U3", 12), ("r800", 100), ("string", 8), ("|O", 8),
        (text, 8), (record, 12), ({"name": "numpy.datetime64", "configuration": {"unit": "s"}}, 8),
        ("no such", 8), ([["a", "<f8"], ["b", "|S3", [2, 5]], ["c", [["d", "<i2"]]]], 40),
    ):  # fmt: skip
        assert item_size(dtype) == size
    assert whole_chunks([], []) == 1
    assert whole_chunks([7, 4], [3, 10]) == 90


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, 300_000])
def test_sizes_of_chunks_are_those_that_zarr_unpacks(size):
    content = np.random.default_rng(0).integers(0, 3, size).astype("u1").tobytes()
    for codec in (
        numcodecs.Blosc("zstd"), numcodecs.Blosc("lz4", shuffle=2), numcodecs.LZ4(), numcodecs.Zlib(),
        numcodecs.GZip(), numcodecs.BZ2(), numcodecs.Zstd(), numcodecs.Zstd(9, checksum=True),
    ):  # fmt: skip
        packed = bytes(codec.encode(content)) if size or codec.codec_id != "blosc" else b""
        assert unpacked_size(packed, [codec.get_config()], 0, 1 << 30) == size
    assert unpacked_size(content, [{"name": "bytes"}], 0, 1 << 30) == size
    frames = 2 * bytes(numcodecs.Zstd().encode(content))
    assert unpacked_size(frames, [{"name": "zstd"}, {"name": "crc32c"}], 0, 1 << 30) == 2 * size


def annotated():
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 10)).astype("f4"))
    adata.obs["type"] = pd.Categorical(["a", "b"] * 50)
    adata.uns["rank"] = np.rec.fromarrays([["g1", "g2"], [0.5, 1.5]], names=["0", "1"])
    adata.uns["bytes"] = np.array([b"abc", b"d"])
    return adata


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("compressor", ["default", "gzip", "zstd", "none"])
def test_valid_stores_are_read(tmp_path, version, compressor):
    options = {} if compressor == "default" else {"compressor": None}
    if version == 2 and compressor in ("gzip", "zstd"):
        options = {"compressor": {"gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd()}[compressor]}
    path, adata = tmp_path / "a.zarr", annotated()
    with warnings.catch_warnings(), anndata.settings.override(zarr_write_format=version):
        warnings.simplefilter("ignore")
        if version == 3 and compressor in ("gzip", "zstd"):
            codec = {"gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec()}[compressor]
            options = {"compressors": [codec]}
        elif version == 3 and compressor == "none":
            options = {"compressors": None}
        group = zarr.open_group(path, mode="w", zarr_format=version)
        anndata.io.write_elem(group, "/", adata, dataset_kwargs=options)
    table = read_table(path, ReadOptions(), CONSOLE)
    np.testing.assert_array_equal(table.X, adata.X)
    assert table.uns["rank"]["0"].tolist() == ["g1", "g2"]


def test_sizes_of_shards_are_counted(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    values = np.random.default_rng(0).normal(size=(100, 10))
    array = group.create_array("X", shape=(100, 10), chunks=(10, 5), shards=(50, 10), dtype="f8")
    array[:] = values
    check_zarr(tmp_path / "a.zarr")
    about = json.loads((tmp_path / "a.zarr/X/zarr.json").read_text())
    content = (tmp_path / "a.zarr/X/c/0/0").read_bytes()
    assert unpacked_size(content, about["codecs"], 10, 1 << 30) == 8 * 500
    with pytest.raises(ValueError, match="without a plain index"):
        unpacked_size(content[:50], about["codecs"], 10, 1 << 30)


# ------------------------------------------------------------------ HDF5


def test_links_within_hdf5_are_refused(read, tmp_path):
    """Sixty links to one array would be sixty arrays in memory; two links per group in a chain of forty
    would give 2^40 paths."""
    path = tmp_path / "a.h5ad"
    for kind in ("soft", "hard", "groups", "root"):
        annotated().write_h5ad(path)
        with h5py.File(path, "a") as file:
            uns = file["uns"]
            if kind == "groups":
                inner = uns.create_group("a")
                for _ in range(40):
                    inner["b"] = deeper = inner.create_group("a")
                    inner = deeper
            else:
                uns["again"] = {"soft": h5py.SoftLink("/X"), "hard": file["X"], "root": file}[kind]
        assert "contains an internal link, at uns/" in refusal(read, "table", path)


def test_chunks_of_hdf5_unpack_to_a_bounded_size(read, tmp_path):
    path = tmp_path / "a.h5ad"

    def store(chunks, content, filters=("deflate",)):
        annotated().write_h5ad(path)
        with h5py.File(path, "a") as file:
            about = dict(file["X"].attrs)
            del file["X"]
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk(chunks)
            for name in filters:
                getattr(plist, f"set_{name}")(*[9] * (name == "deflate"))
            space = h5py.h5s.create_simple((100, 10), (h5py.h5s.UNLIMITED,) * 2)
            kind = h5py.h5t.IEEE_F32LE
            data = h5py.Dataset(h5py.h5d.create(file.id, b"X", kind, space, dcpl=plist))
            data.id.write_direct_chunk((0, 0), content)
            data.attrs.update(about)

    store((1000, 750_000), zlib.compress(bytes(4000)))
    assert "claims 3,000,00" in refusal(read, "table", path)
    store((100, 10), zeros(300))
    assert "decompresses to more than 200 times" in refusal(read, "table", path)
    store((100, 10), zlib.compress(zeros(300)), ("deflate", "deflate"))
    assert "are compressed more than once, at X" in refusal(read, "table", path)
    store((100, 10), zlib.compress(bytes(4000)), ("shuffle", "deflate", "fletcher32"))
    check_hdf5(path)


def test_valid_hdf5_is_read(tmp_path):
    path = tmp_path / "a.h5ad"
    for options in ({}, {"compression": "gzip"}, {"compression": "lzf"}):
        annotated().write_h5ad(path, **options)
        check_hdf5(path)
    with h5py.File(path, "w") as file:  # more than a fifth of it in one chunk
        values = np.random.default_rng(0).integers(0, 9, 300_000)
        file.create_dataset("X", data=values, chunks=(300_000,), compression="gzip", shuffle=True)
    check_hdf5(path)


# ------------------------------------------------------------------ tables


def test_compressed_lines_of_millions_of_cells_are_refused(read, tmp_path):
    for line in (b"1,", b"a,"):
        path = tmp_path / "a.csv.gz"
        path.write_bytes(gzip.compress(line * (30 << 20) + b"1\n1\n"))
        assert "has 31,457,281 columns, more than the 167,772" in refusal(read, "table", path)
    path = tmp_path / "a.mtx.gz"
    head = f"{MTX}coordinate real general\n50 8 2\n".encode()
    path.write_bytes(gzip.compress(head + b"1 " * (30 << 20)))
    assert "line 3 must hold 3 numbers" in refusal(read, "table", path)
    path.write_bytes(gzip.compress(head + b"1 1 1\n" * (10 << 20)))
    assert "it has more than 2 entries, but declares 2" in refusal(read, "table", path)


def test_only_as_many_names_as_rows_are_read(read, tmp_path):
    path = tmp_path / "matrix.mtx"
    path.write_text(f"{MTX}coordinate real general\n50 8 2\n1 1 1\n2 2 2\n")
    (tmp_path / "features.tsv").write_bytes(b"g\n" * 50)
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"\n" * (60 << 20)))
    assert "name 50 genes and more than 50 barcodes" in refusal(read, "table", path)
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"\t" * (60 << 20) + b"\n" * 8))
    check(read("table", path), path)


def test_wide_tables_are_read(tmp_path):
    """Uncompressed tables may have any number of columns."""
    path = tmp_path / "a.csv"
    path.write_text("1," * 199_999 + "1\n" + "0," * 199_999 + "1\n")
    lines = path.read_text().splitlines()
    assert detect_dialect(path, ReadOptions(), CONSOLE).names[-1] == "c200000"
    path.write_text("\n".join([lines[0], "", *lines]))
    assert len(detect_dialect(path, ReadOptions(), CONSOLE).names) == 200_000


ONES = np.ones(8, int)
ROWS = {"indices": ONES, "indptr": np.arange(9)}
FRACTIONS = {
    "shape": ("csr", ROWS | {"shape": np.array([8, 3.9])}, "shape must be integers, got '3.9'"),
    "text": ("csr", ROWS | {"shape": np.array(["8", "3"])}, "shape must be integers, got '8'"),
    "row": ("coo", {"row": ONES + 0.5, "col": ONES}, "row must be integers, got '1.5'"),
    "coords": ("coo", {"coords": np.full((2, 8), 1.5)}, "coords must be integers, got '1.5'"),
    "missing": ("coo", {"row": ONES * np.nan, "col": ONES}, "row must be integers, got 'nan'"),
    "indices": ("csr", ROWS | {"indices": ONES * 2.25}, "indices must be integers, got '2.25'"),
    "indptr": ("csc", ROWS | {"indptr": np.arange(4) * 2.5}, "indptr must be integers, got '2.5'"),
    "offsets": ("dia", {"offsets": np.array([0.7])}, "offsets must be integers, got '0.7'"),
}


@pytest.mark.parametrize("case", FRACTIONS)
def test_fractional_indices_are_refused(read, tmp_path, case):
    kind, arrays, reason = FRACTIONS[case]
    parts = {"format": kind.encode(), "data": np.ones(8), "shape": np.array([8, 3])} | arrays
    np.savez(tmp_path / "a.npz", **parts)
    assert reason in refusal(read, "table", tmp_path / "a.npz")


def test_fractional_shapes_of_anndata_are_refused(read, tmp_path):
    adata = anndata.AnnData(scipy.sparse.random(12, 6, 0.4, format="csr", random_state=0))
    path = tmp_path / "a.h5ad"
    adata.write_h5ad(path)
    with h5py.File(path, "a") as file:
        file["X"].attrs["shape"] = np.array([12, 6.5])
    assert "the shape of X must be integers, got '6.5'" in refusal(read, "table", path)
    path = tmp_path / "a.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_zarr(path)
    (path / ".zmetadata").unlink(missing_ok=True)
    about = json.loads((path / "X/.zattrs").read_text()) | {"shape": [12, 6.5]}
    (path / "X/.zattrs").write_text(json.dumps(about))
    assert "a shape must be integers, got '6.5'" in refusal(read, "table", path)


def test_few_rows_of_many_columns_are_measured_by_the_distances_of_their_pairs(monkeypatch):
    """A sparse file of 70 bytes may have 167,000 columns; differences of 100,000 triplets took minutes."""
    counted = []
    distances = Points.distances
    monkeypatch.setattr(Points, "distances", lambda *a: counted.append(a[1].size) or distances(*a))
    X = np.random.default_rng(0).normal(size=(60, 5))
    for Y in (X[:, :2], X[:, :3] / np.linalg.norm(X[:, :3], axis=1, keepdims=True)):
        score = metrics.random_triplet_accuracy(X, Y)
        assert sum(counted) <= 60 * 59 // 2
        assert 0.5 < float(score) < 1
