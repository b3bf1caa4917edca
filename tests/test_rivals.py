"""The comparison with other methods: harness and tables; needs neither data nor these methods."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not part of an installation", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import rivals as bench  # noqa: E402
from benchmarks.harness.positions import Positions, fingerprint  # noqa: E402
from benchmarks.harness.record import Store  # noqa: E402
from paper import rivals  # noqa: E402

PCA = bench.Variant("pca")


# ------------------------------------------------------------------ positions


def test_positions_are_restored_for_the_same_data_only(tmp_path):
    X, Y = np.eye(4), np.arange(8.0).reshape(4, 2)
    kept = Positions(tmp_path / "new")
    assert kept.outcome("a", "pca", 1, fingerprint(X)) is None
    kept.put("a", "pca", 1, fingerprint(X), Y, {"status": "ok"})
    again = Positions(tmp_path / "new")
    assert again.outcome("a", "pca", 1, fingerprint(X))["status"] == "ok"
    np.testing.assert_array_equal(again.embedding("a", "pca", 1), Y)
    for other in (X.astype(np.float32), X.reshape(2, 8), X + 1e-9):
        assert again.outcome("a", "pca", 1, fingerprint(other)) is None
    assert again.outcome("a", "pca", 2, fingerprint(X)) is None


def test_the_reason_for_a_missing_embedding_is_stored(tmp_path):
    kept = Positions(tmp_path)
    kept.put("a", "pcc", 1, "data", None, {"status": "not installed", "reason": "no pcc"})
    assert kept.outcome("a", "pcc", 1, "data")["reason"] == "no pcc"
    assert not list(tmp_path.rglob("*.npy"))


# ------------------------------------------------------------------ embedding and scoring


def test_an_embedding_is_computed_once_and_scored_once(tmp_path, monkeypatch):
    positions, store = Positions(tmp_path / "positions"), Store(tmp_path / "rivals.json")
    chosen = ([PCA], [1], ["unif5"])
    bench.embed(positions, "", *chosen, anew=False)
    bench.score(positions, "", store, *chosen, anew=False)
    record = store["unif5/pca/1"]
    assert record["status"] == "ok"
    assert record["n"] == 500
    assert record["seconds"]["cpu"] > 0
    assert set(rivals.COMPARED) <= set(record["measures"])

    def fail(*_, **__):
        raise AssertionError("made or measured again")

    with monkeypatch.context() as patch:
        patch.setattr(bench.peers.Session, "run", fail)
        patch.setattr(bench, "measures", fail)
        bench.embed(positions, "", *chosen, anew=False)
        bench.score(positions, "", store, *chosen, anew=False)
    bench.embed(positions, "", *chosen, anew=True)
    bench.score(positions, "", store, *chosen, anew=False)  # detects that the embedding is newer
    assert store["unif5/pca/1"]["seconds"] != record["seconds"]
    assert store["unif5/pca/1"]["measures"] == record["measures"]


def _fake_session(codes):
    """A session whose runs end with these exit codes, or succeed if None."""

    class Session:
        started = 0

        def __init__(self, method):
            Session.started += 1

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def run(self, X, **_):
            code = codes.pop(0)
            if code is None:
                return X[:, :2], {"status": "ok", "seconds": {"cpu": 1.0}}
            return None, {"status": "failed", "reason": f"ended with {code}", "code": code}

    return Session


def test_after_a_crash_the_next_set_runs_in_a_new_process(tmp_path, monkeypatch):
    session = _fake_session([None, -11, None])
    monkeypatch.setattr(bench.peers, "Session", session)
    positions = Positions(tmp_path)
    names = ["unif5", "gauss5", "gauss5_d"]
    bench.embed(positions, "", [PCA], [1], names, anew=False)
    found = [positions.outcome(n, "pca", 1, fingerprint(bench.load(n, "", 1).X)) for n in names]
    assert [outcome["status"] for outcome in found] == ["ok", "failed", "ok"]
    assert session.started == 2


def test_an_interrupted_run_stores_no_outcome(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.peers, "Session", _fake_session([-15]))
    positions = Positions(tmp_path)
    with pytest.raises(SystemExit):
        bench.embed(positions, "", [PCA], [1], ["unif5"], anew=False)
    assert not list(tmp_path.rglob("*.json"))


def test_scores_are_those_of_the_definitions(tmp_path):
    from mercat import metrics

    ref = bench.reference("gauss5", "", 1)
    Y = ref.X[:, :2]
    found = bench.measures(ref, Y)
    assert found["distance"] == pytest.approx(metrics.distance_preservation(ref.X, Y), abs=1e-4)
    assert found["accuracy"] == pytest.approx(metrics.knn_accuracy(Y, ref.data.labels), abs=1e-4)
    structureless = bench.measures(bench.reference("ball", "", 1), Y[:400])
    assert list(structureless) == ["false structure"]


def test_recall_of_neighbours_by_hand():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])  # neighbours 1, 0, 1, 2
    assert bench.recall(X, -X, 1) == 1
    Y = np.array([[0.0], [1.0], [6.0], [7.0]])  # neighbours 1, 0, 3, 2
    assert bench.recall(X, Y, 1) == 0.75


def test_recall_of_centroids_by_hand():
    labels = np.repeat([0, 1, 2, 3], 2)
    X = np.repeat([0.0, 1.0, 3.0, 7.0], 2)[:, None]
    assert bench.centroid_recall(X, X, labels) == 1
    # With four classes, the two nearest centroids of each are compared.
    Y = np.repeat([0.0, 7.0, 1.0, 3.0], 2)[:, None]
    near = {0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 3: {1, 2}}
    shown = {0: {2, 3}, 1: {2, 3}, 2: {0, 3}, 3: {0, 2}}
    assert bench.centroid_recall(X, Y, labels) == sum(len(near[c] & shown[c]) for c in near) / 8


def test_centroids_on_the_sphere_are_directions():
    angle = np.array([-1.159, 1.159, 1.0, 1.0, 1.9, 1.9])
    Y = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(6)])
    labels = np.array([0, 0, 1, 1, 2, 2])
    # Directions at 0, 1 and 1.9; the mean of the wide class 0, inside the sphere, is nearest to class 1.
    X = np.array([0, 0, 1, 1, 1.9, 1.9])[:, None]
    assert bench.centroid_recall(X, Y, labels) == 1


def test_large_sets_are_sampled_and_marked(monkeypatch):
    monkeypatch.setattr(bench, "MAX_ROWS", 100)
    bench.load.cache_clear()
    part = bench.load("unif5", "", 1)
    assert len(part.X) == len(part.labels) == 100
    assert part.note == "subset: 100 of 500 points (seed 0)"
    whole = bench.SETS["unif5"].load("", 1)
    assert {tuple(row) for row in part.X} <= {tuple(row) for row in whole.X}
    bench.load.cache_clear()
    assert set(bench.load("circle", "", 1).labels) <= set(range(bench.ARCS))
    bench.load.cache_clear()


def test_variants_name_their_setting():
    dreams = bench.Variant("dreams", 0.05)
    assert (dreams.key, dreams.title) == ("dreams 0.05", "DREAMS .05")
    assert dreams.options(500) == {"reg_lambda": 0.05}
    assert dreams.options(2000) == {"reg_lambda": 0.05, "negative_gradient_method": "fft"}
    assert bench.Variant("mercat", 0.0).options(2000) == {"detail": 0.0}
    assert bench.Variant("pcc").options(2000) == {}
    assert len(rivals.TITLES) == len(bench.VARIANTS) == len(set(rivals.TITLES.values()))


# ------------------------------------------------------------------ tables


def _record(name, variant, seed, **scores):
    measures = dict.fromkeys((*rivals.COMPARED, "clumps"), 0.5) | scores
    method = variant.split()[0]
    return {
        "set": name,
        "variant": variant,
        "method": method,
        "seed": seed,
        "note": "",
        "status": "ok",
        "measures": measures,
        "seconds": {"cpu": 2.0},
        "versions": {method: "1"},
    }


@pytest.fixture
def records():
    made = []
    for seed, shift in ((1, -0.01), (2, 0.01)):
        made += [
            _record("unif5", "mercat 0", seed, angle=0.8, distance=0.9 + shift, neighborhood=0.3),
            _record("unif5", "mercat 1", seed, angle=0.7, distance=0.8, neighborhood=0.5),
            _record("unif5", "pcc", seed, angle=0.75, distance=0.903 + shift, neighborhood=0.2),
            _record("unif5", "tsne", seed, angle=0.6, distance=0.7, neighborhood=0.6),
            _record("unif5", "mds", seed, angle=0.6, distance=0.84, neighborhood=0.41),
        ]
    blood = [_record("blood", "mercat 0", 1, angle=0.8), _record("blood", "pcc", 1, angle=0.9)]
    for record in blood:
        record["note"] = "stand-in: other blood"
    missing = {"set": "unif5", "variant": "torchdr", "method": "torchdr", "seed": 1, "note": ""}
    missing |= {"status": "not installed", "reason": "no GPU"}
    return {str(i): r for i, r in enumerate([*made, *blood, missing])}


def test_every_loss_is_found(records):
    found = rivals.collect(records)
    ours = found["unif5", "mercat 0"]["distance"]
    assert (ours.mean, ours.deviation) == (pytest.approx(0.9), pytest.approx(0.01 * 2**0.5))
    lost = {(loss.name, loss.measure): loss for loss in rivals.losses(found)}
    assert set(lost) == {("blood", "angle"), ("unif5", "distance"), ("unif5", "neighborhood")}
    (near,) = lost["unif5", "distance"].rivals
    assert near.key == "pcc"
    assert near.by.mean == pytest.approx(0.003)
    (clear,) = lost["unif5", "neighborhood"].rivals  # against the best `detail`, not the default
    assert clear.key == "tsne"
    assert str(clear) == "t-SNE .600 (by .100)"
    table = rivals.losses_table(found)
    assert "PCC without clusters .903 ±.014 (by .003)" in table  # better on each draw alike
    assert "(by .100, one draw)" in table


def test_a_rival_is_compared_on_its_own_draws(records):
    """Mercat's distances are .89 on the first draw: .895 is better there, not than the mean of .9."""
    records["new"] = _record("unif5", "squad-mds", 1, distance=0.895, neighborhood=0.1)
    found = rivals.collect(records)
    (loss,) = [loss for loss in rivals.losses(found) if loss.measure == "distance"]
    assert {b.key: b.by.mean for b in loss.rivals} == {
        "pcc": pytest.approx(0.003),
        "squad-mds": pytest.approx(0.005),
    }
    assert "squad-mds" in rivals.above_mercat(found)["unif5"]


