# mypy: ignore-errors
"""Directions and angles at points on the sphere: parts of other kernels, and sums over pairs of legs."""

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
def directions(x, y, z, u, v, w, part, softening):
    """Unit directions from apices to legs along the sphere; see `_math.angles.bearings`."""
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    B1 = Ux[:, None] * u + Uy[:, None] * v + Uz[:, None] * w
    B2 = Vx[:, None] * u + Vy[:, None] * v + Vz[:, None] * w
    inverse_sine = tl.where(part, 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening), 0.0)
    return B1 * inverse_sine, B2 * inverse_sine, inverse_sine


@triton.jit
def turned(g1, g2, B1, B2, inverse_sine):
    """The part of a gradient that rotates directions; see `_math.angles.pull_back_rotation`."""
    across = (g2 * B1 - g1 * B2) * inverse_sine
    return -B2 * across, B1 * across


@triton.jit
def pulled_back(g1, g2, B1, B2, inverse_sine):
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
    itself = S1 + S2
    return t1 * t1 + t2 * t2 - itself, S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself


@triton.jit
def mixed_sums(B1, B2, close, product, q, summed1, summed2):
    """M times the differences in the data, and the sum of a b over pairs of legs, including equal ones."""
    W1 = B1 * close
    W2 = B2 * close
    M1 = _over_pairs(W1, product, q, summed1)
    M2 = _over_pairs(W2, product, q, summed2)
    return M1, M2, tl.sum(W1 * M1 + W2 * M2, axis=1)


@triton.jit
def _over_pairs(W, P, q, summed):
    """Sums over legs k of W_k (x_k - x).(x_j - x).

    P are the inner products of x with the legs, q is |x|^2, `summed` are the sums of W_k x_k.x_j.
    """
    total = tl.sum(W, axis=1)
    mixed = q * total - tl.sum(W * P, axis=1)
    return summed - P * total[:, None] + mixed[:, None]


@triton.jit(do_not_specialize=["n", "m"])
def weights(
    Y, near, n, legs_Y, m, softening, found, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """Directions from points at Y (n x 3) to legs, divided by distances in the data (2 x n x m)."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    x, y, z = load_points(Y, i, there)
    u, v, w = load_legs(legs_Y, j, m, leg)
    both = there[:, None] & leg[None, :]
    at = i[:, None] * m + j[None, :]
    close = tl.load(near + at, mask=both, other=0.0)
    B1, B2, _ = directions(x, y, z, u, v, w, close > 0, softening)
    tl.store(found + at, B1 * close, mask=both)
    tl.store(found + n.to(tl.int64) * m + at, B2 * close, mask=both)


@triton.jit(do_not_specialize=["n", "m"])
def moments(
    Y, near, products, x_norms, n, legs_Y, gram, m, softening, found,
    ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_solve.placement.placed_moments`: sums (6 x n) over pairs of legs.

    `products` (n x m) are those of the points with the legs, `gram` (m x m) those of the legs.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    both = there[:, None] & leg[None, :]
    far = n.to(tl.int64)
    at = i[:, None] * m + j[None, :]
    close = tl.load(near + at, mask=both, other=0.0)
    product = tl.load(products + at, mask=both, other=0.0)
    q = tl.load(x_norms + i, mask=there, other=0.0)
    x, y, z = load_points(Y, i, there)
    u, v, w = load_legs(legs_Y, j, m, leg)
    B1, B2, _ = directions(x, y, z, u, v, w, close > 0, softening)
    all_a = tl.zeros((ROWS, LEGS), tl.float32)
    all_aa = tl.zeros((ROWS, LEGS), tl.float32)
    all_ab = tl.zeros((ROWS, LEGS), tl.float32)
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    for k in range(m):
        own = q - tl.load(products + i * m + k, mask=there, other=0.0)
        scale = tl.load(near + i * m + k, mask=there, other=0.0)
        to_x = tl.load(legs_Y + k)
        to_y = tl.load(legs_Y + m + k)
        to_z = tl.load(legs_Y + 2 * m + k)
        C1 = Ux * to_x + Uy * to_y + Uz * to_z
        C2 = Vx * to_x + Vy * to_y + Vz * to_z
        inverse_sine = 1.0 / tl.sqrt(C1 * C1 + C2 * C2 + softening)
        b = B1 * (C1 * inverse_sine)[:, None] + B2 * (C2 * inverse_sine)[:, None]
        others = tl.load(gram + k * m + j, mask=leg, other=0.0)[None, :]
        a = (others - product + own[:, None]) * close * scale[:, None]
        all_a += a
        all_aa += a * a
        all_ab += a * b
    a = tl.sum(all_a, axis=1)
    aa = tl.sum(all_aa, axis=1)
    ab = tl.sum(all_ab, axis=1)
    S1, S2, S12, t1, t2 = map_sums(B1, B2)
    of_b, of_bb = map_moments(S1, S2, S12, t1, t2)
    number = tl.sum((close > 0).to(tl.float32), axis=1)
    tl.store(found + i, number * (number - 1.0), mask=there)
    tl.store(found + far + i, a - number, mask=there)
    tl.store(found + 2 * far + i, aa - number, mask=there)
    tl.store(found + 3 * far + i, of_b, mask=there)
    tl.store(found + 4 * far + i, of_bb, mask=there)
    tl.store(found + 5 * far + i, ab - (S1 + S2), mask=there)
