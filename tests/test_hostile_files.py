"""Malicious files: readers refuse them with a reason, in bounded memory, and run no code in them."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import sys
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
pytest.importorskip("anndata")
if not sys.platform.startswith("linux"):
    pytest.skip("Memory is limited by what Linux has for it.", allow_module_level=True)

import corpus
import fuzz
import hostile

from mercat._files.untrusted import reading

SAMPLES = (
    "csv", "tsv", "csv.gz", "csv in gz", "map", "parquet", "feather", "npy", "npz", "packed npz", "in npz",
    "map npz", "sparse npz", "triplets npz", "diagonals npz", "blocks npz", "mtx", "dense mtx", "mtx in gz",
    "model", "in model", "model for info", "h5ad", "packed h5ad", "map h5ad", "zarr", "map zarr", "idx",
    "idx in gz", "arff", "mnist.npz", "prepared",
    "json", "json parts", "paul15", "loom", "hela", "hela in gz", "phases", "gtf",
)  # fmt: skip
FILES = 36  # of each format
# 20 examples of each by default, 500 in the nightly profile.
EXAMPLES = max(20, settings().max_examples // 5)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return hostile.samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def read(samples, tmp_path_factory):
    reader = hostile.Reader(samples, tmp_path_factory.mktemp("warm"))
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "here"


def check(answer, path):
    """The file was read, or refused by name; nothing else happened."""
    assert answer["outcome"] in ("read", "refused"), answer
    assert answer["seen"] == []
    if answer["outcome"] == "refused":
        assert str(path.parent) in answer["message"], answer
        assert len(answer["message"]) < 1000


def refusal(read, reader, path):
    answer = read(reader, path)
    check(answer, path)
    assert answer["outcome"] == "refused", answer
    return answer["message"]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_read(samples, read, place, name):
    sample = samples[name]
    path = sample.write(place)
    answer = read(sample.reader, path)
    assert answer["outcome"] == "read", answer
    assert answer["seen"] == []


def test_every_sample_is_damaged(samples):
    assert set(samples) == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_are_read_or_refused_with_their_name(samples, read, place, name):
    sample = samples[name]

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(
        part=st.sampled_from(list(sample.parts)),
        damages=st.lists(hostile.DAMAGE, min_size=1, max_size=4),
    )
    def damage(part, damages):
        content = sample.parts[part]
        for each in damages:
            content = hostile.damaged(content, each)
        path = sample.write(place, sample.parts | {part: content})
        check(read(sample.reader, path), path)

    damage()


@pytest.mark.parametrize("format", fuzz.FORMATS)
def test_mutated_files_are_read_or_refused_with_their_name(samples, read, place, format):
    """The first files of `make nightly` and `make fuzz`; `tests/fuzz.py` describes how to inspect one."""
    counts, findings = fuzz.fuzz(read, samples, format, range(FILES), 0, place)
    assert findings == {}
    assert counts["read"] + counts["refused"] == FILES
    assert counts["refused"] > FILES // 4


def test_the_corpus_is_deterministic(samples, tmp_path):
    for name in ("npz", "h5ad", "model", "csv"):
        for number in range(6):
            paths = [
                corpus.mutate(name, samples[name], number, 7, tmp_path / which) for which in "ab"
            ]
            first, second = (path.read_bytes() for path in paths)
            assert len(first) == len(second)
            if name != "h5ad":  # which HDF5 writes with times and addresses of its own
                assert first == second


# ------------------------------------------------------------------ nothing runs


class Payload:
    """Write a file when unpickled."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return open, (self.target, "w")


def objects(target):
    """An .npy file whose values are pickled."""
    stream = io.BytesIO()
    np.save(stream, np.array([[Payload(target)]], dtype=object), allow_pickle=True)
    return stream.getvalue()


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return stream.getvalue()