def test_differences_that_change_sign_are_within_the_spread():
    ours, theirs = rivals.Score({1: 0.8, 2: 0.52}), rivals.Score({1: 0.9, 2: 0.5})
    better = rivals.Better("pcc", theirs, theirs.minus(ours))
    assert better.by.values == {1: pytest.approx(0.1), 2: pytest.approx(-0.02)}
    assert str(better) == "PCC without clusters .700 ±.283 (by .040, within the spread)"


def test_claims_count_and_name_other_data(records):
    text = rivals.claims_text(rivals.collect(records), rivals.notes(records))
    assert "angles best on 1 of 2 sets" in text
    assert "within .005 of the best on 1 more" in text
    assert (
        "- Tab. Sap. blood: PCC without clusters .900 (by .100, one draw); Mercat has .800\n"
        in text
    )
    brief = rivals.claims_text(rivals.collect(records), rivals.notes(records), brief=True)
    assert "better by PCC without clusters on Tab. Sap. blood (by .100)." in brief
    assert "Of the 2 sets, Tab. Sap. blood is replaced by similar data" in text
    assert "subset" not in text


def test_the_best_value_is_bold_and_missing_values_are_dashes(records):
    rows = rivals.table(rivals.collect(records), "angle").splitlines()
    assert "| Mercat 0 | **.800** | .800 |" in rows
    assert "| t-SNE | .600 | - |" in rows
    assert len(rows) == 2 + 5
    assert "| t-SNE | 2 | - |" in rivals.table(rivals.collect(records), "seconds").splitlines()


