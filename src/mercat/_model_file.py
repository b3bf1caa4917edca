"""Fitted models in files that are safe to load: arrays and JSON, nothing that runs.

A model file is a zip archive, as NumPy's .npz: `model.json` says what the model is, and each of its arrays
is an .npy file beside it. Nothing is compressed, so that no part can be larger than the file. Loading
checks sizes before it allocates, and every array's type, shape and values before there is a model.

What a fit leaves on `Mercat` is described in `_RULES`, a line a field. A field that a fit adds needs a line
there, and `VERSION` one more as soon as models have been released without it.
"""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercat import __version__

from ._angles import Calibration, Sums
from ._detail import Anchors, Surroundings
from ._estimator import Mercat
from ._neighbors import Strength
from ._placement import Landmarks
from ._repulsion import Field
from ._solvers import DetailPlacer, Placer
from ._spectral import FromDistances, Spectral
from ._status import Status
from ._untrusted import read_array, reading, short
from ._whole import whole_file

VERSION = 1
_FORMAT = "mercat model"
_HEADER = "model.json"
_MOST_MEMBERS = 1000
_TYPES = ("<f4", "<f8", "<i4", "<i8")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes


class Shape(NamedTuple):
    """What an array must look like: letters of `sizes` mean the same number wherever they stand."""

    sizes: str
    kind: str = "f"
    optional: bool = False  # None will do
    missing: bool = False  # NaN will do
    unit: bool = False  # rows are of length 1


# A field must be an array of a shape, or of one of the types.
_RULES: dict[type, dict[str, Any]] = {
    Mercat: {
        "n_features_in_": int,
        "feature_names_in_": Shape("d", "O"),
        "embedding_": Shape("n 3", unit=True),
        "landmarks_": Shape("l", "i"),
        "loss_": float,
        "correlation_": float,
        "calibration_": tuple,
        "point_loss_": Shape("n", missing=True),
        "history_": Shape("h"),
        "n_iter_": int,
        "status_": Status,
        "components_": Shape("r d", optional=True),
        "mean_": Shape("d", optional=True),
        "explained_variance_": Shape("v"),
        "_n_features_out": int,
        "_rotation": Shape("3 3", unit=True),
        "_placer": (Placer, DetailPlacer),
    },
    Placer: {"spectral": (Spectral, FromDistances), "landmarks": Landmarks},
    Spectral: {
        "mean": Shape("d"),
        "components": Shape("r d", optional=True),
        "explained_variance": Shape("v"),
        "unit": float,
        "metric": str,
    },
    FromDistances: {
        "mean": Shape("n"),
        "axes": Shape("n r"),
        "explained_variance": Shape("v"),
        "unit": float,
        "spread": float,
    },
    Landmarks: {
        "X": Shape("L r"),
        "Y": Shape("L 3", unit=True),
        "frame": Shape("2 L 3", unit=True),
        "sigma": Shape("2 L"),
        "sigma12": Shape("L"),
        "P": Shape("2 L r"),
        "p": Shape("2 L"),
        "T": Shape("2 L"),
        "candidates": Shape("G 3", unit=True),
        "C": Shape("2 S G"),
        "C0": Shape("G"),
        "calibration": Calibration,
        "softening": float,
        "n_apex_legs": int,
    },
    Calibration: {"alpha": float, "beta": float},
    DetailPlacer: {"spectral": (Spectral, FromDistances), "surroundings": Surroundings},
    Surroundings: {
        "X": Shape("n r"),
        "Y": Shape("n 3", unit=True),
        "k": int,
        "strength": Strength,
        "field": Field,
        "repulsion": float,
        "anchors": Anchors,
        "calibration": Calibration,
        "variance": float,
        "detail": float,
    },
    Strength: {"unit": float, "factor": float},
    Field: {"values": Shape("F"), "n_rows": int, "n_columns": int},
    Anchors: {"X": Shape("A r"), "Y": Shape("A 3", unit=True), "sums": Sums, "softening": float},
    Sums: {"M": Shape("2 A r"), "S": Shape("2 A"), "S12": Shape("A"), "t": Shape("2 A")},
}
_TUPLES: dict[str, Any] = {kind.__name__: kind for kind in _RULES if issubclass(kind, tuple)}
_OPTIONAL_FIELDS = {"feature_names_in_"}
_MAY_BE_NAN = {"loss_", "correlation_", "_placer.surroundings.variance"}  # or infinite


