"""The command `mercat`: embed, transform, evaluate, view and compare tables from a shell.

A thin shell over the public API. Only click is imported before a command runs, so that help is instant.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the command."""
    try:
        from ._app import app
    except KeyboardInterrupt:
        sys.stderr.write("Error: Interrupted.\n")
        sys.exit(130)
    except ImportError as error:
        if error.name != "click":
            raise
        sys.stderr.write(f'Error: mercat needs {error.name}: pip install "mercat[cli]"\n')
        sys.exit(5)
    app(prog_name="mercat")
