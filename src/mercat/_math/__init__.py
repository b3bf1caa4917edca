"""Geometry of the sphere, and the angle loss: its definition and a blockwise implementation."""