def feather(target):
    """As pyarrow before 14.0.1 would have unpickled it (CVE-2023-47248)."""
    import pyarrow as pa

    about = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Payload(target)),
    }
    schema = pa.schema([pa.field("a", pa.float64(), metadata=about), pa.field("b", pa.float64())])
    stream = io.BytesIO()
    table = pa.table([pa.array([1.0, 2, 3]), pa.array([3.0, 1, 2])], schema=schema)
    with pa.ipc.new_file(stream, schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


PICKLES = {
    "npy": ("table", "a.npy", objects),
    "npz": ("table", "a.npz", lambda t: zipped(X__npy=objects(t))),
    "bare in npz": ("table", "a.npz", lambda t: zipped(X__npy=pickle.dumps(Payload(t)))),
    "bare as npy": ("table", "a.npy", lambda t: pickle.dumps(Payload(t))),
    "bare as h5ad": ("table", "a.h5ad", lambda t: pickle.dumps(Payload(t))),
    "bare as model": ("model", "a.mercat", lambda t: pickle.dumps(Payload(t))),
    "model": ("model", "a.mercat", lambda t: zipped(model__json=b"{}", a__npy=objects(t))),
    "prepared": ("from_npz", "a.npz", lambda t: zipped(X__npy=objects(t), labels__npy=objects(t))),
    "mnist": ("mnist", "mnist.npz", lambda t: zipped(x_train__npy=objects(t))),
    "feather": ("table", "a.feather", feather),
}


@pytest.mark.parametrize("case", PICKLES)
def test_pickles_are_not_loaded(read, tmp_path, case):
    reader, name, make = PICKLES[case]
    (tmp_path / name).write_bytes(make(tmp_path / "hurt"))
    answer = read(reader, tmp_path / name)
    check(answer, tmp_path / name)
    assert (answer["outcome"] == "read") == (case == "feather")
    assert not (tmp_path / "hurt").exists()


def test_the_payload_runs_if_unpickled(tmp_path):
    """Check that the tests above can fail."""
    np.load(io.BytesIO(objects(tmp_path / "hurt")), allow_pickle=True)[0, 0].close()
    assert (tmp_path / "hurt").exists()


def changed_zarr(sample, change):
    """Parts of a zarr folder with changed metadata of arrays."""
    parts = dict(sample.parts)
    for name, content in sample.parts.items():
        if name.endswith((".zarray", "zarr.json")):
            about = json.loads(content)
            if "shape" in about:
                change(about)
                parts[name] = json.dumps(about).encode()
        if name.endswith(".zmetadata"):
            del parts[name]
    return parts


def test_a_decoder_of_zarr_that_unpickles_is_refused(read, samples, tmp_path):
    def pickled(about):
        about["filters" if "dtype" in about else "codecs"] = [{"id": "pickle", "name": "pickle"}]

    sample = samples["zarr"]
    path = sample.write(tmp_path / "z", changed_zarr(sample, pickled))
    assert "needs the codec 'pickle', which is not supported" in refusal(read, "table", path)


# ------------------------------------------------------------------ nothing unfolds


def header(shape, dtype="<f8"):
    stream = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, about)
    return stream.getvalue() + bytes(64)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def packed(size):
    """Zeros that a zip archive compresses a thousandfold."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header((size // 8,))[:-64] + bytes(size))
    return stream.getvalue()


def sparse(kind, shape, **arrays):
    parts = {"format": np.array(kind.encode()), "shape": np.array(shape), "data": np.ones(2)}
    return zipped(**{f"{k}__npy": npy(np.asarray(v)) for k, v in (parts | arrays).items()})


def model(array):
    about = {"format": "mercat model", "version": 1}
    return zipped(a__npy=array, model__json=json.dumps(about))


MTX = "%%MatrixMarket matrix "
IDX = b"\0\0\x08\x03" + struct.pack(">3I", *[2**32 - 1] * 3)
HUGE = {
    "npy": ("table", "a.npy", header((10**15, 4)), "claims the shape"),
    "npy, not so absurd": ("table", "a.npy", header((10**9, 4)), "claims the shape"),
    "negative": ("table", "a.npy", header((-4, -2)), "claims the shape"),
    "no size": ("table", "a.npy", header((10**15, 4), "<U0"), "claims"),
    "many axes": ("table", "a.npy", header((1,) * 3000), "claims the shape"),
    "npz": ("table", "a.npz", zipped(X__npy=header((10**15, 4))), "claims the shape"),
    "prepared": ("from_npz", "a.npz", zipped(X__npy=header((10**9, 4))), "claims the shape"),
    "model": ("model", "a.npz", model(header((10**9, 4))), "claims the shape"),
    "bomb": ("table", "a.npz", lambda: packed(100 << 20), "more than 200 times the size"),
    "prepared bomb": (
        "from_npz",
        "a.npz",
        lambda: packed(100 << 20),
        "more than 200 times the size",
    ),
    "triplets": ("table", "a.npz", sparse("coo", (10**12, 4), row=[0, 1], col=[0, 1]), "claims"),
    "many columns": (
        "table",
        "a.mtx",
        f"{MTX}coordinate real general\n50 8000000 2\n1 1 1\n2 2 2\n",
        "claims 50 x 8,000,000 rows and columns",
    ),
    "many rows": (
        "table",
        "a.mtx",
        f"{MTX}coordinate real general\n8000000 5 1\n1 1 1\n",
        "claims 8,000,000 x 5 rows and columns",
    ),
    "a fraction of a row": (
        "table",
        "a.mtx",
        f"{MTX}coordinate real general\n5 5 2\n2 2 3\n1.7 1 1\n",
        "an integer in 1..5, got 1.7 in entry 2",
    ),
    "many diagonals": (
        "table",
        "a.npz",
        sparse("dia", (4 * 10**6, 4 * 10**6), data=np.ones((1, 1)), offsets=[0]),
        "claims 4,000,000 x 4,000,000 rows and columns",
    ),
    "many rows of triplets": (
        "table",
        "a.npz",
        sparse("coo", (8 * 10**6, 4), row=[0, 1], col=[0, 1]),
        "claims 8,000,000 x 4 rows and columns",
    ),
    "many blocks": (
        "table",
        "a.npz",
        sparse("bsr", (4, 8 * 10**6), data=np.ones((2, 2, 2)), indices=[0, 1], indptr=[0, 1, 2]),
        "claims 4 x 8,000,000 rows and columns",
    ),
    "blocks out of range": (
        "table",
        "a.npz",
        sparse("bsr", (4, 4), data=np.ones((2, 2, 2)), indices=[0, 2], indptr=[0, 1, 2]),
        "indices must be in 0..1, got 2",
    ),
    "the same diagonal twice": (
        "table",
        "a.npz",
        sparse("dia", (4, 4), data=np.ones((2, 4)), offsets=[0, 0]),
        "valid sparse",
    ),
    "triplets out of range": (
        "table",
        "a.npz",
        sparse("coo", (4, 4), row=[0, 4], col=[0, 1]),
        "valid sparse",
    ),
    "diagonals": (
        "table",
        "a.npz",
        sparse("dia", (10**12, 4), data=np.ones((1, 4)), offsets=[0]),
        "claims",
    ),
    "rows": (
        "table",
        "a.npz",
        sparse("csr", (2, 4), indices=[0, 10**6], indptr=[0, 1, 2]),
        "valid sparse",
    ),
    "row starts": (
        "table",
        "a.npz",
        sparse("csr", (2, 4), indices=[0, 1], indptr=[0, 10**6, 2]),
        "valid sparse",
    ),
    "mtx": (
        "table",
        "a.mtx",
        f"{MTX}coordinate real general\n1000000000000 5 1\n1 1 1\n",
        "claims",
    ),
    "dense mtx": ("table", "a.mtx", f"{MTX}array real general\n1000000 1000000\n1\n", "claims"),
    "mtx of no entries": (
        "table",
        "a.mtx",
        f"{MTX}coordinate real general\n9 9 99999999999\n",
        "claims",
    ),
    "idx": ("mnist", "train-images-idx3-ubyte", IDX, "4294967295"),
    "deep json": ("mammoth", "mammoth_3d.json", "[" * 10**6, "recursion"),
    "deep model": ("model", "a.mercat", zipped(model__json="[" * 10**6), "recursion"),
    "gzip": (
        "table",
        "a.csv.gz",
        lambda: gzip.compress(b"0,0,0,0\n" * (10 << 20)),
        "decompresses to more than 200 times",
    ),
    "one line": (
        "table",
        "a.csv.gz",
        lambda: gzip.compress(b"0" * (80 << 20)),
        "decompresses to more than 200 times",
    ),
    "gzipped mtx": (
        "table",
        "a.mtx.gz",
        lambda: gzip.compress(MTX.encode() + b"%" * (80 << 20)),
        "size",
    ),
    "gzipped idx": (
        "mnist",
        "train-images-idx3-ubyte.gz",
        lambda: gzip.compress(bytes(80 << 20)),
        "decompresses to more",
    ),
}


@pytest.mark.parametrize("case", HUGE)
def test_wrong_sizes_and_bombs_are_refused(read, tmp_path, case):
    reader, name, content, reason = HUGE[case]
    content = content() if callable(content) else content
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert reason in refusal(read, reader, path)


def test_hdf5_with_wrong_sizes_is_refused(read, tmp_path):
    h5py = pytest.importorskip("h5py")
    for reader, name, dataset in (
        ("table", "a.h5ad", "X"),
        ("pancreas", "pancreas.h5ad", "X"),
        ("pancreas", "pancreas.loom", "matrix"),
        ("paul15", "paul15.h5", "data.debatched"),
    ):
        (tmp_path / name.partition(".")[0]).mkdir(exist_ok=True)
        path = tmp_path / name.partition(".")[0] / name
        with h5py.File(path, "w") as file:
            file.create_dataset(dataset, (10**9, 10**4), "f8", chunks=(1000, 1000))
        assert "claims 80,000,000,000,000 bytes" in refusal(read, reader, path)
        path.unlink()


def test_hdf5_with_unexpected_types_is_refused(read, tmp_path):
    """One flipped bit turns text into sequences, on which h5py crashes."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5ad"
    for where in ("attribute", "data", "record"):
        with h5py.File(path, "w") as file:
            kind = h5py.vlen_dtype(np.int8)
            kind = np.dtype([("a", kind), ("b", "f8")]) if where == "record" else kind
            if where == "attribute":
                rows = np.array([np.ones(2, "i1"), np.ones(3, "i1")], dtype=object)
                file.create_group("uns").attrs.create("encoding-type", rows, dtype=kind)
            else:
                file.create_dataset("X", 3, kind)
        assert "contains values of an unsupported type" in refusal(read, "table", path)


