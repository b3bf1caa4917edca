"""Explorers embedded in pages, each in a separate HTML file."""

from __future__ import annotations

from pathlib import Path

from fits import digits
from sklearn.neighbors import NearestNeighbors

from mercat import viewer


def write(folder: Path) -> None:
    pages = folder / "pages" / "explorer"
    pages.mkdir(parents=True, exist_ok=True)
    data, model = digits()
    nearest = NearestNeighbors(n_neighbors=8).fit(data.data).kneighbors(return_distance=False)
    columns = {"digit": data.target.astype(str), "ink": data.data.sum(axis=1)}
    viewer.to_html(
        model.embedding_,
        columns,
        pages / "digits.html",
        title="Handwritten digits",
        color="digit",
        point_loss=model.point_loss_,
        neighbors=nearest,
        images=data.images / 16,
    )
