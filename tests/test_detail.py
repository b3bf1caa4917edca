"""`detail`: forces, descent, and `Mercat` with it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks
from spheres import random_rows, random_sphere

import mercat
from mercat import Mercat, Status, metrics
from mercat._data.threads import Workers
from mercat._detail import descent
from mercat._detail.affinities import (
    DECAY,
    Affinities,
    affinities,
    averages_over,
    edge_lengths,
    edge_shares,
    radii,
    strength_of,
)
from mercat._detail.descent import (
    N_ITER,
    SETTLED_AT,
    _schedule,
    attraction,
    descend_with_detail,
    final_bandwidth,
    neighbor_loss,
    repulsion,
    settled_loss,
    weight_of,
)
from mercat._detail.graphs import graph_of
from mercat._detail.neighbors import _chain, nearest
from mercat._detail.repulsion import Kernel
from mercat._detail.terms import (
    AngleTerm,
    FarTerms,
    PairForces,
    anchors_at,
    angle_term,
    pair_forces,
    pairs_of,
)
from mercat._math.angles import ABSOLUTE, Calibration
from mercat._math.distances import DistanceTerm
from mercat._math.orientation import orthogonal_onto
from mercat._math.sphere import tangent
from mercat._math.terms import fitted_to
from mercat._solve import detail as adding
from mercat._solve.initial import size_of
from mercat._solve.losses import AngleLoss


@pytest.mark.filterwarnings(
    "ignore::mercat.TrustWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.usefixtures("brief_descent")
@parametrize_with_checks([Mercat(random_state=0, detail=0.3)])
def test_scikit_learn_checks(estimator, check):
    # One start and few iterations: the checks are about the interface.
    check(estimator.set_params(max_iter=5, init="pca"))


def weights(X: np.ndarray, k: int) -> sp.csr_array:
    with Workers(1) as workers:
        graph = graph_of(nearest(X, k, np.random.default_rng(0), workers).indices)
        lengths = edge_lengths(X, graph, workers)
        shares = edge_shares(lengths, graph.indptr, DECAY)
        radius = radii(lengths, shares, graph.indptr)
        return affinities(graph, [shares], strength_of(radius)(radius), workers)[0]


def loops(n_loops: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Circles of n points in random planes with near centres, and the index of each point's circle."""
    rng = np.random.default_rng(0)
    turn = np.arange(n) * (2 * np.pi / n)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    planes = (np.linalg.qr(rng.normal(size=(8, 2)))[0] for _ in range(n_loops))
    X = np.concatenate([circle @ plane.T + 0.15 * rng.normal(size=8) for plane in planes])
    return X.astype(np.float32), np.repeat(np.arange(n_loops), n)


def slope(function, Y: np.ndarray, i: int, direction: np.ndarray, h: float = 1e-5) -> float:
    """Central difference along a tangent direction of one point."""

    def at(t: float) -> float:
        moved = Y.copy()
        moved[i] += t * direction
        moved[i] /= np.linalg.norm(moved[i])
        return function(moved)

    return (at(h) - at(-h)) / (2 * h)


# ------------------------------------------------------------------ forces


def test_neighbor_loss_by_hand():
    """Three points at right angles: all chords are sqrt 2, so all three pairs have equal weights."""
    P = sp.csr_array(np.array([[0.0, 1.5, 0], [1.5, 0, 0], [0, 0, 0]]))
    assert neighbor_loss(P, np.eye(3), 1.0) == pytest.approx(np.log(6 / 3) - np.log(1 / 3))


def test_the_loss_after_the_descent_equals_its_definition():
    rng = np.random.default_rng(0)
    n = 80
    P = weights(rng.normal(size=(n, 4)).astype(np.float32), 5)
    Y = random_sphere(n)
    with Workers(1) as workers:
        found = settled_loss(P, Y, workers)
    assert found == pytest.approx(neighbor_loss(P, Y, final_bandwidth(n)), rel=0.01)


