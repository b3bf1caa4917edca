# mypy: ignore-errors
"""Distances in the data, and arcs on the sphere."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .memory import load_legs, load_points, store_vectors


@triton.jit
def inverse(
    i, j, row_mask, leg_mask, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible
):
    """1 / |x_i - x_j| from inner products, or from differences where these cancel; 0 for equal points."""
    norms = x_norm[:, None] + leg_norm[None, :]
    square = norms - 2.0 * product
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    cancels = tile_mask & (square <= trusted * norms)
    if tl.max(tl.max(cancels.to(tl.int32), axis=1), axis=0) > 0:
        recomputed = tl.zeros_like(square)
        for k in range(r):
            x = tl.load(X + i * r + k, mask=row_mask, other=0.0)[:, None]
            a = tl.load(legs_X + k * m + j, mask=leg_mask, other=0.0)[None, :]
            recomputed += (a - x) * (a - x)
        square = tl.where(cancels, recomputed, square)
    apart = tile_mask & (square > negligible * norms)
    return tl.where(apart, 1.0 / tl.sqrt(tl.where(apart, square, 1.0)), 0.0)


@triton.jit(do_not_specialize=["n", "r", "m"])
def inverse_distances(
    X, n, r, legs_X, m, products, x_norms, leg_norms, trusted, negligible, inv_d_ptr,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """1 / |x_i - x_j| of points X (n x r) and legs (r x m); see `_math.angles.inverse_distances`.

    `products` (n x m) are the inner products, `x_norms` and `leg_norms` the squared norms.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    row_mask = i < n
    leg_mask = j < m
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    at = i[:, None] * m + j[None, :]
    product = tl.load(products + at, mask=tile_mask, other=0.0)
    x_norm = tl.load(x_norms + i, mask=row_mask, other=0.0)
    leg_norm = tl.load(leg_norms + j, mask=leg_mask, other=0.0)
    inv_d = inverse(
        i, j, row_mask, leg_mask, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible
    )
    tl.store(inv_d_ptr + at, inv_d, mask=tile_mask)


@triton.jit(do_not_specialize=["size"])
def half_ranks(inv_d_ptr, size, quantiles, ranks, slope, result, BLOCK: tl.constexpr):
    """See `_math.distances.HalfRanks.inverse`, for a number of inverse distances and 65 quantiles."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    inv_d = tl.load(inv_d_ptr + i, mask=mask, other=0.0)
    apart = inv_d > 0
    d = tl.where(apart, 1.0 / tl.where(apart, inv_d, 1.0), 0.0)
    interval = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(6):  # bisection
        interval += tl.where(tl.load(quantiles + interval + (32 >> k)) <= d, 32 >> k, 0)
    low = tl.load(quantiles + interval)
    high = tl.load(quantiles + interval + 1)
    fraction = tl.where(d < high, (d - low) / tl.where(d < high, high - low, 1.0), 1.0)
    h = (
        d * slope
        + (1.0 - fraction) * tl.load(ranks + interval)
        + fraction * tl.load(ranks + interval + 1)
    )
    tl.store(result + i, tl.where(apart, 1.0 / tl.where(apart, h, 1.0), 0.0), mask=mask)


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
def distance_residuals(inv_d, cosine, leg_mask, p, q, least_sine):
    """Distances, arcs, residuals, and residuals over sines; see `_math.distances.DistanceTerm.residuals`."""
    d = tl.where(inv_d > 0, 1.0 / tl.where(inv_d > 0, inv_d, 1.0), 0.0)
    arc = tl.where(leg_mask, _arc(cosine), 0.0)
    residual = tl.where(leg_mask, d - p - q * arc, 0.0)
    c = tl.minimum(tl.abs(cosine), 1.0)
    sine = tl.sqrt(tl.maximum(1.0 - c * c, least_sine * least_sine))
    return d, arc, residual, residual / sine


@triton.jit(do_not_specialize=["n", "m"])
def arc_residuals(
    inv_d_ptr, Y, n, legs_Y, m, p, q, least_sine, squares, gradient, sums,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_math.distances.DistanceTerm.residuals`; all others are in one tile."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    row_mask = i < n
    leg_mask = j < m
    x, y, z = load_points(Y, i, row_mask)
    u, v, w = load_legs(legs_Y, j, m, leg_mask)
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    inv_d = tl.load(inv_d_ptr + i[:, None] * m + j[None, :], mask=tile_mask, other=0.0)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    d, arc, residual, scaled_residual = distance_residuals(
        inv_d, cosine, leg_mask[None, :], p, q, least_sine
    )
    tl.store(squares + i, tl.sum(residual * residual, axis=1), mask=row_mask)
    f = 2.0 * q * tl.sum(scaled_residual * u, axis=1)
    g = 2.0 * q * tl.sum(scaled_residual * v, axis=1)
    h = 2.0 * q * tl.sum(scaled_residual * w, axis=1)
    store_vectors(gradient, i, row_mask, f, g, h)
    n64 = n.to(tl.int64)
    tl.store(sums + i, tl.sum(d, axis=1), mask=row_mask)
    tl.store(sums + n64 + i, tl.sum(arc, axis=1), mask=row_mask)
    tl.store(sums + 2 * n64 + i, tl.sum(d * d, axis=1), mask=row_mask)
    tl.store(sums + 3 * n64 + i, tl.sum(arc * arc, axis=1), mask=row_mask)
    tl.store(sums + 4 * n64 + i, tl.sum(d * arc, axis=1), mask=row_mask)
