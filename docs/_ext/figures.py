"""Figures of the pages, drawn at each build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from fits import blood_cells, digits
from threadpoolctl import threadpool_limits

from benchmarks.harness.facing import facing
from mercat import Mercat, datasets, metrics, plot, projections, uncertainty
from mercat._math.definition import spherical_triple_cosines, triple_cosines

STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "savefig.dpi": 130,
}
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#8a8f98"


def write(folder: Path) -> None:
    """Draw all figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in FIGURES:
        with mpl.rc_context(STYLE):
            figure = draw()
            figure.savefig(folder / f"{draw.__name__}.png")
            plt.close(figure)


def angle_on_sphere() -> Any:
    """The angle at one point between the geodesics to two others, in the data and on the globe."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.9), layout="constrained")
    flat = np.array([[0.0, 0.0], [1.9, 0.35], [0.75, 1.5]])
    for leg in flat[1:]:
        left.plot(*np.array([flat[0], leg]).T, color=BLUE, lw=2)
    bearing = np.arctan2(flat[1:, 1], flat[1:, 0])
    t = np.linspace(*bearing, 40)
    left.plot(0.45 * np.cos(t), 0.45 * np.sin(t), color=ORANGE, lw=2)
    left.plot(*flat.T, "o", color="black", ms=5)
    for point, name in zip(flat, ("$X_i$", "$X_j$", "$X_k$"), strict=True):
        left.annotate(name, point, xytext=(6, 6), textcoords="offset points")
    left.annotate("a = cos of this angle", (0.5, 0.32), color=ORANGE)
    left.set(title="in the data", xlim=(-0.3, 2.4), ylim=(-0.3, 1.9), aspect="equal")
    left.axis("off")

    degrees = np.array([[-25.0, -20.0], [50.0, 5.0], [0.0, 52.0]])
    lon, lat = np.deg2rad(degrees).T
    Y = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    center = (10, 15)
    plot.globe(Y, color="black", center=center, size=22, legend=False, ax=right)
    tangents = []
    for leg in Y[1:]:
        tangent = leg - (Y[0] @ leg) * Y[0]
        tangents.append(tangent / np.linalg.norm(tangent))
        s = np.linspace(0, np.arccos(Y[0] @ leg), 60)[:, None]
        arc = np.cos(s) * Y[0] + np.sin(s) * tangents[-1]
        right.plot(*projections.project(arc, "orthographic", center=center).T, color=BLUE, lw=2)
    u = tangents[0]
    v = tangents[1] - (tangents[1] @ u) * u
    v /= np.linalg.norm(v)
    turn = np.linspace(0, np.arccos(np.clip(tangents[0] @ tangents[1], -1, 1)), 40)[:, None]
    ring = np.cos(0.3) * Y[0] + np.sin(0.3) * (np.cos(turn) * u + np.sin(turn) * v)
    right.plot(*projections.project(ring, "orthographic", center=center).T, color=ORANGE, lw=2)
    flat = projections.project(Y, "orthographic", center=center)
    for point, name in zip(flat, ("$Y_i$", "$Y_j$", "$Y_k$"), strict=True):
        right.annotate(name, point, xytext=(6, 6), textcoords="offset points")
    right.set(title="on the map: between geodesics", xlabel="")
    return figure


def crowded_cosines() -> Any:
    """Cosines of random triples, which concentrate around 1/2 in high dimensions."""
    figure, ax = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    rng = np.random.default_rng(0)
    for d, color in ((2, GRAY), (5, GREEN), (20, BLUE), (100, ORANGE)):
        X = rng.normal(size=(400, d))
        triples = _triples(400, 60_000, rng)
        ax.hist(
            triple_cosines(X, triples),
            bins=np.linspace(-1, 1, 121),
            density=True,
            histtype="step",
            lw=1.8,
            color=color,
            label=f"{d} dimensions",
        )
    ax.axvline(0.5, color="black", lw=0.8, ls=":")
    ax.set(xlabel="cosine of the angle between three random points", yticks=[])
    ax.legend(frameon=False)
    ax.spines["left"].set_visible(False)
    return figure


def calibration() -> Any:
    """Cosines of the digits against those of two maps, each with its regression line."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.0), sharey=True, layout="constrained")
    rng = np.random.default_rng(0)
    for ax, objective in zip(axes, ("absolute", "calibrated"), strict=True):
        data, model = digits(objective=objective)
        triples = _triples(len(data.data), 60_000, rng)
        a = triple_cosines(data.data, triples)
        b = spherical_triple_cosines(model.embedding_.astype(np.float64), triples)
        ax.hexbin(b, a, gridsize=45, cmap="Blues", bins="log", mincnt=1, extent=(-1, 1, -0.6, 1))
        alpha, beta = model.calibration_
        ends = np.array([-1, 1])
        ax.plot(ends, alpha + beta * ends, color=ORANGE, lw=2)
        ax.set(
            title=f"{objective}: correlation {np.corrcoef(a, b)[0, 1]:.2f}",
            xlabel="cosine on the map, b",
            ylim=(-0.6, 1),
        )
    axes[0].set_ylabel("cosine in the data, a")
    return figure


