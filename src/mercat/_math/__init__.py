"""Geometry of the sphere, and the angle loss: its definition, and the same in blocks."""
