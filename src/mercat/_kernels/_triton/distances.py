# mypy: ignore-errors
"""Distances in the data, and arcs on the sphere."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .memory import load_legs, load_points, store_vectors


@triton.jit
def inverse(i, j, there, leg, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible):
    """1 / |x_i - x_j| from inner products, or from differences where these cancel; 0 for equal points."""
    norms = x_norm[:, None] + leg_norm[None, :]
    square = norms - 2.0 * product
    both = there[:, None] & leg[None, :]
    cancels = both & (square <= trusted * norms)
    if tl.max(tl.max(cancels.to(tl.int32), axis=1), axis=0) > 0:
        direct = tl.zeros_like(square)
        for k in range(r):
            x = tl.load(X + i * r + k, mask=there, other=0.0)[:, None]
            a = tl.load(legs_X + k * m + j, mask=leg, other=0.0)[None, :]
            direct += (a - x) * (a - x)
        square = tl.where(cancels, direct, square)
    apart = both & (square > negligible * norms)
    return tl.where(apart, 1.0 / tl.sqrt(tl.where(apart, square, 1.0)), 0.0)


@triton.jit(do_not_specialize=["n", "r", "m"])
def inverse_distances(
    X, n, r, legs_X, m, products, x_norms, leg_norms, trusted, negligible, near,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """1 / |x_i - x_j| of points X (n x r) and legs (r x m); see `_math.angles.inverse_distances`.

    `products` (n x m) are the inner products, `x_norms` and `leg_norms` the squared norms.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    both = there[:, None] & leg[None, :]
    at = i[:, None] * m + j[None, :]
    product = tl.load(products + at, mask=both, other=0.0)
    x_norm = tl.load(x_norms + i, mask=there, other=0.0)
    leg_norm = tl.load(leg_norms + j, mask=leg, other=0.0)
    found = inverse(
        i, j, there, leg, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible
    )
    tl.store(near + at, found, mask=both)


@triton.jit(do_not_specialize=["size"])
def half_ranks(near, size, quantiles, ranks, slope, found, BLOCK: tl.constexpr):
    """See `_math.distances.HalfRanks.inverse`, for a number of inverse distances and 65 quantiles."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < size
    close = tl.load(near + i, mask=there, other=0.0)
    apart = close > 0
    d = tl.where(apart, 1.0 / tl.where(apart, close, 1.0), 0.0)
    at = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(6):  # bisection
        at += tl.where(tl.load(quantiles + at + (32 >> k)) <= d, 32 >> k, 0)
    low = tl.load(quantiles + at)
    high = tl.load(quantiles + at + 1)
    part = tl.where(d < high, (d - low) / tl.where(d < high, high - low, 1.0), 1.0)
    h = d * slope + (1.0 - part) * tl.load(ranks + at) + part * tl.load(ranks + at + 1)
    tl.store(found + i, tl.where(apart, 1.0 / tl.where(apart, h, 1.0), 0.0), mask=there)


@triton.jit
def _arc(cosine):
    """The arc-cosine, within 2e-8 (Abramowitz and Stegun 4.4.46)."""
    c = tl.minimum(tl.abs(cosine), 1.0)
    p = 0.0066700901 - 0.0012624911 * c
    p = -0.0170881256 + p * c
    p = 0.0308918810 + p * c
    p = -0.0501743046 + p * c
    p = 0.0889789874 + p * c
    p = -0.2145988016 + p * c
    p = 1.5707963050 + p * c
    arc = tl.sqrt(1.0 - c) * p
    return tl.where(cosine < 0, 3.141592653589793 - arc, arc)


@triton.jit
def by_distance(near, cosine, leg, p, q, least_sine):
    """Distances, arcs, residuals, and residuals over sines; see `_math.distances.DistanceTerm.residuals`."""
    d = tl.where(near > 0, 1.0 / tl.where(near > 0, near, 1.0), 0.0)
    arc = tl.where(leg, _arc(cosine), 0.0)
    residual = tl.where(leg, d - p - q * arc, 0.0)
    c = tl.minimum(tl.abs(cosine), 1.0)
    sine = tl.sqrt(tl.maximum(1.0 - c * c, least_sine * least_sine))
    return d, arc, residual, residual / sine


@triton.jit(do_not_specialize=["n", "m"])
def arc_residuals(
    near, Y, n, legs_Y, m, p, q, least_sine, squares, gradient, sums,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_math.distances.DistanceTerm.residuals`; all others are in one tile."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    x, y, z = load_points(Y, i, there)
    u, v, w = load_legs(legs_Y, j, m, leg)
    both = there[:, None] & leg[None, :]
    close = tl.load(near + i[:, None] * m + j[None, :], mask=both, other=0.0)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    d, arc, residual, pull = by_distance(close, cosine, leg[None, :], p, q, least_sine)
    tl.store(squares + i, tl.sum(residual * residual, axis=1), mask=there)
    f = 2.0 * q * tl.sum(pull * u, axis=1)
    g = 2.0 * q * tl.sum(pull * v, axis=1)
    h = 2.0 * q * tl.sum(pull * w, axis=1)
    store_vectors(gradient, i, there, f, g, h)
    far = n.to(tl.int64)
    tl.store(sums + i, tl.sum(d, axis=1), mask=there)
    tl.store(sums + far + i, tl.sum(arc, axis=1), mask=there)
    tl.store(sums + 2 * far + i, tl.sum(d * d, axis=1), mask=there)
    tl.store(sums + 3 * far + i, tl.sum(arc * arc, axis=1), mask=there)
    tl.store(sums + 4 * far + i, tl.sum(d * arc, axis=1), mask=there)
