"""Measures of the quality of embeddings on the sphere and in Euclidean space.

Most measures take the data X and the embedding Y and return a :class:`Score`, a float with a standard error.
Small data are measured in full, large data on a seeded random sample in bounded memory. The measures of
angles, distances, neighbourhoods and densities are those of the paper.
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
