# mypy: ignore-errors
"""Kernels in Triton: one program per block of points, which loops over neighbours, grid nodes or landmarks.

Sums run in a fixed order, or over integers, so that the same input gives the same bits in every run. Kernels
are not specialised for sizes: each is compiled once for any number of rows, columns and landmarks.
"""

from .angles import moments, weights
from .detail import angle_force, attraction, longest_steps, move, read_field, spread
from .distances import arc_residuals, half_ranks, inverse_distances
from .placement import bfgs, choose, energy, linear_parts

__all__ = [
    "angle_force",
    "arc_residuals",
    "attraction",
    "bfgs",
    "choose",
    "energy",
    "half_ranks",
    "inverse_distances",
    "linear_parts",
    "longest_steps",
    "moments",
    "move",
    "read_field",
    "spread",
    "weights",
]
