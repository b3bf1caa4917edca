"""The commands: arguments, files, output and exit codes."""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import signal
import struct
import subprocess
import sys
import types
import warnings
import zlib

import anndata
import click
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

import mercat
from mercat import Mercat, metrics, tl
from mercat._draw import colors, maps
from mercat._draw.palette import MISSING
from mercat._extras import not_installed
from mercat._files.model import write_model
from mercat._solve.initial import size_of
from mercat.cli import _options, _peers
from mercat.cli._app import app
from mercat.cli._methods import METHODS, Method
from mercat.cli._read import ENDINGS

RNG = np.random.default_rng(0)
N = 60
CENTERS = RNG.normal(size=(3, 5)) * 4
KIND = RNG.integers(0, 3, N)
X = CENTERS[KIND] + RNG.normal(size=(N, 5))
FRAME = pd.DataFrame(X, columns=[f"f{k}" for k in range(5)])
FRAME.insert(0, "name", [f"p{k}" for k in range(N)])
FRAME["kind"] = np.array(["ant", "bee", "<b>cat</b>"])[KIND]


def call(*arguments):
    """Run a command and return its exit code, stdout and stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            runner = CliRunner(mix_stderr=False)  # click 8.1
        except TypeError:
            runner = CliRunner()
    result = runner.invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def succeed(*arguments):
    code, out, err = call(*arguments)
    assert code == 0, err
    return out


def shell(*arguments, **options):
    """Run a command in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "mercat", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False)
    return path


# ------------------------------------------------------------------ embed


def test_embed_writes_the_map_of_the_estimator(data, tmp_path):
    expected = Mercat(random_state=0).fit(X)
    text = succeed("embed", data, "-o", tmp_path / "map.csv", "--label", "kind")
    frame = pd.read_csv(tmp_path / "map.csv", float_precision="round_trip")
    columns = ["name", "x", "y", "z", "longitude", "latitude", "loss", "kind"]
    assert list(frame.columns) == columns
    np.testing.assert_array_equal(frame[["x", "y", "z"]], expected.embedding_)
    np.testing.assert_array_equal(frame["loss"], expected.point_loss_)
    assert frame["kind"].tolist() == FRAME["kind"].tolist()
    longitude, latitude = np.radians(frame["longitude"]), np.radians(frame["latitude"])
    np.testing.assert_allclose(np.cos(latitude) * np.cos(longitude), frame["x"], atol=1e-12)
    np.testing.assert_allclose(np.sin(latitude), frame["z"], atol=1e-12)
    assert "60 points of 5 columns (f0, f1, f2, f3, f4)" in text
    assert "Correlation of angles: " in text
    assert f"embedding  {tmp_path / 'map.csv'}" in text


def test_embed_without_outputs_prints_the_map(data):
    code, out, err = call("embed", data)
    assert code == 0
    assert out.splitlines()[0] == "name,x,y,z,longitude,latitude,loss,kind"
    assert len(out.splitlines()) == N + 1
    assert err.startswith("note: Metadata, not embedded: name (names the rows), kind.\n60 points")
    assert call("embed", data, "--quiet") == (0, out, "")


# Arguments for each parameter that differ from its default, and their values.
TYPED = {
    "objective": {"absolute": "absolute"},
    "detail": {"0.03": 0.03},
    "neighbors": {"7": 7},
    "n_detail": {"50": 50},
    "n_spectral": {"3": 3, "auto": "auto", "none": None},
    "metric": {"cosine": "cosine"},
    "n_landmarks": {"10": 10},
    "random_state": {"5": 5},
    "n_jobs": {"1": 1},
}


@pytest.mark.parametrize("name", _options.MODEL)
def test_each_option_of_a_model_reaches_the_estimator(data, monkeypatch, name):
    asked = []

    def asking(**keywords):
        asked.append(keywords)
        return Mercat(**keywords)

    monkeypatch.setattr(mercat, "Mercat", asking)
    options = {p.name: p for p in app.commands["embed"].params if p.name in _options.MODEL}
    defaults = {k: option.default for k, option in options.items()}
    for typed, value in TYPED[name].items():
        succeed("embed", data, *options[name].opts, typed)
        assert asked.pop() == {**defaults, name: value, "verbose": False}


def test_embed_prints_the_number_of_components_kept(data, tmp_path):
    out = tmp_path / "map.npy"
    text = succeed("embed", data, "-o", out, "--n-spectral", "auto")
    kept = len(Mercat(n_spectral="auto", random_state=0).fit(X).components_)
    assert f"Correlation of angles in the {kept} principal components kept: " in text
    text = succeed("embed", data, "-o", out, "--force", "--n-spectral", "1")
    assert "Correlation of angles in the 1 principal component kept: " in text
    facts = json.loads(succeed("embed", data, "-o", out, "--force", "--n-spectral", "4", "--json"))
    assert (facts["n_features"], facts["n_components"]) == (5, 4)


def test_options_have_the_defaults_of_the_estimator():
    defaults = {k: p.default for k, p in inspect.signature(Mercat).parameters.items()}
    command = app.commands["embed"]
    options = {p.name: p.default for p in command.params if p.name in _options.MODEL}
    assert set(options) == set(_options.MODEL)
    assert options.pop("random_state") == 0  # the same command gives the same map
    assert options == {name: defaults[name] for name in options}


def refused(name, value):
    """Error message of the estimator for a parameter, or "" if the value is valid."""
    try:
        Mercat(**{"random_state": 0, "n_spectral": None, name: value}).fit(X[:10])
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore:neighbors has no effect")
@pytest.mark.parametrize("name", _options.MODEL)
def test_options_have_the_limits_of_the_estimator(name):
    (kind,) = (p.type for p in app.commands["embed"].params if p.name == name)
    if isinstance(kind, click.Choice):
        allowed = ", ".join(map(repr, kind.choices))
        assert refused(name, "?").startswith(f"{name} must be one of {allowed}, ")
    elif name == "n_jobs":
        assert refused(name, 0)  # the only invalid number
        assert not refused(name, -1)
    else:
        least = getattr(kind, "least", getattr(kind, "min", 0))
        words = getattr(kind, "words", {}).values()
        assert refused(name, least - 1)
        assert not any(refused(name, value) for value in (least, *words))


def test_options_have_the_defaults_of_the_measures():
    defaults = {k: p.default for k, p in inspect.signature(metrics.report).parameters.items()}
    options = {p.name: p for p in app.commands["evaluate"].params}
    assert options["n_points"].default == defaults["n_points"]
    assert options["random_state"].default == defaults["random_state"]
    k = inspect.signature(metrics.neighborhood_preservation).parameters["k"].default
    assert f"[default: {k}, at most half" in options["k"].help


