"""`score` on held-out rows, grid search, and errors for parameters of other libraries."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import mercat
from mercat import Mercat
from mercat.metrics import angle_preservation


@pytest.fixture(scope="module")
def data():
    """Three dimensions of signal in twenty columns of noise."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(240, 3)) @ (3 * rng.normal(size=(3, 20))) + rng.normal(size=(240, 20))


def test_score_is_the_angle_preservation_of_placed_rows(data):
    train, test = data[:160], data[160:]
    model = Mercat(random_state=0, n_spectral=2).fit(train)
    expected = angle_preservation(test, model.transform(test))
    assert model.score(test) == pytest.approx(float(expected))
    assert model.score(sparse.csr_array(test)) == pytest.approx(float(expected))
    assert model.score(test, y=np.zeros(80)) == model.score(test)
    frame = pd.DataFrame(train, columns=[f"c{k}" for k in range(20)])
    named = Mercat(random_state=0, n_spectral=2).fit(frame)
    assert named.score(pd.DataFrame(test, columns=frame.columns)) == pytest.approx(float(expected))


def test_score_uses_the_metric(data):
    model = Mercat(random_state=0, metric="cosine").fit(data[:160])
    test = data[160:]
    unit = test / np.linalg.norm(test, axis=1, keepdims=True)
    expected = angle_preservation(unit, model.transform(test))
    assert model.score(test) == pytest.approx(float(expected))
    distances = Mercat(random_state=0, metric="precomputed").fit(cdist(data[:160], data[:160]))
    assert distances.score(cdist(test, data[:160])) > 0.7


def test_score_needs_three_rows_and_a_fit(data):
    with pytest.raises(ValueError, match=r"3 rows.*got 2"):
        Mercat(random_state=0).fit(data).score(data[:2])
    with pytest.raises(Exception, match="not fitted"):
        Mercat().score(data)


@pytest.mark.filterwarnings("ignore:n_spectral=1 keeps:mercat.TrustWarning")
def test_grid_search_finds_the_number_of_components(data):
    search = GridSearchCV(Mercat(random_state=0), {"n_spectral": [1, 3]}, cv=3).fit(data)
    assert search.best_params_ == {"n_spectral": 3}
    assert search.best_score_ > 0.8
    assert search.transform(data[:5]).shape == (5, 3)
    distances = cdist(data, data)
    scores = cross_val_score(Mercat(random_state=0, metric="precomputed"), distances, cv=3)
    assert (scores > 0.7).all()


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("n_neighbors", "neighbors="),
        ("n_components", "n_spectral="),
        ("min_dist", "detail="),
        ("perplexity", "detail="),
        ("n_epochs", "max_iter="),
        ("learning_rate", "no equivalent"),
        ("n_landmark", "n_landmarks="),
        ("foo", "n_spectral"),
    ],
)
def test_parameters_of_other_libraries_have_suggestions(name, here):
    with pytest.raises(TypeError, match=rf"'{name}'.*{here}"):
        Mercat(**{name: 15})
    anndata = pytest.importorskip("anndata")
    with pytest.raises(TypeError, match=rf"'{name}'.*{here}"):
        mercat.tl.mercat(anndata.AnnData(np.ones((9, 3))), **{name: 15})


def test_the_signature_is_unchanged():
    parameters = inspect.signature(Mercat).parameters
    assert set(parameters) == set(Mercat().get_params())
    assert clone(Mercat(detail=0.1)).detail == 0.1
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    with pytest.raises(TypeError):
        Mercat("calibrated")
