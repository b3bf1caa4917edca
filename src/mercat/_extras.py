"""Packages that only a part of Mercat needs: imported when it is used, or named with the command for them."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtra(ImportError):
    """A package that an extra of Mercat brings is not installed."""


def require(module: str, what: str, extra: str, instead: str = "") -> Any:
    """The module, or an error that says what needs it and how to get it, or what to do `instead`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # it is installed, and lacks something itself
            raise
        message = f"{what} needs {module}, which is {not_installed(extra)}"
        raise MissingExtra(f"{message}, or {instead}" if instead else message) from error


def not_installed(extra: str) -> str:
    """That a package is not there, and how to get it."""
    return f'not installed: pip install "mercat[{extra}]"'