def test_embed_applies_the_preparation_options(data, tmp_path):
    positive = FRAME.assign(**{f"f{k}": np.abs(X[:, k]) for k in range(5)})
    positive.to_csv(data, index=False)
    out = tmp_path / "map.npy"
    succeed("embed", data, "-o", out, "--log1p", "--scale")
    Z = np.log1p(np.abs(X))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    np.testing.assert_allclose(np.load(out), Mercat(random_state=0).fit_transform(Z), atol=1e-6)
    FRAME.to_csv(data, index=False)
    code, _, err = call("embed", data, "--log1p")
    assert code == 3
    assert f"{data}, line " in err
    assert "--log1p needs numbers of at least 0" in err


@pytest.mark.parametrize("ending", [".tsv", ".parquet", ".feather", ".h5ad"])
def test_embed_writes_every_format_and_evaluate_reads_it(data, tmp_path, ending):
    out = tmp_path / f"map{ending}"
    succeed("embed", data, "-o", out)
    Y = Mercat(random_state=0).fit_transform(X)
    measures = json.loads(succeed("evaluate", data, out, "--json", "--label", "kind"))["measures"]
    expected = metrics.report(X, Y, FRAME["kind"].to_numpy(dtype=str), k=29, random_state=0)
    assert {k: v["score"] for k, v in measures.items()} == pytest.approx(dict(expected))


def test_embed_keeps_an_anndata_file_and_adds_to_it(tmp_path):
    adata = anndata.AnnData(X.astype(np.float32), obs=FRAME[["name", "kind"]].set_index("name"))
    adata.uns["kept"] = "yes"
    adata.write_h5ad(tmp_path / "a.h5ad")
    succeed("embed", tmp_path / "a.h5ad", "-o", tmp_path / "b.h5ad")
    again = anndata.read_h5ad(tmp_path / "b.h5ad")
    expected = Mercat(random_state=0).fit(X.astype(np.float32))
    np.testing.assert_array_equal(again.obsm["X_mercat_sphere"], expected.embedding_)
    np.testing.assert_array_equal(again.obs["mercat_loss"], expected.point_loss_)
    assert again.obsm["X_mercat"].shape == (N, 2)
    assert again.uns["kept"] == "yes"
    tl.mercat(adata, use_rep="X", random_state=0)
    assert again.uns["mercat"].keys() == adata.uns["mercat"].keys()
    assert again.uns["mercat"]["params"]["use_rep"] == "X"
    assert again.obs_names[3] == "p3"
    assert again.obs["kind"].tolist() == FRAME["kind"].tolist()


def test_embed_writes_uncertainty(data, tmp_path):
    outputs = [tmp_path / name for name in ("map.csv", "map.html")]
    out = succeed("embed", data, "-o", outputs[0], "--html", outputs[1], "--uncertainty")
    assert re.search(r"tability over 20 other maps: 0\.\d+ \(by chance: 0\.\d\)\.", out)
    frame = pd.read_csv(outputs[0])
    model = Mercat(random_state=0).fit(FRAME[[f"f{k}" for k in range(5)]].to_numpy())
    found = mercat.uncertainty(model, FRAME[[f"f{k}" for k in range(5)]].to_numpy(), random_state=0)
    np.testing.assert_allclose(frame["spread_degrees"], np.degrees(found.spread), rtol=1e-3)
    for name in ("torn", "p_value", "alternative_wins", "alternative_gap"):
        np.testing.assert_allclose(frame[name], getattr(found, name), rtol=1e-3, atol=1e-3)
    told = json.loads(
        succeed("embed", data, "-o", tmp_path / "map.h5ad", "--uncertainty", "--json")
    )
    cells = anndata.read_h5ad(tmp_path / "map.h5ad")
    np.testing.assert_allclose(cells.obs["mercat_spread"], found.spread, rtol=1e-3)
    assert cells.uns["mercat"]["uncertainty"]["n_maps"] == 20
    assert told["stability"] == pytest.approx(found.stability, abs=1e-3)
    assert told["stability_by_chance"] == pytest.approx(found.stability_by_chance, abs=1e-3)
    degrees = np.degrees(np.median(found.spread))
    assert told["median_spread_degrees"] == pytest.approx(degrees, rel=1e-3)
    in_map_sizes = told["median_spread_map_sizes"]
    assert in_map_sizes * np.degrees(size_of(model.embedding_)) == pytest.approx(degrees, rel=1e-3)
    assert f"{in_map_sizes:.2g} map sizes" in out
    code, _, err = call("embed", data, "-o", tmp_path / "map.npy", "--uncertainty")
    assert code == 2
    assert "--uncertainty" in err


def test_embed_refuses_metadata_named_as_its_own_columns(tmp_path):
    path = tmp_path / "data.csv"
    FRAME.assign(torn="no").to_csv(path, index=False)
    succeed("embed", path)
    code, _, err = call("embed", path, "--uncertainty")
    assert code == 2
    assert "torn" in err


def test_embed_draws_a_page_and_a_picture(data, tmp_path):
    html, png = tmp_path / "map.html", tmp_path / "map.png"
    result = json.loads(succeed("embed", data, "--html", html, "--png", png, "--json"))
    assert result["files"] == {"page": str(html), "picture": str(png)}
    assert result["n_points"] == N
    assert 0 < result["correlation"] <= 1
    assert png.read_bytes().startswith(b"\x89PNG")
    page = html.read_text(encoding="utf-8")
    assert 'id="mercat-payload"' in page
    assert "<b>cat</b>" not in page


def test_captions_refer_to_command_line_options(tmp_path, monkeypatch):
    values = np.random.default_rng(0).normal(size=(400, 6))
    values[:3] *= 40  # beyond the map
    pd.DataFrame(values).to_csv(tmp_path / "far.csv", index=False)
    captions, draw = [], maps.draw_map

    def drawing(*args, **options):
        ax = draw(*args, **options)
        captions.append(" ".join(ax.get_xlabel().split()))
        return ax

    monkeypatch.setattr(maps, "draw_map", drawing)
    png, report = tmp_path / "map.png", tmp_path / "report.html"
    succeed("embed", tmp_path / "far.csv", "--png", png)
    succeed("compare", tmp_path / "far.csv", "-o", report, "--method", "pca")
    assert len(captions) == 2
    assert all("at the edge" in caption for caption in captions)
    assert ["--html" in caption for caption in captions] == [True, False]
    assert not any("extent" in caption for caption in captions)


