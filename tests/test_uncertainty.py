"""Uncertainty of positions: its values, by hand where possible, and bit-identical results."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import mercat
from mercat import Mercat, Uncertainty, metrics, uncertainty
from mercat._data.arrays import rows_alike
from mercat._math.sphere import geodesic, normalize, tangent_frame
from mercat._solve import starts as _starts
from mercat._solve.initial import centre_of, resized, size_of
from mercat._solve.placement import (
    LandmarkPlacer,
    as_type,
    positive_inverse,
    prepare_landmarks,
)
from mercat._uncertainty import estimate as _estimate
from mercat._uncertainty import maps as _maps
from mercat._uncertainty import points as _points

FIELDS = [
    f.name
    for f in dataclasses.fields(Uncertainty)
    if f.name not in ("stability", "stability_by_chance", "n_maps", "n_comparisons", "sizes")
]


def clusters(n: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(1).normal(size=(4, 6)) * 3
    return centers[np.arange(n) % 4] + rng.normal(size=(n, 6))


def small(**parameters) -> Mercat:
    return Mercat(**({"n_landmarks": 60, "solver": "landmarks", "random_state": 0} | parameters))


@pytest.fixture(scope="module")
def fitted() -> tuple[Mercat, np.ndarray]:
    X = clusters(1200)
    return small().fit(X), X


@pytest.fixture(scope="module")
def bars(fitted) -> Uncertainty:
    return uncertainty(*fitted, n_maps=6, random_state=0)


def same(a: Uncertainty, b: Uncertainty, rows=slice(None)) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(
            np.asarray(getattr(a, name))[rows], np.asarray(getattr(b, name))[rows], err_msg=name
        )
    assert a.stability == b.stability
    assert a.stability_by_chance == b.stability_by_chance
    np.testing.assert_array_equal(a.sizes, b.sizes)


# ------------------------------------------------------------------ what each number is


def random_places(*shape, seed=0):
    return normalize(
        np.random.default_rng(seed).normal(size=(*shape[:-1], 3)).reshape(-1, 3)
    ).reshape(*shape[:-1], 3)


def test_scatter_by_hand():
    """Four maps place a point 0.1 east and west and 0.02 north and south of its position."""
    Y = np.array([[1.0, 0.0, 0.0]])
    steps = np.array([[0, 0.1, 0], [0, -0.1, 0], [0, 0, 0.02], [0, 0, -0.02]])
    length = np.linalg.norm(steps, axis=1, keepdims=True)
    found = (np.cos(length) * Y + np.sin(length) * steps / length)[:, None, :]
    axes = _points.scatter(found, Y)[0]
    np.testing.assert_allclose(np.abs(axes[0]), [0, 0.1 / np.sqrt(2), 0], atol=1e-12)
    np.testing.assert_allclose(np.abs(axes[1]), [0, 0, 0.02 / np.sqrt(2)], atol=1e-12)


def test_scatter_from_halves_by_hand():
    """Two pairs of maps: positions differ by 0.1 eastwards, far to the north, and by 0.06 northwards.

    Half of each position is random, so on maps of new data the point is half as far from the mean.
    """
    Y, north = np.array([[1.0, 0.0, 0.0]]), np.array([[np.cos(0.7), 0.0, np.sin(0.7)]])
    east = np.cos(0.1) * north + np.sin(0.1) * np.array([[0, 1.0, 0]])
    farther = np.array([[np.cos(0.06), 0.0, np.sin(0.06)]])
    found = np.stack([north, east, Y, farther, east])  # the last map is in no pair
    halves = _points.HalfMapScatter(2.0, 0.5, np.array([0.5, 0.0, 0.08]))
    axes = _points.scatter(found, Y, halves)[0]
    # Mean squares times 2, and for the shift by half of 0.08 to the north, its square.
    np.testing.assert_allclose(np.abs(axes[0]), [0, 0.1, 0], atol=1e-12)
    np.testing.assert_allclose(np.abs(axes[1]), [0, 0, np.sqrt(0.06**2 + 0.04**2)], atol=1e-12)


def test_variance_of_determined_positions_is_inversely_proportional_to_the_number_of_rows():
    """Arbitrary positions, which agree as those of noise do, vary as much on maps of all rows."""
    mean = np.zeros(3)
    determined = _points.HalfMapScatter.expected(1.0, 0.4, 0.5, mean)
    assert determined.factor == pytest.approx(0.5)
    assert determined.stability == 1
    for agreement, by_chance in ((0.4, 0.4), (0.4, 0.6)):
        arbitrary = _points.HalfMapScatter.expected(agreement, by_chance, 0.5, mean)
        assert arbitrary.factor == pytest.approx(0.7)
        assert arbitrary.stability == pytest.approx(0.4)
    between = _points.HalfMapScatter.expected(0.7, 0.4, 0.5, mean)  # half of the way from chance
    assert between.stability == pytest.approx(1 - 0.75 * 0.3)
    unrelated = _points.HalfMapScatter.expected(-0.1, -0.1, 0.5, mean)
    assert (unrelated.factor, unrelated.stability) == (0.5, 0)
    equal = _points.HalfMapScatter.expected(1.0, 1.0, 0.5, mean)
    assert (equal.factor, equal.stability) == (1, 1)


def test_scatter_of_arbitrary_positions_grows_with_the_distance_from_the_mean():
    """Positions on two maps are normal with a correlation of 0.6; one is known."""
    rng, r, size, m = np.random.default_rng(0), 0.6, 0.01, 20_000
    pole = np.array([0.0, 0.0, 1.0])
    known = size * np.array([[0.0, 0.0], [1.0, 0.0], [1.5, 2.0]])
    shared = rng.normal(size=(m // 2, 1, 3, 2)) * np.sqrt(r)
    pairs = size * (shared + rng.normal(size=(m // 2, 2, 3, 2)) * np.sqrt(1 - r))
    others = normalize(np.pad(pairs.reshape(-1, 2), [(0, 0), (0, 1)], constant_values=1.0))
    Y = normalize(np.pad(known, [(0, 0), (0, 1)], constant_values=1.0))
    halves = _points.HalfMapScatter.expected(r, r, 0.5, pole)
    axes = _points.scatter(others.reshape(m, 3, 3), Y, halves)
    mean_square = (1 - r) ** 2 * np.sum(known**2, axis=1) + 2 * size**2 * (1 - r**2)
    np.testing.assert_allclose(np.sum(axes**2, axis=(1, 2)), mean_square, rtol=0.05)


def test_vectors_are_moved_along_great_circles():
    """The direction of a great circle stays its direction, and lengths and angles stay."""
    Y, places = random_places(6, 3), random_places(4, 6, 3, seed=1)
    frame = tangent_frame(Y)
    moved = np.stack([_points.transport(v, Y, places) for v in frame])
    gram = np.einsum("amnk,bmnk->mnab", moved, moved)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(2), gram.shape), atol=1e-12)
    np.testing.assert_allclose(np.sum(moved * places, axis=-1), 0, atol=1e-12)
    ahead = normalize(places[0] - np.sum(places[0] * Y, axis=1)[:, None] * Y)
    arc = geodesic(places[0], Y)[:, None]
    there = _points.transport(ahead, Y, places[:1])[0]
    np.testing.assert_allclose(there, np.cos(arc) * ahead - np.sin(arc) * Y, atol=1e-12)


def test_scatter_is_the_covariance_in_the_tangent_plane():
    rng = np.random.default_rng(0)
    Y = random_places(7, 3)
    found = normalize((Y + 0.1 * rng.normal(size=(9, 7, 3))).reshape(-1, 3)).reshape(9, 7, 3)
    axes = _points.scatter(found, Y)
    frame = tangent_frame(Y)
    for i in range(7):
        arc = geodesic(found[:, i], np.broadcast_to(Y[i], (9, 3)))
        flat = np.stack([found[:, i] @ frame[0, i], found[:, i] @ frame[1, i]], axis=1)
        flat *= (arc / np.linalg.norm(flat, axis=1))[:, None]
        expected = flat.T @ flat / 9
        got = np.stack([axes[i] @ frame[0, i], axes[i] @ frame[1, i]], axis=1)
        np.testing.assert_allclose(got.T @ got, expected, atol=1e-12)
        np.testing.assert_allclose(axes[i] @ Y[i], 0, atol=1e-12)
        assert np.linalg.norm(axes[i, 0]) >= np.linalg.norm(axes[i, 1])


def test_alternative_positions_by_hand():
    """Of five maps, two place the point near an alternative position and one at a third position."""
    Y = np.array([[1.0, 0.0, 0.0]])
    near, there, third = [0.999, 0.0447, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    close = normalize(np.array([[0.1, 1.0, 0.0]]))[0]
    found = np.array([near, there, close, third, [1.0, 0, 0]])[:, None, :]
    place, share = _points.alternative_positions(found, Y)
    np.testing.assert_allclose(place[0], normalize(np.array([there]) + close)[0], atol=1e-12)
    assert share[0] == pytest.approx(2 / 5)
    place, share = _points.alternative_positions(found[[0, 4]], Y)
    assert share[0] == 0
    assert np.isnan(place).all()


def test_torn_fractions_equal_the_measure():
    X = clusters(260).astype(np.float32)
    Y = random_places(260, 3).astype(np.float32)
    reference = _points.MapPoints(X, Y, np.arange(260))
    with rows_alike():
        found = np.concatenate(
            [
                _points.torn_fraction(X[s : s + 100], Y[s : s + 100], s, reference, 15, 0.05)
                for s in (0, 100, 200)
            ]
        )
    np.testing.assert_allclose(found, metrics.torn_neighbors(X, Y), atol=1e-6)


def test_p_values_count_points_of_permuted_data_that_fit_at_least_as_well():
    null = np.array([0.2, 0.4, 0.4, 0.6])
    np.testing.assert_allclose(
        _points.p_values(np.array([0.1, 0.4, 0.5, 1.0]), null), [1 / 5, 4 / 5, 4 / 5, 1]
    )


def test_unexplained_is_the_fraction_of_the_variance_of_the_cosines():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), random_places(30, 3)
    line = _points.Calibration(0.2, 0.6)
    angle_sample = _points.AngleSample(X[:12], Y[:12], line)
    found = angle_sample.unexplained(X[12:], Y[12:])
    frame = tangent_frame(Y)
    for k, i in enumerate(range(12, 30)):
        a = (X[:12] - X[i]) / np.linalg.norm(X[:12] - X[i], axis=1, keepdims=True)
        b = np.stack([Y[:12] @ frame[0, i], Y[:12] @ frame[1, i]], axis=1)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        apart = ~np.eye(12, dtype=bool)
        cosines, shown = (a @ a.T)[apart], (b @ b.T)[apart]
        expected = np.mean((cosines - 0.2 - 0.6 * shown) ** 2) / np.var(cosines)
        assert found[k] == pytest.approx(expected, rel=1e-6)


def test_stability_of_the_same_and_of_unrelated_maps():
    Y = random_places(4000, 3)
    assert _maps.stability(np.stack([Y, Y, Y])) == pytest.approx(1)
    unrelated = np.stack([random_places(4000, 3, seed=s) for s in range(5)])
    assert abs(_maps.stability(unrelated)) < 0.05
    pairs = np.stack([Y, Y, unrelated[0], unrelated[0], unrelated[1]])
    assert _maps.stability(pairs, in_pairs=True) == pytest.approx(1)
    assert _maps.stability(pairs[1:], in_pairs=True) < 0.6


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize(
    ("n", "parameters"),
    [(300, {"solver": "exact"}), (1200, {}), (150, {"detail": 0.3})],
    ids=["exact", "landmarks", "detail"],
)
def test_maps_of_noise_are_as_stable_as_by_chance_and_maps_of_clusters_more(n, parameters):
    rng = np.random.default_rng(0)
    noise, structured = (
        uncertainty(small(**parameters).fit(X), X, n_maps=6, random_state=0)
        for X in (rng.normal(size=(n, 6)), clusters(n))
    )
    assert noise.stability == pytest.approx(noise.stability_by_chance, abs=0.3)
    assert structured.stability > structured.stability_by_chance + 0.3
    # They have the same shape, and the same seed.
    assert structured.stability_by_chance == noise.stability_by_chance


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize(("n_columns", "smallest", "largest"), [(2, 0.5, 0.55), (4, 0.6, 1)])
def test_maps_of_noise_in_a_plane_are_determined(monkeypatch, n_columns, smallest, largest):
    """As stable as by chance, but more so with more points."""
    calls = []

    def expected(*args, original=_points.HalfMapScatter.expected):
        calls.append(original(*args))
        return calls[-1]

    monkeypatch.setattr(_points.HalfMapScatter, "expected", expected)
    X = np.random.default_rng(0).normal(size=(200, n_columns))
    uncertainty(Mercat(random_state=0).fit(X), X, n_maps=6, random_state=0)
    assert smallest <= calls[0].factor <= largest


def test_sizes_of_other_maps(bars):
    Y = resized(random_places(500, 3), 0.4)
    sizes = [_maps.relative_size(resized(Y, size), Y) for size in (0.2, 0.4, 0.6)]
    np.testing.assert_allclose(sizes, [0.5, 1, 1.5], rtol=1e-3)
    assert np.isnan(_maps.relative_size(Y, np.tile(Y[:1], (500, 1))))
    assert bars.sizes.shape == (6,)
    assert repr(bars).endswith(f"{bars.sizes.min():.2g} to {bars.sizes.max():.2g} times as large")


def test_other_maps_are_scaled_to_the_size_of_the_map(bars, fitted):
    """Twice the map, turned, is the map; a map of another size has the same error bars."""
    Y = np.asarray(fitted[0].embedding_, dtype=np.float64)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    twice = resized(Y, 2 * size_of(Y)) @ turn
    # The mean direction, from which arcs are scaled, depends a little on the size.
    np.testing.assert_allclose(bars.aligned(twice), Y, atol=5e-4)
    with pytest.raises(ValueError, match="Y must"):
        bars.aligned(Y[:5])
    for size in (0.7, 0.2):
        other = _points.OtherMap(None, None, False, centre_of(Y), size_of(Y) / size)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(other.__class__, "place_unscaled", lambda self, X, starts, H: starts)
            np.testing.assert_allclose(other.place(None, resized(Y, size), None), Y, atol=1e-6)


def test_regions(bars, fitted):
    Y = np.asarray(fitted[0].embedding_, dtype=np.float64)
    np.testing.assert_allclose(bars.places, Y, atol=1e-6)
    assert bars.contains(bars.places, 0.01).all()
    for level in (0.5, 0.9):
        outline = bars.ellipses(level, rows=np.arange(20), n_vertices=16)
        np.testing.assert_allclose(np.linalg.norm(outline, axis=2), 1)
        for k in range(16):
            edge = bars.places.copy()
            edge[:20] = outline[:, k]
            assert bars.contains(edge, level + 0.001)[:20].all()
            assert not bars.contains(edge, level - 0.001)[:20].any()
    assert bars.factor(0.5) < bars.factor(0.9)
    np.testing.assert_allclose(bars.spread**2, np.sum(bars.axes**2, axis=(1, 2)))
    with pytest.raises(ValueError, match="level"):
        bars.factor(1.0)


def test_positions_on_other_maps_match_a_full_search(fitted):
    """Points start at their positions and must reach the same minimum as in a full search."""
    model, X = fitted
    calls = []
    place = _points.OtherMap.place_unscaled

    def recorded(self, X_hat, *starts):
        calls.append((place(self, X_hat, *starts), self, X_hat))
        return calls[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_points.OtherMap, "place_unscaled", recorded)
        uncertainty(model, X, n_maps=4, random_state=1)
    apart = []
    for near, other, X_hat in calls:
        with rows_alike():
            apart.append(geodesic(near, other.placer.place(X_hat)))
    assert np.quantile(np.concatenate(apart), 0.95) < 0.05


def test_starts_that_are_never_promising_are_not_tried_for_all_maps(monkeypatch):
    """With a clear structure, the same few starts are promising for all maps."""
    X = clusters(1200)
    model = small(n_landmarks=200).fit(X)
    tried = []

    def among(self, n_starts, original=_starts.PromisingStarts.among):
        tried.append(original(self, n_starts))
        return tried[-1]

    monkeypatch.setattr(_starts.PromisingStarts, "among", among)
    uncertainty(model, X, n_maps=6, random_state=0)
    maps, without_structure = tried[:6], tried[6:]  # data without structure are other data
    assert [len(t) for t in maps[:4]] == [7] * 4
    assert {len(t) for t in maps[4:]} <= {1, 2, 3, 4}
    assert {len(t) for t in without_structure} == {7}


def test_promising_starts_are_those_of_the_first_samples():
    before = _starts.PromisingStarts()
    maps = [random_places(50, 3, seed=s) for s in (0, 1)]
    for chosen in ([6, 0], [0, 6], [3, 6], [6, 0]):
        assert before.among(7).tolist() == list(range(7))
        before.add(np.array(chosen), chosen[0], maps)
    before.add(np.array([5, 1]), 5, maps)
    assert before.among(7).tolist() == [0, 3, 6]


def test_one_start_suffices_if_the_others_lead_to_the_same_map():
    rng, Y = np.random.default_rng(0), random_places(50, 3)
    Y[:, 0] += 2  # a small map
    Y = normalize(Y)
    like_it = resized(Y, 0.5 * size_of(Y)) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    unlike = np.where(np.arange(50)[:, None] < 5, np.roll(Y, 5, axis=0), Y)
    assert _starts.arranged_alike(Y, like_it)
    assert not _starts.arranged_alike(Y, unlike)

    def learned(*samples: tuple[list[int], int, np.ndarray]) -> list[int]:
        before = _starts.PromisingStarts()
        for chosen, best, other in samples:
            before.add(np.array(chosen), best, [Y, other])
        return before.among(7).tolist()

    same = ([6, 0], 0, like_it), ([0, 6], 0, Y), ([3, 0], 0, like_it)
    assert learned(*same, ([6, 0], 0, Y)) == [0]
    assert learned(*same, ([6, 0], 6, Y)) == [0, 3, 6]
    assert learned(*same, ([6, 0], 0, unlike)) == [0, 3, 6]


def test_data_without_structure_have_uniform_p_values_and_clusters_low_ones(bars):
    assert np.median(bars.p_value) < 0.05
    X = np.random.default_rng(0).normal(size=(1500, 12))
    model = small(n_landmarks=150).fit(X)
    p = uncertainty(model, X, n_maps=4, random_state=0).p_value
    np.testing.assert_allclose(np.quantile(p, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.2)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_an_isolated_cluster_has_a_smaller_spread_than_a_symmetric_one():
    """Points of three clusters along an axis are determined; a ball has no preferred axis."""
    rng = np.random.default_rng(0)
    line = np.repeat([-6.0, 0.0, 6.0], 100)[:, None] * [1.0, 0, 0, 0] + rng.normal(size=(300, 4))
    ball = rng.normal(size=(300, 4))
    certain, vague = (
        uncertainty(small().fit(X), X, n_maps=6, random_state=0) for X in (line, ball)
    )
    assert certain.stability > vague.stability
    assert np.median(certain.spread) < np.median(vague.spread)


# ------------------------------------------------------------------ the same bits


def test_same_seed_same_bits_on_any_number_of_threads(fitted, bars):
    model, X = fitted
    for n_jobs in (1, 3):
        again = Mercat(**model.get_params()).set_params(n_jobs=n_jobs).fit(X)
        same(bars, uncertainty(again, X, n_maps=6, random_state=0))
    other = uncertainty(model, X, n_maps=6, random_state=1)
    assert not np.array_equal(other.spread, bars.spread)


def test_uncertainty_of_dask_arrays_is_lazy(fitted):
    da = pytest.importorskip("dask.array")
    X = fitted[1]
    chunked = da.from_array(X, chunks=((1, 700, 499), X.shape[1]))
    model = small().fit(chunked)
    lazy = uncertainty(model, chunked, n_maps=4, random_state=0)
    assert lazy.places.chunks == ((1, 700, 499), (3,))
    assert lazy.spread.numblocks == (3,)
    here = uncertainty(small().fit(X), X, n_maps=4, random_state=0)
    same(lazy, here)
    assert lazy.ellipses(0.9, rows=np.arange(3)).shape == (3, 48, 3)


def test_uncertainty_in_memory_of_a_model_of_a_dask_array(fitted, bars):
    da = pytest.importorskip("dask.array")
    X = fitted[1]
    model = small().fit(da.from_array(X, chunks=(500, X.shape[1])))
    same(uncertainty(model, X, n_maps=6, random_state=0), bars)
    with pytest.raises(ValueError, match=r"^X must be the data that the model was fitted to"):
        uncertainty(model, X[::-1], n_maps=4, random_state=0)
    assert hasattr(model.embedding_, "compute")  # as it was


def test_uncertainty_of_tensors_is_computed_on_their_device(fitted):
    torch = pytest.importorskip("torch")
    model, X = fitted
    there = small(device="cpu").fit(torch.asarray(X))
    found = uncertainty(there, torch.asarray(X), n_maps=4, random_state=0)
    assert isinstance(found.spread, torch.Tensor)
    here = uncertainty(model, X, n_maps=4, random_state=0)
    close = np.abs(np.asarray(found.spread) - here.spread) < 0.1 * here.spread + 0.01
    assert close.mean() > 0.9
    assert found.stability == pytest.approx(here.stability, abs=0.05)


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "exact"},
        {"objective": "absolute"},
        {"detail": 0.3},
        {"metric": "cosine", "n_spectral": None},
        {"metric": "manhattan"},
        {"init": "pca", "n_spectral": "auto"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("brief_descent")
def test_every_kind_of_map_has_error_bars(parameters):
    X = clusters(120)
    model = small(**parameters).fit(X)
    found = uncertainty(model, X, n_maps=4, random_state=0)
    assert np.isfinite(found.spread).all()
    assert (found.spread > 0).any()
    assert ((found.p_value > 0) & (found.p_value <= 1)).all()
    assert 0 < found.stability <= 1
    known = np.isfinite(found.alternative_wins)
    np.testing.assert_array_equal(known, np.isfinite(found.alternative[:, 0]))
    np.testing.assert_array_equal(known, np.isfinite(found.alternative_gap))


def test_distances_and_sparse_matrices_have_error_bars():
    X = clusters(120)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    assert uncertainty(small(metric="precomputed").fit(D), D, n_maps=4).stability > 0
    S = sp.csr_array(np.maximum(X, 0))
    dense, sparse = (
        uncertainty(small().fit(A), A, n_maps=4, random_state=0) for A in (S.toarray(), S)
    )
    np.testing.assert_allclose(sparse.spread, dense.spread, rtol=1e-3)
    assert (sparse.p_value > 0).all()


def test_data_without_structure_have_the_same_variance_in_all_directions():
    X = np.random.default_rng(0).normal(size=(400, 6)) * [8, 4, 2, 1, 1, 1]
    found = np.mean(
        [np.cov(_maps.remove_structure(X, np.random.default_rng(k)).T) for k in range(50)], axis=0
    )
    mean = np.trace(np.cov(X.T)) / 6
    np.testing.assert_allclose(found, mean * np.eye(6), atol=0.3 * mean)


def test_p_values_of_components_are_those_of_the_data():
    """Permuted components would keep their variances, and p-values would be large."""
    rng = np.random.default_rng(0)
    turn = rng.uniform(0, 2 * np.pi, 300)
    X = np.column_stack([np.cos(turn), np.sin(turn), np.zeros((300, 10))])
    X += 0.2 * rng.normal(size=X.shape)
    X -= X.mean(axis=0)
    for data in (X, X @ np.linalg.svd(X)[2].T):
        bars = uncertainty(Mercat(random_state=0).fit(data), data, n_maps=4, random_state=0)
        assert np.median(bars.p_value) < 0.02


# ------------------------------------------------------------------ what is refused


def test_data_that_do_not_belong_to_the_model_are_refused(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match=r"1200.*900"):
        uncertainty(model, X[:900])
    with pytest.raises(ValueError, match=r"^X "):
        uncertainty(model, -5 * X[::-1])
    with pytest.raises(ValueError, match="n_maps"):
        uncertainty(model, X, n_maps=3)
    with pytest.raises(ValueError, match="random_state"):
        uncertainty(model, X, random_state="x")
    old = Mercat(solver="algorithm1", objective="absolute", max_iter=3).fit(X[:50])
    with pytest.raises(ValueError, match="algorithm1"):
        uncertainty(old, X[:50])


def test_a_loaded_model_has_the_same_error_bars(fitted, bars, tmp_path):
    model, X = fitted
    mercat.save(model, tmp_path / "map.mercat")
    same(bars, uncertainty(mercat.load(tmp_path / "map.mercat"), X, n_maps=6, random_state=0))


def test_repr_summarises_the_result(bars):
    degrees = np.degrees(np.median(bars.spread))
    assert repr(bars).startswith(
        f"Uncertainty of 1200 points from 6 maps with stability {bars.stability:.3f} (by chance: "
        f"{bars.stability_by_chance:.1f}); median spread {degrees:.2g} degrees, 0."
    )
    assert set(bars.columns()) < {*FIELDS, "spread"}


# ------------------------------------------------------------------ placing from a place


@pytest.fixture(scope="module")
def landmarks() -> tuple[LandmarkPlacer, np.ndarray]:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 5)), random_places(40, 3)
    placer = as_type(prepare_landmarks(X, Y, _points.Calibration(0.1, 0.8)), np.float32)
    return placer, rng.normal(size=(700, 5)).astype(np.float32)


def test_points_start_from_the_best_of_their_starts(landmarks):
    placer, X = landmarks
    starts = np.stack([random_places(700, 3, seed=s) for s in (1, 2, 3)], axis=1).astype(np.float32)
    each = [placer.place_from(X, starts[:, k : k + 1], 0)[1] for k in range(3)]
    np.testing.assert_allclose(
        placer.place_from(X, starts, 0)[1], np.min(each, axis=0), rtol=1e-4, atol=1e-2
    )
    starts[::2, 1:] = np.nan
    expected = np.where(np.arange(700) % 2 == 0, each[0], np.min(each, axis=0))
    np.testing.assert_allclose(placer.place_from(X, starts, 0)[1], expected, rtol=1e-4, atol=1e-2)
    before, after = (placer.place_from(X, starts, steps)[1] for steps in (0, 3))
    assert (after <= before + 1e-3).all()
    assert (after < before - 1e-3).mean() > 0.9


def test_placement_from_a_start_by_kernels_matches_numpy(landmarks, monkeypatch):
    placer, X = landmarks
    starts = np.stack([random_places(700, 3, seed=s) for s in (1, 2)], axis=1).astype(np.float32)
    starts[::3, 1] = np.nan
    in_c = placer.place_from(X, starts), placer.place_roughly(X, starts[:, 0])
    monkeypatch.setattr(LandmarkPlacer, "_runs_in_c", lambda self, X: False)
    in_numpy = placer.place_from(X, starts), placer.place_roughly(X, starts[:, 0])
    np.testing.assert_allclose(in_c[0][1], in_numpy[0][1], rtol=1e-3, atol=0.1)
    assert np.quantile(geodesic(in_c[0][0], in_numpy[0][0]), 0.95) < 1e-2
    assert np.quantile(geodesic(in_c[1][0], in_numpy[1][0]), 0.9) < 1e-2


def test_inverse_hessians_are_those_of_the_energy(landmarks):
    placer, X = landmarks
    X, rng = X[:40], np.random.default_rng(0)
    Y = placer.place(X)  # where curvatures are positive
    H = placer.inverse_hessians(X, Y)
    U, V = tangent_frame(Y.astype(np.float64))

    def energy(along: np.ndarray) -> np.ndarray:
        step = along[0] * U + along[1] * V
        length = np.linalg.norm(step, axis=1, keepdims=True)
        there = (np.cos(length) * Y + np.sin(length) * step / length).astype(np.float32)
        return placer.place_from(X, there[:, None], 0)[1].astype(np.float64)

    here = placer.place_from(X, Y[:, None], 0)[1]
    for direction in normalize(rng.normal(size=(3, 3)))[:, :2]:
        curvature = (energy(0.1 * direction) + energy(-0.1 * direction) - 2 * here) / 0.1**2
        step = direction[0] * U + direction[1] * V
        found = np.vecdot(
            step, np.linalg.solve(H + Y[:, :, None] * Y[:, None, :], step[..., None])[..., 0]
        )
        assert np.median(np.abs(found / curvature - 1)) < 0.1
    np.testing.assert_allclose(H @ Y[..., None], 0, atol=1e-6 * np.abs(H).max())
    elsewhere = placer.inverse_hessians(X, random_places(40, 3).astype(np.float32))
    low, high = np.linalg.eigvalsh(elsewhere)[:, 1:].T
    assert ((low > 0) & (high < 11 * low)).all()


def test_positive_inverses_by_hand():
    a, c, mixed = np.array([[2.0, 1, 0, 0, 3], [4.0, -1, 4, 0, 3], [0.0, 0, 0, 0, 1]])
    found = np.stack(positive_inverse(a, c, mixed))[:, :, 0, 0].T
    expected = [[0.5, 0.25, 0], [1, 1, 0], [2.5, 0.25, 0], [0, 0, 0], [0.375, 0.375, -0.125]]
    np.testing.assert_allclose(found, expected)


def test_one_newton_step_reaches_a_near_minimum(landmarks):
    """Even with the inverse Hessian of another near position; more distant points need more steps."""
    placer, X = landmarks
    minimum = placer.place_from(X, placer.place(X)[:, None], 30)[0]
    H = placer.inverse_hessians(X, minimum)
    off = np.random.default_rng(0).normal(size=minimum.shape).astype(np.float32)
    for distance, left in ((0.008, 0.002), (0.05, 0.004)):
        start = normalize(
            minimum + distance * normalize(off - np.vecdot(off, minimum)[:, None] * minimum)
        )
        found = placer.place_near(X, start[:, None], H)
        assert np.quantile(geodesic(found, minimum), 0.9) < left
    np.testing.assert_array_equal(
        placer.place_near(X, start[:, None], None), placer.place_from(X, start[:, None])[0]
    )


def test_newton_steps_by_kernels_match_numpy(landmarks, monkeypatch):
    placer, X = landmarks
    Y = placer.place(X)
    starts = np.stack([Y, random_places(700, 3).astype(np.float32)], axis=1)
    starts = normalize((starts + 0.05).reshape(-1, 3)).reshape(starts.shape)
    starts[::3, 1] = np.nan

    def found() -> tuple[np.ndarray, np.ndarray]:
        H = placer.inverse_hessians(X, Y)
        return H, placer.place_near(X, starts, H)

    in_c = found()
    monkeypatch.setattr(LandmarkPlacer, "_runs_in_c", lambda self, X: False)
    in_numpy = found()
    scale = np.abs(in_numpy[0]).max(axis=(1, 2), keepdims=True)
    assert np.quantile(np.abs(in_c[0] - in_numpy[0]) / scale, 0.99) < 1e-2
    assert np.quantile(geodesic(in_c[1], in_numpy[1]), 0.95) < 1e-3


def test_excess_is_the_difference_of_mean_squared_residuals(landmarks):
    placer, X = landmarks
    Y, Z = (random_places(700, 3, seed=s).astype(np.float32) for s in (1, 2))
    here, there = (placer.place_from(X, P[:, None], 0)[1] for P in (Y, Z))
    np.testing.assert_allclose(placer.excess(X, Y, Z), (there - here) / (3 * 40**2), rtol=1e-5)
    # Of an energy whose residuals are known: all triples of the point and two landmarks.
    x, y, z = X[0].astype(float), Y[0].astype(float), Z[0].astype(float)
    assert placer.excess(X, Y, Z)[0] == pytest.approx(
        (residuals(placer, x, z) - residuals(placer, x, y)), rel=0.15, abs=0.02
    )


def residuals(placer: LandmarkPlacer, x: np.ndarray, y: np.ndarray) -> float:
    """Mean squared residual over the triples of a point and two landmarks."""
    alpha, beta = placer.calibration
    P, Q = (np.asarray(a, dtype=float) for a in (placer.X, placer.Y))

    def cosines(at_x, at_y, xs, ys):
        a = (xs - at_x) / np.linalg.norm(xs - at_x, axis=1, keepdims=True)
        frame = tangent_frame(at_y[None])
        b = np.stack([ys @ frame[0, 0], ys @ frame[1, 0]], axis=1)
        b /= np.sqrt(np.sum(b * b, axis=1, keepdims=True) + placer.softening)
        return (a @ a.T - alpha - beta * b @ b.T) ** 2

    m = len(P)
    total = cosines(x, y, P, Q)[~np.eye(m, dtype=bool)].sum()
    for k in range(m):
        others = np.arange(m) != k
        xs, ys = np.vstack([x, P[others]]), np.vstack([y, Q[others]])
        total += 2 * cosines(P[k], Q[k], xs, ys)[0, 1:].sum()
    return total / (3 * m**2)


# ------------------------------------------------------------------ detail


@pytest.mark.usefixtures("brief_descent")
def test_regions_with_detail_contain_most_positions_on_maps_of_other_data():
    """Maps that share neighbours or data are much more similar than these."""
    X = clusters(400)
    model = small(detail=0.3).fit(X)
    bars = uncertainty(model, X, n_maps=8, random_state=0)
    inside = []
    for seed in range(1, 4):
        there = bars.aligned(small(detail=0.3).fit(clusters(400, seed)).transform(X))
        inside.append([bars.contains(there, level).mean() for level in (0.5, 0.9)])
    half, most = np.mean(inside, axis=0)
    assert half > 0.4
    assert most > 0.8


@pytest.mark.parametrize("n", [61, 10])
@pytest.mark.parametrize("parameters", [{"detail": 0.1}, {}, {"n_landmarks": 40}], ids=str)
def test_maps_of_most_rows_are_compared_in_pairs_of_complementary_halves(
    monkeypatch, n, parameters
):
    calls = []

    def draw(*args, original=_estimate.draw_samples):
        calls.append(original(*args))
        return calls[-1]

    monkeypatch.setattr(_estimate, "draw_samples", draw)
    X = clusters(n)
    found = uncertainty(small(**parameters).fit(X), X, n_maps=5, random_state=0)
    (samples,) = calls
    assert samples.are_halves
    assert [len(rows) for rows in samples.maps] == [n // 2, n - n // 2] * 2 + [n // 2]
    for k in (0, 2):
        both = np.concatenate(samples.maps[k : k + 2])
        np.testing.assert_array_equal(np.sort(both), np.arange(n))
    assert not np.array_equal(samples.maps[0], samples.maps[2])
    assert found.n_maps == 5
    assert found.n_comparisons == 2


def test_other_maps_of_few_landmarks_have_other_landmarks(fitted):
    model = fitted[0]
    rows = np.array([1, 2, 5, 9])
    found = [_maps.other_rows(10, rows, np.random.default_rng(s)) for s in range(50)]
    assert all(len(np.unique(drawn)) == 4 for drawn in found)
    np.testing.assert_array_equal(np.unique(np.concatenate(found)), [0, 3, 4, 6, 7, 8])
    calls = []

    def draw(*args, original=_estimate.draw_samples):
        calls.append(original(*args))
        return calls[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_estimate, "draw_samples", draw)
        found = uncertainty(*fitted, n_maps=4, random_state=0)
    assert not calls[0].are_halves
    assert found.n_comparisons == 4
    for drawn in calls[0].maps:
        assert len(drawn) == len(model.landmarks_)
        assert not np.intersect1d(drawn, model.landmarks_).size


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_regions_of_noise_contain_most_positions_on_maps_of_other_data():
    """Maps of noise have nothing in common but chance, and parts of the same data have the same chance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    model = Mercat(random_state=0).fit(X)
    bars = uncertainty(model, X, random_state=0)
    inside = []
    for _ in range(8):
        there = bars.aligned(Mercat().fit(rng.normal(size=(300, 8))).transform(X))
        inside.append([bars.contains(there, level).mean() for level in (0.5, 0.9)])
    half, most = np.mean(inside, axis=0)
    assert 0.35 < half < 0.65
    assert 0.8 < most < 0.97


