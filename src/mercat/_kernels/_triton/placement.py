# mypy: ignore-errors
"""Placing of points: energies, the choice of a candidate, and BFGS."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl

from .angles import directions, frame, map_moments, map_sums, mixed_sums, pull_back
from .distances import distance_residuals, inverse
from .memory import load_legs, load_points, load_vectors, store_vectors


@triton.jit(do_not_specialize=["n", "r", "n_legs", "m"])
def linear_parts(
    X, n, r, legs_X, n_legs, products, x_norms, leg_norms, offsets, trusted, negligible, m,
    K, inv_d_ptr, min_inv_d, ROWS: tl.constexpr, LEGS: tl.constexpr,
):  # fmt: skip
    """See `_solve.energy._linear_parts`: K (2 x n x L), inverse distances (n x m) and their minima (n).

    `products` (n x 3 L) are the inner products of points with landmarks (r x L) and with both parts of P;
    `offsets` (4 x L) are p and T.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    row_mask = i < n
    n_pairs = n.to(tl.int64) * n_legs
    x_norm = tl.load(x_norms + i, mask=row_mask, other=0.0)
    least = tl.full((ROWS,), float("inf"), tl.float32)
    for first in range(0, n_legs, LEGS):
        j = first + tl.arange(0, LEGS)
        leg_mask = j < n_legs
        tile_mask = row_mask[:, None] & leg_mask[None, :]
        at = i[:, None] * (3 * n_legs) + j[None, :]
        product = tl.load(products + at, mask=tile_mask, other=0.0)
        leg_norm = tl.load(leg_norms + j, mask=leg_mask, other=0.0)
        inv_d = inverse(
            i,
            j,
            row_mask,
            leg_mask,
            X,
            r,
            legs_X,
            n_legs,
            product,
            x_norm,
            leg_norm,
            trusted,
            negligible,
        )
        least = tl.minimum(least, tl.min(tl.where(leg_mask[None, :], inv_d, float("inf")), axis=1))
        for part in tl.static_range(2):
            p = tl.load(offsets + part * n_legs + j, mask=leg_mask, other=0.0)[None, :]
            t = tl.load(offsets + (2 + part) * n_legs + j, mask=leg_mask, other=0.0)[None, :]
            value = tl.load(products + at + (1 + part) * n_legs, mask=tile_mask, other=0.0)
            K_part = K + part * n_pairs + i[:, None] * n_legs + j[None, :]
            tl.store(K_part, (value - p) * inv_d + t, mask=tile_mask)
        tl.store(inv_d_ptr + i[:, None] * m + j[None, :], inv_d, mask=tile_mask & (j < m)[None, :])
    tl.store(min_inv_d + i, least, mask=row_mask)