def test_hdf5_with_an_endless_heap_is_refused(read, samples, tmp_path):
    """HDF5 loops forever if the free space of a heap has size zero."""
    content = bytearray(samples["h5ad"].parts[""])
    at = content.index(b"GCOL") + 16
    while content[at : at + 2] != b"\0\0":
        at += 16 + -(-int.from_bytes(content[at + 8 : at + 16], "little") // 8) * 8
    content[at + 8 : at + 16] = bytes(8)
    (tmp_path / "a.h5ad").write_bytes(content)
    assert "a global heap is corrupt" in refusal(read, "table", tmp_path / "a.h5ad")


def test_zarr_with_wrong_sizes_is_refused(read, samples, tmp_path):
    sample = samples["zarr"]
    parts = changed_zarr(sample, lambda about: about.update(shape=[10**9] * len(about["shape"])))
    message = refusal(read, "table", sample.write(tmp_path / "z", parts))
    assert "more than 200 times the size" in message


# ------------------------------------------------------------------ nothing leads elsewhere


def test_hdf5_that_points_to_other_files_is_refused(read, tmp_path):
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = np.ones((4, 2))
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = h5py.ExternalLink("other.h5", "X")
    assert "contains a link to another file, at X" in refusal(read, "table", path)
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (8, 8), "u1", external=[(str(secret), 0, 64)])
    assert "stores values in another file, at X" in refusal(read, "table", path)
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout(shape=(4, 2), dtype="f8")
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", shape=(4, 2))
        file.create_virtual_dataset("X", layout)
    assert "stores values in another file, at X" in refusal(read, "table", path)


