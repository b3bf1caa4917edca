"""Colours for categories that readers of any colour vision can tell apart.

The first eight are Okabe and Ito's. Further ones are chosen one by one, each as far as can be
from all before it, from the paper's white and from the grey of missing values, in the eyes of
whichever reader sees the smallest difference. So the first k colours never depend on how many
follow.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MISSING = "#BDBDBD"
OKABE_ITO = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # bluish green
    "#D55E00",  # vermilion
    "#CC79A7",  # reddish purple
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow
    "#000000",  # black
)

# Simulated vision on linear RGB: full, and without the long-, middle- and short-wave cones
# (Machado, Oliveira and Fernandes 2009, severity 1).
_VISIONS = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ]
)
# Linear RGB to OKLab (Ottosson 2020), in which distances follow what the eye sees.
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def seen(colors: Floats) -> Floats:
    """OKLab coordinates of sRGB colours in [0, 1] for each of the four visions, (4, n, 3)."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    simulated = np.clip(np.einsum("vij,nj->vni", _VISIONS, linear), 0, 1)
    lab: Floats = np.cbrt(simulated @ _TO_LMS.T) @ _TO_LAB.T
    return lab


def to_rgb(color: str) -> Floats:
    """The three channels of "#RRGGBB" in [0, 1]."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255


@lru_cache
def categorical(n: int) -> tuple[str, ...]:
    """n colours, "#RRGGBB" each; the first k of them are `categorical(k)`."""
    chosen = list(OKABE_ITO[:n])
    if n <= len(OKABE_ITO):
        return tuple(chosen)
    levels = np.linspace(0, 255, 16).astype(int)
    grid = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)
    candidates = seen(grid / 255)
    # Neither too dark to have a hue nor too pale for white paper.
    usable = (candidates[0, :, 0] > 0.4) & (candidates[0, :, 0] < 0.88)
    grid, candidates = grid[usable], candidates[:, usable]
    nearest = np.full(len(grid), np.inf)

    def step_away(color: str) -> Floats:
        other = seen(to_rgb(color)[None])
        distance = np.linalg.norm(candidates - other, axis=2).min(axis=0)
        return np.asarray(np.minimum(nearest, distance))

    for color in (*OKABE_ITO, MISSING, "#FFFFFF"):
        nearest = step_away(color)
    while len(chosen) < n:
        chosen.append("#{:02X}{:02X}{:02X}".format(*grid[nearest.argmax()]))
        nearest = step_away(chosen[-1])
    return tuple(chosen)
