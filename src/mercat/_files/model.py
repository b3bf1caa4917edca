"""Model files: arrays and JSON without code, safe to load.

A model file is a zip archive like NumPy's .npz: `model.json` describes the model, and each array is an .npy
file. Nothing is compressed, so no part can be larger than the file. Loading checks sizes before it allocates
memory, and the type, shape and values of each array before it creates a model: see `_files/schema.py`.

Quantities that are bit-identical on any machine are recomputed on loading. Sums over points are stored, since
another machine may add in a different order.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercat import __version__

from .._data.checks import check_choice, warn_caller
from .._data.text import printable
from .._estimator import Mercat
from .._validation import check_parameters
from .atomic import whole_file
from .encoding import TYPES, Arrays, decode
from .schema import RULES, check_names, check_state
from .untrusted import read_array, reading, short

VERSION = 1
_FORMAT = "mercat model"
HEADER = "model.json"
_MAX_MEMBERS = 1000
_ADDED_PARAMETERS = {"n_detail": None}  # parameters that older files lack, and their values
_OUTPUT = "_sklearn_output_config"  # scikit-learn's attribute for `set_output`
_OUTPUTS = ("default", "pandas", "polars")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes


def save(model: Mercat, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file that is safe to load.

    The file contains arrays and JSON, but no code or pickles. It is written atomically; an existing file is
    replaced.

    Parameters
    ----------
    model : Mercat
        A fitted model. Its `callback` must be None and its `random_state` an integer or None, since functions
        and generators cannot be saved. The setting of `set_output` is saved. An error is raised
        if the model has attributes that `fit` does not set, or parameters with which it could not be loaded.
    path : path-like
        Where to write, by convention with the suffix `.mercat`.

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
    """Read a model written by `save` or `mercat embed --save-model`.

    The loaded model gives bit-identical results. Broken, malicious or newer files raise ValueError with the
    reason.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    model : Mercat
        The fitted model. A warning is issued if the command line prepared the data (``--log1p``,
        ``--scale``): `transform` then expects rows prepared in the same way.
    """
    model, notes = read_model(path)
    if notes.get("prepared"):
        steps = printable(str(notes["prepared"]))
        warn_caller(
            f"{path} was fitted to prepared data ({steps}): prepare rows in the same way "
            "before transform, or use `mercat transform`.",
            UserWarning,
        )
    return model


def write_model(
    model: Mercat, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
) -> Path:
    """Like `save`, with notes (numbers, text, lists, arrays) that `read_model` returns."""
    if type(model) is not Mercat:  # a subclass would be loaded as a Mercat
        raise TypeError(f"model must be a Mercat, got {type(model).__name__}.")
    check_is_fitted(model)
    model = model._snapshot()  # other threads may refit it meanwhile
    parameters = model.get_params()
    if parameters["callback"] is not None:
        raise ValueError("callback must be None to save a model: a function cannot be saved.")
    if not isinstance(parameters["neighbors"], int | np.integer | None):
        raise ValueError(
            "neighbors must be an integer or None to save a model, got a graph, which is not saved: "
            "set model.neighbors = None first; transform does not need it."
        )
    if callable(parameters["metric"]):
        raise ValueError(
            "metric must be a name to save a model, got a function, which cannot be saved: compute distances "
            "to landmarks with it, and use metric='precomputed'."
        )
    seed = parameters["random_state"]
    if seed is not None and not isinstance(seed, int | np.integer):
        raise ValueError(
            f"random_state must be an integer or None to save a model, got {type(seed).__name__}."
        )
    parameters |= {"device": _device_name(parameters["device"])}
    state = {name: value for name, value in vars(model).items() if name not in parameters}
    output = state.pop(_OUTPUT, {})
    unknown = sorted(set(state) - set(RULES[Mercat]))
    if unknown:
        raise ValueError(
            f"The model has the attribute {unknown[0]!r}, which fit does not set and a file cannot store: "
            f"del model.{unknown[0]} first."
        )
    # Always in the same order.
    state = {name: state[name] for name in RULES[Mercat] if name in state}
    arrays = Arrays()
    header = {
        "format": _FORMAT,
        "version": VERSION,
        "mercat": __version__,
        "parameters": arrays.encode(parameters, "parameters"),
        "state": arrays.encode(state, "state"),
        "notes": arrays.encode(dict(notes or {}), "notes"),
    } | ({"output": arrays.encode(output, "output")} if output else {})
    text = json.dumps(header, allow_nan=False, indent=1)
    try:
        _restore(json.loads(text), arrays.members)
    except ValueError as error:
        raise ValueError(
            f"The model cannot be saved, since it could not be loaded again: {error} Were parameters or "
            "attributes changed after the fit?"
        ) from error
    with whole_file(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), text.encode("utf-8"))
        for name, array in arrays.members.items():
            with archive.open(zipfile.ZipInfo(name, _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return Path(path)


def read_model(path: str | os.PathLike[str]) -> tuple[Mercat, dict[str, Any]]:
    """Read a model and its notes."""
    with reading(path):
        try:
            with zipfile.ZipFile(path) as archive:
                header, arrays = _read_archive(archive, os.path.getsize(path))
            return _restore(header, arrays)
        except (ValueError, TypeError) as error:
            reason = printable(str(error))
            raise ValueError(f"{path} is not a model that can be loaded: {reason}") from error
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
            raise ValueError(f"{path} is not a valid model file: {short(error)}") from error


def _read_archive(
    archive: zipfile.ZipFile, file_size: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays, without allocating more than the size of the file."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if HEADER not in names:
        raise ValueError(f"it has no {HEADER}.")
    if len(members) > _MAX_MEMBERS or len(set(names)) < len(names):
        raise ValueError(f"it must have at most {_MAX_MEMBERS} parts with distinct names.")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("it has compressed parts, which models never have.")
    if sum(member.file_size for member in members) > file_size:
        raise ValueError("its parts are declared larger than the file.")
    header = json.loads(archive.read(HEADER).decode("utf-8"))
    _check_version(header)
    return header, {name: _read_array(archive, name) for name in names if name != HEADER}


def _check_version(header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(f"its {HEADER} is not that of a model.")
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
    if array.dtype.str not in TYPES:
        raise ValueError(f"{name} must hold one of the types {TYPES}, got {array.dtype}.")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _restore(
    header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[Mercat, dict[str, Any]]:
    parameters, state, notes = (
        decode(header.get(part), arrays) for part in ("parameters", "state", "notes")
    )
    for part in (parameters, state, notes):
        if not isinstance(part, dict):
            raise ValueError("its header is malformed.")
    parameters = _ADDED_PARAMETERS | parameters
    check_names("the parameters", set(parameters), set(Mercat().get_params()))
    model = Mercat(**parameters)
    check_parameters(model)
    check_state(model, state)
    model.__dict__.update(state)
    output = decode(header.get("output", {"dict": {}}), arrays)
    if not isinstance(output, dict) or not set(output) <= {"transform"}:
        raise ValueError("its header is malformed.")
    if output:
        check_choice("set_output(transform=...)", output["transform"], _OUTPUTS)
        model.set_output(**output)
    return model, notes


def _device_name(device: Any) -> Any:
    """Name of a torch device; other values are returned unchanged."""
    return str(device) if type(device).__module__ == "torch" else device
