"""Encode values as JSON and decode them; arrays are stored separately and referred to by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._detail.affinities import DECAY
from .._solve.status import Status
from .schema import TAGS, TUPLES, check_names

TYPES = ("<f4", "<f8", "<i4", "<i8")


class Arrays:
    """Encodes values as JSON and collects their arrays, each once."""

    def __init__(self) -> None:
        self.members: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def encode(self, value: Any, name: str) -> Any:
        """Encode a value as JSON; values of types that JSON lacks become dictionaries with one key."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.bool):
            return bool(value)
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
        if type(value) in TAGS:
            fields = value._asdict().items()
            return {TAGS[type(value)]: {k: self.encode(v, f"{name}.{k}") for k, v in fields}}
        if type(value) is tuple:
            return {"tuple": self.encode(list(value), name)}
        raise TypeError(f"A model with {name} of type {type(value).__name__} cannot be saved.")

    def _encode_array(self, array: np.ndarray, name: str) -> Any:
        if array.dtype.kind in "OU" and all(isinstance(v, str) for v in array.tolist()):
            return {"names": [str(v) for v in array.tolist()]}
        if array.dtype.str not in TYPES:
            raise TypeError(f"A model with {name} of type {array.dtype} cannot be saved.")
        if id(array) not in self._names:
            self._names[id(array)] = f"{name}.npy"
            self.members[f"{name}.npy"] = array
        return {"array": self._names[id(array)]}


# Fields of landmarks in older files, now recomputed on loading.
_COMPUTED = {"frame", "p", "C", "C0"}


def _upgraded(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a placer, converted from those of older files."""
    record = {"Landmarks": "PlacedTerm", "Surroundings": "PairForces"}.get(kind)
    if record is None:
        return fields
    if kind == "Landmarks":
        fields = {name: value for name, value in fields.items() if name not in _COMPUTED}
    if "perplexity" in fields:  # replaced by `decay`
        decay = 0.0 if fields["perplexity"] == 0 else DECAY
        fields = {name: value for name, value in fields.items() if name != "perplexity"}
        fields["decay"] = decay
    if "distances" not in fields:
        return fields
    line = fields["distances"]
    fields = {name: value for name, value in fields.items() if name != "distances"}
    if line is None:
        return fields
    if not isinstance(line, dict) or not all(isinstance(v, dict) for v in line.values()):
        raise ValueError("its header is malformed.")
    (line,) = line.values()
    term = {"DistanceTerm": {"variance": 1.0} | {k: v for k, v in line.items() if k != "weight"}}
    entry = {record: {"term": term, "weight": line.get("weight", 1.0)}}
    return fields | {"terms": {"tuple": [entry]}}


def decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Decode JSON written by `Arrays.encode`; raise ValueError for anything else."""
    if isinstance(value, list):
        return [decode(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("its header is malformed.")
    ((kind, content),) = value.items()
    if kind == "dict" and isinstance(content, dict):
        return {k: decode(v, arrays) for k, v in content.items()}
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
        return tuple(decode(content, arrays))
    if kind in TUPLES and isinstance(content, dict):
        content = _upgraded(kind, content)
        optional = set(TUPLES[kind]._field_defaults)  # fields that older files may lack
        check_names(kind, set(content) | optional, set(TUPLES[kind]._fields))
        return TUPLES[kind](**{k: decode(v, arrays) for k, v in content.items()})
    raise ValueError(f"its header has the unknown entry {kind!r}: {str(content)[:60]!r}.")
