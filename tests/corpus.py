"""Mutated files of every format that Mercat reads; the same seed and number give the same file.

Half of them are valid files with damaged bytes (`hostile.damaged`). The others are well-formed, but have
unexpected types, shapes, numbers, names, links or metadata, so that they pass the first checks of a format.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import numpy as np

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    12,
    13,
    127,
    255,
    2**15,
    2**31 - 1,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]
JSON_VALUES = [
    *NUMBERS, 10**30, 1e308, -0.5, float("nan"), None, True, "", "x", "../x", "\x1b[2J", "|O", "<f8", ">i2",
    "<U9", "O", "pickle", "numcodecs.pickle", "blosc", [], {}, [[]], [0], [1, 2, 3], [-1, 4], ["a"] * 40,
    {"id": "pickle"}, {"id": "gzip", "level": 99}, "NaN", "float32", "string", "/etc/passwd",
]  # fmt: skip
TEXTS = ["", " ", "0", "-1", "1e999", "nan", "inf", "0x10", "1_000", "٣", "1,5", '"', "\0", "a\tb", "é" * 30,
         "9" * 400, "\ud800", "=1+1", "\u202e", "row\nrow", "%", "#", "NA"]  # fmt: skip


def mutate(name: str, sample: hostile.Sample, number: int, seed: int, folder: Path) -> Path:
    """Write file `number` of a format into `folder` and return its path."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    kind = next((k for k in STRUCTURED if sample.name.endswith(k)), None)
    if kind is None or number % 2 == 0:
        parts = dict(sample.parts)
        for _ in range(int(rng.integers(1, 5))):
            part = _pick(rng, list(parts))
            parts[part] = hostile.damaged(parts[part], damage(rng))
        return sample.write(folder, parts)
    path = sample.write(folder)
    for _ in range(int(rng.integers(1, 4))):
        STRUCTURED[kind](path, rng)
    return path


def damage(rng: np.random.Generator) -> tuple[Any, ...]:
    """Apply one kind of damage of `hostile.DAMAGE`, chosen by a NumPy generator."""
    place = (_pick(rng, ["head", "tail", "any"]), int(rng.integers(2**20)))
    length = int(rng.integers(1, 65))
    kind = _pick(
        rng, ["flip", "byte", "cut", "remove", "repeat", "copy", "integer", "digits", "text"]
    )
    more: dict[str, tuple[Any, ...]] = {
        "flip": (place, int(rng.integers(8))),
        "byte": (place, int(rng.integers(256))),
        "cut": (place,),
        "remove": (place, length),
        "repeat": (place, length, int(rng.integers(1, 300))),
        "copy": (place, (_pick(rng, ["head", "tail", "any"]), int(rng.integers(2**20))), length),
        "integer": (place, _pick(rng, list("BHIQ")), _pick(rng, NUMBERS)),
        "digits": (int(rng.integers(200)), _pick(rng, [*NUMBERS, 10**30, "1e999"])),
        "text": (place, _pick(rng, [b'"', b"\0", b"\n\n", b"\xff", b"nan", b"../", b"[", b"\r"])),
    }
    return (kind, *more[kind])


