"""Optional packages, imported on first use; if missing, the error says how to install them."""

from __future__ import annotations

import importlib
from typing import Any


class MissingExtra(ImportError):
    """An optional package is not installed."""


def require(module: str, feature: str, extra: str, alternative: str = "") -> Any:
    """Import a module, or raise MissingExtra, which says which feature needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # the module is installed, but one of its own imports is not
            raise
        message = f"{feature} needs {module}, which is {not_installed(extra)}"
        raise MissingExtra(f"{message}, or {alternative}" if alternative else message) from error


def not_installed(extra: str) -> str:
    """Text that says that a package is not installed and how to install it."""
    return f'not installed: pip install "mercat[{extra}]"'
