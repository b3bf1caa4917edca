"""Plot of the trade-off controlled by `detail`, for `plot.tradeoff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .palette import categorical

Points = dict[str, tuple[float, float, float]]  # neighbourhood, angle, distance


def measure(X: Any, embeddings: Mapping[Any, Any], **options: Any) -> Points:
    """Neighbourhood, angle and distance preservation of each embedding of X, by name."""
    from .. import metrics  # loads scikit-learn, which other figures do not need

    points = {}
    for name, Y in embeddings.items():
        points[f"{name:g}" if isinstance(name, float) else str(name)] = (
            float(metrics.neighborhood_preservation(X, Y, **options)),
            float(metrics.angle_preservation(X, Y)),
            float(metrics.distance_preservation(X, Y)),
        )
    return points


def draw(axes: Sequence[Any], dial: Points, others: Points) -> None:
    """Draw values of `detail` as a labelled line, other methods as labelled points."""
    mercat_color, *colors = categorical(max(8, 1 + len(others)))
    for ax, measure, title in zip(axes, (1, 2), ("angle", "distance"), strict=True):
        path = np.array([(p[0], p[measure]) for p in dial.values()])
        ax.plot(*path.T, "-o", color=mercat_color, markersize=5, zorder=3)
        labels = [(name, (p[0], p[measure]), mercat_color) for name, p in dial.items()]
        for (name, p), color in zip(others.items(), colors, strict=False):
            ax.plot(p[0], p[measure], "D", color=color, markersize=6, zorder=2)
            labels.append((name, (p[0], p[measure]), color))
        for name, position, color in labels:
            ax.annotate(
                name,
                position,
                xytext=(5, 5),
                textcoords="offset points",
                color=color,
                fontsize="small",
                parse_math=False,
            )
        ax.margins(0.12)
        ax.set_xlabel("neighbourhood preservation")
        ax.set_ylabel(f"{title} preservation")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