def test_dates_have_a_continuous_scale_on_pages_pictures_and_reports(data, tmp_path, monkeypatch):
    frame = pd.read_csv(data)
    days = pd.date_range("2024-01-01", periods=len(frame))
    frame.assign(day=days.strftime("%Y-%m-%d")).to_csv(data, index=False)
    colorings, make_coloring = [], colors.make_coloring
    monkeypatch.setattr(
        colors,
        "make_coloring",
        lambda *a, **k: colorings.append(make_coloring(*a, **k)) or colorings[-1],
    )
    html, png, report = (tmp_path / name for name in ("map.html", "map.png", "report.html"))
    succeed(
        "embed", data, "--label", "day", "--html", html, "--png", png, "-o", tmp_path / "map.csv"
    )
    assert all(isinstance(shade, colors.Scale) and shade.dates for shade in colorings)
    page = html.read_text(encoding="utf-8")
    packed = zlib.decompress(base64.b64decode(re.search(r'-payload">([^<]*)<', page)[1]))
    header = json.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])
    assert {c["name"]: c["kind"] for c in header["columns"]}["day"] == "date"
    assert pd.read_csv(tmp_path / "map.csv")["day"][1] == "2024-01-02"  # as it was
    succeed("compare", data, "-o", report, "--label", "day", "--method", "pca")
    (legend,) = re.findall('<ul class="legend">.*?</ul>', report.read_text(encoding="utf-8"))
    assert "2024-01-01" in legend
    assert legend.count("<li>") == 5


@pytest.fixture
def drawn(monkeypatch):
    """Labels of `kind` with their colours as passed to pages (which are not written) and pictures."""
    found, make_coloring = [], colors.make_coloring

    def coloring(color, n, *, palette):
        found.append(palette and {k: c[:7] for k, c in palette.items()})
        return make_coloring(color, n, palette=palette)

    monkeypatch.setattr(colors, "make_coloring", coloring)
    monkeypatch.setattr(
        "mercat.viewer.to_html",
        lambda Y, frame, path, **_: found.append(getattr(frame["kind"], "colors", None)),
    )
    return found


def test_pages_and_pictures_have_the_colours_that_scanpy_keeps(tmp_path, drawn):
    values = X.astype(np.float32)
    values[KIND == 1, 0] = np.nan  # a class whose rows are all dropped keeps its colour
    adata = anndata.AnnData(
        values, obs=FRAME[["name", "kind"]].set_index("name").astype("category")
    )
    names = list(adata.obs["kind"].cat.categories)
    colors = dict(zip(names, ["#ff0000", "#00ff00", "#0000ff"], strict=True))
    adata.uns["kind_colors"] = list(colors.values())
    a, b = tmp_path / "a.h5ad", tmp_path / "b.h5ad"
    adata.write_h5ad(a)
    to = ("--html", tmp_path / "m.html", "--png", tmp_path / "m.png", "--force")
    succeed("embed", a, "--label", "kind", "--missing", "drop", *to)
    assert drawn == [colors, colors]
    adata.obsm["X_mercat_sphere"] = mercat.embed(X)
    adata.write_h5ad(b)
    succeed("view", b, "--label", "kind", "--no-open")
    assert drawn[2:] == [colors]
    adata.uns["kind_colors"] = ["#ff0000", "nocolour", "#0000ff"]
    adata.write_h5ad(b)
    _, _, err = call("embed", b, "--label", "kind", "--missing", "drop", *to)
    assert drawn[3:] == [None, None]
    assert err.count("warning: uns[\"kind_colors\"] holds 'nocolour', which cannot be read") == 1


def test_warnings_become_sentences_even_when_quiet(data, tmp_path, monkeypatch):
    fit = Mercat.fit

    def doubtful(self, X):
        warnings.warn("the fit stopped\n  early", RuntimeWarning, stacklevel=2)
        warnings.warn("an old name", DeprecationWarning, stacklevel=2)
        return fit(self, X)

    monkeypatch.setattr(Mercat, "fit", doubtful)
    code, out, err = call("embed", data, "-o", tmp_path / "map.npy", "--quiet", "--json")
    assert (code, err) == (0, "warning: the fit stopped early\n")
    assert json.loads(out)["notes"][1:] == [
        "the fit stopped early"
    ]  # the first note is about metadata


def test_a_warning_is_printed_once(data, tmp_path):
    """matplotlib warns about each missing glyph at every drawing."""
    frame = pd.read_csv(data).assign(kind="细胞")
    named = tmp_path / "named.csv"
    frame.to_csv(named, index=False)
    _, _, err = call("embed", named, "--png", tmp_path / "m.png", "--label", "kind")
    warned = [line for line in err.splitlines() if line.startswith("warning: Glyph")]
    assert len(warned) == len(set(warned)) == 2


# ------------------------------------------------------------------ files whole or not at all


def test_nothing_is_overwritten_without_force(data, tmp_path):
    out = tmp_path / "map.csv"
    out.write_text("mine")
    code, _, err = call("embed", data, "-o", out)
    assert code == 4
    assert re.search(rf"{re.escape(str(out))} exists.*--force", err)
    assert out.read_text() == "mine"
    succeed("embed", data, "-o", out, "--force")
    assert out.read_text() != "mine"
    code, _, err = call("embed", data, "-o", data, "--force")
    assert code == 4
    assert "is an input of this command" in err


@pytest.mark.parametrize("name", ["barcodes.tsv", "features.tsv", "genes.tsv", "barcodes.tsv.gz"])
@pytest.mark.parametrize("option", ["-o", "--save-model"])
def test_files_read_with_a_matrix_are_not_overwritten(tmp_path, monkeypatch, name, option):
    monkeypatch.setattr(Mercat, "fit", None)  # refused before the fit
    scipy.io.mmwrite(tmp_path / "matrix.mtx", scipy.sparse.coo_array(X))
    (tmp_path / name).write_text("mine")
    linked = tmp_path / "linked.tsv"
    linked.symlink_to(tmp_path / name)
    for out in (tmp_path / name, linked):
        code, _, err = call("embed", tmp_path / "matrix.mtx", option, out, "--force")
        assert code == 4
        assert f"{out} is an input of this command" in err
    assert (tmp_path / name).read_text() == "mine"


def test_nothing_is_written_into_an_input_folder(tmp_path):
    (tmp_path / "cells.zarr" / "obs").mkdir(parents=True)
    for name in ("map.csv", "obs/map.csv"):
        out = tmp_path / "cells.zarr" / name
        code, _, err = call("embed", tmp_path / "cells.zarr", "-o", out)
        assert code == 4
        assert f"{out} is part of {tmp_path / 'cells.zarr'}, which is an input" in err
    code, _, err = call(
        "embed", tmp_path, "-o", tmp_path / "map.csv"
    )  # a folder that is not an input
    assert code == 3
    assert f"{tmp_path} must end in" in err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of files are UTF-8 there")