def test_fixed_points_stay_and_others_descend_at_the_last_bandwidth():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    P, Y, held = weights(X, 5), random_sphere(120), np.arange(0, 120, 3)
    with Workers(1) as workers:
        angles = angle_term(X, ABSOLUTE, True, random_rows(X))
        far_terms = FarTerms(X, angles, pair_forces(X, Y, random_rows(X)), random_rows(X), workers)
        found = descend_with_detail(
            Y,
            Affinities(P, P),
            (1.0, 1.0),
            far_terms,
            workers=workers,
            report=lambda *_: False,
            settled=True,
            fixed=held,
        )
    turned = orthogonal_onto(found.Y[held].astype(float), Y[held])
    np.testing.assert_allclose(found.Y[held] @ turned.T, Y[held], atol=1e-6)
    others = np.setdiff1d(np.arange(120), held)
    assert np.abs(found.Y[others] @ turned.T - Y[others]).max() > 0.1
    assert neighbor_loss(P, found.Y, final_bandwidth(120)) < neighbor_loss(
        P, Y, final_bandwidth(120)
    )
    assert len(found.history) == N_ITER - SETTLED_AT


def test_neighbor_forces_are_gradients():
    rng = np.random.default_rng(0)
    n, bandwidth = 60, 0.3
    P = weights(rng.normal(size=(n, 4)).astype(np.float32), 5)
    Y = random_sphere(n)
    with Workers(1) as workers:
        pull = attraction(P, Y, bandwidth, workers)
        gradient, pairs = repulsion(Kernel(bandwidth, workers).field(Y), Y, workers)
    push = 2 * n / pairs * gradient
    w = 1 / (1 + np.sum((Y[:, None] - Y[None]) ** 2, axis=2) / bandwidth**2)
    assert pairs == pytest.approx(w.sum() - n, rel=0.01)
    force = tangent(pull + push, Y) / n
    alone = tangent(pull, Y) / n

    def without_repulsion(Z: np.ndarray) -> float:
        v = 1 / (1 + np.sum((Z[:, None] - Z[None]) ** 2, axis=2) / bandwidth**2)
        np.fill_diagonal(v, 0)
        return neighbor_loss(P, Z, bandwidth) - float(np.log(v.sum()))

    scale = np.abs(force).max()
    for i in (0, 7, 31):
        direction = tangent(rng.normal(size=(1, 3)), Y[i : i + 1])[0]
        exact = slope(without_repulsion, Y, i, direction)
        assert alone[i] @ direction == pytest.approx(exact, abs=1e-6)
        both = slope(lambda Z: neighbor_loss(P, Z, bandwidth), Y, i, direction)
        assert force[i] @ direction == pytest.approx(both, abs=0.03 * scale)


@pytest.mark.parametrize("calibration", [ABSOLUTE, Calibration(0.3, 0.4)])
def test_angle_force_with_all_points_as_anchors_is_the_exact_gradient(calibration):
    n, softening = 30, 1e-3
    X, Y = np.random.default_rng(0).normal(size=(n, 4)), random_sphere(n)
    anchors = anchors_at(X, Y, softening)
    term = AngleTerm(calibration, variance=1.0)
    force, curvature, _ = term.force(pairs_of(X, anchors), Y, anchors)
    with Workers(1) as workers:
        loss = AngleLoss(X, line=calibration, workers=workers)
        _, gradient = loss.evaluate(Y, softening)
    # Over n (n - 1) (n - 2) triples there, over n (n - 1) pairs of anchors for each point here.
    np.testing.assert_allclose(force * n / (n - 2), n * gradient, rtol=1e-6, atol=1e-9)
    assert (curvature > 0).all()