@pytest.mark.usefixtures("brief_descent")
@pytest.mark.parametrize("n", [10, 25])
def test_few_points_have_error_bars_with_detail(n):
    X = clusters(n)
    found = uncertainty(small(detail=0.3).fit(X), X, n_maps=4, random_state=0)
    assert np.isfinite(found.spread).all()
    assert np.median(found.spread) > 0.01


def test_neighbors_outside_the_sample_are_replaced_by_their_neighbors():
    """On a ring, a sample without every third point keeps the ring; points without sampled neighbours get
    the nearest."""
    n = 12
    X = np.stack([np.cos(np.arange(n)), np.sin(np.arange(n))], axis=1).astype(np.float32)
    after, before = (np.arange(n) + 1) % n, (np.arange(n) - 1) % n
    ends = np.stack([after, before], axis=1).ravel()
    ring = sp.csr_array((np.ones(2 * n), (np.repeat(np.arange(n), 2), ends)), shape=(n, n))
    rows = np.flatnonzero(np.arange(n) % 3)
    rng = np.random.default_rng(0)
    found = _maps._neighbors_among(rows, ring, X[rows], rng).toarray() > 0
    assert not found.diagonal().any()
    for i, row in enumerate(rows):
        reached = set(rows[found[i]])
        kept = {k for k in (after[row], before[row]) if k in rows}
        further = {after[after[row]], before[before[row]]}
        assert kept <= reached <= kept | further
    alone = np.array([0, 4, 8])
    found = _maps._neighbors_among(alone, ring, X[alone], rng)
    distance = np.linalg.norm(X[alone][:, None] - X[alone], axis=2) + 9 * np.eye(3)
    np.testing.assert_array_equal(found.toarray().argmax(axis=1), distance.argmin(axis=1))
    assert _maps._neighbors_among(rows, 5, X[rows], rng) == 2