@triton.jit(do_not_specialize=["n", "n_places", "n_kept"])
def choose(
    n, places, n_places, screened, n_kept, cos_apart, chosen, lowest,
    ROWS: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    """The places (3 x G) with the lowest energies (n x G), and these energies.

    `n_kept` places, which are apart from each other, are chosen for each point. See
    `_solve.energy._best_candidate`.
    """
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    row_mask = i < n
    place = tl.arange(0, PLACES)
    place_mask = place < n_places
    x, y, z = load_legs(places, place, n_places, place_mask)
    tile_mask = row_mask[:, None] & place_mask[None, :]
    energy = tl.load(
        screened + i[:, None] * n_places + place[None, :], mask=tile_mask, other=float("inf")
    )
    for k in range(n_kept):
        least, which = tl.min(energy, axis=1, return_indices=True)
        tl.store(chosen + i * n_kept + k, which, mask=row_mask)
        tl.store(lowest + i * n_kept + k, least, mask=row_mask)
        u = tl.load(places + which, mask=row_mask, other=0.0)[:, None]
        v = tl.load(places + n_places + which, mask=row_mask, other=0.0)[:, None]
        w = tl.load(places + 2 * n_places + which, mask=row_mask, other=0.0)[:, None]
        energy = tl.where(x * u + y * v + z * w > cos_apart, float("inf"), energy)


@triton.jit
def _energy_as_leg(
    i, row_mask, x, y, z, n, K, legs, n_legs, softening, ROWS: tl.constexpr, LEGS: tl.constexpr
):  # fmt: skip
    """Energy of points as legs at each landmark, and its gradient in space."""
    n_pairs = n.to(tl.int64) * n_legs
    E = tl.zeros((ROWS,), tl.float32)
    f = tl.zeros((ROWS,), tl.float32)
    g = tl.zeros((ROWS,), tl.float32)
    h = tl.zeros((ROWS,), tl.float32)
    for first in range(0, n_legs, LEGS):
        j = first + tl.arange(0, LEGS)
        leg_mask = j < n_legs
        ux, uy, uz = load_legs(legs, j, n_legs, leg_mask)
        vx, vy, vz = load_legs(legs + 3 * n_legs, j, n_legs, leg_mask)
        s1, s2, s12 = load_legs(legs + 6 * n_legs, j, n_legs, leg_mask)
        tile_mask = row_mask[:, None] & leg_mask[None, :]
        at = i[:, None] * n_legs + j[None, :]
        K1 = tl.load(K + at, mask=tile_mask, other=0.0)
        K2 = tl.load(K + n_pairs + at, mask=tile_mask, other=0.0)
        B1 = ux * x[:, None] + uy * y[:, None] + uz * z[:, None]
        B2 = vx * x[:, None] + vy * y[:, None] + vz * z[:, None]
        inverse_sine = 1.0 / tl.sqrt(B1 * B1 + B2 * B2 + softening)
        B1 *= inverse_sine
        B2 *= inverse_sine
        g1 = B1 * s1 + B2 * s12 + K1
        g2 = B2 * s2 + B1 * s12 + K2
        E += 0.5 * tl.sum((g1 + K1) * B1 + (g2 + K2) * B2, axis=1)
        p1, p2 = pull_back(g1, g2, B1, B2, inverse_sine)
        f += tl.sum(p1 * ux + p2 * vx, axis=1)
        g += tl.sum(p1 * uy + p2 * vy, axis=1)
        h += tl.sum(p1 * uz + p2 * vz, axis=1)
    return E, f, g, h


@triton.jit
def _energy_as_apex(
    x, y, z, u, v, w, leg_mask, inv_d, scaled_inv_d, product, x_norm, summed1, summed2, softening, alpha,
    beta, apex_weight, pair_weight, line_p, line_q, least_sine,
):  # fmt: skip
    """Energy of points as apices and of their distances, and its gradient in space."""
    B1, B2, inverse_sine = directions(x, y, z, u, v, w, inv_d > 0, softening)
    S1, S2, S12, t1, t2 = map_sums(B1, B2)
    of_b, of_bb = map_moments(S1, S2, S12, t1, t2)
    M1, M2, ab = mixed_sums(B1, B2, inv_d, product, x_norm, summed1, summed2)
    of_ab = ab - (S1 + S2)
    E = apex_weight * (beta * beta * of_bb - 2.0 * beta * of_ab + 2.0 * alpha * beta * of_b)
    cosine = x[:, None] * u + y[:, None] * v + z[:, None] * w
    _, _, residual, scaled_residual = distance_residuals(
        scaled_inv_d, cosine, leg_mask[None, :], line_p, line_q, least_sine
    )
    E += pair_weight * tl.sum(residual * residual, axis=1)
    gamma = 1.0 - alpha - beta / 2.0
    g1 = B1 * (beta * S1 + gamma)[:, None] + beta * B2 * S12[:, None] + alpha * t1[:, None]
    g2 = B2 * (beta * S2 + gamma)[:, None] + beta * B1 * S12[:, None] + alpha * t2[:, None]
    p1, p2 = pull_back(g1 - M1 * inv_d, g2 - M2 * inv_d, B1, B2, inverse_sine)
    along_U = 4.0 * beta * apex_weight * tl.sum(p1 * cosine, axis=1)
    along_V = 4.0 * beta * apex_weight * tl.sum(p2 * cosine, axis=1)
    Ux, Uy, Uz, Vx, Vy, Vz = frame(x, y, z)
    f = (
        2.0 * line_q * pair_weight * tl.sum(scaled_residual * u, axis=1)
        - along_U * Ux
        - along_V * Vx
    )
    g = (
        2.0 * line_q * pair_weight * tl.sum(scaled_residual * v, axis=1)
        - along_U * Uy
        - along_V * Vy
    )
    h = (
        2.0 * line_q * pair_weight * tl.sum(scaled_residual * w, axis=1)
        - along_U * Uz
        - along_V * Vz
    )
    return E, f, g, h


@triton.jit(do_not_specialize=["n_rows", "n", "n_legs", "m", "stride", "as_leg"])
def energy(
    rows, n_rows, n, Y, K, legs, n_legs, legs_Y, inv_d_ptr, scaled_ptr, products, stride, x_norms, summed, m,
    as_leg, softening, alpha, beta, apex_weight, pair_weight, line_p, line_q, least_sine,
    energies, gradient,
    ROWS: tl.constexpr, LEGS: tl.constexpr, APEX_LEGS: tl.constexpr,
):  # fmt: skip
    """Energy of some `rows` of n points at Y (rows x 3), and its tangent gradient.

    See `_solve.energy.Energy`. `K` (2 x n x L) and `legs` (9 x L: frames, sigma, sigma12) are for points
    as legs, unless `as_leg` is 0. `legs_Y` (3 x m), the inverse distances `inv_d_ptr` (n x m), `products` (n
    rows of `stride`), `x_norms` (n) and `summed` (2 x rows x m, the `weights` times the inner products of the
    legs) are for points as apices. `scaled_ptr` (n x m) are inverse distances on the scale of the distance
    term.
    """
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    row_mask = row < n_rows
    i = tl.load(rows + row, mask=row_mask, other=0)
    j = tl.arange(0, APEX_LEGS)
    leg_mask = j < m
    tile_mask = row_mask[:, None] & leg_mask[None, :]
    at = row[:, None] * m + j[None, :]
    x, y, z = load_points(Y, row, row_mask)
    E, f, g, h = _energy_as_apex(
        x, y, z,
        tl.load(legs_Y + j, mask=leg_mask, other=0.0)[None, :],
        tl.load(legs_Y + m + j, mask=leg_mask, other=0.0)[None, :],
        tl.load(legs_Y + 2 * m + j, mask=leg_mask, other=0.0)[None, :],
        leg_mask,
        tl.load(inv_d_ptr + i[:, None] * m + j[None, :], mask=tile_mask, other=0.0),
        tl.load(scaled_ptr + i[:, None] * m + j[None, :], mask=tile_mask, other=0.0),
        tl.load(products + i[:, None] * stride + j[None, :], mask=tile_mask, other=0.0),
        tl.load(x_norms + i, mask=row_mask, other=0.0),
        tl.load(summed + at, mask=tile_mask, other=0.0),
        tl.load(summed + n_rows.to(tl.int64) * m + at, mask=tile_mask, other=0.0),
        softening, alpha, beta, apex_weight, pair_weight, line_p, line_q, least_sine,
    )  # fmt: skip
    if as_leg > 0:
        leg_energy, u, v, w = _energy_as_leg(
            i, row_mask, x, y, z, n, K, legs, n_legs, softening, ROWS, LEGS
        )
        E += leg_energy
        f += u
        g += v
        h += w
    normal = f * x + g * y + h * z
    tl.store(energies + row, E, mask=row_mask)
    store_vectors(gradient, row, row_mask, f - normal * x, g - normal * y, h - normal * z)


@triton.jit
def _newton(a, b, c, d, e, k, f, g, h, x, y, z):
    """The step -H g along the sphere, for symmetric H with rows (a, b, c), (b, d, e), (c, e, k)."""
    u = -(a * f + b * g + c * h)
    v = -(b * f + d * g + e * h)
    w = -(c * f + e * g + k * h)
    normal = u * x + v * y + w * z
    u -= normal * x
    v -= normal * y
    w -= normal * z
    return u, v, w, tl.sqrt(u * u + v * v + w * w)


@triton.jit
def _updated(a, b, c, d, e, k, su, sv, sw, yu, yv, yw, started, stretch):
    """The inverse Hessian after a step s that changes the gradient by y; scaled if there is no curvature."""
    sy = su * yu + sv * yv + sw * yw
    lengths = tl.sqrt(su * su + sv * sv + sw * sw) * tl.sqrt(yu * yu + yv * yv + yw * yw)
    curved = started & (sy > 1e-3 * lengths) & (sy > 1.1754944e-32)
    rho = tl.where(curved, 1.0 / tl.where(curved, sy, 1.0), 0.0)
    hu = a * yu + b * yv + c * yw
    hv = b * yu + d * yv + e * yw
    hw = c * yu + e * yv + k * yw
    factor = (1.0 + (yu * hu + yv * hv + yw * hw) * rho) * rho
    a = tl.where(curved, a + factor * su * su - 2.0 * rho * su * hu, a * stretch)
    b = tl.where(curved, b + factor * su * sv - rho * (su * hv + hu * sv), b * stretch)
    c = tl.where(curved, c + factor * su * sw - rho * (su * hw + hu * sw), c * stretch)
    d = tl.where(curved, d + factor * sv * sv - 2.0 * rho * sv * hv, d * stretch)
    e = tl.where(curved, e + factor * sv * sw - rho * (sv * hw + hv * sw), e * stretch)
    k = tl.where(curved, k + factor * sw * sw - 2.0 * rho * sw * hw, k * stretch)
    return a, b, c, d, e, k


@triton.jit(do_not_specialize=["n", "step", "last"])
def bfgs(
    n, step, last, first_step, longest, rounding, converged_step, trial, trial_energy, trial_gradient,
    Y, gradient, state, BLOCK: tl.constexpr,
):  # fmt: skip
    """A BFGS step of n points, each independently; see `_solve.bfgs._advance`.

    At the positions `trial` (n x 3), the energy is `trial_energy` (n) and its gradient `trial_gradient`
    (n x 3). Positions Y (n x 3), `gradient` (n x 3) and `state` (8 x n: energy, inverse Hessian, whether the
    point has converged) are updated, and `trial` is the next position. Step 0 initialises them at
    the first position.
    """
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = i < n
    n64 = n.to(tl.int64)
    started = i < tl.where(step > 0, n, 0)
    nx, ny, nz = load_points(trial, i, mask)
    nf, ng, nh = load_vectors(trial_gradient, i, mask)
    new = tl.load(trial_energy + i, mask=mask, other=0.0)
    x, y, z = load_points(Y, i, started)
    x = tl.where(started, x, nx)
    y = tl.where(started, y, ny)
    z = tl.where(started, z, nz)
    f, g, h = load_vectors(gradient, i, started)
    E = tl.load(state + i, mask=started, other=float("inf"))
    a = tl.load(state + n64 + i, mask=started, other=0.0)
    b = tl.load(state + 2 * n64 + i, mask=started, other=0.0)
    c = tl.load(state + 3 * n64 + i, mask=started, other=0.0)
    d = tl.load(state + 4 * n64 + i, mask=started, other=0.0)
    e = tl.load(state + 5 * n64 + i, mask=started, other=0.0)
    k = tl.load(state + 6 * n64 + i, mask=started, other=0.0)
    better = new <= E
    level = new - E <= rounding * tl.abs(E)
    stretch = tl.where(better, 2.0, 0.25)
    a, b, c, d, e, k = _updated(
        a, b, c, d, e, k, nx - x, ny - y, nz - z, nf - f, ng - g, nh - h, started, stretch
    )
    x = tl.where(better, nx, x)
    y = tl.where(better, ny, y)
    z = tl.where(better, nz, z)
    f = tl.where(better, nf, f)
    g = tl.where(better, ng, g)
    h = tl.where(better, nh, h)
    E = tl.where(better, new, E)
    # The first step is along the gradient.
    steepness = tl.sqrt(f * f + g * g + h * h)
    start = tl.where(steepness > 0, first_step / tl.where(steepness > 0, steepness, 1.0), 0.0)
    a = tl.where(started, a, start)
    b = tl.where(started, b, 0.0)
    c = tl.where(started, c, 0.0)
    d = tl.where(started, d, start)
    e = tl.where(started, e, 0.0)
    k = tl.where(started, k, start)
    u, v, w, length = _newton(a, b, c, d, e, k, f, g, h, x, y, z)
    converged = level & (length < converged_step) & (step == last)
    shorten = tl.minimum(longest / (length + 1.1754944e-38), 1.0)
    nx = x + shorten * u
    ny = y + shorten * v
    nz = z + shorten * w
    norm = tl.sqrt(nx * nx + ny * ny + nz * nz)
    store_vectors(trial, i, mask, nx / norm, ny / norm, nz / norm)
    store_vectors(Y, i, mask, x, y, z)
    store_vectors(gradient, i, mask, f, g, h)
    tl.store(state + i, E, mask=mask)
    tl.store(state + n64 + i, a, mask=mask)
    tl.store(state + 2 * n64 + i, b, mask=mask)
    tl.store(state + 3 * n64 + i, c, mask=mask)
    tl.store(state + 4 * n64 + i, d, mask=mask)
    tl.store(state + 5 * n64 + i, e, mask=mask)
    tl.store(state + 6 * n64 + i, k, mask=mask)
    tl.store(state + 7 * n64 + i, converged.to(tl.float32), mask=mask)
