"""Measurements of Mercat and other methods. Run from the root of the repository."""
