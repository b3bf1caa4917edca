"""What a notebook shows when the last line of a cell is a model, a report or an explorer."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercat import Mercat, metrics, viewer


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(60, 4))


def test_a_model_shows_its_parameters_and_whether_it_is_fitted(X):
    model = Mercat(n_landmarks=77, random_state=0)
    before = model._repr_html_()
    after = model.fit(X)._repr_html_()
    assert "77" in before
    assert "Not fitted" in before
    assert re.search(r"<span>\s*Fitted", after)
    for page in (before, after, make_pipeline(StandardScaler(), model)._repr_html_()):
        assert "n_landmarks" in page
        # No link to pages of scikit-learn that do not exist; nothing is loaded.
        assert not re.search(r"(?:href|src)=\"https?://[^\"]*mercat", page, re.IGNORECASE)
        assert not re.search(r"<(?:script|img|link)[^>]*(?:src|href)=\"http", page)


def test_a_model_with_a_label_that_is_markup_shows_it_as_text():
    page = Mercat(metric="<script>alert(1)</script>")._repr_html_()
    assert "<script>alert(1)" not in page


def test_a_report_is_a_table(X):
    report = metrics.report(X, Mercat(random_state=0).fit_transform(X))
    page = report._repr_html_()
    assert page.count("<tr>") == len(report)
    assert "angle_preservation" in page


def test_an_explorer_is_a_widget(X):
    Y = Mercat(random_state=0).fit_transform(X)
    shown = viewer.Explorer(Y)._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
