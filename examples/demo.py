"""Embed the digits and the Smiley data with and without detail; write measures, maps and explorers."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from mercat import Mercat, datasets, metrics, plot, viewer


def main() -> None:
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    digits, digit = load_digits(return_X_y=True)
    smiley, part = datasets.smiley(random_state=0)
    sets = {"Digits": (digits, digit.astype(str)), "Smiley": (smiley, part)}
    figure, axes = plt.subplots(2, 2, figsize=(13, 10), layout="constrained")
    runs = [(name, detail) for name in sets for detail in (0, 0.3)]
    for ax, (name, detail) in zip(axes.flat, runs, strict=True):
        X, labels = sets[name]
        print(f"{name}: {X.shape[0]} points in {X.shape[1]} dimensions, detail={detail}")
        start = time.perf_counter()
        model = Mercat(detail=detail, random_state=0, verbose=True)
        Y = model.fit_transform(X)
        print(f"{model.status_} {time.perf_counter() - start:.1f} s")
        print(metrics.report(X, Y, labels=labels, random_state=0), end="\n\n")
        plot.map(Y, color=labels, ax=ax)
        ax.set_title(f"{name}: detail={detail}")
        page = viewer.to_html(
            Y,
            {"label": labels},
            folder / f"{name.lower()}-{detail}.html",
            title=f"{name} by Mercat, detail={detail}",
            point_loss=model.point_loss_,
        )
        print(f"Explorer: {page.resolve()}", end="\n\n")
    figure.savefig(folder / "maps.png", dpi=110)
    print(f"Maps: {(folder / 'maps.png').resolve()}")


if __name__ == "__main__":
    main()
