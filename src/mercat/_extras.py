"""Optional packages, imported on first use; if missing, the error says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

# Packages of the extras of pyproject.toml. They are installed by their own names, which works however Mercat
# was installed: from a clone, a wheel or an index.
PACKAGES = {
    "plot": "matplotlib",
    "viewer": "anywidget",
    "anndata": "anndata zarr",
    "cli": "matplotlib click pandas pyarrow",
    "torch": "torch",
    "dask": '"dask[array,distributed]"',
    "peers": "umap-learn openTSNE pacmap",
}


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
    """Text that says that a package is not installed and how to install it; `extra` may be "cli,anndata"."""
    return f"not installed: {install_command(extra)}"


def install_command(extra: str) -> str:
    """Command that installs the packages of an extra, or of several, separated by commas."""
    return f"pip install {' '.join(PACKAGES[name] for name in extra.split(','))}"
