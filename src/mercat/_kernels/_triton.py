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


@triton.jit
def _inverse(i, j, there, leg, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible):
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
    found = _inverse(
        i, j, there, leg, X, r, legs_X, m, product, x_norm, leg_norm, trusted, negligible
    )
    tl.store(near + at, found, mask=both)


@triton.jit(do_not_specialize=["n", "r", "n_legs", "m"])
def linear_parts(
    X, n, r, legs_X, n_legs, products, x_norms, leg_norms, offsets, trusted, negligible, m,
    K, near, nearest, ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_solve.placement._linear_parts`: `K` (2 x n x L), `near` (n x m) and `nearest` (n).

    `products` (n x 3 L) are those of points with landmarks (r x L) and with both parts of P, `offsets`
    (4 x L) are p and T.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    there = i < n
    far = n.to(tl.int64) * n_legs
    x_norm = tl.load(x_norms + i, mask=there, other=0.0)
    least = tl.full((ROWS,), float("inf"), tl.float32)
    for first in range(0, n_legs, LEGS):
        j = first + tl.arange(0, LEGS)
        leg = j < n_legs
        both = there[:, None] & leg[None, :]
        at = i[:, None] * (3 * n_legs) + j[None, :]
        product = tl.load(products + at, mask=both, other=0.0)
        leg_norm = tl.load(leg_norms + j, mask=leg, other=0.0)
        close = _inverse(
            i, j, there, leg, X, r, legs_X, n_legs, product, x_norm, leg_norm, trusted, negligible
        )
        least = tl.minimum(least, tl.min(tl.where(leg[None, :], close, float("inf")), axis=1))
        for part in tl.static_range(2):
            p = tl.load(offsets + part * n_legs + j, mask=leg, other=0.0)[None, :]
            t = tl.load(offsets + (2 + part) * n_legs + j, mask=leg, other=0.0)[None, :]
            value = tl.load(products + at + (1 + part) * n_legs, mask=both, other=0.0)
            out = K + part * far + i[:, None] * n_legs + j[None, :]
            tl.store(out, (value - p) * close + t, mask=both)
        tl.store(near + i[:, None] * m + j[None, :], close, mask=both & (j < m)[None, :])
    tl.store(nearest + i, least, mask=there)


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


@triton.jit
def _over_pairs(W, P, q, summed):
    """Sums over legs k of W_k (x_k - x).(x_j - x).

    P are the inner products of x with the legs, q is |x|^2, `summed` are the sums of W_k x_k.x_j.
    """
    total = tl.sum(W, axis=1)
    mixed = q * total - tl.sum(W * P, axis=1)
    return summed - P * total[:, None] + mixed[:, None]


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
    B1, B2, inverse_sine = _directions(x, y, z, u, v, w, part, softening)
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    W1 = B1 * close
    W2 = B2 * close
    M1 = _over_pairs(W1, product, q, summed1)
    M2 = _over_pairs(W2, product, q, summed2)
    ab = tl.sum(W1 * M1 + W2 * M2, axis=1)
    g1 = -M1 * close
    g2 = -M2 * close
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
    K1 = tl.load(products + at + m, mask=both, other=0.0)
    K2 = tl.load(products + at + 2 * m, mask=both, other=0.0)
    K1 -= tl.load(legs + 11 * m + j, mask=leg, other=0.0)[None, :]
    K2 -= tl.load(legs + 12 * m + j, mask=leg, other=0.0)[None, :]
    g1 += beta * (B1 * s1 + B2 * s12) - K1 * close
    g2 += beta * (B2 * s2 + B1 * s12) - K2 * close
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
    tl.store(moments + 2 * far + i, ab - itself, mask=there)


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
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    u = tl.load(legs_Y + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :]
    B1, B2, _ = _directions(x, y, z, u, v, w, close > 0, softening)
    all_a = tl.zeros((ROWS, LEGS), tl.float32)
    all_aa = tl.zeros((ROWS, LEGS), tl.float32)
    all_ab = tl.zeros((ROWS, LEGS), tl.float32)
    Ux, Uy, Uz, Vx, Vy, Vz = _frame(x, y, z)
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
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    itself = S1 + S2
    number = tl.sum((close > 0).to(tl.float32), axis=1)
    tl.store(found + i, number * (number - 1.0), mask=there)
    tl.store(found + far + i, a - number, mask=there)
    tl.store(found + 2 * far + i, aa - number, mask=there)
    tl.store(found + 3 * far + i, t1 * t1 + t2 * t2 - itself, mask=there)
    tl.store(found + 4 * far + i, S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself, mask=there)
    tl.store(found + 5 * far + i, ab - itself, mask=there)


@triton.jit
def _pulled_back(g1, g2, B1, B2, inverse_sine):
    """See `_math.angles.pull_back`."""
    along = g1 * B1 + g2 * B2
    return (g1 - B1 * along) * inverse_sine, (g2 - B2 * along) * inverse_sine


@triton.jit
def _energy_as_leg(
    i, there, x, y, z, n, K, legs, n_legs, softening, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """Energy of points as legs at each landmark, and its gradient in space."""
    far = n.to(tl.int64) * n_legs
    E = tl.zeros((ROWS,), tl.float32)
    f = tl.zeros((ROWS,), tl.float32)
    g = tl.zeros((ROWS,), tl.float32)
    h = tl.zeros((ROWS,), tl.float32)
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
        K2 = tl.load(K + far + at, mask=both, other=0.0)
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
    return E, f, g, h


@triton.jit
def _energy_as_apex(
    x, y, z, u, v, w, leg, close, product, q, summed1, summed2, softening, alpha, beta, apex_weight,
    pair_weight, line_p, line_q, least_sine,
):  # fmt: skip
    """Energy of points as apices and of their distances, and its gradient in space."""
    B1, B2, inverse_sine = _directions(x, y, z, u, v, w, close > 0, softening)
    S1 = tl.sum(B1 * B1, axis=1)
    S2 = tl.sum(B2 * B2, axis=1)
    S12 = tl.sum(B1 * B2, axis=1)
    t1 = tl.sum(B1, axis=1)
    t2 = tl.sum(B2, axis=1)
    W1 = B1 * close
    W2 = B2 * close
    M1 = _over_pairs(W1, product, q, summed1)
    M2 = _over_pairs(W2, product, q, summed2)
    itself = S1 + S2
    of_b = t1 * t1 + t2 * t2 - itself
    of_bb = S1 * S1 + S2 * S2 + 2.0 * S12 * S12 - itself
    of_ab = tl.sum(W1 * M1 + W2 * M2, axis=1) - itself
    E = apex_weight * (beta * beta * of_bb - 2.0 * beta * of_ab + 2.0 * alpha * beta * of_b)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    _, _, residual, pull = _by_distance(close, cosine, leg[None, :], line_p, line_q, least_sine)
    E += pair_weight * tl.sum(residual * residual, axis=1)
    gamma = 1.0 - alpha - beta / 2.0
    g1 = B1 * (beta * S1 + gamma)[:, None] + beta * B2 * S12[:, None] + alpha * t1[:, None]
    g2 = B2 * (beta * S2 + gamma)[:, None] + beta * B1 * S12[:, None] + alpha * t2[:, None]
    p1, p2 = _pulled_back(g1 - M1 * close, g2 - M2 * close, B1, B2, inverse_sine)
    along_U = 4.0 * beta * apex_weight * tl.sum(p1 * cosine, axis=1)
    along_V = 4.0 * beta * apex_weight * tl.sum(p2 * cosine, axis=1)
    Ux, Uy, Uz, Vx, Vy, Vz = _frame(x, y, z)
    f = 2.0 * line_q * pair_weight * tl.sum(pull * u, axis=1) - along_U * Ux - along_V * Vx
    g = 2.0 * line_q * pair_weight * tl.sum(pull * v, axis=1) - along_U * Uy - along_V * Vy
    h = 2.0 * line_q * pair_weight * tl.sum(pull * w, axis=1) - along_U * Uz - along_V * Vz
    return E, f, g, h


@triton.jit
def _newton(a, b, c, d, e, k, f, g, h, x, y, z):
    """The step -H g along the sphere, for symmetric H with rows (a, b, c), (b, d, e), (c, e, k)."""
    u = -(a * f + b * g + c * h)
    v = -(b * f + d * g + e * h)
    w = -(c * f + e * g + k * h)
    out = u * x + v * y + w * z
    u -= out * x
    v -= out * y
    w -= out * z
    return u, v, w, tl.sqrt(u * u + v * v + w * w)


@triton.jit(do_not_specialize=["n", "n_places", "n_kept"])
def choose(
    n, places, n_places, screened, n_kept, cos_apart, chosen, lowest,
    ROWS: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """The `n_kept` places (3 x G) of lowest energy (n x G), apart from each other, and these energies.

    See `_solve.placement._best_candidate`.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    there = i < n
    at = tl.arange(0, PLACES)
    one = at < n_places
    x = tl.load(places + at, mask=one, other=0.0)[None, :]
    y = tl.load(places + n_places + at, mask=one, other=0.0)[None, :]
    z = tl.load(places + 2 * n_places + at, mask=one, other=0.0)[None, :]
    both = there[:, None] & one[None, :]
    energy = tl.load(screened + i[:, None] * n_places + at[None, :], mask=both, other=float("inf"))
    for k in range(n_kept):
        least, which = tl.min(energy, axis=1, return_indices=True)
        tl.store(chosen + i * n_kept + k, which, mask=there)
        tl.store(lowest + i * n_kept + k, least, mask=there)
        u = tl.load(places + which, mask=there, other=0.0)[:, None]
        v = tl.load(places + n_places + which, mask=there, other=0.0)[:, None]
        w = tl.load(places + 2 * n_places + which, mask=there, other=0.0)[:, None]
        energy = tl.where(x * u + y * v + z * w > cos_apart, float("inf"), energy)


@triton.jit(do_not_specialize=["n_rows", "n", "n_legs", "m", "stride", "as_leg"])
def energy(
    rows, n_rows, n, Y, K, legs, n_legs, legs_Y, near, products, stride, x_norms, summed, m, as_leg,
    softening, alpha, beta, apex_weight, pair_weight, line_p, line_q, least_sine, found, gradient,
    ROWS: tl.constexpr, LEGS: tl.constexpr, APEX_LEGS: tl.constexpr,
):  # fmt: skip
    """Energy of some `rows` of n points at Y (rows x 3), and its tangent gradient.

    See `_solve.placement._Energy`. `K` (2 x n x L) and `legs` (9 x L: frames, sigma, sigma12) are for points
    as legs, unless `as_leg` is 0. `legs_Y` (3 x m), `near` (n x m), `products` (n rows of `stride`),
    `x_norms` (n) and `summed` (2 x rows x m, the `weights` times the inner products of the legs) are for
    points as apices.
    """
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    there = row < n_rows
    i = tl.load(rows + row, mask=there, other=0)
    j = tl.arange(0, APEX_LEGS)
    leg = j < m
    both = there[:, None] & leg[None, :]
    at = row[:, None] * m + j[None, :]
    x = tl.load(Y + 3 * row, mask=there, other=1.0)
    y = tl.load(Y + 3 * row + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * row + 2, mask=there, other=0.0)
    E, f, g, h = _energy_as_apex(
        x, y, z,
        tl.load(legs_Y + j, mask=leg, other=0.0)[None, :],
        tl.load(legs_Y + m + j, mask=leg, other=0.0)[None, :],
        tl.load(legs_Y + 2 * m + j, mask=leg, other=0.0)[None, :],
        leg,
        tl.load(near + i[:, None] * m + j[None, :], mask=both, other=0.0),
        tl.load(products + i[:, None] * stride + j[None, :], mask=both, other=0.0),
        tl.load(x_norms + i, mask=there, other=0.0),
        tl.load(summed + at, mask=both, other=0.0),
        tl.load(summed + n_rows.to(tl.int64) * m + at, mask=both, other=0.0),
        softening, alpha, beta, apex_weight, pair_weight, line_p, line_q, least_sine,
    )  # fmt: skip
    if as_leg > 0:
        more, u, v, w = _energy_as_leg(i, there, x, y, z, n, K, legs, n_legs, softening, ROWS, LEGS)
        E += more
        f += u
        g += v
        h += w
    out = f * x + g * y + h * z
    tl.store(found + row, E, mask=there)
    tl.store(gradient + 3 * row, f - out * x, mask=there)
    tl.store(gradient + 3 * row + 1, g - out * y, mask=there)
    tl.store(gradient + 3 * row + 2, h - out * z, mask=there)


@triton.jit(do_not_specialize=["n", "step", "last"])
def bfgs(
    n, step, last, first_step, longest, rounding, short, trial, found, slope,
    Y, gradient, state, BLOCK: tl.constexpr,
):  # fmt: skip
    """A step of BFGS of n points, each on its own, see `_solve.placement._advance`.

    At the positions `trial` (n x 3), the energy is `found` (n) and its gradient `slope` (n x 3). Positions Y
    (n x 3), `gradient` (n x 3) and `state` (8 x n: energy, inverse Hessian, whether the point has converged)
    are updated, and `trial` is the next position. Step 0 finds energy and gradient of the first position.
    """
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    there = i < n
    far = n.to(tl.int64)
    started = i < tl.where(step > 0, n, 0)
    nx = tl.load(trial + 3 * i, mask=there, other=1.0)
    ny = tl.load(trial + 3 * i + 1, mask=there, other=0.0)
    nz = tl.load(trial + 3 * i + 2, mask=there, other=0.0)
    nf = tl.load(slope + 3 * i, mask=there, other=0.0)
    ng = tl.load(slope + 3 * i + 1, mask=there, other=0.0)
    nh = tl.load(slope + 3 * i + 2, mask=there, other=0.0)
    new = tl.load(found + i, mask=there, other=0.0)
    x = tl.where(started, tl.load(Y + 3 * i, mask=started, other=1.0), nx)
    y = tl.where(started, tl.load(Y + 3 * i + 1, mask=started, other=0.0), ny)
    z = tl.where(started, tl.load(Y + 3 * i + 2, mask=started, other=0.0), nz)
    f = tl.load(gradient + 3 * i, mask=started, other=0.0)
    g = tl.load(gradient + 3 * i + 1, mask=started, other=0.0)
    h = tl.load(gradient + 3 * i + 2, mask=started, other=0.0)
    E = tl.load(state + i, mask=started, other=float("inf"))
    a = tl.load(state + far + i, mask=started, other=0.0)
    b = tl.load(state + 2 * far + i, mask=started, other=0.0)
    c = tl.load(state + 3 * far + i, mask=started, other=0.0)
    d = tl.load(state + 4 * far + i, mask=started, other=0.0)
    e = tl.load(state + 5 * far + i, mask=started, other=0.0)
    k = tl.load(state + 6 * far + i, mask=started, other=0.0)
    su = nx - x
    sv = ny - y
    sw = nz - z
    yu = nf - f
    yv = ng - g
    yw = nh - h
    sy = su * yu + sv * yv + sw * yw
    lengths = tl.sqrt(su * su + sv * sv + sw * sw) * tl.sqrt(yu * yu + yv * yv + yw * yw)
    curved = started & (sy > 1e-3 * lengths) & (sy > 1.1754944e-32)
    rho = tl.where(curved, 1.0 / tl.where(curved, sy, 1.0), 0.0)
    hu = a * yu + b * yv + c * yw
    hv = b * yu + d * yv + e * yw
    hw = c * yu + e * yv + k * yw
    both_ways = (1.0 + (yu * hu + yv * hv + yw * hw) * rho) * rho
    better = new <= E
    level = new - E <= rounding * tl.abs(E)
    stretch = tl.where(better, 2.0, 0.25)
    a = tl.where(curved, a + both_ways * su * su - 2.0 * rho * su * hu, a * stretch)
    b = tl.where(curved, b + both_ways * su * sv - rho * (su * hv + hu * sv), b * stretch)
    c = tl.where(curved, c + both_ways * su * sw - rho * (su * hw + hu * sw), c * stretch)
    d = tl.where(curved, d + both_ways * sv * sv - 2.0 * rho * sv * hv, d * stretch)
    e = tl.where(curved, e + both_ways * sv * sw - rho * (sv * hw + hv * sw), e * stretch)
    k = tl.where(curved, k + both_ways * sw * sw - 2.0 * rho * sw * hw, k * stretch)
    x = tl.where(better, nx, x)
    y = tl.where(better, ny, y)
    z = tl.where(better, nz, z)
    f = tl.where(better, nf, f)
    g = tl.where(better, ng, g)
    h = tl.where(better, nh, h)
    E = tl.where(better, new, E)
    # The first step is along the gradient.
    steep = tl.sqrt(f * f + g * g + h * h)
    start = tl.where(steep > 0, first_step / tl.where(steep > 0, steep, 1.0), 0.0)
    a = tl.where(started, a, start)
    b = tl.where(started, b, 0.0)
    c = tl.where(started, c, 0.0)
    d = tl.where(started, d, start)
    e = tl.where(started, e, 0.0)
    k = tl.where(started, k, start)
    u, v, w, length = _newton(a, b, c, d, e, k, f, g, h, x, y, z)
    done = level & (length < short) & (step == last)
    shorten = tl.minimum(longest / (length + 1.1754944e-38), 1.0)
    nx = x + shorten * u
    ny = y + shorten * v
    nz = z + shorten * w
    norm = tl.sqrt(nx * nx + ny * ny + nz * nz)
    tl.store(trial + 3 * i, nx / norm, mask=there)
    tl.store(trial + 3 * i + 1, ny / norm, mask=there)
    tl.store(trial + 3 * i + 2, nz / norm, mask=there)
    tl.store(Y + 3 * i, x, mask=there)
    tl.store(Y + 3 * i + 1, y, mask=there)
    tl.store(Y + 3 * i + 2, z, mask=there)
    tl.store(gradient + 3 * i, f, mask=there)
    tl.store(gradient + 3 * i + 1, g, mask=there)
    tl.store(gradient + 3 * i + 2, h, mask=there)
    tl.store(state + i, E, mask=there)
    tl.store(state + far + i, a, mask=there)
    tl.store(state + 2 * far + i, b, mask=there)
    tl.store(state + 3 * far + i, c, mask=there)
    tl.store(state + 4 * far + i, d, mask=there)
    tl.store(state + 5 * far + i, e, mask=there)
    tl.store(state + 6 * far + i, k, mask=there)
    tl.store(state + 7 * far + i, done.to(tl.float32), mask=there)