def test_failed_methods_are_listed(records):
    assert rivals.not_run(records) == "- TorchDR: not installed (no GPU)\n"


def test_a_point_is_above_a_curve_that_is_never_as_good_in_both():
    line = np.array([[0.3, 0.9], [0.5, 0.8]])
    assert not rivals.above(line, np.array([0.2, 0.85]))
    assert not rivals.above(line, np.array([0.4, 0.85]))  # between two values of `detail`
    assert rivals.above(line, np.array([0.4, 0.86]))
    assert rivals.above(line, np.array([0.2, 0.91]))
    assert rivals.above(line, np.array([0.6, 0.1]))
    assert not rivals.above(line[:1], np.array([0.3, 0.9]))


def test_points_above_mercats_curve_are_named(records):
    found = rivals.collect(records)
    assert rivals.above_mercat(found)["unif5"] == ["pcc", "tsne"]
    text = rivals.tradeoff_text(found)
    assert text.startswith("On 1 of 2 sets, no other method")
    assert "- Unif5: PCC without clusters (by at most .005), t-SNE\n" in text
    assert rivals.above_mercat(found, 0.005)["unif5"] == ["tsne"]


def test_leaders_are_those_of_the_best_mean_rank(records):
    rows = rivals.leaders_table(rivals.collect(records)).splitlines()
    # On the first draw: in distances Mercat is second and first (a tie), PCC first twice.
    (row,) = [row for row in rows if row.startswith("| distances |")]
    assert row == "| distances | Mercat 0 (1.5, 2) | PCC without clusters (1.0, 2) | - | - |"


def test_the_report_has_a_section_only_with_results(records):
    text = rivals.section(records)
    for heading in ("Losses", "Angles", "10-NN recall", "False structure"):
        assert f"### {heading}\n" in text
    assert "±" in text
    assert rivals.section({}) == ""


def test_the_figure_has_a_panel_per_set_and_a_curve_per_method(records):
    pytest.importorskip("matplotlib")
    figure = rivals.figure(rivals.collect(records))
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:2] == ["Unif5", "Tab. Sap. blood"]
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    np.testing.assert_allclose(
        lines["Mercat, several settings"].get_xydata(), [[0.3, 0.9], [0.5, 0.8]]
    )
    shown = {text.get_text() for text in figure.axes[2].get_legend().get_texts()}
    assert shown == {"Mercat, several settings", "PCC without clusters", "t-SNE", "metric MDS"}
