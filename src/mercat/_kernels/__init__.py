"""Inner loops in C, for NumPy arrays.

Each C source with kernels has a module of the same name that calls them. Each function has a reference
implementation in NumPy, which is used in tests, and if the compiled library is missing or disabled by the
environment variable MERCAT_NATIVE=0:

    if kernels.available():
        return kernels.attraction(...)

In C, inverse distances in the data, 0 for points that coincide, are called `near`.

`device` and `_triton` do the same for GPUs.
"""

from ._library import LANES, aligned_zeros, available, describe, supports, switched
from .affinities import MAX_EDGES, longest_steps
from .angles import apex_gradient, bearings, data_moments, inverse_distances, moments
from .descent import Anchors, anchors_of, attraction, far_forces, move, settle
from .distances import arc_residuals, half_ranks
from .loss import MAX_APICES, Apices, apices_of, loss_forces, loss_sums
from .neighbors import in_order, nearest_in_cells, smallest
from .placement import Landmarks, gradients, landmarks_of, place
from .repulsion import charge, fill_table, filter_spectrum, read_field

__all__ = [
    "LANES",
    "MAX_APICES",
    "MAX_EDGES",
    "Anchors",
    "Apices",
    "Landmarks",
    "aligned_zeros",
    "anchors_of",
    "apex_gradient",
    "apices_of",
    "arc_residuals",
    "attraction",
    "available",
    "bearings",
    "charge",
    "data_moments",
    "describe",
    "far_forces",
    "fill_table",
    "filter_spectrum",
    "gradients",
    "half_ranks",
    "in_order",
    "inverse_distances",
    "landmarks_of",
    "longest_steps",
    "loss_forces",
    "loss_sums",
    "moments",
    "move",
    "nearest_in_cells",
    "place",
    "read_field",
    "settle",
    "smallest",
    "supports",
    "switched",
]
