"""The reproduction of the paper: numbers, harness and report; needs neither its data nor other methods."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "paper").is_dir():
    pytest.skip("paper/ is not part of this distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks.harness import data, methods, peers  # noqa: E402
from benchmarks.harness.facing import facing  # noqa: E402
from benchmarks.harness.measure import MEASURES  # noqa: E402
from benchmarks.harness.record import Store, stamp  # noqa: E402
from paper import (  # noqa: E402
    claims,
    experiment,
    numbers,
    report,
    rivals,
    runtime,
    spectrum,
    synthetic,
    theory,
)
from paper.markdown import best, seconds  # noqa: E402
from paper.numbers import Number  # noqa: E402

# ------------------------------------------------------------------ the paper's numbers


def test_tables_of_the_paper_are_complete():
    synthetic_numbers, real = numbers.paper_table("synthetic"), numbers.paper_table("real")
    assert len(synthetic_numbers) == 8 * 4 * 5
    assert len(real) == 5 * 4 * 5
    assert len(numbers.paper_neighborhoods()) == 3 * 4 * 4 * 5
    assert len(numbers.paper_runtimes()) == 5 * 6
    assert {key[0] for key in (*synthetic_numbers, *real)} == set(data.SETS)


def test_tables_of_the_paper_match_the_printed_numbers():
    synthetic_numbers = numbers.paper_table("synthetic")
    assert synthetic_numbers["unif5", "distance", "mercat"] == Number(0.90, 0.05)
    assert synthetic_numbers["smiley", "density", "tsne"] == Number(-0.32)
    assert synthetic_numbers["gauss5_s", "distance", "densmap"] == Number(0.52, 0.27)
    assert numbers.paper_table("real")["mnist_even", "angle", "mercat"] == Number(0.53)
    assert numbers.paper_neighborhoods()["unif5", "density", "ncvis", 200] == -0.69
    assert numbers.paper_neighborhoods()["paul15", "distance", "densmap", 500] == 0.83
    assert numbers.paper_runtimes()["mnist_even", "mercat"] == ("4.2h", 4.2 * 3600)
    assert numbers.paper_runtimes()["blood", "umap"] == ("58.0m", 58 * 60)


@pytest.mark.parametrize(
    ("ours", "paper", "expected"),
    [
        (Number(0.80, 0.01), Number(0.75, 0.01), "beat"),
        (Number(0.74, 0.01), Number(0.75, 0.00), "match"),
        (Number(0.7451), Number(0.75), "match"),  # what rounds to it
        (Number(0.70, 0.01), Number(0.75, 0.01), "miss"),
    ],
)
def test_verdict_uses_two_standard_deviations(ours, paper, expected):
    assert numbers.verdict(ours, paper) == expected


def test_numbers_are_shown_as_in_the_paper():
    assert [numbers.shown(v) for v in (0.726, -0.061, 1.0, -0.001)] == [
        ".73",
        "-.06",
        "1.00",
        ".00",
    ]
    assert str(Number(0.5, 0.02)) == ".50 ±.02"
    # Two equal numbers (as shown) share the first place.
    assert best([Number(0.701), None, Number(0.699), Number(0.2)])[:3] == [
        "**.70**",
        "-",
        "**.70**",
    ]
    assert [seconds(v) for v in (0.0123, 2.34, 45.6, 150, 15120)] == [
        "12 ms",
        "2.3 s",
        "46 s",
        "2.5 min",
        "4.2 h",
    ]


# ------------------------------------------------------------------ the harness


def test_pca_runs_in_its_own_process():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [9, 5, 1, 1, 1]
    Y, outcome = peers.run("pca", X, seed=1, warm=True)
    centred = X - X.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(Y), np.abs(left[:, :2] * values[:2]), rtol=1e-3, atol=1e-4)
    assert outcome["status"] == "ok"
    assert set(outcome["seconds"]) == {"import", "first", "fit", "cpu"}
    assert outcome["versions"]["numpy"] == np.__version__


@pytest.fixture
def settings(monkeypatch):
    """Arguments with which a method is called."""
    seen = {}

    def embed(X, seed, n_jobs, **options):
        seen.update(options, seed=seed, n_jobs=n_jobs)
        return X[:, :2]

    monkeypatch.setitem(methods.METHODS, "tsne", methods.METHODS["tsne"]._replace(embed=embed))
    return seen


def test_a_method_has_the_papers_settings_or_its_own(settings):
    X = np.eye(4)
    methods.embed("tsne", X, 1)
    assert settings == {**methods.PAPER["tsne"], "seed": 1, "n_jobs": 1}
    methods.embed("tsne", X, None, {"theta": 0.1}, neighbors=7)
    assert settings == {
        **methods.PAPER["tsne"],
        "perplexity": 7,
        "theta": 0.1,
        "seed": None,
        "n_jobs": -1,
    }
    settings.clear()
    methods.embed("tsne", X, 1, {"theta": 0.1}, paper=False)
    assert settings == {"theta": 0.1, "seed": 1, "n_jobs": 1}


def test_the_harness_and_the_command_line_share_one_list_of_methods():
    from mercat.cli._methods import METHODS

    assert {name: methods.METHODS[name] for name in METHODS} == METHODS
    assert set(methods.PYTHON) <= set(METHODS)


def test_principal_components_by_either_gram_matrix():
    X = np.random.default_rng(0).normal(size=(30, 80)) * np.linspace(3, 1, 80)
    wide, tall = methods.principal_components(X, 4), methods.principal_components(X.T, 4)
    for scores, matrix in ((wide, X), (tall, X.T)):
        values = np.linalg.svd(matrix - matrix.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(np.linalg.norm(scores, axis=0), values[:4], rtol=1e-3)


def test_a_missing_method_is_reported(monkeypatch, tmp_path):
    X = np.zeros((20, 3))
    monkeypatch.setenv("MERCAT_NCVIS_PYTHON", str(tmp_path / "python"))
    Y, outcome = peers.run("ncvis", X, seed=1)
    assert Y is None
    assert outcome["status"] == "not installed"
    assert str(tmp_path / "python") in outcome["reason"]
    absent = methods.METHODS["umap"]._replace(module="no_such_package")
    monkeypatch.setitem(methods.METHODS, "umap", absent)
    with pytest.raises(ImportError, match="no_such_package"):
        methods.load("umap")
    with pytest.raises(ValueError, match=r"^method .*mercat.*'som'"):
        peers.Session("som")


def test_a_failing_method_is_reported(tmp_path):
    with peers.Session("pca") as session:
        Y, outcome = session.run(np.full((10, 3), np.nan), seed=1)
        assert Y is None
        assert outcome["status"] == "failed"
        Y, outcome = session.run(np.eye(5), seed=1)  # and the process goes on
    assert outcome["status"] == "ok"
    assert Y.shape == (5, 2)


def test_records_can_be_read_back(tmp_path):
    store = Store(tmp_path / "new" / "results.json")
    store.put("a", stamp(status="ok", seed=1))
    again = Store(store.path)
    assert "a" in again
    assert again["a"]["machine"]["cores"] >= 1
    assert not store.path.with_suffix(".part").exists()


def test_errors_of_missing_data_name_alternatives(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pbmc68k_reduced\.npz.*stand-in"):
        data.load("blood", tmp_path)


def test_stand_ins_and_subsets_are_named(tmp_path):
    labels = np.array(["a"] * 6)
    np.savez(tmp_path / "pbmc68k_reduced.npz", X=np.eye(6), labels=labels)
    np.savez(tmp_path / "paul15.npz", X=np.eye(6), labels=labels)
    assert data.load("blood", tmp_path).note.startswith("stand-in")
    assert data.load("paul15", tmp_path).note == "subset: 6 of 2730 cells, 6 of 3451 genes"


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_planar_map_is_rotated_onto_the_data_and_mirrored_only_if_allowed(mirrored):
    X = np.random.default_rng(0).normal(size=(20, 2)) * [3, 1]
    turn = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]]) @ np.diag(
        [1, 1 - 2 * mirrored]
    )
    flat = X @ turn
    np.testing.assert_allclose(facing(flat, X), X)
    assert np.allclose(facing(flat, X, mirror=False), X) == (not mirrored)


def test_methods_alternate_and_missing_methods_are_skipped(monkeypatch):
    monkeypatch.setenv("MERCAT_NCVIS_PYTHON", "/no/such/python")
    X = np.random.default_rng(0).normal(size=(60, 5))
    raced = peers.race(("pca", "ncvis"), X, turns=2, n_components={"pca": 3})
    Y, outcome = raced["pca"]
    np.testing.assert_allclose(np.abs(Y), np.abs(methods.principal_components(X, 2)), atol=1e-4)
    assert len(outcome["turns"]) == 2
    assert min(outcome["turns"]) > 0
    assert outcome["seconds"]["fit"] == outcome["turns"][0]
    assert {"import", "first"} <= outcome["seconds"].keys()
    Y, outcome = raced["ncvis"]
    assert Y is None
    assert (outcome["status"], outcome["turns"]) == ("not installed", [])


# ------------------------------------------------------------------ experiments


def test_a_task_runs_once(monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "HERE", tmp_path)
    monkeypatch.setattr(experiment.store, "__defaults__", (tmp_path,))
    task = experiment.Task("unif5", "pca", 1)
    experiment.run("synthetic", [task], None)
    first = experiment.store("synthetic")[task.key]
    assert first["status"] == "ok"
    assert 0.5 < first["measures"]["angle"]["value"] < 1
    assert experiment.cached("synthetic", task).is_file()
    experiment.run("synthetic", [task], None)
    assert experiment.store("synthetic")[task.key] == first
    # Positions cannot be recomputed without the method, but their measures are kept.
    experiment.cached("synthetic", task).unlink()
    monkeypatch.setattr(
        experiment.peers.Session, "run", lambda *_, **__: (None, {"status": "not installed"})
    )
    assert experiment.embedding("synthetic", task, None) is None
    assert experiment.store("synthetic")[task.key] == first


def test_limit_and_effective_rank_match_their_definitions():
    assert theory.limit(np.array([2.0]), 1.0) == pytest.approx([0.5])  # 3 / (2 * 3)
    assert spectrum.effective_rank(np.array([[1.0, 1, 1, 0], [5, 0, 0, 0]])) == pytest.approx(
        [3, 1]
    )
    X = np.random.default_rng(0).normal(size=(12, 3))
    direct = np.delete(X, 4, axis=0) - X[4]
    direct /= np.linalg.norm(direct, axis=1, keepdims=True)
    expected = np.linalg.svd(direct @ direct.T, compute_uv=False)[:3]
    np.testing.assert_allclose(spectrum.singular_values(X)[4], expected)


# ------------------------------------------------------------------ the report


def _record(name, method, seed, angle, **fields):
    measures = {m: {"value": angle, "standard_error": 0.0} for m in MEASURES}
    record = {"set": name, "method": method, "seed": seed, "n_components": None, "n": 500, "d": 50}
    ok = {"note": "", "status": "ok", "measures": measures, "versions": {"numpy": "2"}}
    return stamp(**{**record, **ok, **fields})


@pytest.fixture
def made_up(tmp_path):
    table = experiment.store(synthetic.TABLE, tmp_path)
    for seed in (1, 2, 3):
        table.put(f"m{seed}", _record("unif5", "mercat", seed, 0.60 + 0.01 * seed))
        table.put(f"u{seed}", _record("unif5", "umap", seed, 0.5))
        table.put(f"p{seed}", _record("unif5", "pca", seed, 0.7))
    missing = {"status": "not installed", "reason": "ncvis: No module named 'ncvis'"}
    table.put("n1", stamp(set="unif5", method="ncvis", seed=1, **missing))
    real = experiment.store("real", tmp_path)
    real.put("b", _record("blood", "mercat", 1, 0.2, note="stand-in: other blood", options=None))
    outcome = {"status": "ok", "warm": 2.0, "cold": 3.0, "turns": [2.0]}
    slow = {**outcome, "warm": 4.0}
    methods_timed = dict.fromkeys(runtime.METHODS, slow) | {"mercat": outcome, "ncvis": missing}
    experiment.store("runtime", tmp_path).put(
        "mnist_even",
        stamp(
            set="mnist_even", n=9, d=9, note="", status="ok", load_before=0.5, methods=methods_timed
        ),
    )
    return tmp_path


def test_report_of_synthetic_results(made_up):
    text = report.main(made_up, {}).read_text(encoding="utf-8")
    assert "preserves angles best on 1 of 1 sets" in text  # against UMAP
    assert "not best on: Unif5, angle: .620 against PCA's .700" in text
    assert "| Unif5 | angle | .67 ±.01 | .62 ±.01 |" in text
    assert ".50 <sub>.49 ±.02</sub>" in text
    assert "NCVis, on MNIST even, Unif5: not installed (ncvis: No module named 'ncvis')" in text
    assert "**stand-in: other blood**" in text
    assert "second fastest on 1 of 1 sets" in text
    assert "7,560 times as long" in text  # 4.2 h over 2 s
    assert "Unif5, distance: .62 ±.01 instead of .90 ±.05. Not explained." in text


def test_the_committed_report_matches_the_results():
    records = {name: experiment.store(name).records for name in report.TABLES}
    text = (experiment.HERE / "REPORT.md").read_text(encoding="utf-8")
    assert report.compose(records, experiment.HERE, rivals.read()) == text, "run: report.main()"


def test_report_without_results_says_so(tmp_path):
    text = report.main(tmp_path, {}).read_text(encoding="utf-8")
    assert "no results yet" in text


def test_comparisons_use_the_better_input_of_the_rival():
    def all_at(value):
        return {m: Number(value) for m in MEASURES}

    results = {
        ("blood", "mercat", None): all_at(0.6),
        ("blood", "umap", None): all_at(0.5),
        ("blood", "umap", 50): all_at(0.7),
    }
    found = claims.contests(results, ("umap",))
    assert claims.wins(found) == (0, 0, 0, 1)
    assert found[0].theirs == Number(0.7)


def test_a_miss_is_explained_by_algorithm_1():
    number = Number(0.5)
    miss = claims.Comparison("unif5", "angle", number, Number(0.67), "miss")
    same = {("unif5", "mercat-algorithm1", None): {"angle": Number(0.5)}}
    better = {("unif5", "mercat-algorithm1", None): {"angle": Number(0.67)}}
    assert "not the objective" in claims.explanation(miss, same, "")
    solver = {**better, ("unif5", "mercat-absolute", None): {"angle": Number(0.52)}}
    assert "the cause is the lower loss" in claims.explanation(miss, solver, "")
    calibration = {**better, ("unif5", "mercat-absolute", None): {"angle": Number(0.66)}}
    assert "calibrated objective" in claims.explanation(miss, calibration, "")
    assert "calibrated objective" in claims.explanation(miss, better, "")
    assert "data differ" in claims.explanation(miss, {}, "stand-in: x")
    assert claims.explanation(miss, {}, "") == "Not explained."
