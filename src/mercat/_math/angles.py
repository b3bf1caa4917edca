r"""The loss of `definition.py` and its gradient in blocks, without forming triples.

At apex i stack the unit directions to the legs in data space as rows of :math:`A` (m x r) and in the
tangent plane at :math:`Y_i` as rows of :math:`B` (m x 2). Then :math:`a = A A^T`, :math:`b = B B^T`, and
every sum over pairs of legs is a sum over small matrices,

.. math:: \sum a b = |A^T B|^2,\quad \sum b^2 = |B^T B|^2,\quad \sum b = |B^T 1|^2,

so that the sum over all triples costs O(n^2 r) instead of O(n^3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _kernels as kernels
from .._data.arrays import (
    Array,
    blocks,
    inverse_sqrt,
    namespace,
    on_host,
    row_dot,
    row_product,
    unstack,
    widest,
)
from .._kernels import device as device_kernels
from .sphere import squared_spacing, tangent_frame


class Legs(NamedTuple):
    """A block of b apices and m legs in data space, constant while Y moves.

    `X_apex` is b x r. `X_legs` has r + 1 columns, the last of them ones, so that one product gives a
    weighted sum of legs and the sum of the weights; it is m x (r + 1) if the apices share their legs, else
    b x m x (r + 1). `inverse_distance` (b x m) is zero where two points coincide: such a leg has no
    direction and is ignored. `mask` (b x m) is 0 for ignored legs and 1 for others; None if none are ignored.
    """

    X_apex: Array
    X_legs: Array
    inverse_distance: Array
    mask: Array | None


class Bearings(NamedTuple):
    """Unit directions on the map from each apex to each leg, in the tangent `frame` (2 x b x 3).

    `B` is 2 x b x m, `inverse_sine` b x m, both zero for ignored legs.
    """

    B: Array
    inverse_sine: Array
    frame: Array


class ApexSums(NamedTuple):
    """Sums over the legs of each apex: M = A^T B (2 x b x r), S = B^T B, t = B^T 1 (2 x b).

    `S` is the diagonal (2 x b) and `S12` (b) the off-diagonal entry of the symmetric S.
    """

    M: Array
    S: Array
    S12: Array
    t: Array


class Calibration(NamedTuple):
    """The line a = alpha + beta b that the cosines are measured against."""

    alpha: float
    beta: float


ABSOLUTE = Calibration(0.0, 1.0)
# Points coincide if their distance is at most this many machine epsilons times sqrt(|x|^2 + |y|^2).
_COINCIDENT_EPS = 4.0
MIN_SOFTENING = 1e-14  # for maps whose points all coincide


def _weighted_sum(weights: Array, P: Array) -> Array:
    """Weighted sums (2 x b x c) of points P with weights (2 x b x m).

    P is m x c, or b x m x c if each apex has its own points.
    """
    return row_product(weights, P) if P.ndim == 2 else (weights[..., None, :] @ P)[..., 0, :]


def _dot(vectors: Array, P: Array) -> Array:
    """Inner products (... x b x m) of vectors (... x b x c) and points P, with P as in `_weighted_sum`."""
    return row_product(vectors, P.T) if P.ndim == 2 else (P @ vectors[..., None])[..., 0]


def inverse_distances(X_apex: Array, X_legs: Array, squares: Array | None = None) -> Array:
    """1 / |x_i - x_j| (b x m), zero where the points coincide or differ by no more than rounding.

    Distances to shared legs are computed from inner products, by one matrix product. Where these cancel
    (points much closer to each other than to the origin), distances are recomputed from the differences; on
    a device, the products are computed in double precision instead. `squares` are the squared norms of the
    apices, if known; only kernels on a device use them.
    """
    xp = namespace(X_apex)
    trusted, negligible = distance_tolerances(X_apex)
    if X_legs.ndim == 3:
        difference = X_legs - X_apex[:, None, :]
        squared = row_dot(difference, difference)
        squared[squared <= negligible * _squared_norms(X_apex, X_legs)] = 0
    elif kernels.supports(X_apex, X_legs):
        return kernels.inverse_distances(X_apex, X_legs, trusted, negligible)
    elif device_kernels.supports(X_apex, X_legs):
        return device_kernels.inverse_distances(X_apex, X_legs, trusted, negligible, squares)
    elif on_host(X_apex) or widest(X_apex) == X_apex.dtype:
        squared, norms = _squared_distances(X_apex, X_legs)
        _recompute_cancelled(squared, norms, X_apex, X_legs)
    else:
        # On a device, searching for near pairs is slow and double precision is fast. In double precision,
        # products of single-precision numbers are exact.
        wide = xp.astype(X_apex, xp.float64), xp.astype(X_legs, xp.float64)
        squared, norms = _squared_distances(*wide)
        squared = xp.astype(xp.where(squared <= negligible * norms, xp.inf, squared), X_apex.dtype)
        return inverse_sqrt(squared)
    zero = squared == 0
    if bool(xp.any(zero)):
        squared[zero] = xp.inf
    return 1 / xp.sqrt(squared)


def _squared_norms(X_apex: Array, X_legs: Array) -> Array:
    """|x_i|^2 + |x_j|^2 (b x m)."""
    return row_dot(X_apex, X_apex)[:, None] + row_dot(X_legs, X_legs)


def _squared_distances(X_apex: Array, X_legs: Array) -> tuple[Array, Array]:
    """|x_i|^2 + |x_j|^2 - 2 x_i.x_j (b x m), and the sums |x_i|^2 + |x_j|^2."""
    norms = _squared_norms(X_apex, X_legs)
    squared = row_product(X_apex, X_legs.T)
    squared *= -2
    squared += norms
    return squared, norms


def distance_tolerances(X: Array) -> tuple[float, float]:
    """Bounds on squared distances as fractions of |x|^2 + |y|^2: `trusted` and `negligible`.

    Above the first, squared distances from inner products are accurate enough: their relative error is about
    the machine epsilon divided by this fraction. Up to the second, points are taken to coincide.
    """
    eps = float(namespace(X).finfo(X.dtype).eps)
    return 3e-3 if eps > 1e-10 else 1e-8, (_COINCIDENT_EPS * eps) ** 2


def _recompute_cancelled(squared: Array, norms: Array, X_apex: Array, X_legs: Array) -> None:
    """Recompute squared distances from differences where inner products cancel; negligible ones become 0.

    Changes `squared` and `norms` (b x m) in place.
    """
    xp, (trusted, negligible) = namespace(X_apex), distance_tolerances(X_apex)
    norms *= trusted
    cancelled = squared <= norms
    rows, columns = xp.nonzero(cancelled)
    parts = [squared[cancelled][:0]]
    for block in blocks(rows.shape[0], 1 << 16):
        i, j = rows[block], columns[block]
        difference = xp.take(X_apex, i, axis=0) - xp.take(X_legs, j, axis=0)
        parts.append(row_dot(difference, difference))
    direct = xp.concat(parts)
    direct[direct <= norms[cancelled] * (negligible / trusted)] = 0
    squared[cancelled] = direct


def legs_of(X_apex: Array, X_legs: Array) -> Legs:
    """Prepare a block of apices and its legs."""
    xp = namespace(X_apex)
    inverse_distance = inverse_distances(X_apex, X_legs)
    present = inverse_distance != 0
    # On a device, checking costs more than a mask of ones.
    none_ignored = on_host(present) and bool(xp.all(present))
    mask = None if none_ignored else xp.astype(present, X_apex.dtype)
    return legs_with_ones(X_apex, X_legs, inverse_distance)._replace(mask=mask)


def legs_with_ones(X_apex: Array, X_legs: Array, inverse_distance: Array) -> Legs:
    """`Legs` without a mask."""
    xp = namespace(X_apex)
    with_ones = xp.concat([X_legs, xp.ones_like(X_legs[..., :1])], axis=-1)
    return Legs(X_apex, with_ones, xp.asarray(inverse_distance, copy=True), None)


def bearings(
    Y_apex: Array, Y_legs: Array, mask: Array | None, softening: float | None = None
) -> Bearings:
    r"""Directions from each apex to each leg along the sphere.

    A direction jumps where two points meet. `softening` smooths the jump: the direction is
    :math:`c / \sqrt{|c|^2 + \varepsilon}`, where c is the leg projected onto the tangent plane; the length of
    c is the sine of the arc. By default, :math:`\varepsilon` is the machine epsilon, which bounds the
    gradient at coincident and antipodal points and is negligible elsewhere.
    """
    if softening is None:
        softening = float(namespace(Y_apex).finfo(Y_apex.dtype).eps)
    if Y_legs.ndim == 2 and kernels.supports(Y_apex, Y_legs):
        return Bearings(*kernels.bearings(Y_apex, Y_legs, mask, softening)[:3])
    frame = tangent_frame(Y_apex)
    B = _dot(frame, Y_legs)
    inverse_sine = inverse_length(B, softening)
    if mask is not None:
        inverse_sine *= mask
    B *= inverse_sine
    return Bearings(B, inverse_sine, frame)


def inverse_length(B: Array, softening: float) -> Array:
    """1 / sqrt(|c|^2 + softening) for positions c in tangent planes (2 x b x m)."""
    squares, other = unstack(B * B)
    squares += other
    squares += softening
    return inverse_sqrt(squares)


def pull_back(g: Array, B: Array, inverse_sine: Array) -> Array:
    """Gradient with respect to positions c in tangent planes, given the gradient g with respect to B.

    With B = c / length, the result is (g - B (B . g)) / length; g is overwritten. A step along it rotates
    directions, and changes the length of softened ones.
    """
    along, other = unstack(g * B)
    along += other
    g -= B * along
    g *= inverse_sine
    return g


def pull_back_rotation(g: Array, B: Array, inverse_sine: Array) -> Array:
    """The part of `pull_back` that rotates directions; g is overwritten.

    It differs from `pull_back` for softened directions only. The other part shortens these directions, which
    draws points together and leads to a higher loss.
    """
    swapped = namespace(B).flip(B, axis=0)
    g *= swapped
    other, across = unstack(g)
    across -= other
    across *= inverse_sine
    rotation = swapped * across
    rotation[0, ...] *= -1
    return rotation


def softening_for(Y: Array, fraction: float) -> float:
    """Softening of directions between points Y, as a fraction of their squared spacing.

    It shrinks with the map, so that shrinking the map does not lower the loss.
    """
    return max(fraction * squared_spacing(Y), MIN_SOFTENING)


def sum_of_legs(weights: Array, legs: Legs) -> Array:
    """Weighted sum of the differences between the legs and each apex in data space (2 x b x r)."""
    weighted = _weighted_sum(weights, legs.X_legs)
    return weighted[..., :-1] - weighted[..., -1:] * legs.X_apex


def products_with_legs(vectors: Array, legs: Legs) -> Array:
    """Inner products (2 x b x m) of vectors at the apices (2 x b x r) with differences leg minus apex."""
    offset = -row_dot(vectors, legs.X_apex)[..., None]
    return _dot(namespace(vectors).concat([vectors, offset], axis=-1), legs.X_legs)


def apex_sums(legs: Legs, b: Bearings) -> ApexSums:
    """A^T B, B^T B and B^T 1 at each apex of a block."""
    return ApexSums(
        sum_of_legs(b.B * legs.inverse_distance, legs),
        row_dot(b.B, b.B),
        row_dot(*unstack(b.B)),
        b.B @ namespace(b.B).ones_like(b.inverse_sine[0, :]),
    )


def directions(
    legs: Legs, Y_apex: Array, Y_legs: Array, softening: float | None = None
) -> tuple[Bearings, ApexSums]:
    """`bearings` and `apex_sums` together."""
    if softening is None:
        softening = float(namespace(Y_apex).finfo(Y_apex.dtype).eps)
    if Y_legs.ndim == 2 and kernels.supports(Y_apex, Y_legs, legs.X_legs):
        arguments = Y_apex, Y_legs, legs.mask, softening, legs.inverse_distance
        B, inverse_sine, frame, S, S12, t, weights = kernels.bearings(*arguments)
        sums = ApexSums(sum_of_legs(weights, legs), S, S12, t)
        return Bearings(B, inverse_sine, frame), sums
    b = bearings(Y_apex, Y_legs, legs.mask, softening)
    return b, apex_sums(legs, b)


def data_moments(legs: Legs) -> tuple[Array, Array, Array]:
    """Count, sum and sum of squares of a over ordered pairs of distinct legs: constants of X."""
    if legs.X_legs.ndim == 2 and kernels.supports(legs.X_apex, legs.X_legs):
        return kernels.data_moments(legs.X_apex, legs.X_legs, legs.inverse_distance)
    X_legs, inverse_distance = legs.X_legs[..., :-1], legs.inverse_distance
    xp = namespace(X_legs)
    m, r = X_legs.shape[-2:]
    A = X_legs - legs.X_apex[:, None, :]
    A *= inverse_distance[:, :, None]
    A_t = xp.permute_dims(A, (0, 2, 1))
    # With a copy, a small product takes a quarter of the time of NumPy's symmetric product.
    gram = A_t @ A if r <= m else A @ xp.asarray(A_t, copy=True)
    total = xp.sum(A, axis=1)
    # Number of legs that are not ignored.
    n_legs = xp.sum(xp.astype(inverse_distance != 0, A.dtype), axis=1)
    return (
        n_legs * (n_legs - 1),
        row_dot(total, total) - n_legs,
        xp.sum(gram * gram, axis=(1, 2)) - n_legs,
    )


def map_moments(s: ApexSums) -> tuple[Array, Array, Array]:
    """Sums of b, b^2 and ab over ordered pairs of distinct legs, for each apex."""
    xp = namespace(s.t)
    equal_legs = xp.sum(s.S, axis=0)  # the pairs of a leg with itself, subtracted from each sum
    b = xp.sum(s.t * s.t, axis=0)
    bb = xp.sum(s.S * s.S, axis=0) + 2 * s.S12 * s.S12
    ab = xp.sum(row_dot(s.M, s.M), axis=0)
    return b - equal_legs, bb - equal_legs, ab - equal_legs


def direction_gradient(legs: Legs, b: Bearings, s: ApexSums, calibration: Calibration) -> Array:
    r"""Gradient of the summed squared residuals with respect to the directions (2 x b x m).

    It is :math:`G = 4\beta\,[\beta B S - A M + \alpha 1 t^T + \gamma B]`. The last term, with
    :math:`\gamma = 1 - \alpha - \beta / 2`, removes the pairs of a leg with itself, which the sums include
    and the loss does not; it acts along directions only.
    """
    xp = namespace(b.B)
    alpha, beta = calibration
    # `map_moments` subtracts |B|^2 of each leg from the sums of b, b^2 and ab, which the loss multiplies by
    # 2 alpha beta, beta^2 and -2 beta: the gradient of what it subtracts is -4 beta gamma B.
    gamma = 1 - alpha - beta / 2
    g = products_with_legs(-4 * beta * s.M, legs)
    g *= legs.inverse_distance
    g += b.B * (4 * beta * (beta * s.S + gamma))[..., None]
    g += xp.flip(b.B, axis=0) * (4 * beta * beta * s.S12)[:, None]
    g += (4 * beta * alpha * s.t)[..., None]
    return g


def gradient_at_legs(frame: Array, g: Array, *, shared: bool = True) -> Array:
    """Gradient with respect to the legs in R^3, given the gradient g in the tangent planes of the apices.

    g is 2 x b x m. The result is m x 3 if the apices share their legs (`shared`), else b x m x 3.
    """
    (U, V), (along_U, along_V) = unstack(frame), unstack(g)
    if shared:
        return along_U.T @ U + along_V.T @ V
    return along_U[:, :, None] * U[:, None, :] + along_V[:, :, None] * V[:, None, :]


def gradient_at_apices(frame: Array, g: Array, cosine: Array) -> Array:
    """Gradient with respect to the apices (b x 3), given g as in `gradient_at_legs` and cosines of the arcs.

    Moving an apex changes the direction to a leg at arc length d as moving the leg by -cos d times that step
    would.
    """
    (U, V), (along_U, along_V) = unstack(frame), unstack(row_dot(g, cosine))
    return -along_U[:, None] * U - along_V[:, None] * V


def apex_gradient(
    legs: Legs, Y_apex: Array, Y_legs: Array, b: Bearings, s: ApexSums, calibration: Calibration
) -> tuple[Array, Array]:
    """Gradient of the summed squared residuals at a block of apices, with `pull_back_rotation`.

    Returns the gradients with respect to the apices (b x 3) and to the legs (of the shape of `Y_legs`), both
    tangent to the sphere.
    """
    if Y_legs.ndim == 2 and kernels.supports(Y_apex, Y_legs, b.B, s.M):
        products, sums = products_with_legs(s.M, legs), (s.S, s.S12, s.t)
        inverse_distance = legs.inverse_distance
        return kernels.apex_gradient(
            Y_apex, Y_legs, inverse_distance, b, sums, products, calibration
        )
    g = pull_back_rotation(direction_gradient(legs, b, s, calibration), b.B, b.inverse_sine)
    to_legs = gradient_at_legs(b.frame, g, shared=Y_legs.ndim == 2)
    return gradient_at_apices(b.frame, g, _dot(Y_apex, Y_legs)), to_legs


# ------------------------------------------------------------------ from sums to losses


class Moments(NamedTuple):
    """Sums over ordered pairs of distinct legs of 1, a, a^2, b, b^2 and ab, per apex or in total."""

    count: Array
    a: Array
    aa: Array
    b: Array
    bb: Array
    ab: Array


def total(moments: Moments) -> Moments:
    """Moments summed over all apices, as Python floats."""
    return Moments(*(float(m.sum()) for m in moments))


def mean_square(m: Moments, calibration: Calibration) -> Array:
    """Mean of (a - alpha - beta b)^2; zero if there are no pairs."""
    alpha, beta = calibration
    squares = m.aa - 2 * alpha * m.a - 2 * beta * m.ab
    squares = squares + alpha * alpha * m.count + 2 * alpha * beta * m.b + beta * beta * m.bb
    squares = (squares + abs(squares)) / 2  # negative values come from rounding
    return squares / (m.count + (m.count == 0))


def calibrate(m: Moments) -> tuple[Calibration, float]:
    """The least-squares line through the cosines of all triples, and their Pearson correlation."""
    n = max(m.count, 1.0)
    a, b = m.a / n, m.b / n
    covariance = m.ab / n - a * b
    variance_a = max(m.aa / n - a * a, 0.0)
    variance_b = max(m.bb / n - b * b, 0.0)
    beta = covariance / variance_b if variance_b > 0 else 0.0
    spread = (variance_a * variance_b) ** 0.5
    correlation = covariance / spread if spread > 0 else 0.0
    return Calibration(a - beta * b, beta), min(max(correlation, -1.0), 1.0)


class AngleFit(NamedTuple):
    """Quality of a map: how well a line relates the cosines of its angles to those of the data."""

    calibration: Calibration
    correlation: float  # Pearson's, of the cosines of all triples
    loss: float  # root mean squared residual over all triples
    point_loss: Array  # ... over the pairs of legs of each apex


def angle_fit(m: Moments, line: Calibration | None = None) -> AngleFit:
    """Compute an `AngleFit` from moments of each apex, for a given line or the best one."""
    all_triples = total(m)
    best, correlation = calibrate(all_triples)
    line = best if line is None else line
    loss = float(np.sqrt(mean_square(all_triples, line)))
    point_loss = mean_square(m, line)
    return AngleFit(line, correlation, loss, namespace(point_loss).sqrt(point_loss))