def test_random_anchors_give_the_exact_gradient_on_average(monkeypatch):
    monkeypatch.setattr("mercat._detail.terms.n_anchors", lambda n: 15)
    n = 60
    X, Y = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32), random_sphere(n)
    with Workers(1) as workers:
        softening = 0.005
        angles = angle_term(X, ABSOLUTE, False, random_rows(X))
        terms = FarTerms(X, angles, [], random_rows(X), workers)
        mean = np.mean([terms.force(Y, softening)[0] for _ in range(1500)], axis=0)
        loss = AngleLoss(X.astype(float), line=ABSOLUTE, workers=workers)
        _, gradient = loss.evaluate(Y, softening)
    assert np.corrcoef(mean.ravel(), gradient.ravel())[0, 1] > 0.99
    assert mean.std() == pytest.approx((n * gradient / angles.variance).std(), rel=0.1)


def test_distance_forces_are_gradients():
    """The gradient of the term over all pairs, by finite differences."""
    rng = np.random.default_rng(3)
    n = 40
    X, Y = rng.normal(size=(n, 6)), random_sphere(n)
    line = DistanceTerm(0.5, 1.5, 2.0)
    anchors = anchors_at(X, Y, 1e-3)
    force = tangent(PairForces(line, 1.0).force(pairs_of(X, anchors), Y, anchors)[0], Y)
    d = np.linalg.norm(X[:, None] - X[None], axis=2)

    def loss(Z: np.ndarray) -> float:
        arcs = np.arccos(np.clip(Z @ Z.T, -1, 1))
        np.fill_diagonal(arcs, 0)
        return float(np.sum((d - line.p - line.q * arcs) ** 2) / n**2 / line.variance)

    for i in (0, 11, 29):
        direction = tangent(rng.normal(size=(1, 3)), Y[i : i + 1])[0]
        assert force[i] @ direction / n == pytest.approx(slope(loss, Y, i, direction), rel=1e-3)


def test_regression_coefficients_are_updated_during_the_descent():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)).astype(np.float32), random_sphere(200).astype(np.float32)
    with Workers(1) as workers:
        wrong = PairForces(DistanceTerm(-3.0, 9.0, 1.0), 1.0)
        terms = FarTerms(
            X, angle_term(X, ABSOLUTE, True, random_rows(X)), [wrong], random_rows(X), workers
        )
        terms.force(Y, 1e-3)
        exact = AngleLoss(X.astype(float), line=None, workers=workers).judge(Y.astype(float))
    assert terms.angles.calibration == pytest.approx(exact.calibration, abs=0.03)
    assert terms.angles.loss == pytest.approx(exact.loss, rel=0.05)
    (distances,), line = terms.pairs, fitted_to(DistanceTerm(), X, Y)
    assert distances.term == pytest.approx(line, abs=0.05)
    assert pair_forces(X, Y, random_rows(X))[0].term == pytest.approx(line, abs=1e-6)


def test_averages_are_means_over_a_point_and_its_neighbors(monkeypatch):
    monkeypatch.setattr("mercat._detail.affinities._N_AVERAGINGS", 1)
    X = np.array([[0.0, 1], [2, 3], [4, 8], [9, 9]])
    graph = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 5, 0], [0, 1, 0, 0], [1, 1, 1, 0]]))
    with Workers(1) as workers:
        found = averages_over(X, graph, workers)
    np.testing.assert_allclose(found, [[1, 2], [2, 4], [3, 5.5], [3.75, 5.25]])


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.parametrize(("detail", "starts_from_averages"), [(0.1, False), (0.2, True)])
def test_descent_starts_from_averages_unless_detail_is_small(
    monkeypatch, digits, detail, starts_from_averages
):
    starts, averages = [], []
    of_averages, descend_with_detail = adding._map_of_averages, adding.descend_with_detail
    monkeypatch.setattr(
        adding, "_map_of_averages", lambda *a: averages.append(of_averages(*a)) or averages[-1]
    )
    monkeypatch.setattr(
        adding,
        "descend_with_detail",
        lambda Y, *a, **k: starts.append(Y) or descend_with_detail(Y, *a, **k),
    )
    Mercat(detail=detail, random_state=0).fit(digits[:300])
    assert len(averages) == starts_from_averages
    assert starts_from_averages == any(starts[0] is Y for Y in averages)


