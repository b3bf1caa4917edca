"""Run a method in its own process, with the interpreter that has it.

Arrays are passed as .npy files, the rest as JSON. Interpreters are named by environment variables
(`methods.PYTHON` lists them); the default is the running one. A method that is not installed there returns
the status "not installed" and the reason. (`mercat compare` runs the same methods, but in its own process:
users have them in one environment.)

    embedding, outcome = run("umap", X, seed=1)

A `Session` keeps the process for several calls, so that compiled code is reused.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness import methods

ROOT = Path(__file__).resolve().parents[2]
# UMAP compiles its approximate neighbour search only for more than 4096 points.
SMALL, LARGE, SWITCH = 500, 5000, 4096


def interpreter(method):
    """Path of the Python that runs a method."""
    variable = methods.PYTHON.get(method)
    return os.environ.get(variable, sys.executable) if variable else sys.executable


class Session:
    """A process that runs one method, call after call. Use it in a with statement.

    Parameters
    ----------
    method : str
        A name of `methods.METHODS`.
    """

    def __init__(self, method):
        if method not in methods.METHODS:
            allowed = ", ".join(methods.METHODS)
            raise ValueError(f"method must be one of {allowed}, got {method!r}.")
        self.method = method
        self._process = None

    def __enter__(self):
        self._stderr = tempfile.TemporaryFile(mode="w+")
        command = [interpreter(self.method), "-m", "benchmarks.harness.peers"]
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=self._stderr, text=True
            )
        except FileNotFoundError:
            self._process = None
        return self

    def __exit__(self, *exception):
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()
        self._stderr.close()

    def run(
        self, X, *, seed, neighbors=None, n_components=None, options=None, warm=False, paper=True
    ):
        """Embed X.

        Parameters
        ----------
        X : array (n, d)
            The raw data.
        seed : int or None
            None lets UMAP use all cores.
        neighbors : int or None
            Neighbourhood or perplexity; None for the paper's choice.
        n_components : int or None
            Number of principal components to which X is reduced first, within the measured time.
        options : dict, optional
            Additional keyword arguments of the method.
        warm : bool
            First make a call on a small sample of the rows, so that compilation is not timed; its
            seconds are reported separately.
        paper : bool
            Whether to use the paper's settings rather than the method's own defaults.

        Returns
        -------
        embedding : array (n, 2 or 3), or None if there is none
        outcome : dict
            "status" ("ok", "not installed" or "failed"), "reason" if not ok, "code" if the process
            ended (the session can no longer be used), "seconds" (of the
            "import", of the "first" small call if any, of the "fit", and "cpu": processor seconds of the
            fit), "versions", "warnings".
        """
        if self._process is None:
            reason = f"there is no interpreter {interpreter(self.method)}."
            return None, _no_embedding("not installed", reason)
        job = {
            "method": self.method,
            "seed": seed,
            "neighbors": neighbors,
            "n_components": n_components,
            "options": options or {},
            "warm": warm,
            "paper": paper,
        }
        with tempfile.TemporaryDirectory(prefix="mercat-") as name:
            folder = Path(name)
            np.save(folder / "X.npy", np.ascontiguousarray(X), allow_pickle=False)
            (folder / "job.json").write_text(json.dumps(job))
            if not self._work_is_done(name):
                code, last_line = self._exit_reason()
                reason = f"the process ended with code {code}: {last_line}"
                return None, {**_no_embedding("failed", reason), "code": code}
            outcome = json.loads((folder / "outcome.json").read_text())
            if outcome["status"] != "ok":
                return None, outcome
            return np.load(folder / "Y.npy", allow_pickle=False), outcome

    def _work_is_done(self, folder):
        try:
            self._process.stdin.write(folder + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return self._process.stdout.readline() == "done\n"

    def _exit_reason(self):
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().strip().splitlines() or ["there is no error output"]
        return code, lines[-1]


def run(method, X, **job):
    """Embed X in a fresh process: see `Session.run`."""
    with Session(method) as session:
        return session.run(X, **job)


def race(methods, X, *, turns, n_components=None, options=None):
    """Run methods alternately on X, each in its own process after a small first call.

    Parameters
    ----------
    methods : sequence of str
    X : array (n, d)
    turns : int
    n_components, options : dict, optional
        Arguments of `Session.run` by method, if they are not the defaults.

    Returns
    -------
    dict
        For each method, the embedding of the first turn (None if there is none) and its outcome, with the
        seconds of all turns as "turns".
    """
    n_components, options = n_components or {}, options or {}
    results = {}
    with contextlib.ExitStack() as stack:
        sessions = {m: stack.enter_context(Session(m)) for m in methods}
        for turn in range(turns):
            for method, session in sessions.items():
                if turn > 0 and results[method][0] is None:
                    continue
                Y, outcome = session.run(
                    X,
                    seed=None,
                    n_components=n_components.get(method),
                    options=options.get(method),
                    warm=turn == 0,
                )
                if turn == 0:
                    results[method] = Y, {**outcome, "turns": []}
                if Y is not None:
                    results[method][1]["turns"].append(outcome["seconds"]["fit"])
                print(f"{method}: {outcome.get('seconds', outcome)}", file=sys.stderr, flush=True)
    return results


def _no_embedding(status, reason):
    return {"status": status, "reason": reason}


# ------------------------------------------------------------------ in the other process


class _WarningCollector(logging.Handler):
    """Collect warnings logged by a method: some lower a parameter and continue."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def serve():
    """Run the jobs in the folders read from stdin, one per line, and print "done" after each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of methods must not be mistaken for an answer
    for line in sys.stdin:
        work(Path(line.rstrip("\n")))
        answers.write("done\n")
        answers.flush()


def work(folder):
    """Run the job in a folder: the worker's part of `Session.run`."""
    job = json.loads((folder / "job.json").read_text())
    X = np.load(folder / "X.npy", allow_pickle=False)
    collector = _WarningCollector()
    logging.getLogger().addHandler(collector)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            embedding, outcome = _embed(job, X)
        except ImportError as error:
            method = methods.METHODS[job["method"]]
            reason = (
                f"{method.distribution}: {error} ({method.source})" if method.source else str(error)
            )
            outcome = _no_embedding("not installed", reason)
        except Exception as error:
            outcome = _no_embedding("failed", f"{type(error).__name__}: {error}")
    logging.getLogger().removeHandler(collector)
    messages = [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    outcome["warnings"] = sorted({line.strip() for line in messages + collector.lines})
    if outcome["status"] == "ok":
        np.save(folder / "Y.npy", embedding, allow_pickle=False)
    (folder / "outcome.json").write_text(json.dumps(outcome))


def _embed(job, X):
    seconds = {}

    def call(name, rows):
        start, used = time.perf_counter(), time.process_time()
        if job["n_components"] and rows.shape[1] > job["n_components"]:
            rows = methods.principal_components(rows, job["n_components"])
        embedding = methods.embed(
            job["method"], rows, job["seed"], job["options"], job["neighbors"], job["paper"]
        )
        seconds[name] = time.perf_counter() - start
        seconds["cpu"] = time.process_time() - used
        return np.asarray(embedding)

    start = time.perf_counter()
    versions = methods.load(job["method"])
    seconds["import"] = time.perf_counter() - start
    if job["warm"]:
        size = LARGE if len(X) > SWITCH else SMALL
        call("first", X[np.sort(np.random.default_rng(0).permutation(len(X))[:size])])
    embedding = call("fit", X)
    if not np.isfinite(embedding).all():
        raise ValueError("the embedding contains NaN or infinity.")
    versions["python"] = ".".join(map(str, sys.version_info[:3]))
    return embedding, {"status": "ok", "seconds": seconds, "versions": versions}


if __name__ == "__main__":
    serve()
