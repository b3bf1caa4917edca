"""Reads files that nobody should trust, in a process of its own: `hostile.py` asks it, a line a file.

The process may not grow by more than an allowance, and an audit hook tells on whatever would run code,
start a process, write a file or open a connection. What it says of a file is one line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from pathlib import Path

GROWTH = 1 << 30  # bytes that reading a small file may take, of address space
FORBIDDEN = {
    "pickle.find_class",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "socket.connect",
    "ctypes.dlopen",
}
seen: list[str] = []


def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if watching and (event in FORBIDDEN or writes):
        seen.append(f"{event} {arguments!r:.200}")


watching = False


def readers():
    """Ways into Mercat for a file, by name."""
    from mercat import Mercat, _model_file, datasets
    from mercat.cli._console import Console
    from mercat.cli._embedding import read_embedding
    from mercat.cli._read import read_table
    from mercat.cli._table import ReadOptions
    from mercat.datasets import _files, _real

    console = Console(quiet=True, as_json=False)
    del Mercat
    return {
        "table": lambda path: read_table(path, ReadOptions(), console),
        "embedding": lambda path: read_embedding(path, None, console),
        "model": _model_file.read_model,
        "info": info,
        "idx": lambda path: _files.read_idx(path),
        "from_npz": datasets.from_npz,
        "mnist": lambda path: datasets.mnist_even(path.parent),
        "openml": lambda path: _real._read_mnist(path),
        "mammoth": lambda path: datasets.mammoth(path.parent),
        "paul15": lambda path: datasets.paul15(path.parent),
        "pancreas": lambda path: datasets.pancreas(path.parent, protein_coding=False),
        "hela": lambda path: datasets.hela_cell_cycle(path.parent),
        "gtf": gtf,
    }


def info(path):
    """`mercat info`, which looks at anything; its exit code is raised."""
    import click

    from mercat.cli._app import app

    sys.stdout, kept = open(os.devnull, "w"), sys.stdout  # noqa: SIM115
    try:
        app(["info", str(path), "--quiet"], standalone_mode=False)
    except click.exceptions.Exit:
        pass
    finally:
        sys.stdout = kept


def gtf(path):
    from mercat.datasets import _cells

    _cells._coding_in_gtf(path, mitochondrial=True)


def attempt(read, path):
    from mercat.cli._problems import BadInput

    global watching
    watching = True
    try:
        read(Path(path))
    except BadInput as error:
        return "refused", type(error).__name__, error.message
    except ValueError as error:
        return "refused", type(error).__name__, str(error)
    except BaseException as error:
        return "raised", type(error).__name__, str(error)
    finally:
        watching = False
    return "read", "", ""


def main():
    # As in the tests: a warning of a library, or none.
    warnings.simplefilter("ignore")
    known = readers()
    for module in sys.argv[1:]:
        __import__(module)
    sys.addaudithook(watch)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    answers = sys.stdout
    limited = False
    for line in sys.stdin:
        question = json.loads(line)
        if not limited and question.get("limit", True):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + GROWTH, hard))
            limited = True
        seen.clear()
        outcome, kind, message = attempt(known[question["reader"]], question["path"])
        answer = {"outcome": outcome, "kind": kind, "message": message[:2000], "seen": seen[:5]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
