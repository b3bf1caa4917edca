# mypy: ignore-errors
"""Loads and stores of vectors: of points, one per row (n x 3), and of legs, one per column (3 x m)."""

# Triton reads annotations as types: no `from __future__ import annotations` here.
import triton
import triton.language as tl


@triton.jit
def load_points(Y, i, there):
    """Unit vectors; (1, 0, 0) for missing points."""
    x = tl.load(Y + 3 * i, mask=there, other=1.0)
    y = tl.load(Y + 3 * i + 1, mask=there, other=0.0)
    z = tl.load(Y + 3 * i + 2, mask=there, other=0.0)
    return x, y, z


@triton.jit
def load_vectors(F, i, there):
    """Vectors; zeros for missing points."""
    f = tl.load(F + 3 * i, mask=there, other=0.0)
    g = tl.load(F + 3 * i + 1, mask=there, other=0.0)
    h = tl.load(F + 3 * i + 2, mask=there, other=0.0)
    return f, g, h


@triton.jit
def store_vectors(F, i, there, f, g, h):
    tl.store(F + 3 * i, f, mask=there)
    tl.store(F + 3 * i + 1, g, mask=there)
    tl.store(F + 3 * i + 2, h, mask=there)


@triton.jit
def load_legs(legs, j, m, leg):
    """Vectors of legs, as rows of a tile (1 x m); zeros for missing legs."""
    u = tl.load(legs + j, mask=leg, other=0.0)[None, :]
    v = tl.load(legs + m + j, mask=leg, other=0.0)[None, :]
    w = tl.load(legs + 2 * m + j, mask=leg, other=0.0)[None, :]
    return u, v, w
