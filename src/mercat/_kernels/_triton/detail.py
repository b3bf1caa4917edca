# mypy: ignore-errors
"""The descent of maps with detail: attraction, repulsion by a grid, angles, and steps."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .angles import directions, frame, over_pairs, turned


@triton.jit(do_not_specialize=["n"])
def attraction(
    ends, columns, weights, Y, n, square, force, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """-4 square sum_j w_ij y_j over the edges of each row, w = weight / (1 + square |y_i - y_j|^2)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < n
    start = tl.load(ends + row, mask=there, other=0)
    stop = tl.load(ends + row + 1, mask=there, other=0)
    x = tl.load(Y + 3 * row, mask=there, other=0.0)[:, None]
    y = tl.load(Y + 3 * row + 1, mask=there, other=0.0)[:, None]
    z = tl.load(Y + 3 * row + 2, mask=there, other=0.0)[:, None]
    to_x = tl.zeros((ROWS, WIDTH), tl.float32)
    to_y = tl.zeros((ROWS, WIDTH), tl.float32)
    to_z = tl.zeros((ROWS, WIDTH), tl.float32)
    longest = tl.max(stop - start, axis=0)
    for first in range(0, longest, WIDTH):
        at = start[:, None] + first + tl.arange(0, WIDTH)[None, :]
        inside = at < stop[:, None]
        column = tl.load(columns + at, mask=inside, other=0).to(tl.int64)
        weight = tl.load(weights + at, mask=inside, other=0.0)
        u = tl.load(Y + 3 * column, mask=inside, other=0.0)
        v = tl.load(Y + 3 * column + 1, mask=inside, other=0.0)
        w = tl.load(Y + 3 * column + 2, mask=inside, other=0.0)
        chord = (x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w)
        weight = weight / (1.0 + square * chord)
        to_x += weight * u
        to_y += weight * v
        to_z += weight * w
    tl.store(force + 3 * row, -4.0 * square * tl.sum(to_x, axis=1), mask=there)
    tl.store(force + 3 * row + 1, -4.0 * square * tl.sum(to_y, axis=1), mask=there)
    tl.store(force + 3 * row + 2, -4.0 * square * tl.sum(to_z, axis=1), mask=there)


@triton.jit
def _spline(t, node: tl.constexpr):
    """Weight of a node (0 to 3) of the cubic B-spline at t in [0, 1)."""
    u = 1.0 - t
    if node == 0:
        return u * u * u / 6.0
    if node == 1:
        return (4.0 - t * t * (6.0 - 3.0 * t)) / 6.0
    if node == 2:
        return (4.0 - u * u * (6.0 - 3.0 * u)) / 6.0
    return t * t * t / 6.0


@triton.jit
def _spline_slope(t, node: tl.constexpr):
    u = 1.0 - t
    if node == 0:
        return -u * u / 2.0
    if node == 1:
        return t * (3.0 * t - 4.0) / 2.0
    if node == 2:
        return u * (4.0 - 3.0 * u) / 2.0
    return t * t / 2.0


@triton.jit(do_not_specialize=["n", "n_columns", "size", "n_copies"])
def spread(row, column, n, n_columns, unit, grid, size, n_copies, BLOCK: tl.constexpr):
    """Add an integer charge of `unit` at each position (row, column) of a grid.

    There are several copies of the grid, for additions to the same node wait for each other.
    """
    grid += (tl.program_id(0) % n_copies).to(tl.int64) * size
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    r = tl.load(row + i, mask=there, other=2.0)
    c = tl.load(column + i, mask=there, other=0.0)
    r_below = tl.floor(r)
    c_below = tl.floor(c)
    t = r - r_below
    s = c - c_below
    corner = (r_below.to(tl.int32) - 1) * n_columns
    left = c_below.to(tl.int32) - 1
    for a in tl.static_range(4):
        for b in tl.static_range(4):
            at = left + b
            at = tl.where(at < 0, at + n_columns, at)
            at = tl.where(at >= n_columns, at - n_columns, at)
            part = (_spline(t, a) * _spline(s, b) * unit + 0.5).to(tl.int64)
            tl.atomic_add(grid + corner + a * n_columns + at, part, mask=there, sem="relaxed")


