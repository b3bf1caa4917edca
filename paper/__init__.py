"""Tables and figures of the paper, with the paper's numbers and ours.

    python -m paper --data DIR

runs missing experiments, then writes REPORT.md and the figures.
"""
