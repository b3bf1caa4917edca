"""The group of commands, and shell completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .. import __version__
from ._console import SafeCommand, SafeGroup, echo
from .compare import compare
from .embed import embed
from .evaluate import evaluate
from .info import info
from .ingest import ingest
from .transform import transform
from .view import view

EPILOG = """\b
Examples:
  mercat embed cells.csv -o map.csv --label type --html map.html
  mercat view map.csv
  mercat evaluate cells.csv map.csv
  mercat compare cells.csv -o report.html --label type

\b
Exit codes: 0 success, 1 failure, 2 wrong usage, 3 invalid input, 4 output
exists or cannot be written, 5 a package is not installed, 130 Ctrl-C.
"""


@click.group(cls=SafeGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mercat")
def app() -> None:
    """Faithful maps of high-dimensional data on the sphere."""


@click.command(
    cls=SafeCommand,
    epilog="""\b
Examples:
  mercat completion bash > ~/.local/share/bash-completion/completions/mercat
  mercat completion zsh > ~/.zfunc/_mercat
  mercat completion fish > ~/.config/fish/completions/mercat.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for shell completion."""
    kind = get_completion_class(shell)
    assert kind is not None
    # For bash, this also warns if the installed version is too old.
    echo(kind(app, {}, "mercat", "_MERCAT_COMPLETE").source())


for _command in (embed, transform, ingest, evaluate, view, compare, info, completion):
    app.add_command(_command)
