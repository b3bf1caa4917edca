"""The figures, from embeddings and results.

Embeddings that are not in the cache are computed again; a method that is not installed has an empty panel.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import data
from benchmarks.harness.facing import facing
from benchmarks.harness.methods import title
from mercat import plot, projections

from . import neighborhood, real, rivals, spectrum, synthetic, theory
from .experiment import HERE, Task, embedding, reference, store

FOLDER = HERE / "figures"
SHOWN = ("umap", "tsne", "ncvis", "densmap", "mercat")
COLORS = {"singular vectors": "#0072B2", "components": "#E69F00", "naive": "#D55E00"}
NAMES = {
    "singular vectors": "singular vectors (Theorem 1)",
    "components": "principal components",
    "naive": "data as they are (Theorem 2)",
}


def main(folder: str | None) -> list[Path]:
    """Draw all figures whose data are available and return their paths."""
    import matplotlib

    matplotlib.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    drawn = [
        _embeddings("toy", synthetic.TABLE, ("smiley", "mammoth", "circle"), folder, raw=True),
        _embeddings("synthetic", synthetic.TABLE, synthetic.NAMES[3:], folder),
        _embeddings("real", real.TABLE, real.NAMES, folder),
        _mammoth(folder),
        _spectrum(),
        _theory(),
        rivals.main(),
    ]
    return [path for path in drawn if path is not None]


def _save(figure: Any, name: str) -> Path:
    import matplotlib.pyplot as plt

    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _grid(rows: int, columns: int, width: float = 2.4, height: float = 2.4) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained"
    )


# ------------------------------------------------------------------ embeddings


def _embeddings(
    name: str, table: str, sets: Any, folder: str | None, *, raw: bool = False
) -> Path | None:
    """One row per set, one column per method; `raw` adds the data, and all maps are rotated onto them."""
    present = [s for s in sets if _has_data(s, folder)]
    if not present:
        return None
    figure, axes = _grid(len(present), len(SHOWN) + raw)
    for i, (row, set_name) in enumerate(zip(axes, present, strict=True)):
        loaded = reference(set_name, folder, 1).data
        task = functools.partial(Task, seed=1) if table == "synthetic" else real.task
        panels = {title(m): _flat(embedding(table, task(set_name, m), folder)) for m in SHOWN}
        if raw:
            view = loaded.X[:, :2]  # the mammoth from its side
            turned = {k: None if Y is None else facing(Y, view) for k, Y in panels.items()}
            panels = {"Data": view, **turned}
        for ax, (heading, Y) in zip(row, panels.items(), strict=True):
            _panel(ax, Y, loaded.labels, heading if i == 0 else "")
        note = " (stand-in)" if loaded.note.startswith("stand-in") else ""
        row[0].set_ylabel(data.SETS[set_name].title + note, fontsize=11)
    return _save(figure, name)


def _mammoth(folder: str | None) -> Path | None:
    if not _has_data("mammoth", folder):
        return None
    sizes = neighborhood.SIZES["mammoth"]
    figure, axes = _grid(len(neighborhood.METHODS), len(sizes))
    labels = reference("mammoth", folder, 1).data.labels
    for i, (row, method) in enumerate(zip(axes, neighborhood.METHODS, strict=True)):
        for ax, size in zip(row, sizes, strict=True):
            Y = embedding(neighborhood.TABLE, Task("mammoth", method, 1, neighbors=size), folder)
            _panel(ax, Y, labels, str(size) if i == 0 else "")
        row[0].set_ylabel(title(method), fontsize=11)
    return _save(figure, "mammoth")


def _panel(ax: Any, Y: np.ndarray | None, labels: np.ndarray, heading: str) -> None:
    if Y is None:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "not available", ha="center", transform=ax.transAxes)
        ax.set_title(heading)
        return
    # Angles have a cyclic colour scale.
    palette = "twilight" if labels.dtype.kind == "f" else None
    plot.compare({heading: Y}, labels, axes=[ax], legend=False, palette=palette)


def _flat(Y: np.ndarray | None) -> np.ndarray | None:
    """Mercator map of points on a sphere, centred on them.

    Points within 5 degrees of the map's poles are drawn at that latitude.
    """
    if Y is None or Y.shape[1] == 2:
        return Y
    x, y, z = Y.astype(np.float64).mean(axis=0)
    center = (np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y))))
    plane = projections.project(Y, "mercator", center=center)
    top = np.arctanh(np.sin(np.radians(85)))
    return np.column_stack([plane[:, 0], np.clip(plane[:, 1], -top, top)])


def _has_data(name: str, folder: str | None) -> bool:
    try:
        reference(name, folder, 1)
    except FileNotFoundError:
        return False
    return True


# ------------------------------------------------------------------ spectrum and theory


def _spectrum() -> Path | None:
    record = store(spectrum.TABLE).records.get("paul15", {"status": "no data"})
    if record["status"] != "ok":
        return None
    figure, ((left, right),) = _grid(1, 2, 5.5, 3.6)
    colors = ["#0072B2", "#D55E00", "#009E73"]
    for color, (name, found) in zip(colors, record["variants"].items(), strict=True):
        low, _, middle, _, high = np.array(found["singular_values"])
        index = np.arange(1, len(middle) + 1)
        left.fill_between(index, low, high, color=color, alpha=0.2, linewidth=0)
        left.plot(index, middle, color=color, label=name)
        bins = np.geomspace(1, 100, 60)
        right.hist(found["effective_ranks"], bins=bins, histtype="step", color=color, linewidth=1.5)
    left.set(xlabel="index", ylabel="singular value", title="Median and range over 500 points")
    left.set_yscale("symlog", linthresh=1)
    left.legend(fontsize=8)
    right.axvline(
        spectrum.PAPER_RANK,
        color="black",
        linestyle="--",
        label=f"the paper's mean, {spectrum.PAPER_RANK}",
    )
    right.set(xlabel="effective rank", ylabel="points", title="Effective rank at each point")
    right.set_xscale("log")
    right.legend(fontsize=8)
    return _save(figure, "spectrum")


def _theory() -> Path | None:
    records = store(theory.TABLE).records
    if not set(theory.PARTS) <= set(records):
        return None
    figure, ((a, b), (c, d)) = _grid(2, 2, 5, 3.6)
    for ax, profile in zip((a, b), theory.PROFILES, strict=True):
        _plot_strength(ax, records["strength"]["rows"], profile)
    _plot_limit(c, records["convergence"]["rows"])
    _plot_legs(d, records["subsampling"]["rows"])
    return _save(figure, "theory")


def _plot_strength(ax: Any, rows: Any, profile: str) -> None:
    for name, color in COLORS.items():
        x, y = zip(*theory.errors(rows, profile, name).items(), strict=True)
        ax.loglog(x, y, "o-", markersize=3, color=color, label=NAMES[name])
    ax.set(xlabel="strength of the signal", ylabel="mean error of angles (rad)", title=profile)
    ax.legend(fontsize=8)


def _plot_limit(ax: Any, rows: Any) -> None:
    chosen = [row for row in rows if row[0] == theory.N]
    ax.plot([row[1] for row in chosen], [row[3] for row in chosen], ".", label="simulated")
    x = np.geomspace(1.2, 64, 100)
    ax.plot(x, theory.limit(x, theory.N / theory.D), color="black", label="limit of Theorem 1")
    ax.set(xscale="log", yscale="log", xlabel="strength of the signal", ylabel="lost of u uᵀ")
    ax.set_title("What the estimate loses")
    ax.legend(fontsize=8)


def _plot_legs(ax: Any, rows: Any) -> None:
    for name, style in (("gauss10", "--"), ("paul15", "-")):
        chosen = [row for row in rows if row[0] == name]
        for column, what, color in ((3, "loss", "#0072B2"), (4, "gradient", "#D55E00")):
            x, y = zip(*theory.means(chosen, 1, column).items(), strict=True)
            label = f"{what}, {data.SETS[name].title}"
            ax.loglog(x, y, style, marker="o", markersize=3, color=color, label=label)
    ax.axvline(64, color="grey", linewidth=0.8)
    ax.set(xlabel="legs an apex", ylabel="relative error", title="Subsampling (the paper: 64)")
    ax.legend(fontsize=8)
