"""Text of malicious files is escaped on terminals."""

# ruff: noqa: F811, a fixture of another file
from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_hostile_files import samples  # noqa: F401, a fixture

EVIL = "\x1b]0;hurt\x07\x1b[2Jna\r\nforged\u202e\x9b\ud83d"


def evil_files(folder):
    """Files with terminal escapes in all texts."""
    import anndata
    import pandas as pd

    rows = np.random.default_rng(0).normal(size=(30, 3))
    evil = EVIL.replace("\ud83d", "")
    frame = pd.DataFrame(rows, columns=[f"{evil}{k}" for k in range(3)])
    frame[f"{evil} label"] = np.array([f"{evil} a", f"{evil} b", "c"])[np.arange(30) % 3]
    frame[f"{evil} number"] = [f"{k},5 {evil}"[:5] for k in range(30)]
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    np.savez(folder / "a.npz", **{evil.replace("\x1b", "\u009b"): rows, "other\x9b": np.ones(3)})
    adata = anndata.AnnData(rows, var=pd.DataFrame(index=[f"{evil}{k}" for k in range(3)]))
    adata.obs[f"{evil} label"] = pd.Categorical(frame[f"{evil} label"].to_numpy())
    adata.obs_names = [f"{evil}{k}" for k in range(30)]
    adata.uns[f"{evil} label_colors"] = [evil, evil, evil]
    adata.obsm[f"X_{evil}".replace("/", "")] = rows
    adata.write_h5ad(folder / "a.h5ad")
    frame.iloc[0, 0] = np.nan
    frame.to_csv(folder / "missing.csv", index=False)
    (folder / "broken.csv").write_text(f"{evil.strip()!s},b\n1,2,3\n", encoding="utf-8", newline="")
    named = folder / "\x1b[2J\u202e caf\udce9.csv"
    frame.iloc[1:].to_csv(named, index=False)
    return named, f"{evil} label"


def test_control_characters_of_files_are_escaped(tmp_path, monkeypatch):
    """Errors, notes, warnings, results, tables and paths, of every command."""
    pytest.importorskip("matplotlib")
    named, label = evil_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = [
        ["info", "a.csv"], ["info", "a.parquet"], ["info", "a.npz"], ["info", "a.h5ad"], ["info", named],
        ["info", "missing.csv"], ["info", "broken.csv"], ["info", "a.csv", "--json"],
        ["embed", "a.csv"], ["embed", "a.csv", "--json"], ["embed", "a.csv", "-o", "m.csv", "--force"],
        ["embed", "a.csv", "--label", label, "--html", "m.html", "--png", "m.png"],
        ["embed", "a.csv", "--label", EVIL], ["embed", "a.csv", "--drop", EVIL],
        ["embed", named], ["embed", named, "-o", named], ["embed", named, "--key", EVIL],
        ["embed", named, "--html", f"{named}.html", "--save-model", f"{named}.mercat"],
        ["embed", "a.h5ad", "--html", "h.html"], ["embed", "a.h5ad", "--key", EVIL],
        ["embed", "a.h5ad", "-o", "b.h5ad"], ["embed", "a.npz"], ["embed", "a.npz", "--key", EVIL],
        ["embed", "missing.csv"], ["embed", "broken.csv"], ["embed", f"{EVIL}.csv"], ["embed", EVIL],
        ["embed", "a.csv", f"--{EVIL}"], [EVIL], ["embed", "a.csv", "-o", f"{EVIL}/m.csv"],
        ["info", f"{named}.mercat"], ["transform", f"{named}.mercat", "a.csv"],
        ["transform", f"{named}.mercat", "a.npz"], ["transform", "a.csv", "a.csv"],
        ["evaluate", "a.csv", "m.csv", "--label", label], ["evaluate", "a.csv", "missing.csv"],
        ["view", "m.csv", "-o", "v.html", "--label", label], ["view", "m.csv", "--label", EVIL],
        ["view", "a.csv", "-o", f"{EVIL[:9]}.html"], ["view", "a.h5ad", "--embedding-key", EVIL],
        ["compare", "a.csv", "-o", "c.html", "--label", label, "--method", "pca"],
        ["compare", named, "-o", "d.html", "--method", "pca"],
    ]  # fmt: skip
    for arguments in commands:
        said = on_a_terminal([str(part) for part in arguments])
        wrong = {c for c in said if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160}
        wrong |= {"\u202e"} & set(said) | {c for c in said if "\ud800" <= c <= "\udfff"}
        assert not wrong, (arguments, said)
        assert said
        if "x,y,z," not in said:  # the table itself
            assert "\nforged" not in said, said


def on_a_terminal(arguments):
    """Output of a command if stdout is a terminal."""
    import contextlib

    from mercat.cli import _console
    from mercat.cli._app import app

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    out, err = Terminal(), io.StringIO()  # where progress bars are not shown
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(arguments, prog_name="mercat")
        except SystemExit:
            pass
        except Exception as error:
            _console.show_traceback(type(error), error, error.__traceback__)
    return err.getvalue() + out.getvalue()


def test_unexpected_errors_are_escaped(capsys):
    from mercat.cli import _console

    try:
        raise RuntimeError(f"at {EVIL}")
    except RuntimeError as error:
        _console.show_traceback(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert "RuntimeError: at \\x1b]0;hurt" in said
    assert "\x1b" not in said


def test_errors_in_threads_tasks_and_destructors_are_escaped(tmp_path):
    program = """
import gc, logging, threading
from mercat.cli import _console
_console.show_errors_safely()
evil = "\\x1b]0;hurt\\x07\\x1b[2J"
class Late:
    def __del__(self):
        raise ValueError(evil)
def fail():
    raise ValueError(evil)
thread = threading.Thread(target=fail, name=evil)
thread.start()
thread.join()
Late()
logging.getLogger("asyncio").error(evil, exc_info=ValueError(evil))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr.count(b"\\x1b]0;hurt") == 3
    assert b"\x1b" not in done.stderr


def test_errors_in_a_zarr_store_are_printed_once(samples, tmp_path):
    """zarr raises the first of them, and asyncio logs the others."""
    path = samples["zarr"].write(tmp_path / "z")
    (path / ".zmetadata").unlink(missing_ok=True)
    node = {"shape": [8], "chunks": [8], "dtype": "<f8", "fill_value": 0.0, "order": EVIL[:9],
            "filters": None, "compressor": None, "zarr_format": 2}  # fmt: skip
    for k in range(3):
        (path / f"uns/k{k}").mkdir()
        (path / f"uns/k{k}/.zarray").write_text(json.dumps(node))
    command = [sys.executable, "-m", "mercat.cli", "info", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert "\x1b" not in done.stderr


def test_piped_data_are_not_escaped(tmp_path):
    from click.testing import CliRunner

    from mercat.cli._app import app

    pandas = pytest.importorskip("pandas")
    _, label = evil_files(tmp_path)
    done = CliRunner().invoke(app, ["embed", str(tmp_path / "a.csv"), "--quiet"])
    frame = pandas.read_csv(io.StringIO(done.stdout))
    assert label.replace("\r\n", "\n") in frame.columns  # as click's runner passes line ends


def test_only_one_function_prints_text():
    import ast

    from mercat import cli

    folder = Path(cli.__file__).parent
    found = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"
            ):  # fmt: skip
                found.add(path.name)
    assert found == {"_console.py", "__init__.py"}  # __init__.py: if click is not installed
