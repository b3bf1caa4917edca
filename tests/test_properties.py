"""Properties that hold for any data. `make nightly` tries each on 2500 data sets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import largest_distance

from mercat import Mercat
from mercat._data.threads import Workers
from mercat._detail import descent
from mercat._math.angles import ABSOLUTE
from mercat._solve.initial import pca_positions
from mercat._solve.losses import AngleLoss

KINDS = {
    "normal": lambda rng, n, d, rank: rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)),
    "heavy tails": lambda rng, n, d, rank: rng.standard_cauchy(size=(n, d)),
    "very heavy tails": lambda rng, n, d, rank: np.clip(
        rng.standard_cauchy((n, d)) ** 3, -1e8, 1e8
    ),
    "integers": lambda rng, n, d, rank: rng.integers(0, 3, size=(n, d)).astype(float),
    "clusters": lambda rng, n, d, rank: (
        50 * rng.normal(size=(3, d))[rng.integers(3, size=n)] + rng.normal(size=(n, d))
    ),
    "clusters of one": lambda rng, n, d, rank: (
        rng.normal(size=(n, d)) * np.where(np.arange(n) < rank, 1e4, 1.0)[:, None]
    ),
    "on a line": lambda rng, n, d, rank: np.outer(rng.normal(size=n), rng.normal(size=d)) + 3,
    "on a plane": lambda rng, n, d, rank: rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) - 1,
}


@st.composite
def data(draw) -> np.ndarray:
    """Matrices of many shapes, ranks and scales, with duplicates and constant columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(4, 40)), draw(st.integers(1, 12))
    rank = draw(st.integers(1, d))
    X = KINDS[draw(st.sampled_from(sorted(KINDS)))](rng, n, d, rank)
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]
    if draw(st.booleans()):
        X[:, rng.integers(d, size=draw(st.integers(1, d)))] = 7.0
    return X * 10.0 ** draw(st.sampled_from([-30, -3, 0, 3, 30]))


@pytest.fixture(scope="module", autouse=True)
def descent_of_any_length():
    """A tenth of the iterations with detail, or all of them in `make nightly`."""
    with pytest.MonkeyPatch.context() as patch:
        if settings.default is settings.get_profile("default"):
            patch.setattr(descent, "N_ITER", 30)
        yield


def fitted(X: np.ndarray, **parameters) -> Mercat:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ConvergenceWarning and TrustWarning
        return Mercat(**({"n_jobs": 1, "random_state": 0} | parameters)).fit(X)


def loss_of(X: np.ndarray, Y: np.ndarray, calibrated: bool) -> float:
    with Workers(1) as workers:
        line = None if calibrated else ABSOLUTE
        return AngleLoss(X, line=line, workers=workers).judge(Y).loss


def denoised(model: Mercat, X: np.ndarray) -> np.ndarray:
    return np.asarray(model._placer.spectral.project(X))


solvers = st.sampled_from(["exact", "landmarks"])
objectives = st.sampled_from(["calibrated", "absolute"])
metrics = st.sampled_from(["euclidean", "cosine", "correlation"])


@given(
    X=data(),
    solver=solvers,
    objective=objectives,
    metric=metrics,
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_always_finite_unit_vectors(X, solver, objective, metric, dtype):
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    assume(np.isfinite(X).all())
    model = fitted(
        X, solver=solver, objective=objective, metric=metric, n_landmarks=12, max_iter=30
    )
    Y = model.embedding_
    assert Y.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.transform(X[:2]), axis=1), 1, rtol=1e-5)
    assert np.isfinite(model.loss_)
    assert np.isfinite(model.point_loss_).all()
    assert -1 <= model.correlation_ <= 1


@given(X=data(), detail=st.sampled_from([0.01, 0.3, 3.0]))
def test_detail_gives_unit_vectors(X, detail):
    model = fitted(X, detail=detail, max_iter=10)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1, rtol=1e-5)
    assert np.isfinite([model.loss_, model.correlation_]).all()
    # Training rows keep their positions; equal rows get that of the first.
    X_hat = denoised(model, X).astype(np.float32)
    first = (X_hat[:, None] == X_hat).all(axis=2).argmax(axis=1)
    np.testing.assert_array_equal(model.transform(X), model.embedding_[first])


@given(X=data(), objective=objectives)
def test_the_loss_is_at_most_that_of_the_start(X, objective):
    model = fitted(X, solver="exact", objective=objective)
    X_hat = denoised(model, X)
    start = pca_positions(np.pad(X_hat, [(0, 0), (0, 2)]))
    # 1e-7: about the square root of the rounding error of double precision
    at_start = loss_of(X_hat, start, objective == "calibrated")
    assert model.loss_ <= at_start * (1 + 1e-6) + 1e-7


@given(X=data(), power=st.integers(-40, 40), solver=solvers)
def test_the_unit_of_the_data_does_not_matter(X, power, solver):
    """To the bit, for powers of two, which change no digit of a number that single precision holds."""
    assume(np.abs(X).max() * 2.0 ** max(power, 0) < np.finfo(np.float32).max)
    one, two = (fitted(A, solver=solver, n_landmarks=12, max_iter=20) for A in (X, X * 2.0**power))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    assert one.loss_ == two.loss_


@given(X=data(), objective=objectives, seed=st.integers(0, 2**32 - 1))
def test_order_rotation_and_origin_of_the_data_do_not_matter(X, objective, seed):
    """The quality does not depend on order, rotation, translation and unit of the points."""
    rng = np.random.default_rng(seed)
    model = fitted(X, objective=objective, max_iter=30)
    order = rng.permutation(len(X))
    turn = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    spread = np.abs(X - X.mean(axis=0)).max()
    moved = 3 * ((X - X.mean(axis=0))[order] @ turn + spread * rng.normal(size=X.shape[1]))
    again = fitted(moved, objective=objective, max_iter=30)
    X_hat = denoised(again, moved)
    assume(X_hat.shape[1] == denoised(model, X).shape[1])  # no direction near rounding's edge
    calibrated = objective == "calibrated"
    at_home = loss_of(denoised(model, X), model.embedding_, calibrated)
    assert abs(loss_of(X_hat, model.embedding_[order], calibrated) - at_home) < 1e-3


@given(X=data(), detail=st.sampled_from([0.0, 0.1]), solver=solvers)
def test_the_position_of_a_row_does_not_depend_on_the_batch(X, detail, solver):
    model = fitted(X, detail=detail, solver=solver, n_landmarks=12, max_iter=10)
    new = (X[::-1] + X) / 2
    batch = model.transform(new)
    for i in (0, len(X) // 3):
        assert largest_distance(model.transform(new[i : i + 1]), batch[i : i + 1]) == 0