def save(model: Mercat, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file that is safe to load.

    The file holds arrays and JSON, no code and no pickle. It is written whole or not at all; an existing
    file is replaced.

    Parameters
    ----------
    model : Mercat
        A fitted model. Its `callback` must be None and its `random_state` an integer or None, since
        neither functions nor generators can be kept.
    path : path-like
        Where to write; `.mercat` is a good ending.

    Returns
    -------
    path : Path
        The file written.

    Examples
    --------
    >>> import tempfile
    >>> import mercat, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = mercat.Mercat(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mercat.save(model, f"{folder}/map.mercat")
    ...     again = mercat.load(path)
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    return write_model(model, path)


def load(path: str | os.PathLike[str]) -> Mercat:
    """Read a model that `save`, or `mercat embed --save-model`, has written.

    The model transforms to the same bits as the one that was saved. A file that is broken, hostile or of
    a newer version raises ValueError, which says why.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : Mercat
        The fitted model. A warning tells where the command line had prepared the data (``--log1p``,
        ``--scale``): `transform` then expects rows prepared alike, which `mercat transform` does by itself.
    """
    model, notes = read_model(path)
    if notes.get("prepared"):
        warnings.warn(
            f"{path} was fitted to prepared data ({notes['prepared']}): prepare rows alike before "
            "transform, or use `mercat transform`.",
            stacklevel=2,
        )
    return model


def write_model(
    model: Mercat, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
) -> Path:
    """As `save`, with notes (numbers, text, lists, arrays) that `read_model` gives back."""
    if not isinstance(model, Mercat):
        raise TypeError(f"model must be a Mercat, got {type(model).__name__}.")
    check_is_fitted(model)
    parameters = model.get_params()
    if parameters["callback"] is not None:
        raise ValueError("callback must be None to save a model: a function cannot be kept.")
    if not isinstance(parameters["neighbors"], int | np.integer | None):
        raise ValueError(
            "neighbors must be an integer or None to save a model, got a graph, which is not kept: "
            "set model.neighbors = None first; transform does not need it."
        )
    seed = parameters["random_state"]
    if seed is not None and not isinstance(seed, int | np.integer):
        raise ValueError(
            f"random_state must be an integer or None to save a model, got {type(seed).__name__}."
        )
    state = {name: value for name, value in vars(model).items() if name not in parameters}
    arrays = _Arrays()
    header = {
        "format": _FORMAT,
        "version": VERSION,
        "mercat": __version__,
        "parameters": arrays.encode(parameters, "parameters"),
        "state": arrays.encode(state, "state"),
        "notes": arrays.encode(dict(notes or {}), "notes"),
    }
    text = json.dumps(header, allow_nan=False, indent=1).encode("utf-8")
    with whole_file(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text)
        for name, array in arrays.members.items():
            with archive.open(zipfile.ZipInfo(name, _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return Path(path)


def read_model(path: str | os.PathLike[str]) -> tuple[Mercat, dict[str, Any]]:
    """The model of a file, and the notes written with it."""
    with reading(path):
        try:
            with zipfile.ZipFile(path) as archive:
                header, arrays = _read_archive(archive, os.path.getsize(path))
            return _restore(header, arrays)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a model that can be loaded: {error}") from error
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"{path} is not a whole model file: {short(error)}") from error


# ------------------------------------------------------------------ values as JSON and arrays


class _Arrays:
    """Values as JSON; the arrays among them are put aside, each once, and called by name."""

    def __init__(self) -> None:
        self.members: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def encode(self, value: Any, name: str) -> Any:
        """`value` as JSON. What is neither null, bool, int, text nor list is a dictionary of one key."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, Status):
            return {"status": value.name}
        if isinstance(value, np.ndarray):
            return self._encode_array(value, name)
        if isinstance(value, dict):
            return {"dict": {k: self.encode(v, f"{name}.{k}") for k, v in value.items()}}
        if isinstance(value, list):
            return [self.encode(v, f"{name}.{k}") for k, v in enumerate(value)]
        kind = type(value).__name__
        if _TUPLES.get(kind) is type(value):
            fields = value._asdict().items()
            return {kind: {k: self.encode(v, f"{name}.{k}") for k, v in fields}}
        if type(value) is tuple:
            return {"tuple": self.encode(list(value), name)}
        raise TypeError(f"A model with {name} of type {type(value).__name__} cannot be saved.")

    def _encode_array(self, array: np.ndarray, name: str) -> Any:
        if array.dtype.kind in "OU" and all(isinstance(v, str) for v in array.tolist()):
            return {"names": [str(v) for v in array.tolist()]}
        if array.dtype.str not in _TYPES:
            raise TypeError(f"A model with {name} of type {array.dtype} cannot be saved.")
        if id(array) not in self._names:
            self._names[id(array)] = f"{name}.npy"
            self.members[f"{name}.npy"] = array
        return {"array": self._names[id(array)]}


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_decode(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("its header is malformed.")
    ((kind, content),) = value.items()
    if kind == "dict" and isinstance(content, dict):
        return {k: _decode(v, arrays) for k, v in content.items()}
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "status" and content in Status.__members__:
        return Status[content]
    if kind == "array" and isinstance(content, str):
        if content not in arrays:
            raise ValueError(f"its array {content[:60]!r} is absent.")
        return arrays[content]
    if kind == "names" and isinstance(content, list) and all(isinstance(v, str) for v in content):
        return np.array(content, dtype=object)
    if kind == "tuple" and isinstance(content, list):
        return tuple(_decode(content, arrays))
    if kind in _TUPLES and isinstance(content, dict):
        _check_names(kind, set(content), set(_TUPLES[kind]._fields))
        return _TUPLES[kind](**{k: _decode(v, arrays) for k, v in content.items()})
    raise ValueError(f"its header holds {kind!r}: {str(content)[:60]!r}, which is not known here.")


# ------------------------------------------------------------------ reading, with suspicion


def _read_archive(
    archive: zipfile.ZipFile, file_size: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays. Nothing is allocated that is larger than the file."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if _HEADER not in names:
        raise ValueError(f"it has no {_HEADER}.")
    if len(members) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise ValueError(f"it must have at most {_MOST_MEMBERS} parts, each of its own name.")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("it has compressed parts, which models never have.")
    if sum(member.file_size for member in members) > file_size:
        raise ValueError("its parts claim to be larger than the file.")
    header = json.loads(archive.read(_HEADER).decode("utf-8"))
    _check_version(header)
    return header, {name: _read_array(archive, name) for name in names if name != _HEADER}


def _check_version(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"its {_HEADER} is not that of a model.")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its version must be a positive integer, got {version!r}.")
    if version > VERSION:
        raise ValueError(
            f"it was written by mercat {str(header.get('mercat'))[:20]} in version {version} of the model "
            f"format, and mercat {__version__} reads versions up to {VERSION}: pip install --upgrade mercat"
        )


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as stream:
        array = read_array(stream, archive.getinfo(name).file_size, name)
    if array.dtype.str not in _TYPES:
        raise ValueError(f"{name} must hold one of the types {_TYPES}, got {array.dtype}.")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _restore(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[Mercat, dict[str, Any]]:
    parameters, state, notes = (
        _decode(header.get(part), arrays) for part in ("parameters", "state", "notes")
    )
    for part in (parameters, state, notes):
        if not isinstance(part, dict):
            raise ValueError("its header is malformed.")
    _check_names("the parameters", set(parameters), set(Mercat().get_params()))
    rules = _RULES[Mercat]
    _check_names("the state", set(state) | _OPTIONAL_FIELDS, set(rules))
    model = Mercat(**parameters)
    model._check_parameters()
    sizes: dict[str, int] = {}
    for name, value in state.items():
        _check_value(name, value, rules[name], sizes)
    _check_together(model, state, sizes)
    model.__dict__.update(state)
    return model, notes


def _check_names(where: str, got: set[str], expected: set[str]) -> None:
    if got != expected:
        absent, unknown = sorted(expected - got), sorted(got - expected)
        raise ValueError(
            f"{where} of this mercat, {__version__}, differ from those of the mercat that wrote it: "
            f"lacking {absent or 'none'}, unknown {unknown or 'none'}."
        )


def _check_value(name: str, value: Any, rule: Any, sizes: dict[str, int]) -> None:
    if isinstance(rule, Shape):
        _check_array(name, value, rule, sizes)
        return
    if not isinstance(value, rule) or isinstance(value, bool):
        raise ValueError(f"{name} is of the wrong type, {type(value).__name__}.")
    if isinstance(value, float) and not math.isfinite(value) and name not in _MAY_BE_NAN:
        raise ValueError(f"{name} must be finite, got {value}.")
    for field, inner in _RULES.get(type(value), {}).items():
        _check_value(f"{name}.{field}", getattr(value, field), inner, sizes)


def _check_array(name: str, array: Any, rule: Shape, sizes: dict[str, int]) -> None:
    if array is None and rule.optional:
        return
    letters = rule.sizes.split()
    if not isinstance(array, np.ndarray) or array.ndim != len(letters):
        raise ValueError(f"{name} must be an array of {len(letters)} dimensions.")
    if array.dtype.kind != rule.kind:
        raise ValueError(f"{name} must be of the kind {rule.kind!r}, got {array.dtype}.")
    for letter, size in zip(letters, array.shape, strict=True):
        expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
        if size != expected:
            raise ValueError(
                f"{name} has the shape {array.shape}, of which {size} must be {expected}."
            )
    if rule.kind == "f" and not rule.missing and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    if rule.unit and np.abs(np.linalg.norm(array, axis=-1) - 1).max(initial=0) > 1e-4:
        raise ValueError(f"{name} must have rows of length 1.")


def _check_together(model: Mercat, state: dict[str, Any], sizes: dict[str, int]) -> None:
    """What no field shows alone."""
    spectral = state["_placer"].spectral
    n, d = sizes["n"], sizes.get("d", sizes["n"])
    r, n_compared = sizes.get("r", d), sizes.get("L", 1)
    if state["n_features_in_"] != d:
        raise ValueError(f"n_features_in_ must be {d}, got {state['n_features_in_']}.")
    if isinstance(spectral, FromDistances) != (model.metric == "precomputed"):
        raise ValueError(f"its metric {model.metric!r} does not go with its components.")
    if isinstance(spectral, Spectral):
        if spectral.metric != model.metric:
            raise ValueError(f"it has two metrics, {model.metric!r} and {spectral.metric!r}.")
        if spectral.components is None and r != d:
            raise ValueError(f"its landmarks must have {d} columns, got {r}.")
    if not spectral.unit > 0:
        raise ValueError(f"its unit of length must be positive, got {spectral.unit}.")
    rows = state["landmarks_"]
    if not 1 <= n_compared <= len(rows) or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"landmarks_ must be rows of the {n} points.")
    if isinstance(state["_placer"], DetailPlacer):
        around = state["_placer"].surroundings
        if not 1 <= around.k <= n:
            raise ValueError(f"its number of neighbours must be in 1..{n}, got {around.k}.")
        if not around.field.fits():
            raise ValueError("its field does not have the size of its grid.")
    pair = state["calibration_"]
    if len(pair) != 2 or not all(isinstance(v, float) and math.isfinite(v) for v in pair):
        raise ValueError("calibration_ must be two numbers.")