def test_names_of_files_need_not_be_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    FRAME.to_csv(path, index=False)
    model, html, report = (
        tmp_path / os.fsdecode(b"caf\xe9" + end) for end in (b"", b".html", b"r.html")
    )
    succeed("embed", path, "--html", html, "--save-model", model, "--json")
    assert "<title>caf\ufffd</title>" in html.read_text(encoding="utf-8")
    out = succeed("transform", model, path, "-o", tmp_path / "t.h5ad", "--json")
    assert json.loads(out)["model"] == str(model)
    assert anndata.read_h5ad(tmp_path / "t.h5ad").n_obs == N
    succeed("compare", path, "-o", report, "--method", "pca")
    assert "caf\ufffd: maps compared" in report.read_text(encoding="utf-8")
    assert r"caf\udce9.csv" in succeed("info", path)


def test_one_failed_output_leaves_no_file(data, tmp_path, monkeypatch):
    from mercat import viewer

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(viewer, "to_html", fail)
    out, html = tmp_path / "map.csv", tmp_path / "map.html"
    out.write_text("old")
    code, _, err = call("embed", data, "-o", out, "--html", html, "--force")
    assert code == 4
    assert f"Nothing was written: {html}: No space left on device." in err
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "map.csv"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failed_rename_leaves_every_output_unchanged(data, tmp_path, monkeypatch, failing):
    outputs = [tmp_path / "map.csv", tmp_path / "map.mercat"]
    for path in outputs:
        path.write_text("old")
    replace = os.replace

    def broken(source, target):
        if target == outputs[failing] and not str(source).endswith(".old"):
            raise OSError(1, "Operation not permitted", str(source), None, str(target))
        replace(source, target)

    monkeypatch.setattr("mercat._files.atomic.os.replace", broken)
    code, _, err = call("embed", data, "-o", outputs[0], "--save-model", outputs[1], "--force")
    assert code == 4
    assert f"Nothing was written: {outputs[failing]}: Operation not permitted." in err
    assert [path.read_text() for path in outputs] == ["old", "old"]
    assert len(list(tmp_path.iterdir())) == 3


def test_outputs_that_cannot_be_restored_are_named(data, tmp_path, monkeypatch):
    outputs = [tmp_path / "map.csv", tmp_path / "map.mercat"]
    for path in outputs:
        path.write_text("old")
    replace, calls = os.replace, []

    def once(source, target):
        if target in outputs:
            calls.append(target)
        if len(calls) > 1:
            raise OSError(5, "Input/output error", str(source), None, str(target))
        replace(source, target)

    monkeypatch.setattr("mercat._files.atomic.os.replace", once)
    code, _, err = call("embed", data, "-o", outputs[0], "--save-model", outputs[1], "--force")
    assert code == 4
    assert "Nothing" not in err
    assert "Only some of the outputs were written" in err
    assert str(outputs[0]) in err
    assert str(outputs[1]) not in err
    assert [path.read_bytes() == b"old" for path in outputs] == [False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes of POSIX")
def test_devices_pipes_and_loops_are_neither_read_nor_replaced(data, tmp_path):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    for name, reason in (
        ("loop.csv", "Too many levels of symbolic links"),
        ("endless.csv", "is a device, not a file"),
        ("pipe.csv", "is a pipe, not a file"),
    ):
        path = tmp_path / name
        for arguments in (
            ["embed", path, "-o", tmp_path / "map.csv"],
            ["info", path],
            ["view", path, "-o", tmp_path / "page.html"],
            ["evaluate", data, path],
            ["transform", path, data],
        ):
            code, _, err = call(*arguments)
            assert (code, str(path) in err) == (3, True)
            assert reason in err
        code, _, err = call("embed", data, "-o", path, "--force")
        assert code == 4
        assert reason.partition(",")[0] in err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-o", "nowhere/map.csv"], 4, "there is no folder"),
        (["-o", "folder.csv"], 4, "is a folder"),
        (["-o", "map.xlsx"], 2, "must end in .csv, .tsv"),
        (["--png", "map.html"], 2, "must end in .png"),
        (["--html", "a.html", "--save-model", "a.html"], 2, "a.html"),
        (["--label", "kin"], 2, "Did you mean 'kind'?"),
        (["--drop", "q"], 2, "'--drop'"),
        (["--label", "kind", "--label", "f0"], 2, "'--label': may be given only once"),
        (["--delimiter", "::"], 2, "'--delimiter'"),
        (["--delimiter", ""], 2, "got ''"),
        (["--delimiter", '"'], 2, "'--delimiter'"),
        (["--n-spectral", "0"], 2, "got '0'"),
        (["--n-jobs", "0"], 2, "got 0"),
        (["--metric", "taxi"], 2, "'--metric'"),
        (["--metric", "precomputed"], 3, "X must be"),
        (
            ["--drop", "f0", "--drop", "f1", "--drop", "f2", "--drop", "f3", "--drop", "f4"],
            3,
            "no numeric column",
        ),
    ],
)
def test_wrong_options_have_messages_and_exit_codes(
    data, tmp_path, monkeypatch, options, code, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    got, out, err = call("embed", "data.csv", *options)
    assert (got, out) == (code, "")
    assert message in err


def test_a_read_only_folder_is_reported_before_the_fit(data, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)  # root may write
    code, _, err = call("embed", data, "-o", tmp_path / "map.csv")
    assert code == 4
    assert f"the folder {tmp_path} is read-only" in err


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("matplotlib", ["embed", "data.csv", "--png", "m.png"], "cli"),
        ("anndata", ["embed", "data.csv", "-o", "m.h5ad"], "cli,anndata"),
        ("anndata", ["embed", "cells.h5ad"], "cli,anndata"),
        ("zarr", ["embed", "cells.zarr"], "cli,anndata"),
        ("pandas", ["embed", "data.csv"], "cli"),
        ("pandas", ["embed", "data.npy"], "cli"),
        ("pandas", ["view", "data.csv"], "cli"),
        ("pyarrow", ["embed", "data.parquet"], "cli"),
        ("pyarrow", ["embed", "data.csv", "-o", "m.feather"], "cli"),
        ("matplotlib", ["compare", "data.csv", "-o", "r.html"], "cli"),
    ],
)
def test_missing_packages_are_named_before_the_fit(
    data, tmp_path, monkeypatch, module, arguments, extra
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.npy").touch()
    (tmp_path / "data.parquet").touch()
    (tmp_path / "cells.h5ad").touch()
    (tmp_path / "cells.zarr").mkdir()
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(Mercat, "fit", lambda self, X: pytest.fail("fitted in vain"))
    code, out, err = call(*arguments)
    assert (code, out) == (5, "")
    assert f"needs {module}, which is {not_installed(extra)}" in err


def test_too_few_rows_are_refused(tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,2\n3,5\n")
    code, _, err = call("embed", tmp_path / "few.csv")
    assert code == 3
    assert "few.csv has 2 rows, but a map needs at least 4" in err
    np.save(tmp_path / "one.npy", [[1.0, 2.0]])
    assert "one.npy has 1 row, but" in call("embed", tmp_path / "one.npy")[2]


def test_a_tab_can_be_typed(tmp_path):
    FRAME.to_csv(tmp_path / "data.txt", sep="\t", index=False)
    text = succeed("embed", tmp_path / "data.txt", "--delimiter", r"\t", "-o", tmp_path / "map.csv")
    assert "60 points of 5 columns" in text


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_identical_rows_are_reported(tmp_path, make):
    rows = make(np.tile([1.0, 0, 0.1], (30, 1)))
    X_file, out = tmp_path / "x.npz", tmp_path / "map.npy"
    if scipy.sparse.issparse(rows):
        scipy.sparse.save_npz(X_file, rows)
    else:
        np.savez(X_file, X=rows)
    code, _, err = call("embed", X_file, "-o", out, "--quiet")
    assert code == 0
    assert err.startswith("warning: All angles")
    assert err.count("\n") == 1


def test_unused_landmarks_are_reported(data, tmp_path):
    out = tmp_path / "map.npy"
    err = call("embed", data, "-o", out, "--n-landmarks", "20")[2]
    assert "All 60 points were solved together" in err
    assert "solved together" not in call("embed", data, "-o", out, "--force")[2]


def test_output_columns_do_not_collide(data, tmp_path):
    FRAME.rename(columns={"kind": "loss"}).to_csv(data, index=False)
    code, _, err = call("embed", data, "-o", tmp_path / "map.csv")
    assert code == 2
    assert "--drop loss" in err
    assert not (tmp_path / "map.csv").exists()


@pytest.mark.parametrize(
    ("name", "more"), [("point loss", []), ("p value", ["--uncertainty"])], ids=["loss", "p"]
)
def test_columns_of_the_page_do_not_collide(data, tmp_path, name, more):
    FRAME.rename(columns={"kind": name}).to_csv(data, index=False)
    code, _, err = call("embed", data, "--html", tmp_path / "map.html", *more)
    assert code == 2
    assert str(data) in err
    assert f"--drop '{name}'" in err
    succeed("embed", data, "-o", tmp_path / "map.csv", *more)
    if name == "point loss":
        code, _, err = call("view", tmp_path / "map.csv", "-o", tmp_path / "map.html")
        assert code == 3
        assert f"{tmp_path / 'map.csv'} has a column 'point loss'" in err


# ------------------------------------------------------------------ models


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ({"features": 5}, "its features must be 5 different names, got '5'"),
        ({"features": ["a", 2, "c", "d", "e"]}, "its features must be 5 different names"),
        ({"features": ["a"] * 5}, "its features must be 5 different names"),
        ({"features": ["a", "b"]}, "its features must be 5 different names"),
        ({"key": 5}, "its key must be a name, got '5'"),
        ({"center": np.zeros(3)}, "center must be 5 numbers"),
    ],
    ids=str,
)
def test_transform_refuses_a_model_with_odd_notes(data, tmp_path, notes, reason):
    path = tmp_path / "odd.mercat"
    write_model(Mercat(random_state=0).fit(X), path, notes)
    data = data if "key" not in notes else tmp_path / "cells.h5ad"
    if "key" in notes:
        anndata.AnnData(X).write_h5ad(data)
    code, _, err = call("transform", path, data)
    assert code == 3
    assert reason in err
    assert str(path) in err


