"""Uncertainty of the positions on a map, from other maps of the same data."""
