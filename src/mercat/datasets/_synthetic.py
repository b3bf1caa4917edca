"""Synthetic data of the paper's appendix, and the spiked model of its theory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._data.checks import check_at_least_zero, check_integer, generator
from ._dataset import Dataset

Seed = int | np.random.Generator | None
Floats = npt.NDArray[np.float64]

N_DIMENSIONS = 50
CLUSTER_SIZE = 100


def smiley(n_samples: int = 3000, *, random_state: Seed = 0) -> Dataset:
    """A face in the plane: two eyes, a mouth and the outline of the head.

    A quarter of the points is in the eyes, half is in the outline, a ring of radii 0.9 to 1, and the rest is
    in the mouth, a half ring of radii 0.45 to 0.55. Each part is uniform in area. All coordinates are scaled
    by 2.

    Parameters
    ----------
    n_samples : int, default=3000
        Number of points, at least 8.
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (n_samples, 2) and the name of the part of each point.

    Notes
    -----
    The paper writes the mouth as x = m sin(t), y = -m cos(t) with t in [0, pi], a half circle on the right of
    the face. Its figure shows a smile, as does this function: x = m cos(t), y = -m sin(t).

    Examples
    --------
    >>> from mercat import datasets
    >>> X, labels = datasets.smiley(random_state=1)
    >>> X.shape, sorted(set(labels.tolist()))
    ((3000, 2), ['left eye', 'mouth', 'outline', 'right eye'])
    """
    check_integer("n_samples", n_samples, 8)
    rng = generator(random_state)
    n_eyes, n_outline = n_samples // 4, n_samples // 2
    n_left = n_eyes // 2
    parts = {
        "left eye": np.array([-0.25, 0.25]) + _ring(n_left, 0, 0.1, rng),
        "right eye": np.array([0.25, 0.25]) + _ring(n_eyes - n_left, 0, 0.1, rng),
        "outline": _ring(n_outline, 0.9, 1, rng),
        "mouth": _ring(n_samples - n_eyes - n_outline, 0.45, 0.55, rng),
    }
    # Fold the ring into its lower half; the distribution stays uniform.
    parts["mouth"][:, 1] = -np.abs(parts["mouth"][:, 1])
    labels = np.repeat(list(parts), [len(part) for part in parts.values()])
    return Dataset(2 * np.concatenate(list(parts.values())), labels, source="smiley")


def circle(n_samples: int = 900, *, noise: float = 0.01, random_state: Seed = 0) -> Dataset:
    """Points around a circle of radius 3 in the plane, with Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=900
        Number of points, at least 1.
    noise : float, default=0.01
        Standard deviation of the noise in each coordinate.
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (n_samples, 2), and as labels the angle of each point before noise, in [0, 2 pi).

    Notes
    -----
    The paper adds noise "from N(0, .01)", which may mean a standard deviation of 0.01, the default here, or a
    variance of 0.01, ``noise=0.1``. The former is closer to the scores in the paper.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, angle = datasets.circle()
    >>> float(np.hypot(*X.T).mean())
    3.0
    """
    check_integer("n_samples", n_samples, 1)
    check_at_least_zero("noise", noise)
    rng = generator(random_state)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    X = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    return Dataset(X + rng.normal(scale=noise, size=X.shape), angle, source="circle")


def unif5(*, random_state: Seed = 0) -> Dataset:
    """Five uniform clusters of 100 points in 50 dimensions.

    Each cluster is a unit cube whose corner is drawn from U(-10, 10) in each dimension.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (500, 50) and the number of the cluster of each point.

    Examples
    --------
    >>> from mercat import datasets
    >>> datasets.unif5()
    Dataset(500 x 50, 5 labels, from unif5)
    """
    rng = generator(random_state)
    labels = np.repeat(np.arange(5), CLUSTER_SIZE)
    centers = rng.uniform(-10, 10, size=(5, N_DIMENSIONS))
    X = centers[labels] + rng.uniform(0, 1, size=(len(labels), N_DIMENSIONS))
    return Dataset(X, labels, source="unif5")


def gauss5(*, random_state: Seed = 0) -> Dataset:
    """Five Gaussian clusters of 100 points in 50 dimensions.

    For each cluster and dimension, the mean is drawn from U(-10, 10) and the standard deviation from
    U(0.5, 2). Dimensions are independent.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (500, 50) and the number of the cluster of each point.

    Examples
    --------
    >>> from mercat import datasets
    >>> datasets.gauss5()
    Dataset(500 x 50, 5 labels, from gauss5)
    """
    return _gaussians([CLUSTER_SIZE] * 5, "gauss5", random_state)


def gauss10(*, random_state: Seed = 0) -> Dataset:
    """Ten Gaussian clusters of 100 points in 50 dimensions, drawn as in :func:`gauss5`.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (1000, 50) and the number of the cluster of each point.

    Examples
    --------
    >>> from mercat import datasets
    >>> datasets.gauss10()
    Dataset(1000 x 50, 10 labels, from gauss10)
    """
    return _gaussians([CLUSTER_SIZE] * 10, "gauss10", random_state)


def gauss5_s(*, random_state: Seed = 0) -> Dataset:
    """Five Gaussian clusters of different sizes: 50, 100, 150, 200 and 250 points.

    Drawn as in :func:`gauss5`.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (750, 50) and the number of the cluster of each point.

    Examples
    --------
    >>> from mercat import datasets
    >>> np.bincount(datasets.gauss5_s().labels).tolist()
    [50, 100, 150, 200, 250]
    """
    return _gaussians([50, 100, 150, 200, 250], "gauss5_s", random_state)


def gauss5_d(*, random_state: Seed = 0) -> Dataset:
    """Five Gaussian clusters of different densities, with variances 1, 2, 3, 4 and 5.

    Means are drawn as in :func:`gauss5`. The variance of a cluster is the same in all dimensions.

    Parameters
    ----------
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Dataset
        X of shape (500, 50) and the number of the cluster of each point.

    Examples
    --------
    >>> from mercat import datasets
    >>> datasets.gauss5_d()
    Dataset(500 x 50, 5 labels, from gauss5_d)
    """
    deviations = np.sqrt(np.arange(1.0, 6.0))[:, None]
    return _gaussians([CLUSTER_SIZE] * 5, "gauss5_d", random_state, deviations)


class Spiked(NamedTuple):
    """A draw from the spiked model: data X, latent factors U and strengths sigma."""

    X: Floats
    U: Floats
    sigma: Floats


def spiked(n: int, d: int, sigma: Any, *, U: Any = None, random_state: Seed = 0) -> Spiked:
    r"""Draw from the spiked population model of the paper's theory.

    .. math:: X = \sum_{i=1}^r \sqrt{\lambda_i}\, u_i y_i^\top + Z, \qquad
              \lambda_i = \phi^{1/2} \sigma_i, \quad \phi = n / d,

    with standard normal noise Z and loadings :math:`y_i`, so that
    :math:`d^{-1} E[X X^\top] = I_n + \phi^{1/2} \sum_i \sigma_i u_i u_i^\top`. Signals of strength
    :math:`\sigma_i > 1` can be distinguished from noise.

    Parameters
    ----------
    n, d : int
        Number of samples and number of features.
    sigma : array-like of shape (r,)
        Strengths of the signal, positive and in descending order.
    U : array-like of shape (n, r) or None, default=None
        Latent factors, with orthonormal columns. None means drawn from the uniform (Haar) distribution.
    random_state : int, Generator or None, default=0
        Seed.

    Returns
    -------
    Spiked
        A named tuple of X (n, d), U (n, r) and sigma (r,).

    Examples
    --------
    >>> from mercat import datasets
    >>> X, U, sigma = datasets.spiked(200, 400, [9, 4, 2])
    >>> X.shape, U.shape
    ((200, 400), (200, 3))
    """
    sigma = np.asarray(sigma, dtype=np.float64)
    if sigma.ndim != 1 or not 1 <= len(sigma) <= n:
        raise ValueError(f"sigma must hold 1 to n = {n} strengths, got shape {sigma.shape}.")
    if not np.all(sigma > 0) or np.any(np.diff(sigma) > 0):
        raise ValueError(f"sigma must be positive and descending, got {sigma.tolist()}.")
    check_integer("d", d, 1)
    rng = generator(random_state)
    if U is None:
        Q, R = np.linalg.qr(rng.normal(size=(n, len(sigma))))
        U = Q * np.sign(np.diag(R))  # the signs make the distribution uniform
    U = np.asarray(U, dtype=np.float64)
    if U.shape != (n, len(sigma)) or not np.allclose(U.T @ U, np.eye(len(sigma)), atol=1e-8):
        raise ValueError(
            f"U must have orthonormal columns and shape ({n}, {len(sigma)}), got shape {U.shape}."
        )
    loadings = rng.normal(size=(d, len(sigma)))
    X = (U * np.sqrt(np.sqrt(n / d) * sigma)) @ loadings.T + rng.normal(size=(n, d))
    return Spiked(X, U, sigma)


def _ring(n: int, inner: float, outer: float, rng: np.random.Generator) -> Floats:
    """Points distributed uniformly between two radii: the squared radius is uniform."""
    radius = np.sqrt(rng.uniform(inner**2, outer**2, n))
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _gaussians(
    sizes: list[int], source: str, random_state: Seed, deviations: Floats | None = None
) -> Dataset:
    rng = generator(random_state)
    shape = (len(sizes), N_DIMENSIONS)
    means = rng.uniform(-10, 10, size=shape)
    if deviations is None:
        deviations = rng.uniform(0.5, 2, size=shape)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    noise = rng.normal(size=(len(labels), N_DIMENSIONS))
    return Dataset(means[labels] + deviations[labels] * noise, labels, source=source)
