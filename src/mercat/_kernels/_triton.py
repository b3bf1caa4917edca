# mypy: ignore-errors
"""Kernels in Triton: one program per block of points, which loops over neighbours, grid nodes or landmarks.

Sums run in a fixed order, or over integers, so that the same input gives the same bits in every run. Sizes
are not specialised: a kernel is compiled once for any number of rows, columns and landmarks.
"""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl


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


@triton.jit(do_not_specialize=["n", "n_columns"])
def spread(row, column, n, n_columns, unit, grid, BLOCK: tl.constexpr):
    """Add an integer charge of `unit` at each position (row, column) of a grid."""
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


@triton.jit
def _turned(g1, g2, B1, B2, inverse_sine):
    """The part of a gradient that turns directions; see `_math.angles.pull_back_turning`."""
    across = (g2 * B1 - g1 * B2) * inverse_sine
    return -B2 * across, B1 * across


@triton.jit
def _frame(x, y, z):
    """Tangent vectors at points; see `_math.sphere.tangent_frame`."""
    sign = tl.where(z >= 0, 1.0, -1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return 1.0 + sign * x * x * a, sign * b, -sign * x, b, sign + y * y * a, -y


@triton.jit(do_not_specialize=["n", "r", "m"])
def inverse_distances(
    X, n, r, legs_X, m, negligible, near, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """1 / |x_i - x_j| of points X (n x r) and legs (r x m); see `_math.angles.inverse_distances`."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    square = tl.zeros((ROWS, LEGS), tl.float32)
    norms = tl.zeros((ROWS, LEGS), tl.float32)
    for k in range(r):
        x = tl.load(X + i * r + k, mask=there, other=0.0)[:, None]
        a = tl.load(legs_X + k * m + j, mask=leg, other=0.0)[None, :]
        square += (a - x) * (a - x)
        norms += a * a + x * x
    apart = square > negligible * norms
    found = tl.where(apart, 1.0 / tl.sqrt(tl.where(apart, square, 1.0)), 0.0)
    tl.store(near + i[:, None] * m + j[None, :], found, mask=there[:, None] & leg[None, :])


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
def _by_distance(near, cosine, leg, p, q, least_sine):
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
    x = tl.load(Y + 3 * i, mask=there, other=1.0)[:, None]
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)[:, None]
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)[:, None]
    u = tl.load(legs_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :]
    both = there[:, None] & leg[None, :]
    close = tl.load(near + i[:, None] * m + j[None, :], mask=both, other=0.0)
    d, arc, residual, pull = _by_distance(
        close, x * u + y * v + z * w, leg[None, :], p, q, least_sine
    )
    tl.store(squares + i, tl.sum(residual * residual, axis=1), mask=there)
    tl.store(gradient + 3 * i, 2.0 * q * tl.sum(pull * u, axis=1), mask=there)
    tl.store(gradient + 3 * i + 1, 2.0 * q * tl.sum(pull * v, axis=1), mask=there)
    tl.store(gradient + 3 * i + 2, 2.0 * q * tl.sum(pull * w, axis=1), mask=there)
    far = n.to(tl.int64)
    tl.store(sums + i, tl.sum(d, axis=1), mask=there)
    tl.store(sums + far + i, tl.sum(arc, axis=1), mask=there)
    tl.store(sums + 2 * far + i, tl.sum(d * d, axis=1), mask=there)
    tl.store(sums + 3 * far + i, tl.sum(arc * arc, axis=1), mask=there)
    tl.store(sums + 4 * far + i, tl.sum(d * arc, axis=1), mask=there)


@triton.jit
def _directions(x, y, z, u, v, w, part, softening):
    """Unit directions from apices to legs along the sphere; see `_math.angles.bearings`."""
    Ux, Uy, Uz, Vx, Vy, Vz = _frame(x, y, z)
    B1 = Ux[:, None] * u + Uy[:, None] * v + Uz[:, None] * w
    B2 = Vx[:, None] * u + Vy[:, None] * v + Vz[:, None] * w
    inverse_sine = tl.where(part, 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening), 0.0)
    return B1 * inverse_sine, B2 * inverse_sine, inverse_sine


@triton.jit(do_not_specialize=["n", "m"])
def weights(
    Y, near, n, legs_Y, m, softening, found, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """Directions from points at Y (n x 3) to legs, divided by distances in the data (2 x n x m)."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.program_id(1) * LEGS + tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    u = tl.load(legs_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :]
    both = there[:, None] & leg[None, :]
    at = i[:, None] * m + j[None, :]
    close = tl.load(near + at, mask=both, other=0.0)
    B1, B2, _ = _directions(x, y, z, u, v, w, close > 0, softening)
    tl.store(found + at, B1 * close, mask=both)
    tl.store(found + n.to(tl.int64) * m + at, B2 * close, mask=both)


@triton.jit(do_not_specialize=["n", "m"])
def angle_force(
    Y, near, products, K, n, legs_Y, legs, m, softening, alpha, beta,
    force, steepness, moments, ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """Forces of angles on points at Y (n x 3) from anchors; see `_detail.terms.AngleTerm`.

    `near` (n x m) are inverse distances, `products` (2 x n x m) the products of the sums M at each point with
    the differences anchor minus point, `K` (2 x n x m) those of the sums at the anchors with the differences
    point minus anchor. `legs_Y` (3 x m) are the positions of the anchors, `legs` (11 x m) their frames, S,
    S12 and t. A block of points and all anchors are one tile.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = tl.arange(0, LEGS)
    there = i < n
    leg = j < m
    both = there[:, None] & leg[None, :]
    at = i[:, None] * m + j[None, :]
    far = n.to(tl.int64)
    close = tl.load(near + at, mask=both, other=0.0)
    part = close > 0
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    u = tl.load(legs_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :]

    # As an apex over pairs of anchors.
    B1, B2, inverse_sine = _directions(x, y, z, u, v, w, part, softening)
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    g1 = -tl.load(products + at, mask=both, other=0.0) * close
    g2 = -tl.load(products + far * m + at, mask=both, other=0.0) * close
    g1 += beta * (B1 * S1[:, None] + B2 * S12[:, None]) + alpha * t1[:, None]
    g2 += beta * (B2 * S2[:, None] + B1 * S12[:, None]) + alpha * t2[:, None]
    p1, p2 = _turned(g1, g2, B1, B2, inverse_sine)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    along_U = tl.sum(p1 * cosine, axis=1)
    along_V = tl.sum(p2 * cosine, axis=1)
    Ux, Uy, Uz, Vx, Vy, Vz = _frame(x, y, z)
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
    g1 += beta * (B1 * s1 + B2 * s12) - tl.load(K + at, mask=both, other=0.0) * close
    g2 += beta * (B2 * s2 + B1 * s12) - tl.load(K + far * m + at, mask=both, other=0.0) * close
    p1, p2 = _turned(g1, g2, B1, B2, inverse_sine)
    f += tl.sum(p1 * ux + p2 * vx, axis=1)
    g += tl.sum(p1 * uy + p2 * vy, axis=1)
    h += tl.sum(p1 * uz + p2 * vz, axis=1)
    tl.store(force + 3 * i, 4.0 * beta * f, mask=there)
    tl.store(force + 3 * i + 1, 4.0 * beta * g, mask=there)
    tl.store(force + 3 * i + 2, 4.0 * beta * h, mask=there)
    tl.store(steepness + i, steep, mask=there)
    tl.store(moments + i, t1 * t1 + t2 * t2 - itself, mask=there)
    tl.store(moments + far + i, S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself, mask=there)
    tl.store(moments + 2 * far + i, -itself, mask=there)  # with |M|^2 the sum of ab


@triton.jit
def _pulled_back(g1, g2, B1, B2, inverse_sine):
    """See `_math.angles.pull_back`."""
    along = g1 * B1 + g2 * B2
    return (g1 - B1 * along) * inverse_sine, (g2 - B2 * along) * inverse_sine


@triton.jit(do_not_specialize=["n", "n_legs", "m"])
def placement_energy(
    Y, n, K, legs, n_legs, apex_Y, near, products, ab, m, softening, alpha, beta, apex_weight,
    pair_weight, p, q, least_sine, energy, gradient,
    ROWS: tl.constexpr, LEGS: tl.constexpr, APEX_LEGS: tl.constexpr, GRADIENT: tl.constexpr,
):  # fmt: skip
    """Energy of points at Y (n x 3), and its tangent gradient; see `_solve.placement._Energy`.

    `K` (2 x n x L) and `legs` (9 x L: frames, sigma, sigma12) are for points as legs; `apex_Y` (3 x m) and
    `near` (n x m) for points as apices, with `products` (2 x n x m) of the sums M at each point with the
    differences leg minus point, and `ab` (n), the squared norm of M. Without GRADIENT, the energy does not
    include that of the point as a leg.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    there = i < n
    far = n.to(tl.int64)
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    E = tl.zeros((ROWS,), tl.float32)
    f = tl.zeros((ROWS,), tl.float32)
    g = tl.zeros((ROWS,), tl.float32)
    h = tl.zeros((ROWS,), tl.float32)
    if GRADIENT:
        for first in range(0, n_legs, LEGS):
            j = first + tl.arange(0, LEGS)
            leg = j < n_legs
            ux = tl.load(legs + j, mask=leg, other=0.0)[None, :]
            uy = tl.load(legs + n_legs + j, mask=leg, other=0.0)[None, :]
            uz = tl.load(legs + 2 * n_legs + j, mask=leg, other=0.0)[None, :]
            vx = tl.load(legs + 3 * n_legs + j, mask=leg, other=0.0)[None, :]
            vy = tl.load(legs + 4 * n_legs + j, mask=leg, other=0.0)[None, :]
            vz = tl.load(legs + 5 * n_legs + j, mask=leg, other=0.0)[None, :]
            s1 = tl.load(legs + 6 * n_legs + j, mask=leg, other=0.0)[None, :]
            s2 = tl.load(legs + 7 * n_legs + j, mask=leg, other=0.0)[None, :]
            s12 = tl.load(legs + 8 * n_legs + j, mask=leg, other=0.0)[None, :]
            both = there[:, None] & leg[None, :]
            at = i[:, None] * n_legs + j[None, :]
            K1 = tl.load(K + at, mask=both, other=0.0)
            K2 = tl.load(K + far * n_legs + at, mask=both, other=0.0)
            B1 = ux * x[:, None] + uy * y[:, None] + uz * z[:, None]
            B2 = vx * x[:, None] + vy * y[:, None] + vz * z[:, None]
            inverse_sine = 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening)
            B1 *= inverse_sine
            B2 *= inverse_sine
            g1 = B1 * s1 + B2 * s12 + K1
            g2 = B2 * s2 + B1 * s12 + K2
            E += 0.5 * tl.sum((g1 + K1) * B1 + (g2 + K2) * B2, axis=1)
            p1, p2 = _pulled_back(g1, g2, B1, B2, inverse_sine)
            f += tl.sum(p1 * ux + p2 * vx, axis=1)
            g += tl.sum(p1 * uy + p2 * vy, axis=1)
            h += tl.sum(p1 * uz + p2 * vz, axis=1)
    j = tl.arange(0, APEX_LEGS)
    leg = j < m
    u = tl.load(apex_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(apex_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(apex_Y + 2 * m + j, mask=leg, other=0.0)[None, :]
    both = there[:, None] & leg[None, :]
    at = i[:, None] * m + j[None, :]
    close = tl.load(near + at, mask=both, other=0.0)
    B1, B2, inverse_sine = _directions(x, y, z, u, v, w, close > 0, softening)
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    itself = S1 + S2
    of_b = t1 * t1 + t2 * t2 - itself
    of_bb = S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself
    of_ab = tl.load(ab + i, mask=there, other=0.0) - itself
    E += apex_weight * (beta * beta * of_bb - 2.0 * beta * of_ab + 2.0 * alpha * beta * of_b)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    _, _, residual, pull = _by_distance(close, cosine, leg[None, :], p, q, least_sine)
    E += pair_weight * tl.sum(residual * residual, axis=1)
    tl.store(energy + i, E, mask=there)
    if GRADIENT:
        gamma = 1.0 - alpha - beta / 2.0
        g1 = -tl.load(products + at, mask=both, other=0.0) * close
        g2 = -tl.load(products + far * m + at, mask=both, other=0.0) * close
        g1 += B1 * (beta * S1 + gamma)[:, None] + beta * B2 * S12[:, None] + alpha * t1[:, None]
        g2 += B2 * (beta * S2 + gamma)[:, None] + beta * B1 * S12[:, None] + alpha * t2[:, None]
        p1, p2 = _pulled_back(g1, g2, B1, B2, inverse_sine)
        along_U = 4.0 * beta * apex_weight * tl.sum(p1 * cosine, axis=1)
        along_V = 4.0 * beta * apex_weight * tl.sum(p2 * cosine, axis=1)
        Ux, Uy, Uz, Vx, Vy, Vz = _frame(x, y, z)
        f -= along_U * Ux + along_V * Vx
        g -= along_U * Uy + along_V * Vy
        h -= along_U * Uz + along_V * Vz
        f += 2.0 * q * pair_weight * tl.sum(pull * u, axis=1)
        g += 2.0 * q * pair_weight * tl.sum(pull * v, axis=1)
        h += 2.0 * q * pair_weight * tl.sum(pull * w, axis=1)
        out = f * x + g * y + h * z
        tl.store(gradient + 3 * i, f - out * x, mask=there)
        tl.store(gradient + 3 * i + 1, g - out * y, mask=there)
        tl.store(gradient + 3 * i + 2, h - out * z, mask=there)
