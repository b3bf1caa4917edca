"""Small valid files of every format that Mercat reads, ways to damage them, and a process that reads them."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

SECONDS = 60  # maximum processor time for reading a small file
_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(12, 4)).astype(np.float32)
_Y = _X[:, :3] / np.linalg.norm(_X[:, :3], axis=1, keepdims=True)
_LABELS = np.array(list("abc" * 4))


# ------------------------------------------------------------------ valid files


@dataclass(frozen=True)
class Sample:
    """A valid file in parts that can be damaged separately, and a function that joins them."""

    reader: str
    name: str
    parts: dict[str, bytes]
    assemble: Callable[[dict[str, bytes], Path], None]
    beside: dict[str, bytes]

    def write(self, folder: Path, parts: dict[str, bytes] | None = None) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in self.beside.items():
            _put(folder / name, content)
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.assemble(self.parts if parts is None else parts, path)
        return path


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _plain(parts: dict[str, bytes], path: Path) -> None:
    path.write_bytes(parts[""])


def _gzipped(parts: dict[str, bytes], path: Path) -> None:
    path.write_bytes(gzip.compress(parts[""], 1, mtime=0))


def _zipped(parts: dict[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _folder(parts: dict[str, bytes], path: Path) -> None:
    for name, content in parts.items():
        _put(path / name, content)


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _bytes_of(write: Callable[[Any], Any], folder: Path, name: str) -> bytes:
    write(folder / name)
    return (folder / name).read_bytes()


def samples(folder: Path) -> dict[str, Sample]:
    """Samples of all formats by short name, created in `folder`."""
    found: dict[str, Sample] = {}

    def add(
        key: str,
        reader: str,
        name: str,
        parts: bytes | dict[str, bytes],
        assemble: Callable[..., None] = _plain,
        **beside: bytes,
    ) -> None:
        parts = {"": parts} if isinstance(parts, bytes) else parts
        others = {k.replace("__", "."): v for k, v in beside.items()}
        found[key] = Sample(reader, name, parts, assemble, others)

    _add_tables(add, folder)
    _add_arrays(add, folder)
    _add_annotated(add, folder)
    _add_datasets(add, folder)
    return found


def _frame() -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            "kind": pd.Categorical(_LABELS),
            "name": [f"row {k}" for k in range(12)],
            "day": pd.date_range("2024-01-01", periods=12),
            **{f"g{k}": _X[:, k] for k in range(4)},
            "count": np.arange(12)[::-1],
        }
    )


def _add_tables(add: Callable[..., None], folder: Path) -> None:
    text = _frame().to_csv(index=False).encode()
    add("csv", "table", "a.csv", text)
    add("tsv", "table", "a.tsv", text.replace(b",", b"\t"))
    add("csv.gz", "table", "a.csv.gz", gzip.compress(text, mtime=0))
    add("csv in gz", "table", "a.csv.gz", text, _gzipped)
    add("map", "embedding", "m.csv", b"x,y,z,loss\n" + _lines(np.column_stack([_Y, _X[:, 0]]), ","))
    add(
        "parquet",
        "table",
        "a.parquet",
        _bytes_of(lambda p: _frame().to_parquet(p), folder, "a.parquet"),
    )
    add(
        "feather",
        "table",
        "a.feather",
        _bytes_of(lambda p: _frame().to_feather(p), folder, "a.feather"),
    )


def _lines(rows: np.ndarray, delimiter: str) -> bytes:
    return "".join(delimiter.join(map(repr, row.tolist())) + "\n" for row in rows).encode()


def _add_arrays(add: Callable[..., None], folder: Path) -> None:
    import scipy.io
    import scipy.sparse

    import mercat

    sparse = scipy.sparse.random(12, 6, 0.4, format="csr", random_state=0)
    add("npy", "table", "a.npy", _bytes_of(lambda p: np.save(p, _X), folder, "a.npy"))
    arrays = _bytes_of(lambda p: np.savez(p, X=_X, labels=_LABELS), folder, "a.npz")
    packed = _bytes_of(lambda p: np.savez_compressed(p, X=_X, labels=_LABELS), folder, "packed.npz")
    add("npz", "table", "a.npz", arrays)
    add("packed npz", "table", "a.npz", packed)
    add("in npz", "table", "a.npz", _members(arrays), _zipped)
    add("map npz", "embedding", "m.npz", _members(_npz(Y=_Y, labels=_LABELS)), _zipped)
    triplets = _bytes_of(
        lambda p: scipy.sparse.save_npz(p, sparse.tocoo(), compressed=False), folder, "t.npz"
    )
    rows = _bytes_of(lambda p: scipy.sparse.save_npz(p, sparse, compressed=False), folder, "s.npz")
    add("sparse npz", "table", "s.npz", _members(rows), _zipped)
    add("triplets npz", "table", "s.npz", _members(triplets), _zipped)
    for name, format in (("diagonals npz", "dia"), ("blocks npz", "bsr")):
        stream = io.BytesIO()
        scipy.sparse.save_npz(stream, sparse.asformat(format), compressed=False)
        add(name, "table", "s.npz", _members(stream.getvalue()), _zipped)
    matrix = _bytes_of(lambda p: scipy.io.mmwrite(p, sparse.tocoo()), folder, "m.mtx")
    names = {
        "features__tsv": b"".join(b"E%d\tG%d\n" % (k, k) for k in range(12)),
        "barcodes__tsv": b"".join(b"C%d\n" % k for k in range(6)),
    }
    add("mtx", "table", "m.mtx", matrix, **names)
    add(
        "dense mtx", "table", "m.mtx", _bytes_of(lambda p: scipy.io.mmwrite(p, _X), folder, "d.mtx")
    )
    add("mtx in gz", "table", "m.mtx.gz", matrix, _gzipped)
    model = mercat.Mercat(random_state=0, detail=0.3).fit(np.repeat(_X, 2, axis=0) + np.eye(24, 4))
    whole = mercat.save(model, folder / "m.mercat").read_bytes()
    add("model", "model", "m.mercat", whole)
    add("in model", "model", "m.mercat", _members(whole), _zipped)
    add("model for info", "info", "m.mercat", whole)


def _npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _add_annotated(add: Callable[..., None], folder: Path) -> None:
    import anndata
    import pandas as pd
    import scipy.sparse

    from mercat._anndata.maps import write_map

    obs = pd.DataFrame(
        {
            "type": pd.Categorical(_LABELS),
            "donor": [f"d{k % 5}" for k in range(12)],
            "age": pd.array([1, None, 3] * 4, dtype="Int64"),
            "sick": np.arange(12) % 2 == 0,
            "depth": _X[:, 0].astype(np.float64),
        },
        index=[f"c{k}" for k in range(12)],
    )
    adata = anndata.AnnData(_X, obs=obs, layers={"s": scipy.sparse.csr_matrix(_X)})
    adata.raw = adata.copy()
    adata.obsm["X_pca"] = _X[:, :2].copy()
    adata.obsp["distances"] = scipy.sparse.csr_matrix(np.roll(np.eye(12), 1, axis=1))
    adata.varm["PCs"] = _X[:4, :2].copy()
    adata.uns["about"] = {"text": "note", "numbers": np.arange(3)}
    adata.uns["type_colors"] = np.array(["#ff0000", "#00ff00", "#0000ff"])
    adata.write_h5ad(folder / "a.h5ad")
    add("h5ad", "table", "a.h5ad", (folder / "a.h5ad").read_bytes())
    adata.write_h5ad(folder / "p.h5ad", compression="gzip")
    add("packed h5ad", "table", "a.h5ad", (folder / "p.h5ad").read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr format 3
        adata.write_zarr(folder / "a.zarr")
    add("zarr", "table", "a.zarr", _parts(folder / "a.zarr"), _folder)
    write_map(adata, _Y, _X[:, 0], {"status": "done"})
    adata.write_h5ad(folder / "m.h5ad")
    add("map h5ad", "embedding", "m.h5ad", (folder / "m.h5ad").read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_zarr(folder / "m.zarr")
    add("map zarr", "embedding", "m.zarr", _parts(folder / "m.zarr"), _folder)


def _parts(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _add_datasets(add: Callable[..., None], folder: Path) -> None:
    images = np.arange(12 * 6, dtype=np.uint8).reshape(12, 2, 3)
    digits = idx(np.arange(12, dtype=np.uint8))
    name = "train-images-idx3-ubyte"
    labels = {"train-labels-idx1-ubyte": digits}
    add("idx", "mnist", name, idx(images), **labels)
    packed = {"train-labels-idx1-ubyte__gz": gzip.compress(digits, mtime=0)}
    add("idx in gz", "mnist", f"{name}.gz", idx(images), _gzipped, **packed)
    head = "@RELATION m\n" + "".join(f"@ATTRIBUTE p{k} real\n" for k in range(4)) + "@DATA\n"
    arff = head.encode() + _lines(np.arange(48).reshape(12, 4), ",")
    place = "openml/openml.org/data/v1/download/52667.gz"
    add("arff", "mnist", place, arff, _gzipped)
    keras = _npz(x_train=images, y_train=np.arange(12))
    add("mnist.npz", "mnist", "mnist.npz", _members(keras), _zipped)
    add("prepared", "from_npz", "p.npz", _members(_npz(X=_X, labels=_LABELS)), _zipped)
    points = json.dumps(_X[:, :3].tolist()).encode()
    add("json", "mammoth", "mammoth_3d.json", points)
    counts = json.dumps({"labelOffsets": [5, 7]}).encode()
    add("json parts", "mammoth", "mammoth_10k_encoded.json", counts, mammoth_3d__json=points)
    add("paul15", "paul15", "paul15.h5", _paul15(folder))
    add("loom", "pancreas", "pancreas.loom", _loom(folder))
    table = b"GENE\tAAA\tCCC\tGGG\nCCNB1\t1\t0\t3\nONLY_C\t0\t9\t0\nTOP2A\t1\t2\t1\n"
    phases = b'"cell","phase"\n"GGG","G2.M"\n"AAA","G1.S"\n'
    matrix = "GSM4224315_out_gene_exon_tagged.dge_exonssf002_WT.txt"
    add("hela", "hela", matrix, table, hela_phases__csv=phases)
    add("hela in gz", "hela", f"{matrix}.gz", table, _gzipped, hela_phases__csv=phases)
    add("phases", "hela", "hela_phases.csv", phases, **{matrix.replace(".", "__"): table})
    line = b'chr1\tx\tgene\t1\t2\t.\t+\t.\tgene_id "ENS%d"; gene_type "protein_coding";\n'
    add("gtf", "gtf", "genes.gtf.gz", b"".join(line % k for k in range(9)), _gzipped)


def idx(array: np.ndarray) -> bytes:
    """Encode an array in the format of MNIST."""
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()


def _paul15(folder: Path) -> bytes:
    import h5py

    with h5py.File(folder / "paul15.h5", "w") as file:
        file["data.debatched"] = np.arange(12).reshape(4, 3)
        file["data.debatched_rownames"] = np.array([b"Zfp;Old", b"Other", b"Actb", b"Actb;Twice"])
        file["data.debatched_colnames"] = np.array([b"W1", b"W2", b"W3"])
        file["cluster.id"] = np.array([[7.0], [1.0], [19.0]])
        file["info.genes_strings"] = np.array([b"Actb", b"Zfp", b"Corrupt"])
    return (folder / "paul15.h5").read_bytes()


def _loom(folder: Path) -> bytes:
    import h5py

    with h5py.File(folder / "pancreas.loom", "w") as file:
        file["matrix"] = _X.T
        file["row_attrs/Gene"] = np.array([b"a", b"b", b"c", b"d"])
        file["col_attrs/CellID"] = np.array([f"c{k}" for k in range(12)], h5py.string_dtype())
        file["col_attrs/clusters_fig3_final"] = _LABELS.astype("S")
    return (folder / "pancreas.loom").read_bytes()


# ------------------------------------------------------------------ a process that reads


class Reader:
    """A process that reads files and reports the outcomes; restarted if it dies.

    It reads all samples first, so that the first use of a library is not attributed to a file.
    """

    def __init__(self, samples: dict[str, Sample], folder: Path) -> None:
        self._samples, self._folder = samples, folder
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, reader: str, path: Path) -> dict[str, Any]:
        """Outcome of a file: `outcome` is "read", "refused", "raised", "died" or "slow"."""
        if self._process is None:
            self._process = self._begin()
            for sample in self._samples.values():
                self._ask(sample.reader, sample.write(self._folder), warm=True)
        return self._ask(reader, path)

    def _ask(self, reader: str, path: Path, warm: bool = False) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        question = {"reader": reader, "path": str(path), "warm": warm}
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        begun, waited = _work(process.pid), 0
        while not select.select([process.stdout], [], [], 1)[0]:
            waited += 1
            if _work(process.pid) - begun > SECONDS or waited > 10 * SECONDS:
                self.close()
                return {"outcome": "slow", "kind": "", "message": "", "seen": []}
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            self.close()
            return {"outcome": "died", "kind": str(code), "message": "", "seen": []}
        return json.loads(line)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @staticmethod
    def _begin() -> subprocess.Popen[str]:
        here = Path(__file__).parent
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        return subprocess.Popen(
            [sys.executable, str(here / "hostile_reader.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )


def _work(pid: int) -> float:
    """Processor time of a process in seconds, without waiting."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ------------------------------------------------------------------ damage

