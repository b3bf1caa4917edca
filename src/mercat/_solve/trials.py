"""Descents of few points from several starts at once, on a device.

A device evaluates all starts in the time of one, but would wait if the host decided each step. So all starts
descend together by BFGS, with a fixed number of evaluations and no decisions on the host. The objective is
that of `losses.py`, for starts stacked along the first axis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._data.arrays import Array, namespace
from .._math.angles import MIN_SOFTENING
from .._math.distances import MIN_SINE, DistanceTerm
from .._math.sphere import tangent_frame
from .._math.terms import PAIR_TERMS
from .losses import AngleLoss

_FIRST_STEP, _LONGEST_STEP = 0.1, 0.2  # root mean squares over the points, in radians


def supports_terms() -> bool:
    """Whether this file implements all terms over pairs."""
    return [type(term) for term, *_ in PAIR_TERMS] == [DistanceTerm]


class Trial(NamedTuple):
    """Positions (s x n x 3) of s starts, objectives (s), gradients and inverse Hessians (s x 3n x 3n)."""

    Y: Array
    value: Array
    gradient: Array
    H: Array
    evaluated: int = 0


class Objectives:
    """The objective of n points at several maps, with directions softened as in `softening_for`.

    Parameters
    ----------
    angles : AngleLoss
        The angles of the points, on a device, with the best line.
    fraction : float
        Softening as a fraction of the squared spacing.
    distances : bool
        Whether the distance term is part of the objective.
    """

    def __init__(self, angles: AngleLoss, fraction: float, *, distances: bool) -> None:
        X, xp = angles.X, namespace(angles.X)
        self._fraction = fraction
        self._inverse_distance = xp.concat(list(angles.each_block(lambda _, inverse: inverse)))
        count, self._a, self._aa = angles.data_totals
        self._count = max(count, 1.0)
        self._gram = X @ X.T
        self._squares = xp.sum(X * X, axis=1)[:, None]
        self._mask = xp.astype(self._inverse_distance > 0, X.dtype)
        seen, apart = self._seen_by_distances(angles), self._inverse_distance > 0
        self._d = self._mask / xp.where(apart, seen, xp.ones_like(seen))
        mean = self._d.sum() / max(len(X) * (len(X) - 1), 1)
        self._of_d = mean, (self._d**2).sum() / max(len(X) * (len(X) - 1), 1) - mean**2
        self._others = 1 - xp.eye(len(X), dtype=X.dtype, device=X.device)
        self._weight = PAIR_TERMS[0][1] * angles.variance if distances else 0.0

    @staticmethod
    def _seen_by_distances(angles: AngleLoss) -> Array:
        """Inverse distances on the scale of the distance term."""
        parts = angles.each_block(lambda _, inverse: inverse, ranked=PAIR_TERMS[0].ranked)
        return namespace(angles.X).concat(list(parts))

    def __call__(self, Y: Any) -> tuple[Any, Any]:
        """Objectives (s) at Y (s x n x 3), and gradients along the sphere (s x n x 3)."""
        cosine = (Y @ Y.mT).clamp_(-1, 1)
        value, gradient = self._of_angles(Y, cosine)
        if self._weight > 0:
            more, further = self._of_distances(Y, cosine)
            value, gradient = value + more, gradient.add_(further)
        return value, gradient - (gradient * Y).sum(2, keepdim=True) * Y

    def _of_angles(self, Y: Any, cosine: Any) -> tuple[Any, Any]:
        """See `AngleLoss.evaluate`. Only the products of M with the legs are computed, not M itself."""
        import torch

        s, n, _ = Y.shape
        frame = tangent_frame(Y.reshape(-1, 3)).reshape(2, s, n, 3)
        B = frame @ Y.mT  # (2, s, n, n)
        softening = Y.var(1, correction=0).sum(1) * (self._fraction / n)
        softening = softening.clamp_(min=MIN_SOFTENING)[:, None, None]
        inverse_sine = ((B * B).sum(0) + softening).rsqrt_().mul_(self._mask)
        B *= inverse_sine
        W = B * self._inverse_distance
        over = W.sum(3, keepdim=True)
        mixed = self._squares * over - (W * self._gram).sum(3, keepdim=True)
        products = torch.addcmul(W @ self._gram + mixed, self._gram, over, value=-1)
        products *= self._inverse_distance
        S, t = (B * B).sum(3), B.sum(3)
        S12 = (B[0] * B[1]).sum(2)
        itself = S.sum(dim=(0, 2))
        b = (t * t).sum(dim=(0, 2)) - itself
        bb = (S * S).sum(dim=(0, 2)) + 2 * (S12 * S12).sum(1) - itself
        ab = (B * products).sum(dim=(0, 2, 3)) - itself
        alpha, beta = self._calibrated(b, bb, ab)
        squares = self._aa - 2 * alpha * self._a - 2 * beta * ab + alpha * alpha * self._count
        squares = squares + 2 * alpha * beta * b + beta * beta * bb
        wide = beta[:, None, None]
        g = torch.addcmul(B * S[..., None], B.flip(0), S12[:, :, None]).mul_(wide)
        g += alpha[:, None, None] * t[..., None]
        g -= products
        across = torch.addcmul(g[1] * B[0], g[0], B[1], value=-1).mul_(inverse_sine)
        across *= 4 * wide / self._count
        pulls = torch.stack([-B[1] * across, B[0] * across])
        along = (pulls * cosine).sum(3, keepdim=True)
        gradient = (pulls.mT @ frame - along * frame).sum(0)
        return squares.clamp_(min=0) / self._count, gradient

    def _calibrated(self, b: Array, bb: Array, ab: Array) -> tuple[Array, Array]:
        """The best line of each start; see `calibrate`."""
        xp = namespace(b)
        b, bb, ab, a = b / self._count, bb / self._count, ab / self._count, self._a / self._count
        variance = bb - b * b
        some = variance > 0
        beta = xp.where(some, (ab - a * b) / xp.where(some, variance, xp.ones_like(b)), 0.0)
        return a - beta * b, beta

    def _of_distances(self, Y: Any, cosine: Any) -> tuple[Any, Any]:
        """See `PairLoss.evaluate` and `DistanceTerm`."""
        import torch

        n = Y.shape[1]
        count, (d, variance) = n * (n - 1), self._of_d
        arc = cosine.acos() * self._others
        arcs, squares = arc.sum((1, 2)) / count, (arc * arc).sum((1, 2)) / count
        spread, covariance = squares - arcs * arcs, (self._d * arc).sum((1, 2)) / count - d * arcs
        some = (spread > 0) & (variance > 0)
        q = torch.where(some, covariance / spread, 0.0).clamp_(min=0)
        left = torch.where(some, 1 - q * covariance / variance, 0.0).clamp_(min=0)
        scale = torch.where(some, 4 * self._weight * q / (count * variance), 0.0)
        residual = self._d - (d - q * arcs)[:, None, None] - q[:, None, None] * arc
        residual *= (1 - cosine * cosine).clamp_(min=MIN_SINE**2).rsqrt_() * self._others
        return self._weight * left, scale[:, None, None] * (residual @ Y)


def begin(objectives: Objectives, Y: Any) -> Trial:
    """Starts Y (s x n x 3) before the first step."""
    import torch

    n = Y.shape[1]
    value, gradient = objectives(Y)
    scale = _FIRST_STEP * n**0.5 / gradient.norm(dim=(1, 2)).clamp_(min=1e-30)
    H = torch.eye(3 * n, dtype=Y.dtype, device=Y.device) * scale[:, None, None]
    return Trial(Y, value, gradient, H)


def descended(objectives: Objectives, trial: Trial, evaluations: int) -> Trial:
    """Trials after further BFGS steps; only descending steps are taken."""
    for _ in range(evaluations):
        trial = _advance(objectives, trial)
    return trial


def _advance(objectives: Objectives, trial: Trial) -> Trial:
    import torch

    Y, value, gradient, H, evaluated = trial
    s, n, _ = Y.shape
    step = -(H @ gradient.reshape(s, -1, 1))
    longest = _LONGEST_STEP * n**0.5
    step *= longest / step.norm(dim=1, keepdim=True).clamp_(min=longest)
    there = Y + step.reshape(Y.shape)
    there /= there.norm(dim=2, keepdim=True)
    new, slope = objectives(there)
    moved, change = ((a - b).reshape(s, -1, 1) for a, b in ((there, Y), (slope, gradient)))
    sy, yy = (moved * change).sum(1, keepdim=True), (change * change).sum(1, keepdim=True)
    better = (new <= value)[:, None, None]
    curved = better & (sy > 1e-3 * (moved.norm(dim=1, keepdim=True) * yy.sqrt()))
    rho = torch.where(curved, 1 / sy, 0.0)
    stretch = torch.where(curved, 1.0, torch.where(better, 2.0, 0.25))
    if evaluated == 0:  # scale the first Hessian by the curvature that was found
        stretch = torch.where(curved, sy / (yy * H[:, :1, :1]), stretch)
    H = H * stretch
    turned = H @ change
    both = (1 + (change * turned).sum(1, keepdim=True) * rho) * rho
    left = torch.cat([both * moved - rho * turned, -rho * moved], dim=2)
    H = torch.baddbmm(H, left, torch.cat([moved, turned], dim=2).mT)
    return Trial(
        torch.where(better, there, Y),
        torch.where(better[:, 0, 0], new, value),
        torch.where(better, slope, gradient),
        H,
        evaluated + 1,
    )
