"""Maps aligned to another one: versions of growing data, batches, time points."""

from __future__ import annotations

from types import SimpleNamespace

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import ortho_group
from sklearn.datasets import load_digits

import mercat
from mercat import Mercat, tl
from mercat._math.orientation import orthogonal_onto
from mercat._solve.anchors import Anchors, anchored_sample
from mercat._validation import require_supported
from mercat.metrics import angle_preservation, neighborhood_preservation


def median_angle(A: np.ndarray, B: np.ndarray) -> float:
    """Median angle between points, in degrees."""
    return float(np.median(np.degrees(np.arccos(np.clip(np.sum(A * B, axis=1), -1, 1)))))


@pytest.fixture(scope="module")
def grown():
    """Shuffled digits, a map of five sixths of them, and an independent map of all."""
    X = load_digits().data
    X = X[np.random.default_rng(0).permutation(len(X))[:1300]]
    m = len(X) * 5 // 6
    return X, m, *(sampled(k).fit(X[:n]) for k, n in enumerate((m, None)))


def sampled(random_state: int) -> Mercat:
    return Mercat(solver="landmarks", random_state=random_state)


@pytest.mark.parametrize("n", [400, None], ids=["exact", "landmarks"])
def test_a_fifth_more_data_hardly_move_old_points_or_lower_angle_preservation(grown, n):
    X, m, old, fresh = grown
    if n is not None:
        X, m = X[:n], n * 5 // 6
        old, fresh = Mercat(random_state=0).fit(X[:m]), Mercat(random_state=1).fit(X)
    aligned = (Mercat(random_state=1) if n is not None else sampled(1)).fit(X, align_to=old)
    moved, moved_anew = (median_angle(f.embedding_[:m], old.embedding_) for f in (aligned, fresh))
    assert moved < min(2, moved_anew)
    lost = angle_preservation(X, fresh.embedding_) - angle_preservation(X, aligned.embedding_)
    assert lost < 0.01
    placed = aligned.transform(X[m:])
    assert median_angle(placed, aligned.embedding_[m:]) < 3  # new rows are rotated in the same way


def test_positions_of_some_points_work_like_a_model(grown):
    X, m, old, _ = grown
    positions = np.full((len(X), 3), np.nan)
    positions[:m] = old.embedding_
    order = np.random.default_rng(1).permutation(len(X))
    aligned = sampled(1).fit(X[order], align_to=positions[order])
    known = np.isfinite(positions[order, 0])
    assert median_angle(aligned.embedding_[known], positions[order][known]) < 2


def test_placed_points_keep_their_positions_for_any_landmarks():
    """With few landmarks that differ from the old ones, placed points still keep their positions."""
    X = load_digits().data
    X = X[np.random.default_rng(0).permutation(len(X))]
    m = len(X) * 5 // 6
    few = {"n_landmarks": 150, "solver": "landmarks"}
    old = Mercat(random_state=0, **few).fit(X[:m])
    X = 1.1 * X  # landmarks are chosen by the values of the rows
    fresh = Mercat(random_state=1, **few).fit(X)
    aligned = Mercat(random_state=1, **few).fit(X, align_to=_grown_positions(old, m, len(X)))
    turned = fresh.turn(fresh.embedding_[:m], old.embedding_)
    moved, moved_if_fresh = (
        median_angle(model.embedding_[:m], old.embedding_) for model in (aligned, turned)
    )
    assert moved < 1.4  # on a map of size 14 degrees
    assert moved_if_fresh > 2.1
    lost = angle_preservation(X, fresh.embedding_) - angle_preservation(X, aligned.embedding_)
    assert lost < 0.01
    np.testing.assert_allclose(aligned.point_loss_.mean(), fresh.point_loss_.mean(), rtol=0.05)


def test_a_point_whose_data_changed_can_move(grown):
    X, m, old, _ = grown
    changed = X.copy()
    rows = np.arange(0, 100, 2)
    changed[rows] = X[rows + 1]  # other digits
    aligned = sampled(1).fit(changed, align_to=_grown_positions(old, m, len(X)))
    others = np.setdiff1d(np.arange(m), rows)
    assert median_angle(aligned.embedding_[others], old.embedding_[others]) < 1
    twins = median_angle(aligned.embedding_[rows], aligned.embedding_[rows + 1])
    assert twins < median_angle(old.embedding_[rows], old.embedding_[rows + 1]) / 2


def _grown_positions(old: Mercat, m: int, n: int) -> np.ndarray:
    positions = np.full((n, 3), np.nan)
    positions[:m] = old.embedding_
    return positions


@pytest.fixture(scope="module")
def grown_with_detail(grown):
    X = grown[0][:300]
    m = len(X) * 5 // 6
    return X, m, *(Mercat(random_state=k, detail=0.3).fit(X[:n]) for k, n in enumerate((m, None)))


