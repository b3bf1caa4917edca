"""Reference data of each set, and the paper's measures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import methods
from benchmarks.harness.data import Data
from mercat import metrics
from mercat._data.threads import Workers
from mercat._math.angles import ABSOLUTE
from mercat._math.sphere import normalize
from mercat._reduce.reducer import denoise
from mercat._solve.losses import AngleLoss

MEASURES = ("angle", "distance", "neighborhood", "density")


class Reference(NamedTuple):
    """A data set and the reference data for its measures."""

    data: Data
    X: np.ndarray  # for angles, distances and densities
    denoised: np.ndarray  # for neighbourhoods: by ScreeNOT, as the paper did


def reference(data: Data, n_components: int | None) -> Reference:
    """Reference of a data set: its first `n_components` principal components if it has more columns.

    If `n_components` is None, all columns are used."""
    has_few_columns = n_components is None or data.X.shape[1] <= n_components
    X = data.X if has_few_columns else methods.principal_components(data.X, n_components)
    return Reference(data, X, denoise(data.X, "auto"))


def four_measures(ref: Reference, Y: np.ndarray) -> dict[str, metrics.Score]:
    """The paper's measures of an embedding."""
    geometry: Any = "sphere" if Y.shape[1] == 3 else "euclidean"
    scores = (
        metrics.angle_preservation(ref.X, Y, geometry=geometry),
        metrics.distance_preservation(ref.X, Y, geometry=geometry),
        metrics.neighborhood_preservation(ref.denoised, Y, geometry=geometry),
        metrics.density_preservation(ref.X, Y, geometry=geometry),
    )
    return dict(zip(MEASURES, scores, strict=True))


def paper_loss(X_hat: np.ndarray, Y: np.ndarray, n_points: int) -> float:
    """The paper's loss: root mean squared difference of cosines over all triples of `n_points` points."""
    rows = np.random.default_rng(0).permutation(len(Y))[:n_points]
    with Workers(2) as workers:
        loss = AngleLoss(X_hat[rows], line=ABSOLUTE, workers=workers)
        return loss.judge(normalize(Y[rows].astype(np.float64))).loss