def test_descent_uses_path_affinities_first(monkeypatch, digits):
    used, pulls = [], []
    attraction, affinities_of = descent.attraction, adding.affinities_of
    monkeypatch.setattr(descent, "attraction", lambda P, *a: used.append(P) or attraction(P, *a))
    monkeypatch.setattr(
        adding, "affinities_of", lambda *a: pulls.append(affinities_of(*a)) or pulls[-1]
    )
    Mercat(detail=0.3, random_state=0).fit(digits[:200])
    ((forming, settled), _), half = pulls[0], N_ITER // 2
    assert abs(forming - settled).max() > 0.1
    assert all(P is forming for P in used[:half])
    assert all(P is settled for P in used[half:])
    assert len(used) == N_ITER


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_loops_stay_in_one_piece():
    """Without affinities along paths, loops are in pieces: 0.44 and 0.82."""
    X, loop = loops(12, 60)
    Y = Mercat(detail=0.3, random_state=0).fit_transform(X)
    assert metrics.class_connectivity(Y, loop) > 0.9
    assert metrics.knn_accuracy(Y, loop) > 0.95


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_loops_form_with_small_detail():
    """The descent starts with the largest weight of neighbours for any final weight."""
    X, loop = loops(20, 72)
    Y = Mercat(detail=0.1, random_state=0).fit_transform(X)
    assert metrics.class_connectivity(Y, loop) > 0.65


@pytest.mark.usefixtures("brief_descent")
def test_descent_starts_from_a_large_map_unless_a_start_is_given(monkeypatch, digits):
    starts, descend_with_detail = [], adding.descend_with_detail
    monkeypatch.setattr(
        adding,
        "descend_with_detail",
        lambda Y, *a, **k: starts.append(Y) or descend_with_detail(Y, *a, **k),
    )
    X = digits[:300]
    plain = Mercat(random_state=0).fit_transform(X)
    assert size_of(plain) < 0.5
    Mercat(detail=0.3, random_state=0).fit(X)
    Mercat(detail=0.3, random_state=0, init=plain).fit(X)
    assert size_of(starts[0]) == pytest.approx(adding._MIN_SIZE, abs=1e-3)
    assert size_of(starts[1]) < 0.5


