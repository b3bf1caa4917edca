"""Fraction of a map filled by the central 98 % of the points along each axis.

    python -m benchmarks.frame --data DIR [--size 3000]

For each set, with detail 0 and 0.3: the fraction of the width and height that the bounding box of these
points fills on `plot.map`; on ``X_mercat`` with the default margins of matplotlib, and thus scanpy; and on a
Mercator map of all points. Results go to benchmarks/results/frame.json.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.harness.record import Store, stamp
from benchmarks.orientation import DETAILS, SETS, load
from mercat import Mercat, plot
from mercat._draw.flat_map import FlatMap
from mercat.projections import project

RESULTS = Path(__file__).parent / "results" / "frame.json"
TOP = np.pi  # limit of Mercator maps, a latitude of 85.05 degrees
MARGIN = 0.05  # matplotlib's margin on each side, relative to the extent of all points


def central_extent(P: np.ndarray) -> np.ndarray:
    """Width and height of the box between the 1 % and 99 % quantiles along each axis."""
    low, high = np.quantile(P, [0.01, 0.99], axis=0)
    return np.asarray(high - low)


def filled_in_default_axes(P: np.ndarray) -> np.ndarray:
    """Fraction of matplotlib's default axes that the box of the central points fills."""
    return central_extent(P) / (np.ptp(P, axis=0) * (1 + 2 * MARGIN))


def filled_fractions(Y: np.ndarray) -> dict[str, Any]:
    """Fraction that the box of the central points fills on each of the three kinds of maps."""
    import matplotlib.pyplot as plt

    ax = plot.map(Y)
    extent = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())])
    n_edge = sum(len(points.get_offsets()) for points in ax.collections[1:])
    plt.close(ax.figure)
    flat_map = FlatMap.of(Y)
    flat, moved = flat_map.positions(Y)
    mercator = project(Y, center=(flat_map.center, 0))
    parts_by_map = {
        "all points": filled_in_default_axes(np.clip(mercator, -TOP, TOP)),
        "plot.map": central_extent(mercator) / extent,
        "X_mercat": filled_in_default_axes(flat),
    }
    fractions = {
        name: [round(float(part), 3) for part in parts] for name, parts in parts_by_map.items()
    }
    return {"filled": fractions, "at the edge": n_edge, "drawn in": int(moved.sum())}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--size", type=int, default=3000, help="maximum number of points per set")
    options = parser.parse_args()
    matplotlib.use("Agg")
    store = Store(RESULTS)
    warnings.simplefilter("ignore")
    for name in SETS:
        X = load(name, options.data, options.size)
        for detail in DETAILS:
            Y = Mercat(detail=detail, random_state=0).fit_transform(X).astype(np.float64)
            record = filled_fractions(Y)
            store.put(f"{name}/{detail:g}", stamp(set=name, detail=detail, n=len(X), **record))
            parts = "   ".join(f"{key} {w:.2f} {h:.2f}" for key, (w, h) in record["filled"].items())
            print(
                f"{name}/{detail:g}".ljust(16),
                parts,
                f"  at the edge {record['at the edge']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