def test_zarr_that_points_to_other_files_is_refused(read, samples, tmp_path):
    sample = samples["zarr"]
    path = sample.write(tmp_path / "z")
    (tmp_path / "secret").write_bytes(b"secret")
    next(path.rglob("0*")).parent.joinpath("9").symlink_to(tmp_path / "secret")
    assert "contains a symbolic link, at " in refusal(read, "table", path)


def test_pipes_and_devices_are_refused_without_waiting(read, samples, tmp_path):
    """Nothing writes to the pipes: opening one would block forever."""
    for reader, name in (
        ("table", "a.csv"), ("table", "a.npy"), ("table", "a.npz"), ("table", "a.mtx"),
        ("table", "a.parquet"), ("table", "a.h5ad"), ("table", "a.zarr"), ("embedding", "m.csv"),
        ("model", "m.mercat"), ("from_npz", "p.npz"), ("info", "m.mercat"), ("info", "a.csv"),
    ):  # fmt: skip
        path = tmp_path / f"pipe-{reader}-{name}"
        os.mkfifo(path)
        assert "is a pipe, not a file" in refusal(read, reader, path)
        path = tmp_path / f"zero-{reader}-{name}"
        path.symlink_to("/dev/zero")
        assert "is a device, not a file" in refusal(read, reader, path)
        path = tmp_path / f"kernel-{reader}-{name}"
        path.symlink_to("/proc/kmsg")  # a regular file of no bytes, which blocks
        assert "is a part of the kernel, not a file" in refusal(read, reader, path)
        path = tmp_path / f"folder-{reader}-{name}"
        path.mkdir()
        refusal(read, reader, path)
    sample = samples["zarr"]
    path = sample.write(tmp_path / "z")
    os.mkfifo(next(path.rglob("0*")).parent / "9")
    assert "is a pipe, not a file" in refusal(read, "table", path)


