"""BFGS on the sphere for many points at once, each independently."""

from __future__ import annotations

from .._data.arrays import Array, like, namespace, on_host, row_dot
from .._math.sphere import tangent
from .energy import (
    CONVERGED_STEP,
    FINAL_STEP,
    LONGEST_STEP,
    ROUNDING,
    Energies,
    Energy,
    EnergyOnGPU,
)


def bfgs(energy: Energy | Energies, Y: Array, steps: int, first_step: float) -> tuple[Array, Array]:
    """Take a fixed number of BFGS steps from Y for each point independently; only descending steps are taken.

    Returns the positions, and whether each point has converged: a further step would be short, and the last
    one did not increase the energy by more than rounding.
    """
    if isinstance(energy, EnergyOnGPU):
        return energy.descend(Y, (steps, first_step))
    xp = namespace(Y)
    # A step of length zero: energy and gradient at the point itself.
    E, g = xp.full_like(Y[:, 0], xp.inf), xp.zeros_like(Y)
    H = xp.zeros((Y.shape[0], 3, 3), **like(Y))
    Y, E, g, H, _ = _advance(energy, Y, E, g, H)
    steepness = _length(g)
    flat = steepness == 0
    scale = xp.where(
        flat, xp.zeros_like(E), first_step / xp.where(flat, xp.ones_like(E), steepness)
    )
    H = xp.eye(3, **like(Y))[None, :, :] * scale[:, None, None]
    for _ in range(steps):
        Y, E, g, H, level = _advance(energy, Y, E, g, H)
    return Y, level & (_length(_newton_step(H, g, Y)) < CONVERGED_STEP)


def newton(energy: Energy | Energies, Y: Array, H: Array, steps: int) -> Array:
    """Take Newton steps from Y with given inverse Hessians (b x 3 x 3), which are updated as in `bfgs`.

    A short step is the last of its point, without another evaluation. Other points stop after `steps`.
    """
    xp = namespace(Y)
    E, g = energy(Y)
    for _ in range(steps):
        short = _is_short(H, g, Y)
        if bool(xp.all(short)):
            break
        new = _advance(energy, Y, E, g, H)[:4]
        Y, E, g, H = (
            xp.where(xp.reshape(short, (-1, *[1] * (a.ndim - 1))), a, b)
            for a, b in zip((Y, E, g, H), new, strict=True)
        )
    last = _moved(Y, _newton_step(H, g, Y))
    return xp.where(_is_short(H, g, Y)[:, None], last, Y)


def _is_short(H: Array, g: Array, Y: Array) -> Array:
    return _length(_newton_step(H, g, Y)) < FINAL_STEP


def _moved(Y: Array, step: Array) -> Array:
    """Unit vectors after steps, shortened to `LONGEST_STEP` if longer."""
    xp = namespace(Y)
    tiny = xp.finfo(Y.dtype).smallest_normal
    length = _length(step)
    shorten = xp.minimum(LONGEST_STEP / (length + tiny), xp.ones_like(length))
    moved = Y + step * shorten[:, None]
    return moved / _length(moved)[:, None]


def _advance(
    energy: Energy | Energies, Y: Array, E: Array, g: Array, H: Array
) -> tuple[Array, ...]:
    """One BFGS step: position, energy, gradient, inverse Hessian; and whether the energy did not increase."""
    xp = namespace(Y)
    tiny = xp.finfo(Y.dtype).smallest_normal
    Y_new = _moved(Y, _newton_step(H, g, Y))
    E_new, g_new = energy(Y_new)
    s, y = Y_new - Y, g_new - g
    sy = row_dot(s, y)
    curved = (sy > 1e-3 * _length(s) * _length(y)) & (sy > 1e6 * tiny)
    rho = xp.where(curved, 1 / xp.where(curved, sy, xp.ones_like(sy)), xp.zeros_like(sy))
    Hy = _times(H, y)
    update = ((1 + row_dot(y, Hy) * rho) * rho)[:, None, None] * outer(s, s)
    update = update - rho[:, None, None] * (outer(s, Hy) + outer(Hy, s))
    better = E_new <= E
    level = E_new - E <= ROUNDING * xp.abs(E)
    stretch = xp.where(better, xp.full_like(E, 2.0), xp.full_like(E, 0.25))
    H = xp.where(curved[:, None, None], H + update, H * stretch[:, None, None])
    Y = xp.where(better[:, None], Y_new, Y)
    g = xp.where(better[:, None], g_new, g)
    E = xp.where(better, E_new, E)
    return Y, E, g, H, level


def _length(vectors: Array) -> Array:
    return namespace(vectors).sqrt(row_dot(vectors, vectors))


def outer(u: Array, v: Array) -> Array:
    """Outer products (b x 3 x 3) of the rows of u and v (b x 3)."""
    return u[:, :, None] * v[:, None, :]


def _times(H: Array, v: Array) -> Array:
    return (H @ v[:, :, None])[:, :, 0] if on_host(v) else row_dot(H, v[:, None, :])


def _newton_step(H: Array, g: Array, Y: Array) -> Array:
    return tangent(-_times(H, g), Y)
