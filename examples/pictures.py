"""Draw the pictures of the README and the guides into docs/images or another folder.

    python -m examples.pictures [opening hero detail smiley explorer] [--folder FOLDER]

Needs matplotlib, and for the explorer playwright and a Chromium, which the environment variable
CHROMIUM may name. `make pictures` draws all of them.
"""

from __future__ import annotations

import argparse
import functools
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
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness.browser import FLAGS
from benchmarks.harness.facing import facing
from mercat import Mercat, datasets, plot, projections, viewer

FOLDER = Path(__file__).parents[1] / "docs" / "images"
STYLE = {"font.family": "DejaVu Sans", "font.size": 11, "axes.titlesize": 13}
DIAL = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)


@functools.cache
def digits_at(detail: float) -> np.ndarray:
    """The map of the digits."""
    return np.asarray(Mercat(detail=detail, random_state=0).fit_transform(load_digits().data))


def draw_opening(folder: Path) -> None:
    """The digits with detail 0 and 0.3, side by side."""
    digit = load_digits().target
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    for ax, detail in zip(axes, (0.0, 0.3), strict=True):
        plot.map(digits_at(detail), digit, labels=True, legend=False, size=15, ax=ax)
        ax.set_title(f"detail={detail:g}")
        enlarge_names(ax, 16)
    save(figure, folder / "opening.png", dpi=150)


def enlarge_names(ax: Any, size: float) -> None:
    """Enlarge the class labels and add a halo."""
    for text in ax.texts:
        if text.get_text().isdigit():
            text.set(fontsize=size, path_effects=[withStroke(linewidth=4, foreground="white")])


def draw_hero(folder: Path) -> None:
    """The digits as a map with class labels, and on the globe."""
    Y, digit = digits_at(0.0), load_digits().target
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    plot.map(Y, digit, labels=True, legend=False, size=15, ax=left)
    plot.globe(Y, digit, labels=True, legend=False, size=9, ax=right)
    right.set_xlabel("")
    enlarge_names(left, 16)
    enlarge_names(right, 12)
    save(figure, folder / "hero.png", dpi=165)


def draw_smiley(folder: Path) -> None:
    """The Smiley data, and Mercat's map of them."""
    X, part = datasets.smiley(random_state=0)
    Y = Mercat(random_state=0).fit_transform(X)
    axes = plot.compare({"Original": X, "Mercat": upright(X, Y)}, part, size=4)
    figure = axes[0].figure
    figure.set_size_inches(9.4, 4.2)
    save(figure, folder / "smiley.png", dpi=150)


def upright(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Rotate or mirror Y about the centre of the map to the orientation of the data X.

    Angles do not change.
    """
    flat = projections.project(Y, "lambert")
    return projections.inverse(facing(flat, X, mirror=True), "lambert")


def draw_detail(folder: Path) -> None:
    """The digits for several values of `detail`, and its effect on the measures."""
    X, digit = load_digits(return_X_y=True)
    dial = {d: digits_at(d) for d in DIAL}
    embeddings = {f"detail = {d:g}": dial[d] for d in (0.0, 0.1, 0.3, 1.0)}
    axes = plot.compare(embeddings, digit, projection="lambert", labels=True, legend=False, size=5)
    figure = axes[0].figure
    figure.set_size_inches(9.4, 8.6)
    save(figure, folder / "detail.png", dpi=110)
    axes = plot.tradeoff(X, dial, {"PCA": PCA(2).fit_transform(X)})
    figure = axes[0].figure
    figure.set_size_inches(9.4, 3.8)
    save(figure, folder / "tradeoff.png", dpi=110)


def draw_explorer(folder: Path) -> None:
    """The explorer with a point pinned, its picture, and lines to its neighbours in the data."""
    from playwright.sync_api import sync_playwright

    X, digit = load_digits(return_X_y=True)
    model = Mercat(random_state=0).fit(X)
    nearest = NearestNeighbors(n_neighbors=8).fit(X).kneighbors(return_distance=False)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as pages, sync_playwright() as playwright:
        path = viewer.to_html(
            model.embedding_,
            {"digit": digit.astype(str), "ink": X.sum(axis=1)},
            Path(pages) / "digits.html",
            title="Handwritten digits",
            point_loss=model.point_loss_,
            neighbors=nearest,
            images=X.reshape(-1, 8, 8) / 16,
            theme="dark",
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        stage = page.locator(".stage").bounding_box()
        at = page.evaluate("mercat.project(700, 'map')")
        page.mouse.click(stage["x"] + at[0], stage["y"] + at[1])
        page.mouse.move(2, 2)
        page.wait_for_timeout(500)
        page.screenshot(path=folder / "explorer.png")
        browser.close()


def save(figure: Any, path: Path, *, dpi: int) -> None:
    """Write a picture in 256 colours, which halves its size."""
    figure.savefig(path, dpi=dpi)
    plt.close(figure)
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


PICTURES = {
    "opening": draw_opening,
    "hero": draw_hero,
    "detail": draw_detail,
    "smiley": draw_smiley,
    "explorer": draw_explorer,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures to draw; all by default")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="output folder")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in PICTURES]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(PICTURES)}, got {unknown[0]}.")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or PICTURES:
        with mpl.rc_context(STYLE):
            PICTURES[name](options.folder)
        print(name, flush=True)


if __name__ == "__main__":
    main()
