"""Geometry of the sphere, orientation, the angle loss (by definition and in blocks), and other terms."""