def test_transform_repeats_the_preparation_and_matches_columns(data, tmp_path):
    model, out = tmp_path / "m.mercat", tmp_path / "new.csv"
    succeed("embed", data, "--save-model", model, "--scale")
    shuffled = FRAME[["kind", "f3", "f1", "f4", "f0", "f2", "name"]].iloc[:7]
    shuffled.assign(more=1.5).to_csv(tmp_path / "rows.csv", index=False)
    succeed("transform", model, tmp_path / "rows.csv", "-o", out)
    frame = pd.read_csv(out, float_precision="round_trip")
    fitted = Mercat(random_state=0).fit((X - X.mean(axis=0)) / X.std(axis=0))
    expected = fitted.transform(((X - X.mean(axis=0)) / X.std(axis=0))[:7])
    np.testing.assert_allclose(frame[["x", "y", "z"]], expected, atol=1e-6)
    assert frame["more"].tolist() == [1.5] * 7
    assert "loss" not in frame
    with pytest.warns(UserWarning, match=r"\(scale\)"):
        assert isinstance(mercat.load(model), Mercat)
    np.save(tmp_path / "rows.npy", X[:7])
    succeed("transform", model, tmp_path / "rows.npy", "-o", tmp_path / "new.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), frame[["x", "y", "z"]])


def test_transform_names_mismatches(data, tmp_path):
    model = tmp_path / "m.mercat"
    succeed("embed", data, "--save-model", model)
    FRAME.drop(columns=["f1", "f3"]).to_csv(tmp_path / "less.csv", index=False)
    code, _, err = call("transform", model, tmp_path / "less.csv")
    assert code == 3
    assert "lacks 2 of the 5 columns that the model was fitted to: f1, f3." in err
    np.save(tmp_path / "less.npy", X[:, :3])
    code, _, err = call("transform", model, tmp_path / "less.npy")
    assert code == 3
    assert "has 3 columns of numbers, but" in err
    FRAME.assign(f2="tall").to_csv(tmp_path / "text.csv", index=False)
    code, _, err = call("transform", model, tmp_path / "text.csv")
    assert code == 3
    assert "text.csv, line 2, column 'f2': 'tall' is not a number" in err
    code, _, err = call("transform", data, data)
    assert code == 3
    assert "not a valid model file" in err
    code, _, err = call("transform", tmp_path / "absent", data)
    assert code == 3
    assert f"{tmp_path / 'absent'} cannot be read: No such file or directory." in err


# ------------------------------------------------------------------ evaluate and view


def test_two_classes_have_no_centroids_to_correlate(data, tmp_path):
    FRAME.assign(kind=["a", "b"] * (N // 2)).to_csv(data, index=False)
    succeed("embed", data, "-o", tmp_path / "map.csv", "--label", "kind")
    _, _, err = call("evaluate", data, tmp_path / "map.csv", "--label", "kind")
    assert "note: 'kind' has fewer than 3 classes" in err


def test_evaluate_takes_maps_of_other_methods(data, tmp_path):
    pd.DataFrame(X[:, :2], columns=["UMAP1", "UMAP2"]).to_csv(tmp_path / "umap.csv", index=False)
    code, out, err = call("evaluate", data, tmp_path / "umap.csv", "-k", "10")
    assert code == 0
    assert out.strip() == repr(metrics.report(X, X[:, :2], k=10))
    assert "The coordinates are the columns UMAP1, UMAP2." in err


@pytest.mark.parametrize("n", [4, 8, 30, 50])
def test_few_points_have_small_neighbourhoods(tmp_path, n):
    np.save(tmp_path / "x.npy", X[:n])
    np.save(tmp_path / "y.npy", X[:n, :2])
    code, out, err = call("evaluate", tmp_path / "x.npy", tmp_path / "y.npy")
    assert code == 0
    k = (n - 1) // 2
    assert out.strip() == repr(metrics.report(X[:n], X[:n, :2], k=k))
    assert re.search(rf"{k} points? instead of 50\b.*\b{n}\b", err)
    code, _, err = call("evaluate", tmp_path / "x.npy", tmp_path / "y.npy", "-k", n)
    assert code == 3
    assert f"-k must be less than the number of points, {n}, got {n}." in err


def test_evaluate_measures_by_the_metric(data, tmp_path):
    np.save(tmp_path / "y.npy", X[:, :2])
    measured = succeed("evaluate", data, tmp_path / "y.npy", "-k", "10", "--metric", "correlation")
    rows = X - X.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert measured.strip() == repr(metrics.report(rows, X[:, :2], k=10))
    assert measured != succeed("evaluate", data, tmp_path / "y.npy", "-k", "10")


def test_evaluate_measures_the_given_number_of_points(data, tmp_path):
    np.save(tmp_path / "y.npy", X[:, :2])
    arguments = ("evaluate", data, tmp_path / "y.npy", "-k", "10")
    measured = succeed(*arguments, "--n-points", "20")
    assert measured.strip() == repr(metrics.report(X, X[:, :2], k=10, n_points=20))
    assert measured != succeed(*arguments)


def test_evaluate_refuses_other_rows(data, tmp_path):
    out = tmp_path / "map.csv"
    succeed("embed", data, "-o", out)
    frame = pd.read_csv(out)
    frame.iloc[::-1].to_csv(out, index=False)
    code, _, err = call("evaluate", data, out)
    assert code == 3
    assert "row 0 is 'p0' in the first and 'p59' in the second (column 'name')" in err
    frame.iloc[:50].to_csv(out, index=False)
    code, _, err = call("evaluate", data, out)
    assert code == 3
    assert "has 60 rows, but" in err
    frame.assign(y=np.nan).to_csv(out, index=False)
    code, _, err = call("evaluate", data, out)
    assert code == 3
    assert "line 2, column 'y': the coordinate is missing" in err
    code, _, err = call("evaluate", data, data)
    assert code == 3
    assert "Does it hold the data?" in err


def test_known_fractions_that_differ_are_measurements_and_whole_numbers_are_classes(data, tmp_path):
    out = tmp_path / "map.csv"
    succeed("embed", data, "-o", out)
    known = np.arange(N) < N // 3
    FRAME.assign(kind=np.where(known, np.arange(N) + 0.5, np.nan)).to_csv(data, index=False)
    _, _, err = call("evaluate", data, out, "--label", "kind")
    assert "note: 'kind' holds measurements, not classes" in err
    FRAME.assign(kind=np.where(np.arange(N) > 0, np.arange(N), np.nan)).to_csv(data, index=False)
    code, text, err = call("evaluate", data, out, "--label", "kind", "--json")
    assert code == 0
    assert "measurements" not in err
    assert "knn_accuracy" in json.loads(text)["measures"]


def test_rows_without_a_label_do_not_count_in_the_measures_of_classes(data, tmp_path):
    out, frame = tmp_path / "map.csv", pd.read_csv(data)
    succeed("embed", data, "-o", out)
    frame.loc[:9, "kind"] = None
    frame.to_csv(gaps := tmp_path / "gaps.csv", index=False)
    code, text, err = call("evaluate", gaps, out, "--label", "kind", "--json")
    assert code == 0
    assert f"10 of {len(frame)} rows have no value in the column 'kind' and are left out" in err
    measures = json.loads(text)["measures"]
    known = metrics.knn_accuracy(pd.read_csv(out)[["x", "y", "z"]][10:], frame["kind"][10:])
    np.testing.assert_allclose(measures["knn_accuracy"]["score"], known)
    frame["kind"] = None
    frame.loc[0, "kind"] = "a"
    frame.to_csv(gaps, index=False)
    code, _, err = call("evaluate", gaps, out, "--label", "kind")
    assert code == 3
    assert "fewer than 3 rows have a value in the column 'kind'" in err


def test_json_without_outputs_says_that_no_map_is_written(data, tmp_path):
    code, text, err = call("embed", data, "--json")
    assert code == 0
    assert json.loads(text)["files"] == {}
    assert "-o FILE" in err
    assert "not written" not in call("embed", data, "--json", "-o", tmp_path / "m.csv")[2]


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "much"])
def test_detail_must_be_finite_and_not_negative(data, value):
    code, _, err = call("embed", data, "--detail", value)
    assert code == 2
    assert "--detail" in err
    assert repr(value) in err


def test_view_can_start_with_the_loss(data, tmp_path):
    succeed("embed", data, "-o", tmp_path / "map.csv")
    succeed("view", tmp_path / "map.csv", "-o", tmp_path / "map.html", "--label", "loss")
    assert (tmp_path / "map.html").is_file()


def test_view_shows_the_loss_of_the_selected_map(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "mercat.viewer.to_html", lambda Y, meta, path, **rest: shown.append((Y, meta, rest))
    )
    adata = anndata.AnnData(X)
    tl.mercat(adata)
    tl.mercat(adata, key_added="other", objective="absolute")
    adata.write_h5ad(tmp_path / "a.h5ad")
    key = ("--embedding-key", "other")
    succeed("view", tmp_path / "a.h5ad", "--no-open", *key, "--label", "other_loss")
    ((Y, meta, rest),) = shown
    np.testing.assert_array_equal(Y, adata.obsm["other_sphere"])
    np.testing.assert_array_equal(rest["point_loss"], adata.obs["other_loss"])
    assert rest["color"] == "point loss"
    assert list(meta) == ["index", "mercat_loss"]


def test_view_writes_and_opens_a_page(data, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda uri: opened.append(uri) or True)
    out, html = tmp_path / "map.csv", tmp_path / "map.html"
    succeed("embed", data, "-o", out)
    assert succeed("view", out, "-o", html, "--label", "kind").strip() == str(html)
    assert opened == []
    assert "<title>map</title>" in html.read_text(encoding="utf-8")
    code, _, err = call("view", out, "-o", html)
    assert code == 4
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = succeed("view", out, "--title", "T").strip()
    assert opened == [f"file://{path}"]
    assert [path] == [str(p) for p in scratch.rglob("*.html")]
    code, _, err = call("view", out, "--no-open", "--label", "sort")
    assert code == 2
    assert "has no metadata column 'sort'. Its metadata columns: name, kind, loss." in err
    code, _, err = call("view", out, "--no-open", "--label", "x")  # a coordinate, not offered
    assert code == 2
    assert "has no metadata column 'x'. Its metadata columns: name, kind, loss." in err
    np.save(tmp_path / "bare.npy", mercat.embed(X))
    code, _, err = call("view", tmp_path / "bare.npy", "--no-open", "--label", "kind")
    assert code == 2
    assert "has no metadata column 'kind'. It has none with a name." in err
    monkeypatch.setattr("webbrowser.open", lambda uri: False)
    code, _, err = call("view", out)
    assert code == 0
    assert "No browser could be started. Open" in err
    for points, fault in (
        (X[:, :2], rf"flat\.npy .*unit vectors.*\({N}, 2\)"),
        (
            2 * np.eye(3),
            r"flat\.npy .*3 of 3 rows.*row 0 of length 2",
        ),
    ):
        np.save(tmp_path / "flat.npy", points)
        code, _, err = call("view", tmp_path / "flat.npy", "--no-open")
        assert code == 3
        assert re.search(fault, err)
    assert all(list(folder.iterdir()) for folder in scratch.iterdir())  # no empty files were left


def test_evaluate_says_if_the_map_is_one_of_prepared_data(tmp_path):
    raw, path = tmp_path / "raw.h5ad", tmp_path / "map.h5ad"
    anndata.AnnData(np.exp(X - X.min())).write_h5ad(raw)
    succeed("embed", raw, "--log1p", "--scale", "-o", path)
    for given, missing in ([], "--log1p --scale"), (["--scale"], "--log1p"):
        code, _, err = call("evaluate", raw, path, *given)
        assert code == 0
        assert f"prepared by {missing}, but {raw} is measured without: pass {missing}" in err
    assert "prepared" not in call("evaluate", raw, path, "--scale", "--log1p")[2]


# ------------------------------------------------------------------ compare


def test_compare_says_for_which_measure_lower_is_better(data, tmp_path):
    report = tmp_path / "report.html"
    lines = succeed("compare", data, "-o", report, "--method", "pca").splitlines()
    assert [name for name in lines[0].split() if name.endswith("*")] == ["Torn*"]
    assert "* lower is better" in lines
    assert "<th>Torn&nbsp;&darr;</th>" in report.read_text(encoding="utf-8")


def test_compare_shows_methods_side_by_side(data, tmp_path, monkeypatch):
    fake = types.ModuleType("umap")

    class UMAP:
        def __init__(self, random_state, n_jobs):
            assert random_state == 3

        def fit_transform(self, X):
            warnings.warn("neighbours <few>", UserWarning, stacklevel=1)
            print("chatter")
            return X[:, :2]

    fake.UMAP = UMAP
    broken = types.ModuleType("pacmap")
    broken.PaCMAP = lambda **options: 1 / 0
    monkeypatch.setitem(sys.modules, "umap", fake)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    monkeypatch.setitem(sys.modules, "pacmap", broken)
    report = tmp_path / "report.html"
    options = ["--label", "kind", "-k", "10", "--seed", "3", "--json"]
    methods = json.loads(succeed("compare", data, "-o", report, *options))["methods"]
    assert list(methods) == ["Mercat", "UMAP", "t-SNE", "PaCMAP", "PCA"]
    labels = FRAME["kind"].to_numpy(dtype=str)
    expected = metrics.report(X, X[:, :2], labels, k=10, random_state=3)
    scores = {k: v["score"] for k, v in methods["UMAP"]["measures"].items()}
    assert scores == pytest.approx(dict(expected))
    assert methods["t-SNE"] == {"absent": "not installed: pip install umap-learn openTSNE pacmap"}
    assert methods["PaCMAP"]["absent"].startswith("failed: ZeroDivisionError")
    page = report.read_text(encoding="utf-8")
    assert page.count("<figure>") == 3
    assert "<b>t-SNE</b> not installed: pip install umap-learn openTSNE pacmap" in page
    assert "neighbours &lt;few&gt;" in page
    assert "&lt;b&gt;cat&lt;/b&gt;" in page
    assert "<b>cat</b>" not in page
    assert "chatter" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


@pytest.mark.parametrize("column", ["kind", "height"])
def test_the_legend_of_a_report_counts_missing_values(data, tmp_path, column):
    frame = FRAME.assign(height=RNG.normal(size=N))
    frame.loc[[3, 8], column] = None
    frame.to_csv(data, index=False)
    report = tmp_path / "report.html"
    succeed("compare", data, "-o", report, "--label", column, "--meta", "height", "--method", "pca")
    (legend,) = re.findall('<ul class="legend">.*?</ul>', report.read_text(encoding="utf-8"))
    assert legend.endswith(f'fill="{MISSING.lower()}"/></svg>missing (2)</li></ul>')
    assert legend.count("<li>") == (4 if column == "kind" else 6)


def test_compare_takes_a_sample_and_selected_methods(data, tmp_path):
    report = tmp_path / "report.html"
    options = ["--sample", "40", "--method", "pca", "-k", "10"]
    code, out, err = call("compare", data, "-o", report, *options)
    assert code == 0
    first = [line.split()[0] for line in out.splitlines()]
    assert first == ["time", "Mercat", "PCA", "*", "report"]
    assert "40 points of 5 columns" in report.read_text(encoding="utf-8")
    assert "Comparing on 40 of 60 rows" in err
    code, _, err = call("compare", data, "-o", report, "--force", "-k", "60")
    assert code == 3
    assert "-k must be less than the number of points, 60, got 60." in err


def test_compare_prepares_rows_for_the_metric_for_all_methods(data, tmp_path):
    report = tmp_path / "report.html"
    options = ["--metric", "cosine", "--method", "pca", "-k", "10", "--json"]
    methods = json.loads(succeed("compare", data, "-o", report, *options))["methods"]
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    for title, Y in (
        ("PCA", _peers.attempt(METHODS["pca"], rows, 0, 1).Y),
        ("Mercat", Mercat(metric="cosine", random_state=0).fit_transform(rows)),
    ):
        scores = {k: v["score"] for k, v in methods[title]["measures"].items()}
        assert scores == pytest.approx(dict(metrics.report(rows, Y, k=10)), abs=1e-3)
    assert "compared by the metric cosine" in report.read_text(encoding="utf-8")


def test_imports_are_not_timed(monkeypatch):
    clock = iter(range(10))
    monkeypatch.setattr(_peers.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(_peers, "require", lambda *_: next(clock))
    method = Method("M", "a_module", "", lambda X, seed, n_jobs: X)
    assert _peers.attempt(method, X, 0, 1).seconds == 1


def test_a_broken_peer_is_not_reported_as_missing(tmp_path, monkeypatch):
    (tmp_path / "umap.py").write_text("import mercat_never_heard_of")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "umap", raising=False)
    absent = _peers.attempt(METHODS["umap"], X, 0, 1).failure
    assert absent == "cannot be imported: No module named 'mercat_never_heard_of'"


@pytest.mark.parametrize(
    ("name", "where"), [("trimap", "pip install trimap"), ("umap", "pip install umap-learn")]
)
def test_a_missing_peer_is_reported_with_the_install_command(name, where):
    absent = _peers.attempt(METHODS[name]._replace(module="no_such_package"), X, 0, 1).failure
    assert absent.startswith("not installed: ")
    assert where in absent


@pytest.mark.parametrize("name", ["isomap", "mds"])
def test_methods_of_scikit_learn_can_be_compared_with(name, data, tmp_path):
    report = tmp_path / "report.html"
    found = json.loads(succeed("compare", data, "-o", report, "--method", name, "--json"))[
        "methods"
    ]
    assert list(found) == ["Mercat", METHODS[name].title]
    assert found[METHODS[name].title]["measures"]["distance_preservation"]["score"] > 0.5


def test_pca_is_pca():
    from sklearn.decomposition import PCA

    Y = _peers.attempt(METHODS["pca"], X, 0, 1).Y
    np.testing.assert_allclose(Y, PCA(2).fit_transform(X), atol=1e-9)


# ------------------------------------------------------------------ info, help, completion


def test_info_describes_installation_data_and_model(data, tmp_path):
    facts = json.loads(succeed("info", "--json"))
    assert facts["mercat"] == mercat.__version__
    assert facts["packages"]["numpy"] == np.__version__
    facts = json.loads(succeed("info", data, "--json"))
    assert (facts["points"], facts["columns"], facts["ids"]) == (N, 5, "name")
    assert list(facts["metadata"]) == ["name", "kind"]
    succeed("embed", data, "--save-model", tmp_path / "m.mercat", "--n-spectral", "4", "--scale")
    facts = json.loads(succeed("info", tmp_path / "m.mercat", "--json"))
    assert facts["parameters"]["n_spectral"] == 4
    assert facts["prepared"] == "scale"
    assert facts["features"] == ["f0", "f1", "f2", "f3", "f4"]
    assert "n_spectral    4" in succeed("info", tmp_path / "m.mercat")
    np.save(tmp_path / "x.npy", X)
    assert "features    not named" in succeed("info", tmp_path / "x.npy")
    FRAME.assign(f1=[np.nan, *X[1:, 1]], one="x").to_csv(data, index=False)
    text = succeed("info", data)
    assert "  one   1 different value\n" in text
    assert f"faults\n  {data}, line 2, column 'f1': the number is missing." in text
    assert len(json.loads(succeed("info", data, "--json"))["faults"]) == 1
    code, _, err = call("info", tmp_path)
    assert code == 3
    assert "must be a model" in err
    code, _, err = call("info", tmp_path / "no.mercat")
    assert code == 3
    assert f"{tmp_path / 'no.mercat'} does not exist." in err


def test_help_of_embed_names_every_ending():
    named = re.findall(r"\.[a-z0-9]+", succeed("embed", "--help").partition("DATA ends in")[2])
    assert set(ENDINGS) <= set(named)


@pytest.mark.parametrize("command", sorted(app.commands))
def test_every_command_has_help_with_examples(command):
    text = succeed(command, "--help")
    assert "Examples:\n  " in text.replace("    mercat", "  mercat")
    assert f"mercat {command}" in text
    assert len(app.commands[command].get_short_help_str(60)) < 60


def test_the_seed_of_evaluate_is_not_that_of_a_map():
    assert "Seed for the sample of points." in succeed("evaluate", "--help")


def test_completion_writes_a_script_for_each_shell():
    assert "_MERCAT_COMPLETE=bash_complete" in succeed("completion", "bash")
    assert "#compdef mercat" in succeed("completion", "zsh")
    assert "complete --no-files --command mercat" in succeed("completion", "fish")


# ------------------------------------------------------------------ as a shell runs it


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from mercat.cli._app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'matplotlib', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "Exit codes: 0" in ended.stdout


def test_a_process_separates_results_and_messages(data, tmp_path):
    ended = shell("embed", data, "-o", tmp_path / "map.csv", "--json")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["n_points"] == N
    assert ended.stderr.startswith("note: Metadata, not embedded: ")
    assert ended.stderr.count("\n") == 1  # no progress bars in a log
    ended = shell("embed", data, "-o", tmp_path / "map.csv")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.startswith("Error: ")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal(data, tmp_path):
    import fcntl
    import pty
    import termios

    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "mercat.cli",
        "embed",
        str(data),
        "-o",
        str(tmp_path / "m.csv"),
    ]
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(command, stderr=follower, stdout=subprocess.PIPE) as process:
        out = process.communicate()[0].decode()
    os.close(follower)
    shown = os.read(leader, 10_000).decode()
    os.close(leader)
    assert "solving" in shown
    assert "solving" not in out


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_exits_with_130_and_leaves_no_file(data, tmp_path):
    code = (
        "import signal, time; from mercat._estimator import Mercat; from mercat.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which nohup would ignore\n"
        "Mercat.fit = lambda self, X: (print('fitting', flush=True), time.sleep(20))\n"
        "main()"
    )
    arguments = ["embed", str(data), "-o", str(tmp_path / "map.csv"), "--quiet"]
    command = [sys.executable, "-c", code, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "fitting\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert err == "Error: Interrupted.\n"
    assert process.returncode == 130
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_an_interrupt_at_startup_exits_with_130():
    code = (
        "import sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'numpy': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from mercat.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "info"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "Error: Interrupted.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["embed", "--quiet", "DATA"],
        ["info", "--json", "DATA"],
        ["--help"],
        ["--version"],
        ["embed", "-h"],
        ["completion", "-h"],
    ],
)
def test_a_full_disk_exits_with_4(data, arguments):
    arguments = [str(data) if word == "DATA" else word for word in arguments]
    command = [sys.executable, "-m", "mercat.cli", *arguments]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "Error: The result cannot be written to stdout: No space left on device.\n"
    assert (ended.returncode, ended.stderr) == (4, told)