@triton.jit(do_not_specialize=["n", "n_columns"])
def read_field(
    field, Y, row, column, n, n_columns, rows, columns, least_cosine, value, slope,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Value and gradient of a field at points Y (n x 3), with positions (row, column) on the grid.

    The grid has `rows` per radian of latitude and `columns` per radian of longitude.
    """
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    there = i < n
    r = tl.load(row + i, mask=there, other=2.0)
    c = tl.load(column + i, mask=there, other=0.0)
    r_below = tl.floor(r)
    c_below = tl.floor(c)
    t = r - r_below
    s = c - c_below
    corner = (r_below.to(tl.int32) - 1) * n_columns
    left = c_below.to(tl.int32) - 1
    total = tl.zeros((BLOCK,), tl.float32)
    by_row = tl.zeros((BLOCK,), tl.float32)
    by_column = tl.zeros((BLOCK,), tl.float32)
    for a in tl.static_range(4):
        level = tl.zeros((BLOCK,), tl.float32)
        tilt = tl.zeros((BLOCK,), tl.float32)
        for b in tl.static_range(4):
            at = left + b
            at = tl.where(at < 0, at + n_columns, at)
            at = tl.where(at >= n_columns, at - n_columns, at)
            f = tl.load(field + corner + a * n_columns + at, mask=there, other=0.0)
            level += f * _spline(s, b)
            tilt += f * _spline_slope(s, b)
        total += _spline(t, a) * level
        by_row += _spline_slope(t, a) * level
        by_column += _spline(t, a) * tilt
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    cosine = tl.maximum(tl.sqrt(x * x + y * y), least_cosine)
    north = by_row * rows
    east = by_column * columns / cosine
    x = x / cosine
    y = y / cosine
    tl.store(value + i, total, mask=there)
    tl.store(slope + 3 * i, -z * x * north - y * east, mask=there)
    tl.store(slope + 3 * i + 1, -z * y * north + x * east, mask=there)
    tl.store(slope + 3 * i + 2, cosine * north, mask=there)


@triton.jit(do_not_specialize=["n"])
def move(
    Y, velocity, force, curvature, n, momentum, factor, longest, moved, faster, BLOCK: tl.constexpr
):  # fmt: skip
    """A step with momentum against a force: see `_detail.descent._moved`."""
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    there = i < n
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    u = tl.load(velocity + 3 * i, mask=there, other=0.0)
    v = tl.load(velocity + 3 * i + 1, mask=there, other=0.0)
    w = tl.load(velocity + 3 * i + 2, mask=there, other=0.0)
    f = tl.load(force + 3 * i, mask=there, other=0.0)
    g = tl.load(force + 3 * i + 1, mask=there, other=0.0)
    h = tl.load(force + 3 * i + 2, mask=there, other=0.0)
    along = u * x + v * y + w * z
    out = f * x + g * y + h * z
    step = factor / tl.load(curvature + i, mask=there, other=1.0)
    u = momentum * (u - along * x) - step * (f - out * x)
    v = momentum * (v - along * y) - step * (g - out * y)
    w = momentum * (w - along * z) - step * (h - out * z)
    length = tl.sqrt(u * u + v * v + w * w)
    short = longest / tl.maximum(length, longest)
    x += short * u
    y += short * v
    z += short * w
    scale = 1.0 / tl.sqrt(x * x + y * y + z * z)
    tl.store(moved + 3 * i, x * scale, mask=there)
    tl.store(moved + 3 * i + 1, y * scale, mask=there)
    tl.store(moved + 3 * i + 2, z * scale, mask=there)
    tl.store(faster + 3 * i, u, mask=there)
    tl.store(faster + 3 * i + 1, v, mask=there)
    tl.store(faster + 3 * i + 2, w, mask=there)


@triton.jit(do_not_specialize=["n", "m"])
def angle_force(
    Y, near, products, summed, x_norms, n, legs_Y, legs, m, softening, alpha, beta,
    force, steepness, moments, ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """Forces of angles on points at Y (n x 3) from anchors; see `_detail.terms.AngleTerm`.

    `near` (n x m) are inverse distances, `products` (n x 3 m) those of the points with the anchors and with
    both parts of the anchors' sums M, `x_norms` the squared norms of the points, and `summed` (2 x n x m) the
    `weights` times the inner products of the anchors. `legs_Y` (3 x m) are the positions of the anchors,
    `legs` (13 x m) their frames, S, S12, t, and products with M. A block of points and all anchors are one
    tile.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    both = there[:, None] & leg[None, :]
    far = n.to(tl.int64)
    at = i[:, None] * m + j[None, :]
    close = tl.load(near + at, mask=both, other=0.0)
    summed1 = tl.load(summed + at, mask=both, other=0.0)
    summed2 = tl.load(summed + far * m + at, mask=both, other=0.0)
    part = close > 0
    at = i[:, None] * (3 * m) + j[None, :]
    product = tl.load(products + at, mask=both, other=0.0)
    q = tl.load(x_norms + i, mask=there, other=0.0)
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    u = tl.load(legs_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :]

    # As an apex over pairs of anchors.
    B1, B2, inverse_sine = directions(x, y, z, u, v, w, part, softening)
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    W1 = B1 * close
    W2 = B2 * close
    M1 = over_pairs(W1, product, q, summed1)
    M2 = over_pairs(W2, product, q, summed2)
    ab = tl.sum(W1 * M1 + W2 * M2, axis=1)
    g1 = -M1 * close
    g2 = -M2 * close
    g1 += beta * (B1 * S1[:, None] + B2 * S12[:, None]) + alpha * t1[:, None]
    g2 += beta * (B2 * S2[:, None] + B1 * S12[:, None]) + alpha * t2[:, None]
    p1, p2 = turned(g1, g2, B1, B2, inverse_sine)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    along_U = tl.sum(p1 * cosine, axis=1)
    along_V = tl.sum(p2 * cosine, axis=1)
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    f = -along_U * Ux - along_V * Vx
    g = -along_U * Uy - along_V * Vy
    h = -along_U * Uz - along_V * Vz
    itself = S1 + S2
    steep = tl.sum(inverse_sine * inverse_sine, axis=1)

    # As a leg at each anchor.
    ux = tl.load(legs + j, mask=leg, other=0.0)[None, :]
    uy = tl.load(legs + m + j, mask=leg, other=0.0)[None, :]
    uz = tl.load(legs + 2 * m + j, mask=leg, other=0.0)[None, :]
    vx = tl.load(legs + 3 * m + j, mask=leg, other=0.0)[None, :]
    vy = tl.load(legs + 4 * m + j, mask=leg, other=0.0)[None, :]
    vz = tl.load(legs + 5 * m + j, mask=leg, other=0.0)[None, :]
    B1 = ux * x[:, None] + uy * y[:, None] + uz * z[:, None]
    B2 = vx * x[:, None] + vy * y[:, None] + vz * z[:, None]
    inverse_sine = tl.where(part, 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening), 0.0)
    B1 *= inverse_sine
    B2 *= inverse_sine
    s1 = tl.load(legs + 6 * m + j, mask=leg, other=0.0)[None, :]
    s2 = tl.load(legs + 7 * m + j, mask=leg, other=0.0)[None, :]
    s12 = tl.load(legs + 8 * m + j, mask=leg, other=0.0)[None, :]
    g1 = alpha * tl.load(legs + 9 * m + j, mask=leg, other=0.0)[None, :]
    g2 = alpha * tl.load(legs + 10 * m + j, mask=leg, other=0.0)[None, :]
    K1 = tl.load(products + at + m, mask=both, other=0.0)
    K2 = tl.load(products + at + 2 * m, mask=both, other=0.0)
    K1 -= tl.load(legs + 11 * m + j, mask=leg, other=0.0)[None, :]
    K2 -= tl.load(legs + 12 * m + j, mask=leg, other=0.0)[None, :]
    g1 += beta * (B1 * s1 + B2 * s12) - K1 * close
    g2 += beta * (B2 * s2 + B1 * s12) - K2 * close
    p1, p2 = turned(g1, g2, B1, B2, inverse_sine)
    f += tl.sum(p1 * ux + p2 * vx, axis=1)
    g += tl.sum(p1 * uy + p2 * vy, axis=1)
    h += tl.sum(p1 * uz + p2 * vz, axis=1)
    tl.store(force + 3 * i, 4.0 * beta * f, mask=there)
    tl.store(force + 3 * i + 1, 4.0 * beta * g, mask=there)
    tl.store(force + 3 * i + 2, 4.0 * beta * h, mask=there)
    tl.store(steepness + i, steep, mask=there)
    tl.store(moments + i, t1 * t1 + t2 * t2 - itself, mask=there)
    tl.store(moments + far + i, S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself, mask=there)
    tl.store(moments + 2 * far + i, ab - itself, mask=there)