def denoised_angles() -> Any:
    """True angles of a known structure against those of noisy data, and of its components."""
    rng = np.random.default_rng(1)
    n, d = 400, 1000
    t = rng.uniform(0, 2 * np.pi, n)
    planted = np.column_stack([np.cos(t), np.sin(2 * t), np.cos(3 * t)])
    U, _ = np.linalg.qr(planted - planted.mean(axis=0))
    X, _, _ = datasets.spiked(n, d, sigma=[9.0, 9.0, 9.0], U=U, random_state=1)
    X = X - X.mean(axis=0)
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    triples = _triples(n, 4000, rng)
    true = np.rad2deg(np.arccos(np.clip(triple_cosines(U, triples), -1, 1)))
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.8), sharey=True, layout="constrained")
    cases = {
        f"all {d:,} dimensions": X,
        "3 principal components": left[:, :3] * values[:3],
    }
    for ax, (name, data) in zip(axes, cases.items(), strict=True):
        seen = np.rad2deg(np.arccos(np.clip(triple_cosines(data, triples), -1, 1)))
        ax.plot(true, seen, ".", ms=2, color=BLUE, alpha=0.4)
        ax.plot([0, 180], [0, 180], color=ORANGE, lw=1.5)
        ax.set(title=name, xlabel="true angle (degrees)", xticks=range(0, 181, 45))
        ax.set_yticks(range(0, 181, 45))
    axes[0].set_ylabel("angle in the noisy data")
    return figure