@pytest.mark.parametrize("given", ["model", "positions"])
def test_with_detail_old_points_stay_and_new_points_are_among_them(grown_with_detail, given):
    X, m, old, fresh = grown_with_detail
    align_to = old if given == "model" else _grown_positions(old, m, len(X))
    aligned = Mercat(random_state=1, detail=0.3).fit(X, align_to=align_to)
    turned = fresh.turn(fresh.embedding_[:m], old.embedding_).embedding_
    assert (
        median_angle(aligned.embedding_[:m], old.embedding_)
        < 0.1
        < 0.5
        < median_angle(turned[:m], old.embedding_)
    )
    for measure, most in ((angle_preservation, 0.01), (neighborhood_preservation, 0.02)):
        assert float(measure(X, fresh.embedding_)) - float(measure(X, aligned.embedding_)) < most
    np.testing.assert_allclose(aligned.transform(X), aligned.embedding_, atol=1e-5)


def test_with_detail_new_clusters_are_not_pulled_to_old_points():
    X, label = load_digits(return_X_y=True)
    few, more = X[label < 3][:150], X[label >= 3][:120]
    old = Mercat(random_state=0, detail=0.3).fit(few)
    everything = np.concatenate([few, more])
    fresh = Mercat(random_state=0, detail=0.3).fit(everything)
    for align_to in (
        old,
        _grown_positions(Mercat(random_state=0).fit(few), len(few), len(everything)),
    ):
        aligned = Mercat(random_state=0, detail=0.3).fit(everything, align_to=align_to)
        kept = [
            float(neighborhood_preservation(everything, m.embedding_)) for m in (aligned, fresh)
        ]
        assert kept[0] > kept[1] - 0.02


def test_alignment_to_a_mirrored_map_mirrors(grown):
    X, _, old, _ = grown
    mirror = ortho_group.rvs(3, random_state=3)
    mirror *= -np.sign(np.linalg.det(mirror))
    aligned = Mercat(random_state=1).fit(X[:300], align_to=old.embedding_[:300] @ mirror.T)
    again = Mercat(random_state=1).fit(X[:300], align_to=old.embedding_[:300])
    assert median_angle(aligned.embedding_, again.embedding_ @ mirror.T) < 1


def test_new_clusters_are_not_pulled_to_old_points():
    """A map of a few classes does not determine others: points move if these add new angles."""
    X, label = load_digits(return_X_y=True)
    few, more = X[label < 3][:300], X[label >= 3][:250]
    old = Mercat(random_state=0).fit(few)
    everything = np.concatenate([few, more])
    aligned = Mercat(random_state=0).fit(everything, align_to=old)
    fresh = Mercat(random_state=0).fit(everything)
    assert aligned.correlation_ > fresh.correlation_ - 0.02


def test_old_landmarks_stay_and_new_points_are_sampled_in_proportion():
    positions = np.full((100, 3), np.nan)
    positions[:80] = [1.0, 0, 0]
    old = np.array([7, 3, 50, 70])
    rows = anchored_sample(Anchors(positions, old), 10, np.random.default_rng(0))
    assert [row for row in rows if row < 80] == [7, 3, 50, 70]
    assert sum(rows >= 80) == 1
    rows = anchored_sample(Anchors(positions), 40, np.random.default_rng(0))
    assert len(set(rows)) == len(rows) == 50
    assert sum(rows >= 80) == 10


def test_orthogonal_onto_undoes_any_rotation():
    Y = np.random.default_rng(0).normal(size=(20, 3))
    for seed in range(4):
        R = ortho_group.rvs(3, random_state=seed)
        np.testing.assert_allclose(orthogonal_onto(Y, Y @ R.T), R, atol=1e-12)


def test_turn_rotates_positions_and_new_points(grown):
    X, _, old, _ = grown
    model = Mercat(random_state=2).fit(X[:200])
    before, placed = model.embedding_.copy(), model.transform(X[200:210])
    assert model.turn(before.tolist(), old.embedding_[:200]) is model
    R = orthogonal_onto(before, old.embedding_[:200])
    np.testing.assert_allclose(model.embedding_, before @ R.T, atol=1e-12)
    np.testing.assert_allclose(model.transform(X[200:210]), placed @ R.T, atol=1e-5)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 3\)"):
        model.turn(np.eye(3)[:2], np.eye(3))
    with pytest.raises(ValueError, match="onto"):
        model.turn(np.eye(3), np.full((3, 3), np.nan))
    for name, given in (("points", (sp.eye_array(3), np.eye(3))), ("onto", (np.eye(3), "abc"))):
        with pytest.raises(ValueError, match=f"^{name} "):
            model.turn(*given)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_turn_does_not_depend_on_the_unit(grown, unit):
    X, _, old, _ = grown
    models = [Mercat(random_state=2).fit(X[:200]) for _ in range(2)]
    for model, scale in zip(models, (1.0, unit), strict=True):
        model.turn(model.embedding_ * scale, old.embedding_[:200] * scale)
    np.testing.assert_allclose(models[1].embedding_, models[0].embedding_, atol=1e-12)