@pytest.mark.usefixtures("brief_descent")
def test_equal_rows_have_one_position(digits):
    X = np.concatenate([digits[:300], digits[:40]])
    Y = Mercat(detail=0.3, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(Y[:40], Y[300:])


def test_schedule_decreases():
    schedule = list(_schedule(30_000, (6.0, 0.5), settled=False))
    columns = [np.array(column, dtype=float) for column in zip(*schedule, strict=True)]
    assert len(schedule) == N_ITER
    assert all((np.diff(column) <= 0).all() for column in columns)
    bandwidth, exaggeration, weight, _, _ = columns
    assert bandwidth[0] == 0.25
    assert bandwidth[-1] == final_bandwidth(30_000)
    assert (exaggeration[0], exaggeration[-1]) == (40, 1)
    assert (weight[0], weight[-1]) == (6, 0.5)


def test_last_bandwidth_halves_per_factor_of_sixteen_in_points():
    assert final_bandwidth(10_000) == pytest.approx(0.019)
    assert final_bandwidth(1000) == pytest.approx(2 * final_bandwidth(16_000))
    assert final_bandwidth(10**7) == 0.012


def test_weight_of_neighbours_follows_the_variance_that_angles_explain():
    assert weight_of(1.0, 0.6) == pytest.approx(5 * 0.36)
    assert weight_of(0.5, -0.6) == pytest.approx(3 * 0.36)
    assert weight_of(np.inf, 0.6) == pytest.approx(15 * 0.36)
    noise = weight_of(0.3, 0.01)  # detail must have an effect
    assert noise == weight_of(0.3, 0.0) == weight_of(0.3, np.nan) > 0


# ------------------------------------------------------------------ the estimator


@pytest.fixture(scope="module")
def digits(digits):
    return digits[:1000]


@pytest.fixture(scope="module")
def labels():
    from sklearn.datasets import load_digits

    return load_digits().target[:1000]


@pytest.fixture(scope="module")
def plain(digits):
    return Mercat(random_state=0).fit_transform(digits)


@pytest.fixture(scope="module")
def sharp(digits):
    return Mercat(detail=1.0, random_state=0).fit(digits)


def test_detail_preserves_neighborhoods_and_classes(digits, labels, plain, sharp):
    kept, before = (metrics.neighborhood_preservation(digits, Y) for Y in (sharp.embedding_, plain))
    assert kept > 1.6 * before
    assert metrics.knn_accuracy(sharp.embedding_, labels) > 0.95
    whole, whole_before = (metrics.class_connectivity(Y, labels) for Y in (sharp.embedding_, plain))
    assert whole > whole_before + 0.02
    torn, torn_before = (
        metrics.torn_neighbors(digits, Y).mean() for Y in (sharp.embedding_, plain)
    )
    assert torn < 0.4 * torn_before
    assert metrics.distance_preservation(digits, sharp.embedding_) > 0.55


@pytest.mark.parametrize("detail", [0.03, 0.3, 1])
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_descent_of_few_points_without_structure_does_not_overshoot(detail):
    X = np.random.default_rng(0).normal(size=(300, 50))
    plain, sharp = (Mercat(detail=d).fit_transform(X) for d in (0, detail))
    angles = [metrics.angle_preservation(X, Y) for Y in (plain, sharp)]
    assert angles[1] > 0.93 * angles[0]


def test_small_detail_improves_neighborhoods_by_a_fifth_at_a_small_cost(digits, plain):
    little = Mercat(detail=0.02, random_state=0).fit_transform(digits)
    kept, before = (metrics.neighborhood_preservation(digits, Y) for Y in (little, plain))
    assert kept > 1.2 * before
    for measure in (metrics.angle_preservation, metrics.distance_preservation):
        assert measure(digits, little) > measure(digits, plain) - 0.02


@pytest.mark.filterwarnings("ignore:neighbors has no effect")
def test_neighbors_have_no_effect_without_detail(digits):
    X = digits[:300]
    np.testing.assert_array_equal(
        Mercat(random_state=0).fit_transform(X),
        Mercat(random_state=0, detail=0.0, neighbors=5).fit_transform(X),
    )


def test_detail_is_continuous_at_zero(digits):
    X = digits[:200]
    plain = Mercat(random_state=0).fit_transform(X)

    def moved(detail: float) -> float:
        Y = Mercat(random_state=0, detail=detail).fit_transform(X)
        U, _, Vt = np.linalg.svd(Y.T @ plain)
        return float(np.sqrt(np.mean(np.sum((Y @ (U @ Vt) - plain) ** 2, axis=1))))

    tiny, less, small = moved(1e-5), moved(1e-3), moved(0.03)
    assert tiny < 0.01
    assert tiny < less < small


@pytest.mark.parametrize("solver", ["exact", "landmarks"])
@pytest.mark.usefixtures("brief_descent")
def test_same_bits_on_any_number_of_threads(digits, solver):
    X = digits[:300]
    found = [
        Mercat(detail=0.3, solver=solver, n_landmarks=100, random_state=0, n_jobs=j).fit(X)
        for j in (1, 2, 4)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].embedding_, other.embedding_)
        np.testing.assert_array_equal(found[0].transform(X[:9] + 0.5), other.transform(X[:9] + 0.5))
        assert found[0].loss_ == other.loss_


def test_losses_are_those_of_the_map(digits):
    X = digits[:300]
    model = Mercat(detail=1.0, random_state=0).fit(X)
    with Workers(1) as workers:
        found = AngleLoss(X.astype(float), line=None, workers=workers).judge(model.embedding_)
    assert model.loss_ == pytest.approx(found.loss, rel=0.02)  # of X, not of its components
    assert model.correlation_ == pytest.approx(found.correlation, abs=0.02)
    assert np.sqrt(np.mean(model.point_loss_**2)) == pytest.approx(model.loss_, rel=1e-3)
    plain = Mercat(random_state=0).fit(X)
    assert plain.loss_ < model.loss_
    assert len(model.history_) == model.n_iter_ == plain.n_iter_ + N_ITER
    assert model.history_[-1] == pytest.approx(model.loss_, rel=0.1)


