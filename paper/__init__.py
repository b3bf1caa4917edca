"""Every table and figure of the paper, beside its peers and its own numbers.

    python -m paper --data DIR

runs what has not been run yet, then writes REPORT.md and the figures.
"""
