"""Shared by all experiments: methods and data by name, and results with their provenance.

Nothing is imported here: `peers` also runs in interpreters without Mercat and scikit-learn.
"""
