# mypy: ignore-errors
"""The descent of maps with detail: attraction, repulsion by a grid, angles, and steps."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .angles import directions, frame, map_moments, map_sums, mixed_sums, pull_back_rotation
from .memory import load_legs, load_points, load_vectors, store_vectors


@triton.jit(do_not_specialize=["n"])
def attraction(
    ends, columns, weights, Y, n, inverse_square, force, ROWS: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """-4 s sum_j w_ij y_j over the edges of each row, with w = weight / (1 + s |y_i - y_j|^2).

    s is `inverse_square`, the inverse of the squared bandwidth.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_mask = row < n
    start = tl.load(ends + row, mask=row_mask, other=0)
    stop = tl.load(ends + row + 1, mask=row_mask, other=0)
    x, y, z = load_vectors(Y, row, row_mask)
    to_x = tl.zeros((ROWS, WIDTH), tl.float32)
    to_y = tl.zeros((ROWS, WIDTH), tl.float32)
    to_z = tl.zeros((ROWS, WIDTH), tl.float32)
    longest = tl.max(stop - start, axis=0)
    for first in range(0, longest, WIDTH):
        at = start[:, None] + first + tl.arange(0, WIDTH)[None, :]
        edge_mask = at < stop[:, None]
        column = tl.load(columns + at, mask=edge_mask, other=0).to(tl.int64)
        weight = tl.load(weights + at, mask=edge_mask, other=0.0)
        u, v, w = load_vectors(Y, column, edge_mask)
        dx = x[:, None] - u
        dy = y[:, None] - v
        dz = z[:, None] - w
        chord = dx * dx + dy * dy + dz * dz
        weight = weight / (1.0 + inverse_square * chord)
        to_x += weight * u
        to_y += weight * v
        to_z += weight * w
    f = -4.0 * inverse_square * tl.sum(to_x, axis=1)
    g = -4.0 * inverse_square * tl.sum(to_y, axis=1)
    h = -4.0 * inverse_square * tl.sum(to_z, axis=1)
    store_vectors(force, row, row_mask, f, g, h)


@triton.jit(do_not_specialize=["r"])
def longest_steps(ends, columns, X, r, lengths, steps, WIDTH: tl.constexpr, PART: tl.constexpr):
    """See `_detail.affinities.longest_steps`: one program per row, of at most WIDTH edges."""
    i = tl.program_id(0).to(tl.int64)
    start = tl.load(ends + i)
    j = tl.arange(0, WIDTH)
    edge_mask = j < tl.load(ends + i + 1) - start
    column = tl.load(columns + start + j, mask=edge_mask, other=0).to(tl.int64)
    length = tl.load(lengths + start + j, mask=edge_mask, other=0.0)
    step = length * length
    products = tl.zeros((WIDTH, WIDTH), tl.float32)
    for first in range(0, r, PART):
        c = first + tl.arange(0, PART)
        tile_mask = edge_mask[:, None] & (c < r)[None, :]
        x = tl.load(X + i * r + c, mask=c < r, other=0.0)[None, :]
        a = tl.load(X + column[:, None] * r + c[None, :], mask=tile_mask, other=0.0)
        a = tl.where(tile_mask, a - x, 0.0)
        products += tl.dot(a, tl.trans(a), input_precision="ieee")
    between = step[:, None] + step[None, :] - 2.0 * products
    between = tl.where(edge_mask[:, None], between, float("inf"))
    shorter = 1
    while shorter > 0:
        through = tl.min(tl.maximum(step[:, None], between), axis=0)
        shorter = tl.sum((through < step).to(tl.int32), axis=0)
        step = tl.minimum(step, through)
    tl.store(steps + start + j, tl.sqrt(step), mask=edge_mask)


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


@triton.jit
def _cell(row, column, i, mask, n_columns):
    """Positions within cells of a grid, offsets of their first rows of nodes, and their first columns."""
    r = tl.load(row + i, mask=mask, other=2.0)
    c = tl.load(column + i, mask=mask, other=0.0)
    r_below = tl.floor(r)
    c_below = tl.floor(c)
    corner = (r_below.to(tl.int32) - 1) * n_columns
    return r - r_below, c - c_below, corner, c_below.to(tl.int32) - 1


@triton.jit
def _wrapped(column, n_columns):
    """Columns of the grid, wrapped around the sphere."""
    column = tl.where(column < 0, column + n_columns, column)
    return tl.where(column >= n_columns, column - n_columns, column)