def _pick(rng: np.random.Generator, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


# ------------------------------------------------------------------ arrays


def array(rng: np.random.Generator, old: np.ndarray | None = None) -> np.ndarray:
    """Change the type, shape or values of an array, or return an unrelated one."""
    if old is None or rng.random() < 0.2:
        shape = tuple(int(n) for n in rng.choice([0, 1, 2, 3, 12, 13, 40], size=rng.integers(4)))
        old = rng.integers(-3, 20, size=shape).astype(float)
    new = np.array(old)
    what = _pick(rng, ["type", "shape", "value", "values", "order"])
    if what == "type":
        dtype = _pick(rng, ["f2", "f4", ">f8", "i1", "u8", ">i4", "?", "c16", "S3", "U3", "M8[s]"])
        try:
            with np.errstate(all="ignore"):
                return new.astype(dtype)
        except (TypeError, ValueError, RuntimeError):
            return np.zeros(new.shape, dtype)
    if what == "shape":
        change: list[Callable[[], np.ndarray]] = [
            lambda: new.ravel(), lambda: new[..., None], lambda: new[:-1], lambda: new[:0],
            lambda: np.concatenate([new, new]), lambda: new.T, lambda: new[:1],
        ]  # fmt: skip
        try:
            return np.ascontiguousarray(_pick(rng, change)())
        except (IndexError, ValueError):
            return new
    if what == "order":
        return np.asfortranarray(new)
    if new.size and new.dtype.kind in "biuf":
        size = 1 if what == "value" else max(1, new.size // 3)
        at = rng.integers(new.size, size=size)
        strange = [*NUMBERS, np.nan, np.inf, -np.inf, 1e308, 5e-324]
        with np.errstate(all="ignore"):
            picked = [float(_pick(rng, strange)) for _ in range(size)]
            new.reshape(-1)[at] = np.nan_to_num(picked, posinf=2**31, neginf=-5).astype(new.dtype)
            if new.dtype.kind == "f":
                new.reshape(-1)[at] = picked
    return new


def _npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=False)
    return stream.getvalue()


def _loaded(content: bytes) -> np.ndarray | None:
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return None


def _change_npy(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(_npy(array(rng, _loaded(path.read_bytes()))))


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _pack(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)


def _change_npz(path: Path, rng: np.random.Generator) -> None:
    members = _members(path)
    name = _pick(rng, list(members))
    what = _pick(
        rng, ["array", "array", "array", "array", "swap", "remove", "add", "rename", "pack"]
    )
    if what == "swap":
        members[name] = members[_pick(rng, list(members))]
    elif what == "remove" and len(members) > 1:
        del members[name]
    elif what == "add":
        members[f"{_pick(rng, TEXTS)}.npy".replace("\ud800", "")] = _npy(array(rng))
    elif what == "rename":
        new = _pick(
            rng, ["X.npy", "format.npy", "shape.npy", "data.npy", "coords.npy", "a/../b.npy"]
        )
        members[new] = members.pop(name)
    elif what == "array":
        members[name] = _npy(array(rng, _loaded(members[name])))
    _pack(path, members, zipfile.ZIP_DEFLATED if what == "pack" else zipfile.ZIP_STORED)


def _change_model(path: Path, rng: np.random.Generator) -> None:
    members = _members(path)
    if rng.random() < 0.5:
        header = json.loads(members["model.json"])
        change_json(header, rng)
        members["model.json"] = json.dumps(header).encode()
    else:
        name = _pick(rng, [name for name in members if name != "model.json"])
        members[name] = _npy(array(rng, _loaded(members[name])))
    _pack(path, members)


# ------------------------------------------------------------------ text


def _change_text(path: Path, rng: np.random.Generator) -> None:
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    k = int(rng.integers(len(lines)))
    delimiter = "\t" if "\t" in lines[0] else " " if lines[0].startswith("%") else ","
    cells = lines[k].split(delimiter)
    what = _pick(rng, ["cell", "cell", "more", "fewer", "twice", "header", "empty", "end", "swap"])
    if what == "cell":
        cells[int(rng.integers(len(cells)))] = _pick(rng, TEXTS)
    elif what == "more":
        cells += [_pick(rng, TEXTS)] * int(_pick(rng, [1, 2, 500]))
    elif what == "fewer":
        cells = cells[:-1]
    elif what == "swap":
        cells = cells[::-1]
    lines[k] = delimiter.join(cells)
    if what == "twice":
        lines[k:k] = [lines[k]] * int(_pick(rng, [1, 3, 300]))
    elif what == "header":
        lines[0] = delimiter.join(_pick(rng, TEXTS) for _ in lines[0].split(delimiter))
    elif what == "empty":
        lines = lines[: int(rng.integers(3))]
    end = _pick(rng, ["\r\n", "\r", "\n\n"]) if what == "end" else "\n"
    codec = _pick(rng, ["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
    path.write_bytes(end.join(lines).encode(codec, "replace"))


# ------------------------------------------------------------------ JSON


def change_json(tree: Any, rng: np.random.Generator) -> None:
    """Replace, remove or add one value in a tree of dictionaries and lists, in place."""
    nodes = [node for node in _nodes(tree) if node]
    if not nodes:
        return
    node = _pick(rng, nodes)
    key = _pick(rng, list(node)) if isinstance(node, dict) else int(rng.integers(len(node)))
    what = rng.random()
    if what < 0.15:
        del node[key]
    elif what < 0.3 and isinstance(node, dict):
        node[_pick(rng, ["shape", "dtype", "id", "dict", "array", "tuple", "zarr_format"])] = node[
            key
        ]
    elif what < 0.4:
        other = _pick(rng, nodes)
        node[key] = json.loads(json.dumps(other))  # a copy: JSON has no cycles
    else:
        node[key] = _pick(rng, JSON_VALUES)


def _nodes(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(n for entry in value.values() for n in _nodes(entry))]
    if isinstance(value, list):
        return [value, *(n for entry in value for n in _nodes(entry))]
    return []


# ------------------------------------------------------------------ HDF5


def _change_hdf5(path: Path, rng: np.random.Generator) -> None:
    import h5py

    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        if not names:
            return
        name = _pick(rng, names)
        item = file.get(name)
        if item is None:  # a dangling link
            return
        what = _pick(
            rng, ["attribute"] * 5 + ["data"] * 6 + ["link"] * 2 + ["delete", "odd", "move"]
        )
        parent = name.rpartition("/")[0]
        if what == "attribute" and len(item.attrs):
            _change_attribute(item, rng)
        elif what == "data" and isinstance(item, h5py.Dataset):
            _change_dataset(file, name, item, rng)
        elif what == "delete":
            del file[name]
        elif what == "move":
            file.move(name, f"{name}_{rng.integers(9)}")
        elif what == "odd":
            del file[name]
            _odd_dataset(file, name, rng)
        elif what == "link":
            target = _pick(rng, ["/", f"/{parent}", *names])
            del file[name]
            soft = rng.random() < 0.5 or target not in file
            file[name] = h5py.SoftLink(f"/{target.lstrip('/')}") if soft else file[target]


def _change_attribute(item: Any, rng: np.random.Generator) -> None:
    key = _pick(rng, list(item.attrs))
    encodings = [
        "anndata", "dataframe", "array", "csr_matrix", "csc_matrix", "categorical", "string-array", "dict",
        "raw", "nullable-integer", "nullable-boolean", "rec-array", "awkward-array", "string", "null",
    ]  # fmt: skip
    old = item.attrs[key]
    if rng.random() < 0.2:
        del item.attrs[key]
    elif isinstance(old, str):
        item.attrs[key] = _pick(rng, [*encodings, "0.1.0", "0.2.0", "9.9.9", "é", "_index", "X", 7])
    else:
        try:
            numbers = np.atleast_1d(np.asarray(old, dtype=float))
        except ValueError:  # names of columns
            numbers = np.arange(4.0)
        item.attrs[key] = np.atleast_1d(_as_float(array(rng, numbers)))[:50]
    if key == "shape":
        item.attrs[key] = [_pick(rng, [0, 4, 12, 2**31, 2**40, -4]) for _ in range(rng.integers(4))]


def _as_float(values: np.ndarray) -> np.ndarray:
    return values.astype(float) if values.dtype.kind in "biuf" else np.zeros(values.shape)


def _change_dataset(file: Any, name: str, item: Any, rng: np.random.Generator) -> None:
    attributes = dict(item.attrs)
    try:
        old = np.asarray(item[()])
    except Exception:
        old = None
    del file[name]
    if old is None or old.dtype.kind not in "biufc":
        values = [_pick(rng, TEXTS).replace("\ud800", "").replace("\0", "") for _ in range(12)]
        kind = _pick(rng, ["text", "bytes", "numbers", "broken", "fewer"])
        if kind == "numbers":
            new = file.create_dataset(name, data=_as_float(array(rng, np.arange(12.0))))
        elif kind == "fewer":
            new = file.create_dataset(name, data=np.array(values[:5], dtype=object))
        elif kind == "bytes":
            new = file.create_dataset(name, data=np.array([v.encode() for v in values], dtype="S"))
        else:
            texts = [
                b"\xff\xfe%d" % k if kind == "broken" else v.encode() for k, v in enumerate(values)
            ]
            new = file.create_dataset(name, data=np.array(texts, dtype=object))
    else:
        values = array(rng, old)
        if values.dtype.kind in "UM":
            values = values.astype("S")
        options = {}
        if values.ndim and values.size and rng.random() < 0.5:
            options = {"chunks": True, "compression": "gzip", "shuffle": True}
        new = file.create_dataset(name, data=values, **options)
    for key, value in attributes.items():
        new.attrs[key] = value


def _odd_dataset(file: Any, name: str, rng: np.random.Generator) -> None:
    import h5py

    what = _pick(rng, ["null", "scalar", "record", "enum", "huge", "vlen", "reference", "axes"])
    if what == "null":
        file[name] = h5py.Empty("f8")
    elif what == "scalar":
        file[name] = 1.5
    elif what == "record":
        file[name] = np.zeros(12, dtype=[("a", "f8"), ("b", "i4"), ("index", "S4")])
    elif what == "enum":
        kind = h5py.enum_dtype({"FALSE": 0, "TRUE": 1, "x" * 50: 7}, basetype="i1")
        file.create_dataset(name, data=np.arange(12, dtype="i1"), dtype=kind)
    elif what == "huge":
        shape = tuple(int(_pick(rng, [12, 4, 10**4, 10**9])) for _ in range(2))
        file.create_dataset(name, shape, "f4", chunks=(4, 4), fillvalue=1.0)
    elif what == "vlen":
        file.create_dataset(name, (12,), h5py.vlen_dtype(np.int8))
    elif what == "reference":
        file.create_dataset(name, data=np.array([file.ref] * 12, dtype=h5py.ref_dtype))
    else:
        file.create_dataset(name, (1,) * 30, "f4")


# ------------------------------------------------------------------ zarr


def _change_zarr(path: Path, rng: np.random.Generator) -> None:
    files = sorted(part for part in path.rglob("*") if part.is_file())
    about = [
        f for f in files if f.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
    ]
    chunks = [f for f in files if f not in about]
    what = _pick(rng, ["json"] * 8 + ["chunk"] * 3 + ["swap", "remove", "copy", "folder"])
    part = _pick(rng, about if what == "json" or not chunks else chunks)
    if what == "json":
        try:
            tree = json.loads(part.read_bytes())
        except ValueError:
            return
        change_json(tree, rng)
        part.write_text(json.dumps(tree))
        for consolidated in path.glob(
            ".zmetadata"
        ):  # otherwise, values elsewhere would not be read
            if rng.random() < 0.7:
                consolidated.unlink()
    elif what == "chunk":
        part.write_bytes(hostile.damaged(part.read_bytes(), damage(rng)))
    elif what == "swap":
        part.write_bytes(_pick(rng, files).read_bytes())
    elif what == "remove":
        part.unlink()
    elif what == "copy":
        to = path / f"obsm/x{rng.integers(99)}"
        to.mkdir(parents=True, exist_ok=True)
        for other in _pick(rng, files).parent.iterdir():
            if other.is_file():
                shutil.copy(other, to)
    else:
        part.unlink()
        part.mkdir()


# ------------------------------------------------------------------ Arrow


def _change_arrow(path: Path, rng: np.random.Generator) -> None:
    """Change types of columns, names (also to duplicates), or the metadata of pandas."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    read = parquet.read_table if path.suffix == ".parquet" else feather.read_table
    try:
        table = read(path)
    except Exception:
        return
    n = table.num_rows
    kinds: list[Callable[[], Any]] = [
        lambda: pa.array([[1, 2]] * n), lambda: pa.array([{"a": 1}] * n), lambda: pa.nulls(n),
        lambda: pa.array(["a", "b"][:n] * n)[:n].dictionary_encode(), lambda: pa.array([b"\xff"] * n),
        lambda: pa.array([10**30] * n, pa.decimal128(38, 2)), lambda: pa.array([2**63] * n, pa.uint64()),
        lambda: pa.array([-(10**12)] * n, pa.timestamp("s")), lambda: pa.array([1] * n, pa.duration("s")),
        lambda: pa.array(np.full(n, np.nan)), lambda: pa.array([1.5] * n, pa.float16()),
        lambda: pa.array([None, *["\x1b"] * n][:n], pa.large_string()), lambda: pa.array([True] * n),
    ]  # fmt: skip
    what = _pick(rng, ["column"] * 4 + ["name", "twice", "rows", "none", "pandas", "pandas"])
    k = int(rng.integers(max(table.num_columns, 1)))
    if what == "column" and table.num_columns:
        table = table.set_column(k, table.schema.names[k], _pick(rng, kinds)())
    elif what == "name" and table.num_columns:
        names = list(table.schema.names)
        names[k] = _pick(rng, TEXTS).replace("\ud800", "")
        table = table.rename_columns(names)
    elif what == "twice" and table.num_columns:
        table = table.append_column(table.schema.names[k], table.column(k))
    elif what == "rows":
        table = table.slice(0, int(rng.integers(3)))
    elif what == "none":
        table = table.select([])
    elif what == "pandas" and table.schema.metadata:
        about = dict(table.schema.metadata)
        tree = json.loads(about.get(b"pandas", b"{}"))
        change_json(tree, rng)
        about[b"pandas"] = json.dumps(tree).encode()
        table = table.replace_schema_metadata(about)
    try:
        if path.suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            feather.write_feather(table, str(path))
    except Exception:
        return  # a format that does not support such a column


def _change_idx(path: Path, rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    at = 4 * int(rng.integers(1, 4))
    content[at : at + 4] = struct.pack(">I", _pick(rng, NUMBERS) & 0xFFFFFFFF)
    path.write_bytes(content)


STRUCTURED: dict[str, Callable[[Path, np.random.Generator], None]] = {
    ".h5ad": _change_hdf5, ".h5": _change_hdf5, ".loom": _change_hdf5, ".zarr": _change_zarr,
    ".npz": _change_npz, ".npy": _change_npy, ".mercat": _change_model, ".csv": _change_text,
    ".tsv": _change_text, ".mtx": _change_text, ".txt": _change_text, ".parquet": _change_arrow,
    ".feather": _change_arrow, "-ubyte": _change_idx,
}  # fmt: skip
