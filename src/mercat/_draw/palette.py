"""Colours for categories that are distinguishable with any colour vision.

The first eight are those of Okabe and Ito. Each further one is as far as possible from all before it, from
white and from the grey of missing values, under the kind of colour vision with the smallest difference. So
the first k colours do not depend on how many follow. On a dark background, dark colours are lightened.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle, islice

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MISSING = "#BDBDBD"
MISSING_ON_DARK = "#5C6474"
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
# Linear RGB to OKLab (Ottosson 2020), in which distances are perceptual.
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
# Number of different colours; they repeat after these.
N_COLORS = 200
# Lightness in OKLab. Darker colours have no visible hue, paler ones no contrast to white.
_DARKEST, _PALEST = 0.4, 0.88
# On a dark background, colours darker than the first are lightened at least to the second (a contrast of 3 to
# the globe).
_DARKEST_ON_DARK, _MIN_ON_DARK = 0.53, 0.55


def perceived(colors: Floats) -> Floats:
    """OKLab coordinates of sRGB colours in [0, 1] for each of the four visions, (4, n, 3)."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    simulated = np.clip(np.einsum("vij,nj->vni", _VISIONS, linear), 0, 1)
    lab: Floats = np.cbrt(simulated @ _TO_LMS.T) @ _TO_LAB.T
    return lab


def to_rgb(color: str) -> Floats:
    """The three channels of "#RRGGBB" in [0, 1]."""
    return np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def _to_hex(rgb: Floats) -> str:
    """ "#RRGGBB" of three channels in [0, 1]."""
    return "#{:02X}{:02X}{:02X}".format(*np.rint(255 * rgb).astype(int))


def categorical(n: int) -> tuple[str, ...]:
    """n colours, "#RRGGBB" each, for white paper; the first k of them are `categorical(k)`.

    They repeat after `N_COLORS`.
    """
    table = OKABE_ITO if n <= len(OKABE_ITO) else _all_colors()
    return tuple(islice(cycle(table), n))


@lru_cache
def _all_colors() -> tuple[str, ...]:
    """Okabe and Ito's colours and the further ones, `N_COLORS` in all."""
    levels = np.linspace(0, 1, 16)
    grid = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)
    candidates = perceived(grid)
    usable = (candidates[0, :, 0] > _DARKEST) & (candidates[0, :, 0] < _PALEST)
    grid, candidates = grid[usable], candidates[:, usable]
    colors = list(OKABE_ITO)
    nearest = _nearest(candidates, (*OKABE_ITO, MISSING, "#FFFFFF"))
    while len(colors) < N_COLORS:
        colors.append(_to_hex(grid[nearest.argmax()]))
        nearest = np.minimum(nearest, _nearest(candidates, colors[-1:]))
    return tuple(colors)


@lru_cache
def on_dark(colors: tuple[str, ...]) -> tuple[str, ...]:
    """The colours for a dark background: dark ones are lightened, in the same hue.

    The lightness of each is chosen so that its distance from the others and from the grey of missing values
    is largest.
    """
    lab = perceived(np.array([to_rgb(color) for color in colors]).reshape(-1, 3))[0]
    dark = lab[:, 0] < _DARKEST_ON_DARK
    lightened = {k: colors[k] for k in np.flatnonzero(~dark).tolist()}
    for k in np.flatnonzero(dark).tolist():
        lighter = np.tile(lab[k], (32, 1))
        lighter[:, 0] = np.linspace(_MIN_ON_DARK, _PALEST, 32)
        candidates = _from_lab(lighter)
        nearest = _nearest(perceived(candidates), (*set(lightened.values()), MISSING_ON_DARK))
        lightened[k] = _to_hex(candidates[nearest.argmax()])
    return tuple(lightened[k] for k in range(len(colors)))


def _nearest(candidates: Floats, colors: Sequence[str]) -> Floats:
    """Distance of each candidate (4, n, 3) to the nearest colour, the smallest over the four visions."""
    others = perceived(np.array([to_rgb(color) for color in colors]))
    distance = np.linalg.norm(candidates[:, :, None] - others[:, None], axis=-1)
    nearest: Floats = distance.min(axis=(0, 2))
    return nearest


def _from_lab(lab: Floats) -> Floats:
    """sRGB in [0, 1] of OKLab coordinates, clipped to the gamut."""
    linear = (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
