"""Explorers that pages embed: each is one HTML file beside the pages."""

from __future__ import annotations

from pathlib import Path

from fits import digits

from mercat import viewer


def write(folder: Path) -> None:
    pages = folder / "pages" / "explorer"
    pages.mkdir(parents=True, exist_ok=True)
    data, model = digits()
    columns = {"digit": data.target.astype(str), "ink": data.data.sum(axis=1)}
    viewer.to_html(
        model.embedding_,
        columns,
        pages / "digits.html",
        title="Handwritten digits",
        color="digit",
        point_loss=model.point_loss_,
    )
