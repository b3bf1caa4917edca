"""How faithful an embedding is: measures for maps on the sphere, in the plane and in space.

The measures of angles, distances, neighbourhoods and densities are the paper's. Each takes the data X and
the embedding Y (two take only Y and class labels) and returns a :class:`Score`: a float with the standard
error of sampling. Small data are measured in full, large data on a seeded sample in bounded memory;
`class_connectivity` always uses all points.
"""

from ._angle import angle_preservation
from ._density import density_preservation
from ._distance import centroid_preservation, distance_preservation, random_triplet_accuracy
from ._neighborhood import (
    class_connectivity,
    continuity,
    knn_accuracy,
    neighborhood_preservation,
    trustworthiness,
)
from ._report import report
from ._score import Report, Score
from ._structure import false_structure, torn_neighbors

__all__ = [
    "Report",
    "Score",
    "angle_preservation",
    "centroid_preservation",
    "class_connectivity",
    "continuity",
    "density_preservation",
    "distance_preservation",
    "false_structure",
    "knn_accuracy",
    "neighborhood_preservation",
    "random_triplet_accuracy",
    "report",
    "torn_neighbors",
    "trustworthiness",
]
