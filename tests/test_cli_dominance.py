"""Every command that reads numbers warns about a column that dominates them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from test_cli import call

from mercat import Mercat, TrustWarning


@pytest.fixture
def folder(tmp_path):
    """A table whose column "income" has a different unit, and a map."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=["age", "income", "height", "weight"])
    frame["income"] *= 1000
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame[["age", "height"]].to_csv(tmp_path / "map.csv", index=False)
    (frame / frame.std()).to_csv(tmp_path / "scaled.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("embed", "people.csv", "-o", "out.csv"),
        ("evaluate", "people.csv", "map.csv"),
        ("compare", "people.csv", "-o", "out.html", "--method", "pca"),
    ],
    ids=lambda command: command[0],
)
def test_commands_name_the_column_and_warn_once(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    code, _, said = call(*command)
    assert code == 0, said
    assert said.count("Column 'income' has more than 99% of the variance") == 1
    *_, said = call(
        *(name.replace("people", "scaled") for name in command),
        *(["--force"] if "-o" in command else []),
    )
    assert "Column" not in said


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_other_metrics_warn_too(folder, monkeypatch, metric):
    monkeypatch.chdir(folder)
    frame = pd.read_csv("people.csv").abs()
    frame["income"] += 1000
    frame.to_csv("people.csv", index=False)
    *_, said = call("evaluate", "people.csv", "map.csv", "--metric", metric)
    assert "Column 'income' has more than 99% of the length" in said


def test_info_lists_the_dominating_column_first(folder):
    code, out, _ = call("info", folder / "people.csv", "--json")
    assert code == 0
    about = json.loads(out)
    assert next(iter(about)) == "dominating"
    assert set(about["dominating"]) == {"euclidean", "cosine", "manhattan", "correlation"}
    assert all("'income'" in sentence for sentence in about["dominating"].values())
    assert "dominating" not in json.loads(call("info", folder / "scaled.csv", "--json")[1])
    said = call("info", folder / "people.csv")[1]
    assert said.startswith("dominating\n  euclidean")


def test_info_describes_each_metric_separately(tmp_path):
    """A large constant column dominates the lengths of all rows, but has no variance."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=["age", "base", "height", "weight"])
    frame["base"] = 1000.0
    frame.to_csv(tmp_path / "people.csv", index=False)
    about = json.loads(call("info", tmp_path / "people.csv", "--json")[1])
    assert set(about["dominating"]) == {"cosine", "correlation"}


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_the_only_varying_column_is_reported(metric):
    rng = np.random.default_rng(0)
    X = np.zeros((2000, 3))
    X[:, 0] = 1
    X[:, 1] = rng.integers(0, 2, 2000)
    X[:2, 2] = 1
    with pytest.warns(TrustWarning, match=r"Column 1 .*99%"):
        Mercat(metric=metric, random_state=0).fit(X)
    X[:, 2] = rng.integers(0, 2, 2000)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Mercat(metric=metric, random_state=0).fit(X)
    assert not any("Column" in str(one.message) for one in said)
