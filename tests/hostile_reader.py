"""Read untrusted files in a separate process, controlled by `hostile.Reader` with one line per file.

The process may not grow by more than `GROWTH`, and an audit hook reports unpickling, new processes, files
opened for writing, and connections. The result for each file is one line of JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
import warnings
from pathlib import Path

GROWTH = 3 << 29  # maximum growth of the address space over all files, in bytes: 1.5 GiB
FORBIDDEN = {
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.symlink",
    "os.system",
    "pickle.find_class",
    "socket.connect",
    "subprocess.Popen",
}
seen: list[str] = []
watching = False


def watch(event, arguments):
    """Audit hook of the interpreter."""
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if watching and (event in FORBIDDEN or writes):
        seen.append(f"{event} {arguments!r:.200}")


def readers():
    """Functions of Mercat that read files, by name."""
    from mercat import datasets
    from mercat._files.model import read_model
    from mercat.cli._console import Console
    from mercat.cli._embedding import read_embedding
    from mercat.cli._read import read_table
    from mercat.cli._table import ReadOptions
    from mercat.datasets._cells import _coding_in_gtf

    console = Console(quiet=True, as_json=False)
    return {
        "table": lambda path: use_table(read_table(path, ReadOptions(), console)),
        "embedding": lambda path: read_embedding(path, None, console),
        "model": lambda path: use_model(read_model(path)[0]),
        "info": info,
        "from_npz": datasets.from_npz,
        "mnist": lambda path: (
            datasets.mnist_even(str(path).partition("/openml/")[0])
            if "openml" in path.parts
            else datasets.mnist_even(path.parent)
        ),
        "mammoth": lambda path: datasets.mammoth(path.parent),
        "paul15": lambda path: datasets.paul15(path.parent),
        "pancreas": lambda path: datasets.pancreas(path.parent, protein_coding=False),
        "hela": lambda path: datasets.hela_cell_cycle(path.parent),
        "gtf": lambda path: _coding_in_gtf(path, mitochondrial=True),
    }


def use_table(table):
    """Use a table as commands do, to check that its contents match its metadata."""
    import numpy as np

    from mercat.cli._outputs import Embedded, color_column, embedding_frame

    n = min(3, table.X.shape[0])
    if n:
        some = table.select_rows(np.arange(n))
        color_column(some, None)
        embedding_frame(Embedded(some, np.eye(3)[:n], None, None)).to_csv(io.StringIO())
        if some.is_sparse:
            some.X.sum(axis=1)


def use_model(model):
    """Place a point with a loaded model; errors must be clear."""
    import numpy as np

    with contextlib.suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Y = model.set_params(n_jobs=1).transform(np.ones((2, model.n_features_in_)))
        assert Y.shape == (2, 3)


def info(path):
    """Run `mercat info`, which accepts any file."""
    from mercat.cli._app import app

    with contextlib.redirect_stdout(io.StringIO()):
        app(["info", str(path), "--quiet"], standalone_mode=False)


def attempt(read, path):
    """Read a file; return the outcome, the type of the error and its message."""
    from mercat.cli._problems import BadInput

    try:
        read(Path(path))
    except BadInput as error:
        return "refused", "BadInput", error.message
    except ValueError as error:
        return "refused", type(error).__name__, str(error)
    except Exception as error:
        return "raised", type(error).__name__, str(error)
    return "read", "", ""


def limit_memory():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + GROWTH, hard))


def main():
    global watching
    warnings.simplefilter("ignore")
    known = readers()
    sys.addaudithook(watch)
    for line in sys.stdin:
        question = json.loads(line)
        if not question["warm"] and not watching:
            limit_memory()
            watching = True
        seen.clear()
        outcome, kind, message = attempt(known[question["reader"]], question["path"])
        answer = {"outcome": outcome, "kind": kind, "message": message[:2000], "seen": seen[:5]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
