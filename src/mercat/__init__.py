"""Mercat: faithful maps of high-dimensional data.

Points are placed on the unit sphere so that the angles between any three of them are preserved. Importing
this module is cheap: each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Module that defines each public name.
_DEFINED_IN = {
    "Mercat": "mercat._estimator",
    "embed": "mercat._estimator",
    "load": "mercat._files.model",
    "save": "mercat._files.model",
    "Status": "mercat._solve.status",
    "TrustWarning": "mercat._solve.trust",
    "Uncertainty": "mercat._uncertainty.record",
    "uncertainty": "mercat._uncertainty.estimate",
}
_MODULES = ["datasets", "metrics", "pl", "plot", "projections", "tl", "viewer"]

__all__ = [
    "Mercat",
    "Status",
    "TrustWarning",
    "Uncertainty",
    "embed",
    "load",
    "save",
    "uncertainty",
]

if TYPE_CHECKING:
    from ._estimator import Mercat, embed
    from ._files.model import load, save
    from ._solve.status import Status
    from ._solve.trust import TrustWarning
    from ._uncertainty.estimate import uncertainty
    from ._uncertainty.record import Uncertainty


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(_DEFINED_IN[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"mercat.{name}")
    raise AttributeError(f"module 'mercat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