_ABSURD = [0, 1, -1, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**40, 2**63 - 1, 10**15]
_PLACE = st.tuples(st.sampled_from(["head", "tail", "any"]), st.integers(0, 2**20))
_LENGTH = st.integers(1, 64)
DAMAGE = st.one_of(
    st.tuples(st.just("flip"), _PLACE, st.integers(0, 7)),
    st.tuples(st.just("byte"), _PLACE, st.integers(0, 255)),
    st.tuples(st.just("cut"), _PLACE),
    st.tuples(st.just("remove"), _PLACE, _LENGTH),
    st.tuples(st.just("repeat"), _PLACE, _LENGTH, st.integers(1, 300)),
    st.tuples(st.just("copy"), _PLACE, _PLACE, _LENGTH),
    st.tuples(st.just("integer"), _PLACE, st.sampled_from("BHIQ"), st.sampled_from(_ABSURD)),
    st.tuples(st.just("digits"), st.integers(0, 200), st.sampled_from([*_ABSURD, 10**30, "1e999"])),
    st.tuples(
        st.just("text"),
        _PLACE,
        st.sampled_from([b'"', b"\0", b"\n\n", b"\xff", b"nan", b"../", b"["]),
    ),
)


def damaged(content: bytes, damage: tuple[Any, ...]) -> bytes:
    """Return the content with one kind of damage."""
    kind, *rest = damage
    if kind == "digits":
        return _with_digits(content, *rest)
    at = _position(content, rest[0])
    if kind == "cut":
        return content[:at]
    if kind == "remove":
        return content[:at] + content[at + rest[1] :]
    if kind == "repeat":
        return content[:at] + content[at : at + rest[1]] * rest[2] + content[at:]
    if kind == "copy":
        start = _position(content, rest[1])
        return _over(content, at, content[start : start + rest[2]])
    if kind == "flip":
        return _over(content, at, bytes([content[at] ^ 1 << rest[1]]) if content else b"")
    if kind == "byte":
        return _over(content, at, bytes([rest[1]]))
    if kind == "text":
        return content[:at] + rest[1] + content[at:]
    size = struct.calcsize(rest[1])
    value = (rest[2] & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return _over(content, at - at % size, value)


def _position(content: bytes, place: tuple[str, int]) -> int:
    where, number = place
    last = max(len(content) - 1, 0)
    near = number % min(256, last + 1)
    return {"head": near, "tail": last - near, "any": number % (last + 1)}[where]


def _over(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def _with_digits(content: bytes, k: int, value: Any) -> bytes:
    """Replace the k-th number in a text (modulo their count)."""
    found = list(re.finditer(rb"\d+", content[:20_000]))
    if not found:
        return content
    start, end = found[k % len(found)].span()
    return content[:start] + str(value).encode() + content[end:]
