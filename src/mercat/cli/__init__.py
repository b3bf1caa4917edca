"""The command `mercat`; `_app.py` lists its subcommands.

Only click is imported before a command runs, which keeps `--help` fast.
"""

from __future__ import annotations

import sys

from .._extras import MissingExtra, require

__all__ = ["main"]


def main() -> None:
    """Entry point of the command."""
    try:
        require("click", "mercat", "cli")
        from ._app import app
        from ._console import show_errors_safely
    except KeyboardInterrupt:
        sys.stderr.write("Error: Interrupted.\n")
        sys.exit(130)
    except MissingExtra as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(5)
    show_errors_safely()
    app(prog_name="mercat")