def test_losses_by_landmarks_are_close_to_those_by_all(digits):
    X = digits[:500]
    one = Mercat(detail=0.3, solver="landmarks", n_landmarks=300, random_state=0).fit(X)
    with Workers(1) as workers:
        found = AngleLoss(X.astype(float), line=None, workers=workers).judge(one.embedding_)
    assert one.loss_ == pytest.approx(found.loss, rel=0.03)
    assert one.point_loss_.shape == (500,)


@pytest.mark.usefixtures("brief_descent")
def test_absolute_objective_keeps_its_coefficients(digits):
    model = Mercat(detail=0.3, objective="absolute", random_state=0).fit(digits[:200])
    assert model.calibration_ == (0.0, 1.0)


def test_transform_returns_training_positions_of_training_rows(sharp, digits):
    np.testing.assert_array_equal(sharp.transform(digits[100:700]), sharp.embedding_[100:700])


def test_transform_does_not_depend_on_the_batch(sharp, digits):
    new = digits[:600] + np.random.default_rng(0).normal(size=(600, 64))
    together = sharp.transform(new)
    np.testing.assert_array_equal(together[37:38], sharp.transform(new[37:38]))
    np.testing.assert_array_equal(together[200:530], sharp.transform(new[200:530]))
    mixed = np.concatenate([digits[:100], new[:100]])
    np.testing.assert_array_equal(sharp.transform(mixed)[100:], together[:100])


def test_new_points_are_near_their_neighbors(digits, labels):
    model = Mercat(detail=0.5, random_state=0).fit(digits[:700])
    new = model.transform(digits[700:])
    near = np.argmax(new @ model.embedding_.T, axis=1)
    assert np.mean(labels[:700][near] == labels[700:]) > 0.92
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1, rtol=1e-6)


def test_model_with_detail_can_be_pickled(sharp, digits):
    again = pickle.loads(pickle.dumps(sharp))
    np.testing.assert_array_equal(again.transform(digits[:5] + 1), sharp.transform(digits[:5] + 1))


@pytest.mark.filterwarnings("ignore:detail=0.5 has no effect")  # with a graph of other rows
def test_a_given_graph_equals_the_computed_graph(digits):
    # Integers have equal distances, whose order depends on the search.
    X = digits[:200] + np.random.default_rng(0).uniform(0, 0.1, size=(200, 64))
    graph = kneighbors_graph(X, 15, mode="distance")
    own = Mercat(detail=0.5, neighbors=graph, n_spectral=None, random_state=0).fit_transform(X)
    found = Mercat(detail=0.5, neighbors=15, n_spectral=None, random_state=0).fit_transform(X)
    apart = np.abs(own - found).max(axis=1)
    assert np.median(apart) < 0.001
    assert np.mean(apart > 0.05) < 0.01  # two nearly equal minima
    connectivities = graph.copy()
    connectivities.data[:] = 1
    values_aside = Mercat(detail=0.5, neighbors=connectivities, n_spectral=None, random_state=0)
    np.testing.assert_array_equal(values_aside.fit_transform(X), own)
    shuffled = graph[np.random.default_rng(0).permutation(200)]
    shuffled.setdiag(0)
    shuffled.eliminate_zeros()
    other = Mercat(detail=0.5, neighbors=shuffled, n_spectral=None, random_state=0).fit_transform(X)
    kept = [metrics.neighborhood_preservation(X, Y, k=15) for Y in (own, other)]
    assert kept[0] > kept[1] + 0.1