def spectrum() -> Any:
    """Components of the digits above the noise, and the effect of keeping more components."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    data, model = digits()
    chosen = digits(n_spectral="auto")[1].components_.shape[0]
    deviation = np.sqrt(model.explained_variance_)
    rank = np.arange(1, len(deviation) + 1)
    left.plot(rank[:chosen], deviation[:chosen], "o", ms=4, color=ORANGE, label='kept by "auto"')
    left.plot(rank[chosen:], deviation[chosen:], "o", ms=4, color=GRAY)
    left.set(xlabel="component", ylabel="standard deviation", title="spectrum of the digits")
    left.legend(frameon=False)
    kept = [2, 3, 5, 10, 20, 50]
    scores = []
    for r in kept:
        Y = digits(n_spectral=r)[1].embedding_
        scores.append(float(metrics.angle_preservation(data.data, Y)))
    right.plot(kept, scores, "o-", color=BLUE)
    right.set(
        xscale="log",
        xticks=kept,
        xticklabels=kept,
        xlabel="n_spectral",
        title="angle preservation, all dimensions",
    )
    right.minorticks_off()
    return figure


def landmarks() -> Any:
    """Effect of the number of landmarks on the digits."""
    figure, ax = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
    sizes = [20, 50, 100, 200, 500, 1000]
    scores = []
    for size in sizes:
        data, model = digits(n_landmarks=size, solver="landmarks")
        scores.append(float(metrics.angle_preservation(data.data, model.embedding_)))
    ax.plot(sizes, scores, "o-", color=BLUE)
    ax.set(xscale="log", xticks=sizes, xticklabels=sizes, xlabel="n_landmarks")
    ax.set_title("angle preservation of the digits")
    ax.minorticks_off()
    return figure


def trust() -> Any:
    """The digits by class and by the loss of each point."""
    data, model = digits()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    plot.map(model.embedding_, data.target, labels=True, legend=False, ax=left)
    left.set_title("digit")
    plot.trust(model, ax=right)
    right.set_title("angle loss of the point")
    return figure


def error_bars() -> Any:
    """Groups on a line with small error bars, and three others that a map cannot show faithfully."""
    rng = np.random.default_rng(0)
    centers = np.zeros((8, 8))
    centers[:5, 0] = [0, 4, 8, 12, 16]
    centers[5:, 0] = 8
    centers[5:, 1:4] = 8 * np.eye(3)
    group = np.arange(240) % 8
    X = centers[group] + rng.normal(size=(240, 8))
    model = Mercat(random_state=0).fit(X)
    bars = uncertainty(model, X, n_maps=8, random_state=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    names = np.array([f"{k + 1}" for k in range(5)] + ["beside"] * 3)[group]
    plot.map(model, names, labels=True, legend=False, ax=left)
    left.set_title("groups")
    plot.trust(model, bars, rows=np.arange(8), ax=right)
    right.set_title("positions on other maps")
    return figure


def cells_by_detail() -> Any:
    """Scanpy's blood cells, with detail 0 and 0.3."""
    import mercat

    adata = blood_cells()
    mercat.tl.mercat(adata, detail=0.3, key_added="sharp")
    figure, axes = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
    mercat.pl.map(adata, "bulk_labels", ax=axes[0], legend_loc=None)
    mercat.pl.map(adata, "bulk_labels", basis="sharp", ax=axes[1])
    axes[0].set_title("detail=0")
    axes[1].set_title("detail=0.3")
    return figure


def cells() -> Any:
    """Scanpy's blood cells, coloured by type and by a marker of monocytes."""
    import mercat

    adata = blood_cells()
    figure, axes = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
    mercat.pl.map(adata, "bulk_labels", ax=axes[0])
    mercat.pl.map(adata, "CST3", ax=axes[1])
    axes[0].set_title("cell type")
    axes[1].set_title("CST3, a marker of monocytes")
    return figure


def side_by_side() -> Any:
    """The Smiley data, embedded by t-SNE and Mercat."""
    from sklearn.manifold import TSNE

    X, part = datasets.smiley(random_state=0)
    few = np.random.default_rng(0).permutation(len(X))[:1000]
    X, part = X[few], part[few]
    with threadpool_limits(1):  # several threads are slow on busy cores
        flat = TSNE(random_state=0).fit_transform(X)
    sphere = Mercat(random_state=0).fit_transform(X)
    disc = projections.project(sphere, "lambert")
    embeddings = {
        "Original": X,
        "t-SNE": facing(flat, X),
        "Mercat": projections.inverse(facing(disc, X), "lambert"),
    }
    axes = plot.compare(embeddings, part, size=6)
    axes[0].figure.set_size_inches(11, 3.2)
    return axes[0].figure


def _triples(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """m triples of three different points."""
    triples = rng.integers(0, n, size=(2 * m, 3))
    i, j, k = triples.T
    return triples[(i != j) & (i != k) & (j != k)][:m]


def first_map() -> Any:
    """The figure drawn by the code of the home page."""
    plt.rcParams["font.size"] = 14
    figure, ax = plt.subplots(figsize=(5.2, 5.2), layout="constrained")
    data, model = digits()
    plot.map(model.embedding_, color=data.target, labels=True, legend=False, ax=ax)
    return figure


FIGURES: tuple[Callable[[], Any], ...] = (
    first_map,
    angle_on_sphere,
    crowded_cosines,
    calibration,
    denoised_angles,
    spectrum,
    landmarks,
    trust,
    error_bars,
    cells_by_detail,
    cells,
    side_by_side,
)