@pytest.mark.usefixtures("brief_descent")
def test_a_given_graph_is_used_for_error_bars():
    X = clusters(90)
    near = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:9]
    graph = sp.csr_array((np.ones(720), (np.repeat(np.arange(90), 8), near.ravel())), (90, 90))
    given, counted = (
        uncertainty(small(detail=0.3, neighbors=k).fit(X), X, n_maps=4, random_state=0)
        for k in (graph, 8)
    )
    ratio = np.median(given.spread) / np.median(counted.spread)
    assert 0.5 < ratio < 2


def test_maps_with_detail_of_part_of_the_points_are_refused():
    X = clusters(200)
    model = small(detail=0.3, n_detail=120).fit(X)
    with pytest.raises(ValueError, match="n_detail=120"):
        uncertainty(model, X, n_maps=4)


@pytest.mark.parametrize("detail", [0.0, 0.3])
def test_rows_in_another_order_are_refused(detail):
    X = np.random.default_rng(0).normal(size=(120, 6)) * [4, 3, 2, 1, 1, 1]
    model = Mercat(random_state=0, detail=detail).fit(X)
    with pytest.raises(ValueError, match=r"^X must be the data .* in the same order"):
        uncertainty(model, X[::-1], n_maps=4)


@pytest.mark.filterwarnings("ignore:detail=0.3 has no effect")
@pytest.mark.parametrize("detail", [0, 0.3])
@pytest.mark.parametrize("n", [5, 9])
def test_few_points_are_refused(n, detail):
    X = np.random.default_rng(0).normal(size=(n, 6))
    with pytest.raises(ValueError, match=rf"X must .* 10 .* got {n}"):
        uncertainty(Mercat(random_state=0, detail=detail).fit(X), X, n_maps=4)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_equal_points_have_no_spread_with_detail():
    X = np.ones((60, 4))
    found = uncertainty(Mercat(random_state=0, detail=0.3).fit(X), X, n_maps=4)
    np.testing.assert_allclose(found.spread, 0, atol=1e-6)