@pytest.mark.filterwarnings("ignore:The angles of the map")  # of an unfinished descent
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")  # of a stopped map
def test_callback_sees_all_points_and_may_stop(digits):
    X, seen = digits[:200], []
    plain = Mercat(random_state=0).fit(X)

    def callback(iteration, loss, Y):
        seen.append((iteration, loss, Y.shape))
        return iteration == plain.n_iter_ + 7

    model = Mercat(detail=0.3, callback=callback, random_state=0).fit(X)
    assert model.status_ is Status.CALLBACK
    assert [iteration for iteration, _, _ in seen] == list(range(1, plain.n_iter_ + 8))
    assert seen[-1][2] == (200, 3)
    np.testing.assert_array_equal(model.history_, [loss for _, loss, _ in seen])
    stopped_before = Mercat(detail=0.3, callback=lambda *_: True, random_state=0).fit(X)
    assert stopped_before.n_iter_ == 1
    assert stopped_before.transform(X[:3]).shape == (3, 3)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_renumbered_points_are_returned_in_their_order(digits, monkeypatch):
    """Internal renumbering does not change the map, for the caller and for a callback."""
    X = digits[:300]
    seen = {}

    def fitted(order):
        def renumbered(*arguments):
            return nearest(*arguments)._replace(order=order)

        monkeypatch.setattr(adding, "nearest", renumbered)
        model = Mercat(
            detail=0.3, random_state=0, callback=lambda i, loss, Y: seen.update(last=Y.copy())
        ).fit(X)
        last = seen["last"]
        return model, last @ orthogonal_onto(last, model.embedding_).T

    (as_given, path), (other, other_path) = (
        fitted(order) for order in (None, np.random.default_rng(1).permutation(300))
    )
    apart = [
        np.median(np.linalg.norm(a - b, axis=1))
        for a, b in [
            (as_given.embedding_, other.embedding_),
            (path, other_path),
            (as_given.transform(X[:50] + 0.1), other.transform(X[:50] + 0.1)),
        ]
    ]
    assert max(apart) < 0.01, apart
    assert other.loss_ == pytest.approx(as_given.loss_, rel=0.01)


def test_new_points_by_cells_match_an_exact_search(digits, monkeypatch):
    X, new = digits[:800], digits[800:900]
    model = Mercat(detail=0.3, random_state=0).fit(X)
    exact = model.transform(new)
    monkeypatch.setattr("mercat._detail.neighbors._ALL_PAIRS_UP_TO", 100)
    monkeypatch.setattr("mercat._detail.neighbors._POINTS_PER_CELL", (20, 20))
    by_cells = pickle.loads(pickle.dumps(model))  # the copy rebuilds its search
    built = []
    monkeypatch.setattr(
        "mercat._detail.neighbors._chain", lambda centres: built.append(1) or _chain(centres)
    )
    by_cells.n_jobs = 2
    found = by_cells.transform(new)
    assert np.mean(np.linalg.norm(found - exact, axis=1) < 0.02) > 0.9
    np.testing.assert_array_equal(by_cells.transform(new[7:8])[0], found[7])
    np.testing.assert_array_equal(by_cells.transform(X), model.embedding_)
    assert len(built) == 1  # once per model


@pytest.mark.usefixtures("brief_descent")
def test_progress_is_shown(digits, capsys):
    Mercat(detail=0.3, verbose=True, random_state=0).fit(digits[:100])
    assert "detail" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(4, 3)),
        np.random.default_rng(0).normal(size=(60, 1)),
        np.zeros((50, 3)),
        np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 20, axis=0),
        np.concatenate([np.random.default_rng(0).normal(size=(60, 3)), [[1e6, 0, 0]]]),
    ],
    ids=["four points", "a line", "all equal", "duplicates", "an outlier"],
)
def test_degenerate_data_give_finite_maps(X):
    model = Mercat(detail=1.0, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(X + 0.01)).all()
    assert np.isfinite(model.loss_)


def test_distances_and_sparse_data_work_with_detail(digits):
    X = digits[:100]
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert Mercat(detail=0.3, metric="precomputed", random_state=0).fit(distances).loss_ > 0
    sparse = Mercat(detail=0.3, random_state=0).fit_transform(sp.csr_array(X))
    dense = Mercat(detail=0.3, random_state=0).fit_transform(X)
    assert np.median(np.abs(sparse - dense)) < 0.05


