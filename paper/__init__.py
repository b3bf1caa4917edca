"""Tables and figures of the paper, with its numbers beside ours.

    python -m paper --data DIR

runs what has not been run yet, then writes REPORT.md and the figures.
"""
