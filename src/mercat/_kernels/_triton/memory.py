# mypy: ignore-errors
"""Load and store vectors in R^3: of points, by rows (n x 3), and of legs, by coordinates (3 x m)."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl


@triton.jit
def load_points(Y, i, mask):
    """Unit vectors of points i; (1, 0, 0) for masked ones."""
    x = tl.load(Y + 3 * i, mask=mask, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=mask, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=mask, other=0.0)
    return x, y, z


@triton.jit
def load_vectors(F, i, mask):
    """Vectors of points i; zeros for masked ones."""
    f = tl.load(F + 3 * i, mask=mask, other=0.0)
    g = tl.load(F + 3 * i + 1, mask=mask, other=0.0)
    h = tl.load(F + 3 * i + 2, mask=mask, other=0.0)
    return f, g, h


@triton.jit
def store_vectors(F, i, mask, f, g, h):
    tl.store(F + 3 * i, f, mask=mask)
    tl.store(F + 3 * i + 1, g, mask=mask)
    tl.store(F + 3 * i + 2, h, mask=mask)


@triton.jit
def load_legs(legs, j, m, mask):
    """Coordinates of the vectors of m legs, as rows of a tile (1 x legs); zeros for masked legs."""
    u = tl.load(legs + j, mask=mask, other=0.0)[None, :]
    v = tl.load(legs + m + j, mask=mask, other=0.0)[None, :]
    w = tl.load(legs + 2 * m + j, mask=mask, other=0.0)[None, :]
    return u, v, w
