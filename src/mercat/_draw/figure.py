"""New figures: axes of a map, or a grid of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(aspect: float) -> Axes:
    import matplotlib.pyplot as plt

    height = min(5.6 / aspect + 0.7, 6.3)
    return plt.subplots(figsize=(7.2, height), layout=_layout())[1]


def grid(
    n: int,
    *,
    ncols: int | None = None,
    wspace: float | None = None,
    size: tuple[float, float] | None = None,
) -> NDArray[Any]:
    """Axes for n panels: up to three in one row, more in rows of similar length, or of `ncols`."""
    import matplotlib.pyplot as plt

    rows = 2 if n == 4 else -(-n // 3)
    columns = -(-n // rows) if ncols is None else min(ncols, n)
    rows = -(-n // columns)
    width, height = size or (3.6 + 1 / columns, 3.2)
    layout = _layout()
    if wspace is not None:
        layout.set(wspace=wspace)
    _, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        layout=layout,
        squeeze=False,
    )
    for ax in axes.flat[n:]:
        ax.remove()
    return np.asarray(axes.flat[:n])


def panel_size() -> tuple[float, float] | None:
    """Size in inches if the user has set it, such as by ``sc.set_figure_params``, else None."""
    import matplotlib

    size = tuple(matplotlib.rcParams["figure.figsize"])
    return None if size == tuple(matplotlib.rcParamsDefault["figure.figsize"]) else size


def _layout() -> Any:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)


def require_matplotlib() -> None:
    require("matplotlib", "mercat.plot", "plot")