def test_paths_in_archives_are_not_followed(read, tmp_path):
    X = npy(np.random.default_rng(0).normal(size=(9, 3)))
    inside = tmp_path / "inside"
    inside.mkdir()
    path = inside / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.npy", X)
        archive.writestr("/evil.npy", X[:100])
    assert "array '/evil' is broken" in refusal(read, "table", path)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # of the existing name
        archive.writestr("X.npy", X)
        archive.writestr("X.npy", X)
    assert "has two arrays 'X'" in refusal(read, "table", path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["inside"]
    assert [entry.name for entry in inside.iterdir()] == ["a.npz"]


def test_text_that_is_not_unicode_is_refused(read, tmp_path):
    codes = np.array([0x110000, 97], dtype=np.uint32).view("U1")
    X = npy(np.ones((2, 2)))
    content = header((2,), "<U1")[:-64] + codes.tobytes()
    (tmp_path / "a.npz").write_bytes(zipped(X__npy=X, label__npy=content))
    message = refusal(read, "table", tmp_path / "a.npz")
    assert "array 'label' holds text that is not Unicode" in message


@pytest.mark.parametrize(
    "read",
    [lambda: exec("from anndata.compat import no_such_name"), lambda: np.empty(1 << 50)],
    ids=["import", "allocate"],
)
def test_imports_and_allocations_requested_by_files_are_refused(tmp_path, read):
    path = tmp_path / "cells.h5ad"
    path.write_bytes(b"few")
    with pytest.raises(ValueError, match=r"cells\.h5ad is not a table"), reading(path, "a table"):
        read()
    with pytest.raises(ModuleNotFoundError), reading(path, "a table"):
        raise ModuleNotFoundError("of a package that is not installed")
    with pytest.raises(MemoryError), reading(path, "a table"):
        raise MemoryError
