"""Means and correlations with standard errors.

To first order, a statistic is the mean of its influence h over the sample. Its standard error is therefore
sd(h) / sqrt(m), times sqrt(1 - m/n) if m of n points were drawn without replacement, and 0 for a full sample.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from ._points import Floats
from ._score import Score


def standard_error_of_mean(influence: Floats, n: int) -> float:
    """Standard error of the mean of `influence` over a sample without replacement from n points."""
    m = len(influence)
    return float(np.std(influence, ddof=1) * np.sqrt(max(0.0, 1 - m / n) / m))


def mean(values: Floats, n: int) -> Score:
    """Mean over a sample without replacement from n points."""
    return Score(float(np.mean(values)), standard_error_of_mean(values, n))


def pearson(a: Floats, b: Floats, n: int) -> Score:
    """Pearson's correlation over a sample without replacement from n points."""
    std_a, std_b = np.std(a), np.std(b)
    if std_a == 0 or std_b == 0:
        return Score(np.nan, np.nan)
    a, b = (a - np.mean(a)) / std_a, (b - np.mean(b)) / std_b
    rho = float(np.clip(np.mean(a * b), -1, 1))
    return Score(rho, standard_error_of_mean(a * b - rho / 2 * (a * a + b * b), n))


def spearman(a: Floats, b: Floats, *, exact: bool) -> Score:
    """Spearman's correlation of independent draws, or of the whole population if `exact`.

    The influence of a draw includes its own ranks and its effect on the ranks of others:
    h(x, y) = 12 [F(x) G(y) + E 1{A >= x} G(B) + E 1{B >= y} F(A)].
    """
    m = len(a)
    u, v = rankdata(a) / m, rankdata(b) / m
    rho = float(pearson(u, v, m))
    if exact or np.isnan(rho):
        return Score(rho, 0.0 if exact else np.nan)
    influence = 12 * (u * v + _tail_mean(a, v) + _tail_mean(b, u))
    return Score(rho, float(np.std(influence, ddof=1) / np.sqrt(m)))


def _tail_mean(a: Floats, weights: Floats) -> Floats:
    """For each i, the mean over l of weights[l] where a[l] >= a[i]."""
    order = np.argsort(-a, kind="stable")
    tail = np.empty_like(weights)
    tail[order] = np.cumsum(weights[order]) / len(a)
    return tail
