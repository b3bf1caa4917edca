# mypy: ignore-errors
"""Directions and angles at points on the sphere, and sums over pairs of legs."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .memory import load_legs, load_points


@triton.jit
def frame(x, y, z):
    """Tangent vectors at points; see `_math.sphere.tangent_frame`."""
    sign = tl.where(z >= 0, 1.0, -1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return 1.0 + sign * x * x * a, sign * b, -sign * x, b, sign + y * y * a, -y


@triton.jit
def directions(x, y, z, u, v, w, mask, softening):
    """Unit directions from apices to legs along the sphere; see `_math.angles.bearings`."""
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    B1 = Ux[:, None] * u + Uy[:, None] * v + Uz[:, None] * w
    B2 = Vx[:, None] * u + Vy[:, None] * v + Vz[:, None] * w
    inverse_sine = tl.where(mask, 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening), 0.0)
    return B1 * inverse_sine, B2 * inverse_sine, inverse_sine


@triton.jit
def pull_back_rotation(g1, g2, B1, B2, inverse_sine):
    """The part of a gradient that rotates directions; see `_math.angles.pull_back_rotation`."""
    across = (g2 * B1 - g1 * B2) * inverse_sine
    return -B2 * across, B1 * across


@triton.jit
def pull_back(g1, g2, B1, B2, inverse_sine):
    """See `_math.angles.pull_back`."""
    along = g1 * B1 + g2 * B2
    return (g1 - B1 * along) * inverse_sine, (g2 - B2 * along) * inverse_sine


@triton.jit
def map_sums(B1, B2):
    """S, S12 and t of directions to legs; see `_math.angles.apex_sums`."""
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    return S1, S2, S12, tl.sum(B1, axis=1), tl.sum(B2, axis=1)


@triton.jit
def map_moments(S1, S2, S12, t1, t2):
    """Sums of b and of b^2 over pairs of legs; see `_math.angles.map_moments`."""
    equal_legs = S1 + S2
    return t1 * t1 + t2 * t2 - equal_legs, S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - equal_legs


@triton.jit
def mixed_sums(B1, B2, inv_d, product, x_norm, summed1, summed2):
    """Products of M with the differences in the data, and sums of a b over pairs of legs.

    The sums include the pairs of a leg with itself.
    """
    W1 = B1 * inv_d
    W2 = B2 * inv_d
    M1 = _sum_over_pairs(W1, product, x_norm, summed1)
    M2 = _sum_over_pairs(W2, product, x_norm, summed2)
    return M1, M2, tl.sum(W1 * M1 + W2 * M2, axis=1)


@triton.jit
def _sum_over_pairs(W, P, x_norm, summed):
    """Sums over legs k of W_k (x_k - x).(x_j - x).

    P are the inner products of x with the legs, `x_norm` is |x|^2, `summed` are the sums of W_k x_k.x_j.
    """
    total = tl.sum(W, axis=1)
    mixed = x_norm * total - tl.sum(W * P, axis=1)
    return summed - P * total[:, None] + mixed[:, None]


@triton.jit(do_not_specialize=["n", "m"])
def weights(
    Y, inv_d_ptr, n, legs_Y, m, softening, result, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """Directions from points at Y (n x 3) to legs, divided by distances in the data (2 x n x m).

    `inv_d_ptr` (n x m) are the inverse distances.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    row_mask = i < n
    leg_mask = j < m
    x, y, z = load_points(Y, i, row_mask)
    u, v, w = load_legs(legs_Y, j, m, leg_mask)
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    at = i[:, None] * m + j[None, :]
    inv_d = tl.load(inv_d_ptr + at, mask=tile_mask, other=0.0)
    B1, B2, _ = directions(x, y, z, u, v, w, inv_d > 0, softening)
    tl.store(result + at, B1 * inv_d, mask=tile_mask)
    tl.store(result + n.to(tl.int64) * m + at, B2 * inv_d, mask=tile_mask)


@triton.jit(do_not_specialize=["n", "m"])
def moments(
    Y, inv_d_ptr, products, x_norms, n, legs_Y, gram, m, softening, result,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_solve.placement.placed_moments`: sums (6 x n) over pairs of legs.

    `inv_d_ptr` (n x m) are the inverse distances, `products` (n x m) the inner products of the points with
    the legs, `gram` (m x m) those of the legs.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    row_mask = i < n
    leg_mask = j < m
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    n64 = n.to(tl.int64)
    at = i[:, None] * m + j[None, :]
    inv_d = tl.load(inv_d_ptr + at, mask=tile_mask, other=0.0)
    product = tl.load(products + at, mask=tile_mask, other=0.0)
    x_norm = tl.load(x_norms + i, mask=row_mask, other=0.0)
    x, y, z = load_points(Y, i, row_mask)
    u, v, w = load_legs(legs_Y, j, m, leg_mask)
    B1, B2, _ = directions(x, y, z, u, v, w, inv_d > 0, softening)
    all_a = tl.zeros((ROWS, LEGS), tl.float32)
    all_aa = tl.zeros((ROWS, LEGS), tl.float32)
    all_ab = tl.zeros((ROWS, LEGS), tl.float32)
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    for k in range(m):
        constant_k = x_norm - tl.load(products + i * m + k, mask=row_mask, other=0.0)
        inv_d_k = tl.load(inv_d_ptr + i * m + k, mask=row_mask, other=0.0)
        x_k = tl.load(legs_Y + k)
        y_k = tl.load(legs_Y + m + k)
        z_k = tl.load(legs_Y + 2 * m + k)
        C1 = Ux * x_k + Uy * y_k + Uz * z_k
        C2 = Vx * x_k + Vy * y_k + Vz * z_k
        inverse_sine = 1.0 / tl.sqrt(C1 * C1 + C2 * C2 + softening)
        b = B1 * (C1 * inverse_sine)[:, None] + B2 * (C2 * inverse_sine)[:, None]
        gram_k = tl.load(gram + k * m + j, mask=leg_mask, other=0.0)[None, :]
        a = (gram_k - product + constant_k[:, None]) * inv_d * inv_d_k[:, None]
        all_a += a
        all_aa += a * a
        all_ab += a * b
    a = tl.sum(all_a, axis=1)
    aa = tl.sum(all_aa, axis=1)
    ab = tl.sum(all_ab, axis=1)
    S1, S2, S12, t1, t2 = map_sums(B1, B2)
    of_b, of_bb = map_moments(S1, S2, S12, t1, t2)
    n_legs = tl.sum((inv_d > 0).to(tl.float32), axis=1)
    tl.store(result + i, n_legs * (n_legs - 1.0), mask=row_mask)
    tl.store(result + n64 + i, a - n_legs, mask=row_mask)
    tl.store(result + 2 * n64 + i, aa - n_legs, mask=row_mask)
    tl.store(result + 3 * n64 + i, of_b, mask=row_mask)
    tl.store(result + 4 * n64 + i, of_bb, mask=row_mask)
    tl.store(result + 5 * n64 + i, ab - (S1 + S2), mask=row_mask)
