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

    found = {}
    for name, Y in embeddings.items():
        found[f"{name:g}" if isinstance(name, float) else str(name)] = (
            float(metrics.neighborhood_preservation(X, Y, **options)),
            float(metrics.angle_preservation(X, Y)),
            float(metrics.distance_preservation(X, Y)),
        )
    return found


def draw(axes: Sequence[Any], dial: Points, others: Points) -> None:
    """Draw values of `detail` as a labelled line, other methods as labelled points."""
    line, *shades = categorical(max(8, 1 + len(others)))
    for ax, which, title in zip(axes, (1, 2), ("angle", "distance"), strict=True):
        path = np.array([(p[0], p[which]) for p in dial.values()])
        ax.plot(*path.T, "-o", color=line, markersize=5, zorder=3)
        marks = [(name, (p[0], p[which]), line) for name, p in dial.items()]
        for (name, p), shade in zip(others.items(), shades, strict=False):
            ax.plot(p[0], p[which], "D", color=shade, markersize=6, zorder=2)
            marks.append((name, (p[0], p[which]), shade))
        for name, place, shade in marks:
            ax.annotate(
                name,
                place,
                xytext=(5, 5),
                textcoords="offset points",
                color=shade,
                fontsize="small",
                parse_math=False,
            )
        ax.margins(0.12)
        ax.set_xlabel("neighbourhood preservation")
        ax.set_ylabel(f"{title} preservation")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