@triton.jit(do_not_specialize=["n", "n_columns", "size", "n_copies"])
def spread(row, column, n, n_columns, unit, grid, size, n_copies, BLOCK: tl.constexpr):
    """Add an integer charge of `unit` at each position (row, column) of a grid.

    Several copies of the grid reduce waiting, since additions to the same node are serialised.
    """
    grid += (tl.program_id(0) % n_copies).to(tl.int64) * size
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    t, s, corner, left = _cell(row, column, i, mask, n_columns)
    for a in tl.static_range(4):
        for b in tl.static_range(4):
            at = _wrapped(left + b, n_columns)
            charge = (_spline(t, a) * _spline(s, b) * unit + 0.5).to(tl.int64)
            tl.atomic_add(grid + corner + a * n_columns + at, charge, mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["n", "n_columns"])
def read_field(
    field, Y, row, column, n, n_columns, rows, columns, least_cosine, value, slope,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Value and gradient of a field at points Y (n x 3), with positions (row, column) on the grid.

    The grid has `rows` per radian of latitude and `columns` per radian of longitude.
    """
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = i < n
    t, s, corner, left = _cell(row, column, i, mask, n_columns)
    total = tl.zeros((BLOCK,), tl.float32)
    by_row = tl.zeros((BLOCK,), tl.float32)
    by_column = tl.zeros((BLOCK,), tl.float32)
    for a in tl.static_range(4):
        level = tl.zeros((BLOCK,), tl.float32)
        tilt = tl.zeros((BLOCK,), tl.float32)
        for b in tl.static_range(4):
            at = _wrapped(left + b, n_columns)
            f = tl.load(field + corner + a * n_columns + at, mask=mask, other=0.0)
            level += f * _spline(s, b)
            tilt += f * _spline_slope(s, b)
        total += _spline(t, a) * level
        by_row += _spline_slope(t, a) * level
        by_column += _spline(t, a) * tilt
    x, y, z = load_points(Y, i, mask)
    cosine = tl.maximum(tl.sqrt(x * x + y * y), least_cosine)
    north = by_row * rows
    east = by_column * columns / cosine
    x = x / cosine
    y = y / cosine
    tl.store(value + i, total, mask=mask)
    f = -z * x * north - y * east
    g = -z * y * north + x * east
    store_vectors(slope, i, mask, f, g, cosine * north)


@triton.jit(do_not_specialize=["n"])
def move(
    Y, velocity, force, curvature, n, momentum, factor, longest, new_Y, new_velocity, BLOCK: tl.constexpr
):  # fmt: skip
    """A step with momentum, against a force; see `_detail.descent._moved`."""
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = i < n
    x, y, z = load_points(Y, i, mask)
    u, v, w = load_vectors(velocity, i, mask)
    f, g, h = load_vectors(force, i, mask)
    normal_v = u * x + v * y + w * z
    normal_f = f * x + g * y + h * z
    step = factor / tl.load(curvature + i, mask=mask, other=1.0)
    u = momentum * (u - normal_v * x) - step * (f - normal_f * x)
    v = momentum * (v - normal_v * y) - step * (g - normal_f * y)
    w = momentum * (w - normal_v * z) - step * (h - normal_f * z)
    length = tl.sqrt(u * u + v * v + w * w)
    shorten = longest / tl.maximum(length, longest)
    x += shorten * u
    y += shorten * v
    z += shorten * w
    scale = 1.0 / tl.sqrt(x * x + y * y + z * z)
    store_vectors(new_Y, i, mask, x * scale, y * scale, z * scale)
    store_vectors(new_velocity, i, mask, u, v, w)


@triton.jit
def _force_as_apex(
    x, y, z, u, v, w, inv_d, product, x_norm, summed1, summed2, softening, alpha, beta
):  # fmt: skip
    """Force on points as apices over pairs of anchors, steepness, and moments."""
    B1, B2, inverse_sine = directions(x, y, z, u, v, w, inv_d > 0, softening)
    S1, S2, S12, t1, t2 = map_sums(B1, B2)
    of_b, of_bb = map_moments(S1, S2, S12, t1, t2)
    M1, M2, ab = mixed_sums(B1, B2, inv_d, product, x_norm, summed1, summed2)
    g1 = -M1 * inv_d
    g2 = -M2 * inv_d
    g1 += beta * (B1 * S1[:, None] + B2 * S12[:, None]) + alpha * t1[:, None]
    g2 += beta * (B2 * S2[:, None] + B1 * S12[:, None]) + alpha * t2[:, None]
    p1, p2 = pull_back_rotation(g1, g2, B1, B2, inverse_sine)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    along_U = tl.sum(p1 * cosine, axis=1)
    along_V = tl.sum(p2 * cosine, axis=1)
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    f = -along_U * Ux - along_V * Vx
    g = -along_U * Uy - along_V * Vy
    h = -along_U * Uz - along_V * Vz
    return f, g, h, tl.sum(inverse_sine * inverse_sine, axis=1), of_b, of_bb, ab - (S1 + S2)


@triton.jit
def _force_as_leg(x, y, z, inv_d, K1, K2, legs, j, m, leg_mask, softening, alpha, beta):
    """Force on points as legs at each anchor."""
    ux, uy, uz = load_legs(legs, j, m, leg_mask)
    vx, vy, vz = load_legs(legs + 3 * m, j, m, leg_mask)
    B1 = ux * x[:, None] + uy * y[:, None] + uz * z[:, None]
    B2 = vx * x[:, None] + vy * y[:, None] + vz * z[:, None]
    inverse_sine = tl.where(inv_d > 0, 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening), 0.0)
    B1 *= inverse_sine
    B2 *= inverse_sine
    s1, s2, s12 = load_legs(legs + 6 * m, j, m, leg_mask)
    g1 = alpha * tl.load(legs + 9 * m + j, mask=leg_mask, other=0.0)[None, :]
    g2 = alpha * tl.load(legs + 10 * m + j, mask=leg_mask, other=0.0)[None, :]
    K1 -= tl.load(legs + 11 * m + j, mask=leg_mask, other=0.0)[None, :]
    K2 -= tl.load(legs + 12 * m + j, mask=leg_mask, other=0.0)[None, :]
    g1 += beta * (B1 * s1 + B2 * s12) - K1 * inv_d
    g2 += beta * (B2 * s2 + B1 * s12) - K2 * inv_d
    p1, p2 = pull_back_rotation(g1, g2, B1, B2, inverse_sine)
    f = tl.sum(p1 * ux + p2 * vx, axis=1)
    g = tl.sum(p1 * uy + p2 * vy, axis=1)
    h = tl.sum(p1 * uz + p2 * vz, axis=1)
    return f, g, h


@triton.jit(do_not_specialize=["n", "m"])
def angle_force(
    Y, inv_d_ptr, products, summed, x_norms, n, legs_Y, legs, m, softening, alpha, beta,
    force, steepness, moments, ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """Forces of angles on points at Y (n x 3) from anchors; see `_detail.terms.AngleTerm`.

    `inv_d_ptr` (n x m) are inverse distances, `products` (n x 3 m) the inner products of the points with the
    anchors and with both parts of the anchors' sums M, `x_norms` the squared norms of the points, and
    `summed` (2 x n x m) the `weights` times the inner products of the anchors. `legs_Y` (3 x m) are the
    positions of the anchors, `legs` (13 x m) their frames, S, S12, t, and products with M. A block of points
    and all anchors are one tile.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    row_mask = i < n
    leg_mask = j < m
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    n64 = n.to(tl.int64)
    at = i[:, None] * m + j[None, :]
    inv_d = tl.load(inv_d_ptr + at, mask=tile_mask, other=0.0)
    summed1 = tl.load(summed + at, mask=tile_mask, other=0.0)
    summed2 = tl.load(summed + n64 * m + at, mask=tile_mask, other=0.0)
    at = i[:, None] * (3 * m) + j[None, :]
    product = tl.load(products + at, mask=tile_mask, other=0.0)
    K1 = tl.load(products + at + m, mask=tile_mask, other=0.0)
    K2 = tl.load(products + at + 2 * m, mask=tile_mask, other=0.0)
    x_norm = tl.load(x_norms + i, mask=row_mask, other=0.0)
    x, y, z = load_points(Y, i, row_mask)
    u, v, w = load_legs(legs_Y, j, m, leg_mask)
    f, g, h, squares, of_b, of_bb, of_ab = _force_as_apex(
        x, y, z, u, v, w, inv_d, product, x_norm, summed1, summed2, softening, alpha, beta
    )
    fu, fv, fw = _force_as_leg(x, y, z, inv_d, K1, K2, legs, j, m, leg_mask, softening, alpha, beta)
    f += fu
    g += fv
    h += fw
    store_vectors(force, i, row_mask, 4.0 * beta * f, 4.0 * beta * g, 4.0 * beta * h)
    tl.store(steepness + i, squares, mask=row_mask)
    tl.store(moments + i, of_b, mask=row_mask)
    tl.store(moments + n64 + i, of_bb, mask=row_mask)
    tl.store(moments + 2 * n64 + i, of_ab, mask=row_mask)
