"""Reasons why a fit ended."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """Why a fit ended. The value of a member is a sentence for users.

    A fit that ends with CONVERGED or PRECISION has converged; SCHEDULE is the normal end of Algorithm 1. With
    MAX_ITER and CALLBACK, more iterations could improve the map.
    """

    CONVERGED = "The loss stopped falling: the fit converged."
    PRECISION = "The loss is as low as the precision of its gradient allows: the fit converged."
    MAX_ITER = "The fit stopped at max_iter iterations, before the loss stopped falling."
    CALLBACK = "The callback asked to stop."
    SCHEDULE = "The fit ran its fixed number of iterations, as the paper's Algorithm 1 does."

    def __str__(self) -> str:
        return self.value
