"""Number of components above the noise, by ScreeNOT."""

from __future__ import annotations

import numpy as np

_MAX_SIGNAL_RANK = 100  # upper bound on the rank of the signal, which ScreeNOT requires


def screenot_rank(singular_values: np.ndarray, shape: tuple[int, int]) -> int:
    """Number of singular values above the ScreeNOT threshold, at least 2 if possible."""
    above = int(np.sum(singular_values > screenot_threshold(singular_values, shape)))
    return max(above, min(2, len(singular_values)))


def screenot_threshold(
    singular_values: np.ndarray, shape: tuple[int, int], max_rank: int | None = None
) -> float:
    r"""The hard threshold of Donoho, Gavish and Romanov (2023) for noise of unknown covariance.

    The `max_rank` largest values may be signal (by default, at most 100 or a quarter of the values). They are
    replaced by extrapolation from the values below them: the edge of a noise spectrum decays as the power 2/3
    of the index. The threshold y then solves
    :math:`y\, D'(y) / D(y) = -4` with the D-transform :math:`D = \varphi\,(\gamma \varphi + (1 - \gamma)/y)`,
    :math:`\varphi(y) = \mathrm{mean}\; y / (y^2 - z^2)` over the noise values z.
    """
    values = np.sort(np.asarray(singular_values, dtype=np.float64))
    p = len(values)
    k = min(_MAX_SIGNAL_RANK, p // 4) if max_rank is None else max_rank
    if p < 4 or values[-k - 1] == 0:
        return 0.0
    unit = values[-k - 1]
    noise = values / unit
    if k > 0:
        step = noise[-k - 1] - noise[-2 * k - 1]
        power = (1 - (np.arange(k) / k) ** (2 / 3)) / (2 ** (2 / 3) - 1)
        noise[p - k :] = (noise[-k - 1] + power * step)[::-1]
    gamma = min(shape) / max(shape)

    def slope(y: float) -> float:
        """y D'(y) / D(y)."""
        gap = y * y - noise * noise
        phi, phi_slope = np.mean(y / gap), -np.mean((y * y + noise * noise) / gap**2)
        # D is the product of phi and psi.
        psi, psi_slope = gamma * phi + (1 - gamma) / y, gamma * phi_slope - (1 - gamma) / y**2
        return float(y * (phi_slope / phi + psi_slope / psi))

    low, high = noise[-1], noise[-1] + 1.0
    while slope(high) < -4:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < -4 else (low, middle)
    return float((low + high) / 2 * unit)