@pytest.mark.parametrize("detail", [-0.1, np.nan, np.inf, "much", None, True])
def test_bad_detail_is_refused(digits, detail):
    with pytest.raises(ValueError, match=r"^detail "):
        Mercat(detail=detail).fit(digits[:50])


def test_too_large_detail_is_refused(digits):
    with pytest.raises(ValueError, match=r"^detail .*1e\+37"):
        Mercat(detail=1e37).fit(digits[:50])
    assert np.isfinite(Mercat(detail=1e6, random_state=0).fit_transform(digits[:50])).all()


def test_bad_neighbors_are_refused(digits):
    X = digits[:50]
    with pytest.raises(ValueError, match=r"^neighbors .*got \[\[0, 1") as error:
        Mercat(detail=0.3, neighbors=np.tile(np.arange(15), (50, 1)).tolist()).fit(X)
    assert len(str(error.value)) < 300
    negative = sp.csr_array(np.diag(np.full(49, -2.0), 1) + np.diag(np.ones(49), -1))
    with pytest.raises(ValueError, match=r"^neighbors .*-2\.0"):
        Mercat(detail=0.3, neighbors=negative).fit(X)
    upper = sp.csr_array(np.triu(np.ones((50, 50)), 1))
    with pytest.raises(ValueError, match=r"^neighbors .*1 empty rows.* 49: add graph\.T"):
        Mercat(detail=0.3, neighbors=upper).fit(X)
    with pytest.raises(ValueError, match=r"^neighbors .*got 0"):
        Mercat(detail=0.3, neighbors=0).fit(X)
    with pytest.raises(ValueError, match=r"^neighbors .*16, got 17"):
        Mercat(detail=0.3, neighbors=17).fit(X)
    with pytest.raises(ValueError, match=r"^neighbors .*\(50, 50\)"):
        Mercat(detail=0.3, neighbors=sp.eye_array(49)).fit(X)
    with pytest.raises(ValueError, match=r"^neighbors .*diagonal"):
        Mercat(detail=0.3, neighbors=sp.eye_array(50)).fit(X)
    with pytest.raises(ValueError, match=r"detail=0\.3"):
        Mercat(detail=0.3, solver="algorithm1", objective="absolute").fit(X)


def noise(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("shape", [(300, 30), (1500, 40), (2500, 40)])
@pytest.mark.parametrize("detail", [0.03, 0.3])
def test_noise_is_mapped_as_without_detail(shape, detail, tmp_path):
    """A descent on noise shrinks the map to a point, on which angles cannot be resolved."""
    X = noise(*shape)
    model = Mercat(detail=detail, n_spectral=None, random_state=0).fit(X)
    plain = Mercat(n_spectral=None, random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_, plain.embedding_)
    np.testing.assert_array_equal(model.transform(X[:5] + 0.1), plain.transform(X[:5] + 0.1))
    assert model.loss_ == plain.loss_
    again = mercat.load(mercat.save(model, tmp_path / "m.mercat"))
    np.testing.assert_array_equal(again.transform(X[:5] + 0.1), plain.transform(X[:5] + 0.1))


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_groups_in_much_noise_survive_detail():
    X, group = noise(200, 2000), np.arange(200) % 4
    for j in (1, 2, 3):
        X[:, 100 * j : 100 * j + 100] += 0.6 * (group == j)[:, None]
    accuracy = [
        float(metrics.knn_accuracy(Mercat(detail=d, random_state=0).fit_transform(X), group))
        for d in (0.0, 0.01, 0.3)
    ]
    assert min(accuracy[1:]) >= accuracy[0] - 0.05


def test_few_points_keep_their_neighbors(digits):
    X = digits[:100]
    Y = Mercat(detail=0.3, random_state=0).fit_transform(X)
    plain = Mercat(random_state=0).fit_transform(X)
    kept = [float(metrics.neighborhood_preservation(X, Z, k=10)) for Z in (plain, Y)]
    assert kept[1] > kept[0] + 0.1
