"""Properties that hold for any data."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mercat import Mercat
from mercat._backend import Workers
from mercat._exact import AngleLoss
from mercat._initial import pca_positions


@st.composite
def data(draw) -> np.ndarray:
    """Matrices of many shapes, ranks, scales, with duplicates, constant columns, clusters, heavy tails."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(4, 40)), draw(st.integers(1, 12))
    rank = draw(st.integers(1, d))
    kind = draw(st.sampled_from(["normal", "cauchy", "integers", "clusters"]))
    X = {
        "normal": lambda: rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)),
        "cauchy": lambda: rng.standard_cauchy(size=(n, d)),
        "integers": lambda: rng.integers(0, 3, size=(n, d)).astype(float),
        "clusters": lambda: (
            50 * rng.normal(size=(3, d))[rng.integers(3, size=n)] + rng.normal(size=(n, d))
        ),
    }[kind]()
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]
    if draw(st.booleans()):
        X[:, rng.integers(d)] = 7.0
    return X * 10.0 ** draw(st.sampled_from([-30, -3, 0, 3, 30]))


@given(
    X=data(),
    solver=st.sampled_from(["exact", "landmarks"]),
    objective=st.sampled_from(["calibrated", "absolute"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_always_finite_unit_vectors(X, solver, objective, dtype):
    model = Mercat(
        solver=solver, objective=objective, n_landmarks=12, max_iter=30, n_jobs=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence
        Y = model.fit_transform(X.astype(dtype))
    assert Y.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(model.transform(X[:2].astype(dtype)), axis=1), 1, rtol=1e-5
    )
    assert np.isfinite(model.loss_)
    assert -1 <= model.correlation_ <= 1


@given(X=data(), calibrated=st.booleans())
def test_the_end_is_not_worse_than_the_start(X, calibrated):
    model = Mercat(
        solver="exact",
        objective="calibrated" if calibrated else "absolute",
        n_jobs=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    X_hat = model._placer.spectral.project(X)
    scores = np.pad(X_hat, [(0, 0), (0, 2)])
    with Workers(1) as workers:
        objective = AngleLoss(X_hat, calibrated=calibrated, workers=workers)
        start, _ = objective.evaluate(pca_positions(scores))
    # 1e-7: the square root of what double precision leaves of zero
    assert model.loss_ <= np.sqrt(start) * (1 + 1e-6) + 1e-7