def test_a_detail_removed_after_the_fit_is_refused():
    X = np.random.default_rng(0).normal(size=(60, 6)) + 9 * np.eye(6)[np.arange(60) % 3]
    model = Mercat(random_state=0, detail=0.3).fit(X).set_params(detail=0)
    with pytest.raises(
        ValueError, match=r"^detail must not be changed after the fit, got detail=0"
    ):
        uncertainty(model, X, n_maps=4)


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
def test_uncertainty_of_a_map_on_which_detail_has_no_effect_is_that_without_it():
    X = np.random.default_rng(0).normal(size=(120, 30))
    found, plain = (
        uncertainty(
            Mercat(detail=d, n_spectral=None, random_state=0).fit(X), X, n_maps=4, random_state=0
        )
        for d in (0.3, 0.0)
    )
    np.testing.assert_array_equal(found.axes, plain.axes)
    assert found.stability == plain.stability


@pytest.mark.parametrize("model", ["abc", make_pipeline(Mercat())])
def test_other_models_are_refused(model):
    with pytest.raises(TypeError, match=r"^model must be a Mercat, got (str|Pipeline)"):
        uncertainty(model, np.eye(5))


@pytest.mark.parametrize("level", ["a", 0, 1, None])
def test_levels_of_regions_are_probabilities(level):
    X = np.random.default_rng(0).normal(size=(30, 4))
    bars = uncertainty(Mercat(random_state=0).fit(X), X, n_maps=4, random_state=0)
    with pytest.raises(ValueError, match=r"^level must be a number above 0 and below 1"):
        bars.ellipses(level)


@pytest.mark.parametrize("rows", [[1200], [-1], [0.5], "a", 3, [[0, 1]], [True, False]])
def test_rows_of_regions_are_indices_of_points(rows, bars):
    with pytest.raises(ValueError, match=r"^rows must be integers from 0 to 1199, got "):
        bars.ellipses(rows=rows)


def test_positions_in_regions_are_unit_vectors_of_any_container(bars):
    pd = pytest.importorskip("pandas")
    inside = bars.contains(bars.places[::-1])
    assert 0 < inside.sum() < len(inside)
    for container in (np.ndarray.tolist, pd.DataFrame):
        np.testing.assert_array_equal(bars.contains(container(bars.places[::-1])), inside)
    for wrong, rule in (
        (np.zeros((1200, 3)), "vectors of length 1, got 1200"),
        (np.full((1200, 3), np.nan), "finite, got NaN"),
        (bars.places[:10], r"for each of the 1200 points, got the shape \(10, 3\)"),
        (None, r"of shape \(n, 3\), got \(\)"),
        ("a", "numbers"),
    ):
        with pytest.raises(ValueError, match=f"^Y must .*{rule}"):
            bars.contains(wrong)
