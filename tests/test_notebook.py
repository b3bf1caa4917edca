"""Models, reports and explorers as displayed by a notebook."""

from __future__ import annotations

import base64
import re
from io import BytesIO

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


@pytest.mark.parametrize("kind", ["class", "number", "date", "none", "plane"])
def test_an_explorer_has_a_picture_without_widgets(X, kind):
    from PIL import Image

    Y = Mercat(random_state=0).fit_transform(X)
    days = np.datetime64("2024-01-01") + np.arange(60)
    columns = {"class": np.repeat(["a", "b"], 30), "number": X[:, 0], "date": days}
    frame = {kind: columns[kind]} if kind in columns else None
    made = viewer.Explorer({"flat": X[:, :2]} if kind == "plane" else Y, frame)
    shown = made._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
    picture = np.asarray(Image.open(BytesIO(base64.b64decode(bundle["image/png"]))).convert("RGB"))
    assert picture.shape[0] > 300
    inked = (np.abs(picture.astype(int) - 255).sum(axis=2) > 60).mean()
    assert 0.002 < inked < 0.5  # points and background
    if kind == "class":
        blue = np.linalg.norm(picture.astype(int) - (0, 114, 178), axis=2) < 90
        assert blue.sum() > 50


def test_a_picture_is_a_separate_output_before_the_widget(X):
    """For an output with a widget and a picture, nbconvert shows the widget, which needs a network."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    try:
        explorer = viewer.Explorer(Mercat(random_state=0).fit_transform(X))
        with capture_output() as captured:
            explorer._ipython_display_()
    finally:
        InteractiveShell.clear_instance()
    still, widget = (output.data for output in captured.outputs)
    assert f'<img id="{explorer._still}"' in still["text/html"]
    assert "data:image/png;base64,iVBOR" in still["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert "image/png" not in widget  # without widgets, it would be shown twice


def test_a_notebook_that_is_executed_and_converted_shows_the_picture(tmp_path):
    nbconvert = pytest.importorskip("nbconvert", reason="needs nbconvert: pip install nbconvert")
    run = pytest.importorskip("nbconvert.preprocessors").ExecutePreprocessor(timeout=120)
    nbformat = pytest.importorskip("nbformat")
    code = "import numpy as np\nfrom mercat.viewer import Explorer\nExplorer(np.eye(3))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    run.preprocess(notebook, {})
    assert notebook.metadata["widgets"]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    image = re.search(r'<img [^>]*id="mercat-[0-9a-f]*"[^>]*>', page)
    assert 'src="data:image/png;base64' in image[0]


def test_an_explorer_is_a_widget(X):
    Y = Mercat(random_state=0).fit_transform(X)
    shown = viewer.Explorer(Y)._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