def test_errors_name_the_rule(grown):
    X, _, old, _ = grown
    for wrong, rule in (
        (np.ones((5, 3)), r"\(300, 3\), got \(5, 3\)"),
        (np.full((300, 3), np.nan), "4 .*got 0"),
        (np.ones((300, 3)), "length 1"),
        (old, "300"),
        (sp.csr_array((300, 3)), "dense.*sparse"),
    ):
        with pytest.raises(ValueError, match=f"^align_to .*{rule}"):
            Mercat().fit(X[:300], align_to=wrong)
    other = Mercat(random_state=0).fit(X[:100])
    with pytest.raises(ValueError, match=r"^align_to .*rows of X"):
        Mercat().fit(X[400:700], align_to=other)


# ------------------------------------------------------------------ cells


def test_alignment_to_a_map_of_a_dask_array_equals_alignment_in_memory():
    da = pytest.importorskip("dask.array")
    X = load_digits().data[:200]
    chunked, whole = (Mercat(random_state=0).fit(A) for A in (da.from_array(X, (60, 64)), X))
    found, expected = (Mercat().fit(X, align_to=old).embedding_ for old in (chunked, whole))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "where", [{"device": "cuda:0", "lazy": False}, {"device": None, "lazy": True}]
)
def test_alignment_requires_data_in_host_memory(where):
    source, Y = SimpleNamespace(sparse=False, **where), np.eye(4, 3)
    for align_to in (Y, Mercat(), Anchors(Y)):
        with pytest.raises(
            ValueError, match=r"^align_to must be None unless X is in host memory, got "
        ):
            require_supported(Mercat(), source, fitting=True, align_to=align_to)
    require_supported(Mercat(), source, fitting=True)


def cells(rows) -> anndata.AnnData:
    X, label = load_digits(return_X_y=True)
    adata = anndata.AnnData(X[rows].astype(np.float32))
    adata.obs["digit"] = pd.Categorical(label[rows].astype(str))
    adata.obs_names = [f"cell{k}" for k in rows]
    return adata


def test_cells_are_matched_by_name():
    rng = np.random.default_rng(0)
    old = cells(rng.permutation(500))
    tl.mercat(old)
    new = cells(rng.permutation(600))
    tl.mercat(new, align_to=old, random_state=1)
    shared = new.obs_names.intersection(old.obs_names)
    assert len(shared) == 500
    assert (
        median_angle(new[shared].obsm["X_mercat_sphere"], old[shared].obsm["X_mercat_sphere"]) < 2
    )
    part = old[:300].copy()  # the model does not say which of these cells are landmarks
    tl.mercat(new, align_to=part, random_state=1)
    assert tl.model(new).landmarks_.max() < 600


def test_batches_without_shared_cells_are_rotated_by_labels():
    one, other = cells(np.arange(0, 500)), cells(np.arange(900, 1400))
    tl.mercat(one)
    tl.mercat(other, random_state=1, key_added="plain")
    tl.mercat(other, random_state=1, align_to=one, align_on="digit")

    def centres(adata, key="X_mercat_sphere"):
        Y = adata.obsm[key]
        found = np.array([Y[adata.obs["digit"] == str(k)].mean(axis=0) for k in range(10)])
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    assert median_angle(centres(other), centres(one)) < median_angle(
        centres(other, "plain_sphere"), centres(one)
    )
    assert median_angle(centres(other), centres(one)) < 25
    placed = tl.model(other).transform(other.X[:20])
    assert median_angle(placed, other.obsm["X_mercat_sphere"][:20]) < 1


def test_errors_of_alignment_name_parameter_rule_and_value():
    one, other = cells(np.arange(100)), cells(np.arange(200, 300))
    with pytest.raises(ValueError, match=r"^align_to .*'X_mercat'"):
        tl.mercat(other, align_to=one)
    tl.mercat(one)
    with pytest.raises(ValueError, match=r"^align_to .*4 cells.*got 0"):
        tl.mercat(other, align_to=one)
    with pytest.raises(ValueError, match=r"^align_on .*adata"):
        tl.mercat(other, align_to=one, align_on="kind")
    with pytest.raises(ValueError, match=r"^align_on .*align_to"):
        tl.mercat(other, align_on="digit")
    with pytest.raises(TypeError, match=r"^adata "):
        tl.mercat(other, align_to=one.X)
    assert mercat.Mercat().fit(one.X).embedding_.shape == (100, 3)


def test_aligned_maps_are_the_same_bits_on_any_number_of_threads(grown):
    X = grown[0][:400]
    old = Mercat(random_state=0).fit(X[:300])
    one, two = (Mercat(random_state=1, n_jobs=k).fit(X, align_to=old) for k in (1, 2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
