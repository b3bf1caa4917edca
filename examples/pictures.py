"""Draws the pictures of the README and the guides into docs/images.

    python -m examples.pictures

Needs matplotlib, and for the explorer playwright and a Chromium, which the environment variable
CHROMIUM may name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from benchmarks.harness.browser import FLAGS
from benchmarks.harness.facing import facing
from mercat import Mercat, datasets, plot, projections, viewer

FOLDER = Path(__file__).parents[1] / "docs" / "images"
STYLE = {"font.family": "DejaVu Sans", "font.size": 11, "axes.titlesize": 13}
DIAL = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)


def draw_hero(Y: np.ndarray, digit: np.ndarray) -> None:
    """The digits as a map with their names, beside the globe they come from."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    plot.map(Y, digit, labels=True, legend=False, size=15, ax=left)
    plot.globe(Y, digit, labels=True, legend=False, size=9, ax=right)
    right.set_xlabel("")
    for ax, size in ((left, 16), (right, 12)):
        for text in ax.texts:
            if text.get_text().isdigit():
                text.set(fontsize=size, path_effects=[withStroke(linewidth=4, foreground="white")])
    save(figure, "hero.png", dpi=165)


def draw_smiley(X: np.ndarray, Y: np.ndarray, part: np.ndarray) -> None:
    """The Smiley as it is, beside Mercat's map of it."""
    axes = plot.compare({"Original": X, "Mercat": upright(X, Y)}, part, size=4)
    figure = axes[0].figure
    figure.set_size_inches(9.4, 4.2)
    save(figure, "smiley.png", dpi=150)


def upright(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Y turned about the middle of the map as the original X stands.

    No turn of the sphere changes an angle, so which way is up is for the reader to choose.
    """
    flat = projections.project(Y, "lambert")
    return projections.inverse(facing(flat, X, mirror=False), "lambert")


def draw_detail(X: np.ndarray, digit: np.ndarray) -> None:
    """The digits over the dial, and what it costs and brings."""
    dial = {d: Mercat(detail=d, random_state=0).fit_transform(X) for d in DIAL}
    shown = {f"detail = {d:g}": dial[d] for d in (0.0, 0.1, 0.3, 1.0)}
    axes = plot.compare(shown, digit, projection="lambert", labels=True, legend=False, size=5)
    figure = axes[0].figure
    figure.set_size_inches(9.4, 8.6)
    save(figure, "detail.png", dpi=110)
    axes = plot.tradeoff(X, dial, {"PCA": PCA(2).fit_transform(X)})
    figure = axes[0].figure
    figure.set_size_inches(9.4, 3.8)
    save(figure, "tradeoff.png", dpi=110)


def draw_explorer(Y: np.ndarray, digit: np.ndarray, point_loss: np.ndarray) -> None:
    """The explorer as it opens."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = viewer.to_html(
            Y,
            {"digit": digit.astype(str)},
            Path(folder) / "digits.html",
            title="Handwritten digits",
            point_loss=point_loss,
            theme="dark",
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / "explorer.png")
        browser.close()


def save(figure: Any, name: str, *, dpi: int) -> None:
    """Write a picture in 256 colours: no eye tells it from the full one of twice its size."""
    figure.savefig(FOLDER / name, dpi=dpi)
    plt.close(figure)
    picture = Image.open(FOLDER / name).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    model = Mercat(random_state=0).fit(digits.data)
    smiley, part = datasets.smiley(random_state=0)
    with mpl.rc_context(STYLE):
        draw_hero(model.embedding_, digits.target)
        draw_detail(digits.data, digits.target)
        draw_smiley(smiley, Mercat(random_state=0).fit_transform(smiley), part)
    draw_explorer(model.embedding_, digits.target, model.point_loss_)
    for path in sorted(FOLDER.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
